"""Random potentials, most of them damaged, at the doors of the engine: a coded error, or what the
enumeration of all segmentations says.

    python tests/fuzz/potentials.py --cases 5000

Case k of a seed is always the same. Printed are the outcomes by code and how many results were
compared. A crash ends the process, which says at which case it was (the last line on stderr).
"""

import argparse
import re
import sys
from collections import Counter
from dataclasses import fields, replace
from itertools import product
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

import oracle

from spacy_hocrf.engine.alternatives import best_segmentations
from spacy_hocrf.engine.automaton import compile_automaton
from spacy_hocrf.engine.forward_backward import expectations, log_partition, log_state_scores
from spacy_hocrf.engine.marginals import Window, segment_marginals, window_marginals
from spacy_hocrf.engine.viterbi import viterbi
from spacy_hocrf.types import INNER, Potentials, Segment

NAMES = tuple(field.name for field in fields(Potentials))
KINDS = ("extent", "type", "order", "element", "stride", "dimension", "none", "forbid", "swap")
NUMBERS = (-1, 0, 1, 2, 3, 4, 7, 2**31 - 1, 2**40, -(2**63), np.nan, np.inf, -np.inf, 1e300)
TYPES = ("uint8", "int8", "int32", "int64", "uint64", "float32", "float64", "complex128", "object")
CODED = re.compile(r"^\[(H\d{3})\]")
LARGE = 100.0  # scores beyond are not compared: enumeration sums their exponentials
CLOSE = {"rtol": 1e-6, "atol": 1e-6}


def case(seed, k):
    """Patterns, limits and forbidden successions of a model, potentials, segments and windows."""
    rng = np.random.default_rng([seed, k])
    n_labels = int(rng.integers(1, 4))
    sizes = rng.integers(2, 4, int(rng.integers(4)))
    longer = {tuple(rng.integers(0, n_labels, size).tolist()) for size in sizes}
    patterns = (*((y,) for y in range(n_labels)), *sorted(longer))
    limits = tuple(rng.integers(0, 3, n_labels).tolist()) if rng.integers(2) else (1,) * n_labels
    pairs = list(product(range(n_labels), repeat=2))
    forbidden = frozenset(pair for pair in pairs if rng.integers(8) == 0)
    potentials = sound(rng, patterns, n_labels)
    for _ in range(int(rng.integers(3))):
        potentials = damaged(rng, potentials)
    segments = [
        [
            Segment(int(a), int(a + n), int(y))
            for a, n, y in zip(*rng.integers(-1 if rng.integers(9) == 0 else 0, 3, (3, 2)))
        ]
        for _ in range(int(rng.integers(4)))
    ]
    windows = [
        Window(
            int(rng.integers(-1, 3)),
            int(rng.integers(-1, 4)),
            rng.integers(0, 8, (int(rng.integers(3)), n_labels), dtype=np.uint8),
        )
        for _ in range(int(rng.integers(1, 3)))
    ]
    return (patterns, limits, forbidden), potentials, segments, windows


def sound(rng, patterns, n_labels):
    """Potentials of up to three sequences of up to four tokens."""
    lengths = rng.integers(0, 5, int(rng.integers(1, 4)))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    n, n_patterns = int(offsets[-1]), len(patterns)
    per_token = rng.integers(0, 3, n) if n_patterns > n_labels else np.zeros(n, dtype=np.int64)
    n_rows = int(per_token.sum())
    spans = sorted(
        (int(first + a), int(first + b))
        for first, length in zip(offsets, lengths)
        for a in range(length)
        for b in range(a + 1, length + 1)
        if rng.integers(4) == 0
    )
    span_start, span_end = np.array(spans, dtype=np.int64).reshape(-1, 2).T.copy()
    with_length = np.flatnonzero(rng.integers(0, 3, n_patterns) == 0).astype(np.int32)
    start, end, token, inner = rng.normal(0, 3, (4, n, n_labels))
    return Potentials(
        offsets=offsets,
        const=rng.normal(0, 3, n_patterns),
        start=start if rng.integers(3) else None,
        end=end if rng.integers(3) else None,
        token=token,
        inner=inner if rng.integers(3) else None,
        row_offsets=np.concatenate([[0], np.cumsum(per_token)]).astype(np.int64),
        row_part=rng.integers(0, INNER + 1, n_rows).astype(np.uint8),
        row_pattern=rng.integers(n_labels, n_patterns, n_rows).astype(np.int32)
        if n_rows
        else np.zeros(0, dtype=np.int32),
        row_score=rng.normal(0, 3, n_rows),
        length_pattern=with_length,
        length_score=rng.normal(0, 3, (len(with_length), int(rng.integers(1, 4)))),
        span_start=span_start,
        span_end=span_end,
        span_pattern=rng.integers(0, n_patterns, len(spans)).astype(np.int32),
        span_score=rng.normal(0, 3, len(spans)),
        allowed=np.where(
            rng.random((n, n_labels)) < 0.2, rng.integers(0, 8, (n, n_labels)), 7
        ).astype(np.uint8),
    )


