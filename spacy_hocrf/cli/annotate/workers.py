"""Who annotates: this process, or several of this machine.

A process gets the job once and then one chunk after the other, and writes the parts itself; only numbers come
back. One that dies is replaced, and what it was about to write is done again.
"""

import multiprocessing
import os
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from itertools import chain, islice
from multiprocessing.process import BaseProcess
from threading import Thread
from typing import Protocol

from spacy_hocrf.cli.annotate.annotator import Annotator, Done
from spacy_hocrf.cli.annotate.parts import Job, Parts
from spacy_hocrf.cli.annotate.sources import Chunk
from spacy_hocrf.cli.errors import CommandErrors

__all__ = ["Here", "Processes", "Workers", "workers_of"]

AHEAD = 2
"""Chunks that are read for each process, with the one that it is at."""
DEATHS = 3
"""So often processes may die without a part in between."""


class Workers(Protocol):
    """Who annotates chunks."""

    def run(self, annotator: Annotator, chunks: Iterator[Chunk]) -> Iterator[Done]:
        """Annotate all chunks, and say of each that it is done, in any order.

        annotator (Annotator): for this process; others get its like.
        """
        ...


class Here:
    """This process."""

    def run(self, annotator: Annotator, chunks: Iterator[Chunk]) -> Iterator[Done]:
        """One chunk after the other."""
        return map(annotator, chunks)


class Processes:
    """n new processes of this machine, which end with this one, however it ends."""

    def __init__(self, n: int) -> None:
        self.n = n

    def run(self, annotator: Annotator, chunks: Iterator[Chunk]) -> Iterator[Done]:
        """Chunks as processes ask for them.

        RAISES (ValueError): H349 if processes die again and again without a part in between.
        """
        prepare = partial(_prepare, annotator.job, annotator.source, annotator.parts)
        taken, deaths = dict[int, Chunk](), 0
        while True:
            try:
                for done in self._run(prepare, taken, chunks):
                    deaths = 0
                    yield done
                return
            except BrokenProcessPool:
                deaths += 1
                if deaths == DEATHS:
                    lost = sorted(taken.values())
                    first, last = lost[0].first, lost[-1].first + lost[-1].size - 1
                    text = CommandErrors.H349.format(times=DEATHS, first=first, last=last)
                    raise ValueError(text) from None

    def _run(
        self, prepare: Callable[[], None], taken: dict[int, Chunk], chunks: Iterator[Chunk]
    ) -> Iterator[Done]:
        """What has been taken before, and then the others, until all is done or a process dies.

        taken (Dict[int, Chunk]): by number, what has been taken of the chunks and is not done; changed.
        """
        todo = chain(list(taken.values()), chunks)
        pool = ProcessPoolExecutor(self.n, multiprocessing.get_context("spawn"), prepare)
        under_way = set[Future[Done]]()
        try:
            while True:
                for chunk in islice(todo, AHEAD * self.n - len(under_way)):
                    taken[chunk.number] = chunk
                    under_way.add(pool.submit(_annotate, chunk))
                if not under_way:
                    return
                finished, under_way = wait(under_way, return_when=FIRST_COMPLETED)
                for future in finished:
                    done = future.result()
                    del taken[done.number]
                    yield done
        finally:
            pool.shutdown(cancel_futures=True)


def workers_of(name: str) -> Workers:
    """Who "1", or "processes:" with a number, is.

    RAISES (ValueError): H074 for another name.
    """
    kind, _, number = name.rpartition(":")
    if kind not in ("", "processes") or not number.isdecimal() or not int(number):
        expected = "a number of processes, such as 2 or processes:2"
        text = CommandErrors.H074.format(option="--workers", found=name, expected=expected)
        raise ValueError(text)
    return Processes(int(number)) if kind or int(number) > 1 else Here()


class _Process:
    """What a process of `Processes` has: its annotator."""

    annotator: Annotator


def _prepare(job: Job, source: str, parts: Parts) -> None:
    """Get a new process ready."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    Thread(target=_end_with, args=[parent], daemon=True).start()
    _Process.annotator = Annotator(job, source, parts)


def _annotate(chunk: Chunk) -> Done:
    return _Process.annotator(chunk)


def _end_with(parent: BaseProcess) -> None:
    """End this process when another one has ended, which may have been killed."""
    parent.join()
    os._exit(1)
