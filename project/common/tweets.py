"""Corpora of tweets with entities: MSM2013, whose annotation is a list of phrases beside the tweet,
and sections of Broad Twitter Corpus.
"""

import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_hocrf.api import SingleLinkage

from .columns import chunks_of

SHARES = {"train": 0.60, "dev": 0.15, "test": 0.25}
"""Parts of MSM2013, of all tweets."""

CLUSTERS = SingleLinkage(min_overlap=3, max_docs=60)
"""Tweets with three words in common, of those that occur in at most 60 of the 2,815: what is about
one event.
"""

TYPES = {"PER": "PER", "LOC": "LOC", "ORG": "ORG", "MISC": "MISC", "Org": "ORG", "MISRC": "MISC"}
"""Types of MSM2013 as they are spelled there."""


class Tweet(NamedTuple):
    """Words, and the entities as start, end and type."""

    words: list[str]
    entities: list[tuple[int, int, str]]


def read_msm(text: str) -> tuple[list[Tweet], int]:
    """The tweets, and how many phrases of the annotation are not in them.

    text (str): a tweet a line: number, TYPE/phrase;TYPE/phrase;, tweet, with tabs between them;
        lines end as in Windows, in Unix or in old Macs.
    """
    tweets, lost = [], 0
    for line in re.split(r"\r\n|\r|\n", text):
        if line.strip():
            _, annotation, tweet = line.split("\t")
            words = tweet.replace("\\/", " / ").split()
            phrases = [item.strip().split("/", 1) for item in annotation.split(";") if item.strip()]
            entities = find(words, [(TYPES[label], phrase) for label, phrase in phrases])
            lost += len(phrases) - len(entities)
            tweets.append(Tweet(words, entities))
    return tweets, lost


def find(words: Sequence[str], phrases: Sequence[tuple[str, str]]) -> list[tuple[int, int, str]]:
    """Where annotated phrases are, sorted; what is nowhere is left out.

    Phrases have other spaces than the tokens, and now and then other letters or the middle of a
    token. Each takes the first free
    place: of equal letters and whole tokens, or else of any case, or else inside a token, all of
    which it then takes. Long phrases choose first, so that John leaves John Lennon to the one that
    means both.

    words (Sequence[str]): tokens.
    phrases (Sequence[tuple[str, str]]): type and text of each; one that occurs twice means two
        places.
    """
    text = "".join(words)
    starts = {}  # character → token that begins there
    ends = {}  # character → token that ends there, plus 1
    inside = []  # token of each character
    for number, word in enumerate(words):
        starts[len(inside)] = number
        inside += [number] * len(word)
        ends[len(inside)] = number + 1
    taken = [False] * len(words)
    entities = []
    for label, phrase in sorted(phrases, key=lambda item: -len(item[1])):
        squeezed = re.escape("".join(phrase.replace("\\/", "/").split()))
        for flags, whole in ((0, True), (re.IGNORECASE, True), (re.IGNORECASE, False)):
            matches = re.finditer(f"(?=({squeezed}))", text, flags) if squeezed else iter(())
            places = [match.span(1) for match in matches]
            if whole:
                spans = [(starts[a], ends[b]) for a, b in places if a in starts and b in ends]
            else:
                spans = [(inside[a], inside[b - 1] + 1) for a, b in places]
            free = [(start, end) for start, end in spans if not any(taken[start:end])]
            if free:
                start, end = free[0]
                taken[start:end] = [True] * (end - start)
                entities.append((start, end, label))
                break
    return sorted(entities)


def read_conll(path: Path) -> Iterator[Tweet]:
    """Tweets of a section: token, tab, B-TYPE, I-TYPE or O; blank lines between tweets. Lines
    without a token are left out.
    """
    for block in re.split(r"\n\s*\n", path.read_text(encoding="utf8")):
        rows = [
            line.split("\t")
            for line in block.split("\n")
            if line.strip() and line.split("\t")[0].strip()
        ]
        words = [word for word, _ in rows]
        if rows:
            yield Tweet(words, join_mentions(words, chunks_of(tag for _, tag in rows)))


def join_mentions(
    words: Sequence[str], entities: Sequence[tuple[int, int, str]]
) -> list[tuple[int, int, str]]:
    """An @ belongs to the entity after it: some sections leave it out, in others it is an entity of
    its own, of the same type.
    """
    joined: list[tuple[int, int, str]] = []
    for start, end, label in entities:
        if joined and joined[-1] == (start - 1, start, label) and words[start - 1] == "@":
            joined.pop()
            start -= 1
        elif start > 0 and words[start - 1] == "@" and not (joined and joined[-1][1] == start):
            start -= 1
        joined.append((start, end, label))
    return joined


def split_by_cluster(tweets: Sequence[Tweet], seed: int = 0) -> dict[str, list[Tweet]]:
    """Clusters in random order, each into the part that lacks most of its share; tweets of one part
    keep their order.
    """
    vocab = Vocab()
    texts = list(dict.fromkeys(" ".join(tweet.words).lower() for tweet in tweets))
    cluster = dict(zip(texts, CLUSTERS([Doc(vocab, words=text.split()) for text in texts])))
    members: dict[int, list[int]] = {}
    for number, tweet in enumerate(tweets):
        members.setdefault(cluster[" ".join(tweet.words).lower()], []).append(number)
    parts: dict[str, list[int]] = {part: [] for part in SHARES}
    for numbers in random.Random(seed).sample(list(members.values()), len(members)):
        neediest = max(SHARES, key=lambda part: SHARES[part] * len(tweets) - len(parts[part]))
        parts[neediest] += numbers
    return {part: [tweets[number] for number in sorted(numbers)] for part, numbers in parts.items()}
