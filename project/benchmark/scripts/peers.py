"""The other side: python-crfsuite, SciPy's L-BFGS-B and spaCy's `ner`."""

import re
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pycrfsuite
import spacy
from models import Weights, span_examples
from numpy.typing import NDArray
from scipy.optimize import minimize
from spacy.language import Language
from spacy.training import Example
from spacy.util import minibatch
from thinc.api import Optimizer

sys.path.append(str(Path(__file__).parents[2]))
from common.columns import Sentence, chunks_of

SETTINGS = {
    "c1": 0.0,
    "c2": 0.5,
    "feature.minfreq": 0,
    "feature.possible_states": 0,
    "feature.possible_transitions": 0,
}
NO_END = 1_000_000

Observed = Sequence[Sequence[Sequence[str]]]  # strings of each token of each sentence
Labels = Sequence[Sequence[str]]


@dataclass(frozen=True)
class CRFsuiteModel:
    """What CRFsuite has learnt after some iterations."""

    parameters: int
    loss: float  # at these weights, as its log has it
    gradient_norm: float
    observed: Weights
    transitions: Weights


class CRFsuiteTraining:
    """CRFsuite's L-BFGS, a few iterations at a time.

    It runs in a thread that waits before the first and after every iteration, so others can take
    turns with it; only one of the two threads is ever at work. c1 = 0 and c2 = 0.5 is sigma = 1,
    and only what is observed has a parameter.
    """

    def __init__(self, observed: Observed, labels: Labels) -> None:
        self.evaluations = self.parameters = 0
        self.losses: list[float] = []
        self.running = True
        self._trainer = _LoudTrainer(self._hear)
        self._trainer.select("lbfgs")
        self._trainer.set_params(SETTINGS | {"max_iterations": NO_END})
        for sentence, its_labels in zip(observed, labels):
            self._trainer.append(sentence, its_labels)
        self._ours, self._its = threading.Semaphore(0), threading.Semaphore(0)
        self._closing = False
        self._thread = threading.Thread(target=self._train, daemon=True)
        self._thread.start()
        self._ours.acquire()

    def step(self, iterations: int) -> int:
        """RETURNS (int): evaluations of the objective; 0 once it has stopped."""
        before = self.evaluations
        for _ in range(iterations):
            if self.running:
                self._its.release()
                self._ours.acquire()
        return self.evaluations - before

    def close(self) -> None:
        """End the thread."""
        self._closing = True
        self.step(1)
        self._thread.join()

    def _train(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            try:
                self._trainer.train(str(Path(folder) / "model"))
            except _Closed:
                pass
            finally:
                self.running = False
                self._ours.release()

    def _hear(self, line: str) -> None:
        """The trainer's log, line by line; the next line comes only when this one is heard."""
        if match := re.match(r"Number of features: (\d+)", line):
            self.parameters = int(match[1])
        elif match := re.match(r"Loss: (\S+)", line):
            self.losses.append(float(match[1]))
        elif match := re.match(r"Line search trials: (\d+)", line):
            self.evaluations += int(match[1]) + (len(self.losses) == 1)  # and one at the start
        elif line.startswith(("L-BFGS optimization", "Seconds required for this iteration")):
            self._ours.release()
            self._its.acquire()
            if self._closing:
                raise _Closed


class _Closed(Exception):
    """Nobody wants more iterations."""


class _LoudTrainer(pycrfsuite.BaseTrainer):
    """A trainer that tells its log to a function."""

    def __init__(self, hear: Callable[[str], None]) -> None:
        super().__init__()
        self._hear = hear

    def message(self, message: str) -> None:
        self._hear(message)


def train_crfsuite(
    observed: Iterable[Sequence[Sequence[str]]],
    labels: Labels,
    iterations: int,
    path: Path,
    sigma: float = 1.0,
) -> CRFsuiteModel:
    """Train for some iterations, and write the model to a file."""
    log: list[str] = []
    trainer = _LoudTrainer(log.append)
    trainer.select("lbfgs")
    trainer.set_params(SETTINGS | {"max_iterations": iterations, "c2": 0.5 / sigma**2})
    for sentence, its_labels in zip(observed, labels):
        trainer.append(sentence, its_labels)
    trainer.train(str(path))
    learnt = open_tagger(path).info()
    text = "".join(log)
    return CRFsuiteModel(
        parameters=int(re.findall(r"Number of features: (\d+)", text)[0]),
        loss=float(re.findall(r"Loss: (\S+)", text)[-1]),
        gradient_norm=float(re.findall(r"Error norm: (\S+)", text)[-1]),
        observed=learnt.state_features,
        transitions=learnt.transitions,
    )


def open_tagger(path: Path) -> pycrfsuite.Tagger:
    """CRFsuite's tagger."""
    tagger = pycrfsuite.Tagger()
    tagger.open(str(path))
    return tagger


@dataclass(frozen=True)
class Minimum:
    """How SciPy's L-BFGS-B came to some value of the objective."""

    evaluations: int
    seconds: float
    loss: float


def minimize_with_scipy(objective: Callable, start: NDArray, target: float) -> Minimum:
    """L-BFGS-B with a memory of ten, until the objective is at most `target`."""
    evaluations, lowest = 0, float("inf")

    def counted(weights: NDArray) -> tuple[float, NDArray]:
        nonlocal evaluations, lowest
        evaluations += 1
        value, gradient = objective(weights)
        lowest = min(lowest, value)
        return value, gradient.copy()  # the objective overwrites its own

    def stop_at_target(intermediate_result: object) -> None:
        if lowest <= target:
            raise StopIteration

    begun = time.process_time()
    options = {"maxcor": 10, "maxiter": NO_END, "maxfun": NO_END, "ftol": 0.0, "gtol": 0.0}
    minimize(counted, start, jac=True, method="L-BFGS-B", options=options, callback=stop_at_target)
    return Minimum(evaluations, time.process_time() - begun, lowest)


def train_as_user(
    sentences: Iterable[tuple[list[list[str]], list[str]]], iterations: int, path: Path
) -> None:
    """Train until CRFsuite stops by itself, for so many iterations at most, and write the model to a
    file. sentences: what a user's loop has found, and the labels.
    """
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    trainer.set_params({"c1": 0.0, "c2": 0.5, "max_iterations": iterations})
    for observed, labels in sentences:
        trainer.append(observed, labels)
    trainer.train(str(path))


def train_ner(sentences: Iterable[Sentence], steps: int) -> Language:
    """spaCy's `ner` with its default model, trained for a few steps."""
    nlp, examples, _ = new_ner(sentences)
    for batch, _ in zip(minibatch(examples, 100), range(steps)):
        nlp.update(batch)
    return nlp


def new_ner(sentences: Iterable[Sentence]) -> tuple[Language, list[Example], Optimizer]:
    """spaCy's `ner` with its default model, initialized; what it can learn from, and with."""
    nlp = spacy.blank("en")
    nlp.add_pipe("ner")
    examples = span_examples(nlp, sentences, chunks_of)
    return nlp, examples, nlp.initialize(lambda: examples)
