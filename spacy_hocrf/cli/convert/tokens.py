"""Tokens that a file has by their places in a text."""

from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["PlacedTokens", "tokens_at"]


class PlacedTokens(NamedTuple):
    """Tokens that make up a whole text.

    words (list[str]): the tokens.
    spaces (list[bool]): does a blank follow each?
    numbers (list[int]): which of the places each has; -1 for what was between two of them.
    """

    words: list[str]
    spaces: list[bool]
    numbers: list[int]


def tokens_at(text: str, places: Iterable[tuple[int, int]]) -> PlacedTokens:
    """A token for each place, and one for whatever is between two of them besides one blank.

    places (Iterable[tuple[int, int]]): start and end of each token, in order, none inside another.
    """
    tokens = PlacedTokens([], [], [])
    at = 0
    for number, (start, end) in enumerate([*places, (len(text), len(text))]):
        between = text[at:start]
        if tokens.words and between[:1] == " ":
            tokens.spaces[-1] = True
            between = between[1:]
        for word, its in ((between, -1), (text[start:end], number)):
            if word:
                tokens.words.append(word)
                tokens.spaces.append(False)
                tokens.numbers.append(its)
        at = end
    return tokens
