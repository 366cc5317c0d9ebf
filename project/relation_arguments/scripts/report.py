"""Tables 3 to 5 and Figure 4 of Nguyen et al. (JMLR 15, 2014) from the predictions: F1 of each
relation, p-values, what the paper finds, F1 by distance, sizes, times.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import srsly
import typer
from arguments import SYSTEMS
from convert_conll04 import RELATIONS
from numpy.typing import NDArray
from spacy.tokens import Doc, Span
from wasabi import MarkdownRenderer

from spacy_hocrf.api import (
    Counts,
    EntsScorer,
    compare_counts,
    count_items,
    f1,
    read_gold,
    read_system,
)

sys.path.append(str(Path(__file__).parents[2]))
from common import plot
from common.report import DocumentArgument, table
from common.scores import LEVEL, gain
from common.significance import make_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURE_4 = ("SC1", "SC2", "SC3", "SC4", "SC5")
BESIDE = ("C1", "C2", "SC1", "SC2")
BY_DISTANCE = ("C1", "C2", "C3", "C3-BIO", "SC1", "SC2", "SC3")

# The row AVERAGE of the paper's Tables 3 and 5, six relations of ACE 2005: another corpus, so only
# the columns' order compares.
PAPER = {
    "C1": 42.91, "C2": 46.09, "C3": 48.58, "SC1": 42.99, "SC2": 48.51, "SC3": 49.26,
    "C1-BIO": 43.31, "C2-BIO": 46.15, "C3-BIO": 51.11,
}  # fmt: skip

DISTANCES = ((0, 1), (2, 6), (7, 1000))
"""Tokens between arguments, from and to: a third of the training sentences each."""


class Pair(NamedTuple):
    """Two systems that the paper compares."""

    finding: str
    first: str
    second: str
    p: str = "not tested"  # p' of Table 4
    better: bool = True  # is the second one, or is there no difference to speak of?
    distance: int | None = None  # number of the DISTANCES that it is about
    paper: float | None = None  # what the second has more there, points of F1; by default of PAPER


FINDINGS = (
    Pair("1. SC1 is no better than C1", "C1", "SC1", "0.226", better=False),
    Pair("2. SC2 is better than SC1", "SC1", "SC2", "0.001"),
    Pair("3. SC3 is better than SC2", "SC2", "SC3", "0.017"),
    Pair("4. SC3 is better than C1", "C1", "SC3", "0.001"),
    Pair("4. than SC1", "SC1", "SC3", "0.001"),
    Pair("4. than C2", "C2", "SC3", "0.001"),
    Pair("4. and, not significantly, than C3", "C3", "SC3", "0.074"),
    Pair("5. C2 is better than C1", "C1", "C2", "0.001"),
    Pair("5. C3 than C1", "C1", "C3", "0.001"),
    Pair("5. and than C2", "C2", "C3", "0.001"),
    Pair("6. BIO helps C1 hardly", "C1", "C1-BIO", better=False),
    Pair("6. and C2 hardly", "C2", "C2-BIO", better=False),
    Pair("6. BIO helps C3 much", "C3", "C3-BIO"),
    Pair("6. and C3-BIO is best, above SC3", "SC3", "C3-BIO"),
    # The five other relations of the paper's Table 5, on average, and PHYS, the one of far arguments.
    Pair("7. near, C3-BIO is ahead of SC3", "SC3", "C3-BIO", distance=0, paper=3.34),
    Pair("7. far, SC3 is ahead", "C3-BIO", "SC3", distance=-1, paper=5.58),
)


class Predictions(NamedTuple):
    """What systems have predicted in the test sentences, once for each relation."""

    names: tuple[str, ...]
    counts: Counts
    gold: Sequence[Doc]

    def only(self, documents: NDArray[np.int64]) -> "Predictions":
        """Some of the documents."""
        own = self.counts
        parts = own.correct[:, documents], own.predicted[:, documents], own.gold[documents]
        counts = Counts(own.labels, *parts)
        return Predictions(self.names, counts, [self.gold[i] for i in documents])

    def score(self, name: str) -> float:
        """F1 of all arguments together, in per cent."""
        system = self.names.index(name)
        right, found = self.counts.correct[system].sum(), self.counts.predicted[system].sum()
        return 100 * float(f1(right, found, self.counts.gold.sum()))

    def compare(self, first: str, second: str, trials: int) -> tuple[float, float]:
        """F1 of the second less that of the first, in points, and p."""
        numbers = self.names.index(first), self.names.index(second)
        result = compare_counts(self.counts, *numbers, trials=trials)["all"]
        return 100 * result["difference"], result["p_value"]

    def relation(self, number: int) -> "Predictions":
        """Those for one relation."""
        size = len(self.gold) // len(RELATIONS)
        return self.only(np.arange(number * size, (number + 1) * size))

    def apart(self, least: int, most: int) -> "Predictions":
        """Those of sentences with so many tokens between the arguments."""
        gaps = np.array([gap(doc.ents) for doc in self.gold])
        return self.only(np.flatnonzero((least <= gaps) & (gaps <= most)))

    def average(self, name: str) -> float:
        """The mean of F1 of the relations, in per cent."""
        scores = [self.relation(number).score(name) for number in range(len(RELATIONS))]
        return sum(scores) / len(scores)


def main(
    predictions_dir: Annotated[
        Path, typer.Argument(help="What arguments.py has written", exists=True)
    ],
    metrics_path: Annotated[
        Path, typer.Argument(help="Sizes and times of the models (JSON)", exists=True)
    ],
    output: DocumentArgument,
    features: Annotated[str, typer.Argument(help="Whose templates, for the headings")],
    beside: Annotated[
        list[str] | None,
        typer.Option(help="NAME=FOLDER: predictions with other features, for what order 2 adds"),
    ] = None,
    trials: Annotated[int, typer.Option(help="Shuffles of each test; the paper has 999")] = 10_000,
    draws: Annotated[int, typer.Option(help="So many times each sentence was predicted")] = 1,
) -> None:
    """Write and print the tables, and draw the plot."""
    models = srsly.read_json(metrics_path)
    names = (name for name in SYSTEMS if (predictions_dir / f"{name}.spacy").exists())
    answers = read(predictions_dir, tuple(names), draws)

    def document(models: Sequence[Mapping[str, Any]], plot_name: str) -> str:
        markdown = MarkdownRenderer()
        markdown.add(markdown.title(1, f"The arguments of relations, {features}"))
        for heading, tabled in (
            ("F1", table(score_rows(answers), ("F1", *answers.names))),
            ("p-values", p_values(answers, trials)),
            (
                "What the paper finds",
                table([*finding_rows(answers, trials), *growth_rows(models)], FOUND, "llr"),
            ),
            ("Near and far", table(distance_rows(answers, trials), NEAR_AND_FAR)),
            ("Sizes and time", table(size_rows(models), SIZES)),
        ):
            markdown.add(markdown.title(2, f"{heading}, {features}"))
            markdown.add(tabled)
        markdown.add(plot.image("Label patterns and training time against order", plot_name))
        if beside:
            sets = dict(each.rsplit("=", 1) for each in beside)
            markdown.add(markdown.title(2, "What order 2 adds"))
            markdown.add(table(beside_rows(sets, trials), WHAT_ORDER_2_ADDS))
        return markdown.text

    plot.publish(models, output, document, draw)


def read(folder: Path, names: tuple[str, ...], draws: int = 1) -> Predictions:
    """The predictions of some systems; a test swaps those of all draws of a sentence together."""
    scorer, gold_path = EntsScorer(), folder / "gold.spacy"
    gold = read_gold(gold_path, scorer)
    systems = [read_system(folder / f"{name}.spacy", gold, gold_path, scorer) for name in names]
    counts = count_items(scorer, systems, gold)
    sums = (
        np.sum(np.split(each, draws, axis=-2), axis=0)
        for each in (counts.correct, counts.predicted, counts.gold)
    )
    return Predictions(names, Counts(counts.labels, *sums), gold[: len(gold) // draws])


def score_rows(answers: Predictions) -> Iterator[tuple[str, ...]]:
    """F1 of each relation, their mean, F1 of all arguments together, and the paper's mean."""
    for number, relation in enumerate(RELATIONS):
        part = answers.relation(number)
        yield relation, *(f"{part.score(name):.2f}" for name in answers.names)
    yield "average", *(f"{answers.average(name):.2f}" for name in answers.names)
    yield "micro", *(f"{answers.score(name):.2f}" for name in answers.names)
    paper = (f"{PAPER[name]:.2f}" if name in PAPER else "" for name in answers.names)
    yield "paper's average, other relations", *paper


