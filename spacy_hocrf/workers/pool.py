"""Tasks for several workers, any of which may die at any moment.

No two workers share a lock, a queue or a pipe, which one that is killed would leave locked, or half read, for
the others. So nobody but a dead worker is replaced, and what it had is done again.
"""

from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from traceback import format_exc
from typing import Any, NamedTuple

__all__ = ["DEATHS", "Failed", "Pool", "answered"]

AHEAD = 2
"""Tasks that are read for each worker, with the one that it is at."""
DEATHS = 3
"""So often workers may die of one task."""


class Failed(NamedTuple):
    """Answer of a worker that has met an error."""

    error: Exception
    traceback: str


class Pool(ABC):
    """n workers by number, from 0 on, each of which begins with its first task.

    What a worker says of a task must not be None, which stands for its death.
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self._begun = set[int]()

    def map(self, tasks: Iterable[Any], fatal: Callable[[Any], str]) -> Iterator[Any]:
        """Answers of workers to all tasks, in any order. The first n tasks go to one worker each,
        in order.

        fatal (Callable[[Any], str]): what to say if workers die of a task again and again.
        RAISES (ValueError): that. RAISES (Exception): what a worker has met. The pool has to be ended then.
        """
        taken = [deque[tuple[int, Any]]() for _ in range(self.n)]
        left, deaths = enumerate(tasks), Counter[int]()
        while True:
            worker = min(range(self.n), key=lambda each: len(taken[each]))
            numbered = next(left, None) if len(taken[worker]) < AHEAD else None
            if numbered is not None:
                taken[worker].append(numbered)
                self._give(worker, numbered[1])
                continue
            if not any(taken):
                return
            worker, said = self._wait()
            if isinstance(said, Failed):
                raise said.error from RuntimeError(said.traceback)
            if said is not None:
                taken[worker].popleft()
                yield said
                continue
            number, task = taken[worker][0]
            deaths[number] += 1
            if deaths[number] == DEATHS:
                raise ValueError(fatal(task))
            self._begun.discard(worker)
            for _, task in taken[worker]:
                self._give(worker, task)

    def end(self) -> None:
        """Let no worker be left; the next task has others."""
        for worker in self._begun:
            self._end(worker)
        self._begun.clear()

    def _give(self, worker: int, task: Any) -> None:
        """Hand a worker a task, which is done after those that it has; nothing happens if it is dead."""
        if worker not in self._begun:
            self._end(worker)
            self._begin(worker)
            self._begun.add(worker)
        self._send(worker, task)

    @abstractmethod
    def _begin(self, worker: int) -> None:
        """Let there be a new worker of this number."""

    @abstractmethod
    def _send(self, worker: int, task: Any) -> None:
        """Hand a worker a task; nothing happens if it is dead."""

    @abstractmethod
    def _wait(self) -> tuple[int, Any]:
        """Wait for the next task that is done: the worker, and what it says; None if it has died."""

    @abstractmethod
    def _end(self, worker: int) -> None:
        """Let there be no worker of this number."""


def answered(answer: Callable[[Any], Any], task: Any) -> Any:
    """Answer of a worker to a task: the result, or the error it has met."""
    try:
        return answer(task)
    except Exception as error:
        return Failed(error, format_exc())
