"""The semantics of `Potentials` by enumeration: slow, obvious, and sharing nothing with the engine
but its types.

Every function but `batch` takes the potentials of ONE sequence (offsets [0, T]) and the model
around them:

    patterns (tuple[LabelPattern, ...]): [Z] the labels (0,), (1,), … first, then longer ones in any
        order.
    limits (tuple[int, ...]): [Y] longest segment of each label, 0 for none.
    forbidden (set[tuple[int, int]]): (previous label, label) of neighbouring segments that is
        impossible.

`problems()` and `batches()` are hypothesis strategies; tests that draw problems without it make
`so_many`.
"""

import math
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from spacy_hocrf.arrays import offsets_of
from spacy_hocrf.types import (
    CONTINUE,
    END,
    FIRST,
    INNER,
    LAST,
    START,
    TOKEN,
    Expectations,
    LabelPattern,
    Potentials,
    Segment,
    Segments,
)

ANYTHING = FIRST | CONTINUE | LAST
# of Expectations, log_partition aside
PARTS = ("const", "start", "end", "token", "inner", "row", "length", "span")


def so_many(problems):
    """How many random problems a test makes that draws them itself: a quarter where hypothesis draws few."""
    return problems if settings().max_examples >= 40 else problems // 4


class Problem(NamedTuple):
    potentials: Potentials
    patterns: tuple[LabelPattern, ...]
    limits: tuple[int, ...]
    forbidden: frozenset[tuple[int, int]]
    # bool [Z] patterns whose scores are not all known when a segment starts, and some others
    carried: np.ndarray


def segmentations(potentials, limits, forbidden, start=0, previous=None):
    """All allowed segmentations of the tokens from `start` on, after a segment of the label
    `previous`.
    """
    length, labels = potentials.allowed.shape
    if start == length:
        yield ()
        return
    for label in range(labels):
        if (previous, label) in forbidden:
            continue
        for end in range(start + 1, length + 1):
            segment = Segment(start, end, label)
            if is_allowed(potentials, limits, segment):
                for rest in segmentations(potentials, limits, forbidden, end, label):
                    yield (segment, *rest)


def decoded(scheme, segments):
    """[(start, end, label)] that the segments of one sequence stand for, outside ones left out."""
    _, start, end, label = scheme.spans(segments_of([segments]))
    return [(int(a), int(b), scheme.labels[y]) for a, b, y in zip(start, end, label)]


def is_allowed(potentials, limits, segment):
    start, end, label = segment
    allowed = potentials.allowed[:, label]
    return bool(
        allowed[start] & FIRST
        and all(allowed[t] & CONTINUE for t in range(start + 1, end))
        and allowed[end - 1] & LAST
        and (limits[label] == 0 or end - start <= limits[label])
    )


def firing(potentials, patterns, segmentation):
    """How often every entry of the potentials fires: {part: array of its extents}, the names of
    `Expectations`.
    """
    p = potentials
    counts = {
        "const": np.zeros_like(p.const),
        "start": np.zeros_like(p.token),
        "end": np.zeros_like(p.token),
        "token": np.zeros_like(p.token),
        "inner": np.zeros_like(p.token),
        "row": np.zeros_like(p.row_score),
        "length": np.zeros_like(p.length_score),
        "span": np.zeros_like(p.span_score),
    }
    for k, segment in enumerate(segmentation):
        history = tuple(label for _, _, label in segmentation[: k + 1])
        for z, pattern in enumerate(patterns):
            if history[-len(pattern) :] == pattern:
                _count_into(counts, potentials, z, pattern, segment)
    return counts


def _count_into(counts, potentials, z, pattern, segment):
    p = potentials
    start, end, label = segment
    part_tokens = {
        START: [start],
        END: [end - 1],
        TOKEN: range(start, end),
        INNER: range(start + 1, end),
    }
    counts["const"][z] += 1
    if len(pattern) == 1:
        for part, name in ((START, "start"), (END, "end"), (TOKEN, "token"), (INNER, "inner")):
            for t in part_tokens[part]:
                counts[name][t, label] += 1
    for t in range(start, end):
        for r in range(p.row_offsets[t], p.row_offsets[t + 1]):
            if p.row_pattern[r] == z and t in part_tokens[p.row_part[r]]:
                counts["row"][r] += 1
    for g in range(len(p.length_pattern)):
        if p.length_pattern[g] == z:
            counts["length"][g, min(end - start, p.length_score.shape[1]) - 1] += 1
    for s in range(len(p.span_pattern)):
        if p.span_pattern[s] == z and (p.span_start[s], p.span_end[s]) == (start, end):
            counts["span"][s] += 1


