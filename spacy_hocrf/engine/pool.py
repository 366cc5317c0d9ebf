"""Buffers that outlive a call and are never in two threads at the same time."""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spacy_hocrf.engine.automaton import Automaton
    from spacy_hocrf.engine.forward_backward import Buffers

__all__ = ["BufferPool", "Loan"]

OTHERS = 4
"""Buffers of other automata than the one that is asked for: those that were used last are kept."""


class BufferPool:
    """Buffers that are lent to calls and used again: as many as calls ran at the same time.

    Those of automata that have not been asked for lately are dropped. A copy starts without any.
    """

    def __init__(self) -> None:
        self._idle: deque[Buffers] = deque()

    def lend(self, automaton: "Automaton") -> "Loan":
        """Idle buffers of an automaton, or new ones, for one thread until the end of the block."""
        others = []
        while True:
            try:  # at once: another thread may have taken the last ones after a look
                buffers = self._idle.pop()
            except IndexError:
                # a pool is made with the component, the engine imported when there is something to do
                from spacy_hocrf.engine.forward_backward import Buffers

                buffers = Buffers(automaton)
                break
            if buffers.automaton is automaton:
                break
            others.append(buffers)
        if others:
            self._idle.extend(reversed(others[:OTHERS]))
        return Loan(self._idle, buffers)

    def __reduce__(self) -> tuple[Callable[[], "BufferPool"], tuple[()]]:
        return BufferPool, ()


class Loan:
    """Buffers that belong to a block of code; `contextlib` would take longer than to find them."""

    __slots__ = ("_buffers", "_idle")

    def __init__(self, idle: "deque[Buffers]", buffers: "Buffers") -> None:
        self._idle, self._buffers = idle, buffers

    def __enter__(self) -> "Buffers":
        return self._buffers

    def __exit__(self, *_: object) -> None:
        self._idle.append(self._buffers)
