"""Processes that share tasks, any of which may die at any moment.

They are processes of Python that import from where this one does, and run nothing of its main script. Those
of `multiprocessing` run that script again, unless it begins with `if __name__ == "__main__"`, and `python -m`
takes packages of the current folder first, which may be others. No two of them share a lock, a queue or a
pipe, which one that is killed would leave locked, or half read, for the others. So nobody but a dead process
is replaced, and what it had is done again.
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

__all__ = ["DEATHS", "ProcessPool", "serve"]

AHEAD = 2
"""Tasks that are read for each process, with the one that it is at."""
DEATHS = 3
"""So often processes may die of one task."""

CALL = """
import sys
from importlib import import_module
(module, function), sys.path[:] = sys.argv[1:3], sys.argv[3:]
getattr(import_module(module), function)()
"""
SIZE = 8
"""Bytes that say how long a message is."""


class _Failed(NamedTuple):
    """Answer of a process that has met an error."""

    error: Exception
    traceback: str


class ProcessPool:
    """n processes by number, each of which begins with its first task. They end with this one, however it
    ends, and do not hear control-C.

    make (Callable[[], Callable[[Any], Any]]): called once in each process; what it returns answers tasks,
        with something other than None.
    """

    def __init__(self, n: int, make: Callable[[], Callable[[Any], Any]]) -> None:
        self.n, self._make = n, pickle.dumps(make)
        self._running = dict[int, "subprocess.Popen[bytes]"]()
        # the process, and what it says; None in the end
        self._said = SimpleQueue[tuple[Any, Any]]()

    def map(self, tasks: Iterable[Any], fatal: Callable[[Any], str]) -> Iterator[Any]:
        """Answers to all tasks, in any order. The first n tasks go to one process each, in order.

        fatal (Callable[[Any], str]): what to say if processes die of a task again and again.
        RAISES (ValueError): that. RAISES (Exception): what a process has met. The pool has to be ended then.
        """
        taken = [deque[tuple[int, Any]]() for _ in range(self.n)]
        left, deaths = enumerate(tasks), Counter[int]()
        while True:
            worker = min(range(self.n), key=lambda each: len(taken[each]))
            numbered = next(left, None) if len(taken[worker]) < AHEAD else None
            if numbered is not None:
                taken[worker].append(numbered)
                self._send(worker, numbered[1])
                continue
            if not any(taken):
                return
            worker, said = self._wait()
            if isinstance(said, _Failed):
                raise said.error from RuntimeError(said.traceback)
            if said is not None:
                taken[worker].popleft()
                yield said
                continue
            number, task = taken[worker][0]
            deaths[number] += 1
            if deaths[number] == DEATHS:
                raise ValueError(fatal(task))
            self._end(worker)
            for _, task in taken[worker]:
                self._send(worker, task)

    def end(self) -> None:
        """Let no process be left; the next task has others."""
        for worker in [*self._running]:
            self._end(worker)

    def _send(self, worker: int, task: Any) -> None:
        """Hand a process a task, which is done after those that it has; nothing happens if it is dead."""
        if worker not in self._running:
            call = ["-c", CALL, serve.__module__, serve.__name__, *sys.path]
            running = subprocess.Popen(
                [sys.executable, *call],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,  # a signal to the group is for this process
            )
            self._running[worker] = running
            self._write(worker, self._make)
            Thread(target=_listen, args=(running, self._said), daemon=True).start()
        self._write(worker, pickle.dumps(task))

    def _wait(self) -> tuple[int, Any]:
        """The next process that says something, and what; None if it has died."""
        while True:
            by, said = self._said.get()
            for worker, running in self._running.items():
                if running is by:  # and has not been ended meanwhile
                    return worker, said

    def _end(self, worker: int) -> None:
        self._write(worker, b"")
        running = self._running.pop(worker)
        assert running.stdin is not None
        with suppress(OSError):
            running.stdin.close()
        running.wait()

    def _write(self, worker: int, message: bytes) -> None:
        stream = self._running[worker].stdin
        assert stream is not None
        with suppress(OSError):
            stream.write(len(message).to_bytes(SIZE, "little") + message)
            stream.flush()


def _listen(running: "subprocess.Popen[bytes]", said: "SimpleQueue[tuple[Any, Any]]") -> None:
    """Hand on what a process says, and None in the end."""
    assert running.stdout is not None
    with running.stdout as stream:
        try:
            while True:
                said.put((running, pickle.load(stream)))
        except Exception:  # it is no more, or what it says cannot be understood
            running.kill()
            said.put((running, None))


def serve() -> None:
    """Answer what comes as input, until there is no more; what a process of a pool does. What anybody prints
    goes to the console.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the other process is told, and closes the input
    answers = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with os.fdopen(answers, "wb") as output:
        messages = SimpleQueue[bytes]()
        reader = Thread(target=_read_ahead, args=(sys.stdin.buffer, messages), daemon=True)
        reader.start()
        make, answer = messages.get(), None
        with suppress(OSError):  # nobody is there to hear it
            while True:
                task = messages.get()
                try:
                    if answer is None:
                        answer = pickle.loads(make)()
                        gc.freeze()  # it stays, and need not be looked through for garbage
                    said = answer(pickle.loads(task))
                except Exception as error:
                    said = _Failed(error, format_exc())
                pickle.dump(said, output)
                output.flush()
        reader.join()  # which ends this process


def _read_ahead(stream: IO[bytes], messages: "SimpleQueue[bytes]") -> None:
    """Read what comes, so that who writes need not wait, and end this process with the other one, which may
    have been killed.
    """
    while size := int.from_bytes(stream.read(SIZE), "little"):
        messages.put(stream.read(size))
    os._exit(0)
