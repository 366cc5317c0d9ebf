"""Sets of tags of any size on the same sentences: how does the cost grow with the labels?"""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby, islice
from pathlib import Path

Tagged = tuple[list[str], list[str]]
"""Words, and a tag for each."""


def tagged(path: Path, labels: int, sentences: int = 4_000) -> list[Tagged]:
    """Sentences of a CoNLL-U file with so many labels: of XPOS joined with FEATS and DEPREL the most
    frequent, XPOS alone for the others; where XPOS has more, its most frequent ones and "other".
    """
    with path.open(encoding="utf8") as file:
        blocks = (list(block) for filled, block in groupby(file, key=lambda x: x != "\n") if filled)
        texts = [[x.split("\t") for x in block] for block in islice(blocks, sentences)]
    texts = [[fields for fields in text if fields[0].isdigit()] for text in texts]
    plain = [([x[1] for x in text], [x[4] for x in text]) for text in texts]
    if labels < len({x[4] for text in texts for x in text}):
        return most_frequent(plain, labels)
    joined = Counter(f"{x[4]}|{x[5]}|{x[7]}" for text in texts for x in text)
    for most in range(len(joined) + 1):
        kept = {name for name, _ in joined.most_common(most)}
        left = Counter({x: n for x, n in joined.items() if x not in kept})
        if most + len({name.split("|")[0] for name in left}) >= labels:
            break
    found: list[Tagged] = []
    for text in texts:
        names = [f"{x[4]}|{x[5]}|{x[7]}" for x in text]
        found.append(([x[1] for x in text], [x if x in kept else x.split("|")[0] for x in names]))
    return found


def most_frequent(sentences: Sequence[Tagged], labels: int) -> list[Tagged]:
    """The most frequent tags, and "other" for those beyond them."""
    counts = Counter(tag for _, tags in sentences for tag in tags)
    kept = {tag for tag, _ in counts.most_common(labels - 1)}
    return [(words, [tag if tag in kept else "other" for tag in tags]) for words, tags in sentences]
