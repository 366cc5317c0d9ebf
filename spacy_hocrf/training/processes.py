"""Processes that share the work of training: `spacy-hocrf.Processes.v1`.

The compiled shards are written to files, a file for each part of the data set, which the processes map, as
they do the weights and the counts. This process only tells them what to do next, and adds up. One that dies
is replaced, and its part is done again; a file that is damaged is written again. The sums are those of
threads to the last bit.
"""

import glob
import json
import os
import pickle
import platform
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.forest import Hand, Sum
from spacy_hocrf.engine.teams import Job, Team, check_workers
from spacy_hocrf.engine.threads import Threads
from spacy_hocrf.training.errors import WorkerErrors
from spacy_hocrf.training.folders import WorkingFolder
from spacy_hocrf.training.mapped import write_mapped
from spacy_hocrf.training.spawned import command
from spacy_hocrf.training.worker import COMMON, COUNTS, PART, WEIGHTS, common_of, main, names_of

__all__ = ["ProcessTeam", "ProcessWorkers", "working_folder"]

Vector = NDArray[np.float64]

FOLDER = "hocrf-training"
DEATHS = 3
"""So often one part may end the process that works on it."""


@dataclass(frozen=True)
class ProcessWorkers:
    """Processes of this machine, each with one thread: `spacy-hocrf.Processes.v1`.

    number (int): how many; 0 for as many as the machine has processors.
    parts (Optional[int]): that the corpus is cut into, 4 times a power of two: with fewer parts than
        processes some have nothing to do. null for as many as cost little. Another number changes the last
        bits of the weights, another number of processes does not.
    folder (Optional[str]): where the files lie meanwhile; null for the system's folder of temporary files.
    RAISES (ValueError): H048 for numbers out of range.
    """

    number: int = 0
    parts: int | None = None
    folder: str | None = None

    def __post_init__(self) -> None:
        check_workers(self.number, self.parts)

    def scatter(self, job: Job) -> "ProcessTeam":
        """Write the shards to files, and start the processes."""
        return ProcessTeam(job, self.number or os.cpu_count() or 1, self.folder)


class ProcessTeam(Team):
    """Processes with the shards of a job.

    number (int): how many. folder (Optional[str]): where to make a folder for the files.
    RAISES (OSError): as the system does, if there is no place for the files.
    """

    def __init__(self, job: Job, number: int, folder: str | None) -> None:
        number = min(number, max(1, len(job.parts)))
        super().__init__(job, Threads(number, most=number))
        kept = working_folder(folder)
        self._folder = kept.path
        self._processes = [_Process(self._folder) for _ in range(number)]
        self._close = finalize(self, _close, self._processes, kept)
        try:
            self._write()
        except BaseException:
            self._close()
            raise

    def rest(self) -> None:
        """The processes end; the next sum starts others."""
        for process in self._processes:
            process.end()

    def sum_of(self, number: int, process: "_Process") -> Sum:
        """Of a part, by a process.

        RAISES (ValueError): what the task has raised; H253 if the process dies again and again, H254 if it
            does not know what to do.
        """
        slot, deaths = self._empty(), 0
        while True:
            answer = process.ask({"part": number, "counts": slot})
            if "loss" in answer:
                return Sum(answer["loss"], self._counts[slot])
            if "damaged" in answer:
                self._write_part(number)
            elif "invalid" in answer:
                raise ValueError(answer["invalid"])
            elif "failed" in answer:
                raise ValueError(WorkerErrors.H254.format(reason=answer["failed"]))
            deaths += 1
            if deaths == DEATHS:
                reason = answer.get("damaged", "it was ended from outside, or had no memory left")
                raise ValueError(WorkerErrors.H253.format(times=DEATHS, part=number, reason=reason))

    def _write(self) -> None:
        """All files, and what the processes need of the objects that are in none."""
        job, layout = self.job, self.job.layout
        try:
            write_mapped(self._folder / COMMON, common_of(job), {})
        except (pickle.PicklingError, TypeError, AttributeError, NotImplementedError) as error:
            names = ", ".join(sorted({type(each).__name__ for each in layout.shared}))
            raise ValueError(WorkerErrors.H255.format(found=names, reason=error)) from error
        self._known = names_of(job.automaton, layout, layout.shared)
        for number, shards in enumerate(job.parts):
            for shard in shards:
                job.visit(shard)
            self._write_part(number)
        self._placed = layout.view(self._numbers(WEIGHTS))
        self._counts: list[Any] = []
        self._lock = Lock()

    def _write_part(self, number: int) -> None:
        shards = self.job.parts.part(number)
        path = self._folder / PART.format(number=number)
        write_mapped(path, [shard.compiled for shard in shards], self._known)
        for shard in shards:
            shard.rest()

    def _numbers(self, name: str) -> Vector:
        """Zeros in a file that all processes map, float64 [extent]."""
        size, path = self.job.layout.extent, self._folder / name
        with path.open("wb") as file:
            file.truncate(8 * max(1, size))
            if hasattr(os, "posix_fallocate"):  # a full disk is an error here, and no crash later
                os.posix_fallocate(file.fileno(), 0, 8 * max(1, size))
        numbers = np.memmap(path, np.float64, "r+", shape=(max(1, size),))
        return numbers[:size].view(np.ndarray)

    def _empty(self) -> int:
        """Number of counts that nobody uses."""
        with self._lock:
            if not self._spare:
                self._spare.append(len(self._counts))
                name = COUNTS.format(number=len(self._counts))
                self._counts.append(self.job.layout.view(self._numbers(name)))
            return self._spare.pop()

    def _hands(self, weights: Vector) -> Sequence[Hand]:
        self.job.layout.place_weights(weights, self._placed)
        self._spare = list(range(len(self._counts)))
        return [_ProcessHand(self, process) for process in self._processes]

    def _free(self, counts: Any) -> None:
        with self._lock:
            self._spare.append(next(i for i, each in enumerate(self._counts) if each is counts))


