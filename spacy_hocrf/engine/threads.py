"""A pool of waiting threads: starting new ones for every pass over vectors would take longer
than the pass.
"""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

__all__ = ["Threads"]

PROCESSORS = os.cpu_count() or 1
"""Number of threads that can run at the same time."""

Item = TypeVar("Item")
Result = TypeVar("Result")


class Threads:
    """The caller's own thread and helpers, which are started when they are first needed, and
    end with this object.

    count (int): at least 1, including the caller's; limited to PROCESSORS, since more would only wait. A
        copy, and a forked process, start their own.
    """

    def __init__(self, count: int = 1) -> None:
        self.count = min(count, PROCESSORS)
        self._pool: ThreadPoolExecutor | None = None
        self._process = 0

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """Return the function's results in the order of the items. Each thread takes the next item when free.

        RAISES: the exception of the first item that fails; later items may not have been started.
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
                errors.clear()  # the traceback's frames refer to them: a reference cycle
        return [results[number] for number in range(len(results))]

    def _started(self) -> ThreadPoolExecutor:
        if self._pool is None or self._process != os.getpid():
            self._pool, self._process = ThreadPoolExecutor(self.count - 1), os.getpid()
        return self._pool

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pool": None}
