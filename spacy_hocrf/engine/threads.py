"""Threads that wait for work: starting them anew for every pass over some vectors would take longer than the pass."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

__all__ = ["Threads"]

Item = TypeVar("Item")
Result = TypeVar("Result")


class Threads:
    """The caller's own thread and some that help it, started when there is first something to share, ended with this object.

    count (int): 1 or more, the caller's included. A copy, and a forked process, start their own.
    """

    def __init__(self, count: int = 1) -> None:
        self.count = count
        self._pool: ThreadPoolExecutor | None = None
        self._process = 0

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """The function's results in the order of the items. Who is free takes the next one; the first error is raised."""
        waiting = SimpleQueue[tuple[int, Item]]()
        results: dict[int, Result] = {}
        for numbered in enumerate(items):
            waiting.put(numbered)

        def work() -> None:
            while True:
                try:
                    number, item = waiting.get_nowait()
                except Empty:
                    return
                results[number] = function(item)

        helpers = [self._started().submit(work) for _ in range(min(self.count, waiting.qsize()) - 1)]
        try:
            work()
        finally:
            wait(helpers)
        for helper in helpers:
            helper.result()
        return [results[number] for number in range(len(results))]

    def _started(self) -> ThreadPoolExecutor:
        if self._pool is None or self._process != os.getpid():
            self._pool, self._process = ThreadPoolExecutor(self.count - 1), os.getpid()
        return self._pool

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pool": None}