class _ProcessHand(NamedTuple):
    """What waits for one of the processes."""

    team: ProcessTeam
    process: "_Process"

    def leaf(self, number: int) -> Sum:
        """Of one part."""
        return self.team.sum_of(number, self.process)

    def join(self, left: Sum, right: Sum) -> Sum:
        """Of two neighbours, which are used up; this process adds them itself."""
        return self.team.join(left, right)


class _Process:
    """A worker of its own process, started when it is first asked, and again when it has died."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: subprocess.Popen[str] | None = None

    def ask(self, request: dict[str, int]) -> dict[str, Any]:
        """Its answer, nothing if it has died."""
        if self._running is None:
            self._running = self._start()
        running = self._running
        assert running.stdin is not None and running.stdout is not None
        try:
            running.stdin.write(json.dumps(request) + "\n")
            running.stdin.flush()
            answer = running.stdout.readline()
        except OSError:
            answer = ""
        if answer.endswith("\n"):
            found: dict[str, Any] = json.loads(answer)
            return found
        self.end()
        return {}

    def end(self) -> None:
        """Let it go, if there is one, without a word about the files."""
        running, self._running = self._running, None
        if running is not None:
            try:
                running.communicate("{}\n")
            except OSError:
                running.wait()
            for stream in (running.stdin, running.stdout):
                with suppress(OSError):  # what was still to be written to one that is dead
                    stream.close()  # type: ignore[union-attr]

    def _start(self) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            command(main, str(self._folder)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="ascii",
            start_new_session=True,  # a signal to the group is for this process
        )


def working_folder(place: str | None) -> WorkingFolder:
    """A new folder for working files; those of processes of this machine that have been killed are removed.

    place (Optional[str]): where; None for the system's folder of temporary files.
    """
    prefix = f"{FOLDER}-{platform.node()}-"
    folder = WorkingFolder(f"{prefix}{os.getpid()}-", place)
    if os.name == "posix":
        for other in folder.path.parent.glob(f"{glob.escape(prefix)}*"):
            owner = other.name.removeprefix(prefix).partition("-")[0]
            if owner.isdecimal() and not _runs(int(owner)):
                shutil.rmtree(other, ignore_errors=True)
    return folder


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


def _close(processes: Sequence[_Process], folder: WorkingFolder) -> None:
    for process in processes:
        process.end()
    folder.close()
