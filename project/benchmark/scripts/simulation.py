"""Training by 1,000 workers that are simulated, beside what `hocrf plan` foretells: see `simulated_team.py`.

Sums are over small vectors, and must be the same to the last bit whatever happens. Times are those of the
full size, by rates that are measured on CoNLL-2000 and a growth of features that is extrapolated from there.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import spacy
import typer
from machine import describe_machine
from simulated_team import CALM, ROUGH, USUAL, Found, simulate
from wasabi import MarkdownRenderer
from workers import stream

from spacy_hocrf.cli.plan.costs import Cluster, Evaluation, Rates, Scale, evaluation
from spacy_hocrf.cli.plan.sampling import sample_of

sys.path.append(str(Path(__file__).parents[2]))
from common import plot
from common.columns import read_columns
from common.report import DocumentArgument, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SENTENCES = 10**8
SAMPLE = 4_000
CORES = 16
NUMBERS = (1, 10, 100, 1000, 1024)
DRAWN = NUMBERS[:-1]
PARTS = 4096
LINKS = (1.25e9, 12.5e9)
"""Bytes a second: Ethernet of 10 and of 100 Gbit."""


@dataclass(frozen=True)
class Run:
    """An evaluation as the formula has it, and as it is simulated."""

    cluster: Cluster
    alone: float  # seconds of one worker, as the formula has them
    predicted: Evaluation
    calm: Found
    usual: Found
    rough: Found

    def efficiency(self, seconds: float) -> float:
        """Speed, by that of one worker times their number."""
        return self.alone / seconds / self.cluster.workers

    @property
    def digests(self) -> set[str]:
        """Of all sums."""
        return {found.digest for found in (self.calm, self.usual, self.rough)}


def main(
    output: DocumentArgument,
    data: Annotated[Path, typer.Option(help="Folder of the corpora")] = Path("assets"),
    sentences: Annotated[int, typer.Option(help="Of the corpus")] = SENTENCES,
    sample: Annotated[int, typer.Option(help="Sentences that are measured")] = SAMPLE,
    parts: Annotated[int, typer.Option(help="Of the corpus")] = PARTS,
) -> None:
    """Measure, simulate, and write the tables and the plot."""
    rates, scale = measured(data / "conll2000" / "train.txt", sentences, sample)
    runs = [
        run(Cluster(workers, parts, CORES, link), rates, scale)
        for link in LINKS
        for workers in NUMBERS
        if workers <= parts
    ]
    choices = list(choose(rates, scale, parts))

    def render(_: object, plot_name: str) -> str:
        return document(runs, choices, rates, scale, sentences, plot_name)

    plot.publish(runs, output, render, draw)


def measured(path: Path, sentences: int, sample: int) -> tuple[Rates, Scale]:
    """Rates and growth of CoNLL-2000, at so many sentences."""
    nlp = spacy.blank("en")
    nlp.add_pipe("hocrf", config={"model": {"order": 1}})
    corpus = read_columns(path)
    found = sample_of(nlp.config, "hocrf", list(stream(nlp, corpus, 1)), sample)
    tokens = sum(len(each.words) for each in corpus) / len(corpus) * sentences
    return found.rates, found.scale(tokens)


def run(cluster: Cluster, rates: Rates, scale: Scale) -> Run:
    """One number of workers, with what goes wrong and without."""
    alone = evaluation(rates, scale, Cluster(1, cluster.parts, CORES, cluster.bandwidth)).seconds
    found = (simulate(cluster, rates, scale, chances) for chances in (CALM, USUAL, ROUGH))
    return Run(cluster, alone, evaluation(rates, scale, cluster), *found)


def choose(rates: Rates, scale: Scale, most: int) -> Iterator[tuple[str, ...]]:
    """What other settings come to: rows of the second table, of 1,024 workers with the faster link."""
    for parts in (most // 64, most // 4, most, 4 * most):
        cluster = Cluster(NUMBERS[-1], parts, CORES, LINKS[-1])
        for keeps in (False, True):
            found = simulate(cluster, rates, scale, USUAL, keeps)
            leaves = "each has its own" if keeps else "whoever is free takes the next"
            seconds, sent = f"{found.seconds:.1f}", f"{found.sent / 1e9:,.0f}"
            yield f"{parts:,}", leaves, seconds, sent


HEADER = (
    "link, GB/s",
    "workers",
    "formula, s",
    "simulated, s",
    "some slow, s",
    "and machines fail, s",
    "failures",
    "parts again",
    "sent, GB",
    "efficiency by the formula",
    "simulated",
    "some slow",
    "sums",
)


def document(
    runs: Sequence[Run],
    choices: Sequence[Sequence[str]],
    rates: Rates,
    scale: Scale,
    sentences: int,
    plot_name: str,
) -> str:
    """The tables and the plot."""
    markdown = MarkdownRenderer()
    markdown.add(markdown.title(1, "Simulated workers"))
    digests = {digest for each in runs for digest in each.digests}
    rows = [
        (
            f"{each.cluster.bandwidth / 1e9:g}",
            f"{each.cluster.workers:,}",
            *(f"{seconds:,.1f}" for seconds in _seconds(each)),
            f"{each.rough.deaths}",
            f"{each.rough.again}",
            f"{each.usual.sent / 1e9:,.0f}",
            *(f"{each.efficiency(seconds):.2f}" for seconds in _seconds(each)[:3]),
            "the same" if len(digests) == 1 else "differ",
        )
        for each in runs
    ]
    markdown.add(table(rows, HEADER, "r"))
    markdown.add(plot.image("Efficiency by number of workers", plot_name))
    header = ("parts", "parts of the workers", "some slow, s", "sent, GB")
    markdown.add(table(choices, header, "rl"))
    known = describe_machine()
    facts = [
        ("sentences", f"{sentences:,}"),
        ("tokens", f"{scale.tokens:,.0f}"),
        ("features", f"{scale.features:,.0f}"),
        ("numbers added up", f"{scale.extent:,.0f}"),
        ("µs a token", f"{1e6 * rates.token:.2f}"),
        (
            "ns to clear, add, place, collect a number",
            ", ".join(f"{1e9 * each:.2f}" for each in _ns(rates)),
        ),
        ("ns a feature of L-BFGS", f"{1e9 * rates.step:.1f}"),
        *((key, str(known[key])) for key in ("measured", "CPU", "cores", "load average")),
    ]
    markdown.add(table(facts, ("measured", ""), "ll"))
    return markdown.text


def _seconds(each: Run) -> list[float]:
    found = (each.calm, each.usual, each.rough)
    return [each.predicted.seconds, *(one.seconds for one in found)]


def _ns(rates: Rates) -> tuple[float, ...]:
    return rates.clear, rates.add, rates.place, rates.collect


def draw(runs: Sequence[Run]) -> "Figure":
    """Efficiency by workers, for each link."""
    figure = plot.figure(7.2, 4.2)
    axes = figure.subplots()
    for link, color in zip(LINKS, (plot.ORANGE, plot.BLUE)):
        some = [
            each
            for each in runs
            if each.cluster.bandwidth == link and each.cluster.workers in DRAWN
        ]
        workers = [each.cluster.workers for each in some]
        name = f"{link / 1e9:g} GB/s"
        for label, style, number in (
            ("formula", "--", 0),
            ("simulated", "o-", 1),
            ("some slow", "s:", 2),
        ):
            values = [each.efficiency(_seconds(each)[number]) for each in some]
            axes.plot(workers, values, style, color=color, markersize=4, label=f"{name}, {label}")
    axes.set_xscale("log")
    axes.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
    axes.minorticks_off()
    axes.set_ylim(0, 1.05)
    axes.set_xlabel("workers")
    axes.set_ylabel("efficiency")
    plot.tidy(axes)
    axes.legend(frameon=False, loc="lower left")
    return figure


if __name__ == "__main__":
    typer.run(main)
