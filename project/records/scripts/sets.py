"""Sets of readings: how often they have the right one, and how large they are.

Five folds of each task are read by models of the other four. A random half of the texts says how far a set
goes, as `hocrf calibrate --accept` does, and the other half is asked, many times.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from math import inf, isfinite, log
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray
from read import TASKS, folds_of, learnt
from spacy.language import Language
from spacy.tokens import Doc

sys.path.append(str(Path(__file__).parents[2] / "defaults" / "scripts"))
from readers import Text

sys.path.append(str(Path(__file__).parents[2]))
from common.report import Result, group, read_lines, show, table

from spacy_hocrf.api import WholeTexts, accept

LEVELS = (0.8, 0.9, 0.95)
MAX_READINGS = 1000
"""Readings of a text that are looked at."""
REST = 1e-5
"""What is left of the probability when no more readings are looked at."""
SLACK = 2e-5
"""Scores that differ by less are equal: they are rounded."""

Numbers = NDArray[np.float64]


class Scored(NamedTuple):
    """n texts, by how many nats readings are less probable than the best one."""

    right: Numbers  # [n] the right reading; inf if it is none
    readings: Numbers  # [n, MAX_READINGS] those that were looked at, ascending; inf where there are no more
    least: Numbers  # [n] all others, at least


class Found(NamedTuple):
    """What many random halves say; NaN where no half could be asked. Sizes are those of the middle half."""

    possible: float  # share of halves that could promise anything
    covered: float  # share of texts whose set has the right reading
    median: float  # size of a set
    high: float  # 90 % of the sets are no larger


def main(
    lines: Annotated[Path, typer.Argument(help="Lines of JSON")] = Path("metrics/sets.jsonl"),
    output: Annotated[Path, typer.Argument(help="Markdown file")] = Path("sets.md"),
    tasks: Annotated[str, typer.Option(help="Those of project/defaults")] = TASKS,
    splits: Annotated[int, typer.Option(help="Random halves")] = 500,
) -> None:
    """Read the folds that are missing, and write the tables."""
    lines.parent.mkdir(parents=True, exist_ok=True)
    lines.touch()
    there = {(row["task"], row["fold"]) for row in read_lines(lines)}
    for task in tasks.split(","):
        for fold, rest, held in folds_of(task):
            if (task, fold) not in there:
                new = list(rows(learnt(rest), held))
                with lines.open("a", encoding="utf8") as file:
                    for row in new:
                        file.write(json.dumps({"task": task, "fold": fold, **row}) + "\n")
                print(task, fold, len(held), flush=True)
    show(render(group(read_lines(lines), "task"), splits), output)


def rows(nlp: Language, held: Sequence[Text]) -> Iterator[dict[str, object]]:
    """Log probabilities of the best readings of each text, and by how many nats the right one is less
    probable than the best one; None if it is none.
    """
    docs = [Doc(nlp.vocab, words=text.words) for text in held]
    for text, reading in zip(held, nlp.get_pipe("hocrf").readings(docs)):
        logs, left = list[float](), 1.0
        for each in islice(reading.alternatives(), MAX_READINGS):
            logs.append(round(each.log_probability, 5))
            left -= each.probability
            if left < REST:
                break
        try:
            behind = round(logs[0] - reading.log_probability(text.spans), 5)
        except ValueError:  # a label that only the held out texts have
            behind = inf
        yield {"behind": behind if isfinite(behind) else None, "logs": logs}


def render(results: Mapping[str, Sequence[Result]], splits: int) -> str:
    """The document."""
    header = ("task", "texts", "level", "halves that can promise it", "right one in the set")
    rows = list(level_rows(results, splits))
    return "# Sets of readings\n\n" + table(rows, (*header, "size, median", "size, 90 %"))


def level_rows(results: Mapping[str, Sequence[Result]], splits: int) -> Iterator[tuple[str, ...]]:
    """Coverage and sizes at each level."""
    for task, texts in results.items():
        behind = scored(texts)
        for level in LEVELS:
            one = try_halves(behind, level, splits)
            shares = [f"{100 * share:.1f}" for share in (level, one.possible, one.covered)]
            cells = [*shares, size_of(one.median), size_of(one.high)]
            yield (task, f"{len(texts):,}", *(cell.replace("nan", "") for cell in cells))


def scored(texts: Sequence[Result]) -> Scored:
    """What `rows` says of texts, as numbers."""
    logs = np.full((len(texts), MAX_READINGS), -inf)
    for row, text in zip(logs, texts):
        row[: len(text["logs"])] = text["logs"]
    best = logs[:, :1]
    behind = np.array([inf if t["behind"] is None else t["behind"] for t in texts])
    last = np.array([t["logs"][-1] if len(t["logs"]) == MAX_READINGS else log(REST) for t in texts])
    return Scored(np.maximum(behind, 0.0), best - logs, best[:, 0] - last)


def try_halves(texts: Scored, level: float, splits: int) -> Found:
    """Of many random halves, with what the other half says: which sets have the right reading, how large are
    they? MAX_READINGS + 1 stands for every size above MAX_READINGS.
    """
    rng, n = np.random.default_rng(0), len(texts.right)
    covered, sizes = list[float](), list[Numbers]()
    for _ in range(splits):
        order = rng.permutation(n)
        seen, new = order[: n // 2], order[n // 2 :]
        right = np.ones(len(seen), dtype=bool)
        whole = WholeTexts(right * 1.0, right, np.full(len(seen), ""), texts.right[seen])
        try:
            farthest = accept(whole, 0.5, 0.5)[0].farthest(level) + SLACK
        except ValueError:  # the model cannot have the right reading of too many
            continue
        covered.append(float((texts.right[new] <= farthest).mean()))
        size = (texts.readings[new] <= farthest).sum(axis=1)
        unknown = farthest >= texts.least[new]
        sizes.append(np.quantile(np.where(unknown, MAX_READINGS + 1, size), (0.5, 0.9)))
    if not sizes:
        return Found(0.0, np.nan, np.nan, np.nan)
    median, high = np.median(sizes, axis=0).tolist()
    return Found(len(sizes) / splits, float(np.mean(covered)), median, high)


def size_of(size: float) -> str:
    """A size, or nothing for NaN."""
    if np.isnan(size):
        return ""
    return f"{round(size, 1):g}" if size <= MAX_READINGS else f"> {MAX_READINGS:,}"


if __name__ == "__main__":
    typer.run(main)
