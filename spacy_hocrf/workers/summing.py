"""Workers that share the sums of training: `spacy-hocrf.Processes.v1` and `spacy-hocrf.Ray.v1`.

Each worker has a range of neighbouring parts of the data set, adds them up as the reduction tree says
(`engine/reduction.py`), and returns the sums of the complete subtrees in its range; the rest of the tree is
added here. The sums are those of threads to the last bit; a range that is lost with its worker is done again.
"""

import os
import pickle
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, ClassVar, NamedTuple
from weakref import WeakSet, finalize

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.forward_backward import Buffers
from spacy_hocrf.engine.reduction import PartialSum, ReductionTree, SumJob, sum_of
from spacy_hocrf.errors import Errors
from spacy_hocrf.workers.folders import WorkingFolder
from spacy_hocrf.workers.mapped import (
    mapped_objects,
    objects_in,
    pieces_of,
    read_mapped,
    write_pieces,
)
from spacy_hocrf.workers.pool import DEATHS, Failed, Pool
from spacy_hocrf.workers.processes import ProcessPool
from spacy_hocrf.workers.ray import RayPool, check_ray, connected

__all__ = ["ProcessSumming", "ProcessWorkers", "RaySumming", "RayWorkers"]

Vector = NDArray[np.float64]

COMMON, WEIGHTS, PART, COUNTS = "common", "weights", "part-{}", "counts-{}-{}"
"""Names of files."""


@dataclass(frozen=True)
class ProcessWorkers:
    """Processes of this machine, each with one thread: `spacy-hocrf.Processes.v1`.

    number (int): how many; 0 for as many as the machine has processors.
    parts (Optional[int]): that the corpus is cut into, a power of two: with fewer parts than processes some
        have nothing to do. null for as many as cost little. Another number changes the last bits of the
        weights, another number of processes does not.
    folder (Optional[str]): where the files lie meanwhile; null for the system's folder of temporary files.
    RAISES (ValueError): H048 for numbers out of range.
    """

    number: int = 0
    parts: int | None = None
    folder: str | None = None

    def __post_init__(self) -> None:
        _check(self.number, self.parts)

    def scatter(self, job: SumJob) -> "ProcessSumming":
        """Write the shards to files."""
        return ProcessSumming(job, self.number or os.cpu_count() or 1, self.folder)


@dataclass(frozen=True)
class RayWorkers:
    """Actors with a CPU each: `spacy-hocrf.Ray.v1`. The cluster is the one that RAY_ADDRESS names, or one of
    this machine that ends with the training.

    number (int): how many, but no more than the cluster has CPUs, where others would wait for ever; 0 for as
        many.
    parts (Optional[int]): as for `ProcessWorkers`.
    folder (Optional[str]): where files lie meanwhile, on each machine; None for the system's folder of
        temporary files. They have no names, and are gone with the process that has them.
    RAISES (ValueError): H048 for numbers out of range, H352 if Ray is not installed.
    """

    number: int = 0
    parts: int | None = None
    folder: str | None = None

    def __post_init__(self) -> None:
        _check(self.number, self.parts)
        check_ray()

    def scatter(self, job: SumJob) -> "RaySumming":
        """Send the shards to actors. RAISES (ValueError): H353 without a cluster."""
        with ExitStack() as stack:
            ray = stack.enter_context(connected(self.number or None))
            cpus = max(1, int(ray.cluster_resources().get("CPU", 1)))
            summing = RaySumming(job, ray, min(self.number or cpus, cpus), self.folder)
            finalize(summing, stack.pop_all().close)
            return summing


def _check(number: Any, parts: Any) -> None:
    """RAISES (ValueError): H048 unless there are 0 or more workers, and 1, 2, 4, 8, … parts or None."""
    if type(number) is not int or number < 0:
        expected = "a whole number of at least 0"
        raise ValueError(Errors.H048.format(name="number", found=repr(number), expected=expected))
    if parts is not None and (type(parts) is not int or parts < 1 or parts & (parts - 1)):
        expected = "null, or a power of two"
        raise ValueError(Errors.H048.format(name="parts", found=repr(parts), expected=expected))


