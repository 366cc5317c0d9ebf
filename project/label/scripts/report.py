"""How many actions annotation takes, each way, and until when a model has most of its F1."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import typer

sys.path.append(str(Path(__file__).parents[2]))
from common.report import DocumentArgument, LinesArgument, Result, group, read_lines, show, table

MOST = 0.9
"""Share of the F1 that all annotation gives."""
WAYS = {
    "hand": ("hand", "random"),
    "correct": ("correct", "random"),
    "correct, chosen texts": ("correct", "loop"),
    "loop, texts at random": ("loop", "random"),
    "loop": ("loop", "loop"),
}
"""How the annotation is made, and in which order the texts come."""


def main(lines: LinesArgument, output: DocumentArgument) -> None:
    """Write the tables."""
    parts = ["# Actions"]
    for part, rows in group(read_lines(lines), "part").items():
        runs = {task: list(pairs(some)) for task, some in group(rows, "task").items()}
        header = ("task", "texts", "spans a text", *WAYS, "of hand")
        parts += [f"## A text, {part} part", table(list(every(runs)), header)]
        header = ("task", "F1", "texts, at random", "texts, chosen", *WAYS, "of hand")
        parts += [f"## Until {MOST:.0%} of F1, {part} part", table(list(until(runs)), header)]
    show("\n\n".join(parts), output)


def pairs(rows: Sequence[Result]) -> Iterator[dict[str, Any]]:
    """The steps of both orders of each seed."""
    for some in group(rows, "seed").values():
        found = {row["order"]: row["steps"] for row in some}
        if len(found) == 2:
            yield found


def every(runs: dict[str, list[Any]]) -> Iterator[tuple[str, ...]]:
    """Actions a text, of all texts, on average over seeds."""
    for task, seeds in runs.items():
        texts = seeds[0]["random"][-1]["texts"]
        actions = [
            np.mean([seed[order][-1][way] / texts for seed in seeds])
            for way, order in WAYS.values()
        ]
        spans = (actions[0] - 1) / 2
        yield task, str(texts), f"{spans:.1f}", *(f"{n:.2f}" for n in actions), share(actions)


def until(runs: dict[str, list[Any]]) -> Iterator[tuple[str, ...]]:
    """Texts and actions until F1 is MOST of what it is at the end, on average over seeds."""
    for task, seeds in runs.items():
        f = [seed["random"][-1]["f"] for seed in seeds]
        reached = [
            {order: first(seed[order], MOST * goal) for order in ("random", "loop")}
            for seed, goal in zip(seeds, f)
        ]
        texts = [
            np.mean([each[order]["texts"] for each in reached]) for order in ("random", "loop")
        ]
        actions = [np.mean([each[order][way] for each in reached]) for way, order in WAYS.values()]
        figures = (f"{n:.0f}" for n in (*texts, *actions))
        yield task, f"{np.mean(f):.1f}", *figures, share(actions)


def first(steps: Sequence[Any], goal: float) -> Any:
    """The first step with such an F1; the last one if there is none."""
    return next((step for step in steps if step["f"] >= goal), steps[-1])


def share(actions: Sequence[Any]) -> str:
    """What the last way takes of the first."""
    return f"{actions[-1] / actions[0]:.0%}"


if __name__ == "__main__":
    typer.run(main)
