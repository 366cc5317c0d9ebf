"""Bar 11: the memory that training needs, and processes of their own."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import models
import peers
from compare import CONLL, Setting, fresh_docs
from corpora import Sentence
from results import Outcome, Row, megabytes, not_measured

CHILD = Path(__file__).with_name("child.py")


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


def child(*arguments: str) -> dict:
    """What a fresh process says."""
    command = [sys.executable, str(CHILD), *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])
