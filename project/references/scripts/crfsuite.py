"""CRFsuite on Cora: a CRF of order 1 over B- and I-, with the features that project/defaults gives it.

Whether it also sees which tenth of the reference a word is in, and its prior c2, are chosen by
cross-validation inside the training part; only the choice is scored on the test part. CRFsuite is in the
extra `benchmark`.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import pycrfsuite
import typer

sys.path.extend(str(Path(__file__).parents[2] / folder) for folder in (".", "defaults/scripts"))
from common.columns import chunks_of
from common.report import CopyOption, show, table
from common.scores import ratios
from common.training import read_docs, spans
from peers import CRFsuite, features, to_bio
from readers import Text

TENTHS = 10
"""Parts of a text."""


def main(
    train: Annotated[Path, typer.Argument(help="Training texts (.spacy)", exists=True)],
    test: Annotated[Path, typer.Argument(help="Test texts (.spacy)", exists=True)],
    output: CopyOption = None,
) -> None:
    """Print F1 of every candidate in the cross-validation, and of the best on the test part."""
    crf = CRFsuite()
    texts = read_texts(train)
    tags = [to_bio(text) for text in texts]
    candidates, scores = [], []
    for positions in (False, True):
        items = [observe(text.words, positions) for text in texts]
        for c2 in crf.strengths:
            candidates.append((positions, c2))
            scores.append(100 * crf.cross_validate(items, tags, c2))
    best = scores.index(max(scores))
    positions, c2 = candidates[best]
    tagger = crf.fit([observe(text.words, positions) for text in texts], tags, c2)
    chosen = score(tagger, positions, read_texts(test))
    rows = [
        (
            "yes" if sees else "no",
            f"{strength:g}",
            f"{f1:.2f}",
            f"{chosen:.2f}" if i == best else "",
        )
        for i, ((sees, strength), f1) in enumerate(zip(candidates, scores))
    ]
    header = (
        "tenth of the reference",
        "c2",
        f"F1, {crf.folds} folds of the training part",
        "F1 test",
    )
    show(table(rows, header), output)


def observe(words: Sequence[str], positions: bool) -> pycrfsuite.ItemSequence:
    """Strings for each word; with positions, which tenth of the text it is in, too."""
    items = features(words)
    if positions:
        for i, item in enumerate(items):
            item.append(f"tenth={TENTHS * i // len(words)}")
    return pycrfsuite.ItemSequence(items)


def score(tagger: pycrfsuite.Tagger, positions: bool, texts: Sequence[Text]) -> float:
    """F1 of the segments of all texts together, per cent."""
    predicted = [set(chunks_of(tagger.tag(observe(text.words, positions)))) for text in texts]
    wanted = [set(text.spans) for text in texts]
    right = sum(len(some & others) for some, others in zip(predicted, wanted))
    return 100 * ratios(right, sum(map(len, predicted)), sum(map(len, wanted)))["f"]


def read_texts(path: Path) -> list[Text]:
    """Words and entities of each Doc of a .spacy file."""
    return [Text([token.text for token in doc], sorted(spans(doc))) for doc in read_docs(path)]


if __name__ == "__main__":
    typer.run(main)
