"""Templates that return anything: a coded error, or an index that learns and observes.

    python tests/fuzz/templates.py --cases 5000

Case k of a seed is always the same. Printed are the outcomes by code. A crash ends the process,
which says at which case it was (the last line on stderr).
"""

import argparse
import re
import sys
from collections import Counter

import numpy as np
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_hocrf.features.gold import GoldSegments
from spacy_hocrf.features.index import FeatureIndex
from spacy_hocrf.features.templates import Events
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.types import CONST, SPAN, START

NUMBERS = (-1, 0, 1, 5, 6, 7, 2**31, 2**40, -(2**63), 2**63 - 1, np.nan, np.inf, 1e300)
TYPES = ("uint8", "int8", "int32", "int64", "uint64", "float32", "float64", "complex128", "object")
ANYTHING = (None, 3, "abc", [], [1, 2], {}, [[0.5]], np.zeros((2, 0)), np.array("x"))
CODED = re.compile(r"^\[(H\d{3})\]")
PATTERNS = ((0,), (1,), (0, 1), (1, 1))


class Strange:
    """A template of fixed answers."""

    def __init__(self, rng, n_tokens):
        self.name = "strange"
        self.part = _member(rng, int(rng.integers(START, CONST + 1)))
        self.order = _member(rng, int(rng.integers(2)))
        self.width = _member(rng, int(rng.integers(3)))
        width = int(self.width) if self.width in range(9) else 1
        self.answer = _damaged(rng, _events(rng, n_tokens, width, self.part == SPAN))

    def events(self, batch):
        return self.answer


def _member(rng, sound):
    return sound if rng.integers(12) else [None, -1, 2**40, 2.5, "1", True][int(rng.integers(6))]


def _events(rng, n_tokens, width, is_span):
    n = int(rng.integers(8))
    token = rng.integers(0, n_tokens, n)
    values = rng.integers(0, 3, (n, width)).astype(np.uint64)
    weight = rng.normal(size=n).astype(np.float32) if rng.integers(2) else None
    return Events(token, values, weight, token + 1 if is_span or not rng.integers(4) else None)


@np.errstate(all="ignore")
def _damaged(rng, answer):
    for _ in range(int(rng.integers(3))):
        field = answer._fields[int(rng.integers(len(answer)))]
        value = getattr(answer, field)
        kind = int(rng.integers(6))
        if kind == 0 or not isinstance(value, np.ndarray) or value.dtype.kind == "U":
            value = ANYTHING[int(rng.integers(len(ANYTHING)))]
        elif kind == 1:
            value = value.astype(str(rng.choice(TYPES)))
        elif kind == 2:
            value = value[: int(rng.integers(len(value) + 1))]
        elif kind == 3:
            value = value[::-1] if rng.integers(2) else np.repeat(value, 2, axis=-1)[..., ::2]
        elif kind == 4:
            value = value[None] if rng.integers(2) else value.ravel()
        elif value.size and value.dtype.kind in "iufb":
            value = value.copy()
            number = np.array(rng.choice(np.array(NUMBERS))).astype(value.dtype)
            value.reshape(-1)[int(rng.integers(value.size))] = number
        answer = answer._replace(**{field: value})
    return tuple(answer)[:2] if rng.integers(40) == 0 else answer


def batch():
    """Two Docs of six tokens in all."""
    vocab = Vocab()
    return TokenBatch([Doc(vocab, words=["a", "b", "c", "d"]), Doc(vocab, words=["e", "f"])])


def gold():
    """Segments of those: four of one token, one of two."""
    start = np.array([0, 1, 2, 3, 4])
    pattern = np.array([[0, 1, 1, 0, 1], [-1, 2, 3, -1, -1]], dtype=np.int32)
    return GoldSegments(start, np.array([1, 2, 3, 4, 6]), pattern)


def outcome(seed, k):
    """What comes of case k: a code, "accepted", or what is wrong."""
    rng = np.random.default_rng([seed, k])
    tokens = batch()
    template = Strange(rng, len(tokens))
    try:
        index = FeatureIndex(PATTERNS, [template])
        index.learn(iter([(tokens, gold())]))
        seen = index.observe(tokens)
    except Exception as error:
        coded = CODED.match(str(error))
        return coded[1] if coded and isinstance(error, ValueError) else f"wrong: {error!r}"
    rows = seen.tokens
    sound = bool(
        np.all(rows.ids >= 0)
        and np.all(rows.ids < len(index.table))
        and rows.offsets[0] == 0
        and np.all(rows.offsets[1:] >= rows.offsets[:-1])
        and rows.offsets[-1] == len(rows.ids)
    )
    sound &= bool(np.all(seen.spans.ids < len(index.table)) and np.all(seen.spans.ids >= 0))
    return "accepted" if sound else "wrong: rows that no kernel can read"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    counts, wrong = Counter(), []
    for k in range(options.cases):
        print(k, end="\r", file=sys.stderr, flush=True)
        found = outcome(options.seed, k)
        counts[found[:60]] += 1
        if found.startswith("wrong"):
            wrong.append(f"case {k}: {found}")
    print(f"{options.cases} cases of templates, seed {options.seed}")
    for found, count in counts.most_common():
        print(f"{count:7} {found}")
    sys.exit("\n".join(wrong[:20]) or None)


if __name__ == "__main__":
    main()
