"""Wall time by number of threads, and whether what they make is equal to the last bit: evaluations of the
objective, by processes too, whole `spacy train`, and prediction by several threads of one pipeline.
"""

import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import models
import spacy
import typer
from corpora import REFERENCES, Corpora, Sentence
from machine import describe_machine
from measure import idle_cores, take_turns
from process_bars import child
from spacy.tokens import Doc

sys.path.append(str(REFERENCES.parent))
from common.columns import chunks_of
from common.report import Result, read_lines, show, table, write_lines

ROUNDS = 3
TEXTS = 4_000
PARTS = 16
"""For processes: the default has eight parts of this corpus, and so eight processes at most."""
ITERATIONS = 8
"""Of one turn, and of a model that predicts."""


def main(
    output: Annotated[Path, typer.Argument(help="Markdown file")],
    data: Annotated[Path, typer.Option(help="Folder of the corpora")] = Path("assets"),
    work: Annotated[Path, typer.Option(help="Folder for what is written")] = Path("metrics"),
    most: Annotated[int, typer.Option(help="Threads; 0 for as many as processors")] = 0,
    steps: Annotated[int, typer.Option(help="Of `spacy train`")] = 120,
    small: Annotated[bool, typer.Option(help="A few references instead of the corpora")] = False,
) -> None:
    """Measure, and write the table."""
    sentences = Corpora(data, small).chunks()
    numbers = counts(most or os.cpu_count() or 1)
    path = work / "threads.jsonl"
    write_lines(path, results(sentences, numbers, steps), lambda row: str(dict(row)))
    show(render(read_lines(path)), output)


def counts(most: int) -> list[int]:
    """1, 2, 4, … and at last the most."""
    return [*(1 << bits for bits in range(most.bit_length()) if 1 << bits < most), most]


def results(sentences: Sequence[Sentence], numbers: Sequence[int], steps: int) -> Iterator[Result]:
    """One after another."""
    yield {"what": "machine", **describe_machine(), "idle cores": f"{idle_cores() or 0:.1f}"}
    for order in (1, 2):
        for parts in (None, PARTS):
            yield from evaluations(sentences, numbers, order, parts)
    yield from trainings(sentences, numbers, steps)
    yield from predictions(sentences, numbers)


def evaluations(
    sentences: Sequence[Sentence], numbers: Sequence[int], order: int, parts: int | None
) -> Iterator[Result]:
    """Of the objective with the default features, with L-BFGS's share.

    parts (Optional[int]): of the corpus, for processes; None for threads.
    """
    how = f"processes, {parts} parts" if parts else "threads"
    what = f"evaluation, order {order}, {how}"
    trainings = {
        number: models.Training(model(sentences, number, order, parts)) for number in numbers
    }
    for each in trainings.values():
        each.step(2)
    turns = {number: partial(_turn, each) for number, each in trainings.items()}
    seconds = take_turns(turns, ROUNDS, time.perf_counter)
    for number, each in trainings.items():
        yield result(what, number, seconds[number], hash_of(each.run.weights))


def model(
    sentences: Sequence[Sentence], number: int, order: int, parts: int | None = None
) -> spacy.Language:
    """With the default features, to be trained by so many threads, or processes if there are parts."""
    trainer = models.trainer(threads=number)
    if parts:
        workers = {"@misc": "spacy-hocrf.Processes.v1", "number": number, "parts": parts}
        trainer = {**trainer, "workers": workers}
    return models.default(sentences, model={"order": order}, trainer=trainer)


def _turn(training: models.Training) -> Callable[[], int]:
    return partial(training.step, ITERATIONS)


def trainings(
    sentences: Sequence[Sentence], numbers: Sequence[int], steps: int
) -> Iterator[Result]:
    """`spacy train` as in docs/start.md, whole processes, each once."""
    for number in numbers:
        with tempfile.TemporaryDirectory() as name:
            arguments = models.write_corpus(Path(name), sentences, chunks_of)
            settings = {
                "--training.max_steps": str(steps),
                "--components.hocrf.trainer.threads": str(number),
            }
            begun = time.perf_counter()
            cpu = child("train", *arguments, *(word for pair in settings.items() for word in pair))
            wall = time.perf_counter() - begun
            (arrays,) = (Path(name) / "output" / "model-last" / "hocrf").glob("arrays-*.bin")
            made = hash_of(arrays.read_bytes())
        yield result("spacy train", number, wall, made, cpu=cpu["seconds"])


def predictions(sentences: Sequence[Sentence], numbers: Sequence[int]) -> Iterator[Result]:
    """Tokenised Docs, default, scores: the threads share one pipeline, each has a stretch of them."""
    nlp = model(sentences, 1, 1)
    training = models.Training(nlp)
    training.step(ITERATIONS)
    models.use_weights(models.component(nlp), training.run.weights)
    few = sentences[:TEXTS]
    found: dict[int, list[Doc]] = {}

    def turn(number: int) -> Any:
        docs = [Doc(nlp.vocab, words=list(words)) for words, _ in few]
        bounds = [len(docs) * each // number for each in range(number + 1)]
        pieces = [docs[first:last] for first, last in pairwise(bounds)]

        def work() -> int:
            with ThreadPoolExecutor(number) as threads:
                done = threads.map(lambda piece: list(nlp.pipe(piece)), pieces)
                found[number] = [doc for piece in done for doc in piece]
            return sum(map(len, docs))

        return work

    seconds = take_turns({n: partial(turn, n) for n in numbers}, ROUNDS, time.perf_counter)
    for number in numbers:
        yield result("nlp.pipe, a token", number, seconds[number], hash_of(answers(found[number])))


def answers(docs: Sequence[Doc]) -> str:
    """All entities, with their probabilities."""
    return repr(
        [
            (ent.start, ent.end, ent.label_, ent._.hocrf_score.hex())
            for doc in docs
            for ent in doc.ents
        ]
    )


def hash_of(made: Any) -> str:
    """The same for what is the same to the last bit."""
    content = made.encode() if isinstance(made, str) else bytes(made)
    return hashlib.sha256(content).hexdigest()[:16]


def result(what: str, number: int, seconds: float, made: str, **more: float) -> Result:
    """A line of the file."""
    return {"what": what, "threads": number, "seconds": seconds, "made": made, **more}


def render(lines: Sequence[Result]) -> str:
    """The tables."""
    machine, *runs = lines
    kinds = dict.fromkeys(row["what"] for row in runs)
    numbers = sorted({row["threads"] for row in runs})
    rows = [
        _row(what, {row["threads"]: row for row in runs if row["what"] == what}) for what in kinds
    ]
    about = ("measured", "CPU", "cores", "idle cores", "load average", "instruction set", "Python")
    return "\n\n".join(
        [
            "# Threads",
            table(
                rows,
                ("wall time", *map(_threads, numbers), "the same"),
                "l" + "r" * len(numbers) + "l",
            ),
            table([(key, str(machine[key])) for key in about], ("run", ""), "ll"),
        ]
    )


def _threads(number: int) -> str:
    return "1 thread" if number == 1 else str(number)


def _row(what: str, by_number: Mapping[int, Result]) -> tuple[str, ...]:
    one = by_number[1]["seconds"]
    cells = [
        f"{_time(row['seconds'])}" + (f" ({one / row['seconds']:.1f} ×)" if number > 1 else "")
        for number, row in sorted(by_number.items())
    ]
    same = len({row["made"] for row in by_number.values()}) == 1
    return what, *cells, "yes" if same else "no"


def _time(seconds: float) -> str:
    for unit, length in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds * 1e6:.2f} µs"


if __name__ == "__main__":
    typer.run(main)
