"""Rules in training and rules at prediction: the same ones, kept in both or at prediction alone.

Successions that no training text has are forbidden; some labels come once at most. Each model learns from
four fifths of the texts, and is tried on the others.
"""

import sys
import time
import warnings
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import spacy
import typer
from spacy.tokens import Doc

sys.path.append(str(Path(__file__).parents[2] / "defaults" / "scripts"))
from readers import Text
from systems import example_of
from tasks import load

sys.path.append(str(Path(__file__).parents[2]))
from common.report import show, table
from common.training import learn, spans

FOLDS = 5
ONCE = {
    "cora": ["title", "journal", "booktitle"],
    "addresses": ["AddressNumber", "PlaceName", "StateName"],
}


def main(
    output: Annotated[Path, typer.Argument(help="Markdown file")],
    assets: Annotated[Path, typer.Option(help="Folder of the corpora")] = Path("assets"),
    folds: Annotated[int, typer.Option(help="Of five, so many are tried")] = FOLDS,
) -> None:
    """Cross-validate each way on the training and development parts, and print what is right."""
    warnings.filterwarnings("ignore", message=r"\[W030\]")
    header = ("task", "rules", "kept in", "F1", "whole texts right", "CPU s, training")
    rows = [row for task in ONCE for row in rows_of(task, assets, folds)]
    show("# Rules in training\n\n" + table(rows, header, "lll"), output)


def rows_of(task: str, assets: Path, folds: int) -> list[tuple[str, ...]]:
    """A row for each way to keep each kind of rules."""
    parts = load(task, assets)
    texts = [*parts["train"], *parts["dev"]]
    order = np.random.default_rng(0).permutation(len(texts))
    held = [set(part.tolist()) for part in np.array_split(order, FOLDS)[:folds]]
    ways = [
        ("none", "none", ""),
        ("successions", "none", "prediction"),
        ("successions", "successions", "both"),
        ("once", "none", "prediction"),
        ("once", "all", "both"),
    ]
    return [
        (task, name, where, *measured(task, texts, held, name, training))
        for name, training, where in ways
    ]


def measured(
    task: str, texts: Sequence[Text], held: Sequence[set[int]], name: str, training: str
) -> tuple[str, ...]:
    """F1, share of texts without an error, and the time that training takes."""
    right = predicted = annotated = whole = 0
    duration = 0.0
    for fold in held:
        learnt = [text for i, text in enumerate(texts) if i not in fold]
        unseen = [texts[i] for i in sorted(fold)]
        nlp = spacy.blank("xx")
        nlp.add_pipe("hocrf", config={"constraints": constraints_of(task, learnt, name, training)})
        begin = time.process_time()
        learn(nlp, [example_of(nlp, text) for text in learnt])
        duration += time.process_time() - begin
        docs = list(nlp.pipe(Doc(nlp.vocab, words=text.words) for text in unseen))
        for text, doc in zip(unseen, docs):
            found, gold = set(spans(doc)), set(text.spans)
            right += len(found & gold)
            predicted += len(found)
            annotated += len(gold)
            whole += found == gold
    return (
        f"{200 * right / (predicted + annotated):.2f}",
        f"{whole / sum(map(len, held)):.1%}",
        f"{duration / len(held):.1f}",
    )


def constraints_of(
    task: str, texts: Sequence[Text], name: str, training: str
) -> dict[str, Any] | None:
    """The config block."""
    if name == "none":
        return None
    block: dict[str, Any] = {"@misc": "spacy-hocrf.Constraints.v1", "training": training}
    if name == "once":
        return {**block, "at_most": dict.fromkeys(ONCE[task], 1)}
    seen = {pair for text in texts for pair in pairwise(chain_of(text))}
    labels = sorted({label for _, label in seen})
    pairs = [(a, b) for a in labels for b in labels if (a or b) and (a, b) not in seen]
    return {**block, "forbidden": [list(pair) for pair in pairs]}


def chain_of(text: Text) -> list[str]:
    """Labels of neighbours, "O" for text in no span, and "" at both ends."""
    labels, at = [""], 0
    for start, end, label in sorted(text.spans):
        labels += ["O", label] if start > at else [label]
        at = end
    return [*labels, *(["O"] if at < len(text.words) else []), ""]


if __name__ == "__main__":
    typer.run(main)
