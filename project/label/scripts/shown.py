"""The F1 that is shown while somebody annotates, against F1 on texts that nobody has annotated.

The texts of all parts of a task are shuffled, so that these are alike; the first POOL may be annotated, in
the order of the loop, and the others say what F1 is. The model learns after every STEP texts.
"""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import spacy
import typer
from simulate import TASKS, QuietLoop, characters, f1
from spacy.tokens import Doc

sys.path.append(str(Path(__file__).parents[2] / "defaults" / "scripts"))
from readers import Text
from tasks import load, shuffled

sys.path.append(str(Path(__file__).parents[2]))
from common.report import group, read_lines, show, table

POOL, TEST = 250, 500
"""Texts that may be annotated, and others, at most."""
STEP = 10
STOPS = (60, 120)
"""Annotated texts at which F1 is compared."""


class StoppedLoop(QuietLoop):
    """A loop that finds out what can be said of the model when it is asked to."""

    asked = False

    def _outdated(self, texts: int) -> bool:
        due, self.asked = self.asked, False
        return due


def main(
    tasks: Annotated[str, typer.Option(help="Those of project/defaults")] = TASKS,
    seeds: Annotated[int, typer.Option(help="Runs of each task")] = 10,
    results: Annotated[Path, typer.Option(help="Lines of JSON")] = Path("metrics/shown.jsonl"),
    output: Annotated[Path, typer.Option(help="Markdown file")] = Path("shown.md"),
) -> None:
    """Add the runs that are missing, and write the table."""
    results.parent.mkdir(parents=True, exist_ok=True)
    results.touch()
    there = {(row["task"], row["seed"]) for row in read_lines(results)}
    for seed in range(seeds):
        for task in tasks.split(","):
            if (task, seed) in there:
                continue
            parts = load(task, Path(os.environ["HOCRF_DATA"]))
            every = [text for part in ("train", "dev", "test") for text in parts[part]]
            texts = [every[i] for i in shuffled(len(every), f"shown {task} {seed}")]
            known = {"task": task, "seed": seed}
            rows = [{**known, **row} for row in run(texts[:POOL], texts[POOL:][:TEST], seed)]
            with results.open("a", encoding="utf8") as file:
                file.write("".join(f"{json.dumps(row)}\n" for row in rows))
            print(*rows, sep="\n", flush=True)
    show(f"# The F1 that is shown\n\n{summary(read_lines(results))}", output)


def run(texts: Sequence[Text], test: Sequence[Text], seed: int) -> Iterator[dict[str, Any]]:
    """What is shown, and what is so, at each of STOPS."""
    nlp = spacy.blank("en")
    nlp.add_pipe("hocrf")
    docs = [Doc(nlp.vocab, words=list(text.words)) for text in texts]
    gold = [characters(doc, text) for doc, text in zip(docs, texts)]
    loop = StoppedLoop(nlp, docs, sorted({y for spans in gold for _, _, y in spans}), seed=seed)
    for done in range(0, max(STOPS), STEP):
        chosen = list[int]()
        for _ in range(STEP):
            text = loop.next(chosen).text
            assert text is not None
            chosen.append(text)
        loop.asked = done + STEP in STOPS
        loop.decide_all({text: gold[text] for text in chosen})
        if done + STEP in STOPS:
            shown = loop.progress()
            names = ("f", "low", "high", "tested", "accepted", "more")
            found = {name: getattr(shown, name) for name in names}
            yield {"texts": done + STEP, **found, "true": f1(loop, test) / 100}
    loop.close()


def summary(rows: Sequence[Any]) -> str:
    """A table by task and number of texts, and all together."""
    cells = []
    for texts, some in group(rows, "texts").items():
        told = [row for row in some if row["f"] is not None]
        for task, mine in [*group(told, "task").items(), ("all", told)][: None if told else 0]:
            inside = [row["low"] <= row["true"] <= row["high"] for row in mine]
            means = {
                "f": np.mean([row["f"] for row in mine]),
                "true": np.mean([row["true"] for row in mine]),
                "half": np.mean([row["high"] - row["low"] for row in mine]) / 2,
            }
            tested = np.mean([row["tested"] for row in mine])
            f, true, half = (f"{100 * mean:.1f}" for mean in means.values())
            error = f"{100 * (means['f'] - means['true']):+.1f}"
            within = f"{sum(inside)} of {len(mine)}"
            cells.append((str(texts), task, f"{tested:.0f}", f, true, error, half, within))
    header = ("texts", "task", "at random", "F1 shown", "F1", "difference", "±", "inside")
    return table(cells, header, "rlrrrrrr")


if __name__ == "__main__":
    typer.run(main)
