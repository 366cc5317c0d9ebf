"""How small a model may be: weights and F1 on CoNLL-2000 with a Laplace prior, a Gaussian one, and both.

Trained on eight ninths of the training part, F1 of chunks on the others; order 1, everything else is the
default.
"""

import math
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import models
import spacy
import typer
from corpora import Corpora
from spacy.language import Language
from spacy.training import Example
from tqdm import tqdm

sys.path.append(str(Path(__file__).parents[2]))
from common.columns import chunks_of
from common.report import CopyOption, show, table
from common.training import count_spans, fresh, learn

HELD_OUT = 9
TRAINERS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("Gaussian, sigma 1", {"@misc": "spacy-hocrf.LBFGS.v1", "sigma": 1.0}),
    *(
        (f"Laplace, c1 {c1:g}", {"@misc": "spacy-hocrf.OWLQN.v1", "c1": c1})
        for c1 in (0.3, 1.0, 3.0)
    ),
    ("both, c1 0.3, sigma 2", {"@misc": "spacy-hocrf.OWLQN.v1", "c1": 0.3, "sigma": 2.0}),
    ("averaged perceptron", {"@misc": "spacy-hocrf.AveragedPerceptron.v1"}),
)


def main(
    data: Annotated[Path, typer.Argument(help="Folder with conll2000/")],
    small: Annotated[
        bool, typer.Option("--small", help="36 shipped references instead of the corpus")
    ] = False,
    output: CopyOption = None,
) -> None:
    """Train with each prior, save, load, and print what is left and what it is worth."""
    sentences = Corpora(data, small).chunks()
    nlp = spacy.blank("en")
    examples = models.span_examples(nlp, sentences, chunks_of)
    first = len(examples) - len(examples) // HELD_OUT
    header = ("prior", "weights", "MB", "F1", "tokens/s", "CPU s, training", "passes")
    rows = list(rows_of(examples[:first], examples[first:]))
    show("# Small models\n\n" + table(rows, header, "l"), output)


def rows_of(train: Sequence[Example], dev: Sequence[Example]) -> Iterator[tuple[str, ...]]:
    """A row for each trainer, of the model as it is loaded again."""
    for name, trainer in tqdm(TRAINERS, disable=None):
        nlp = pipeline(trainer)
        begin = time.process_time()
        run = learn(nlp, list(train))
        duration = time.process_time() - begin
        saved = nlp.get_pipe("hocrf").to_bytes()
        loaded = pipeline(trainer)
        loaded.get_pipe("hocrf").from_bytes(saved)
        right, found, wanted = count_spans(loaded, dev)
        yield (
            name,
            f"{loaded.get_pipe('hocrf').structure.size:,}",
            f"{len(saved) / 1e6:.2f}",
            f"{200 * right / max(1, found + wanted):.2f}",
            f"{speed(loaded, dev):,.0f}",
            f"{duration:.1f}",
            f"{run.evaluations:,}",
        )


def pipeline(trainer: dict[str, Any]) -> Language:
    """The default at order 1."""
    nlp = spacy.blank("en")
    nlp.add_pipe("hocrf", config={"model": {"order": 1}, "trainer": trainer})
    return nlp


def speed(nlp: Language, examples: Sequence[Example]) -> float:
    """Tokens of a CPU second, with scores, at best."""
    best = math.inf
    for _ in range(3):
        docs = [fresh(example) for example in examples]
        begin = time.process_time()
        for _ in nlp.pipe(docs):
            pass
        best = min(best, time.process_time() - begin)
    return sum(len(example.reference) for example in examples) / best


if __name__ == "__main__":
    typer.run(main)
