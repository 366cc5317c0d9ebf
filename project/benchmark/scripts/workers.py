"""Training by threads, by processes and by actors of Ray: memory, times, and whether the models are equal.

The corpus is CoNLL-2000 many times over. In every copy but the first a letter is added to a tenth of the
words, so that new words, and new features, come with every copy. It is streamed: nothing keeps its Examples.
"""

import hashlib
import json
import os
import random
import string
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from threading import Event, Thread
from typing import Annotated

import spacy
import typer
from machine import describe_machine
from spacy.tokens import Doc
from spacy.training import Example, biluo_tags_to_spans, iob_to_biluo

sys.path.append(str(Path(__file__).parents[2]))
from common.columns import Sentence, read_columns
from common.report import Result, read_lines, show, table, write_lines

NUMBER = 2
KINDS = {"threads": "Threads", "processes": "Processes", "actors": "Ray"}
CHANGED = 0.1
SECONDS = 0.5
"""Between two looks at memory."""
MOST_READ = 5
"""Copies of the corpus that are read to know how long that takes."""


def main(
    output: Annotated[Path, typer.Argument(help="Markdown file")],
    data: Annotated[Path, typer.Option(help="Folder of the corpora")] = Path("assets"),
    times: Annotated[int, typer.Option(help="Copies of the corpus")] = 50,
    iterations: Annotated[int, typer.Option(help="Of L-BFGS")] = 20,
    work: Annotated[Path, typer.Option(help="Folder for what is written")] = Path("metrics"),
    only: Annotated[str, typer.Option(help="Measure this in this process, and print it")] = "",
) -> None:
    """Measure each in a process of its own, and write the table."""
    if only:
        print(json.dumps(measure(only, data / "conll2000" / "train.txt", times, iterations)))
        return
    kinds = [kind for kind in KINDS if kind != "actors" or find_spec("ray") is not None]
    options = ["--data", data, "--times", times, "--iterations", iterations]
    command = [sys.executable, __file__, output, *options, "--only"]

    def results() -> Iterator[Result]:
        yield {"what": "machine", **describe_machine()}
        for kind in kinds:
            said = subprocess.run([*map(str, command), kind], stdout=subprocess.PIPE, check=True)
            yield {"what": kind, **json.loads(said.stdout.splitlines()[-1])}

    write_lines(work / "workers.jsonl", results(), lambda row: str(dict(row)))
    show(render(read_lines(work / "workers.jsonl")), output)


def measure(kind: str, path: Path, times: int, iterations: int) -> Result:
    """Initialize, and train so many iterations."""
    workers = {"@misc": f"spacy-hocrf.{KINDS[kind]}.v1", "number": NUMBER}
    trainer = {"@misc": "spacy-hocrf.LBFGS.v1", "sigma": 1.0, "threads": NUMBER}
    nlp = spacy.blank("en")
    settings = {"model": {"order": 1}, "trainer": {**trainer, "workers": workers}}
    pipe = nlp.add_pipe("hocrf", config=settings)
    sentences = read_columns(path)
    tokens = times * sum(len(sentence.words) for sentence in sentences)
    begin = time.process_time()
    for _ in stream(nlp, sentences, min(times, MOST_READ)):
        pass
    read = (time.process_time() - begin) / (tokens / times * min(times, MOST_READ))
    with Memory() as memory:
        begin = cpu_of_all()
        nlp.initialize(lambda: stream(nlp, sentences, times))
        initialized = cpu_of_all() - begin
        some = [next(stream(nlp, sentences, 1))]
        begin = time.perf_counter()
        nlp.update(some)  # the parts are handed out, and workers started
        started = time.perf_counter() - begin
        begin, cpu = time.perf_counter(), cpu_of_all()
        for _ in range(iterations - 1):
            nlp.update(some)
        wall, used = time.perf_counter() - begin, cpu_of_all() - cpu
    return {
        "tokens": tokens,
        "features": len(pipe.structure.index),
        "read": read * 1e6,
        "initialize": (initialized / tokens - read) * 1e6,
        "start": started,
        "wall": wall / (iterations - 1),
        "cpu": used / (iterations - 1),
        "memory": memory.most / 1e6,
        "model": hashlib.sha256(pipe.to_bytes()).hexdigest(),
    }


def stream(nlp: spacy.Language, sentences: Sequence[Sentence], times: int) -> Iterator[Example]:
    """The corpus so many times."""
    rng = random.Random(0)
    for copy in range(times):
        for sentence in sentences:
            words = [changed(word, rng) if copy else word for word in sentence.words]
            gold = Doc(nlp.vocab, words=words)
            gold.ents = biluo_tags_to_spans(gold, iob_to_biluo(sentence.labels))
            yield Example(Doc(nlp.vocab, words=words), gold)


def changed(word: str, rng: random.Random) -> str:
    """Sometimes with a letter more."""
    return word + rng.choice(string.ascii_lowercase) if rng.random() < CHANGED else word


class Memory:
    """The most memory that this process and all that it has begun have at a time, without what they map from
    files.
    """

    def __init__(self) -> None:
        self.most = 0
        self._end = Event()
        self._thread = Thread(target=self._look)

    def __enter__(self) -> "Memory":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._end.set()
        self._thread.join()

    def _look(self) -> None:
        ended = False
        while not ended:
            self.most = max(self.most, sum(map(resident, tree())))
            ended = self._end.wait(SECONDS)


def tree() -> list[int]:
    """This process and all that it has begun, and these."""
    children = dict[int, list[int]]()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parent = int(path.read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(path.parent.name))
    found = [os.getpid()]
    for each in found:
        found += children.get(each, [])
    return found


def resident(pid: int) -> int:
    """Bytes of a process in memory, but for files; of what n processes share it has an nth."""
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        kinds = ("Pss_Anon", "Pss_Shmem")
        return sum(1024 * int(line.split()[1]) for line in lines if line.startswith(kinds))
    return 0


def cpu_of_all() -> float:
    """CPU seconds of this process and of all that it has begun, also of those that it has seen end."""
    ticks = 0
    for pid in tree():
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def render(results: Sequence[Result]) -> str:
    """The tables."""
    machine, *runs = results
    rows = [
        (
            f"{NUMBER} {row['what']}",
            f"{row['read']:.1f}",
            f"{row['initialize']:.1f}",
            f"{row['start']:.1f}",
            f"{row['wall']:.2f}",
            f"{row['cpu']:.2f}",
            f"{row['memory']:.0f}",
            row["model"][:16],
        )
        for row in runs
    ]
    header = (
        "workers",
        "texts and Examples, µs a token",
        "initialize, besides",
        "first iteration, s",
        "iteration, s",
        "iteration, s of CPU",
        "memory, MB",
        "model",
    )
    about = ("measured", "CPU", "cores", "load average", "instruction set")
    counts = [(name, f"{runs[0][name]:,}") for name in ("tokens", "features")]
    return "\n\n".join(
        [
            "# Workers",
            table(rows, header, "lrrrrrrl"),
            table([*counts, *((key, str(machine[key])) for key in about)], ("run", ""), "ll"),
        ]
    )


if __name__ == "__main__":
    typer.run(main)
