"""Corpora with a token and its labels on a line, and the spans that labels stand for."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

Spans = list[tuple[int, int, str]]
"""First token, one past the last token, label."""


class Sentence(NamedTuple):
    """One sequence: a label for each word."""

    words: list[str]
    labels: list[str]


def read_columns(path: Path) -> list[Sentence]:
    """All sentences of a file."""
    return list(stream_columns(path))


def stream_columns(path: Path) -> Iterator[Sentence]:
    """Its sentences, one by one."""
    with path.open(encoding="utf8") as file:
        yield from sentences_of(file)


def sentences_of(lines: Iterable[str]) -> Iterator[Sentence]:
    """First and last column of each line; blank lines end a sentence, lines may end in CR LF."""
    for filled, block in groupby(lines, key=lambda line: bool(line.strip())):
        if filled:
            columns = [line.split() for line in block]
            yield Sentence([fields[0] for fields in columns], [fields[-1] for fields in columns])


def stream_conllu(lines: Iterable[str]) -> Iterator[Sentence]:
    """Words and their language-specific tags (XPOS) of lines of CoNLL-U; words of several tokens and
    empty nodes are left out.
    """
    for filled, block in groupby(lines, key=lambda line: bool(line.strip())):
        rows = [row for row in (line.split("\t") for line in block) if row[0].isdigit()]
        if filled and rows:
            yield Sentence([row[1] for row in rows], [row[4] for row in rows])


def runs(labels: Iterable[str], longest: int = 0) -> Spans:
    """Maximal stretches of one label.

    longest (int): cut longer ones, 0 for never.
    """
    spans: Spans = []
    for i, label in enumerate(labels):
        goes_on = bool(spans) and spans[-1][2] == label and not 0 < longest <= i - spans[-1][0]
        if goes_on:
            spans[-1] = (spans[-1][0], i + 1, label)
        else:
            spans.append((i, i + 1, label))
    return spans


def chunks_of(labels: Iterable[str]) -> Spans:
    """The spans that B- and I- labels stand for."""
    spans: Spans = []
    for i, label in enumerate(labels):
        if label[0] == "I" and spans and spans[-1][1:] == (i, label[2:]):
            spans[-1] = (spans[-1][0], i + 1, label[2:])
        elif label[0] != "O":
            spans.append((i, i + 1, label[2:]))
    return spans
