"""What a corpus remembers of documents so that they can be decoded together."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np
from spacy.tokens import Doc
from spacy.training import Example

from spacy_hocrf.features.records import are_recordable
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.joint.templates import GlobalTemplate

__all__ = ["Connections"]


@dataclass(frozen=True)
class Connections:
    """What can connect documents, or places in them: a `pipeline.corpus.Memory`."""

    templates: tuple[GlobalTemplate, ...]
    # extension attribute of Docs; those with an equal value are a group
    group_by: str | None = None

    @property
    def blanks(self) -> bool:
        """Which tokens are white space? Asked by every template."""
        return bool(self.templates)

    @property
    def recordable(self) -> bool:
        """Are all templates of classes that read Docs through `TokenBatch` only?"""
        return are_recordable(self.templates)

    def reads(self, doc: Doc) -> Mapping[str, set[str]]:
        """What the templates read of a Doc, by their names."""
        found: dict[str, set[str]] = {}
        for template in self.templates:
            batch = TokenBatch([doc])
            template.find(batch, np.zeros(1, dtype=np.int64))
            found[template.name] = batch.reads
        return found

    def group(self, example: Example) -> Hashable:
        """The value of the extension attribute; None if the document is a group by itself."""
        if self.group_by is None:
            return None
        group: Hashable = example.predicted._.get(self.group_by)
        return example.reference._.get(self.group_by) if group is None else group