def score(potentials, patterns, segmentation):
    """Log of the unnormalised probability, in nats."""
    counts = firing(potentials, patterns, segmentation)
    scores = _scores(potentials)
    return math.fsum(x for part in PARTS for x in (counts[part] * scores[part]).flat)


def _scores(potentials):
    p = potentials
    start, end, inner = (
        np.zeros_like(p.token) if part is None else part for part in (p.start, p.end, p.inner)
    )
    parts = (p.const, start, end, p.token, inner, p.row_score, p.length_score, p.span_score)
    return dict(zip(PARTS, parts, strict=True))


def scored(potentials, patterns, limits, forbidden):
    """{segmentation: score}."""
    every = segmentations(potentials, limits, forbidden)
    return {s: score(potentials, patterns, s) for s in every}


def distribution(potentials, patterns, limits, forbidden):
    """{segmentation: probability}."""
    every, best, total = _enumerate(potentials, patterns, limits, forbidden)
    return {s: math.exp(x - best) / total for s, x in every}


def _enumerate(potentials, patterns, limits, forbidden):
    """[(segmentation, score)], the largest score (-inf for none), and the sum of exp(score -
    largest).
    """
    every = [*scored(potentials, patterns, limits, forbidden).items()]
    best = max((x for _, x in every), default=-math.inf)
    return every, best, math.fsum(math.exp(x - best) for _, x in every)


def log_partition(potentials, patterns, limits, forbidden):
    """In nats; -inf if no segmentation is allowed, 0.0 for T = 0."""
    _, best, total = _enumerate(potentials, patterns, limits, forbidden)
    return best + math.log(total) if total else -math.inf


def expectations(potentials, patterns, limits, forbidden):
    """Expected counts, all zero if no segmentation is allowed."""
    every, best, total = _enumerate(potentials, patterns, limits, forbidden)
    expected = firing(potentials, patterns, ())
    weighted = [(math.exp(x - best), firing(potentials, patterns, s)) for s, x in every]
    for part, array in expected.items():
        for place in np.ndindex(array.shape):
            mass = math.fsum(weight * counts[part][place] for weight, counts in weighted)
            array[place] = mass / total if total else 0.0
    log_z = best + math.log(total) if total else -math.inf
    return Expectations(log_partition=np.array([log_z]), **expected)


def viterbi(potentials, patterns, limits, forbidden, tolerance=1e-9):
    """(best score, {segmentations whose score is within the tolerance of it}); (-inf, set()) if
    none is allowed.
    """
    every, best, _ = _enumerate(potentials, patterns, limits, forbidden)
    return best, {s for s, x in every if x >= best - tolerance}


def segment_marginal(potentials, patterns, limits, forbidden, start, end, label):
    """Probability that [start, end) is a segment of that label."""
    every, best, total = _enumerate(potentials, patterns, limits, forbidden)
    segment = Segment(start, end, label)
    return math.fsum(math.exp(x - best) for s, x in every if segment in s) / total if total else 0.0


def listed(segments):
    """Segmentations given as `Segments`, one tuple of `Segment` a sequence."""
    rows = [Segment(*row) for row in zip(*(column.tolist() for column in segments[1:]))]
    bounds = segments.offsets.tolist()
    return [tuple(rows[a:b]) for a, b in pairwise(bounds)]


def segments_of(segmentations):
    """Lists of segments, one for each sequence, as `Segments`: what `listed` undoes."""
    rows = [segment for segments in segmentations for segment in segments]
    columns = np.array(rows, dtype=np.int32).reshape(-1, 3).T
    return Segments(offsets_of([len(segments) for segments in segmentations]), *columns)


