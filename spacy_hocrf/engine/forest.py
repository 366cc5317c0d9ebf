"""Sums over the parts of a data set in a fixed order, whoever makes them and whenever.

The parts are the leaves of a few complete binary trees. Two neighbours are added as soon as both are
there, the left one first, so that a sum is the same to the last bit for any number of hands.
"""

from collections import deque
from collections.abc import Callable
from threading import Condition
from typing import Any, NamedTuple, Protocol

__all__ = ["Forest", "Hand", "Sum"]


class Sum(NamedTuple):
    """What some leaves add up to."""

    loss: float  # nats
    counts: Any  # as the layout has them


class Hand(Protocol):
    """One of those who work at a time."""

    def leaf(self, number: int) -> Sum:
        """Of one leaf."""
        ...

    def join(self, left: Sum, right: Sum) -> Sum:
        """Of two neighbours, which are used up."""
        ...


class _Node(NamedTuple):
    height: int  # above the leaves
    place: int  # among those of this height, of all trees


class Forest:
    """One round of sums: what is to be done, is being done, and waits for its neighbour.

    trees (int): how many there are. leaves (int): of each, a power of two.
    deliver (Callable[[int, Sum], None]): told about each tree's sum, in whatever order.
    """

    def __init__(self, trees: int, leaves: int, deliver: Callable[[int, Sum], None]) -> None:
        self._top, self._deliver = leaves.bit_length() - 1, deliver
        self._leaves = deque(range(trees * leaves))
        self._waiting: dict[_Node, Sum] = {}
        self._pairs: list[tuple[_Node, Sum, Sum]] = []
        self._busy = 0
        self._errors: dict[int, BaseException] = {}  # by the first leaf of what failed
        self._changed = Condition()

    def work(self, hand: Hand) -> None:
        """Do what there is to do, until all is done; called once for every hand."""
        while (task := self._take()) is not None:
            node, *pair = task
            try:
                self._put(node, hand.join(*pair) if pair else hand.leaf(node.place))
            except BaseException as error:
                self._errors[node.place << node.height] = error
            finally:
                with self._changed:
                    self._busy -= 1
                    self._changed.notify_all()

    def check(self) -> None:
        """RAISES: what the first leaf that failed has raised."""
        if self._errors:
            try:
                raise self._errors[min(self._errors)]
            finally:  # its traceback holds this frame: a cycle that would keep the hands alive
                self._errors.clear()

    def _take(self) -> tuple[Any, ...] | None:
        """A node, and the two sums that make it unless it is a leaf; None if there is no more to come."""
        with self._changed:
            while not self._errors and not self._pairs and not self._leaves and self._busy:
                self._changed.wait()
            if self._errors or not (self._pairs or self._leaves):
                return None
            self._busy += 1
            return self._pairs.pop() if self._pairs else (_Node(0, self._leaves.popleft()),)

    def _put(self, node: _Node, done: Sum) -> None:
        if node.height == self._top:
            self._deliver(node.place, done)
            return
        with self._changed:
            other = self._waiting.pop(_Node(node.height, node.place ^ 1), None)
            if other is None:
                self._waiting[node] = done
            else:
                pair = (other, done) if node.place % 2 else (done, other)
                self._pairs.append((_Node(node.height + 1, node.place // 2), *pair))
