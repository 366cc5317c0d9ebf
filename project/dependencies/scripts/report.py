"""The tables of the README: scores, tests of significance, and whether probabilities are right."""

import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import typer
from numpy.typing import NDArray
from wasabi import MarkdownRenderer

from spacy_hocrf.api import f1, holm, randomization_test

sys.path.append(str(Path(__file__).parents[2]))
from common.report import DocumentArgument, LinesArgument, Result, group, read_lines, table

HEADER = (
    *("system", "training windows", "precision", "recall", "F", "F, replies"),
    *("training CPU, s", "decoding CPU, s"),
)
TESTS = ("A", "B", "F (A)", "F (B)", "B - A", "p", "Holm")
CALIBRATION = ("system", "probability", "links", "mean probability", "right")
BINS = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
NAMES = ("correct", "predicted", "gold")
TRIALS, SEED = 10_000, 0


def main(results: LinesArgument, output: DocumentArgument) -> None:
    """Write the tables."""
    output.write_text(render(read_lines(results)), encoding="utf8")


def render(results: Sequence[Result]) -> str:
    """The whole document."""
    systems = {
        f"{name} ({windows})" if windows else name: folds
        for (name, windows), folds in group(results, "system", "windows").items()
    }
    markdown = MarkdownRenderer()
    markdown.add(markdown.title(1, "Who replies to whom"))
    markdown.add(markdown.title(2, "Results"))
    markdown.add(table([row(folds) for folds in systems.values()], HEADER, "l"))
    markdown.add(markdown.title(2, "Tests"))
    markdown.add(table(tests(systems), TESTS, "ll"))
    markdown.add(markdown.title(2, "Whether probabilities are right"))
    rows = [each for name, folds in systems.items() for each in calibration(name, folds)]
    markdown.add(table(rows, CALIBRATION, "ll"))
    return markdown.text + "\n"


def row(folds: Sequence[Result]) -> tuple[str, ...]:
    """A system: all folds together."""
    correct, predicted, gold = (by_log(folds, name).sum(axis=0) for name in NAMES)
    spent = [sum(fold.get(name, 0.0) for fold in folds) for name in ("training", "decoding")]
    windows = folds[0]["windows"]
    return (
        folds[0]["system"],
        f"{windows}" if windows else "",
        f"{correct[0] / predicted[0]:.3f}",
        f"{correct[0] / gold[0]:.3f}",
        *(f"{score:.3f}" for score in f1(correct, predicted, gold)),
        *(f"{seconds:.1f}" if windows else "" for seconds in spent),
    )


def tests(systems: Mapping[str, Sequence[Result]]) -> list[tuple[str, ...]]:
    """Approximate randomization tests of F over logs, of systems that differ in one thing; p of all of them
    corrected by Holm's method.
    """
    names = list(systems)
    pairs = [(a, b) for k, a in enumerate(names) for b in names[k + 1 :] if comparable(a, b)]
    rows, p = [], []
    for pair in pairs:
        counts = [np.stack([by_log(systems[name], each) for name in pair]) for each in NAMES]
        p.append(randomization_test(*counts[:2], counts[2][0], trials=TRIALS, seed=SEED).p[0])
        a, b = (f1(*(each[k].sum(axis=0) for each in counts))[0] for k in range(2))
        rows.append((*pair, f"{a:.3f}", f"{b:.3f}", f"{b - a:+.3f}"))
    return [(*row, f"{one:.4f}", f"{fair:.4f}") for row, one, fair in zip(rows, p, holm(p))]


def comparable(a: str, b: str) -> bool:
    """Do two systems differ in one thing?"""
    (name, _, windows), (other, _, others) = a.partition(" ("), b.partition(" (")
    return name == other or windows == others


def calibration(name: str, folds: Sequence[Result]) -> list[tuple[str, ...]]:
    """Of the links that were found with a probability in each bin, how many are right."""
    scores, right = (np.concatenate([fold[each] for fold in folds]) for each in ("scores", "right"))
    place = np.minimum(np.digitize(scores, BINS), len(BINS) - 1)
    rows = []
    for k, (first, end) in enumerate(pairwise(BINS), 1):
        inside = place == k
        if inside.any():
            shares = (f"{each[inside].mean():.3f}" for each in (scores, right))
            rows.append((name, f"{first} to {end}", f"{inside.sum()}", *shares))
    return rows


def by_log(folds: Sequence[Result], name: str) -> NDArray[np.int64]:
    """Counts of every log: all links, and replies; int64 [logs, 2]."""
    return np.concatenate([np.array(fold[name]) for fold in folds])


if __name__ == "__main__":
    typer.run(main)
