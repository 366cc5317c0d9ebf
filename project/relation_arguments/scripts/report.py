"""Tables 3 to 5 and Figure 4 of Nguyen et al. (JMLR 15, 2014) from the predictions: F1 of each relation, p-values, sizes, times."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any

import srsly
import typer
from arguments import SYSTEMS
from convert_conll04 import RELATIONS
from spacy.tokens import Doc
from tqdm import tqdm
from wasabi import MarkdownRenderer

from spacy_hocrf.cli.compare import compare_counts, read_docs
from spacy_hocrf.cli.counts import Counts, EntsScorer, count_items

TABLE_3 = ("C1", "C2", "C3", "SC1", "SC2", "SC3")
TABLE_5 = ("C1", "C2", "C3", "SC3", "C1-BIO", "C2-BIO", "C3-BIO")
FIGURE_4 = ("SC1", "SC2", "SC3", "SC4", "SC5")
LEVEL = 0.01

# The row AVERAGE of the paper's Tables 3 and 5, six relations of ACE 2005: another corpus, so only the columns' order compares.
PAPER = {
    "C1": 42.91, "C2": 46.09, "C3": 48.58, "SC1": 42.99, "SC2": 48.51, "SC3": 49.26,
    "C1-BIO": 43.31, "C2-BIO": 46.15, "C3-BIO": 51.11,
}  # fmt: skip


def main(
    predictions_dir: Annotated[Path, typer.Argument(help="What arguments.py has written", exists=True)],
    metrics_path: Annotated[Path, typer.Argument(help="Sizes and times of the models (JSON)", exists=True)],
    plot_path: Annotated[Path, typer.Argument(help="Where the plot goes (PNG)")],
    trials: Annotated[int, typer.Option(help="Shuffles of each test; the paper has 999")] = 10_000,
) -> None:
    """Print the tables and draw the plot."""
    gold = read_docs(predictions_dir / "gold.spacy")
    systems = {name: read_docs(predictions_dir / f"{name}.spacy") for name in SYSTEMS}
    models = srsly.read_json(metrics_path)
    scores = {name: relation_scores(docs, gold) for name, docs in systems.items()}
    tests = significance(systems, gold, trials)
    markdown = MarkdownRenderer()
    for names in (TABLE_3, TABLE_5, FIGURE_4):
        header = ["F1", *names]
        markdown.add(markdown.table(score_rows(scores, names), header, aligns=("l", *"r" * len(names))))
    markdown.add(markdown.table(test_rows(tests, TABLE_3), ["p", *TABLE_3[1:]], aligns=("l", *"r" * 5)))
    markdown.add(markdown.table(test_rows(tests, TABLE_5[3:]), ["p", *TABLE_5[4:]], aligns=("l", *"r" * 3)))
    markdown.add(markdown.table(size_rows(models), SIZES, aligns=("l", *"r" * (len(SIZES) - 1))))
    print(markdown.text)
    draw(models, plot_path)


def relation_scores(docs: Sequence[Doc], gold: Sequence[Doc]) -> dict[str, float]:
    """F1 of each relation, their mean, and F1 of all arguments together, in per cent.

    docs, gold (Sequence[Doc]): the test sentences once for each relation, arguments as entities.
    RETURNS (Dict[str, float]): by relation, "average" and "micro".
    """
    counts = count_items(EntsScorer(), [docs], gold)
    correct, predicted, expected = (array.sum(axis=-1) for array in (counts.correct[0], counts.predicted[0], counts.gold))
    size = len(gold) // len(RELATIONS)
    scores = {}
    for number, relation in enumerate(RELATIONS):
        part = slice(number * size, (number + 1) * size)
        scores[relation] = f1(correct[part].sum(), predicted[part].sum(), expected[part].sum())
    return {**scores, "average": sum(scores.values()) / len(scores), "micro": f1(correct.sum(), predicted.sum(), expected.sum())}


def f1(correct: float, predicted: float, expected: float) -> float:
    """In per cent; 0 where there is nothing."""
    return 200 * float(correct) / max(1.0, float(predicted + expected))


Tests = Mapping[tuple[str, str], tuple[float, float]]


def significance(systems: Mapping[str, Sequence[Doc]], gold: Sequence[Doc], trials: int) -> Tests:
    """Micro-averaged F1 of the second minus that of the first, and its p-value, for every pair of systems of the tables."""
    names = list(dict.fromkeys((*TABLE_3, *TABLE_5)))
    counts: Counts = count_items(EntsScorer(), [systems[name] for name in names], gold)
    tests = {}
    for a, b in tqdm(list(combinations(range(len(names)), 2)), desc="Tests", disable=None, leave=False):
        row = compare_counts(counts, a, b, trials=trials)["all"]
        tests[names[a], names[b]] = (row["difference"], row["p_value"])
    return tests


def score_rows(scores: Mapping[str, Mapping[str, float]], names: Sequence[str]) -> list[tuple[str, ...]]:
    """A row for each relation, the averages, and the paper's average."""
    rows = [(relation, *(f"{scores[name][relation]:.2f}" for name in names)) for relation in (*RELATIONS, "average", "micro")]
    if all(name in PAPER for name in names):
        rows.append(("paper's average, other relations", *(f"{PAPER[name]:.2f}" for name in names)))
    return rows


def test_rows(tests: Tests, names: Sequence[str]) -> list[tuple[str, ...]]:
    """The upper triangle: p, bold below LEVEL, and < where the row's system is worse than the column's, > where it is better."""
    rows = []
    for i, first in enumerate(names[:-1]):
        cells = []
        for j, second in enumerate(names[1:], 1):
            if j <= i:
                cells.append("")
                continue
            difference, p = tests[first, second] if (first, second) in tests else negated(tests[second, first])
            sign = "<" if difference > 0 else ">" if difference < 0 else "="
            cells.append(f"**{p:.4f}** {sign}" if p < LEVEL else f"{p:.4f} {sign}")
        rows.append((first, *cells))
    return rows


def negated(test: tuple[float, float]) -> tuple[float, float]:
    """The same test seen from the other system."""
    return -test[0], test[1]


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


def draw(models: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Label patterns and training time of the semi-CRFs against their order, averages over the relations."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    orders = [SYSTEMS[name].order for name in FIGURE_4]
    for axes, key, title in zip(panels, ("patterns", "seconds"), ("label patterns", "training time (CPU s)")):
        axes.plot(orders, [mean(models, name, key) for name in FIGURE_4], marker="s", color="#d0661b")
        axes.set_xlabel("maximum order")
        axes.set_ylabel(f"{title}, average of the relations")
        axes.set_xticks(orders)
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    typer.run(main)
