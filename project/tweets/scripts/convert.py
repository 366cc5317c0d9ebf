"""Make spaCy's format of the two corpora, each cut into train, dev and test, a Doc for each tweet.

MSM2013: only its training part has a public annotation, so that part is cut. Its tweets come in
clusters of retweets and of headlines about one event; a cluster goes into one part as a whole, or
the test would repeat the training. Its annotation is a list of phrases beside the tweet, which are
looked up among the tokens here. Broad Twitter Corpus: by section.
"""

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from spacy.tokens import Doc, DocBin, Span
from spacy.vocab import Vocab
from wasabi import msg

from spacy_hocrf.joint.groups import SingleLinkage

SHARES = {"train": 0.60, "dev": 0.15, "test": 0.25}
"""Parts of MSM2013, of all tweets."""

CLUSTERS = SingleLinkage(min_overlap=3, max_docs=60)
"""Tweets with three words in common, of those that occur in at most 60 of the 2,815: what is about
one event.
"""

PAPER = SingleLinkage(min_overlap=5)
"""Groups as in the paper."""

SECTIONS = {"train": ("a", "b", "e", "g"), "dev": ("h",), "test": ("h",)}
"""Parts of Broad Twitter Corpus; dev and test are the first and second half of section H. Section F
is left out.
"""

TYPES = {"PER": "PER", "LOC": "LOC", "ORG": "ORG", "MISC": "MISC", "Org": "ORG", "MISRC": "MISC"}
"""Types of MSM2013 as they are spelled there."""


class Tweet(NamedTuple):
    """Words, and the entities as start, end and type."""

    words: list[str]
    entities: list[tuple[int, int, str]]


def main(
    msm_path: Annotated[
        Path, typer.Argument(help="TweetsTrainingSetCH.tsv of MSM2013", exists=True)
    ],
    btc_dir: Annotated[
        Path,
        typer.Argument(
            help="Folder with Broad Twitter Corpus, a .conll file for each section", exists=True
        ),
    ],
    output_dir: Annotated[Path, typer.Argument(help="Where the folders msm2013 and btc go")],
) -> None:
    """Write train.spacy, dev.spacy and test.spacy of both corpora."""
    tweets, lost = read_msm(msm_path.read_bytes().decode("utf8"))
    annotated = sum(len(tweet.entities) for tweet in tweets) + lost
    msg.info(f"msm2013: {lost} of {annotated} annotated phrases are not in their tweets")
    write(split_by_cluster(tweets), output_dir / "msm2013")
    sections = {name: list(read_conll(btc_dir / f"{name}.conll")) for name in "abegh"}
    write(split_by_section(sections), output_dir / "btc")


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
    found = []
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
                found.append((start, end, label))
                break
    return sorted(found)


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
        entities: list[tuple[int, int, str]] = []
        for i, (_, tag) in enumerate(rows):
            if tag.startswith("I-") and entities and entities[-1][1:] == (i, tag[2:]):
                entities[-1] = (entities[-1][0], i + 1, tag[2:])
            elif tag != "O":
                entities.append((i, i + 1, tag[2:]))
        words = [word for word, _ in rows]
        if rows:
            yield Tweet(words, join_mentions(words, entities))


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


def split_by_section(sections: dict[str, list[Tweet]]) -> dict[str, list[Tweet]]:
    """Whole sections for training, the halves of another to choose by and to test on."""
    parts = {
        part: [tweet for name in names for tweet in sections[name]]
        for part, names in SECTIONS.items()
    }
    half = len(parts["dev"]) // 2
    return {**parts, "dev": parts["dev"][:half], "test": parts["test"][half:]}


def write(parts: dict[str, list[Tweet]], folder: Path) -> None:
    """A .spacy file for each part."""
    folder.mkdir(parents=True, exist_ok=True)
    vocab = Vocab()
    for part, tweets in parts.items():
        docs = []
        for words, entities in tweets:
            doc = Doc(vocab, words=words)
            doc.set_ents([Span(doc, start, end, label) for start, end, label in entities])
            docs.append(doc)
        DocBin(docs=docs).to_disk(folder / f"{part}.spacy")
        entities = sum(len(doc.ents) for doc in docs)
        largest = Counter(PAPER(docs)).most_common(1)[0][1]
        msg.good(
            f"{folder.name}, {part}: {len(docs):,} tweets, {sum(map(len, docs)):,} tokens, "
            f"{entities:,} entities; largest group by the paper's rule: {largest:,} tweets"
        )


if __name__ == "__main__":
    typer.run(main)