def batch(sequences):
    """One batch of several `Potentials` of one sequence each, which share const and length scores,
    laid end to end.
    """
    lengths = [len(p.start) for p in sequences]
    offsets = np.cumsum([0, *lengths])
    row_counts = [len(p.row_score) for p in sequences]
    row_shifts = np.cumsum([0, *row_counts])
    names = "start end token inner row_part row_pattern row_score span_pattern span_score allowed"
    joined = {name: np.concatenate([getattr(p, name) for p in sequences]) for name in names.split()}
    row_offsets = [
        p.row_offsets[:-1] + shift for p, shift in zip(sequences, row_shifts, strict=False)
    ]
    return replace(
        sequences[0],
        offsets=offsets.astype(np.int64),
        row_offsets=np.concatenate([*row_offsets, row_shifts[-1:]]).astype(np.int64),
        span_start=np.concatenate(
            [p.span_start + at for p, at in zip(sequences, offsets, strict=False)]
        ),
        span_end=np.concatenate(
            [p.span_end + at for p, at in zip(sequences, offsets, strict=False)]
        ),
        **joined,
    )


def plain(scores, n_patterns=None, **parts):
    """The potentials of one sequence whose labels have these scores at its tokens, and nothing else has
    any; all is allowed.

    scores (float64 [T, Y]); parts: those of `Potentials` that are something else.
    """
    nothing, allowed = np.zeros(scores.shape), np.full(scores.shape, ANYTHING, dtype=np.uint8)
    zero = Potentials.zero(np.array([0, len(scores)]), allowed, n_patterns or scores.shape[1])
    token = np.ascontiguousarray(scores, dtype=np.float64)
    parts = {"start": nothing, "end": nothing, "token": token, "inner": nothing, **parts}
    return replace(zero, **parts)


def rows_of(n_tokens, *rows):
    """Parts of `Potentials`: rows (token, part, pattern, score), in the order of their tokens."""
    token, part, pattern, score = np.array(rows, dtype=np.float64).reshape(-1, 4).T
    return {
        "row_offsets": np.searchsorted(token, np.arange(n_tokens + 1)),
        "row_part": part.astype(np.uint8),
        "row_pattern": pattern.astype(np.int32),
        "row_score": score.copy(),
    }


def spans_of(*spans):
    """Parts of `Potentials`: spans (start, end, pattern, score), in order."""
    start, end, pattern, score = np.array(spans, dtype=np.float64).reshape(-1, 4).T
    return {
        "span_start": start.astype(np.int64),
        "span_end": end.astype(np.int64),
        "span_pattern": pattern.astype(np.int32),
        "span_score": score.copy(),
    }


def assert_counts(found, expected, what="", rtol=1e-10, atol=1e-10, weights=None):
    """Expected counts are near those of each sequence, one behind the other, times its weight."""
    for name in PARTS:
        parts = [
            w * getattr(one, name) for w, one in zip(weights or [1.0] * len(expected), expected)
        ]
        total = sum(parts) if name in ("const", "length") else np.concatenate(parts)
        place = f"{name}, {what}"
        assert_allclose(getattr(found, name), total, rtol=rtol, atol=atol, err_msg=place)


@st.composite
def problems(draw, max_tokens=5):
    """A `Problem`: patterns, limits, forbidden successions and the potentials of one sequence of at
    most 5 tokens.
    """
    return draw(batches(min_size=1, max_size=1, max_tokens=max_tokens))[0]


@st.composite
def batches(draw, min_size=0, max_size=5, max_tokens=5):
    """Several problems of one model: they share all but the potentials of their tokens."""
    model = draw(_models())
    sequences = [
        draw(_sequences(model, max_tokens)) for _ in range(draw(st.integers(min_size, max_size)))
    ]
    carried = draw(_carried(model, sequences))
    return [Problem(p, model.patterns, model.limits, model.forbidden, carried) for p in sequences]


class _Model(NamedTuple):
    patterns: tuple[LabelPattern, ...]
    limits: tuple[int, ...]
    forbidden: frozenset[tuple[int, int]]
    const: np.ndarray
    length_pattern: np.ndarray
    length_score: np.ndarray


