"""A process that sums over parts of a data set for another one.

Requests come as lines of JSON, answers go back so; weights and counts are files that both map. It ends with
its input, so with the process that has started it, and then removes the folder that they had in common, if it
is still there.

    {}  →  it ends, and leaves the folder
    {"part": 3, "counts": 1}  →  {"loss": 41.5}, {"invalid": "[H007] …"}, {"damaged": "[H252] …"},
                                     {"failed": "…"}
"""

import json
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from spacy_hocrf.engine.forward_backward import Buffers
from spacy_hocrf.engine.teams import Job
from spacy_hocrf.training.mapped import read_mapped
from spacy_hocrf.training.spawned import answers

__all__ = [
    "COMMON",
    "COUNTS",
    "PART",
    "WEIGHTS",
    "Bench",
    "Worker",
    "common_of",
    "main",
    "names_of",
]

COMMON, WEIGHTS, PART, COUNTS = "common", "weights", "part-{number}", "counts-{number}"
"""Names of the files."""


class Bench:
    """What sums over parts of a data set besides the parts.

    common (Tuple[Task, Automaton, Outline, Tuple]): what is done, with which states and arcs, how numbers are
        placed, and the objects that shards have in common.
    """

    def __init__(self, common: tuple[Any, ...]) -> None:
        self._task, self._automaton, self.outline, shared = common
        names = names_of(self._automaton, self.outline, shared)
        objects = {id(each): each for each in (self._automaton, self.outline, *shared)}
        self.known = {name: objects[number] for number, name in names.items()}
        """What is in no file of a part, by what it is called there."""
        self._buffers = Buffers(self._automaton)

    def total(self, shards: Sequence[Any], placed: Any, counts: Any) -> dict[str, Any]:
        """Sum over shards, at placed weights, into counts that are zero.

        RETURNS (Dict[str, Any]): the answer.
        """
        loss = 0.0
        try:
            for shard in shards:
                loss += self._task(shard, placed, self._automaton, self._buffers, counts)
        except ValueError as error:
            return {"invalid": str(error)}
        return {"loss": loss}


class Worker:
    """What a worker has of a data set.

    folder (Path): of the files that all have in common.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._bench = Bench(read_mapped(folder / COMMON, {}))
        self._placed = self._bench.outline.view(self._numbers(WEIGHTS))
        self._parts: dict[int, Any] = {}
        self._counts: dict[int, tuple[Any, Any]] = {}

    def answer(self, request: dict[str, int]) -> dict[str, Any]:
        """Sum over a part, into counts that were not used or are used up."""
        try:
            shards = self._shards(request["part"])
        except ValueError as error:
            return {"damaged": str(error)}
        number = request["counts"]
        if number not in self._counts:
            numbers = self._numbers(COUNTS.format(number=number))
            self._counts[number] = numbers, self._bench.outline.view(numbers)
        numbers, counts = self._counts[number]
        numbers.fill(0.0)
        return self._bench.total(shards, self._placed, counts)

    def _shards(self, part: int) -> Any:
        if part not in self._parts:
            path = self._folder / PART.format(number=part)
            self._parts[part] = read_mapped(path, self._bench.known)
        return self._parts[part]

    def _numbers(self, name: str) -> Any:
        size = self._bench.outline.extent
        numbers = np.memmap(self._folder / name, np.float64, "r+", shape=(max(1, size),))
        return numbers[:size].view(np.ndarray)


def common_of(job: Job) -> tuple[Any, ...]:
    """What a `Bench` takes, of a job."""
    return job.task, job.automaton, job.layout.outline, job.layout.shared


def names_of(automaton: Any, layout: Any, shared: Sequence[Any]) -> dict[int, str]:
    """What objects are called in the files of parts, by their `id`."""
    named = {id(each): f"shared {i}" for i, each in enumerate(shared)}
    return {**named, id(automaton): "automaton", id(layout): "layout"}


def main(name: str) -> None:
    """Answer until there is no more to answer.

    name (str): of the folder that both have in common.
    """
    folder = Path(name)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the other process is told, and closes the input
    there = answers()
    worker: Worker | None = None
    for line in sys.stdin:
        try:
            request = json.loads(line)
            if not request:
                return
            if worker is None:
                worker = Worker(folder)
            answer = worker.answer(request)
        except Exception:
            answer = {"failed": traceback.format_exc()}
        try:
            os.write(there, json.dumps(answer).encode() + b"\n")
        except OSError:  # nobody is there to hear it
            break
    shutil.rmtree(folder, ignore_errors=True)
