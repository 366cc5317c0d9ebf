"""Texts of different worth: what a model learns from annotation that is partly wrong, with the weights of
`spacy hocrf doubt --weights` and without.

Some annotated spans of the training texts are made wrong: a third gets another label, a third is dropped, a
third is moved by a token at one end or both. The weights add up to less than the texts, and so make the prior
count more: beside them all texts have their mean.
"""

import random
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Annotated

import spacy
import typer
from planted import SETTINGS, config
from spacy.tokens import Doc
from spacy.training import Example

sys.path.append(str(Path(__file__).parents[2] / "defaults" / "scripts"))
from readers import Parts, Text
from systems import make_doc
from tasks import draw, load

sys.path.append(str(Path(__file__).parents[2]))
from common.report import show, table
from common.training import count_spans, learn

from spacy_hocrf.api import cross_read, text_weights

SIZES = {"cora": "all", "conll04": "400"}
"""Tasks, and how many of their training texts."""
SHARES = (0.0, 0.05, 0.1, 0.2)
"""Of the annotated spans."""


def main(
    output: Annotated[Path, typer.Argument(help="Markdown file")],
    assets: Annotated[Path, typer.Option(help="Folder of the corpora")] = Path("assets"),
    seeds: Annotated[int, typer.Option(help="Number of seeds")] = 3,
) -> None:
    """Plant errors, learn with weights and without, and print F1 on the development parts."""
    rows = []
    for name, size in SIZES.items():
        parts = load(name, assets)
        for share in SHARES:
            found = [compare(name, parts, size, share, seed) for seed in range(seeds)]
            none, same, doubt = (f"{fmean(each):.2f}" for each in zip(*found))
            gains = [row[2] - row[0] for row in found]
            gain, least, most = fmean(gains), min(gains), max(gains)
            row = (name, f"{share:.0%}", none, same, doubt)
            rows.append((*row, f"{gain:+.2f}", f"{least:+.2f} to {most:+.2f}"))
    header = ("task", "wrong", "no weights", "their mean", "doubt's", "gain", "of the seeds")
    show("# Texts of different worth\n\n" + table(rows, header, "l"), output)


def compare(
    name: str, parts: Parts, size: str, share: float, seed: int
) -> tuple[float, float, float]:
    """F1 in per cent without weights, with one weight for all, and with weights from doubts."""
    texts = plant(draw(name, parts["train"], size, seed), share, seed)
    vocab = spacy.blank("en").vocab
    weights, _ = text_weights(cross_read(config(), [make_doc(vocab, text) for text in texts]))
    same = [fmean(weights)] * len(texts)
    none, alike, doubted = (
        learnt(texts, each, parts["dev"]) for each in ([1.0] * len(texts), same, weights)
    )
    return none, alike, doubted


def plant(texts: Sequence[Text], share: float, seed: int) -> list[Text]:
    """The texts with errors in so many of their spans."""
    rng = random.Random(seed)
    places = [(i, j) for i, text in enumerate(texts) for j in range(len(text.spans))]
    labels = [label for text in texts for _, _, label in text.spans]
    changed = [list(text.spans) for text in texts]
    dropped = set()
    for number, (i, j) in enumerate(rng.sample(places, round(share * len(places)))):
        start, end, label = changed[i][j]
        if number % 3 == 0:
            changed[i][j] = start, end, rng.choice([each for each in labels if each != label])
        elif number % 3 == 1:
            dropped.add((i, j))
        else:
            others = {t for k, span in enumerate(changed[i]) if k != j for t in range(*span[:2])}
            moved = [
                (first, last, label)
                for first in range(max(0, start - 1), start + 2)
                for last in range(end - 1, min(end + 1, len(texts[i].words)) + 1)
                if first < last and (first, last) != (start, end)
                if not others & {*range(first, last)}
            ]
            changed[i][j] = rng.choice(moved) if moved else changed[i][j]
    return [
        Text(text.words, [span for j, span in enumerate(spans) if (i, j) not in dropped])
        for i, (text, spans) in enumerate(zip(texts, changed))
    ]


def learnt(texts: Sequence[Text], weights: Sequence[float], dev: Sequence[Text]) -> float:
    """F1 in per cent of a model of texts with weights."""
    nlp = spacy.blank("en")
    nlp.add_pipe("hocrf", config=SETTINGS)
    examples, unseen = (
        [
            Example(Doc(nlp.vocab, words=list(text.words)), make_doc(nlp.vocab, text))
            for text in part
        ]
        for part in (texts, dev)
    )
    for example, weight in zip(examples, weights, strict=True):
        example.reference._.hocrf_weight = weight
    learn(nlp, examples)
    right, found, wanted = count_spans(nlp, unseen)
    return 200 * right / max(1, found + wanted)


if __name__ == "__main__":
    typer.run(main)
