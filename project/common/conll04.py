"""CoNLL04 as its sentences: tokens with entities and relations.

A line has a token's number, the token, its tag (B-type, I-type or O), and two lists in Python's
notation: the relations whose first argument ends at this token, and the tokens at which their
second arguments end; ["N"] for none. A line "#doc" begins a sentence.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Token(NamedTuple):
    """A line."""

    text: str
    tag: str
    relations: list[str]
    heads: list[int]


def read_sentences(path: Path) -> Iterator[list[Token]]:
    """The sentences of a file."""
    sentence: list[Token] = []
    for line in path.read_text(encoding="utf8").splitlines():
        if line.startswith("#doc"):
            if sentence:
                yield sentence
            sentence = []
        elif line.strip():
            _, text, tag, relations, heads = line.split("\t")
            sentence.append(Token(text, tag, ast.literal_eval(relations), ast.literal_eval(heads)))
    if sentence:
        yield sentence
