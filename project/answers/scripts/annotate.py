"""What to annotate next: tweets that `spacy hocrf doubt --unlabelled` chooses, and random ones.

Of the texts of Broad Twitter Corpus H that are for training and development, each seed sets some aside for F1
and takes some at random, for which there is annotation. Then more are annotated again and again: those that
the model trained on the former ones asks for, or random ones.
"""

import random
import sys
from collections.abc import Iterator, Sequence
from math import inf
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Annotated

import spacy
import typer
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

sys.path.append(str(Path(__file__).parents[2] / "defaults" / "scripts"))
from readers import Text
from systems import make_doc
from tasks import load

sys.path.append(str(Path(__file__).parents[2]))
from common.plot import BLUE, GREY, figure, image, publish, tidy
from common.report import Result, group, read_lines, table, write_lines
from common.training import count_spans, learn

from spacy_hocrf.api import next_texts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HELD, STEP, BUDGET = 400, 100, 800
WAYS = ("random", "doubt")
SETTINGS = {
    "model": {"order": 1},
    "trainer": {"@misc": "spacy-hocrf.LBFGS.v1", "sigma": 1.0, "threads": 1},
    "decoder": {"@misc": "spacy-hocrf.ExpectedF.v1", "cost": 0.3},
}
"""For speed, nothing is chosen anew for each number of texts."""


def main(
    output: Annotated[Path, typer.Argument(help="Markdown file; the plot goes beside it")],
    assets: Annotated[Path, typer.Option(help="Folder of the corpora")] = Path("assets"),
    seeds: Annotated[int, typer.Option(help="Number of seeds")] = 10,
) -> None:
    """Annotate in both ways, and compare how F1 grows."""
    parts = load("tweets", assets)
    texts = [*parts["train"], *parts["dev"]]
    lines = Path("metrics") / "annotate.jsonl"
    ways = [(seed, way) for seed in range(seeds) for way in WAYS]
    rows = (row for seed, way in ways for row in annotate(texts, way, seed))
    write_lines(lines, rows, lambda row: "{way} {seed}: {texts} texts, F1 {f:.1%}".format(**row))
    publish(read_lines(lines), output, render, draw)


def annotate(texts: Sequence[Text], way: str, seed: int) -> Iterator[Result]:
    """F1 after each step."""
    rng = random.Random(seed)
    shuffled = rng.sample(list(texts), len(texts))
    held, chosen, pool = (
        shuffled[:HELD],
        shuffled[HELD : HELD + STEP],
        shuffled[HELD + STEP :],
    )
    while True:
        nlp = trained(chosen)
        f = f1(nlp, held)
        yield {"way": way, "seed": seed, "texts": len(chosen), "f": f}
        if len(chosen) >= BUDGET or not pool:
            return
        if way == "random":
            numbers = rng.sample(range(len(pool)), min(STEP, len(pool)))
        else:
            asked = next_texts(nlp, [make_doc(nlp.vocab, text) for text in pool])
            numbers = [text.number for text in asked[:STEP]]
        chosen = chosen + [pool[i] for i in numbers]
        pool = [text for i, text in enumerate(pool) if i not in {*numbers}]


def trained(texts: Sequence[Text]) -> Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("hocrf", config=SETTINGS)
    learn(nlp, as_examples(nlp, texts))
    return nlp


def f1(nlp: Language, texts: Sequence[Text]) -> float:
    right, found, wanted = count_spans(nlp, as_examples(nlp, texts))
    return 2 * right / max(1, found + wanted)


def as_examples(nlp: Language, texts: Sequence[Text]) -> list[Example]:
    return [Example(Doc(nlp.vocab, words=text.words), make_doc(nlp.vocab, text)) for text in texts]


def needed(curve: Sequence[tuple[int, float]], f: float) -> float:
    """Number of texts at which a curve comes to an F1 for the first time, between two of its points by a
    straight line; infinite if it never does.
    """
    before = curve[0]
    for point in curve:
        if point[1] >= f:
            share = 1.0 if point[1] == before[1] else (f - before[1]) / (point[1] - before[1])
            return before[0] + share * (point[0] - before[0])
        before = point
    return inf


def curves(results: Sequence[Result], way: str) -> list[tuple[str, list[tuple[int, float]]]]:
    """Texts and F1, of each seed, and of their mean."""
    mine = [row for row in results if row["way"] == way]
    found = [
        (str(seed), [(row["texts"], row["f"]) for row in rows])
        for seed, rows in group(mine, "seed").items()
    ]
    both = [(n, mean(row["f"] for row in rows)) for n, rows in group(mine, "texts").items()]
    return [*found, ("mean", both)]


def render(results: Sequence[Result], plot: str) -> str:
    """The table of the F1 that random texts reach with the whole budget, and the numbers of texts by which
    chosen ones do.
    """
    rows = []
    for (seed, at_random), (_, by_doubt) in zip(*(curves(results, way) for way in WAYS)):
        budget, f = at_random[-1]
        enough = needed(by_doubt, f)
        reached = ("never", "") if enough == inf else (f"{enough:.0f}", f"{enough / budget:.0%}")
        rows.append((seed, f"{f:.1%}", str(budget), f"{by_doubt[-1][1]:.1%}", *reached))
    header = ("seed", "F1, random", "texts", "F1, chosen", "chosen texts for F1 of random", "share")
    return "\n\n".join(
        ["# What to annotate next", table(rows, header), image("F1 by number of texts", plot)]
    )


def draw(results: Sequence[Result]) -> "Figure":
    """F1 by the number of texts: each seed faint, their mean strong."""
    page = figure(6.5, 4)
    axes = page.subplots()
    for way, color in zip(WAYS, (GREY, BLUE)):
        for seed, curve in curves(results, way):
            strong = seed == "mean"
            label = {"random": "random texts", "doubt": "hocrf doubt --unlabelled"}[way]
            axes.plot(
                *zip(*[(n, 100 * f) for n, f in curve]),
                color=color,
                alpha=1 if strong else 0.3,
                linewidth=2 if strong else 1,
                marker="o" if strong else None,
                label=label if strong else None,
            )
    axes.set(xlabel="annotated tweets", ylabel="F1, %")
    axes.legend(frameon=False, loc="lower right")
    tidy(axes)
    return page


if __name__ == "__main__":
    typer.run(main)
