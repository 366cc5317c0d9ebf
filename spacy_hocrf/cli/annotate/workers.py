"""Who annotates: this process, or several of this machine, each of which gets the job once, then one chunk
after the other, and writes the parts itself; only numbers come back.
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
    """Annotate all chunks. YIELDS (int): texts that one had, as they are done, in any order.

    n (int): 1 for this process, more for so many others, which end with this one, however it ends.
    RAISES (ValueError): H349 if processes die of a chunk again and again.
    """
    if n == 1:
        gc.freeze()  # the pipeline stays, and need not be looked through for garbage
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
    """Message for a chunk on which processes die."""
    last = chunk.first + chunk.size - 1
    return CommandErrors.H349.format(times=DEATHS, first=chunk.first, last=last)
