"""`hocrf annotate` on many short texts: one process and two, killed and resumed, beside spaCy's `ner`.

The texts are made of the addresses of usaddress: an address in which each field is that of a random address
with the same label, and each digit another one. Hardly two are equal, and there are new words all the time.
"""

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import spacy
import srsly
import typer
from machine import describe_machine
from spacy.training import Example

sys.path.append(str(Path(__file__).parents[2] / "defaults" / "scripts"))
from readers import Text, read_labelled_words

sys.path.append(str(Path(__file__).parents[2]))
from common.report import Result, read_lines, show, table, write_lines
from common.training import learn

SETTINGS = {"model": {"order": 1}, "trainer": {"@misc": "spacy-hocrf.LBFGS.v1", "sigma": 1.0}}
TURNS, OF_NER = 5, 2_000
"""So many texts of `ner` are timed in each turn, beside a part of ours."""
SECONDS = 30
"""So long may a process that is just beginning take to see that the command is gone."""


def main(
    output: Annotated[Path, typer.Argument(help="Markdown file")],
    assets: Annotated[Path, typer.Option(help="Folder of the corpora")] = Path("assets"),
    texts: Annotated[int, typer.Option(help="Number of texts")] = 1_000_000,
    kills: Annotated[int, typer.Option(help="So often it is killed")] = 10,
    size: Annotated[int, typer.Option(help="Texts of a part")] = 20_000,
    work: Annotated[Path, typer.Option(help="Folder for what is written")] = Path("metrics"),
) -> None:
    """Measure all, and write the table."""
    folder = work / "annotate"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    corpus = list(read_labelled_words(assets / "usaddress" / "labeled.xml"))
    train(corpus, folder / "model")
    few = write_texts(corpus, texts // 10, folder / "few.jsonl")
    many = write_texts(corpus, texts, folder / "many.jsonl")
    rows = measure(folder, {"few": few, "many": many}, texts, kills, size)
    write_lines(work / "annotate.jsonl", rows, lambda row: str(dict(row)))
    show(render(read_lines(work / "annotate.jsonl")), output)


def train(corpus: Sequence[Text], path: Path) -> None:
    """A model of addresses, on the tokens of spaCy's tokenizer."""
    nlp = spacy.blank("en")
    nlp.add_pipe("hocrf", config=SETTINGS)
    learn(nlp, [as_example(nlp, text) for text in corpus], 60)
    nlp.to_disk(path)


def as_example(nlp: spacy.Language, text: Text) -> Example:
    """An address with its fields by characters."""
    places, at = list[tuple[int, int]](), 0
    for word in text.words:
        places.append((at, at + len(word)))
        at += len(word) + 1
    # a comma at the end of a field is no part of it
    spans = [(places[i][0], places[j - 1][1], label) for i, j, label in text.spans]
    line = " ".join(text.words)
    fields = [(i, i + len(line[i:j].rstrip(",")), label) for i, j, label in spans]
    return Example.from_dict(
        nlp.make_doc(line), {"entities": [field for field in fields if field[0] < field[1]]}
    )


def write_texts(corpus: Sequence[Text], n: int, path: Path) -> Path:
    """Texts with numbers."""
    rows = ({"id": i, "text": text} for i, text in enumerate(islice(made_up(corpus), n)))
    srsly.write_jsonl(path, rows)
    return path


def made_up(corpus: Sequence[Text]) -> Iterator[str]:
    """Addresses without end."""
    rng, fields = random.Random(0), dict[str, list[list[str]]]()
    for text in corpus:
        for i, j, label in text.spans:
            fields.setdefault(label, []).append(text.words[i:j])
    while True:
        words = [
            word for _, _, label in rng.choice(corpus).spans for word in rng.choice(fields[label])
        ]
        yield "".join(
            rng.choice("0123456789") if letter.isdigit() else letter for letter in " ".join(words)
        )


def measure(
    folder: Path, paths: dict[str, Path], texts: int, kills: int, size: int
) -> Iterator[Result]:
    """Every line of the tables."""
    yield {"what": "machine", **describe_machine()}
    yield beside_ner(folder / "model", paths["few"], size)
    for what, n in (("few", 1), ("many", 1), ("many", 2)):
        run = Run(folder, paths[what], folder / f"{what}{n}.jsonl", n, size)
        count = texts if what == "many" else texts // 10
        yield {"what": what, "processes": n, "texts": count, **run.whole()}
    run = Run(folder, paths["many"], folder / "killed.jsonl", 2, size)
    yield {"what": "killed", "processes": 2, **run.killed(texts // size, kills)}
    whole = (folder / "many1.jsonl").read_bytes()
    same = [(folder / f"{name}.jsonl").read_bytes() == whole for name in ("many2", "killed")]
    yield {"what": "same bytes", "two processes": same[0], "killed": same[1]}


def beside_ner(model: Path, texts: Path, size: int) -> Result:
    """CPU seconds of 10,000 texts, in turns: annotate in one process from lines to lines, `ner` from texts to
    entities.
    """
    from spacy_hocrf.cli.annotate.annotator import Annotator
    from spacy_hocrf.cli.annotate.parts import Job, Parts
    from spacy_hocrf.cli.annotate.sources import chunks_of

    annotator = Annotator(Job(model=str(model)), ".jsonl", Parts(texts.parent, ".jsonl"))
    ner = spacy.blank("en")
    entities = ner.add_pipe("ner")
    for label in annotator.nlp.get_pipe("hocrf").labels:
        entities.add_label(label)
    ner.initialize()
    chunks = list(islice(chunks_of([texts], size), TURNS))
    rows = [[row["text"] for row in map(srsly.json_loads, chunk.content)] for chunk in chunks]
    times = []
    for chunk, some in zip(chunks, rows):
        few, ours = some[:OF_NER], cpu_of(lambda chunk=chunk: annotator.part(chunk))
        with ner.memory_zone():
            theirs = cpu_of(lambda few=few: list(ner.pipe(few)))
        with ner.memory_zone():
            alone = cpu_of(lambda few=few: list(map(ner.make_doc, few)))
        times.append((ours / len(some), theirs / len(few), alone / len(few)))
    # the first turn warms up
    sums = [10_000 * sum(column) / len(column) for column in zip(*(times[1:] or times))]
    return {"what": "CPU", **dict(zip(("ours", "ner", "tokenizer"), sums))}


def cpu_of(work: Callable[[], object]) -> float:
    """CPU seconds."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


class Run:
    """The command as a process, with n processes."""

    def __init__(self, folder: Path, texts: Path, output: Path, n: int, size: int) -> None:
        named = [folder / "model", texts, output, "--workers", n, "--size", size]
        self._command = [sys.executable, "-m", "spacy", "hocrf", "annotate", *map(str, named)]
        self._parts = output.with_name(f"{output.name}.parts")
        self._begun = set[int]()

    def whole(self) -> dict[str, Any]:
        """Wall and CPU seconds, and memory in MB: of all processes together, at most."""
        before, begin, most = cpu_of_children(), time.perf_counter(), 0
        with self._start() as running:
            while running.poll() is None:
                most = max(most, sum(map(resident, self._tree(running.pid))))
                time.sleep(0.2)
        wall = time.perf_counter() - begin
        if running.returncode:
            raise RuntimeError(f"{' '.join(self._command)} has failed")
        return {"wall": wall, "cpu": cpu_of_children() - before, "memory": most / 1e6}

    def killed(self, parts: int, times: int) -> dict[str, Any]:
        """Killed at random moments of its parts, workers, the command, or both; gone on with where the
        command is gone.
        """
        rng, whom, starts, running = random.Random(0), list[str](), 0, None
        moments = sorted(rng.sample(range(parts - 2), times), reverse=True)
        while running is None or (running.returncode and not self._done()):
            starts += 1
            with self._start() as running:
                while running.poll() is None:
                    others = self._tree(running.pid)[1:]
                    done = len(list(self._parts.glob("part-*.jsonl")))
                    if moments and done > moments[-1] and others:
                        moments.pop()
                        whom.append(rng.choice(["worker", "command", "both"]))
                        time.sleep(rng.random() / 2)
                        if whom[-1] != "command":
                            kill(rng.choice(others))
                        if whom[-1] != "worker":
                            running.kill()
                    time.sleep(0.01)
        for _ in range(SECONDS):
            alive = sum(Path(f"/proc/{pid}").exists() for pid in self._begun)
            if not alive:
                break
            time.sleep(1)
        left = sum(each.name.endswith(".unfinished") for each in self._parts.parent.rglob("*"))
        return {"starts": starts, "kills": whom, "running": alive, "left": left}

    def _done(self) -> bool:
        """Was it killed at its very end, with nothing left to do?"""
        there = [each.name for each in self._parts.parent.glob(f"{self._parts.stem}*")]
        return there == [self._parts.stem]

    def _start(self) -> "subprocess.Popen[bytes]":
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.Popen(self._command, **quiet)

    def _tree(self, pid: int) -> list[int]:
        """A process and all that it has begun, and these."""
        found = [pid]
        for each in found:
            with suppress(OSError):
                children = Path(f"/proc/{each}/task/{each}/children").read_text().split()
                found += map(int, children)
        self._begun.update(found)
        return found


def cpu_of_children() -> float:
    """CPU seconds of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def resident(pid: int) -> int:
    """Bytes of a process in memory."""
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
    return 0


def kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def render(results: Sequence[Result]) -> str:
    """The tables."""
    known = {(row["what"], row.get("processes")): row for row in results}
    cpu, killed = known["CPU", None], known["killed", 2]
    few, one, two = known["few", 1], known["many", 1], known["many", 2]
    times = [
        (
            f"{row['texts']:,}",
            str(row["processes"]),
            f"{row['wall']:.1f}",
            f"{row['cpu']:.1f}",
            f"{row['texts'] / row['wall']:,.0f}",
            f"{row['memory']:.0f}",
        )
        for row in (few, one, two)
    ]
    header = ("texts", "processes", "wall, s", "CPU, s", "texts/s", "memory, MB")
    own, other = cpu["ours"], cpu["ner"]
    beside = [
        ("hocrf annotate, from lines to lines", f"{own:.2f}", "1"),
        ("spaCy's ner, nlp.pipe from texts to Docs", f"{other:.2f}", f"{other / own:.1f}"),
        ("spaCy's tokenizer alone", f"{cpu['tokenizer']:.2f}", f"{cpu['tokenizer'] / own:.2f}"),
    ]
    kills = [f"{killed['kills'].count(who)} x {who}" for who in ("worker", "command", "both")]
    same = known["same bytes", None]
    facts = [
        ("wall time, one process by two", f"{one['wall'] / two['wall']:.2f}"),
        ("killed", ", ".join(kills)),
        ("started", str(killed["starts"])),
        ("processes that run afterwards", str(killed["running"])),
        ("unfinished files", str(killed["left"])),
        ("bytes of two processes are those of one", "yes" if same["two processes"] else "no"),
        ("bytes after all kills, too", "yes" if same["killed"] else "no"),
    ]
    machine = known["machine", None]
    about = ("measured", "CPU", "cores", "load average", "instruction set")
    return "\n\n".join(
        [
            "# Many short texts",
            table(times, header, "rr"),
            table(beside, ("CPU time of 10,000 texts", "s", "times ours"), "l"),
            table(facts, ("what", "found"), "l"),
            table([(key, str(machine[key])) for key in about], ("machine", ""), "ll"),
        ]
    )


if __name__ == "__main__":
    typer.run(main)
