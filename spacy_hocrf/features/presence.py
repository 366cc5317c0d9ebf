"""Detects input from other components that is missing: whether the attributes, span groups and arrays that
templates read had content in training, and whether new texts differ from training in that.

A feature of an attribute that is always empty is useless, and nobody would notice. Worse is an attribute
that was empty in training and no longer is, or the other way round: the weights were not trained for such
observations.
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
from spacy_hocrf.features.templates import AttributeTemplate, NgramTemplate, RealTemplate, Template
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
MIN_EXPECTED = 30
"""Expected number of observations, from the rate in training, after which their absence is reported."""


def observed(index: FeatureIndex) -> dict[str, int]:
    """Count how often each source had content in the texts that an index was learnt from, measured by the
    features that fired; 0 for sources that were empty. Sources are named as in `TokenBatch.reads`.
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
        has_content = _says(template, source, rows[observation[features]])
        times = int(index.feature_count[features][has_content].sum())
        counts[source] = max(counts.get(source, 0), times)
    return counts


def said_in(batch: TokenBatch, source: str) -> bool:
    """Does a source have content for some token?"""
    kind, _, key = source.rpartition(":")
    if kind == "spans":
        return any(batch.span_groups(key))
    if kind == "real":
        return any(rows.any() for rows in batch.real(key))
    return bool((~np.isin(batch.column(source), np.array(_empty(source)))).any())


def in_words(source: str) -> str:
    """Name a source as users write it."""
    kind, _, key = source.rpartition(":")
    return {"spans": f"doc.spans['{key}']", "real": f"'{key}'"}.get(kind, source)


class Watch:
    """Warns if texts differ from the training texts in what other components provide. It checks batches until
    the answer is clear, and warns once per source.

    counts (Mapping[str, int]): how often each source had content in training.
    documents (int): number of training documents.
    without (Iterable[str]): names of dense scores that had no arrays.

    empty (FrozenSet[str]): sources without content in training.
    """

    def __init__(
        self, counts: Mapping[str, int], documents: int, without: Iterable[str] = ()
    ) -> None:
        self.empty = frozenset([*without, *(name for name, times in counts.items() if not times)])
        self._texts = 0
        self._rates = {source: times / max(1, documents) for source, times in counts.items()}

    def look(self, batch: TokenBatch, name: str) -> None:
        """Compare another batch with training, and warn (W014 or W015) if it differs.

        name (str): name of the component.
        """
        if not self._rates:
            return
        self._texts += len(batch.docs)
        for source, rate in list(self._rates.items()):
            has_content = said_in(batch, source)
            names = {"source": in_words(source), "name": name}
            if has_content and not rate:
                warnings.warn(Warnings.W014.format(**names, text=beginning(batch.docs[0])))
            elif not has_content and rate * self._texts >= MIN_EXPECTED:
                text = Warnings.W015.format(**names, found=self._texts, rate=f"{rate:.2g}")
                warnings.warn(text)
            elif not has_content:
                continue
            self._rates.pop(source, None)


def _sources_of(template: Template) -> Iterable[str]:
    """Annotation of other components that a template of this package reads."""
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
    """Are observations, uint64 [n, A], of a source with content? (bool [n])"""
    if isinstance(template, AttributeTemplate):
        values = values[:, [i for i, name in enumerate(template.attributes) if name == source]]
    elif isinstance(template, ItemTemplate):
        pairs = zip(template.commands, template.attributes, values.T)
        full = [~np.isin(own, template.nothing(c)) for c, name, own in pairs if name == source]
        has_content: NDArray[np.bool_] = np.any(full, axis=0)
        return has_content
    elif not isinstance(template, TextTemplate):
        return np.ones(len(values), dtype=bool)  # these observe nothing of empty sources
    empty = np.array([EDGE, *_empty(source)], dtype=np.uint64)
    has_content = np.any(~np.isin(values, empty), axis=1)
    return has_content


@lru_cache
def _empty(attribute: str) -> tuple[np.uint64, ...]:
    """Values of an attribute that has not been set."""
    texts = {""}
    if attribute.startswith("_."):
        texts |= {str(None), str(Token.get_extension(attribute[2:])[0])}
    return tuple(np.uint64(get_string_id(text)) if text else np.uint64(0) for text in texts)
