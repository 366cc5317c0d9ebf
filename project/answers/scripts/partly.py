"""What it is worth to know a little of a text: a fifth of the training texts is annotated, and of the others
constraints tell as much as a glance would.
"""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import spacy
import typer
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example

sys.path.append(str(Path(__file__).parents[2] / "defaults" / "scripts"))
from readers import Text
from systems import make_doc
from tasks import load

sys.path.append(str(Path(__file__).parents[2]))
from common.report import show, table
from common.training import count_spans, learn

TASKS = ("cora", "addresses")
SEEDS = 5
SHARE = 5
"""One text in so many is annotated."""
WAYS = {
    "nothing": "are not used",
    "one word": "a word, and the label of the span that has it",
    "one span": "a span",
    "a word of each": "a word of every span, and the label",
    "everything": "all spans",
}
Constraint = tuple[int, int, str, str]
"""First token, one past the last, label and kind."""


def main(
    output: Annotated[Path, typer.Argument(help="Markdown file")],
    assets: Annotated[Path, typer.Option(help="Folder of the corpora")] = Path("assets"),
    seeds: Annotated[int, typer.Option(help="Random fifths of the texts")] = SEEDS,
) -> None:
    """Train on both kinds of texts, and print what is right in the development part."""
    header = ("task", "known of the others", "F1", "least", "most", "CPU s, training")
    rows = [
        (task, WAYS[way], *measured(load(task, assets), way, seeds))
        for task in TASKS
        for way in WAYS
    ]
    show("# Texts of which a little is known\n\n" + table(rows, header, "ll"), output)


def measured(parts: dict[str, Sequence[Text]], way: str, seeds: int) -> tuple[str, ...]:
    """F1 in the mean, the least and the most of all seeds, and the time that training takes."""
    found, duration = [], 0.0
    for seed in range(seeds):
        nlp = spacy.blank("xx")
        nlp.add_pipe("hocrf")
        examples = list(examples_of(nlp, parts["train"], way, seed))
        begin = time.process_time()
        learn(nlp, examples)
        duration += time.process_time() - begin
        dev = [example_of(nlp, text) for text in parts["dev"]]
        right, predicted, annotated = count_spans(nlp, dev)
        found.append(200 * right / max(1, predicted + annotated))
    scores = (np.mean(found), min(found), max(found))
    return (*(f"{score:.1f}" for score in scores), f"{duration / seeds:.1f}")


def examples_of(nlp: Language, texts: Sequence[Text], way: str, seed: int) -> list[Example]:
    """A fifth of the texts with all annotation, the others with what is known of them."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(texts)).tolist()
    annotated = len(texts) // SHARE
    examples = [example_of(nlp, texts[i]) for i in order[:annotated]]
    for i in order[annotated:]:
        if way == "everything":
            examples.append(example_of(nlp, texts[i]))
        elif way != "nothing" and texts[i].spans:
            doc = Doc(nlp.vocab, words=texts[i].words)
            doc.spans["hocrf_constraints"] = [
                Span(doc, start, end, label, span_id=kind)
                for start, end, label, kind in known_of(texts[i], way, rng)
            ]
            examples.append(Example(Doc(nlp.vocab, words=texts[i].words), doc))
    return examples


def known_of(text: Text, way: str, rng: np.random.Generator) -> list[Constraint]:
    """What somebody says of a text, by chance."""
    words = [(int(rng.integers(start, end)), label) for start, end, label in text.spans]
    inside: list[Constraint] = [(at, at + 1, label, "inside") for at, label in words]
    if way == "a word of each":
        return inside
    chosen = int(rng.integers(len(inside)))
    return [(*text.spans[chosen], "span") if way == "one span" else inside[chosen]]


def example_of(nlp: Language, text: Text) -> Example:
    """With all its annotation, on its own tokens."""
    return Example(Doc(nlp.vocab, words=text.words), make_doc(nlp.vocab, text))


if __name__ == "__main__":
    typer.run(main)
