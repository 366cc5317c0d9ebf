"""Threads that wait for work: starting them anew for every pass over some vectors would take longer
than the pass.
"""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

__all__ = ["Threads"]

PROCESSORS = os.cpu_count() or 1
"""Threads that can run at the same time."""

Item = TypeVar("Item")
Result = TypeVar("Result")


class Threads:
    """The caller's own thread and some that help it, started when there is first something to
    share, ended with this object.

    count (int): 1 or more, the caller's included; no more than PROCESSORS, as others would only wait. A copy,
        and a forked process, start their own.
    """

    def __init__(self, count: int = 1) -> None:
        self.count = min(count, PROCESSORS)
        self._pool: ThreadPoolExecutor | None = None
        self._process = 0

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """The function's results in the order of the items. Who is free takes the next one.

        RAISES: what the first item that fails raises; those after it may not have been begun.
        """
        if self.count == 1:
            return [*map(function, items)]
        waiting: SimpleQueue[tuple[int, Item]] = SimpleQueue()
        results: dict[int, Result] = {}
        errors: dict[int, BaseException] = {}
        for numbered in enumerate(items):
            waiting.put(numbered)

        def work() -> None:
            while not errors:
                try:
                    number, item = waiting.get_nowait()
                except Empty:
                    return
                try:
                    results[number] = function(item)
                except BaseException as error:
                    errors[number] = error

        helpers = [
            self._started().submit(work) for _ in range(min(self.count, waiting.qsize()) - 1)
        ]
        work()
        wait(helpers)
        if errors:
            try:
                raise errors[min(errors)]
            finally:
                errors.clear()  # the traceback's frames know them: a cycle that would keep all alive
        return [results[number] for number in range(len(results))]

    def _started(self) -> ThreadPoolExecutor:
        if self._pool is None or self._process != os.getpid():
            self._pool, self._process = ThreadPoolExecutor(self.count - 1), os.getpid()
        return self._pool

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pool": None}
