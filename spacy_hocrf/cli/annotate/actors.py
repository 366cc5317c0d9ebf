"""Actors of a Ray cluster, which may be of many machines, as who annotates.

The model travels to them as files, chunks as they are read, and parts back as bytes: no folder need be
shared. This process alone writes, so that parts, their order and what is gone on with are the same as without
Ray. Ray Data would cut the texts into blocks of its own, and go on with none of them.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from spacy_hocrf.cli.annotate.annotator import Annotator, Done, Part
from spacy_hocrf.cli.annotate.crew import share_out
from spacy_hocrf.cli.annotate.parts import Job, Parts
from spacy_hocrf.cli.annotate.sources import Chunk
from spacy_hocrf.workers.folders import WorkingFolder
from spacy_hocrf.workers.ray import check_ray, connected

__all__ = ["Actors"]


class Actors:
    """n actors with a CPU each; None for as many as the cluster has CPUs.

    RAISES (ValueError): H352 if Ray is not installed.
    """

    def __init__(self, n: int | None) -> None:
        check_ray()
        self.n = n

    def run(self, annotator: Annotator, chunks: Iterator[Chunk]) -> Iterator[Done]:
        """Chunks as actors ask for them.

        RAISES (ValueError): H353 without a cluster; H349 if actors die of a chunk again and again.
        """
        with connected(self.n) as ray:
            n = self.n or max(1, int(ray.cluster_resources().get("CPU", 1)))
            yield from share_out(_Crew(ray, annotator), n, chunks)


class _Luggage(NamedTuple):
    """What an actor needs to make an annotator."""

    job: Job
    source: str
    parts: Parts
    files: dict[str, bytes]  # of the model, by their names in its folder
    package: bool  # is the model one?
    code: bytes | None


class _Actor:
    """Annotates chunks; the model is loaded with the first.

    luggage (List[ObjectRef]): where a `_Luggage` is.
    """

    def __init__(self, luggage: list[Any]) -> None:
        self._luggage = luggage
        self._annotator: Annotator | None = None

    def part(self, chunk: Chunk) -> Part:
        """What is to be written of a chunk."""
        if self._annotator is None:
            import ray

            [luggage] = ray.get(self._luggage)
            self._annotator = _unpacked(luggage)
        return self._annotator.part(chunk)


class _Crew:
    """Actors.

    ray (Module): connected. annotator (Annotator): writes what they bring.
    """

    def __init__(self, ray: Any, annotator: Annotator) -> None:
        self._ray, self._write = ray, annotator.write
        self._new = ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(_Actor).remote
        self._luggage = [ray.put(_luggage(annotator))]
        # by worker: the actor, and references to what will come of its chunks
        self._actors = dict[int, tuple[Any, deque[Any]]]()

    def begin(self, worker: int) -> None:
        if worker in self._actors:
            self._ray.kill(self._actors[worker][0])
        self._actors[worker] = self._new(self._luggage), deque()

    def give(self, worker: int, chunk: Chunk) -> None:
        actor, coming = self._actors[worker]
        coming.append(actor.part.remote(chunk))

    def wait(self) -> tuple[int, Done | None]:
        """RAISES (RayTaskError): what an actor has met."""
        ray, errors = self._ray, self._ray.exceptions
        first = {coming[0]: worker for worker, (_, coming) in self._actors.items() if coming}
        [ready], _ = ray.wait(list(first))
        worker = first[ready]
        try:
            part: Part = ray.get(ready)
        except errors.RayTaskError:  # of our own code, which would fail again
            raise
        except errors.RayError:
            return worker, None
        self._actors[worker][1].popleft()
        return worker, self._write(part)


def _luggage(annotator: Annotator) -> _Luggage:
    """What another process, or machine, needs for the same annotator."""
    job, folder = annotator.job, annotator.folder
    files = (each for each in folder.rglob("*") if each.is_file())
    return _Luggage(
        job=job,
        source=annotator.source,
        parts=annotator.parts,
        files={path.relative_to(folder).as_posix(): path.read_bytes() for path in files},
        package=not Path(job.model).is_dir(),
        code=None if job.code is None else Path(job.code).read_bytes(),
    )


def _unpacked(luggage: _Luggage) -> Annotator:
    """The same annotator."""
    job = luggage.job
    if luggage.package:
        import_module(job.model)  # has what its components are made by
    with WorkingFolder("hocrf-") as folder:
        for file, content in luggage.files.items():
            path = folder / "model" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        job = replace(job, model=str(folder / "model"))
        if luggage.code is not None:
            job = replace(job, code=str(folder / "code.py"))
            (folder / "code.py").write_bytes(luggage.code)
        return Annotator(job, luggage.source, luggage.parts)