@st.composite
def _models(draw):
    labels = draw(st.sampled_from([2, 3, 3, 1]))
    label = st.integers(0, labels - 1)
    longer = draw(
        st.lists(st.lists(label, min_size=2, max_size=5).map(tuple), max_size=6, unique=True)
    )
    patterns = (*((y,) for y in range(labels)), *longer)
    # a mixture, semi-CRF, CRF
    limit = draw(st.sampled_from([st.integers(0, 3), st.just(0), st.just(1)]))
    successions = st.frozensets(st.tuples(label, label), min_size=1, max_size=3)
    random = draw(_randoms())
    with_length = draw(st.lists(st.integers(0, len(patterns) - 1), max_size=3, unique=True))
    return _Model(
        patterns,
        draw(st.tuples(*[limit] * labels)),
        draw(st.one_of(st.just(frozenset()), successions)),
        draw(_score_arrays(random))(len(patterns)),
        np.array(with_length, dtype=np.int32),
        draw(_score_arrays(random))(len(with_length), draw(st.integers(1, 4))),
    )


@st.composite
def _sequences(draw, model, max_tokens):
    labels, last = len(model.limits), len(model.patterns) - 1
    # Hypothesis is fond of the first choice, and of simple examples altogether: no token comes
    # last, two come first.
    length = min(draw(st.sampled_from([2, 3, 4, 5, 3, 4, 5, 4, 5, 1, 0])), max_tokens)
    random = draw(_randoms())
    scores = draw(_score_arrays(random))
    rows, spans = [], []
    if length and last >= labels:
        row = st.tuples(
            st.integers(0, length - 1), st.integers(START, INNER), st.integers(labels, last)
        )
        rows = sorted(draw(st.lists(row, max_size=10)), key=lambda row: row[0])
    if length:
        place = st.integers(0, length - 1).flatmap(
            lambda t: st.tuples(st.just(t), st.integers(t + 1, length))
        )
        spans = draw(st.lists(st.tuples(place, st.integers(0, last)), max_size=6))
        spans = sorted(((start, end, z) for (start, end), z in spans), key=lambda span: span[:2])
    row_token, row_part, row_pattern = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    span_start, span_end, span_pattern = np.array(spans, dtype=np.int64).reshape(-1, 3).T
    return Potentials(
        offsets=np.array([0, length], dtype=np.int64),
        const=model.const,
        start=scores(length, labels),
        end=scores(length, labels),
        token=scores(length, labels),
        inner=scores(length, labels),
        row_offsets=np.searchsorted(row_token, np.arange(length + 1)).astype(np.int64),
        row_part=row_part.astype(np.uint8),
        row_pattern=row_pattern.astype(np.int32),
        row_score=scores(len(rows)),
        length_pattern=model.length_pattern,
        length_score=model.length_score,
        span_start=np.ascontiguousarray(span_start),
        span_end=np.ascontiguousarray(span_end),
        span_pattern=span_pattern.astype(np.int32),
        span_score=scores(len(spans)),
        allowed=_allowed(random, draw(st.sampled_from([0.0, 0.0, 0.1, 0.5])), length, labels),
    )


def _randoms():
    return st.integers(0, 2**32 - 1).map(np.random.default_rng)


def _score_arrays(random):
    """A function from extents to scores: a mixture of zeros, numbers around 1 and numbers up to
    ±50.
    """
    mixtures = [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.3, 0.5, 0.2), (0.8, 0.1, 0.1)]

    def scores(mixture):
        def of(*extents):
            kind = random.choice(3, p=mixture, size=extents)
            return np.choose(
                kind,
                [np.zeros(extents), random.normal(size=extents), random.uniform(-50, 50, extents)],
            )

        return of

    return st.sampled_from(mixtures).map(scores)


def _allowed(random, rate, *extents):
    anything = np.full(extents, ANYTHING, dtype=np.uint8)
    return np.where(
        random.random(extents) < rate, random.integers(0, 8, extents, dtype=np.uint8), anything
    )


@st.composite
def _carried(draw, model, sequences):
    """True for the patterns that must be carried to the end of their segment, and for others at
    random.
    """
    carried = np.zeros(len(model.patterns), dtype=bool)
    carried[model.length_pattern] = True
    for p in sequences:
        carried[p.row_pattern[p.row_part != START]] = True
        carried[p.span_pattern] = True
    for z, pattern in enumerate(model.patterns):
        carried[z] &= len(pattern) > 1 and model.limits[pattern[-1]] != 1
        carried[z] |= draw(st.integers(0, 5)) == 5
    return carried
