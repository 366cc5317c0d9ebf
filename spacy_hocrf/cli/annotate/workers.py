"""Who annotates: this process, several of this machine, or actors of a Ray cluster.

A process gets the job once and then one chunk after the other, and writes the parts itself; only numbers come
back. An actor may be on another machine: the model travels to it as files, chunks as they are read, and parts
back as bytes, so that no folder need be shared, and this process alone writes. Ray Data would cut the texts
into blocks of its own, and go on with none of them.
"""

import gc
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from spacy_hocrf.cli.annotate.annotator import AnnotatedChunk, Annotator, Done
from spacy_hocrf.cli.annotate.parts import Job, Parts
from spacy_hocrf.cli.annotate.sources import Chunk
from spacy_hocrf.cli.errors import CommandErrors
from spacy_hocrf.workers.folders import WorkingFolder
from spacy_hocrf.workers.pool import DEATHS, Pool
from spacy_hocrf.workers.processes import ProcessPool
from spacy_hocrf.workers.ray import RayPool, connected

__all__ = ["ChunkWorkers", "by_actors", "here", "in_processes"]


ChunkWorkers = Callable[[Annotator, Iterator[Chunk]], Iterator[Done]]
"""Annotates all chunks, and says of each that it is done, in any order. The annotator is for this process;
others get its like.
"""


def here(annotator: Annotator, chunks: Iterator[Chunk]) -> Iterator[Done]:
    """Annotate in this process alone, one chunk after the other."""
    gc.freeze()  # the pipeline stays, and need not be looked through for garbage
    try:
        yield from map(annotator, chunks)
    finally:
        gc.unfreeze()


def in_processes(n: int, annotator: Annotator, chunks: Iterator[Chunk]) -> Iterator[Done]:
    """Annotate in n new processes of this machine, which end with this one, however it ends.

    RAISES (ValueError): H349 if processes die of a chunk again and again.
    """
    make = partial(Annotator, annotator.job, annotator.source, annotator.parts)
    yield from _shared_out(ProcessPool(n, make), chunks)


def by_actors(n: int | None, annotator: Annotator, chunks: Iterator[Chunk]) -> Iterator[Done]:
    """Annotate by n actors with a CPU each; None for as many as the cluster has CPUs.

    RAISES (ValueError): H353 without a cluster; H349 if actors die of a chunk again and again.
    """
    with connected(n) as ray:
        number = n or max(1, int(ray.cluster_resources().get("CPU", 1)))
        pool = RayPool(number, ray, partial(_unpacked, _payload(annotator)))
        yield from map(annotator.write, _shared_out(pool, chunks))


def _shared_out(pool: Pool, chunks: Iterator[Chunk]) -> Iterator[Any]:
    """Results of all chunks from the workers of a pool."""
    try:
        yield from pool.map(chunks, _fatal)
    finally:
        pool.end()


def _fatal(chunk: Chunk) -> str:
    """Message for a chunk on which workers die."""
    last = chunk.first + chunk.size - 1
    return CommandErrors.H349.format(times=DEATHS, first=chunk.first, last=last)


class _Payload(NamedTuple):
    """Data from which an actor makes an annotator."""

    job: Job
    source: str
    parts: Parts
    files: dict[str, bytes]  # of the model, by their names in its folder
    package: bool  # is the model one?
    code: bytes | None


def _payload(annotator: Annotator) -> _Payload:
    """Data from which another machine makes the same annotator."""
    job, folder = annotator.job, annotator.folder
    files = (each for each in folder.rglob("*") if each.is_file())
    return _Payload(
        job=job,
        source=annotator.source,
        parts=annotator.parts,
        files={path.relative_to(folder).as_posix(): path.read_bytes() for path in files},
        package=not Path(job.model).is_dir(),
        code=None if job.code is None else Path(job.code).read_bytes(),
    )


def _unpacked(payload: _Payload) -> Callable[[Chunk], AnnotatedChunk]:
    """Function that makes the parts of chunks as the original annotator does."""
    job = payload.job
    if payload.package:
        import_module(job.model)  # has what its components are made by
    with WorkingFolder("hocrf-") as folder:
        for file, content in payload.files.items():
            path = folder / "model" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        job = replace(job, model=str(folder / "model"))
        if payload.code is not None:
            job = replace(job, code=str(folder / "code.py"))
            (folder / "code.py").write_bytes(payload.code)
        return Annotator(job, payload.source, payload.parts).part
