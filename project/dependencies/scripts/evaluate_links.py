"""The links that trained pipelines find in the test windows of their folds."""

import sys
from pathlib import Path
from typing import Annotated

import numpy as np
import spacy
import typer
from convert import ATTRIBUTES, KEY, register
from spacy.language import Language

from spacy_hocrf.api import LinksCorpus, f1

sys.path.append(str(Path(__file__).parents[2]))
from common.report import table

HEADER = ("windows", "precision", "recall", "F", "F, replies")


def main(
    corpus: Annotated[Path, typer.Argument(help="Folder with a folder for each fold", exists=True)],
    models: Annotated[Path, typer.Argument(help="Folder with a folder for each fold", exists=True)],
    output: Annotated[Path, typer.Argument(help="Table in Markdown")],
) -> None:
    """Write the scores of all folds together."""
    register()
    counts = []
    for fold in sorted(corpus.glob("*/test.spacy")):
        nlp = spacy.load(models / fold.parent.name / "model-last")
        counts += count(nlp, fold)
    correct, predicted, gold = np.sum(counts, axis=0)
    scores = f1(correct, predicted, gold)
    row = (
        f"{len(counts)}",
        f"{correct[0] / max(1, predicted[0]):.3f}",
        f"{correct[0] / gold[0]:.3f}",
        *(f"{score:.3f}" for score in scores),
    )
    text = table([row], HEADER)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(text + "\n", encoding="utf8")
    print(text)


def count(nlp: Language, path: Path) -> list[np.ndarray]:
    """Of each window the links that are correct, predicted and annotated, all of them and replies,
    int64 [3, 2]; and whether they are proved to be the best.
    """
    counts = []
    examples = list(LinksCorpus(path, [KEY], ATTRIBUTES, gold_preproc=True)(nlp))
    docs = nlp.pipe(example.predicted for example in examples)
    for doc, example in zip(docs, examples):
        found, gold = (
            {tuple(pair) for pair in each._.hocrf_links} for each in (doc, example.reference)
        )
        parts = (found & gold, found, gold)
        counts.append(np.array([[len(each), sum(i != j for i, j in each)] for each in parts]))
    return counts


if __name__ == "__main__":
    typer.run(main)
