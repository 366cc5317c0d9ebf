"""Sums over a data set, in an order that depends only on the data set.

The data set is cut into 2^k *parts*, the leaves of a binary reduction tree: two neighbours are added as
soon as both are ready. So a sum is the same to the last bit, whatever the number of threads, each of which
takes one part after the other, and the order in which parts are finished.
"""

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock
from typing import Any, NamedTuple, Protocol

from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.data_set import Compiled, Layout, Shard
from spacy_hocrf.engine.forward_backward import Buffers
from spacy_hocrf.engine.threads import Threads
from spacy_hocrf.types import Vector

__all__ = ["MIN_PARTS", "PartialSum", "ReductionTree", "ShardLoss", "ShardSum", "parts_of"]

MIN_PARTS = 4
"""Least number of parts of a data set with at least this many shards."""

MAX_PARTS = 64
"""Most parts of a data set."""

NUMBERS_PER_SHARD = 80_000
"""Limits the number of parts, down to MIN_PARTS, so that adding them takes at most this many additions
per shard."""


class ShardLoss(Protocol):
    """A loss that is summed over shards."""

    def __call__(
        self, shard: Compiled, placed: Any, automaton: Automaton, buffers: Buffers, counts: Any
    ) -> float:
        """Add the shard's counts under placed weights to `counts`. RETURNS (float): its part of the loss."""
        ...


def parts_of(shards: Sequence[Shard], extent: int) -> list[Sequence[Shard]]:
    """Cut a data set into 2^k parts, as many as cost little.

    Shard i is in the part whose number has the last k bits of i, reversed: neighbours, which are similar, are
    far apart, and every range of parts is a sample of all shards.

    extent (int): how many numbers a sum has. There are no more parts than shards, but always at least
        one.
    """
    affordable = NUMBERS_PER_SHARD * len(shards) // max(extent, 1)
    number = min(MAX_PARTS, max(MIN_PARTS, affordable))
    k = max(1, min(number, len(shards))).bit_length() - 1
    first = [int(f"{part:0{k}b}"[::-1], 2) for part in range(1 << k)]
    return [shards[start :: 1 << k] for start in first]


class PartialSum(NamedTuple):
    """The sum of the parts below one node of the tree."""

    first: int
    """Number of the first of these parts."""
    size: int
    """Number of parts, a power of two."""
    loss: float
    """Nats."""
    counts: Any
    """Counts in the layout's arrangement."""


class ReductionTree:
    """Partial sums that wait for their neighbours. Any thread may add one.

    layout (Layout): layout of the counts.
    free (Callable[[Any], None]): receives counts that have been added to others, and are zero again.
    """

    def __init__(self, layout: Layout, free: Callable[[Any], None]) -> None:
        self._layout, self._free = layout, free
        self._waiting: dict[tuple[int, int], PartialSum] = {}  # by first and size
        self._lock = Lock()

    def put(self, partial: PartialSum) -> None:
        """Add a sum to its neighbour if that is ready, and continue with the result up the tree."""
        while True:
            first, size = partial.first, partial.size
            with self._lock:
                other = self._waiting.pop((first ^ size, size), None)
                if other is None:
                    self._waiting[first, size] = partial
                    return
            left, right = (partial, other) if first < other.first else (other, partial)
            self._layout.merge(left.counts, right.counts)
            self._free(right.counts)
            partial = PartialSum(left.first, 2 * size, left.loss + right.loss, left.counts)

    @property
    def total(self) -> PartialSum:
        """The sum of all parts, once all are ready."""
        [total] = self._waiting.values()
        return total


class ShardSum:
    """A sum over a data set, computed repeatedly at different weights by threads of this process, each of
    which takes the next part when it is free.

    shards (Sequence[Shard]): the data set. loss (ShardLoss): the loss that is summed.
    layout (Layout): how the shards arrange weights. automaton (Automaton): that of all shards.
    threads (int): number of threads, at least 1.
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
        self._idle = deque[Buffers]()  # one for each thread while none runs

    def add_into(self, gradient: Vector, weights: Vector) -> float:
        """Add the counts of all shards at these weights, both float64 [F].

        RETURNS (float): the loss. RAISES: the exception of the first part that fails.
        """
        self._placed = self._layout.place_weights(weights, self._placed)
        tree = ReductionTree(self._layout, self._spare.append)
        self._threads.map(partial(self._add_part, tree), range(len(self.parts)))
        total = tree.total
        self._layout.add_collected_into(gradient, total.counts)
        self._spare.append(total.counts)
        return total.loss

    def release(self) -> None:
        """Free memory that the next sum allocates again."""
        for part in self.parts:
            for shard in part:
                shard.release()
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
    """Pop an object from a pool; None if it is empty."""
    try:
        return pool.pop()
    except IndexError:
        return None