def p_values(answers: Predictions, trials: int) -> str:
    """Table 4, with the systems of Table 5."""
    names = [name for name in answers.names if name in PAPER]
    numbers = [answers.names.index(name) for name in names]
    own = answers.counts
    labels, correct, predicted, gold = own.labels, own.correct, own.predicted, own.gold
    counts = Counts(labels, correct[numbers], predicted[numbers], gold)
    return make_table(names, counts, trials=trials)


FOUND = ("the paper finds", "systems", "paper (p')", "here, average", "micro (p)", "so here?")


def finding_rows(answers: Predictions, trials: int) -> Iterator[tuple[str, ...]]:
    """What the paper says of two systems, its gain and ours."""
    for pair in FINDINGS:
        if {pair.first, pair.second} <= {*answers.names}:
            part = answers if pair.distance is None else answers.apart(*DISTANCES[pair.distance])
            paper = PAPER[pair.second] - PAPER[pair.first] if pair.paper is None else pair.paper
            points, p = part.compare(pair.first, pair.second, trials)
            yield (
                pair.finding,
                f"{pair.first} → {pair.second}",
                f"{paper:+.2f} ({pair.p})",
                f"{answers.average(pair.second) - answers.average(pair.first):+.2f}"
                if part is answers
                else "",
                gain(points, p),
                verdict(points, p, pair.better),
            )


