"""Observations compiled for scoring: which weight belongs to which entry of the log potentials,
determined once.

With w the weights, the potentials are linear, Potentials = A·w, and the gradient is the transpose,
A'·expected counts. The empirical counts of a gold segmentation are A' applied to the 0/1 counts of
that segmentation.

Where every segment has one token, its first, its last and every token are the same: observations at any
of these parts are scores of the token, and there are no inner tokens.
"""

from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import ranges
from spacy_hocrf.dispatch import active, kernels
from spacy_hocrf.features.gold import GoldSegments
from spacy_hocrf.model.dense import Dense
from spacy_hocrf.model.placement import Cells, CompiledIndex, Placed
from spacy_hocrf.model.scores import kinds_among
from spacy_hocrf.model.words import WordScore
from spacy_hocrf.types import (
    END,
    INNER,
    START,
    TOKEN,
    Expectations,
    Observations,
    Potentials,
    Rows,
    Scratch,
    Spans,
)

__all__ = ["Cells", "CompiledBatch", "ScoreKernels"]

NOTHING, NO_NUMBERS = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32)
ON_TOKENS = (START, END, TOKEN, INNER)
Parts = tuple[int | None, ...]
"""The part that each place in the cells of a kind scores, None for none."""

AnyRows = TypeVar("AnyRows", Rows, Spans)


