"""Bars 11 to 13 and 23: what a process needs: memory, threads, and the time to import, to load and to
install.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import models
import peers
import spacy
from compare import CONLL, Setting, fresh_docs, turns
from corpora import Sentence
from measure import idle_cores, take_turns
from results import Outcome, Row, megabytes, milliseconds, not_measured

CHILD = Path(__file__).with_name("child.py")
ROOT = Path(__file__).parents[3]  # of the package's sources
SOURCES = ("pyproject.toml", "setup.py", "setup.cfg", "README.md", "LICENSE", "spacy_hocrf")
COMPILED = ("*.so", "*.pyd", "*.c", "__pycache__")  # is made anew
COMPILE_LIMIT = 80.0  # CPU seconds


def bar_11(setting: Setting) -> Outcome:
    """Peak memory of training in a fresh process, above the same process idle."""
    sentences = setting.corpora.chunks()
    iterations = str(setting.memory_iterations)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "observations.tsv"
        nlp = models.crf(sentences, 1)
        _write_observations(
            path,
            models.observation_strings(models.component(nlp), fresh_docs(nlp, sentences)),
            sentences,
        )
        theirs = child("crfsuite", str(path), iterations)
    corpus = [str(setting.corpora.data), *(["--small"] if setting.corpora.small else [])]
    if theirs["peak"] is None:
        return Outcome(
            [not_measured("peak memory of training", "there is no /proc/self/status", 2.0, 1.0)]
        )
    idle = child("idle")["peak"]
    peer = theirs["peak"] - theirs["idle"]
    rows = []
    for order, (must, aim) in {1: (2.0, 1.0), 3: (3.0, 1.5)}.items():
        above = child("ours", "chunks", str(order), iterations, *corpus)["peak"] - idle
        what = f"peak memory of training, order {order}, {CONLL}"
        rows.append(Row(what, megabytes(above), megabytes(peer), above / peer, must=must, aim=aim))
    peak = child("ours", "tags", "2", iterations, *corpus)["peak"]
    what = "peak memory of a process that trains order 2 on EWT, 49 tags"
    rows.append(Row(what, megabytes(peak), "", peak / 1e6, unit="MB", must=4_000.0))
    return Outcome(rows, checks=[f"idle with spaCy imported: {megabytes(idle)}"])


def bar_12(setting: Setting) -> Outcome:
    """Wall time of one thread over that of two."""
    what = f"two threads, order 1, {CONLL}, wall time"
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    idle = idle_cores()
    if cores < 2 or idle is None or idle < 1.8:
        free = (
            "the number of idle cores is unknown"
            if idle is None
            else f"{idle:.1f} of {cores} cores were idle"
        )
        return Outcome([not_measured(what, f"{free}, 1.8 are needed", 1.7, 1.9, at_least=True)])
    sentences = setting.corpora.chunks()
    trainings = {
        threads: models.Training(models.crf(sentences, 1, threads=threads)) for threads in (1, 2)
    }
    sides = {threads: turns(setting, training) for threads, training in trainings.items()}
    seconds = take_turns(sides, setting.rounds, clock=time.perf_counter)
    speed_up = seconds[1] / seconds[2]
    return Outcome(
        [
            Row(
                what,
                milliseconds(seconds[2]),
                milliseconds(seconds[1]),
                speed_up,
                must=1.7,
                aim=1.9,
                at_least=True,
            )
        ]
    )


def bar_13(setting: Setting) -> Outcome:
    """Import of the package after spaCy's own; loading a model of a million features."""
    imports = least_of(setting.imports, "import")
    nlp = models.crf(setting.corpora.chunks()[: setting.million_sentences], 1, unseen=True)
    size = len(models.component(nlp).structure.index)
    with tempfile.TemporaryDirectory() as folder:
        nlp.to_disk(folder)
        part = Path(folder) / nlp.pipe_names[0]
        seconds = take_turns(
            {
                "model": lambda: partial(_load, spacy.load, folder),
                "component": lambda: partial(_load, models.component(nlp).from_disk, part),
            },
            setting.rounds,
        )
    loaded = f"loading a model of {size / 1e6:.2f} million features"
    return Outcome(
        [
            Row(
                "import of what spacy.blank imports of a plugin, after spaCy",
                f"{imports['plugin'] * 1e3:.1f} ms",
                "",
                imports["plugin"] * 1e3,
                unit="ms",
                must=10.0,
            ),
            Row(
                "import of the whole component, at the first add_pipe",
                f"{imports['component'] * 1e3:.1f} ms",
                "",
            ),
            Row(
                f"{loaded}: the component",
                f"{seconds['component']:.2f} s",
                "",
                seconds["component"],
                unit="s",
                must=0.5,
            ),
            Row(
                f"{loaded}: spacy.load, with vocabulary and tokenizer",
                f"{seconds['model']:.2f} s",
                "",
            ),
        ]
    )


