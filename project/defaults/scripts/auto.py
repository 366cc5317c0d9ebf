"""`python -m spacy hocrf auto` on the draws of the suite: is F1 where it says?

A row is a line of JSON, appended as soon as it is there; the script goes on where it was stopped, and
then prints what all rows say. A change of the package makes no difference to what is there: begin a
new file then.
"""

import json
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Annotated, Any

import spacy
import typer
from readers import Parts, Text
from run import jobs, measure, read_whole_lines
from spacy.tokens import DocBin
from spacy.vocab import Vocab
from systems import Predict, make_doc, predictor
from tasks import ALL, TASKS, draw, load

from spacy_hocrf.api import AutoResults, AutoSetup, auto

sys.path.append(str(Path(__file__).parents[2]))
from common.report import Result

RESULTS = Path("metrics/auto.jsonl")


def main(
    tasks: Annotated[str, typer.Option(help="Those of tasks.py")] = ",".join(TASKS),
    sizes: Annotated[str, typer.Option(help="Numbers of training texts")] = f"100,400,{ALL}",
    draws: Annotated[int, typer.Option(help="Draws of each size but all")] = 1,
    part: Annotated[str, typer.Option(help="dev; test once, when all is chosen")] = "dev",
    results: Annotated[Path, typer.Option(help="Lines of JSON")] = RESULTS,
) -> None:
    """Add the rows that are missing, and sum up."""
    corpora = {name: load(name) for name in tasks.split(",")}
    complete(results, corpora, sizes.split(","), draws, part)
    rows = [row for row in read_whole_lines(results) if row["part"] == part]
    for size in (*sizes.split(","), ""):
        some = [row for row in rows if size in ("", row["size"])]
        print(f"\n{size} texts" if size else "\nTogether", *summary(some), sep="\n")


def complete(
    path: Path,
    corpora: Mapping[str, Parts],
    sizes: Sequence[str],
    draws: int,
    part: str,
) -> None:
    """Append a row for each draw that the file does not have."""
    there = {key_of(row) for row in read_whole_lines(path)}
    for task, size, number, _ in jobs(corpora, sizes, ["auto"], draws):
        row: Result = {"task": task, "size": size, "draw": number, "part": part}
        if key_of(row) in there:
            continue
        texts = draw(task, corpora[task]["train"], size, number)
        row |= measure(Auto(), texts, corpora[task][part])
        with path.open("a", encoding="utf8") as file:
            file.write(json.dumps(row) + "\n")
        print(spell_row(row), flush=True)


class Auto:
    """The command."""

    settings: Mapping[str, Any] = {}

    def train(self, texts: Sequence[Text]) -> tuple[Predict, dict[str, Any]]:
        """Add what it says about its model, and the `wall` seconds that it took."""
        with tempfile.TemporaryDirectory() as folder:
            path, output = Path(folder) / "train.spacy", Path(folder) / "output"
            DocBin(docs=[make_doc(Vocab(), text) for text in texts]).to_disk(path)
            begun = time.monotonic()
            results = auto(AutoSetup(path), output)
            wall = time.monotonic() - begun
            return predictor(spacy.load(output / "model-last")), {
                **facts(results),
                "wall": round(wall, 1),
            }


def facts(results: AutoResults) -> dict[str, Any]:
    """The estimate with its interval, and the choice."""
    score, curve = results.scores[0], results.curve
    return {
        "estimate": score.f,
        "low": score.interval.low,
        "high": score.interval.high,
        "chosen": str(results.chosen),
        "curve": [curve.texts, curve.f, curve.errors],
        "doubled": [curve.at(2 * curve.now), curve.doubled.low, curve.doubled.high],
    }


def summary(rows: Sequence[Result]) -> list[str]:
    """What the rows say together."""
    if not rows:
        return ["No rows"]
    inside = [row["low"] <= row["f"] <= row["high"] for row in rows]
    errors = [100 * (row["estimate"] - row["f"]) for row in rows]
    return [
        f"{len(rows)} rows",
        f"F1 within the 90 % interval: {sum(inside)} ({100 * mean(inside):.0f} %); the estimate is "
        f"{mean(errors):+.2f} too high on average, {mean(map(abs, errors)):.2f} away",
        f"wall seconds: mean {mean(row['wall'] for row in rows):.0f}, "
        f"most {max(row['wall'] for row in rows):.0f}",
    ]


def spell_row(row: Result) -> str:
    """One row for the terminal."""
    return (
        f"{row['task']}, {row['size']} texts, draw {row['draw']}: estimate {100 * row['estimate']:.1f} "
        f"({100 * row['low']:.1f} to {100 * row['high']:.1f}), F1 {100 * row['f']:.2f}, "
        f"{row['chosen']}, {row['wall']:.0f} s"
    )


def key_of(row: Result) -> tuple[Any, ...]:
    """What a row is of."""
    return tuple(row[name] for name in ("task", "size", "draw", "part"))


if __name__ == "__main__":
    typer.run(main)