class _Summing:
    """The workers of one job, in a pool that a subclass has.

    job (SumJob): what they sum. number (int): how many; no more than there are parts are used.
    RAISES (ValueError): H255 if something cannot be handed to other processes.
    """

    pool: Pool

    def __init__(self, job: SumJob, number: int) -> None:
        size, layout = len(job.parts), job.layout
        number = min(number, size)
        bounds = [size * worker // number for worker in range(number + 1)]
        self.job = job
        self.ranges = [range(*ends) for ends in pairwise(bounds)]
        self.names = _names(job.automaton, layout, layout.shared)
        common = job.loss, job.automaton, layout.outline, layout.shared
        try:
            self.common = pieces_of(common, {})
        except (pickle.PicklingError, TypeError, AttributeError, NotImplementedError) as error:
            found = ", ".join(sorted({type(each).__name__ for each in layout.shared}))
            raise ValueError(Errors.H255.format(found=found, reason=error)) from error

    def rest(self) -> None:
        """The workers end; the next sum starts others."""
        self.pool.end()

    def compiled(self, number: int) -> list[bytes | memoryview]:
        """The shards of a part as workers take them; nothing of them is kept here."""
        shards = self.job.parts[number]
        pieces = pieces_of([shard.compiled for shard in shards], self.names)
        for shard in shards:
            shard.rest()
        return pieces

    def visit(self, number: int) -> None:
        """Let each shard of a part be visited once, before it is compiled."""
        for shard in self.job.parts[number]:
            self.job.visit(shard)

    def add(self, gradient: Vector, tasks: Iterable[Any], view: Callable[[Any], Any]) -> float:
        """Add what workers return of their ranges. RETURNS (float): the loss.

        view (Callable[[Any], Any]): counts as the layout has them, of those that a worker returns.
        RAISES (ValueError): H253 if workers die again and again. RAISES (Exception): what one has met.
        """
        layout = self.job.layout
        tree = ReductionTree(layout, lambda counts: None)
        try:
            for sums in self.pool.map(tasks, _fatal):
                for each in sums:
                    tree.put(each._replace(counts=view(each.counts)))
        except BaseException:
            self.rest()  # others are still at work
            raise
        [total] = tree.sums
        layout.add_collected_into(gradient, total.counts)
        return total.loss


class ProcessSumming(_Summing):
    """Processes with the shards of a job in files that they map, as they do the weights and the counts.

    folder (Optional[str]): where to make a folder for the files.
    RAISES (OSError): as the system does, if there is no place for the files.
    """

    def __init__(self, job: SumJob, number: int, folder: str | None) -> None:
        super().__init__(job, number)
        kept = WorkingFolder("hocrf-training-", folder)
        self.folder = kept.path
        self.pool = ProcessPool(len(self.ranges), partial(_FileSums, self.folder), self.folder)
        self.close = finalize(self, _close, self.pool, kept)
        """Ends the processes and removes the files."""
        try:
            write_pieces(self.folder / COMMON, self.common)
            for part in range(len(job.parts)):
                self.visit(part)
                self._write(part)
            weights = _numbers(self.folder / WEIGHTS, job.layout.extent)
        except BaseException:
            self.close()
            raise
        self._placed = job.layout.view(weights)
        self._counts = dict[str, Any]()  # by the names of their files

    def add_into(self, gradient: Vector, weights: Vector) -> float:
        """Add the counts of all shards at some weights, both float64 [F]; a file that is damaged is written
        again.

        RETURNS (float): the loss. RAISES: as `add`.
        """
        self.job.layout.place_weights(weights, self._placed)
        damages = Counter[int]()
        while True:
            try:
                return self.add(gradient, self.ranges, self._view)
            except _DamagedPart as error:
                damages[error.number] += 1
                if damages[error.number] == DEATHS:
                    raise
                self._write(error.number)

    def _view(self, name: str) -> Any:
        if name not in self._counts:
            numbers = _numbers(self.folder / name, self.job.layout.extent)
            self._counts[name] = self.job.layout.view(numbers)
        return self._counts[name]

    def _write(self, number: int) -> None:
        write_pieces(self.folder / PART.format(number), self.compiled(number))


class RaySumming(_Summing):
    """Actors that are sent the shards of a job as they are compiled, and keep them in files.

    ray (Module): connected. folder (Optional[str]): where actors have files.

    Actors hold their CPUs for as long as they are there, so those of a job that has nothing to do go when
    another one of this process begins.
    """

    _all: ClassVar["WeakSet[RaySumming]"] = WeakSet()

    def __init__(self, job: SumJob, ray: Any, number: int, folder: str | None) -> None:
        super().__init__(job, number)
        make = partial(_KeptSums, _joined(self.common), folder)
        self.pool: _KeepingPool = _KeepingPool(len(self.ranges), ray, make)
        self._placed: Any = None
        self._busy = False
        self._make_room()
        try:
            for worker, parts in enumerate(self.ranges):
                for number in parts:
                    self.visit(number)
                    self.pool.keep(worker, self._part(number))
        except BaseException:
            self.rest()
            raise
        self._all.add(self)

    def add_into(self, gradient: Vector, weights: Vector) -> float:
        """Add the counts of all shards at some weights, both float64 [F].

        RETURNS (float): the loss. RAISES: as `add`.
        """
        layout = self.job.layout
        self._make_room()
        self._placed = layout.place_weights(weights, self._placed)
        placed = [self.pool.ray.put(self._placed.numbers)]
        tasks = (_RangeTask(parts, placed, self._part) for parts in self.ranges)
        self._busy = True
        try:
            # what lies in the object store cannot be written to
            return self.add(gradient, tasks, lambda numbers: layout.view(np.array(numbers)))
        finally:
            self._busy = False

    def _part(self, number: int) -> "_Part":
        return _Part(number, _joined(self.compiled(number)))

    def _make_room(self) -> None:
        """The actors of jobs that have nothing to do go."""
        for other in list(self._all):
            if other is not self and not other._busy:
                other.rest()


class _Part(NamedTuple):
    """A part that an actor is to keep."""

    number: int
    data: Any  # uint8 [n]


class _RangeTask(NamedTuple):
    """Parts that an actor is to sum."""

    parts: range
    placed: list[Any]  # reference to the placed weights
    part: Callable[[int], _Part]  # for an actor that has it not


class _KeepingPool(RayPool):
    """Actors, and which parts each of them has."""

    def __init__(self, n: int, ray: Any, make: Callable[[], Callable[[Any], Any]]) -> None:
        super().__init__(n, ray, make)
        self.kept = dict[int, set[int]]()

    def keep(self, worker: int, part: _Part) -> None:
        """Send an actor a part, and wait until it has that, or has died.

        RAISES (OSError): if the actor has no place for it.
        """
        self._give(worker, part)
        self.kept[worker].add(part.number)
        said = self._said(self._actors[worker][1].pop())
        if isinstance(said, Failed):
            raise said.error from RuntimeError(said.traceback)

    def _begin(self, worker: int) -> None:
        super()._begin(worker)
        self.kept[worker] = set()

    def _send(self, worker: int, task: Any) -> None:
        if isinstance(task, _RangeTask):
            for number in task.parts:
                if number not in self.kept[worker]:
                    self.keep(worker, task.part(number))
            task = task.parts, task.placed
        super()._send(worker, task)


class _PartSums(ABC):
    """Sums over parts of a data set, in a worker, which is without spaCy.

    common (Tuple[ShardLoss, Automaton, Outline, Tuple]): what is summed, with which states and arcs, how
        numbers are placed, and the objects that shards have in common.
    """

    def __init__(self, common: tuple[Any, ...]) -> None:
        self._loss, self._automaton, self.outline, shared = common
        names = _names(self._automaton, self.outline, shared)
        objects = {id(each): each for each in (self._automaton, self.outline, *shared)}
        self.known = {name: objects[number] for number, name in names.items()}
        """What is in no file of a part, by what it is called there."""
        self._buffers = Buffers(self._automaton)
        self._counts = dict[int, list[Any]]()  # by the first part of a range

    def sums(self, parts: range, placed: Any) -> list[PartialSum]:
        """Sums of the complete subtrees in a range of parts, at placed weights."""
        counts = self._counts.setdefault(parts.start, [])
        for each in counts:
            each.numbers.fill(0.0)
        spare = list(counts)
        tree = ReductionTree(self.outline, spare.append)
        for number in parts:
            if not spare:
                counts.append(self.zeros(parts.start, len(counts)))
                spare.append(counts[-1])
            given = self._loss, placed, self._automaton, self._buffers, spare.pop()
            loss = sum_of(self.shards(number), *given)
            tree.put(PartialSum(number, 1, loss, given[-1]))
        return tree.sums

    @abstractmethod
    def shards(self, number: int) -> Sequence[Any]:
        """Shards of a part."""

    @abstractmethod
    def zeros(self, first: int, place: int) -> Any:
        """New counts.

        first (int): part of a range. place (int): among the counts that this range has.
        """


class _FileSums(_PartSums):
    """Part of a data set that a process has: files of a folder, mapped when they are needed.

    RAISES (ValueError): H252 if the file that all parts need is damaged.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(read_mapped(folder / COMMON, {}))
        self._folder = folder
        self._placed = self._mapped(WEIGHTS)
        self._parts = dict[int, Any]()

    def __call__(self, parts: range) -> list[PartialSum]:
        """Sums of complete subtrees, whose counts are in files of these names."""
        sums = self.sums(parts, self._placed)
        places = {id(counts): place for place, counts in enumerate(self._counts[parts.start])}
        names = [COUNTS.format(parts.start, places[id(each.counts)]) for each in sums]
        return [each._replace(counts=name) for each, name in zip(sums, names, strict=True)]

    def shards(self, number: int) -> Sequence[Any]:
        """Shards of a part. RAISES (_DamagedPart): if its file cannot be read."""
        if number not in self._parts:
            try:
                path = self._folder / PART.format(number)
                self._parts[number] = read_mapped(path, self.known)
            except ValueError as error:
                raise _DamagedPart(str(error), number) from error
        shards: Sequence[Any] = self._parts[number]
        return shards

    def zeros(self, first: int, place: int) -> Any:
        """Counts in a file, which may be there already, of a worker that has died."""
        counts = self._mapped(COUNTS.format(first, place))
        counts.numbers.fill(0.0)
        return counts

    def _mapped(self, name: str) -> Any:
        return self.outline.view(_numbers(self._folder / name, self.outline.extent))


class _DamagedPart(ValueError):
    """H252 for the file of a part."""

    @property
    def number(self) -> int:
        """Number of the damaged part."""
        return int(self.args[1])


class _KeptSums(_PartSums):
    """Part of a data set that an actor has.

    common (uint8 [n]): what all parts need.
    folder (Optional[str]): for files; None for the system's folder of temporary files.
    """

    def __init__(self, common: NDArray[np.uint8], folder: str | None) -> None:
        super().__init__(objects_in(memoryview(bytearray(common)), {}, "the object store"))
        self._folder = folder
        self._parts = dict[int, Any]()
        self._placed = self.outline.zeros()

    def __call__(self, task: Any) -> list[PartialSum]:
        """Sums of complete subtrees, with counts float64 [extent]; none of a part that is to be kept.

        task (Union[_Part, Tuple[range, List[ObjectRef]]]): a part, or a range and the placed weights.
        RAISES (OSError): if there is no place for a part.
        """
        if isinstance(task, _Part):
            with TemporaryFile(dir=self._folder) as file:
                file.write(task.data)
                file.flush()
                self._parts[task.number] = mapped_objects(file, self.known, f"part {task.number}")
            return []
        import ray

        parts, placed = task
        [self._placed.numbers[:]] = ray.get(placed)
        sums = self.sums(parts, self._placed)
        return [each._replace(counts=each.counts.numbers) for each in sums]

    def shards(self, number: int) -> Sequence[Any]:
        """Shards of a part that was sent."""
        shards: Sequence[Any] = self._parts[number]
        return shards

    def zeros(self, first: int, place: int) -> Any:
        """Counts of zero, in memory."""
        return self.outline.zeros()


def _names(automaton: Any, layout: Any, shared: Sequence[Any]) -> dict[int, str]:
    """Names of objects in the data of parts, by their `id`."""
    named = {id(each): f"shared {i}" for i, each in enumerate(shared)}
    return {**named, id(automaton): "automaton", id(layout): "layout"}


def _joined(pieces: Sequence[bytes | memoryview]) -> NDArray[np.uint8]:
    return np.frombuffer(b"".join(pieces), dtype=np.uint8)


def _numbers(path: Path, size: int) -> Vector:
    """Numbers in a file that several processes map, float64 [size]; zeros if it is new."""
    with path.open("ab") as file:
        file.truncate(8 * max(1, size))
        if hasattr(os, "posix_fallocate"):  # a full disk is an error here, and no crash later
            os.posix_fallocate(file.fileno(), 0, 8 * max(1, size))
    numbers = np.memmap(path, np.float64, "r+", shape=(max(1, size),))
    return numbers[:size].view(np.ndarray)


def _fatal(task: Any) -> str:
    """Message for a range of parts on which workers die."""
    parts = task if isinstance(task, range) else task.parts
    return Errors.H253.format(times=DEATHS, first=parts[0], last=parts[-1])


def _close(pool: Pool, folder: WorkingFolder) -> None:
    pool.end()
    folder.close()
