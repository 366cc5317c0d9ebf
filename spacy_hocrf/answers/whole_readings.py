"""Features of whole readings: what `spacy-hocrf.Reranked.v1` chooses by.

A CRF scores spans and neighbouring spans. It cannot see whether a text as a whole resembles annotated ones
(are two titles usual, or a year without a title?). So its n most probable readings are scored again, each as
a whole: with ψ(y) the features of a reading,

    P(y) = P(one of the n) · exp(w · ψ(y)) / Σ_y' exp(w · ψ(y')),

over the n readings y'; the first of ψ is log P(y) of the CRF (Collins, ICML 2000; Charniak and Johnson, ACL
2005). The others are computed from c, the number of times something occurs in annotated texts:

    log (c + 1/2) of the multiset of the labels of all spans, and whether c is 0; log (c + 1/2) of the set of
        labels that occur;
    Σ log ((c + 1/10) / (texts + 1/2)) over the labels, c of this number of spans with the label;
    Σ log P(label | word) / P(label) over the spans, for the first and the last word of the span and those
        before and after it, with P(label | word) = (c + a P(label)) / (c(word) + a), a = 0.3;
    the number of spans.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import hashes
from spacy_hocrf.engine.selection import joined_segments, select_segments
from spacy_hocrf.features.tokens import EDGE
from spacy_hocrf.types import Matrix, Segments, Vector

__all__ = ["N_FEATURES", "ReadingCounts", "Reranker", "WholeReadings"]

N_FEATURES = 10
"""Number of features of a reading."""
MAX_COUNT = 4
"""This many spans of one label, or more, count as one case."""
N_WORDS = 4
"""Number of words read in and beside a span: first, last, before, after."""
SMOOTHING = 0.3
MAX_GAP = 6.0
"""Readings whose log probability alone makes them score this much below the first reading of their text are
not looked at, but scored as if their other features were those of the first. In five folds of addresses and
AnyStyle, 50.1 and 40.1 % of the texts are accepted unread; with all ten readings looked at, 50.2 and 40.1;
with 3 instead of 6, 46.6 and 36.1.
"""

Hashes = NDArray[np.uint64]
Places = NDArray[np.int64]


class WholeReadings(NamedTuple):
    """m readings of D texts; readings of the same text are adjacent."""

    spans: Segments  # of each reading; their labels are indices into the scheme's `labels`
    text: Places  # [m] number of each reading's text
    log_probability: Vector  # [m] under the CRF, nats

    def at(self, places: Places) -> "WholeReadings":
        """Return the readings with some indices, int64 [k]."""
        spans = select_segments(self.spans, places)
        return WholeReadings(spans, self.text[places], self.log_probability[places])

    @classmethod
    def joined(cls, parts: Sequence["WholeReadings"]) -> "WholeReadings":
        """Concatenate the readings of one or more parts."""
        spans, text, logs = zip(*parts)
        return cls(joined_segments(spans), np.concatenate(text), np.concatenate(logs))


@dataclass(frozen=True)
class ReadingCounts:
    """How often features of readings occur in annotated texts; each feature is identified by a hash.

    texts (int): number of texts counted.
    labels (int64 [L]): number of spans with each label.
    keys (uint64 [n]): hashes, ascending. numbers (int64 [n]): count of each.
    """

    texts: int
    labels: NDArray[np.int64]
    keys: Hashes
    numbers: NDArray[np.int64]

    @classmethod
    def of(
        cls, n_labels: int, batches: Iterable[tuple[WholeReadings, Hashes, Places]]
    ) -> "ReadingCounts":
        """Count annotated texts, batch by batch; the annotation is the only reading of its text.

        batches (Iterable[Tuple[WholeReadings, uint64 [N], int64 [D, 2]]]): with words and places as in
            `features`.
        """
        keys, labels, texts = [np.zeros(0, dtype=np.uint64)], np.zeros(n_labels, np.int64), 0
        for readings, words, places in batches:
            keys += _FeatureKeys.of(n_labels, readings, words, places).keys()
            labels += np.bincount(readings.spans.label, minlength=n_labels)
            texts += len(readings.text)
        distinct, numbers = np.unique(np.concatenate(keys), return_counts=True)
        return cls(texts, labels, distinct, numbers.astype(np.int64))

    def features(self, readings: WholeReadings, words: Hashes, places: Places) -> Matrix:
        """Compute ψ of each reading, float64 [m, N_FEATURES].

        words (uint64 [N]): words of the tokens of all texts.
        places (int64 [D, 2]): first token of each text, and one past its last.
        """
        keys = _FeatureKeys.of(len(self.labels), readings, words, places)
        together, which = self._number(keys.together), self._number(keys.which)
        # each distinct span is looked up once: readings share most of their spans
        spans = (keys.around[0] * (len(words) + 1) + keys.around[1]) * len(self.labels) + keys.label
        _, distinct, place = np.unique(spans, return_index=True, return_inverse=True)
        label, span_words = keys.label[distinct], keys.words[:, distinct]
        chance = ((self.labels + 1) / (self.labels.sum() + len(self.labels)))[label]
        pairs = self._number(hashes(span_words, label.astype(np.uint64)))
        share = (pairs + SMOOTHING * chance) / (self._number(span_words) + SMOOTHING)
        gains = np.log(share / chance)[:, place]
        columns = [
            readings.log_probability,
            np.log(together + 0.5),
            (together == 0).astype(np.float64),
            np.log(which + 0.5),
            self._amounts[keys.amounts, np.arange(len(self.labels))].sum(axis=1),
            *(np.bincount(keys.owner, gain, len(together)) for gain in gains),
            np.diff(readings.spans.offsets).astype(np.float64),
        ]
        return np.stack(columns, axis=1)

    @cached_property
    def _amounts(self) -> Matrix:
        """log ((c + 1/10) / (texts + 1/2)) of each number of spans per label, float64 [MAX_COUNT + 1, L]."""
        keys = _amounts(np.arange(MAX_COUNT + 1, dtype=np.uint64)[:, None], len(self.labels))
        return np.asarray(np.log((self._number(keys) + 0.1) / (self.texts + 0.5)))

    def _number(self, keys: Hashes) -> Matrix:
        """Return the count of each key; 0 for unknown keys."""
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[place] == keys, self.numbers[place], 0).astype(np.float64)


class _FeatureKeys(NamedTuple):
    """Feature keys of m readings with S spans of texts with N tokens; L labels."""

    together: Hashes  # [m] multiset of the labels of all spans
    which: Hashes  # [m] set of the labels that occur
    amounts: Places  # [m, L] number of spans per label, up to MAX_COUNT
    around: Places  # [N_WORDS, S] tokens: first, last, before, after; N at an edge
    words: Hashes  # [N_WORDS, S] their words
    label: NDArray[np.int32]  # [S]
    owner: Places  # [S] reading of each span

    @classmethod
    def of(
        cls, n_labels: int, readings: WholeReadings, words: Hashes, places: Places
    ) -> "_FeatureKeys":
        """Compute the feature keys, for the arguments of `ReadingCounts.features`."""
        _, start, end, label = readings.spans
        sizes = np.diff(readings.spans.offsets)
        owner = np.repeat(np.arange(len(sizes)), sizes)
        # first and last token of each span, and those beside it in its text
        low, high = places[readings.text[owner]].T
        first, behind = low + start, low + end
        before = np.where(first > low, first - 1, len(words))
        around = np.stack([first, behind - 1, before, np.where(behind < high, behind, len(words))])
        kinds = np.arange(N_WORDS, 2 * N_WORDS, dtype=np.uint64)[:, None]
        counts = np.bincount(owner * n_labels + label, minlength=len(sizes) * n_labels)
        counts = counts.reshape(len(sizes), n_labels)
        marks = hashes(np.arange(n_labels, dtype=np.uint64), np.uint64(1))
        return cls(
            hashes(counts.astype(np.uint64) @ marks, np.uint64(1)),
            hashes((counts > 0).astype(np.uint64) @ marks, np.uint64(2)),
            np.minimum(counts, MAX_COUNT),
            around,
            hashes(np.append(words, EDGE)[around], kinds),
            label,
            owner,
        )

    def keys(self) -> list[Hashes]:
        """Return all keys that are counted."""
        amounts = _amounts(self.amounts.astype(np.uint64), self.amounts.shape[1])
        pairs = hashes(self.words, self.label.astype(np.uint64))
        return [self.together, self.which, *(keys.ravel() for keys in (amounts, pairs, self.words))]


def _amounts(amounts: Hashes, n_labels: int) -> Hashes:
    """Return keys of numbers of spans per label, uint64 [n, L]; amounts: uint64 [n, L] or [n, 1]."""
    kinds = np.arange(n_labels, dtype=np.uint64)
    return hashes(amounts * np.uint64(n_labels) + kinds, np.uint64(3))


class Reranker(NamedTuple):
    """Weights and counts by which readings are reranked."""

    counts: ReadingCounts
    weights: Vector  # [N_FEATURES]
    attribute: str  # token attribute that stands for a word
    texts: int  # number of texts that the weights were learnt from

    def tempered(self, temperature: float) -> "Reranker":
        """Return a reranker with the same preferences for a model with scores divided by a temperature."""
        scale = np.where(np.arange(N_FEATURES) == 0, temperature, 1.0)
        return self._replace(weights=self.weights * scale)

    def log_chances(self, readings: WholeReadings, words: Hashes, places: Places) -> Vector:
        """Return the log probability of each reading, normalised like those of the CRF, float64 [m]; words
        and places as in `features`.
        """
        logs, first = readings.log_probability, np.flatnonzero(np.diff(readings.text, prepend=-1))
        if not len(logs):
            return logs
        sizes = np.diff(first, append=len(logs))
        scores = self.weights[0] * (logs - np.repeat(logs[first], sizes))
        is_near = (scores >= -MAX_GAP).astype(np.int64)
        near = np.flatnonzero(is_near * np.repeat(np.add.reduceat(is_near, first) > 1, sizes))
        if len(near):
            among = readings.at(near)
            rescored = self.counts.features(among, words, places) @ self.weights
            begins = np.diff(among.text, prepend=-1) > 0
            scores[near] = rescored - rescored[begins][np.cumsum(begins) - 1]
        old, new = (np.repeat(np.logaddexp.reduceat(x, first), sizes) for x in (logs, scores))
        return np.asarray(scores - new + old)
