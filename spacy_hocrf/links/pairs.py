"""Which pairs of items may be linked: `[components.*.pairs]`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import offsets_of, ranges
from spacy_hocrf.features.dollars import with_dollars
from spacy_hocrf.links.items import Thread, refuse_link
from spacy_hocrf.types import is_whole

__all__ = ["LinkPairs", "Pairs"]

BLOCK = "[components.*.pairs]"
DIRECTIONS = ("backward", "forward", "both")


class Pairs(NamedTuple):
    """P pairs of items that may be linked, ascending by source and target, and C choices: at most one of the
    pairs of a choice is a link.
    """

    source: NDArray[np.int64]  # [P]
    target: NDArray[np.int64]  # [P]
    choices: NDArray[np.int64]  # [C + 1] first pair of each choice, followed by P


@dataclass(frozen=True, kw_only=True)
class LinkPairs:
    """`spacy-hocrf.LinkPairs.v1`: which pairs of items may be linked.

    direction (str): "backward" for links to earlier items, "forward" to later ones, or "both".
    window (Optional[int]): most items from one end to the other: 1 for neighbours only; None for
        all pairs, whose number grows with the square of the number of items.
    itself (bool): may an item be linked to itself, as one that begins a conversation?
    one_each (bool): may a source have only one link? If several are annotated, they are then equally right
        alternatives.
    sources, targets (Optional[Sequence[str]]): labels of the items that links begin and end at;
        None for all.
    RAISES (ValueError): H298 for an unknown direction, a window below 1, or labels that are not a list.
    """

    direction: str = "backward"
    window: int | None = 20
    itself: bool = False
    one_each: bool = False
    sources: Sequence[str] | None = None
    targets: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if self.direction not in DIRECTIONS:
            refuse_link("direction", self.direction, f"one of {', '.join(DIRECTIONS)}", BLOCK)
        if self.window is not None and not (is_whole(self.window) and self.window >= 1):
            refuse_link("window", repr(self.window), "at least 1, or null", BLOCK)
        for end in ("sources", "targets"):
            if isinstance(getattr(self, end), str):
                refuse_link(end, getattr(self, end), "a list of labels, or null", BLOCK)

    def find(self, thread: Thread) -> Pairs:
        """Return the pairs of a thread."""
        labels = [item.label for item in thread.items]
        sources, targets = _chosen(labels, self.sources), _chosen(labels, self.targets)
        # the targets of each source are consecutive: counts of them, from the first
        window = len(labels) if self.window is None else self.window
        lowest = sources if self.direction == "forward" else sources - window
        highest = sources if self.direction == "backward" else sources + window
        first = np.searchsorted(targets, lowest)
        counts = np.searchsorted(targets, highest, side="right") - first
        row, column = np.repeat(np.arange(len(sources)), counts), ranges(first, counts)
        if not self.itself:
            others = sources[row] != targets[column]
            row, column = row[others], column[others]
        sizes = np.bincount(row) if self.one_each else np.ones(len(row), dtype=np.int64)
        return Pairs(sources[row], targets[column], offsets_of(sizes[sizes > 0]))


def _chosen(labels: Sequence[str], wanted: Sequence[str] | None) -> NDArray[np.int64]:
    """Numbers of the items with one of the labels, ascending; all items for None."""
    if wanted is None:
        return np.arange(len(labels))
    among = set(with_dollars(wanted))
    return np.flatnonzero([label in among for label in labels])
