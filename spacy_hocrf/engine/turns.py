"""More threads than parts: the shards of a part are worked on side by side, but added one after another.

What takes long, log potentials and expectations, is done by whoever is free; the counts of a shard are
added when those of all shards before it in its part have been. So the sum of a part is, to the last bit,
the one that a single thread makes.
"""

from collections import deque
from collections.abc import Callable, Sequence
from itertools import zip_longest
from threading import Condition
from typing import Any

from spacy_hocrf.engine.data_set import Shard
from spacy_hocrf.engine.forest import Sum
from spacy_hocrf.engine.threads import raise_first

__all__ = ["Turns"]


class _Over(Exception):
    """Somebody else has failed: what is waited for never comes."""


class _Part:
    """What the shards of a part have added up to so far.

    counts (Any): the layout's, which are added to.
    """

    def __init__(self, counts: Any) -> None:
        self.loss, self.counts = 0.0, counts
        self._changed = Condition()
        self._added = 0  # shards
        self._over = False

    def wait(self, place: int) -> None:
        """Until it is the turn of this shard. RAISES (_Over): if it never will be."""
        with self._changed:
            self._changed.wait_for(lambda: self._over or self._added >= place)
            if self._over:
                raise _Over

    def end(self, loss: float) -> None:
        """The shard whose turn it was has added its counts."""
        self.loss += loss
        with self._changed:
            self._added += 1
            self._changed.notify_all()

    def stop(self) -> None:
        """Nobody has a turn any more."""
        with self._changed:
            self._over = True
            self._changed.notify_all()


class _InTurn:
    """A shard that waits before it adds to the counts of its part."""

    def __init__(self, shard: Shard, part: _Part, place: int) -> None:
        self._shard, self._part, self._place = shard, part, place

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._shard, name)
        if name.startswith("add_"):
            self._part.wait(self._place)
        return found


class Turns:
    """One round over all shards.

    parts (Sequence[Sequence[Shard]]): the shards, by part.
    nothing (Callable[[], Any]): new counts of a part.
    act (Callable[[Any, Any, Any], float]): does with a shard, buffers and the counts of its part what is
        to be done, and returns its loss.
    """

    def __init__(
        self,
        parts: Sequence[Sequence[Shard]],
        nothing: Callable[[], Any],
        act: Callable[[Any, Any, Any], float],
    ) -> None:
        self._parts = [_Part(nothing()) for _ in parts]
        self._act = act
        # A shard comes after all of its part before it, so what is waited for has been begun.
        self._left = deque(
            (number, place, shard)
            for place, shards in enumerate(zip_longest(*parts))
            for number, shard in enumerate(shards)
            if shard is not None
        )
        self._errors: dict[tuple[int, int], BaseException] = {}  # by part and place in it

    def work(self, buffers: Any) -> None:
        """Do what there is to do, until nothing is left; called once for every thread."""
        while not self._errors:
            try:
                number, place, shard = self._left.popleft()
            except IndexError:
                return
            part = self._parts[number]
            try:
                loss = self._act(_InTurn(shard, part, place), buffers, part.counts)
                part.wait(place)
                part.end(loss)
            except _Over:
                return
            except BaseException as error:
                self._errors[number, place] = error
                for each in self._parts:
                    each.stop()

    def sums(self) -> list[Sum]:
        """Of the parts, once all threads have come back.

        RAISES: what the first shard that failed has raised.
        """
        raise_first(self._errors)
        return [Sum(part.loss, part.counts) for part in self._parts]
