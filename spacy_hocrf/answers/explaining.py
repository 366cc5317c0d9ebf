"""Explanations: what every feature contributes to the log-odds of a span.

The score of a segmentation is linear in the weights, score(s) = Σ w_f · n_f(s), where n_f(s) counts how often
the feature f fires in s. So the log-odds of the best segmentation with a span, s, against the best one
without it, s', are the sum of the features' contributions:

    log P(s) / P(s') = score(s) - score(s') = Σ w_f · (n_f(s) - n_f(s'))

plus the difference in the penalties that the two pay for broken rules.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Span

from spacy_hocrf.annotation.annotation import NamedSpan
from spacy_hocrf.answers.attribution import TextShares, WordShares
from spacy_hocrf.answers.contrast import Asked, Contrast
from spacy_hocrf.answers.part import Part
from spacy_hocrf.answers.predictor import Predictor
from spacy_hocrf.model.compiled import CompiledBatch
from spacy_hocrf.types import Segments

__all__ = ["Explainer", "Explanation", "Reason"]


class Reason(NamedTuple):
    """The contribution of a feature, a dense score or a rule to the log-odds of a span."""

    contribution: float  # nats; positive if it favours the span
    feature: str  # the observation in words; or the name of the dense score or rule
    labels: str  # of the consecutive segments it is observed with, oldest first
    template: str  # name of the template or dense score, or "rules"


@dataclass(frozen=True)
class Explanation:
    """Why a span was found, compared with the best reading without it."""

    span: NamedSpan  # first token, one past the last token, label
    log_odds: float  # nats; of the best reading with the span against the one it is compared with
    chosen: tuple[NamedSpan, ...]  # spans of the best reading with the span
    instead: tuple[NamedSpan, ...]  # spans of the reading it is compared with
    _parts: "_Parts" = field(repr=False)

    @cached_property
    def reasons(self) -> tuple[Reason, ...]:
        """All contributions, sorted by absolute value, largest first. Their sum is `log_odds`."""
        parts = self._parts
        reasons = [
            Reason(value, *parts.words(feature), parts.template(feature))
            for feature, value in zip(parts.features.tolist(), parts.values.tolist())
        ]
        return tuple(sorted([*reasons, *parts.dense], key=lambda reason: -abs(reason.contribution)))

    @cached_property
    def templates(self) -> dict[str, float]:
        """Total contribution of each template and dense score, largest absolute value first."""
        parts, totals = self._parts, defaultdict[str, float](float)
        for feature, value in zip(parts.features.tolist(), parts.values.tolist()):
            totals[parts.template(feature)] += value
        for reason in parts.dense:
            totals[reason.template] += reason.contribution
        return dict(sorted(totals.items(), key=lambda item: -abs(item[1])))

    def observations(self, top: int | None = None) -> list[tuple[str, float]]:
        """Return the contribution of each observation, summed over labels, largest absolute value first.

        top (Optional[int]): return only the first `top`.
        """
        parts = self._parts
        totals = defaultdict[tuple[int, int] | str, float](float)
        feature_of = dict[tuple[int, int], int]()  # one of each observation
        places = zip(parts.observations.tolist(), parts.templates.tolist())
        for place, feature, value in zip(places, parts.features.tolist(), parts.values.tolist()):
            feature_of.setdefault(place, feature)
            totals[place] += value
        for reason in parts.dense:
            totals[reason.feature] += reason.contribution
        largest = sorted(totals.items(), key=lambda item: -abs(item[1]))[:top]
        return [
            (place if isinstance(place, str) else parts.words(feature_of[place])[0], value)
            for place, value in largest
        ]

    @cached_property
    def words(self) -> NDArray[np.float64]:
        """Contribution of each word, float64 [T]; a feature that looks at several words is shared equally
        between them. The rest of `log_odds` belongs to no word: the order of labels, lengths, positions.
        """
        return self._parts.shares()

    def __str__(self) -> str:
        """Format the reasons for and against the span, one per line."""
        lines = [f"log-odds {self.log_odds:+.3f}"]
        lines += [
            f"{reason.contribution:+8.3f}  {reason.feature}  {reason.labels}"
            for reason in self.reasons
        ]
        return "\n".join(lines)


@dataclass(frozen=True)
class _Parts:
    """Contributions of n features, and those of dense scores."""

    features: NDArray[np.int64]  # [n]
    observations: NDArray[np.int64]  # [n] observation of each feature
    templates: NDArray[np.int32]  # [n]
    values: NDArray[np.float64]  # [n] nats
    dense: tuple[Reason, ...]
    words: Callable[[int], tuple[str, str]]  # feature -> its observation and labels, as text
    template: Callable[[int], str]  # feature -> name of its template
    shares: Callable[[], NDArray[np.float64]]  # contributions of words, [T]


class Explainer:
    """Explains spans of the Docs of a part.

    predictor (Predictor): the model at the time of the reading.
    part (Part): D Docs, decoded around what earlier components have set.
    """

    def __init__(self, predictor: Predictor, part: Part) -> None:
        self._predictor, self._part = predictor, part
        self._cached_text: _Text | None = None  # the Doc of the last question

    @cached_property
    def _compiled(self) -> CompiledBatch:
        structure = self._predictor.structure
        batch = self._part.batch
        return structure.compile(structure.observe(batch), structure.allowed(batch))

    @cached_property
    def _weights(self) -> NDArray[np.float64]:
        """Weights of the features, followed by those of the dense scores, float64 [F]."""
        placed, place = self._predictor.weights, self._compiled.compiled.place
        return np.concatenate([placed.values[place], placed.dense])

    @cached_property
    def _shares(self) -> WordShares:
        return WordShares(self._predictor.structure, self._compiled.compiled, self._weights)

    def explain(self, number: int, span: Span | NamedSpan, instead: Asked | None) -> Explanation:
        """Explain why a span of a Doc was found rather than something else.

        number (int): index of the Doc in the part.
        instead (Optional[Asked]): a span: compare with the best reading that has it instead of the other;
            several spans: with the reading that has exactly these; None: with the best reading without the
            span.
        RAISES (ValueError): H224 for a span that the model cannot produce, H225 if no reading is without it,
            H226 if no reading has what is asked for instead, H227 if that contains the span.
        """
        text = self._text(number)
        asked = text.contrast.checked(span)
        chosen, other = text.contrast.compare(asked, instead)
        return Explanation(
            span=asked,
            log_odds=chosen.score - other.score,
            chosen=text.contrast.shown(chosen.segments),
            instead=text.contrast.shown(other.segments),
            _parts=self._parts(text, chosen.segments, other.segments),
        )

    def _text(self, number: int) -> "_Text":
        """Return a Doc of the part with its compiled features, cached for the next question."""
        cached = self._cached_text
        if cached is not None and cached.number == number:
            return cached
        compiled = self._compiled.only(int(self._part.docs[number]))
        shares = TextShares(self._shares, compiled)
        self._cached_text = _Text(number, self.contrast(number), compiled, shares)
        return self._cached_text

    def contrast(self, number: int) -> Contrast:
        """Return an object that finds the best readings of a Doc of the part with and without a span."""
        part = self._part.only(np.array([number]))
        return Contrast(part.doc(0), part, self._predictor.exact.pool)

    def _parts(self, text: "_Text", chosen: Segments, other: Segments) -> _Parts:
        """Compute the contributions of features, dense scores and rules."""
        structure, compiled = self._predictor.structure, text.compiled
        counts = compiled.compiled.nothing()
        chosen_counts, other_counts = (
            compiled.gold_counts(structure.trie.locate(segments, compiled.offsets))
            for segments in (chosen, other)
        )
        compiled.add_counts_into(chosen_counts, 1.0, counts)
        compiled.add_counts_into(other_counts, -1.0, counts)
        values = self._weights * compiled.compiled.collect(counts)
        index, scheme = structure.index, structure.scheme
        strings, names = text.contrast.doc.vocab.strings, scheme.names
        features = np.flatnonzero(values[: len(index)])
        dense, start = list[Reason](), len(index)
        for name, score in structure.settings.dense:
            block = values[start : start + score.width * len(names)].reshape(-1, len(names))
            start += block.size
            dense += [
                Reason(value, name, label, name)
                for label, value in zip(names, block.sum(axis=0).tolist())
                if value
            ]
        costs, other_costs = (self._part.under.costs(segments) for segments in (chosen, other))
        for name in {**costs, **other_costs}:
            value = other_costs.get(name, 0.0) - costs.get(name, 0.0)
            dense += [Reason(value, name, "", "rules")] if value else []
        return _Parts(
            features,
            np.searchsorted(index.feature_offsets, features, side="right") - 1,
            index.feature_template[features],
            values[features],
            tuple(dense),
            lambda feature: index.describe(feature, strings, names),
            lambda feature: index.templates[index.feature_template[feature]].name,
            lambda: text.shares.between(chosen_counts, other_counts),
        )


class _Text(NamedTuple):
    """One Doc of a part."""

    number: int  # index in the part
    contrast: Contrast
    compiled: CompiledBatch
    shares: TextShares
