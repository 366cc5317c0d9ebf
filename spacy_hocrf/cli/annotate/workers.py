"""Who annotates: this process, or several of this machine.

A process gets the job once and then one chunk after the other, and writes the parts itself; only numbers come
back.
"""

import gc
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from queue import SimpleQueue
from threading import Thread
from traceback import format_exc
from typing import Any, NamedTuple, TypeAlias

from spacy_hocrf.cli.annotate.annotator import Annotator, Done
from spacy_hocrf.cli.annotate.crew import share_out
from spacy_hocrf.cli.annotate.parts import Job, Parts
from spacy_hocrf.cli.annotate.sources import Chunk

__all__ = ["Here", "Processes"]

Pipe: TypeAlias = "Connection[Any, Any]"


class Here:
    """This process."""

    def run(self, annotator: Annotator, chunks: Iterator[Chunk]) -> Iterator[Done]:
        """One chunk after the other."""
        gc.freeze()  # the pipeline stays, and need not be looked through for garbage
        try:
            yield from map(annotator, chunks)
        finally:
            gc.unfreeze()


class Processes:
    """n new processes of this machine, which end with this one, however it ends."""

    def __init__(self, n: int) -> None:
        self.n = n

    def run(self, annotator: Annotator, chunks: Iterator[Chunk]) -> Iterator[Done]:
        """Chunks as processes ask for them.

        RAISES (ValueError): H349 if processes die of a chunk again and again.
        """
        crew = _Crew(annotator)
        try:
            yield from share_out(crew, self.n, chunks)
        finally:
            crew.end()


class _Failed(NamedTuple):
    """What a process says that has met an error."""

    error: Exception
    traceback: str


class _Crew:
    """Processes, each with a pipe of its own."""

    def __init__(self, annotator: Annotator) -> None:
        self._job = annotator.job, annotator.source, annotator.parts
        self._workers = dict[int, tuple[SpawnProcess, Pipe]]()

    def begin(self, worker: int) -> None:
        self._end(worker)
        spawn = get_context("spawn")
        here, there = spawn.Pipe()
        process = spawn.Process(target=_work, args=[there, *self._job])
        process.start()
        there.close()
        self._workers[worker] = process, here

    def give(self, worker: int, chunk: Chunk) -> None:
        _, pipe = self._workers[worker]
        with suppress(OSError):
            pipe.send(chunk)

    def wait(self) -> tuple[int, Done | None]:
        """RAISES (Exception): what a process has met."""
        pipes: dict[Any, int] = {pipe: worker for worker, (_, pipe) in self._workers.items()}
        pipe: Any = wait(pipes)[0]
        try:
            said = pipe.recv()
        except (EOFError, OSError):
            return pipes[pipe], None
        if isinstance(said, _Failed):
            raise said.error from RuntimeError(said.traceback)
        return pipes[pipe], said

    def end(self) -> None:
        """Let no worker be left."""
        for worker in list(self._workers):
            self._end(worker)

    def _end(self, worker: int) -> None:
        if worker in self._workers:
            process, pipe = self._workers.pop(worker)
            pipe.close()
            process.join()


def _work(pipe: Pipe, job: Job, source: str, parts: Parts) -> None:
    """What a process does."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # control-C is for the other one, which closes the pipe
    chunks = SimpleQueue[Chunk]()
    Thread(target=_read, args=[pipe, chunks], daemon=True).start()
    try:
        annotator = Annotator(job, source, parts)
        gc.freeze()
        while True:
            pipe.send(annotator(chunks.get()))
    except Exception as error:
        pipe.send(_Failed(error, format_exc()))


def _read(pipe: Pipe, chunks: SimpleQueue[Chunk]) -> None:
    """Read ahead, so that who sends need not wait, and end this process with the other one, which may have
    been killed.
    """
    try:
        while True:
            chunks.put(pipe.recv())
    except (EOFError, OSError):
        os._exit(1)
