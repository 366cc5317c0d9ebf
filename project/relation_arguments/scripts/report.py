"""Tables 3 to 5 and Figure 4 of Nguyen et al. (JMLR 15, 2014) from the predictions: F1 of each
relation, p-values, sizes, times.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import srsly
import typer
from arguments import SYSTEMS
from convert_conll04 import RELATIONS
from spacy.tokens import Doc
from wasabi import MarkdownRenderer

from spacy_hocrf.api import EntsScorer, count_items, f1, read_gold, read_system

sys.path.append(str(Path(__file__).parents[2]))
from common import plot
from common.report import table
from common.significance import make_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TABLE_3 = ("C1", "C2", "C3", "SC1", "SC2", "SC3")
TABLE_5 = ("C1", "C2", "C3", "SC3", "C1-BIO", "C2-BIO", "C3-BIO")
FIGURE_4 = ("SC1", "SC2", "SC3", "SC4", "SC5")
TESTED = tuple(dict.fromkeys((*TABLE_3, *TABLE_5)))

# The row AVERAGE of the paper's Tables 3 and 5, six relations of ACE 2005: another corpus, so only
# the columns' order compares.
PAPER = {
    "C1": 42.91, "C2": 46.09, "C3": 48.58, "SC1": 42.99, "SC2": 48.51, "SC3": 49.26,
    "C1-BIO": 43.31, "C2-BIO": 46.15, "C3-BIO": 51.11,
}  # fmt: skip


def main(
    predictions_dir: Annotated[
        Path, typer.Argument(help="What arguments.py has written", exists=True)
    ],
    metrics_path: Annotated[
        Path, typer.Argument(help="Sizes and times of the models (JSON)", exists=True)
    ],
    plot_path: Annotated[Path, typer.Argument(help="Where the plot goes (PNG)")],
    trials: Annotated[int, typer.Option(help="Shuffles of each test; the paper has 999")] = 10_000,
) -> None:
    """Print the tables and draw the plot."""
    scorer, gold_path = EntsScorer(), predictions_dir / "gold.spacy"
    gold = read_gold(gold_path, scorer)
    systems = {
        name: read_system(predictions_dir / f"{name}.spacy", gold, gold_path, scorer)
        for name in SYSTEMS
    }
    models = srsly.read_json(metrics_path)
    scores = {name: relation_scores(docs, gold) for name, docs in systems.items()}
    markdown = MarkdownRenderer()
    for names in (TABLE_3, TABLE_5, FIGURE_4):
        markdown.add(table(score_rows(scores, names), ("F1", *names)))
    counts = count_items(scorer, [systems[name] for name in TESTED], gold)
    markdown.add(make_table(list(TESTED), counts, trials=trials))
    markdown.add(table(size_rows(models), SIZES))
    print(markdown.text)
    plot.save(plot_path, draw, models)


def relation_scores(docs: Sequence[Doc], gold: Sequence[Doc]) -> dict[str, float]:
    """F1 of each relation, their mean, and F1 of all arguments together, in per cent.

    docs, gold (Sequence[Doc]): the test sentences once for each relation, arguments as entities.
    RETURNS (Dict[str, float]): by relation, "average" and "micro".
    """
    counts = count_items(EntsScorer(), [docs], gold)
    correct, predicted, expected = (
        array.sum(axis=-1) for array in (counts.correct[0], counts.predicted[0], counts.gold)
    )
    size = len(gold) // len(RELATIONS)
    scores = {}
    for number, relation in enumerate(RELATIONS):
        part = slice(number * size, (number + 1) * size)
        counted = (count[part].sum() for count in (correct, predicted, expected))
        scores[relation] = 100 * float(f1(*counted))
    return {
        **scores,
        "average": sum(scores.values()) / len(scores),
        "micro": 100 * float(f1(correct.sum(), predicted.sum(), expected.sum())),
    }


def score_rows(
    scores: Mapping[str, Mapping[str, float]], names: Sequence[str]
) -> list[tuple[str, ...]]:
    """A row for each relation, the averages, and the paper's average."""
    rows = [
        (relation, *(f"{scores[name][relation]:.2f}" for name in names))
        for relation in (*RELATIONS, "average", "micro")
    ]
    if all(name in PAPER for name in names):
        rows.append(("paper's average, other relations", *(f"{PAPER[name]:.2f}" for name in names)))
    return rows


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
        for name in SYSTEMS
    ]


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
    orders = [SYSTEMS[name].order for name in FIGURE_4]
    for axes, key, title in zip(
        panels, ("patterns", "seconds"), ("label patterns", "training time (CPU s)")
    ):
        values = [mean(models, name, key) for name in FIGURE_4]
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
