"""Who works through a data set: threads here; others have the members of `Workers`.

The data set is cut into *parts*, the leaves of a few binary trees, whose sums are added up as the
trees say (`forest.py`). Which shards are in which part depends on the data set alone, and so does,
bit for bit, the result.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.data_set import Layout, Shard
from spacy_hocrf.engine.forest import Forest, Hand, Sum
from spacy_hocrf.engine.forward_backward import Buffers
from spacy_hocrf.engine.threads import Threads
from spacy_hocrf.engine.turns import Turns
from spacy_hocrf.errors import Errors

__all__ = [
    "STRANDS",
    "Job",
    "Parts",
    "Task",
    "Team",
    "ThreadTeam",
    "ThreadWorkers",
    "Workers",
    "check_workers",
]

STRANDS = 4
"""Trees of a data set that has so many shards; a data set of one part each has no use for more
workers than this.
"""

MOST_PARTS = 64
"""Parts of the largest data sets."""

NUMBERS_PER_SHARD = 40_000
"""A data set has so few parts that not more numbers are added for every shard. With four times as many
an evaluation with one thread takes 3 to 4 % longer (CoNLL-2000, default features).
"""

THREADS_PER_PART = 2
"""With more, threads wait for each other, and for the interpreter's lock. An evaluation on 16 cores
(CoNLL-2000, default features, four parts, order 1 and 2) takes 74 and 75 ms with 4 threads, 58 and 50 with
8, 102 and 48 with 10.
"""

Vector = NDArray[np.float64]


class Task(Protocol):
    """What is done with each shard; a function of a module, so that other processes find it."""

    def __call__(
        self, shard: Shard, placed: Any, automaton: Automaton, buffers: Buffers, counts: Any
    ) -> float:
        """Add what the shard counts under placed weights. RETURNS (float): its part of the loss."""
        ...


class Parts:
    """The shards of a data set, by part: those of a tree are neighbours.

    shards (Sequence[Shard]): all of them, in order.
    trees, leaves (int): so many trees, each of so many parts.
    """

    def __init__(self, shards: Sequence[Shard], trees: int, leaves: int) -> None:
        self._shards, self.trees, self.leaves = shards, trees, leaves

    @classmethod
    def of(cls, shards: Sequence[Shard], extent: int, number: int | None = None) -> "Parts":
        """Neighbours, which are alike, in different parts.

        extent (int): numbers that a sum has.
        number (Optional[int]): of parts, 4 times a power of two; None for as many as cost little.
        """
        if number is None:
            number = min(MOST_PARTS, NUMBERS_PER_SHARD * len(shards) // max(extent, 1))
        wanted = max(1, min(number, len(shards)) // STRANDS)
        return cls(shards, min(STRANDS, len(shards)), 1 << (wanted.bit_length() - 1))

    def __len__(self) -> int:
        """Number of parts."""
        return self.trees * self.leaves

    def __iter__(self) -> Iterator[Sequence[Shard]]:
        """All of them, in order."""
        return map(self.part, range(len(self)))

    def part(self, number: int) -> Sequence[Shard]:
        """The shards of a part, in order."""
        tree, leaf = divmod(number, self.leaves)
        return self._shards[tree + leaf * self.trees :: len(self)]


@dataclass(frozen=True)
class Job:
    """What is to be summed, again and again at other weights.

    parts (Parts): the data set. task (Task): what is done with its shards.
    layout (Layout): how the shards want the weights. automaton (Automaton): of all of them.
    visit (Callable[[Shard], None]): called with each shard once, before the first sum.
    """

    parts: Parts
    task: Task
    layout: Layout
    automaton: Automaton
    visit: Callable[[Shard], None]


class Workers(Protocol):
    """Settings of who works: `[components.*.trainer.workers]`."""

    @property
    def parts(self) -> int | None:
        """So many parts of the data set; None for as many as cost little."""
        ...

    def scatter(self, job: Job) -> "Team":
        """Hand the shards out."""
        ...


class Team(ABC):
    """Those who have the shards of a data set.

    job (Job): what they sum. threads (Threads): in which they work, or are waited for.
    """

    keeps: ClassVar[bool] = False
    """Does each of them keep what it has worked on, and should have the same parts again?"""

    def __init__(self, job: Job, threads: Threads) -> None:
        self.job = job
        self._threads = threads

    def add_into(self, gradient: Vector, weights: Vector) -> list[float]:
        """Add the counts of all shards at some weights, both float64 [F].

        RETURNS (list[float]): the losses of the trees.
        RAISES: what the first part that fails raises.
        """
        parts = self.job.parts
        collector = _Collector(self.job.layout, parts.trees, gradient, self._free)
        hands = self._hands(weights)
        forest = Forest(
            parts.trees,
            parts.leaves,
            lambda tree, found: collector.put(tree, self.fetch(found)),
            len(hands) if self.keeps else 1,
        )
        self._run(forest, hands)
        forest.check()
        return [collector.losses[tree] for tree in range(parts.trees)]

    def fetch(self, found: Sum) -> Sum:
        """A sum with its counts, wherever they are. RAISES (Lost): if they are gone."""
        return found

    def join(self, left: Sum, right: Sum) -> Sum:
        """The sum of two neighbours, which are used up."""
        self.job.layout.merge(left.counts, right.counts)
        self._free(right.counts)
        return Sum(left.loss + right.loss, left.counts)

    def _run(self, forest: Forest, hands: Sequence[Hand]) -> None:
        """All work until all is done."""
        self._threads.map(lambda each: forest.work(hands[each], each), range(len(hands)))

    @abstractmethod
    def rest(self) -> None:
        """Give back memory that the next sum takes again."""

    @abstractmethod
    def _hands(self, weights: Vector) -> Sequence[Hand]:
        """Those who work, who have these weights."""

    @abstractmethod
    def _free(self, counts: Any) -> None:
        """Take back counts that are zero again."""


@dataclass(frozen=True)
class ThreadWorkers:
    """Threads of this process.

    number (int): how many, 1 or more.
    parts (Optional[int]): that the data set is cut into, 4 times a power of two; up to twice as many
        threads are used. None for as many as cost little. Another number changes the last bits of the
        sums, another number of threads does not.
    """

    number: int
    parts: int | None = None

    def scatter(self, job: Job) -> "ThreadTeam":
        """Nothing is handed out: threads see all."""
        return ThreadTeam(job, self.number)


def check_workers(number: Any, parts: Any) -> None:
    """RAISES (ValueError): H048 unless there are 0 or more workers, and 4, 8, 16, … parts or None."""
    if type(number) is not int or number < 0:
        expected = "a whole number of at least 0"
        raise ValueError(Errors.H048.format(name="number", found=repr(number), expected=expected))
    if parts is not None and (type(parts) is not int or parts < 4 or parts & (parts - 1)):
        expected = "null, 4, 8, 16, 32, 64 or another power of two"
        raise ValueError(Errors.H048.format(name="parts", found=repr(parts), expected=expected))


class ThreadTeam(Team):
    """Threads of this process. Each has a part to itself; where there are fewer parts than threads, all
    work on all of them.

    count (int): how many, 1 or more; no more are used than there are shards, or twice as many as parts.
    """

    def __init__(self, job: Job, count: int) -> None:
        most = min(THREADS_PER_PART * len(job.parts), sum(map(len, job.parts)))
        super().__init__(job, Threads(min(count, max(1, most))))
        for part in job.parts:
            for shard in part:
                job.visit(shard)
        self._placed: Any = None
        self._spare: deque[Any]  # counts that have been used up
        self._crew: list[Buffers]  # one for each thread
        self._clear()

    def rest(self) -> None:
        """Give back memory that the next sum takes again."""
        for part in self.job.parts:
            for shard in part:
                shard.rest()
        self._clear()

    def sum_of(self, shards: Sequence[Shard], buffers: Buffers) -> Sum:
        """Of a part."""
        loss, counts = 0.0, self._nothing()
        for shard in shards:
            loss += self._act(shard, buffers, counts)
        return Sum(loss, counts)

    def _act(self, shard: Shard, buffers: Buffers, counts: Any) -> float:
        return self.job.task(shard, self._placed, self.job.automaton, buffers, counts)

    def _nothing(self) -> Any:
        return self.job.layout.nothing(self._spare.pop() if self._spare else None)

    def _run(self, forest: Forest, hands: Sequence[Hand]) -> None:
        parts = self.job.parts
        if self._threads.count > len(parts):
            turns = Turns(list(parts), self._nothing, self._act)
            self._threads.map(turns.work, self._crew)
            sums = turns.sums()
            hands = [_ThreadHand(self, buffers, sums) for buffers in self._crew]
        super()._run(forest, hands)

    def _hands(self, weights: Vector) -> Sequence[Hand]:
        self._placed = self.job.layout.place_weights(weights, self._placed)
        return [_ThreadHand(self, buffers) for buffers in self._crew]

    def _free(self, counts: Any) -> None:
        self._spare.append(counts)

    def _clear(self) -> None:
        self._placed, self._spare = None, deque()
        self._crew = [Buffers(self.job.automaton) for _ in range(self._threads.count)]


class _ThreadHand(NamedTuple):
    """One of the threads."""

    team: ThreadTeam
    buffers: Buffers
    sums: Sequence[Sum] | None = None  # of all parts, if they are there already

    def leaf(self, number: int) -> Sum:
        """Of one part."""
        if self.sums is not None:
            return self.sums[number]
        return self.team.sum_of(self.team.job.parts.part(number), self.buffers)

    def join(self, left: Sum, right: Sum) -> Sum:
        """Of two neighbours, which are used up."""
        return self.team.join(left, right)


class _Collector:
    """Adds the counts of trees to a vector as soon as those of the trees before have been added, and, if
    some are handed on, those of the next one are there.

    layout (Layout), trees (int), gradient (float64 [F]): what they are of, how many, the vector.
    free (Callable[[Any], None]): takes counts that have been collected.
    """

    def __init__(
        self, layout: Layout, trees: int, gradient: Vector, free: Callable[[Any], None]
    ) -> None:
        self.losses: dict[int, float] = {}
        self._layout, self._trees, self._gradient, self._free = layout, trees, gradient, free
        self._lock = Lock()
        self._finished: dict[int, Any] = {}  # counts of trees that wait for those before them
        self._collected = 0  # trees

    def put(self, tree: int, found: Sum) -> None:
        """The sum of a tree."""
        with self._lock:
            self.losses[tree] = found.loss
            self._finished[tree] = found.counts
            while self._collected in self._finished:
                after = self._collected + 1
                others = None
                if self._layout.hands_on and after < self._trees:
                    if after not in self._finished:
                        break
                    others = self._finished[after]
                ready = self._finished.pop(self._collected)
                self._layout.add_collected_into(self._gradient, ready, others)
                self._free(ready)
                self._collected = after
