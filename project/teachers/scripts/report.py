"""F1 of what was learnt from teachers, beside that of the teachers and of annotation."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean
from typing import Annotated

import typer

sys.path.append(str(Path(__file__).parents[2]))
from common.report import Result, read_lines, show, table
from common.scores import ratios, spread

SYSTEMS = ("once", "majority", "soft", "doubt")
HEADER = ("task", "wrong", "teacher, once", "teacher, majority", *SYSTEMS, "annotated")
ERRORS = ("task", "wrong", *SYSTEMS, "annotated")
PIPELINE = (
    "texts",
    "teacher",
    "student",
    "fidelity",
    "teacher, words/s",
    "student, words/s",
    "CPU s",
)


def main(
    lines: Annotated[Path, typer.Argument(help="What learn.py has written", exists=True)],
    output: Annotated[Path, typer.Argument(help="Markdown file")],
) -> None:
    """Write the tables: means over draws, and their standard deviation."""
    results = read_lines(lines)
    simulated = [each for each in results if "majority" in each]
    scores, errors = zip(*rows_of(simulated), strict=True)
    pipelines = [row_of(each) for each in results if "fidelity" in each]
    parts = [
        "# Teachers\n\n" + table(scores, HEADER, "l"),
        "## Calibration\n\n" + table(errors, ERRORS, "l"),
        "## A pipeline\n\n" + table(pipelines, PIPELINE, ""),
    ]
    show("\n\n".join(parts), output)


def rows_of(results: Sequence[Result]) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Rows for each task and share of mistakes: F1 and calibration errors in per cent."""
    by_setting = dict[tuple[str, float], list[Result]]()
    full = dict[str, Result]()
    for result in results:
        task, _, system, wrong, _ = result["of"]
        if system == "annotated":
            full[task] = result
        else:
            by_setting.setdefault((task, wrong), []).append(result)
    for (task, wrong), rows in by_setting.items():
        of = {name: [each for each in rows if each["of"][2] == name] for name in SYSTEMS}
        first = task, f"{wrong:.0%}"
        teachers = [
            spread([f1(each[name]) for each in of["soft"]], 1) for name in ("teacher", "majority")
        ]
        students = [spread([f1(each["counts"]) for each in of[name]], 1) for name in SYSTEMS]
        errors = [f"{100 * mean(each['ece'] for each in of[name]):.1f}" for name in SYSTEMS]
        yield (
            (*first, *teachers, *students, f"{f1(full[task]['counts']):.1f}"),
            (*first, *errors, f"{100 * full[task]['ece']:.1f}"),
        )


def row_of(result: Result) -> tuple[str, ...]:
    """A pipeline, and what was learnt from it."""
    speeds = (f"{result[name]:,}" for name in ("teacher_speed", "speed"))
    f1s = (f"{f1(result[name]):.1f}" for name in ("teacher", "counts", "fidelity"))
    return f"{result['texts']:,}", *f1s, *speeds, f"{result['seconds']:.0f}"


def f1(counts: Sequence[int]) -> float:
    """F1 in per cent."""
    return 100 * ratios(*counts)["f"]


if __name__ == "__main__":
    typer.run(main)