def bar_23(setting: Setting) -> Outcome:
    """From the sources to a wheel, with all that pip does for it, and from the wheel to an installed
    package, without what it depends on.
    """
    what = "pip wheel: compiling the package, CPU time"
    with tempfile.TemporaryDirectory() as folder:
        sources = Path(folder) / "sources"
        copy_sources(sources)
        options = ["--no-deps", "--wheel-dir", folder]
        if setting.corpora.small:  # no kernels, and nothing from the network
            (sources / "setup.py").write_text("from setuptools import setup\n\nsetup()\n")
            options.append("--no-build-isolation")
        try:
            _, compiling = pip("wheel", *options, str(sources))
        except subprocess.CalledProcessError as error:
            why = f"pip ended with {error.returncode}"
            return Outcome([not_measured(what, why, COMPILE_LIMIT)])
        wheel = next(Path(folder).glob("*.whl"))
        size = megabytes(wheel.stat().st_size)
        wall, cpu = pip("install", "--no-deps", "--target", f"{folder}/installed", str(wheel))
    took = f"{wall:.1f} s, {cpu:.1f} s of CPU time"
    return Outcome(
        [
            Row(what, f"{compiling:.1f} s", "", compiling, unit="s", must=COMPILE_LIMIT),
            Row("pip install: from that wheel, without dependencies", took, ""),
        ],
        checks=[f"the wheel has {size}"],
    )


def copy_sources(folder: Path) -> None:
    """What a wheel is made from, without what an earlier build has left."""
    folder.mkdir()
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns(*COMPILED))
        else:
            shutil.copy(ROOT / name, folder)


def pip(*arguments: str) -> tuple[float, float]:
    """RETURNS (Tuple[float, float]): seconds, and CPU seconds with those of every compiler.
    RAISES (CalledProcessError): if pip fails.
    """
    environment = {**os.environ, "CCACHE_DISABLE": "1"}
    before, begun = os.times(), time.perf_counter()
    command = [sys.executable, "-m", "pip", "-q", *arguments]
    subprocess.run(command, env=environment, stdout=sys.stderr, check=True)
    after, seconds = os.times(), time.perf_counter() - begun
    user = after.children_user - before.children_user
    return seconds, user + after.children_system - before.children_system


def _load(load: Callable, path: str | Path) -> int:
    load(path)
    return 1


def _write_observations(
    path: Path, observed: peers.Observed, sentences: Sequence[Sentence]
) -> None:
    """A line for each token, its label and what is observed between tabs; an empty line after each
    sentence.
    """
    with path.open("w", encoding="utf8") as file:
        for tokens, (_, labels) in zip(observed, sentences):
            file.writelines(
                "\t".join([label, *token]) + "\n" for token, label in zip(tokens, labels)
            )
            file.write("\n")


def least_of(times: int, *arguments: str) -> dict[str, float]:
    """The least CPU times that fresh processes say. What they import is compiled first, as an
    installed package is.
    """
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
        }
        environment["PYTHONPYCACHEPREFIX"] = folder
        child(*arguments, environment=environment)
        found = [child(*arguments, environment=environment) for _ in range(times)]
        return {what: min(each[what] for each in found) for what in found[0]}


def child(*arguments: str, environment: Mapping[str, str] | None = None) -> dict:
    """What a fresh process says."""
    command = [sys.executable, str(CHILD), *arguments]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])
