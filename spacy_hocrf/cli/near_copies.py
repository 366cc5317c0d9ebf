"""Near copies: texts that are the same but for names and numbers, as when many are made from one.

What a text has besides is its frame: the words without a digit and without a capital letter, outside of
annotated spans. Where spans take up nearly all, as in a reference, words within them are a part of it,
too. A text of which hardly anything is left, such as an address, is like no other.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["Frame", "frame_of", "grouped"]

Frame = tuple[str, ...]

LEAST = 2
"""Words of a frame."""
SHARE = 1 / 3
"""Of a text's words, so many at least are in its frame."""
GAP = ""
"""Stands for what is left out between two words."""


def frame_of(words: Sequence[str], spans: Iterable[tuple[int, int]]) -> Frame | None:
    """What a text has besides names and numbers.

    words (Sequence[str]): its tokens.
    spans (Iterable[tuple[int, int]]): start and end of what is annotated.
    RETURNS (Optional[tuple[str, ...]]): None if too little is left.
    """
    plain = [_plain(word) for word in words]
    outside = list(plain)
    for start, end in spans:
        outside[start:end] = [False] * (end - start)
    least = max(LEAST, SHARE * sum(any(map(str.isalnum, word)) for word in words))
    for kept in (outside, plain):
        if sum(kept) >= least:
            return _joined(words, kept)
    return None


def grouped(frames: Sequence[Frame | None]) -> NDArray[np.int64]:
    """The number of each text's group of near copies, int64 [D], by first appearance."""
    known: dict[Frame | int, int] = {}
    keys = [i if frame is None else frame for i, frame in enumerate(frames)]
    return np.array([known.setdefault(key, len(known)) for key in keys], dtype=np.int64)


def _plain(word: str) -> bool:
    """Neither a name nor a number, nor a mark?"""
    return any(map(str.isalpha, word)) and not any(c.isdigit() or c.isupper() for c in word)


def _joined(words: Sequence[str], kept: Sequence[bool]) -> Frame:
    frame: list[str] = []
    for word, keep in zip(words, kept):
        if keep:
            frame.append(word)
        elif any(map(str.isalnum, word)) and frame[-1:] != [GAP]:
            frame.append(GAP)
    return tuple(frame)
