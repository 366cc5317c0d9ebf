"""A pool of worker processes that survives the death of any of them.

The workers are Python processes with the same `sys.path` as this one, and do not run its main script. Those
of `multiprocessing` run that script again, unless it is guarded by `if __name__ == "__main__"`, and `python
-m` prefers packages of the current folder, which may be others. No two workers share a lock, a queue or a
pipe, which a killed one would leave locked, or half read, for the others. So only the dead worker is
replaced, and its tasks are done again.
"""

import gc
import os
import pickle
import signal
import subprocess
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from traceback import format_exc
from typing import IO, Any, NamedTuple

__all__ = ["DEATHS", "ProcessPool", "work"]

AHEAD = 2
"""Number of tasks that are sent to each worker ahead, including its current one."""
DEATHS = 3
"""Number of workers that may die on one task before `map` gives up."""

CALL = """
import sys
from importlib import import_module
(module, function), sys.path[:] = sys.argv[1:3], sys.argv[3:]
getattr(import_module(module), function)()
"""
SIZE = 8
"""Number of bytes of a message's length prefix."""


class _Failed(NamedTuple):
    """Answer of a worker whose task raised an exception."""

    error: Exception
    traceback: str


class ProcessPool:
    """A pool of n worker processes, each started with its first task. They end with this process, however it
    ends, and ignore control-C.

    make (Callable[[], Callable[[Any], Any]]): called once in each worker; returns the function that does the
        tasks, whose results must not be None.
    """

    def __init__(self, n: int, make: Callable[[], Callable[[Any], Any]]) -> None:
        self.n, self._make = n, pickle.dumps(make)
        self._running = dict[int, "subprocess.Popen[bytes]"]()
        # the process and its message; None when it has ended
        self._answers = SimpleQueue[tuple[Any, Any]]()

    def map(self, tasks: Iterable[Any], fatal: Callable[[Any], str]) -> Iterator[Any]:
        """Yield the results of all tasks, in any order. The first n tasks go to one worker each, in order.

        fatal (Callable[[Any], str]): message if workers die repeatedly on a task.
        RAISES (ValueError): with that message. RAISES (Exception): an exception of a worker. The pool must be
            ended then.
        """
        queued = [deque[tuple[int, Any]]() for _ in range(self.n)]
        numbered_tasks, deaths = enumerate(tasks), Counter[int]()
        while True:
            worker = min(range(self.n), key=lambda i: len(queued[i]))
            numbered = next(numbered_tasks, None) if len(queued[worker]) < AHEAD else None
            if numbered is not None:
                queued[worker].append(numbered)
                self._send(worker, numbered[1])
                continue
            if not any(queued):
                return
            worker, answer = self._wait()
            if isinstance(answer, _Failed):
                raise answer.error from RuntimeError(answer.traceback)
            if answer is not None:
                queued[worker].popleft()
                yield answer
                continue
            number, task = queued[worker][0]
            deaths[number] += 1
            if deaths[number] == DEATHS:
                raise ValueError(fatal(task))
            self._end(worker)
            for _, task in queued[worker]:
                self._send(worker, task)

    def end(self) -> None:
        """End all workers; the next task starts new ones."""
        for worker in [*self._running]:
            self._end(worker)

    def _send(self, worker: int, task: Any) -> None:
        """Queue a task for a worker, which is started if it is not running; nothing happens if it is dead."""
        if worker not in self._running:
            call = ["-c", CALL, work.__module__, work.__name__, *sys.path]
            process = subprocess.Popen(
                [sys.executable, *call],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,  # signals to the process group reach only this process
            )
            self._running[worker] = process
            self._write(worker, self._make)
            Thread(target=_listen, args=(process, self._answers), daemon=True).start()
        self._write(worker, pickle.dumps(task))

    def _wait(self) -> tuple[int, Any]:
        """Wait for the next message: the worker's number and the message, or None if the worker died."""
        while True:
            process, answer = self._answers.get()
            for worker, current in self._running.items():
                if current is process:  # it has not been ended meanwhile
                    return worker, answer

    def _end(self, worker: int) -> None:
        self._write(worker, b"")
        process = self._running.pop(worker)
        assert process.stdin is not None
        with suppress(OSError):
            process.stdin.close()
        process.wait()

    def _write(self, worker: int, message: bytes) -> None:
        stream = self._running[worker].stdin
        assert stream is not None
        with suppress(OSError):
            stream.write(len(message).to_bytes(SIZE, "little") + message)
            stream.flush()


def _listen(process: "subprocess.Popen[bytes]", answers: "SimpleQueue[tuple[Any, Any]]") -> None:
    """Queue the messages of a worker, and None when it has ended."""
    assert process.stdout is not None
    with process.stdout as stream:
        try:
            while True:
                answers.put((process, pickle.load(stream)))
        except Exception:  # the worker has died, or its message is damaged
            process.kill()
            answers.put((process, None))


def work() -> None:
    """Main function of a worker: do the tasks from standard input until it is closed. Printed output goes to
    standard error.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles it, and closes the input
    descriptor = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    messages = SimpleQueue[bytes]()
    reader = Thread(target=_read_ahead, args=(sys.stdin.buffer, messages), daemon=True)
    reader.start()
    make, do = messages.get(), None
    with suppress(OSError), os.fdopen(descriptor, "wb") as output:  # until the parent is gone
        while True:
            task = messages.get()
            try:
                if do is None:
                    do = pickle.loads(make)()
                    gc.freeze()  # the pipeline stays: spare the garbage collector
                answer = do(pickle.loads(task))
            except Exception as error:
                answer = _Failed(error, format_exc())
            pickle.dump(answer, output)
            output.flush()
    reader.join()  # the reader ends this process


def _read_ahead(stream: IO[bytes], messages: "SimpleQueue[bytes]") -> None:
    """Read messages as they arrive, so that the parent need not wait, and end this process when the parent
    ends, even if it was killed.
    """
    while size := int.from_bytes(stream.read(SIZE), "little"):
        messages.put(stream.read(size))
    os._exit(0)
