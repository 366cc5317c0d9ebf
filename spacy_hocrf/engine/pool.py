"""Buffers that outlive a call and are never in two threads at the same time."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spacy_hocrf.engine.automaton import Automaton
    from spacy_hocrf.engine.forward_backward import Buffers

__all__ = ["BufferPool"]


class BufferPool:
    """As many buffers as calls have been under way at the same time, for the next calls.

    Those of an automaton that is no longer asked for are dropped. A copy starts without any.
    """

    def __init__(self) -> None:
        self._idle: deque[Buffers] = deque()

    @contextmanager
    def lend(self, automaton: "Automaton") -> Iterator["Buffers"]:
        """Buffers of an automaton, for one thread until the end of the block."""
        buffers = self._take(automaton)
        try:
            yield buffers
        finally:
            self._idle.append(buffers)

    def _take(self, automaton: "Automaton") -> "Buffers":
        while True:
            try:  # at once: another thread may have taken the last ones after a look
                buffers = self._idle.pop()
            except IndexError:
                # a pool is made with the component, the engine imported when there is something to do
                from spacy_hocrf.engine.forward_backward import Buffers

                return Buffers(automaton)
            if buffers.automaton is automaton:
                return buffers

    def __reduce__(self) -> tuple[Callable[[], "BufferPool"], tuple[()]]:
        return BufferPool, ()
