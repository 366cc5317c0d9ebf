"""Log potentials, checked against an automaton, with quantities that the kernels derive from them once per
batch.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.kernels.checks import (
    all_between,
    all_finite,
    all_of_kinds,
    first_uncarried,
    rises_from_0,
)
from spacy_hocrf.engine.kernels.trees import add_suffixes, arc_constants
from spacy_hocrf.errors import Errors
from spacy_hocrf.types import END, INNER, START, TOKEN, Potentials

__all__ = ["Constants", "Problem", "constants_of"]

PART_NAMES = {END: "end", TOKEN: "tokens", INNER: "inner tokens"}
SCALABLE = 300.0  # a larger constant alone could exceed the range of a double
ARRAYS = {  # types and dimensions
    name: (np.dtype(kind), n)
    for kind, n, names in (
        ("int64", 1, ("offsets", "row_offsets", "span_start", "span_end")),
        ("int32", 1, ("row_pattern", "length_pattern", "span_pattern")),
        ("uint8", 1, ("row_part",)),
        ("uint8", 2, ("allowed",)),
        ("float64", 1, ("const", "row_score", "span_score")),
        ("float64", 2, ("start", "end", "token", "inner", "length_score")),
    )
    for name in names
}
OPTIONAL = ("start", "end", "inner")


NO_PLACES, NO_NUMBERS = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32)


class Constants(NamedTuple):
    """Quantities derived from the scores that all tokens share."""

    arc: NDArray[np.float64]  # [C] Σ const over the patterns that end the arc
    body_length: NDArray[np.float64]  # [K, M] length scores of a body and its suffixes
    scalable: bool  # can all of `arc` be represented in scaled space?


def constants_of(potentials: Potentials, automaton: Automaton) -> Constants:
    """Compute the constants of potentials that fit the automaton. RAISES (ValueError): H006 for a score that
    is not finite.
    """
    for name in ("const", "length_score"):
        _check_finite(potentials, name)
    arc = _arc_const(potentials, automaton)
    scalable = bool(np.abs(arc).max(initial=0.0) < SCALABLE)
    return Constants(arc, _body_length(potentials, automaton), scalable)


@dataclass
class Problem:
    """The checked input of a kernel.

    potentials (Potentials): log potentials of D sequences.
    automaton (Automaton): the arcs of the same Z patterns, P states.
    initial (float64 [D, P]): log alpha before the first token; None for all mass in the empty
        history.
    final (float64 [D, P]): log beta after the last token; None for that of the automaton, or 0.
    constants (Optional[Callable]): returns the constants of these potentials, perhaps cached; called once
        they are checked.
    RAISES (ValueError): H004, H005, H006, H009 or H138 for potentials that do not fit.
    """

    potentials: Potentials
    automaton: Automaton
    initial: NDArray[np.float64] | None = None
    final: NDArray[np.float64] | None = None
    constants: Callable[[Potentials], Constants] | None = None

    def __post_init__(self) -> None:
        potentials, automaton = self.potentials, self.automaton
        if not all_of_kinds(potentials, ARRAYS, OPTIONAL):
            _refuse_types(potentials)
        self._check_extents(potentials)
        self._check_carried(potentials)
        self.offsets, self.first = potentials.offsets, potentials.offsets[:-1]
        # [D] tokens of each sequence
        self.lengths: NDArray[np.int64] = potentials.offsets[1:] - potentials.offsets[:-1]
        extents = (len(self.lengths), len(automaton.states))
        if self.final is None and automaton.final is not None:
            self.final = np.tile(automaton.final, (extents[0], 1))
        for name, scores in (("initial", self.initial), ("final", self.final)):
            if scores is not None and scores.shape != extents:
                text = Errors.H004.format(name=name, found=scores.shape, expected=extents)
                raise ValueError(text)
        # [D, 2] for each sequence, the range of tokens whose segments are wanted
        self.own = np.zeros((len(self.lengths), 2), dtype=np.int64)
        self.own[:, 1] = self.lengths
        # [D] spans of each sequence; [S] the spans sorted by end; [R] see `_row_target`; [N] does some
        # row of the token belong to an arc; [N] its first row that belongs to a body. Most models
        # have neither spans nor rows.
        self.span_offsets = np.zeros(len(potentials.offsets), dtype=np.int64)
        self.span_by_end, self.row_target, self.body_rows = NO_PLACES, NO_NUMBERS, NO_PLACES
        self.has_arc_rows = np.zeros(len(potentials.token), dtype=np.uint8)
        self.has_end_rows = self.has_inner_rows = False
        if len(potentials.span_start):
            self._sort_spans(potentials)
        if len(potentials.row_part):
            self._aim_rows(potentials)
        # result of forward_backward.plan, by build
        self.plans: dict[str, list[tuple[str, NDArray[np.int64]]]] = {}
        self.arc_const, self.body_length, self.scalable = (
            self.constants(potentials) if self.constants else constants_of(potentials, automaton)
        )
        self._check_scores()

    def _sort_spans(self, potentials: Potentials) -> None:
        span_offsets = np.searchsorted(potentials.span_start, potentials.offsets)
        self.span_offsets = span_offsets.astype(np.int64)
        self.span_by_end = np.argsort(potentials.span_end, kind="stable").astype(np.int64)

    def _aim_rows(self, potentials: Potentials) -> None:
        # [N + 1] rows of arcs before each token: a token has some if the number grows
        self.row_target = _row_target(potentials, self.automaton)
        rows_before = np.concatenate([[0], np.cumsum(self.row_target >= 0)])[potentials.row_offsets]
        self.has_arc_rows = (np.diff(rows_before) > 0).astype(np.uint8)
        # [N] first row of a body at or after the token's first row, clipped to the end of its rows
        bodies = np.append(np.flatnonzero(self.row_target < 0), len(self.row_target))
        first = bodies[np.searchsorted(bodies, potentials.row_offsets[:-1])]
        self.body_rows = np.minimum(first, potentials.row_offsets[1:]).astype(np.int64)
        self.has_end_rows, self.has_inner_rows = (
            bool((potentials.row_part == part).any()) for part in (END, INNER)
        )

    def _check_extents(self, potentials: Potentials) -> None:
        _check_offsets("offsets", potentials.offsets)
        n_tokens = int(potentials.offsets[-1])
        n_labels, n_patterns = len(self.automaton.limits), len(self.automaton.patterns)
        if not _fit(potentials, n_tokens, n_labels, n_patterns):
            _check_shapes(potentials, n_tokens, n_labels, n_patterns)
        _check_offsets("row_offsets", potentials.row_offsets)
        rows = int(potentials.row_offsets[n_tokens])
        if rows != len(potentials.row_score):
            found = potentials.row_score.shape
            raise ValueError(Errors.H004.format(name="row_score", found=found, expected=(rows,)))
        _check_bounds("length_pattern", potentials.length_pattern, 0, n_patterns - 1)
        if rows:
            _check_bounds("row_part", potentials.row_part.astype(np.int32), START, INNER)
            _check_bounds("row_pattern", potentials.row_pattern, n_labels, n_patterns - 1)
        if len(potentials.span_score):
            _check_bounds("span_pattern", potentials.span_pattern, 0, n_patterns - 1)
            # a span begins and ends in one sequence, and spans are sorted by start
            starts, ends = potentials.span_start, potentials.span_end
            first = np.searchsorted(potentials.offsets, starts, side="right")
            inside = first == np.searchsorted(potentials.offsets, ends, side="left")
            inside &= (starts >= 0) & (starts < ends) & (ends <= n_tokens)
            if not inside.all() or (np.diff(starts) < 0).any():
                raise ValueError(Errors.H009)

    def _check_carried(self, potentials: Potentials) -> None:
        """Check that patterns with observations after the start of a segment have a body."""
        body, folded = self.automaton.pattern_body, self.automaton.pattern_folded
        for patterns, part in (
            (potentials.length_pattern, "length"),
            (potentials.span_pattern, "whole"),
        ):
            missing = first_uncarried(patterns, body, folded) if len(patterns) else -1
            if missing >= 0:
                pattern = self.automaton.patterns[patterns[missing]]
                raise ValueError(Errors.H005.format(pattern=pattern, part=part))
        parts, patterns = potentials.row_part, potentials.row_pattern
        missing = first_uncarried(patterns, body, folded, parts, START) if len(parts) else -1
        if missing >= 0:
            pattern, part = self.automaton.patterns[patterns[missing]], PART_NAMES[parts[missing]]
            raise ValueError(Errors.H005.format(pattern=pattern, part=part))

    def _check_scores(self) -> None:
        """Check scores. RAISES (ValueError): H006 for one that is not finite, apart from -inf for a segment
        that must not be, or must not begin, there.
        """
        rows, spans = self.potentials.row_score, self.potentials.span_score
        if len(rows) and not all_finite(rows):
            zeros = np.isneginf(rows) & (self.row_target >= 0)
            _check_finite(self.potentials, "row_score", zeros)
        if len(spans) and not all_finite(spans):
            _check_finite(self.potentials, "span_score", np.isneginf(spans))

    def check_tokens(self) -> None:
        """Find the dense score that is not finite, which the kernels have noticed. RAISES (ValueError): H006
        for it.
        """
        for name in ("start", "end", "token", "inner"):
            _check_finite(self.potentials, name)


def _fit(potentials: Potentials, n_tokens: int, n_labels: int, n_patterns: int) -> bool:
    """Do the arrays have the shapes that `_check_shapes` expects? Called first, since it is fast."""
    dense, rows, spans = (n_tokens, n_labels), len(potentials.row_score), len(potentials.span_score)
    start, end, inner = potentials.start, potentials.end, potentials.inner
    return bool(
        len(potentials.const) == n_patterns
        and potentials.token.shape == potentials.allowed.shape == dense
        and (start is None or start.shape == dense)
        and (end is None or end.shape == dense)
        and (inner is None or inner.shape == dense)
        and len(potentials.row_offsets) == n_tokens + 1
        and len(potentials.row_part) == len(potentials.row_pattern) == rows
        and len(potentials.length_pattern) == len(potentials.length_score)
        and potentials.length_score.shape[1] > 0
        and len(potentials.span_start) == len(potentials.span_end) == spans
        and len(potentials.span_pattern) == spans
    )


def _check_shapes(potentials: Potentials, n_tokens: int, n_labels: int, n_patterns: int) -> None:
    """Check shapes. RAISES (ValueError): H004 for an array of another shape."""
    expected = {
        "const": (n_patterns,),
        **dict.fromkeys(("start", "end", "token", "inner", "allowed"), (n_tokens, n_labels)),
        "row_offsets": (n_tokens + 1,),
        **dict.fromkeys(("row_part", "row_pattern"), potentials.row_score.shape),
        "length_score": (len(potentials.length_pattern), max(1, potentials.length_score.shape[1])),
        **dict.fromkeys(("span_start", "span_end", "span_pattern"), potentials.span_score.shape),
    }
    for name, extents in expected.items():
        array = getattr(potentials, name)
        if array is not None and array.shape != extents:
            raise ValueError(Errors.H004.format(name=name, found=array.shape, expected=extents))


def _check_finite(
    potentials: Potentials, name: str, zeros: NDArray[np.bool_] | None = None
) -> None:
    """RAISES (ValueError): H006 for a score that is not finite.

    zeros (Optional[bool]): is each score a structural zero?
    """
    values = getattr(potentials, name)
    if values is not None and not all_finite(values.reshape(-1)):
        wrong = ~np.isfinite(values)
        if zeros is not None:
            wrong &= ~zeros
        if not wrong.any():
            return
        where = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise ValueError(Errors.H006.format(name=name, found=values[where], where=where))


def _check_bounds(name: str, values: NDArray[np.int32], least: int, most: int) -> None:
    """Check bounds. RAISES (ValueError): H138 for a number out of bounds."""
    if not all_between(values, least, most):
        found = f"numbers from {values.min()} to {values.max()}"
        raise ValueError(Errors.H138.format(name=name, found=found, expected=f"{least} to {most}"))


def _refuse_types(potentials: Potentials) -> None:
    """RAISES (ValueError): H138 for an array that the kernels cannot read."""
    for name, (dtype, dimensions) in ARRAYS.items():
        array = getattr(potentials, name)
        if array is None and name in OPTIONAL:
            continue
        expected = f"a contiguous array of {dtype} with {dimensions} dimensions"
        if not isinstance(array, np.ndarray):
            found = type(array).__name__
        elif not array.flags.c_contiguous:
            found = "not contiguous"
        elif array.dtype != dtype or array.ndim != dimensions:
            found = f"an array of {array.dtype} with {array.ndim} dimensions"
        else:
            continue  # an equal dtype, but another object
        raise ValueError(Errors.H138.format(name=name, found=found, expected=expected))


def _check_offsets(name: str, offsets: NDArray[np.int64]) -> None:
    """Check offsets. RAISES (ValueError): H138 unless they begin with 0 and never decrease."""
    if not rises_from_0(offsets):
        found = f"{offsets[:3].tolist()}, …"
        raise ValueError(Errors.H138.format(name=name, found=found, expected="ascending from 0"))


def _row_target(potentials: Potentials, automaton: Automaton) -> NDArray[np.int32]:
    """[R] the arc that a row belongs to, or else ~(4 · body + part), where the part START means that the row
    never fires.
    """
    part = potentials.row_part.astype(np.int32)
    folded = automaton.pattern_folded[potentials.row_pattern] != 0
    of_body = ~(4 * automaton.pattern_body[potentials.row_pattern] + part)
    target = np.where(folded & (part == INNER), ~START, of_body)
    return np.where(
        (part == START) | (folded & (part != INNER)),
        automaton.pattern_arc[potentials.row_pattern],
        target,
    )


def _arc_const(potentials: Potentials, automaton: Automaton) -> NDArray[np.float64]:
    """[C] score of every segment that takes the arc; it includes the length score if segments have one
    token.
    """
    score: NDArray[np.float64] = arc_constants(
        potentials.const,
        potentials.length_pattern,
        potentials.length_score,
        automaton.pattern_body,
        automaton.arc_pattern,
    )
    add_suffixes(score[:, None], automaton.arc_suffix)
    return score


def _body_length(potentials: Potentials, automaton: Automaton) -> NDArray[np.float64]:
    """[K, M] length scores of the patterns that have a body, including those of their suffixes."""
    scores = np.zeros((len(automaton.body_label), potentials.length_score.shape[1]))
    bodies = automaton.pattern_body[potentials.length_pattern]
    carried = bodies >= 0
    np.add.at(scores, bodies[carried], potentials.length_score[carried])
    add_suffixes(scores, automaton.body_suffix)
    return scores