@np.errstate(all="ignore")
def damaged(rng, potentials):
    name = str(rng.choice(NAMES))
    kind = str(rng.choice(KINDS))
    array = getattr(potentials, name)
    if kind == "forbid":
        return replace(potentials, allowed=np.zeros_like(potentials.allowed))
    if not isinstance(array, np.ndarray) or not array.ndim:
        return potentials
    if kind == "swap":
        other = str(rng.choice(NAMES))
        return replace(potentials, **{name: getattr(potentials, other), other: array})
    if kind == "none":
        changed = None
    elif kind == "type":
        changed = array.astype(str(rng.choice(TYPES)))
    elif kind == "order":
        changed = rng.permutation(array) if rng.integers(2) else array[::-1].copy()
    elif kind == "stride":
        changed = array[::-1] if rng.integers(2) else np.repeat(array, 2, axis=-1)[..., ::2]
    elif kind == "dimension":
        changed = array[None] if rng.integers(2) else array.ravel()
    elif kind == "extent":
        more = array[: int(rng.integers(1, 9))]
        cut = array[: int(rng.integers(len(array) + 1))]
        changed = cut if rng.integers(2) else np.concatenate([array, more])
    else:
        changed = array.copy()
        flat = changed.reshape(-1)
        if len(flat) and array.dtype != object:
            value = np.array(rng.choice(np.array(NUMBERS))).astype(array.dtype)
            flat[int(rng.integers(len(flat)))] = value
    return replace(potentials, **{name: changed})


def outcomes(seed, k):
    """What comes of case k: for each door a code, "right", "finite", or what is wrong."""
    (patterns, limits, forbidden), potentials, segments, windows = case(seed, k)
    carried = patterns[len(limits) :] if k % 8 else ()
    automaton = compile_automaton(patterns, limits, forbidden=forbidden, carried=carried)
    model = patterns, limits, forbidden
    doors = {
        "expectations": (lambda: expectations(potentials, automaton), check_expectations),
        "log_partition": (lambda: log_partition(potentials, automaton), check_log_partition),
        "in log space": (
            lambda: log_partition(potentials, automaton, space="log"),
            check_log_partition,
        ),
        "log_state_scores": (lambda: log_state_scores(potentials, automaton), None),
        "viterbi": (lambda: viterbi(potentials, automaton), check_viterbi),
        "best_segmentations": (lambda: best_segmentations(potentials, automaton, 9), check_best),
        "segment_marginals": (
            lambda: segment_marginals(potentials, automaton, oracle.segments_of(segments)),
            lambda found, parts, model: check_marginals(found, parts, model, segments),
        ),
        "window_marginals": (
            lambda: window_marginals(potentials, automaton, windows),
            lambda found, parts, model: check_windows(found, parts, model, windows),
        ),
    }
    return {name: _outcome(*door, potentials, model) for name, door in doors.items()}


@np.errstate(all="ignore")
def _outcome(ask, check, potentials, model):
    try:
        answer = ask()
    except Exception as error:
        coded = CODED.match(str(error))
        return coded[1] if coded and isinstance(error, ValueError) else f"wrong: {error!r}"
    scores = [a for a in (getattr(potentials, name) for name in NAMES) if a is not None]
    small = all(np.abs(a).max(initial=0.0) < LARGE for a in scores if a.dtype == np.float64)
    if check is None or not small:
        return "accepted"
    return "right" if check(answer, separate(potentials), model) else "wrong: another result"


