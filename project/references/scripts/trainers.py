"""Compare the trainers on Cora: maximum likelihood and the averaged perceptron, with the features of
one config.

Only the trainer changes. Its one setting, sigma or the number of epochs, is chosen by
cross-validation inside the training file, at the first order; all orders are then trained on the
whole file and scored on the test file.
"""

import copy
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import spacy
import typer
from spacy.language import Language
from spacy.training import Example
from wasabi import MarkdownRenderer

sys.path.append(str(Path(__file__).parents[2]))
from common.report import CopyOption, show, table
from common.scores import ratios
from common.training import count_spans, learn, read_examples

LIKELIHOOD, PERCEPTRON = "spacy-hocrf.LBFGS.v1", "spacy-hocrf.AveragedPerceptron.v1"
CANDIDATES: dict[str, list[dict[str, Any]]] = {
    "likelihood": [
        {"@misc": LIKELIHOOD, "threads": 1, "sigma": sigma} for sigma in (1.0, 3.0, 10.0)
    ],
    "perceptron": [{"@misc": PERCEPTRON, "epochs": epochs} for epochs in (5, 10, 20)],
}
HEADER = ("trainer", "order", "setting", "F1 test", "CPU s", "passes")


class Task(NamedTuple):
    """What is learnt: how a pipeline is made of an order and a trainer, and its examples."""

    pipeline: Callable[[int, dict[str, Any]], Language]
    train: Callable[[Language], list[Example]]
    test: Callable[[Language], list[Example]]
    choose_on: int = 0  # number of training texts among which the settings are chosen; 0 for all


def main(
    config_path: Annotated[Path, typer.Argument(help="Config with a component hocrf", exists=True)],
    train: Annotated[Path, typer.Argument(help="Training references (.spacy)", exists=True)],
    test: Annotated[Path, typer.Argument(help="Test references (.spacy)", exists=True)],
    folds: Annotated[
        int, typer.Option(help="Folds of the cross-validation that chooses the settings")
    ] = 3,
    output: CopyOption = None,
) -> None:
    """Print the F1 of every setting in the cross-validation, and test F1, CPU time and passes of
    the chosen ones.
    """
    config = spacy.util.load_config(config_path)["components"]["hocrf"]
    del config["factory"]

    def pipeline(order: int, trainer: dict[str, Any]) -> Language:
        settings = copy.deepcopy(config)
        settings["model"]["order"] = order
        settings.update(trainer=trainer, scores_key=None)
        nlp = spacy.blank("en")
        nlp.add_pipe("hocrf", config=settings)
        return nlp

    compare(
        Task(pipeline, lambda nlp: read_examples(nlp, train), lambda nlp: read_examples(nlp, test)),
        folds,
        output,
    )


def compare(task: Task, folds: int, output: Path | None, orders: Sequence[int] = (1, 2)) -> None:
    """Choose, train, score and print, a line for each finished model and then the tables."""
    markdown = MarkdownRenderer()
    chosen, tried, rows = {}, [], []
    for name, candidates in CANDIDATES.items():
        scores = [cross_validate(task, orders[0], trainer, folds) for trainer in candidates]
        for trainer, score in zip(candidates, scores):
            tried.append((name, setting(trainer), f"{100 * score:.2f}"))
            print(" | ".join(tried[-1]), flush=True)
        chosen[name] = candidates[scores.index(max(scores))]
    for order in orders:
        for name, trainer in chosen.items():
            rows.append((name, str(order), setting(trainer), *measure(task, order, trainer)))
            print(" | ".join(rows[-1]), flush=True)
    header = ("trainer", "setting", f"F1, {folds} folds of the training part")
    markdown.add(table(tried, header, "ll"))
    markdown.add(table(rows, HEADER, "lrl"))
    print()
    show(markdown.text, output)


def cross_validate(task: Task, order: int, trainer: dict[str, Any], folds: int) -> float:
    """Micro F1, from 0 to 1, over all held-back texts."""
    counts = np.zeros(3, dtype=int)
    for fold in range(folds):
        nlp = task.pipeline(order, trainer)
        examples = task.train(nlp)[: task.choose_on or None]
        learn(nlp, [example for i, example in enumerate(examples) if i % folds != fold])
        counts += count_spans(nlp, examples[fold::folds])
    return ratios(*counts.tolist())["f"]


def measure(task: Task, order: int, trainer: dict[str, Any]) -> tuple[str, ...]:
    """Test F1, CPU time of training with the extraction of features, and passes over the corpus."""
    nlp = task.pipeline(order, trainer)
    examples = task.train(nlp)
    begun = time.process_time()
    passes = learn(nlp, examples).evaluations
    spent = time.process_time() - begun
    score = ratios(*count_spans(nlp, task.test(nlp)))["f"]
    return f"{100 * score:.2f}", f"{spent:.1f}", str(passes)


def setting(trainer: dict[str, Any]) -> str:
    """What is chosen."""
    return f"{trainer['epochs']} epochs" if "epochs" in trainer else f"sigma {trainer['sigma']:g}"


if __name__ == "__main__":
    typer.run(main)
