"""What a corpus stores of documents for joint decoding, and which documents must be decoded
together.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from spacy.tokens import Doc

from spacy_hocrf.annotation.documents import Document
from spacy_hocrf.arrays import stretches
from spacy_hocrf.features.records import are_recordable
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.joint.features import JointFeatures
from spacy_hocrf.joint.problems import JointProblem
from spacy_hocrf.joint.templates import JointTemplate
from spacy_hocrf.learning.corpus import Corpus
from spacy_hocrf.model.structure import BATCH_TOKENS

__all__ = ["JointDocuments", "JointMemory", "documents_together"]


@dataclass(frozen=True)
class JointMemory:
    """Attributes that joint templates read, see `learning.corpus.Memory`."""

    templates: tuple[JointTemplate, ...]

    @property
    def blanks(self) -> bool:
        """Is white space recorded? Every template needs it."""
        return bool(self.templates)

    @property
    def recordable(self) -> bool:
        """Are all templates of classes that read Docs through `TokenBatch` only?"""
        return are_recordable(self.templates)

    def reads(self, doc: Doc) -> Mapping[str, set[str]]:
        """Return the attributes that each template reads of a Doc, by name of the template."""
        reads: dict[str, set[str]] = {}
        for template in self.templates:
            batch = TokenBatch([doc])
            template.find(batch, np.zeros(1, dtype=np.int64))
            reads[template.name] = batch.reads
        return reads


class JointDocuments(NamedTuple):
    """Documents of one group that must be decoded together."""

    documents: list[Document]
    problem: JointProblem


def documents_together(
    corpus: Corpus, features: JointFeatures, *, most: int
) -> list[list[JointDocuments]]:
    """Return groups of completely annotated documents, each divided into parts that must be decoded together.

    features (JointFeatures): features that connect documents.
    most (int): most tokens in a group; larger ones are split.
    """
    groups: list[list[JointDocuments]] = []
    everything = corpus.groups(most=most)
    sizes = [sum(map(len, group)) for group in everything]
    for first, last in stretches(sizes, BATCH_TOKENS):
        part = everything[first:last]
        documents = [document for group in part for document in group]
        numbers = np.repeat(np.arange(len(part)), [len(group) for group in part])
        parts: dict[int, list[JointDocuments]] = defaultdict(list)
        patterns = features.patterns(corpus.batch(documents), numbers, ~features.hard)
        for problem in patterns.divided():
            number = int(numbers[problem.sequences[0]])
            parts[number].append(
                JointDocuments([documents[i] for i in problem.sequences.tolist()], problem)
            )
        groups += parts.values()
    return groups