class CompiledBatch:
    """A batch of sequences, compiled for repeated scoring.

    compiled (CompiledIndex): the features.
    observations (Observations): N tokens.
    allowed (uint8 [N, Y]): bits FIRST, CONTINUE and LAST of each token and label.
    one_token (bool [Y]): labels whose segments have one token; by default none.
    dense (Iterable[Union[Dense, WordScore]]): dense scores of the tokens.
    once (bool): it will probably be scored only once, so `cells` are made only on demand. The scores are the
        same bit by bit.
    """

    def __init__(
        self,
        compiled: CompiledIndex,
        observations: Observations,
        allowed: NDArray[np.uint8],
        one_token: NDArray[np.bool_] | None = None,
        dense: Iterable["Dense | WordScore"] = (),
        *,
        once: bool = False,
    ) -> None:
        self.compiled = compiled
        self.offsets = observations.offsets
        self.allowed = allowed
        folded = np.zeros(compiled.n_labels, dtype=bool) if one_token is None else one_token
        tokens, all_folded = _plain(observations.tokens), all(folded.tolist())
        self.dense = list(dense)
        if all_folded:
            self.dense = [score._replace(part=TOKEN) for score in self.dense if score.part != INNER]
        scored: Sequence[Parts] = compiled.folded_kinds if all_folded else compiled.kinds
        # the kinds that occur, and what their cells are scores of
        self._kinds: list[tuple[int, Parts]] = [
            (kind, scored[kind])
            for kind in kinds_among(tokens.ids, compiled.entries, len(compiled.kinds))
            if {*scored[kind]} != {None}
        ]
        self._unsorted = tokens if once else None
        self._cells = None if once else self._sorted(tokens)
        # the parts with scores
        self._parts = {part for _, parts in self._kinds for part in parts if part is not None}
        self._parts.update(score.part for score in self.dense)
        rows = compiled.rows_of(tokens, folded)
        self.row_offsets, self.row_part, self.row_pattern, self.row_place, self.row_value = rows
        self._compile_spans(_plain(observations.spans))

    @property
    def cells(self) -> list[tuple[Parts, Cells]]:
        """The observations on single labels, by kind."""
        if self._cells is None:
            assert self._unsorted is not None
            self._cells = self._sorted(self._unsorted)
        return self._cells

    def _sorted(self, tokens: Rows) -> list[tuple[Parts, Cells]]:
        return [(parts, self.compiled.cells_of(tokens, kind)) for kind, parts in self._kinds]

    def _compile_spans(self, spans: Spans) -> None:
        self.span_value: NDArray[np.float32] | None = None
        if not len(spans.ids):
            self.span_start = self.span_end = NOTHING
            self.span_pattern = self.span_place = NO_NUMBERS
            return
        # each observed span, repeated for each feature of its observation
        compiled = self.compiled
        first, end = compiled.feature_offsets[spans.ids], compiled.feature_offsets[spans.ids + 1]
        position = np.repeat(np.arange(len(spans.ids)), end - first)
        feature = ranges(first, end - first)
        self.span_start, self.span_end = spans.start[position], spans.end[position]
        self.span_pattern = compiled.feature_pattern[feature]
        self.span_place = compiled.place[feature]
        self.span_value = None if spans.values is None else spans.values[position]

    def only(self, sequence: int) -> "CompiledBatch":
        """Return one sequence as a batch."""
        # tokens, rows and spans of the sequence, counted from its first one
        first, last = self.offsets[sequence : sequence + 2].tolist()
        tokens, rows = slice(first, last), slice(*self.row_offsets[[first, last]].tolist())
        spans = slice(*np.searchsorted(self.span_start, [first, last]).tolist())
        batch = copy(self)
        batch.offsets = np.array([0, last - first], dtype=self.offsets.dtype)
        batch.allowed = self.allowed[tokens]
        batch._cells = [(parts, _cells_of(cells, first, last)) for parts, cells in self.cells]
        batch.row_offsets = self.row_offsets[first : last + 1] - self.row_offsets[first]
        batch.row_part, batch.row_pattern = self.row_part[rows], self.row_pattern[rows]
        batch.row_place = self.row_place[rows]
        batch.row_value = None if self.row_value is None else self.row_value[rows]
        batch.dense = [score.only(tokens) for score in self.dense]
        batch.span_start = self.span_start[spans] - first
        batch.span_end = self.span_end[spans] - first
        batch.span_pattern, batch.span_place = self.span_pattern[spans], self.span_place[spans]
        batch.span_value = None if self.span_value is None else self.span_value[spans]
        return batch

    def potentials(
        self, weights: Placed | NDArray[np.float64], scratch: Scratch | None = None
    ) -> Potentials:
        """Return the log potentials under placed weights, or under float64 weights [F].

        scratch (Optional[Scratch]): buffers for the dense scores; by default they are new arrays.
        """
        compiled = self.compiled
        placed = weights if isinstance(weights, Placed) else compiled.place_weights(weights)
        start, end, token, inner = self._scores(placed, scratch)
        rows = None if scratch is None else scratch.array("row scores", self.row_place.shape)
        return Potentials(
            offsets=self.offsets,
            const=placed.const,
            start=start,
            end=end,
            token=np.zeros(self.allowed.shape) if token is None else token,
            inner=inner,
            row_offsets=self.row_offsets,
            row_part=self.row_part,
            row_pattern=self.row_pattern,
            row_score=_taken(placed.values, self.row_place, self.row_value, rows),
            length_pattern=compiled.length_pattern,
            length_score=placed.length,
            span_start=self.span_start,
            span_end=self.span_end,
            span_pattern=self.span_pattern,
            span_score=_taken(placed.values, self.span_place, self.span_value),
            allowed=self.allowed,
        )

    def add_counts_into(self, expected: Expectations, scale: float, counts: Placed) -> None:
        """Add scale · A'·expected to `counts`."""
        parts = (expected.start, expected.end, expected.token, expected.inner)
        for places, cells in self.cells:
            cell_parts = [None if place is None else parts[place] for place in places]
            _kernels().add_cell_counts_into(counts.values, cells, cell_parts, scale)
        for score in self.dense:
            part = parts[score.part]
            assert part is not None
            score.add_counts_into(counts.dense, counts.words, part, scale)
        for place, fired, value in (
            (self.row_place, expected.row, self.row_value),
            (self.span_place, expected.span, self.span_value),
        ):
            amounts = scale * fired if value is None else scale * fired * value
            np.add.at(counts.values, place, amounts)
        counts.const[:] += scale * expected.const
        counts.length[:] += scale * expected.length

    def gold_counts(
        self, gold: GoldSegments, weights: NDArray[np.float64] | None = None
    ) -> Expectations:
        """Count how often each entry fires in a segmentation of all sequences.

        gold (GoldSegments): segments that cover every token of the batch.
        weights (Optional[float64 [D]]): weight of each sequence; None for 1.
        """
        # [t, y] of START, END, TOKEN and INNER: 1 if a segment of label y begins, ends, is, or continues at t
        n_tokens, n_labels = self.allowed.shape
        segment = gold.of_token(n_tokens)
        label = gold.pattern[0]
        tokens = np.arange(n_tokens)
        later = np.setdiff1d(tokens, gold.start, assume_unique=True)
        weight = np.ones(n_tokens) if weights is None else np.repeat(weights, np.diff(self.offsets))
        places = (
            (gold.start, label),
            (gold.end - 1, label),
            (tokens, label[segment]),
            (later, label[segment[later]]),
        )
        parts = [
            _placed((n_tokens, n_labels), at, weight) if part in self._parts else None
            for part, at in enumerate(places)
        ]
        # an observed span fires if it is a segment
        span_segment = segment[self.span_start]
        span_fires = (gold.start[span_segment] == self.span_start) & (
            gold.end[span_segment] == self.span_end
        )
        return Expectations(
            log_partition=np.zeros(len(self.offsets) - 1),
            const=_summed(gold.pattern, weight[gold.start], self.compiled.n_patterns),
            start=parts[START],
            end=parts[END],
            token=parts[TOKEN],
            inner=parts[INNER],
            row=self._gold_rows(gold, segment) * np.repeat(weight, np.diff(self.row_offsets)),
            length=self._gold_lengths(gold, weight[gold.start]),
            span=(span_fires & self._ends_in(gold, span_segment, self.span_pattern))
            * weight[self.span_start],
        )

    def _scores(self, placed: Placed, scratch: Scratch | None) -> list[NDArray[np.float64] | None]:
        """Scores of each part, float64 [N, Y], None if all are 0."""
        extents = self.allowed.shape
        scores: list[NDArray[np.float64] | None] = [None] * len(ON_TOKENS)
        overwritten = self._kinds[0][1] if self._kinds else ()  # not added to
        for number in self._parts:
            if scratch is not None:
                make = scratch.array if number in overwritten else scratch.zeros
                scores[number] = make(f"scores {number}", extents)
            else:
                scores[number] = np.empty(extents) if number in overwritten else np.zeros(extents)
        for number, (kind, places) in enumerate(self._kinds):
            cell_scores = [None if place is None else scores[place] for place in places]
            if self._cells is None:
                assert self._unsorted is not None
                observed = self._unsorted, kind, self.compiled, placed.values
                _kernels().add_observed_scores_into(cell_scores, *observed, number == 0)
            else:
                cells = self._cells[number][1]
                _kernels().add_cell_scores_into(cell_scores, cells, placed.values, number == 0)
        for score in self.dense:
            part = scores[score.part]
            assert part is not None
            score.add_into(part, placed.dense, placed.words)
        return scores

    def _gold_rows(self, gold: GoldSegments, segment: NDArray[np.int64]) -> NDArray[np.float64]:
        """Which rows fire, float64 [R]: first select the few with the pattern of their segment, then check
        their part.
        """
        # rows whose pattern ends the history of the segment at their token
        token = np.repeat(np.arange(len(segment)), np.diff(self.row_offsets))
        row = np.flatnonzero(self._ends_in(gold, segment[token], self.row_pattern))
        token, part = token[row], self.row_part[row]
        # of these, rows whose part is where the token is in its segment
        at_start, at_end = (
            gold.start[segment[token]] == token,
            gold.end[segment[token]] - 1 == token,
        )
        fires = np.zeros(len(self.row_part))
        # START, END, TOKEN, INNER
        fires[row] = np.choose(part, [at_start, at_end, True, ~at_start])
        return fires

    def _gold_lengths(self, gold: GoldSegments, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """How often each pattern with length features ends with a segment of each length, float64
        [G, M].

        weight (float64 [n]): weight of each segment.
        """
        # row of each pattern with length scores, -1 for others; column of each segment's length
        shape = len(self.compiled.length_pattern), self.compiled.length_bins.shape[1]
        row = np.full(self.compiled.n_patterns + 1, -1)  # the last one is for -1, no pattern
        row[self.compiled.length_pattern] = np.arange(shape[0])
        column = np.minimum(gold.end - gold.start, shape[1]) - 1
        # [level, segment] → place in the table, -1 for a pattern that has no row
        places = np.where(row[gold.pattern] >= 0, row[gold.pattern] * shape[1] + column, -1)
        return _summed(places, weight, shape[0] * shape[1]).reshape(shape)

    def _ends_in(
        self, gold: GoldSegments, segment: NDArray[np.int64], pattern: NDArray[np.int32]
    ) -> NDArray[np.bool_]:
        """Does the history of each segment, including itself, end with the pattern?"""
        level = np.minimum(self.compiled.pattern_level[pattern], len(gold.pattern) - 1)
        return np.equal(gold.pattern[level, segment], pattern)


class ScoreKernels(Protocol):
    """Functions of the compiled kernels that sum over observations."""

    def add_cell_scores_into(
        self,
        parts: Sequence[NDArray[np.float64] | None],
        cells: Cells,
        placed: NDArray[np.float64],
        anew: bool,
    ) -> None:
        """Add scores under float64 [S] placed weights to float64 [N, Y] of each part, or to 0 if `anew`."""
        ...

    def add_observed_scores_into(
        self,
        parts: Sequence[NDArray[np.float64] | None],
        rows: Rows,
        kind: int,
        index: CompiledIndex,
        placed: NDArray[np.float64],
        anew: bool,
    ) -> None:
        """Add the scores of unsorted observations of one kind, with the same result bit by bit as
        `add_cell_scores_into`.
        """
        ...

    def add_cell_counts_into(
        self,
        placed: NDArray[np.float64],
        cells: Cells,
        parts: Sequence[NDArray[np.float64] | None],
        scale: float,
    ) -> None:
        """Add to float64 [S] placed counts `scale` times the counts from float64 [N, Y] expectations of each
        part.
        """
        ...


def _kernels() -> ScoreKernels:
    return cast(ScoreKernels, kernels(active(), "model"))


def _cells_of(cells: Cells, first: int, last: int) -> Cells:
    """Cells of the tokens first to last - 1."""
    rows, compact = (
        slice(*offsets[[first, last]].tolist())
        for offsets in (cells.row_offsets, cells.cell_offsets)
    )
    return Cells(
        cells.row_offsets[first : last + 1] - cells.row_offsets[first],
        cells.row[rows],
        None if cells.row_value is None else cells.row_value[rows],
        cells.cell_offsets[first : last + 1] - cells.cell_offsets[first],
        cells.cell[compact],
        cells.cell_label[compact],
        None if cells.cell_value is None else cells.cell_value[compact],
    )


def _taken(
    placed: NDArray[np.float64],
    place: NDArray[np.int32],
    value: NDArray[np.float32] | None,
    result: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Placed weights at some places, times values (1 if None), float64 [n].

    result (Optional[float64 [n]]): array for the result; by default a new one.
    """
    taken: NDArray[np.float64] = np.take(placed, place, out=result, mode="clip")
    return taken if value is None else np.multiply(taken, value, out=taken)


def _plain(rows: AnyRows) -> AnyRows:
    """Drop the values of rows if all are 1."""
    return rows if rows.values is None or (rows.values != 1).any() else rows._replace(values=None)


def _placed(
    shape: tuple[int, int],
    places: tuple[NDArray[np.intp], NDArray[np.intp]],
    weight: NDArray[np.float64],
) -> NDArray[np.float64]:
    """An array of zeros, except at places, which get their token's weight, float64 [N]."""
    array = np.zeros(shape)
    array[places] = weight[places[0]]
    return array


def _summed(
    places: NDArray[np.integer[Any]], weight: NDArray[np.float64], size: int
) -> NDArray[np.float64]:
    """Sum the weights, float64 [n], of the segments at each place, float64 [size].

    places (int [levels, n]): places of each segment, -1 for none.
    """
    placed = places >= 0
    of_place = np.broadcast_to(weight, places.shape)[placed]
    return np.bincount(places[placed], of_place, minlength=size).astype(np.float64, copy=False)