def separate(potentials):
    """The potentials of every sequence, as the oracle takes them."""
    p = potentials
    parts = []
    for a, b in zip(p.offsets[:-1], p.offsets[1:]):
        rows = slice(p.row_offsets[a], p.row_offsets[b])
        spans = (p.span_start >= a) & (p.span_start < b)
        cut = {
            name: None if getattr(p, name) is None else getattr(p, name)[a:b]
            for name in ("start", "end", "token", "inner", "allowed")
        }
        cut |= {name: getattr(p, name)[rows] for name in ("row_part", "row_pattern", "row_score")}
        parts.append(
            replace(
                p,
                offsets=np.array([0, b - a], dtype=np.int64),
                row_offsets=p.row_offsets[a : b + 1] - p.row_offsets[a],
                span_start=p.span_start[spans] - a,
                span_end=p.span_end[spans] - a,
                span_pattern=p.span_pattern[spans],
                span_score=p.span_score[spans],
                **cut,
            )
        )
    return parts


def check_log_partition(found, parts, model):
    return np.allclose(found, [oracle.log_partition(part, *model) for part in parts], **CLOSE)


def check_expectations(found, parts, model):
    if not parts:  # nothing to concatenate
        return len(found.log_partition) == len(found.token) == 0 and not found.const.any()
    expected = [oracle.expectations(part, *model) for part in parts]
    return (
        np.allclose(found.log_partition, [e.log_partition[0] for e in expected], **CLOSE)
        and np.allclose(found.const, sum(e.const for e in expected), **CLOSE)
        and np.allclose(found.length, sum(e.length for e in expected), **CLOSE)
        and all(
            getattr(found, name) is None
            or np.allclose(
                getattr(found, name), np.concatenate([getattr(e, name) for e in expected]), **CLOSE
            )
            for name in ("start", "end", "token", "inner", "row", "span")
        )
    )


def check_viterbi(found, parts, model):
    for part, score, segments in zip(parts, found.scores, oracle.listed(found.segments)):
        best, readings = oracle.viterbi(part, *model, tolerance=1e-6)
        if readings and segments not in readings:
            return False
        if not np.allclose(score, best, **CLOSE):
            return False
    return True


def check_best(found, parts, model):
    paths = oracle.listed(found.segments)
    for i, part in enumerate(parts):
        mine = slice(*found.offsets[i : i + 2].tolist())
        every = {s: oracle.score(part, model[0], s) for s in oracle.segmentations(part, *model[1:])}
        best = sorted(every.values(), reverse=True)[:9]
        if not set(paths[mine]) <= set(every) or len(set(paths[mine])) != len(best):
            return False
        expected = [every[path] for path in paths[mine]]
        if not np.allclose(expected, best, **CLOSE) or not np.allclose(
            found.scores[mine], best, **CLOSE
        ):
            return False
    return True


def check_marginals(found, parts, model, segments):
    expected = [
        oracle.segment_marginal(part, *model, *segment)
        for part, asked in zip(parts, segments)
        for segment in asked
    ]
    return np.allclose(found.probability, expected, **CLOSE)


def check_windows(found, parts, model, windows):
    expected = []
    for window in windows:
        part = parts[window.sequence]
        allowed = part.allowed.copy()
        allowed[window.start : window.start + len(window.allowed)] &= window.allowed
        inside = oracle.log_partition(replace(part, allowed=allowed), *model)
        total = oracle.log_partition(part, *model)
        expected.append(0.0 if np.isneginf(total) else np.exp(inside - total))
    return np.allclose(found, expected, **CLOSE)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    counts, wrong = Counter(), []
    for k in range(options.cases):
        print(k, end="\r", file=sys.stderr, flush=True)
        for door, found in outcomes(options.seed, k).items():
            counts[found[:60]] += 1
            if found.startswith("wrong"):
                wrong.append(f"case {k}, {door}: {found}")
    print(f"{options.cases} cases of potentials, seed {options.seed}, eight questions each")
    for found, count in counts.most_common():
        print(f"{count:7} {found}")
    sys.exit("\n".join(wrong[:20]) or None)


if __name__ == "__main__":
    main()
