"""Damaged model files of CRFsuite: whatever a file says, opening it ends in a coded error or in a tagger
that tags.

    python tests/fuzz/crfsuite.py --mutations 100000

Mutation k of a seed is always the same. Printed are the outcomes and the slowest one in seconds of CPU.
A mutation that kills the process is the one after the last number printed; run it by itself with
--first.
"""

import argparse
import faulthandler
import re
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

from labelled_sequences import draw, learnt

from spacy_hocrf.pycrfsuite import Tagger
from spacy_hocrf.sequences.crfsuite_file import header_of, write_crfsuite
from spacy_hocrf.sequences.features import FeatureSettings

EXPECTED = re.compile(r"\[H27[34]\] |tags|same")  # H273: a model without labels
SLOWEST = 1.0  # seconds of CPU for one file
NUMBERS = (0, 1, 2, 3, 255, 256, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 12, 2**32 - 1)


class Fuzzer:
    """Damages the files of three models.

    seed (int): of the mutations.
    """

    def __init__(self, seed: int) -> None:
        everything = FeatureSettings(all_states=True, all_transitions=True)
        self.seed = seed
        self.files = [
            write_crfsuite(learnt(*draw(1, n=8), settings)[0])
            for settings in (FeatureSettings(), everything)
        ]
        self.files.append(write_crfsuite(learnt([], [])[0]))
        self.items = draw(2, n=3)[0]

    def mutate(self, k: int) -> bytes:
        """The file that mutation k makes."""
        rng = np.random.default_rng([self.seed, k])
        data = bytearray(self.files[rng.choice(3, p=[0.6, 0.3, 0.1])])
        for _ in range(rng.integers(1, 4)):
            [_flip, _overwrite, _cut, _move, _swap][rng.choice(5, p=[0.4, 0.3, 0.1, 0.1, 0.1])](
                data, rng
            )
        return bytes(data)

    def outcome(self, k: int) -> str:
        """The code of the error, or what worked."""
        data = self.mutate(k)
        if data in self.files:
            return "same"
        try:
            with Tagger().open_inmemory(data) as tagger:
                for x in self.items:
                    tagger.set(x)
                    tagger.probability(tagger.tag())
                tagger.info()
        except ValueError as error:
            return str(error)
        return "tags"


def _place(data: bytearray, rng: np.random.Generator) -> int:
    """Somewhere in the file, but seldom among the many empty hash tables."""
    if len(data) > 60 and rng.random() < 0.3:
        return int(rng.integers(48))
    full = np.flatnonzero(np.frombuffer(bytes(data), dtype=np.uint8))
    return int(rng.choice(full)) if len(full) else 0


def _flip(data: bytearray, rng: np.random.Generator) -> None:
    """One bit."""
    if data:
        data[_place(data, rng)] ^= 1 << int(rng.integers(8))


def _overwrite(data: bytearray, rng: np.random.Generator) -> None:
    """A number by one that is often a limit, or near the file's size."""
    at = _place(data, rng) // 4 * 4
    near = len(data) + int(rng.integers(-30, 30))
    number = int(rng.choice([*NUMBERS, max(0, near)]))
    data[at : at + 4] = number.to_bytes(4, "little")


def _cut(data: bytearray, rng: np.random.Generator) -> None:
    """The end."""
    del data[_place(data, rng) :]


def _move(data: bytearray, rng: np.random.Generator) -> None:
    """Some bytes put in, or taken out."""
    at, n = _place(data, rng), int(rng.integers(1, 9))
    if rng.random() < 0.5:
        data[at:at] = rng.bytes(n)
    else:
        del data[at : at + n]


def _swap(data: bytearray, rng: np.random.Generator) -> None:
    """An offset of the header by another one."""
    if len(data) > 48 and data[:4] == b"lCRF":
        a, b = (28 + 4 * int(i) for i in rng.integers(5, size=2))
        data[a : a + 4], data[b : b + 4] = data[b : b + 4], data[a : a + 4]


def main() -> int:
    """RETURNS (int): 1 if an outcome was not expected, or slow."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mutations", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    faulthandler.enable()
    fuzzer = Fuzzer(options.seed)
    assert all(header_of(data) for data in fuzzer.files)
    found, slowest, bad = Counter[str](), 0.0, 0
    for k in range(options.first, options.first + options.mutations):
        before = time.process_time()
        outcome = fuzzer.outcome(k)
        taken = time.process_time() - before
        slowest = max(slowest, taken)
        if not EXPECTED.match(outcome) or taken > SLOWEST:
            bad += 1
            print(f"mutation {k}: {outcome[:200]} ({taken:.2f} s)")
        found[re.sub(r"\d+|'[^']*'|\"[^\"]*\"|b'.*?'", "…", outcome.split(": ", 1)[-1])[:70]] += 1
        if k % 10_000 == 9_999:
            print(f"{k + 1} …", flush=True)
    for outcome, count in found.most_common(25):
        print(f"{count:>8}  {outcome}")
    print(f"{options.mutations} mutations, {bad} failures, slowest {slowest:.3f} s")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
