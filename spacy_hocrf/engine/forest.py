"""Sums over the parts of a data set in a fixed order, whoever makes them and whenever.

The parts are the leaves of a few complete binary trees. Two neighbours are added as soon as both are
there, the left one first, so that a sum is the same to the last bit for any number of hands. What is
lost is made again from its leaves.
"""

from collections import deque
from collections.abc import Callable
from itertools import pairwise
from threading import Condition
from typing import Any, NamedTuple, Protocol

from spacy_hocrf.engine.threads import raise_first

__all__ = ["Assignment", "Forest", "Hand", "Lost", "Sum", "dealt"]


def dealt(leaves: int, queues: int) -> list[range]:
    """Which of so many leaves belong to each queue: neighbours, and as many as to any other."""
    bounds = [leaves * each // queues for each in range(queues + 1)]
    return [range(*each) for each in pairwise(bounds)]


class Sum(NamedTuple):
    """What some leaves add up to."""

    loss: float  # nats
    counts: Any  # as the layout has them


class Lost(Exception):
    """A sum is gone with those who had it."""


class Hand(Protocol):
    """One of those who work at a time."""

    def leaf(self, number: int) -> Sum:
        """Of one leaf."""
        ...

    def join(self, left: Sum, right: Sum) -> Sum:
        """Of two neighbours, which are used up. RAISES (Lost): if one of them is gone."""
        ...


class _Node(NamedTuple):
    height: int  # above the leaves
    place: int  # among those of this height, of all trees


class Assignment(NamedTuple):
    """What a hand does next: a leaf, or the sum of a pair."""

    node: _Node
    pair: tuple[Sum, Sum] | None = None

    def do(self, hand: Hand) -> Sum:
        """The hand's answer."""
        return hand.leaf(self.node.place) if self.pair is None else hand.join(*self.pair)


class Forest:
    """One round of sums: what is to be done, is being done, and waits for its neighbour.

    trees (int): how many there are. leaves (int): of each, a power of two.
    deliver (Callable[[int, Sum], None]): told about each tree's sum, in whatever order; raises `Lost` if it
        cannot have it.
    queues (int): that neighbouring leaves are dealt out to. A hand takes those of its own queue, so that it
        has the same ones round by round, and adds most of them itself; it helps another one only where more
        than half is left, since sums from elsewhere may cost more than leaves. With one queue for all, the
        fewest sums wait at a time.
    """

    def __init__(
        self, trees: int, leaves: int, deliver: Callable[[int, Sum], None], queues: int = 1
    ) -> None:
        self._top, self._deliver = leaves.bit_length() - 1, deliver
        size = trees * leaves
        self._queues = list(map(deque, dealt(size, queues)))
        share = -(-size // queues)
        self._helped = (share + 1) // 2  # so many leaves of a queue are for its own hand
        self._again = deque[int]()  # leaves that are lost, for whoever is first
        self._left = size  # leaves that nobody has begun
        self._waiting: dict[_Node, Sum] = {}
        self._busy = 0
        self._errors: dict[int, BaseException] = {}  # by the first leaf of what failed
        self._changed = Condition()

    def work(self, hand: Hand, number: int = 0) -> None:
        """Do what there is to do, until all is done; called once for every hand.

        number (int): of the hand.
        """
        task = self._await(number)
        while task is not None:
            following = None
            try:
                following = self.finish(task, task.do(hand))
            except Lost:
                self.lose(task)
            except BaseException as error:
                self.fail(task, error)
            task = following or self._await(number)

    def check(self) -> None:
        """RAISES: what the first leaf that failed has raised."""
        raise_first(self._errors)

    @property
    def over(self) -> bool:
        """Will there be nothing more to do?"""
        return bool(self._errors) or not (self._left or self._busy)

    def take(self, number: int = 0) -> Assignment | None:
        """A leaf for a hand, which it then finishes, loses or fails; None if there is nothing for it now."""
        with self._changed:
            leaf = None if self._errors else self._next_leaf(number)
            if leaf is None:
                return None
            self._left -= 1
            self._busy += 1
            return Assignment(_Node(0, leaf))

    def finish(self, task: Assignment, found: Sum) -> Assignment | None:
        """Take what a hand has found.

        RETURNS (Optional[Assignment]): a pair for the same hand, if it is there; None if the hand is free.
        RAISES (Lost): as `deliver` does; the task is not finished then.
        """
        node = task.node
        if node.height == self._top:
            self._deliver(node.place, found)
        with self._changed:
            if node.height < self._top:
                other = self._waiting.pop(_Node(node.height, node.place ^ 1), None)
                if other is not None:
                    pair = (other, found) if node.place % 2 else (found, other)
                    return Assignment(_Node(node.height + 1, node.place // 2), pair)
                self._waiting[node] = found
            self._end()
            return None

    def lose(self, task: Assignment) -> None:
        """What it is made of is gone: its leaves are done again."""
        height, place = task.node
        with self._changed:
            leaves = range(place << height, (place + 1) << height)
            self._again.extend(leaves)
            self._left += len(leaves)
            self._end()

    def fail(self, task: Assignment, error: BaseException) -> None:
        """Nothing more is done; `check` raises the error."""
        with self._changed:
            self._errors[task.node.place << task.node.height] = error
            self._end()

    def _next_leaf(self, number: int) -> int | None:
        """For a hand; None if all that is left is for others."""
        own = self._queues[number % len(self._queues)]
        if self._again:
            return self._again.popleft()
        if not own:
            other = max(self._queues, key=len)
            if len(other) > self._helped:
                own.extendleft([other.pop() for _ in range((len(other) + 1) // 2)])
        return own.popleft() if own else None

    def _end(self) -> None:
        self._busy -= 1
        self._changed.notify_all()

    def _await(self, number: int) -> Assignment | None:
        """What a hand is to do, as soon as there is something; None if all is done."""
        with self._changed:
            while (task := self.take(number)) is None and not self.over:
                self._changed.wait()
            return task
