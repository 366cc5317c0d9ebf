"""Reads the annotated links of a thread, as pairs of characters and as probabilities of pairs of items."""

import hashlib
from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.links.errors import LinkErrors
from spacy_hocrf.links.extensions import links_of
from spacy_hocrf.links.items import Thread
from spacy_hocrf.links.pairs import Pairs
from spacy_hocrf.types import is_whole

__all__ = ["End", "Link", "contents", "gold_shares", "linked"]

End = tuple[int, int, int]
"""Number of a Doc in its thread, first character, one past the last."""

Link = tuple[End, End]


def linked(thread: Thread, attribute: str) -> set[Link] | None:
    """Return the links of all Docs of a thread; None if those of any Doc are unknown.

    RAISES (ValueError): H299 for annotation that is not a list of pairs of items.
    """
    annotated: set[Link] = set()
    for number, doc in enumerate(thread.docs):
        links = links_of(doc, attribute)
        if links is None:
            return None
        first, end = thread.firsts[number : number + 2].tolist()
        listed: list[Any] = list(links) if isinstance(links, list | tuple) else [links]
        for pair in listed:
            if not _is_link(pair, first, end, len(thread)):
                last, least, most = end - first - 1, -first, len(thread) - first - 1
                reason = f": item from 0 to {last}, target from {least} to {most}"
                reason = reason if first < end else ", but the text has no items"
                where = {"attribute": attribute, "text": thread.text}
                raise ValueError(
                    LinkErrors.H299.format(**where, found=repr(pair)[:60], reason=reason)
                )
            annotated.add((thread.ends[first + pair[0]], thread.ends[first + pair[1]]))
    return annotated


def contents(thread: Thread, attribute: str, group: Hashable) -> tuple[bytes, ...]:
    """Return for each Doc of a thread a digest of its words, its annotated links and the thread's group."""
    return tuple(
        hashlib.blake2b(
            thread.words(number) + repr((links_of(doc, attribute), group)).encode(), digest_size=16
        ).digest()
        for number, doc in enumerate(thread.docs)
    )


def gold_shares(thread: Thread, pairs: Pairs, links: set[Link]) -> tuple[NDArray[np.float64], int]:
    """Return the annotated probability of each pair, 1 for a link, or 1/n for n links of one choice, and the
    number of links that are not among the pairs.

    thread (Thread): the thread of the pairs, whose items may differ from the annotated ones.
    RETURNS (tuple[float64 [P], int]): the probabilities, and the number of lost links.
    """
    number = {end: i for i, end in enumerate(thread.ends)}
    paired = [(number[i], number[j]) for i, j in links if i in number and j in number]
    # both ends of a pair as one number
    n = max(1, len(thread))
    keys = np.array([i * n + j for i, j in paired], dtype=np.int64)
    linked = np.isin(pairs.source * n + pairs.target, keys).astype(np.float64)
    if not len(linked):
        return linked, len(links)
    several = np.maximum(np.add.reduceat(linked, pairs.choices[:-1]), 1.0)
    shares = linked / np.repeat(several, np.diff(pairs.choices))
    return shares, len(links) - int(linked.sum())


def _is_link(pair: Any, first: int, end: int, n_items: int) -> bool:
    """Is it a pair of an item of the Doc (items first to end - 1) and an item of its thread?"""
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        return False
    if not all(map(is_whole, pair)):
        return False
    return bool(0 <= pair[0] < end - first and 0 <= first + pair[1] < n_items)
