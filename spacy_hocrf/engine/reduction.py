"""Sums over a data set, in an order that depends on the data set alone.

The data set is cut into 2^k *parts*, the leaves of a binary reduction tree: two neighbours are added as
soon as both are there. So a sum is the same to the last bit however many threads work, each of which takes
one part after the other, and in which order they are done.
"""

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.data_set import Compiled, Layout, Shard
from spacy_hocrf.engine.forward_backward import Buffers
from spacy_hocrf.engine.threads import Threads

__all__ = ["LEAST_PARTS", "PartialSum", "ReductionTree", "ShardLoss", "ShardSum", "parts_of"]

LEAST_PARTS = 4
"""A data set that has so many shards has so many parts at least."""

MOST_PARTS = 64
"""Parts of the largest data sets."""

NUMBERS_PER_SHARD = 80_000
"""A data set has so few parts, but for LEAST_PARTS, that not more numbers are added for every shard."""

Vector = NDArray[np.float64]


class ShardLoss(Protocol):
    """The loss that is summed over shards."""

    def __call__(
        self, shard: Compiled, placed: Any, automaton: Automaton, buffers: Buffers, counts: Any
    ) -> float:
        """Add what the shard counts under placed weights. RETURNS (float): its part of the loss."""
        ...


def parts_of(shards: Sequence[Shard], extent: int) -> list[Sequence[Shard]]:
    """Cut a data set into 2^k parts, as many as cost little.

    Shard i is in the part whose number has the last k bits of i, reversed: neighbours, which are alike, are
    far apart, and every range of parts has its share of all shards.

    extent (int): numbers that a sum has. There are no more parts than shards, but for the one of a data set
        without any.
    """
    affordable = NUMBERS_PER_SHARD * len(shards) // max(extent, 1)
    number = min(MOST_PARTS, max(LEAST_PARTS, affordable))
    k = max(1, min(number, len(shards))).bit_length() - 1
    first = [int(f"{part:0{k}b}"[::-1], 2) for part in range(1 << k)]
    return [shards[each :: 1 << k] for each in first]


class PartialSum(NamedTuple):
    """The sum of the parts below one node of the tree."""

    first: int
    """The first of these parts."""
    size: int
    """How many there are, a power of two."""
    loss: float
    """Nats."""
    counts: Any
    """As the layout has them."""


class ReductionTree:
    """Partial sums that wait for their neighbours. Any thread may bring one.

    layout (Layout): of the counts.
    free (Callable[[Any], None]): takes counts that have been added to others, and are zero again.
    """

    def __init__(self, layout: Layout, free: Callable[[Any], None]) -> None:
        self._layout, self._free = layout, free
        self._waiting: dict[tuple[int, int], PartialSum] = {}  # by first and size
        self._lock = Lock()

    def put(self, found: PartialSum) -> None:
        """Add a sum to its neighbour if that is there, and go on so up the tree."""
        while True:
            first, size = found.first, found.size
            with self._lock:
                other = self._waiting.pop((first ^ size, size), None)
                if other is None:
                    self._waiting[first, size] = found
                    return
            left, right = (found, other) if first < other.first else (other, found)
            self._layout.merge(left.counts, right.counts)
            self._free(right.counts)
            found = PartialSum(left.first, 2 * size, left.loss + right.loss, left.counts)

    @property
    def total(self) -> PartialSum:
        """The sum of all parts, once they are there."""
        [total] = self._waiting.values()
        return total


class ShardSum:
    """A sum over a data set, computed again and again at other weights by threads of this process, each of
    which takes the next part when it is free.

    shards (Sequence[Shard]): the data set. loss (ShardLoss): what is summed.
    layout (Layout): how the shards want the weights. automaton (Automaton): of all of them.
    threads (int): how many, 1 or more.
    """

    def __init__(
        self,
        shards: Sequence[Shard],
        loss: ShardLoss,
        layout: Layout,
        automaton: Automaton,
        threads: int,
    ) -> None:
        self.parts = parts_of(shards, layout.extent)
        self._loss, self._layout, self._automaton = loss, layout, automaton
        self._threads = Threads(min(threads, len(self.parts)))
        self._placed: Any = None
        self._spare = deque[Any]()  # counts that are zero again
        self._idle = deque[Buffers]()  # one for each thread, when none works

    def add_into(self, gradient: Vector, weights: Vector) -> float:
        """Add the counts of all shards at some weights, both float64 [F].

        RETURNS (float): the loss. RAISES: what the first part that fails raises.
        """
        self._placed = self._layout.place_weights(weights, self._placed)
        tree = ReductionTree(self._layout, self._spare.append)
        self._threads.map(partial(self._add_part, tree), range(len(self.parts)))
        total = tree.total
        self._layout.add_collected_into(gradient, total.counts)
        self._spare.append(total.counts)
        return total.loss

    def rest(self) -> None:
        """Give back memory that the next sum takes again."""
        for part in self.parts:
            for shard in part:
                shard.rest()
        self._placed = None
        self._spare.clear()
        self._idle.clear()

    def _add_part(self, tree: ReductionTree, number: int) -> None:
        counts = self._layout.nothing(_taken(self._spare))
        buffers = _taken(self._idle) or Buffers(self._automaton)
        loss = 0.0
        for shard in self.parts[number]:
            loss += self._loss(shard.compiled, self._placed, self._automaton, buffers, counts)
        self._idle.append(buffers)
        tree.put(PartialSum(number, 1, loss, counts))


def _taken(pool: deque[Any]) -> Any:
    """Something out of a pool; None if another thread has the last."""
    try:
        return pool.pop()
    except IndexError:
        return None
