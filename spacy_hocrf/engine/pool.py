"""Buffers that are reused by later calls and never used by two threads at the same time."""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spacy_hocrf.engine.automaton import Automaton
    from spacy_hocrf.engine.forward_backward import Buffers

__all__ = ["BufferPool", "Loan"]

MAX_OTHERS = 4
"""Buffers kept for other automata than the requested one: those that were used last."""


class BufferPool:
    """Buffers that are lent to calls and reused: as many as calls ran at the same time.

    Buffers of automata that have not been used lately are dropped. A copy starts without any.
    """

    def __init__(self) -> None:
        self._idle: deque[Buffers] = deque()

    def lend(self, automaton: "Automaton") -> "Loan":
        """Lend idle buffers of an automaton, or new ones, to one thread until the end of the block."""
        others = []
        while True:
            try:  # without checking first: another thread may take the last ones in between
                buffers = self._idle.pop()
            except IndexError:
                # imported late: a pool is made with the component, before there is any need for the engine
                from spacy_hocrf.engine.forward_backward import Buffers

                buffers = Buffers(automaton)
                break
            if buffers.automaton is automaton:
                break
            others.append(buffers)
        if others:
            self._idle.extend(reversed(others[:MAX_OTHERS]))
        return Loan(self._idle, buffers)

    def __reduce__(self) -> tuple[Callable[[], "BufferPool"], tuple[()]]:
        return BufferPool, ()


class Loan:
    """Buffers lent to a block of code; a `contextlib` manager would take longer than finding them."""

    __slots__ = ("_buffers", "_idle")

    def __init__(self, idle: "deque[Buffers]", buffers: "Buffers") -> None:
        self._idle, self._buffers = idle, buffers

    def __enter__(self) -> "Buffers":
        return self._buffers

    def __exit__(self, *_: object) -> None:
        self._idle.append(self._buffers)
