"""The IRC corpus of Kummerfeld et al. (ACL 2019): logs, who replies to what, and windows of
consecutive messages.

A line of a log is a message, `[03:18] <zenwhen> lol` or `[11:01]  * genii ponders`, or a note of
the server, `=== …`. An annotation names two lines: the later replies to the earlier. A message that
is linked to itself begins a conversation.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

MESSAGE = re.compile(r"\[(\d\d):(\d\d)\] (?:<([^>]*)>| \* (\S+)) ?(.*)")
WORD = re.compile(r"[a-z0-9][a-z0-9_.+/-]*[a-z0-9]")
# letters of a name that is found anywhere in a message; shorter ones only as its first word, `bob:
# …`
SHORTEST_NAME = 4
RARE = 0.01  # share of a log's messages: a word of more of them than this is not about anything
DAY = 24 * 60


class Kind(IntEnum):
    """What a message looks like."""

    STATEMENT = 0
    QUESTION = 1
    THANKS = 2
    GREETING = 3
    COMMAND = 4


OPENINGS = {
    Kind.THANKS: frozenset(
        (
            "thanks thank thx ty cheers ok okay k yes yeah yep no nope lol haha right oh ah sure np"
        ).split()
    ),
    Kind.GREETING: frozenset("hi hello hey hiya morning evening greetings".split()),
}
QUESTIONS = frozenset("how what where why who when which is does can anyone anybody any".split())


@dataclass(frozen=True)
class Message:
    """One message; who is who in it is known from the log so far."""

    line: int
    minute: int  # of the day
    author: int  # number of the name in the log
    mentions: frozenset[int]  # authors of earlier messages that it names
    kind: Kind
    words: frozenset[str]  # those that are rare in the log
    silence: int  # messages since the author's last one, 10_000 for the first


@dataclass(frozen=True)
class Window:
    """N consecutive messages of a log, the server's notes left out, and the links among them."""

    log: str
    messages: tuple[Message, ...]
    # [N, N] links[i, j]: message i replies to message j < i, or begins a conversation, j = i
    links: NDArray[np.bool_]


def log_names(folder: Path) -> list[str]:
    """The names of the logs in a folder, in order."""
    return sorted(path.name.removesuffix(".ascii.txt") for path in folder.glob("*.ascii.txt"))


def read_windows(folder: Path, name: str, size: int) -> list[Window]:
    """The windows of a log: its annotated part, cut into pieces of `size` messages.

    What is left at its end is a shorter window. Links to messages before the window, or to notes,
    are left out.
    """
    lines = (folder / f"{name}.ascii.txt").read_text(encoding="utf8").split("\n")
    links = read_links(folder / f"{name}.annotation.txt")
    return list(cut(name, read_messages(lines), links, size))


def read_links(path: Path) -> NDArray[np.int64]:
    """Pairs of lines, the later one first; int64 [L, 2]."""
    pairs = [line.split()[:2] for line in path.read_text(encoding="utf8").splitlines()]
    return np.sort(np.array(pairs, dtype=np.int64).reshape(-1, 2), axis=1)[:, ::-1]


def cut(
    name: str, messages: Sequence[Message], links: NDArray[np.int64], size: int
) -> Iterator[Window]:
    """Windows of the part that is annotated, which begins with the first line that has a link and
    ends with the last.
    """
    inside = [
        message for message in messages if links[:, 0].min() <= message.line <= links[:, 0].max()
    ]
    for first in range(0, len(inside), size):
        chosen = tuple(inside[first : first + size])
        place = {message.line: i for i, message in enumerate(chosen)}
        among = np.zeros((len(chosen), len(chosen)), dtype=bool)
        for later, earlier in links.tolist():
            if later in place and earlier in place:
                among[place[later], place[earlier]] = True
        yield Window(name, chosen, among)


def read_messages(lines: Sequence[str]) -> list[Message]:
    """The messages of a log, without the server's notes."""
    parts = [(number, match) for number, line in enumerate(lines) if (match := MESSAGE.match(line))]
    texts = [match[5].lower() for _, match in parts]
    rare = rare_words(texts)
    names: dict[str, int] = {}
    last: dict[int, int] = {}
    messages = []
    for i, ((number, match), text) in enumerate(zip(parts, texts)):
        author = names.setdefault((match[3] or match[4] or "").lower(), len(names))
        messages.append(
            Message(
                line=number,
                minute=int(match[1]) * 60 + int(match[2]),
                author=author,
                mentions=mentioned(text, names) - {author},
                kind=kind_of(text),
                words=frozenset(WORD.findall(text)) & rare - names.keys(),
                silence=i - last.get(author, i - 10_000),
            )
        )
        last[author] = i
    return messages


def minutes_between(earlier: Message, later: Message) -> int:
    """Minutes from one message to another of the same day or the next."""
    return (later.minute - earlier.minute) % DAY


def mentioned(text: str, names: dict[str, int]) -> frozenset[int]:
    """Whom a message names: the first word, or any word that is long enough for a name."""
    words = [word.strip("@,:;.!?()") for word in text.split()]
    return frozenset(
        names[w] for i, w in enumerate(words) if w in names and (len(w) >= SHORTEST_NAME or i == 0)
    )


def kind_of(text: str) -> Kind:
    """A guess from question marks and the first words, the name of who is addressed left out."""
    words = text.split()
    if words and words[0].endswith((":", ",")):
        words = words[1:]
    opening = words[0].strip(",.!?:;)") if words else ""
    if text.startswith("!"):
        return Kind.COMMAND
    if text.rstrip().endswith("?") or "? " in text or opening in QUESTIONS:
        return Kind.QUESTION
    return next(
        (kind for kind, openings in OPENINGS.items() if opening in openings), Kind.STATEMENT
    )


def rare_words(texts: Sequence[str]) -> frozenset[str]:
    """Words of four letters or more that are in few of the messages."""
    counts: dict[str, int] = {}
    for text in texts:
        for word in set(WORD.findall(text)):
            counts[word] = counts.get(word, 0) + 1
    most = max(2.0, RARE * len(texts))
    return frozenset(word for word, count in counts.items() if count <= most and len(word) > 3)
