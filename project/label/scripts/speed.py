"""How long it takes from a decision to a model that knows it, and to answer while it is learnt and while
settings are being chosen.
"""

import gc
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from threading import Event, Thread
from time import perf_counter, process_time, sleep
from typing import Annotated, Any

import numpy as np
import spacy
import typer
from simulate import characters
from spacy.tokens import Doc

sys.path.append(str(Path(__file__).parents[2] / "defaults" / "scripts"))
from tasks import load

sys.path.append(str(Path(__file__).parents[2]))
from common.report import show, table

from spacy_hocrf.api import LabelLoop

SIZES = {"cora": 300, "gum": 2000}
OTHERS = 400
"""Texts that are not annotated."""
TIMES = 10
"""Decisions that are timed."""
PAUSE = 0.05
"""Seconds between two requests."""


def main(
    output: Annotated[Path, typer.Argument(help="Markdown file")],
    sizes: Annotated[str, typer.Option(help="Tasks and numbers of texts, cora=300")] = "",
) -> None:
    """Write the tables."""
    wanted = [pair.split("=") for pair in sizes.split(",") if pair]
    rows, answers = [], []
    for task, size in {name: int(n) for name, n in wanted}.items() or SIZES.items():
        rest, alone = measure_alone(task, size)
        beside, latency = measure_beside(task, size)
        cells = [f"{x:.2f}" for x in (np.median(alone), max(alone), np.median(beside), max(beside))]
        rows.append((task, str(size), *cells, f"{rest:.0f}"))
        for name, seconds in latency.items():
            times = (1000 * np.quantile(seconds, q) for q in (0.5, 0.99, 1))
            answers.append((task, name, str(len(seconds)), *(f"{t:.1f}" for t in times)))
    header = (
        "task",
        "texts",
        "CPU s, median",
        "CPU s, most",
        "s beside a choice, median",
        "s beside a choice, most",
        "CPU s, settings and F1",
    )
    parts = ["# Speed", "## From a decision to a model", table(rows, header)]
    header = ("task", "request", "times", "ms, median", "ms, 99 %", "ms, most")
    show("\n\n".join([*parts, "## Answers while it learns", table(answers, header, "ll")]), output)


def begin(task: str, texts: int) -> tuple[LabelLoop, list[list[tuple[int, int, str]]]]:
    """A loop that has been told of so many texts, has learnt them, and goes on to choose settings; and the
    spans of all texts.
    """
    parts = load(task, Path(os.environ["HOCRF_DATA"]))
    rows = [row for part in ("train", "dev", "test") for row in parts[part]]
    nlp = spacy.blank("en")
    nlp.add_pipe("hocrf")
    docs = [Doc(nlp.vocab, words=list(row.words)) for row in rows[: texts + TIMES + OTHERS]]
    gold = [characters(doc, row) for doc, row in zip(docs, rows)]
    loop = LabelLoop(nlp, docs, sorted({y for spans in gold for _, _, y in spans}))
    gc.collect()
    gc.freeze()
    sys.setswitchinterval(5e-4)  # both as `hocrf label` does
    for text in range(texts):
        loop.decide(text, gold[text])
    loop.wait()
    return loop, gold


def decide(loop: LabelLoop, text: int, spans: list[tuple[int, int, str]]) -> None:
    """Decide on a text, and wait for the model that knows it."""
    version = loop.progress().version
    loop.decide(text, spans)
    while loop.progress().version == version:
        sleep(0.002)


def measure_alone(task: str, size: int) -> tuple[float, list[float]]:
    """CPU seconds of the whole process to choose settings and to find out what F1 is; and from each decision
    to a model, when nothing else is to be done.
    """
    loop, gold = begin(task, size - TIMES)
    start, learning = process_time(), list[float]()
    loop.wait(idle=True)
    rest = process_time() - start
    for text in range(size - TIMES, size):
        loop.wait(idle=True)
        start = process_time()
        decide(loop, text, gold[text])
        learning.append(process_time() - start)
    loop.close()
    return rest, learning


def measure_beside(task: str, size: int) -> tuple[list[float], dict[str, list[float]]]:
    """Seconds from each decision to a model, and of each request, while settings are being chosen."""
    loop, gold = begin(task, size - TIMES)
    done, latency, learning = Event(), dict[str, list[float]](), list[float]()
    asking = Thread(target=ask, args=(loop, range(size, len(gold)), done, latency))
    asking.start()
    for text in range(size - TIMES, size):
        start = perf_counter()
        decide(loop, text, gold[text])
        learning.append(perf_counter() - start)
    done.set()
    asking.join()
    loop.close()
    return learning, latency


def ask(
    loop: LabelLoop, texts: Sequence[int], done: Event, latency: dict[str, list[float]]
) -> None:
    """Ask again and again, until it is done."""
    number = 0
    while not done.wait(PAUSE):
        number += 1
        text = texts[number % len(texts)]
        first: Any = loop.readings(text, n=1).readings[0][0]
        requests: dict[str, Callable[[], Any]] = {
            "readings": partial(loop.readings, text),
            "readings, a span fixed": partial(
                loop.readings, text, [span[:3] for span in first[:1]]
            ),
            "next": loop.next,
            "progress": loop.progress,
        }
        for name, request in requests.items():
            start = perf_counter()
            request()
            latency.setdefault(name, []).append(perf_counter() - start)


if __name__ == "__main__":
    typer.run(main)