def verdict(points: float, p: float, better: bool) -> str:
    """Is it as the paper says? A gain should be significant; where it sees none there should be none."""
    gains = p < LEVEL and points > 0
    if not better:
        return "no" if gains else "yes"
    return "yes" if gains else "no" if p < LEVEL else "not significant"


def growth_rows(models: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    """How much more an order of 5 takes than one of 1, where there is one."""
    if "SC5" in names_of(models):
        patterns, seconds = (
            mean(models, "SC5", key) / mean(models, "SC1", key) for key in ("patterns", "seconds")
        )
        yield (
            "8. time grows more slowly than the patterns",
            "SC1 → SC5",
            "Figure 4",
            f"patterns × {patterns:.1f}",
            f"CPU time × {seconds:.1f}",
            "yes" if seconds < patterns else "no",
        )


NEAR_AND_FAR = (
    *("tokens between", "sentences", *BY_DISTANCE),
    *("SC3 - C3-BIO (p)", "SC3 - C3 (p)"),
)


def distance_rows(answers: Predictions, trials: int) -> Iterator[tuple[str, ...]]:
    """F1 in the sentences with the relation, by the tokens between its arguments."""
    for least, most in DISTANCES:
        part = answers.apart(least, most)
        yield (
            f"{least} to {most}" if most < DISTANCES[-1][1] else f"{least} or more",
            str(len(part.gold)),
            *(f"{part.score(name):.2f}" for name in BY_DISTANCE),
            *(gain(*part.compare(other, "SC3", trials)) for other in ("C3-BIO", "C3")),
        )


def gap(arguments: Iterable[Span]) -> int:
    """Tokens between an argument and the nearest one of the other role, the most of the sentence;
    -1 without any.
    """
    gaps = [
        min(
            max(one.start, other.start) - min(one.end, other.end)
            for other in arguments
            if other is not one and (other.label_ != one.label_ or one.label_ == "Arg1Arg2")
        )
        for one in arguments
    ]
    return max(gaps, default=-1)


WHAT_ORDER_2_ADDS = (
    *("features", "C1", "C2", "C2 - C1 (p)"),
    *("SC1", "SC2", "SC2 - SC1 (p)", "average"),
)


def beside_rows(sets: Mapping[str, str], trials: int) -> Iterator[tuple[str, ...]]:
    """What order 2 adds with each set of features: micro F1, and the mean gain of the relations.

    sets (Mapping[str, str]): folders of predictions, by what the features are called.
    """
    for name, folder in sets.items():
        answers = read(Path(folder), BESIDE)
        cells = [
            cell
            for pair in (BESIDE[:2], BESIDE[2:])
            for cell in (
                *(f"{answers.score(each):.2f}" for each in pair),
                gain(*answers.compare(*pair, trials)),
            )
        ]
        yield name, *cells, f"{answers.average('SC2') - answers.average('SC1'):+.2f}"


SIZES = ("average of the five relations", "features", "patterns", "evaluations", "CPU s")


def size_rows(models: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """Sizes and training time of each system."""
    return [
        (
            name,
            f"{mean(models, name, 'features'):,.0f}",
            f"{mean(models, name, 'patterns'):.1f}",
            f"{mean(models, name, 'evaluations'):.0f}",
            f"{mean(models, name, 'seconds'):.1f}",
        )
        for name in names_of(models)
    ]


def names_of(models: Sequence[Mapping[str, Any]]) -> list[str]:
    """Of the systems that were trained."""
    return list(dict.fromkeys(row["system"] for row in models))


def mean(models: Sequence[Mapping[str, Any]], name: str, key: str) -> float:
    """Average over the relations."""
    values = [row[key] for row in models if row["system"] == name]
    return sum(values) / len(values)


def draw(models: Sequence[Mapping[str, Any]]) -> "Figure":
    """Label patterns and training time of the semi-CRFs against their order, averages over the
    relations.
    """
    figure = plot.figure(9, 3.6)
    panels = figure.subplots(1, 2)
    names = [name for name in FIGURE_4 if name in names_of(models)]
    orders = [SYSTEMS[name].order for name in names]
    for axes, key, title in zip(
        panels, ("patterns", "seconds"), ("label patterns", "training time (CPU s)")
    ):
        values = [mean(models, name, key) for name in names]
        axes.plot(orders, values, marker="s", color=plot.ORANGE)
        axes.set_xlabel("maximum order")
        axes.set_ylabel(title)
        axes.set_xticks(orders)
        axes.set_ylim(0, 1.1 * max(values))
        plot.tidy(axes)
    figure.suptitle("Semi-CRFs, average of the five relations", fontsize=10)
    return figure


if __name__ == "__main__":
    typer.run(main)
