"""What `hocrf plan` foretells of training on 4 and 10 times as many texts, beside what it then takes.

The texts are those of `workers.py`: CoNLL-2000 ten times over with changed words, in an order by chance. The
plan sees a tenth of them.
"""

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import spacy
import typer
from machine import describe_machine
from spacy.tokens import Doc
from spacy.training import Example
from wasabi import MarkdownRenderer
from workers import Memory, changed, cpu_of_all, tree

from spacy_hocrf.cli.plan.advice import Row, rows_of
from spacy_hocrf.cli.plan.memory import KINDS
from spacy_hocrf.cli.plan.sampling import sample_of

sys.path.append(str(Path(__file__).parents[2]))
from common.columns import read_columns
from common.report import Result, read_lines, show, table, write_lines

TIMES = (4, 10)
NUMBERS = (1, 2)
ITERATIONS = 8
SAMPLE = 4_000


def main(
    output: Annotated[Path, typer.Argument(help="Markdown file")],
    data: Annotated[Path, typer.Option(help="Folder of the corpora")] = Path("assets"),
    work: Annotated[Path, typer.Option(help="Folder for what is written")] = Path("metrics"),
    only: Annotated[str, typer.Option(help="Measure this in this process, and print it")] = "",
) -> None:
    """Foretell, measure each in a process of its own, and write the tables."""
    texts = work / "plan_texts.jsonl"
    if only:
        sentences, number = map(int, only.split(","))
        print(json.dumps(measure(texts, sentences, number)))
        return
    size = write_texts(data / "conll2000" / "train.txt", texts)
    command = [sys.executable, __file__, str(output), "--work", str(work), "--only"]

    def results() -> Iterator[Result]:
        yield {"what": "machine", **describe_machine()}
        for each in foretell(texts, size):
            sentences, number = each["sentences"], each["number"]
            said = subprocess.run(
                [*command, f"{sentences},{number}"], stdout=subprocess.PIPE, check=True
            )
            yield {**each, "found": json.loads(said.stdout.splitlines()[-1])}

    write_lines(work / "plan.jsonl", results(), lambda row: str(dict(row)))
    show(render(read_lines(work / "plan.jsonl")), output)


def write_texts(path: Path, output: Path) -> int:
    """All texts, a line each. RETURNS (int): how many the corpus has."""
    rng = random.Random(0)
    corpus = read_columns(path)
    lines = [
        json.dumps([[changed(word, rng) if copy else word for word in each.words], each.labels])
        for copy in range(max(TIMES))
        for each in corpus
    ]
    rng.shuffle(lines)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text("\n".join(lines), encoding="utf8")
    return len(corpus)


def examples_of(nlp: spacy.Language, path: Path, most: int) -> Iterator[Example]:
    """The first texts."""
    with path.open(encoding="utf8") as file:
        for line, _ in zip(file, range(most)):
            words, labels = json.loads(line)
            yield Example(Doc(nlp.vocab, words=words), Doc(nlp.vocab, words=words, ents=labels))


def pipeline(number: int) -> tuple[spacy.Language, Any]:
    """By so many processes."""
    nlp = spacy.blank("en")
    workers = {"@misc": "spacy-hocrf.Processes.v1", "number": number}
    trainer = {"@misc": "spacy-hocrf.LBFGS.v1", "sigma": 1.0, "threads": 1, "workers": workers}
    return nlp, nlp.add_pipe("hocrf", config={"model": {"order": 1}, "trainer": trainer})


def foretell(texts: Path, size: int) -> Iterator[dict[str, Any]]:
    """By the measured sample."""
    nlp, _ = pipeline(1)
    examples = list(examples_of(nlp, texts, size))
    sample = sample_of(nlp.config, "hocrf", examples, SAMPLE)
    tokens = sum(len(each.predicted) for each in examples)
    for times in TIMES:
        scale, least = (sample.scale(times * tokens, least=each) for each in (False, True))
        for row in rows_of(sample, scale, NUMBERS, max(NUMBERS), None, 1e9, True):
            if row.kind == KINDS[1]:
                yield {
                    "times": times,
                    "sentences": times * size,
                    "number": row.cluster.workers,
                    "tokens": scale.tokens,
                    "features": [least.features, scale.features],
                    "initialize": sample.initialize * scale.tokens,
                    "iteration": row.evaluation.seconds,
                    "memory": _memory(row),
                    "parts": asdict(row.memory),
                }


def _memory(row: Row) -> float:
    """Bytes of all processes, but for files."""
    return row.machine


def measure(texts: Path, sentences: int, number: int) -> Result:
    """Initialize, and train some iterations."""
    nlp, pipe = pipeline(number)
    with Memory() as memory:
        begun = cpu_of_all()
        nlp.initialize(lambda: examples_of(nlp, texts, sentences))
        initialize = cpu_of_all() - begun
        some = [next(examples_of(nlp, texts, 1))]
        nlp.update(some)  # the parts are handed out, and workers started
        before, evaluations = used(), pipe.run.evaluations
        for _ in range(ITERATIONS):
            nlp.update(some)
        after = used()
        evaluations = pipe.run.evaluations - evaluations
    own = os.getpid()
    spent = {pid: after[pid] - before.get(pid, 0.0) for pid in after}
    others = [spent[pid] for pid in spent if pid != own]
    tokens, reading = read_all(nlp, texts, sentences)
    return {
        "tokens": tokens,
        "features": len(pipe.structure.index),
        "initialize": initialize - reading,
        "iteration": (spent[own] + max(others, default=0.0)) / evaluations,
        "memory": memory.most,
    }


def read_all(nlp: spacy.Language, texts: Path, sentences: int) -> tuple[int, float]:
    """How many tokens the first texts have, and CPU seconds to read them."""
    begun = time.process_time()
    tokens = sum(len(each.predicted) for each in examples_of(nlp, texts, sentences))
    return tokens, time.process_time() - begun


def used() -> dict[int, float]:
    """CPU seconds of this process and of each that it has begun."""
    found = {}
    for pid in tree():
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            found[pid] = sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
    return found


def render(results: Sequence[Result]) -> str:
    """The tables."""
    machine, *runs = results
    markdown = MarkdownRenderer()
    markdown.add(markdown.title(1, "Plan and training"))
    rows = [
        (
            f"{each['times']}",
            f"{each['number']}",
            f"{each['tokens'] / 1e6:.2f}, {each['found']['tokens'] / 1e6:.2f}",
            f"{_thousands(each['features'][0])} to {_thousands(each['features'][1])}, "
            f"{_thousands(each['found']['features'])}",
            *(
                f"{each[name]:{form}}, {each['found'][name]:{form}}"
                for name, form in (("initialize", ".1f"), ("iteration", ".2f"))
            ),
            f"{each['memory'] / 1e6:.0f}, {each['found']['memory'] / 1e6:.0f}",
        )
        for each in runs
    ]
    header = (
        "times",
        "processes",
        "tokens, million",
        "features",
        "initialize, without reading, s of CPU",
        "evaluation, s of CPU",
        "memory, MB",
    )
    markdown.add(table(rows, header, "rr"))
    about = ("measured", "CPU", "cores", "load average")
    markdown.add(table([(key, str(machine[key])) for key in about], ("run", ""), "ll"))
    return markdown.text


def _thousands(value: float) -> str:
    return f"{value / 1000:,.0f} k"


if __name__ == "__main__":
    typer.run(main)
