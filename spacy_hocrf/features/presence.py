"""What other components may have left empty: whether the attributes, span groups and arrays that
templates read said anything in training, and whether new texts are unlike that.

A feature of what is empty everywhere says nothing, and nobody would see it. What was empty in training
and no longer is, or the other way round, is worse: each of its observations is one that the weights
were not made for.
"""

import warnings
from collections.abc import Iterable, Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.tokens import Token

from spacy_hocrf.features.index import FeatureIndex
from spacy_hocrf.features.items import ItemTemplate
from spacy_hocrf.features.pieces import PiecesTemplate
from spacy_hocrf.features.segments import TextTemplate
from spacy_hocrf.features.spans import SpanTemplate
from spacy_hocrf.features.templates import (
    AttributeTemplate,
    NgramTemplate,
    RealTemplate,
    Template,
)
from spacy_hocrf.features.tokens import EDGE, TokenBatch, beginning
from spacy_hocrf.warnings import Warnings

__all__ = ["Watch", "in_words", "observed", "said_in"]

SET_BY_OTHERS = {
    "DEP",
    "ENT_ID",
    "ENT_IOB",
    "ENT_KB_ID",
    "ENT_TYPE",
    "LEMMA",
    "MORPH",
    "POS",
    "TAG",
}
"""Attributes that no tokenizer sets, besides fields of MORPH and extension attributes."""
ENOUGH = 30
"""So often something would have been said, if new texts were like those of training."""


def observed(index: FeatureIndex) -> dict[str, int]:
    """How often each source said something, by a feature, in the texts that an index was learnt from;
    0 for those that were empty. A source is named as in `TokenBatch.reads`.
    """
    counts: dict[str, int] = {}
    templates = [
        (number, template, source)
        for number, template in enumerate(index.templates)
        for source in _sources_of(template)
    ]
    rows, observation = (
        (index.table.rows[:, 1:], index.feature_observation) if templates else (None, None)
    )
    for number, template, source in templates:
        assert rows is not None and observation is not None
        features = np.flatnonzero(index.feature_template == number)
        said = _says(template, source, rows[observation[features]])
        times = int(index.feature_count[features][said].sum())
        counts[source] = max(counts.get(source, 0), times)
    return counts


def said_in(batch: TokenBatch, source: str) -> bool:
    """Does a source say something of some token?"""
    kind, _, key = source.rpartition(":")
    if kind == "spans":
        return any(batch.span_groups(key))
    if kind == "real":
        return any(rows.any() for rows in batch.real(key))
    return bool((~np.isin(batch.column(source), np.array(_empty(source)))).any())


def in_words(source: str) -> str:
    """A source as its users call it."""
    kind, _, key = source.rpartition(":")
    return {"spans": f"doc.spans['{key}']", "real": f"'{key}'"}.get(kind, source)


class Watch:
    """Whether texts that a model reads are like those that it has learnt from, where other components
    have a part in it. It looks until it knows, and warns once of each source.

    counts (Mapping[str, int]): how often each source said something in training.
    documents (int): that there were.
    without (Iterable[str]): names of dense scores that had no array.

    empty (FrozenSet[str]): what said nothing in training.
    """

    def __init__(
        self, counts: Mapping[str, int], documents: int, without: Iterable[str] = ()
    ) -> None:
        self.empty = frozenset([*without, *(name for name, times in counts.items() if not times)])
        self._texts = 0
        self._rates = {source: times / max(1, documents) for source, times in counts.items()}

    def look(self, batch: TokenBatch, name: str) -> None:
        """Compare another batch with training; W014 or W015 if it is unlike that.

        name (str): of the component.
        """
        if not self._rates:
            return
        self._texts += len(batch.docs)
        for source, rate in list(self._rates.items()):
            found = said_in(batch, source)
            known = {"source": in_words(source), "name": name}
            if found and not rate:
                warnings.warn(Warnings.W014.format(**known, text=beginning(batch.docs[0])))
            elif not found and rate * self._texts >= ENOUGH:
                text = Warnings.W015.format(**known, found=self._texts, rate=f"{rate:.2g}")
                warnings.warn(text)
            elif not found:
                continue
            self._rates.pop(source, None)


def _sources_of(template: Template) -> Iterable[str]:
    """Annotation of other components that a template of ours reads."""
    if isinstance(template, RealTemplate):
        return [f"real:{template.source}"]
    if isinstance(template, SpanTemplate):
        return ["ENT_TYPE" if template.key is None else f"spans:{template.key}"]
    if isinstance(template, AttributeTemplate | ItemTemplate):
        return {*filter(_set_by_others, template.attributes)}
    if isinstance(template, NgramTemplate | PiecesTemplate | TextTemplate):
        return filter(_set_by_others, [template.attribute])
    return []


def _set_by_others(attribute: str) -> bool:
    return attribute in SET_BY_OTHERS or attribute.startswith(("MORPH.", "_."))


def _says(template: Template, source: str, values: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which observations, uint64 [n, A], are of a source that is not empty? bool [n]"""
    if isinstance(template, AttributeTemplate):
        values = values[:, [i for i, name in enumerate(template.attributes) if name == source]]
    elif isinstance(template, ItemTemplate):
        pairs = zip(template.commands, template.attributes, values.T)
        there = [~np.isin(own, template.nothing(c)) for c, name, own in pairs if name == source]
        found: NDArray[np.bool_] = np.any(there, axis=0)
        return found
    elif not isinstance(template, TextTemplate):
        return np.ones(len(values), dtype=bool)  # of what is empty they make none
    empty = np.array([EDGE, *_empty(source)], dtype=np.uint64)
    said: NDArray[np.bool_] = np.any(~np.isin(values, empty), axis=1)
    return said


@lru_cache
def _empty(attribute: str) -> tuple[np.uint64, ...]:
    """Values of an attribute that nobody has set."""
    found = {""}
    if attribute.startswith("_."):
        found |= {str(None), str(Token.get_extension(attribute[2:])[0])}
    return tuple(np.uint64(get_string_id(value)) if value else np.uint64(0) for value in found)
