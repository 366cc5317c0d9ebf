"""Chunks for several workers, any of which may die at any moment.

No two workers share a lock, a queue or a pipe, which one that is killed would leave locked, or half read, for
the others. So nobody but a dead worker is replaced, and what it had is done again.
"""

from collections import Counter, deque
from collections.abc import Iterator
from typing import Protocol

from spacy_hocrf.cli.annotate.annotator import Annotator, Done
from spacy_hocrf.cli.annotate.sources import Chunk
from spacy_hocrf.cli.errors import CommandErrors

__all__ = ["Crew", "Workers", "share_out"]

AHEAD = 2
"""Chunks that are read for each worker, with the one that it is at."""
DEATHS = 3
"""So often workers may die of one chunk."""


class Workers(Protocol):
    """Who annotates chunks."""

    def run(self, annotator: Annotator, chunks: Iterator[Chunk]) -> Iterator[Done]:
        """Annotate all chunks, and say of each that it is done, in any order.

        annotator (Annotator): for this process; others get its like.
        """
        ...


class Crew(Protocol):
    """Workers by number, from 0 on. Each does one chunk after the other, in their order."""

    def begin(self, worker: int) -> None:
        """Let there be a new worker of this number, in the place of a dead one if there was one."""
        ...

    def give(self, worker: int, chunk: Chunk) -> None:
        """Hand a worker a chunk; nothing happens if it is dead."""
        ...

    def wait(self) -> tuple[int, Done | None]:
        """Who of those that have chunks has done one, and what; None if it has died."""
        ...


def share_out(crew: Crew, n: int, chunks: Iterator[Chunk]) -> Iterator[Done]:
    """Let n workers do all chunks, each when it has few of them.

    RAISES (ValueError): H349 if workers die of a chunk again and again.
    """
    taken = [deque[Chunk]() for _ in range(n)]
    again, deaths = deque[Chunk](), Counter[int]()
    for worker in range(n):
        crew.begin(worker)
    while True:
        worker = min(range(n), key=lambda each: len(taken[each]))
        if len(taken[worker]) < AHEAD:
            chunk = again.popleft() if again else next(chunks, None)
            if chunk is not None:
                taken[worker].append(chunk)
                crew.give(worker, chunk)
                continue
        if not any(taken):
            return
        worker, done = crew.wait()
        if done is None:
            at = taken[worker][0]
            deaths[at.number] += 1
            if deaths[at.number] == DEATHS:
                last = at.first + at.size - 1
                raise ValueError(CommandErrors.H349.format(times=DEATHS, first=at.first, last=last))
            again += taken[worker]
            taken[worker].clear()
            crew.begin(worker)
        else:
            taken[worker].popleft()
            yield done
