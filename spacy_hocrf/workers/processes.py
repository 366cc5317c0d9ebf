"""Processes of this machine as workers.

They are processes of Python that import from where this one does, and run nothing of its main script. Those
of `multiprocessing` run that script again, unless it begins with `if __name__ == "__main__"`, and `python -m`
takes packages of the current folder first, which may be others.
"""

import gc
import os
import pickle
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import IO, Any

from spacy_hocrf.workers.pool import Pool, answered

__all__ = ["ProcessPool", "answers", "command", "serve"]

CALL = """
import sys
from importlib import import_module
end = 2 + int(sys.argv[1])
(module, function, *arguments), sys.path[:] = sys.argv[2:end], sys.argv[end:]
getattr(import_module(module), function)(*arguments)
"""
SIZE = 8
"""Bytes that say how long a message is."""


class ProcessPool(Pool):
    """n processes, which end with this one, however it ends. They do not hear control-C.

    make (Callable[[], Callable[[Any], Any]]): called once in each process; what it returns answers tasks.
    folder (Optional[Path]): a folder that processes remove if this one ends without ending them.
    """

    def __init__(self, n: int, make: Callable[[], Callable[[Any], Any]], folder: Any = "") -> None:
        super().__init__(n)
        self._make, self._folder = pickle.dumps(make), str(folder)
        self._running = dict[int, "subprocess.Popen[bytes]"]()
        self._said = SimpleQueue[tuple[Any, Any]]()

    def _begin(self, worker: int) -> None:
        running = subprocess.Popen(
            command(serve, self._folder),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # a signal to the group is for this process
        )
        self._running[worker] = running
        self._write(worker, self._make)
        Thread(target=_listen, args=(running, self._said), daemon=True).start()

    def _send(self, worker: int, task: Any) -> None:
        self._write(worker, pickle.dumps(task))

    def _wait(self) -> tuple[int, Any]:
        while True:
            by, said = self._said.get()
            for worker, running in self._running.items():
                if running is by:  # and has not been ended meanwhile
                    return worker, said

    def _end(self, worker: int) -> None:
        running = self._running.get(worker)
        if running is not None:
            self._write(worker, b"")
            assert running.stdin is not None
            with suppress(OSError):
                running.stdin.close()
            running.wait()
            del self._running[worker]

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


def serve(folder: str) -> None:
    """Answer what comes as input, until there is no more; what a process of a pool does.

    folder (str): removed if the input ends without a word; "" for none.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the other process is told, and closes the input
    with os.fdopen(answers(), "wb") as output:
        messages = SimpleQueue[bytes]()
        reader = Thread(target=_read_ahead, args=(sys.stdin.buffer, messages, folder), daemon=True)
        reader.start()
        make, answer = messages.get(), None

        def answer_to(message: bytes) -> Any:
            nonlocal answer
            if answer is None:
                answer = pickle.loads(make)()
                gc.freeze()  # it stays, and need not be looked through for garbage
            return answer(pickle.loads(message))

        with suppress(OSError):  # nobody is there to hear it
            while True:
                pickle.dump(answered(answer_to, messages.get()), output)
                output.flush()
        reader.join()  # which ends this process


def _read_ahead(stream: IO[bytes], messages: "SimpleQueue[bytes]", folder: str) -> None:
    """Read what comes, so that who writes need not wait, and end this process with the other one, which may
    have been killed.
    """
    while size := int.from_bytes(head := stream.read(SIZE), "little"):
        messages.put(stream.read(size))
    if not head and folder:
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def command(function: Callable[..., Any], *arguments: str) -> list[str]:
    """Command line of a process that calls a function of a module with some arguments."""
    call = [function.__module__, function.__name__, *arguments]
    return [sys.executable, "-c", CALL, str(len(call)), *call, *sys.path]


def answers() -> int:
    """Where such a process writes what the other one reads; what anybody prints goes to the console.

    RETURNS (int): a file descriptor.
    """
    found = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return found
