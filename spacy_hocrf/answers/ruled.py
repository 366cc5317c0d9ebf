"""Answers under rules about all spans of a text, for any number of rules."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.annotation.whitespace import without_whitespace
from spacy_hocrf.answers.decoders import Answer, Candidates
from spacy_hocrf.answers.gathering import Result, of_sequences
from spacy_hocrf.arrays import offsets_of
from spacy_hocrf.engine.pool import BufferPool
from spacy_hocrf.engine.ruled import Ruled, RuledSpans, best_ruled, ruled_spans
from spacy_hocrf.types import Segments

__all__ = ["RuledTexts"]


class RuledTexts(NamedTuple):
    """D texts and their rules.

    rows (int32 [m, 5]): which labels of the engine make up a span of each label; see `LabelScheme.rules`.
    blank (Optional[bool [N]]): whitespace that spans are shown without, if there is any.
    """

    ruled: Ruled
    rows: NDArray[np.int32]
    blank: NDArray[np.bool_] | None
    pool: BufferPool

    def probable(
        self, texts: NDArray[np.int64], at_least: float
    ) -> tuple[NDArray[np.int64], Candidates, NDArray[np.int64]]:
        """Return the spans of some texts, as they are shown, that have at least this probability under the
        rules.

        texts (int64 [n]): their numbers, ascending.
        RETURNS (tuple[int64 [m], Candidates, int64 [k]]): the texts that could be read, their spans, and the
            texts that were read with a larger tolerance or not at all.
        """
        with self.pool.lend(self.ruled.automaton) as buffers:
            least = at_least if self.blank is None else 0.0
            result = ruled_spans(self.ruled, self.rows, texts, least, buffers=buffers)
        spans, scores, log_z = result.spans, result.probability, result.log_partition
        if self.blank is not None:
            spans, scores = self._shown(result, texts, at_least)
        inexact = texts[(result.tolerance != self.ruled.tolerances[0]) | np.isneginf(log_z)]
        return *_read(texts, Candidates(spans, scores, log_z > -np.inf, log_z)), inexact

    def best(self, texts: NDArray[np.int64], cost: float) -> tuple[NDArray[np.int64], Answer]:
        """Return the reading with the largest gain of some texts, among those that keep the hard rules.

        texts (int64 [n]): their numbers, ascending; without whitespace.
        cost (float): cost of a span; its gain is its probability minus this.
        RETURNS (tuple[int64 [m], Answer]): the texts that could be read, and their spans.
        """
        with self.pool.lend(self.ruled.automaton) as buffers:
            best = best_ruled(self.ruled, self.rows, texts, cost, buffers=buffers)
        log_z = best.log_partition
        return _read(texts, Answer(best.spans, best.probability, log_z > -np.inf, log_z))

    def _shown(
        self, result: RuledSpans, texts: NDArray[np.int64], at_least: float
    ) -> tuple[Segments, NDArray[np.float64]]:
        """Trim whitespace from the spans and add up the probabilities of spans that are then equal."""
        assert self.blank is not None
        spans, first = result.spans, self.ruled.potentials.offsets[texts]
        text = np.repeat(np.arange(len(texts)), np.diff(spans.offsets))
        start, end = without_whitespace(
            self.blank, first[text] + spans.start, first[text] + spans.end
        )
        # equal rows are spans that are shown as one
        visible = start < end
        rows = np.stack([text, start - first[text], end - first[text], spans.label])[:, visible]
        shown, place = np.unique(rows, axis=1, return_inverse=True)
        scores = np.bincount(place.reshape(-1), result.probability[visible], shown.shape[1])
        likely = scores >= at_least
        text, *columns = shown[:, likely]
        offsets = offsets_of(np.bincount(text, minlength=len(texts)))
        merged = Segments(offsets, *(column.astype(np.int32) for column in columns))
        return merged, np.minimum(scores[likely], 1.0)


def _read(texts: NDArray[np.int64], result: Result) -> tuple[NDArray[np.int64], Result]:
    """Keep only texts with a possible reading, and their results."""
    if result.possible.all():
        return texts, result
    readable = np.flatnonzero(result.possible)
    return texts[readable], of_sequences(result, readable)
