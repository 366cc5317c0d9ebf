"""Tables 7 and 9 of Nguyen et al. (JMLR 15, 2014): is one model better than another? p-values of
every pair, beside the paper's.

The test is that of `python -m spacy hocrf compare`: approximate randomization of micro-averaged F1
over texts, two-sided. The paper counts the shuffles with a greater difference in the direction
found, so its p' is about half as large.
"""

import sys
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Annotated

import srsly
import typer
from jmlr_tasks import MODELS, TASKS, Task

from spacy_hocrf.api import EntsScorer, TagsScorer, compare

sys.path.append(str(Path(__file__).parents[2]))
from common.report import show, table


def main(
    task: Annotated[str, typer.Argument(help="references or punctuation")],
    folder: Annotated[
        Path, typer.Argument(help="Where jmlr.py has left its predictions", exists=True)
    ],
    gold: Annotated[Path, typer.Argument(help="The annotated test texts (.spacy)", exists=True)],
    trials: Annotated[int, typer.Option(help="Random shuffles for each pair")] = 9999,
    seed: Annotated[int, typer.Option(help="Seed of the shuffles")] = 0,
    output: Annotated[
        Path | None, typer.Option(help="Write the table here too; the results go beside it (JSON)")
    ] = None,
) -> None:
    """Print the table."""
    names = [name for name in MODELS if (folder / f"{name}.spacy").exists()]
    scorer, ignored = (TagsScorer(), ("O",)) if TASKS[task].tags else (EntsScorer(), ())
    tests = {}
    for pair in combinations(names, 2):
        files = [folder / f"{name}.spacy" for name in pair]
        tests[pair] = compare(*files, gold, scorer, ignore=ignored, trials=trials, seed=seed)["all"]
        print(f"{pair[0]} and {pair[1]}: {cell(tests[pair])}", flush=True)
    print()
    show(render(TASKS[task], names, tests), output)
    if output:
        srsly.write_json(
            output.with_suffix(".json"), {f"{a} {b}": result for (a, b), result in tests.items()}
        )


def render(task: Task, names: Sequence[str], tests: Mapping[tuple[str, str], Mapping]) -> str:
    """A row and a column for each model: ours / paper; < where the row's model is worse than the
    column's, > where better.
    """
    paper = dict(zip(combinations(MODELS, 2), task.paper_p))
    rows = []
    for a in names[:-1]:
        pairs = [(a, b) for b in names[1:]]
        rows.append(
            (
                a,
                *(
                    f"{cell(tests[pair])} / {paper[pair]}" if pair in tests else ""
                    for pair in pairs
                ),
            )
        )
    return table(rows, ("ours / paper", *names[1:]))


def cell(result: Mapping) -> str:
    """The p-value, in bold below 0.01, and which of the two is better; `difference` is the second's
    F1 minus the first's.
    """
    p = f"{result['p_value']:.4f}" if result["p_value"] < 0.001 else f"{result['p_value']:.3f}"
    sign = "<" if result["difference"] > 0 else ">" if result["difference"] < 0 else "="
    return f"**{p}** {sign}" if result["p_value"] < 0.01 else f"{p} {sign}"


if __name__ == "__main__":
    typer.run(main)
