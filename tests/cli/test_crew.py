"""Chunks for workers that die: each is done once, and one of which three have died is an error."""

import random

import pytest

from spacy_hocrf.cli.annotate.annotator import Done
from spacy_hocrf.cli.annotate.crew import share_out
from spacy_hocrf.cli.annotate.sources import Chunk


class FakeCrew:
    """Workers that die of a chunk so many times, and take turns at random."""

    def __init__(self, deadly, seed):
        self.left, self.rng, self.work = dict(deadly), random.Random(seed), {}
        self.begun = 0

    def begin(self, worker):
        self.work[worker] = []
        self.begun += 1

    def give(self, worker, chunk):
        self.work[worker].append(chunk)

    def wait(self):
        worker = self.rng.choice([each for each, work in self.work.items() if work])
        chunk = self.work[worker][0]
        if self.left.get(chunk.number):
            self.left[chunk.number] -= 1
            self.work[worker] = []
            return worker, None
        return worker, Done(self.work[worker].pop(0).number, chunk.size)


def chunks(n):
    return [Chunk(i, 5 * i, 5, []) for i in range(n)]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("n", [1, 2, 3, 40])
def test_each_chunk_is_done_once_whoever_dies(n, seed):
    crew = FakeCrew({0: 2, 3: 1, 7: 2, 11: 2}, seed)
    done = [each.number for each in share_out(crew, n, iter(chunks(12)))]
    assert sorted(done) == list(range(12))
    assert crew.begun == n + 7


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_chunk_of_which_three_have_died_is_named_whatever_is_done_in_between(n, seed):
    crew = FakeCrew({2: 9}, seed)
    with pytest.raises(ValueError, match=r"H349.*texts 10 to 14 "):
        list(share_out(crew, n, iter(chunks(12))))
    assert crew.begun == n + 2
