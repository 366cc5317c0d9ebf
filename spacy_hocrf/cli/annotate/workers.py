"""Annotate chunks in this process or in several worker processes. Each worker gets the job once and then one
chunk after the other, and writes the parts itself; only numbers of texts come back.
"""

import gc
from collections.abc import Iterator
from functools import partial

from spacy_hocrf.cli.annotate.annotator import Annotator
from spacy_hocrf.cli.annotate.processes import DEATHS, ProcessPool
from spacy_hocrf.cli.annotate.sources import Chunk
from spacy_hocrf.cli.errors import CommandErrors

__all__ = ["annotated"]


def annotated(annotator: Annotator, chunks: Iterator[Chunk], n: int) -> Iterator[int]:
    """Annotate all chunks. YIELDS (int): number of texts of each finished chunk, in any order.

    n (int): 1 for this process, else the number of worker processes, which end with this one, however it
        ends.
    RAISES (ValueError): H349 if workers die repeatedly on a chunk.
    """
    if n == 1:
        gc.freeze()  # the pipeline stays: spare the garbage collector
        try:
            yield from map(annotator, chunks)
        finally:
            gc.unfreeze()
        return
    pool = ProcessPool(n, partial(Annotator, annotator.job, annotator.source, annotator.parts))
    try:
        yield from pool.map(chunks, _fatal)
    finally:
        pool.end()


def _fatal(chunk: Chunk) -> str:
    """Error message for a chunk on which workers die."""
    last = chunk.first + chunk.size - 1
    return CommandErrors.H349.format(times=DEATHS, first=chunk.first, last=last)
