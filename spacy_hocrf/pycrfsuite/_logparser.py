"""Parses CRFsuite's training log, line by line, into events and numbers."""

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

__all__ = ["LabelScore", "TrainLogParser"]

NUMBER = r"([-+\w.]+)"
SCORE = rf"\({NUMBER}, {NUMBER}, {NUMBER}\)"
RATIO = r"(\d+) / (\d+)"
COUNTS = r"\((\d+), (\d+), (\d+)\)"
FIELDS: tuple[tuple[str, str, Callable[[str], float]], ...] = (
    (rf"Loss: {NUMBER}", "loss", float),
    (rf"Feature (?:L2-)?norm: {NUMBER}", "feature_norm", float),
    (rf"Error norm: {NUMBER}", "error_norm", float),
    (r"Active features: (\d+)", "active_features", int),
    (r"Line search trials: (\d+)", "linesearch_trials", int),
    (rf"Line search step: {NUMBER}", "linesearch_step", float),
    (rf"Learning rate \(eta\): {NUMBER}", "learning_rate", float),
    (r"Total number of feature updates: (\d+)", "feature_updates", int),
    (rf"Seconds required for this iteration: {NUMBER}", "time", float),
)
"""Lines of an iteration with one number: pattern, name and type."""
ITERATION = re.compile(r"\*{5} (?:Iteration|Epoch) #(\d+) \*{5}")


class LabelScore(NamedTuple):
    """Scores of a label in the held-out sequences; None where undefined."""

    match: int
    model: int
    ref: int
    precision: float | None
    recall: float | None
    f1: float | None


class TrainLogParser:
    """Parses the lines of a log, and stores what they say.

    log (list[str]): all lines. last_log (str): those of the last event.
    iterations (list[dict]), last_iteration (Optional[dict]): numbers of each iteration.
    featgen_percent, featgen_num_features, featgen_seconds: progress of feature generation.
    training_seconds, storing_seconds: durations of training and storing.
    events (list[tuple[str, int, int]]): name, first line, and one past the last line of each event.
    """

    def __init__(self) -> None:
        self.log: list[str] = []
        self.events: list[tuple[str, int, int]] = []
        self.iterations: list[dict[str, Any]] = []
        self.last_iteration: dict[str, Any] | None = None
        self.featgen_percent = 0
        self.featgen_num_features = 0
        self.featgen_seconds: float | None = None
        self.training_seconds: float | None = None
        self.storing_seconds: float | None = None
        self._read: Callable[[str], str | None] = self._start

    @property
    def last_log(self) -> str:
        """The lines of the last event, or all before the first."""
        _, first, last = self.events[-1] if self.events else ("", 0, len(self.log))
        return "".join(self.log[first:last])

    def feed(self, line: str) -> str | None:
        """Parse a line. RETURNS (Optional[str]): the event that it ends, if any."""
        self.log.append(line)
        return self._read(line)

    def _end(self, event: str, *, here: bool = True) -> str:
        """Record an event that ends with the last line, or with the one before."""
        first = self.events[-1][2] if self.events else 0
        self.events.append((event, first, len(self.log) - (not here)))
        return event

    def _start(self, line: str) -> str:
        self._read = self._generation
        return self._end("start")

    def _generation(self, line: str) -> str | None:
        text = line.strip()
        if text == "." or text.isdigit():
            percent = self.featgen_percent + 2 if text == "." else 10 * int(text)
            self.featgen_percent = min(100, percent)
            return self._end("featgen_progress")
        if match := re.match(r"Number of features: (\d+)", line):
            self.featgen_num_features = int(match[1])
        if match := re.match(rf"Seconds required: {NUMBER}", line):
            self.featgen_seconds = float(match[1])
            self._read = self._preparation
            return self._end("featgen_end")
        return None

    def _preparation(self, line: str) -> str | None:
        if ITERATION.match(line):
            event = self._end("prepared", here=False)
            self._read = self._iteration
            self._iteration(line)
            return event
        if "terminated with error" in line:
            self._read = self._training_end
            return self._end("prepare_error")
        return self._training_end(line)

    def _iteration(self, line: str) -> str | None:
        if match := ITERATION.match(line):
            self.last_iteration = {"num": int(match[1]), "scores": {}}
            self.iterations.append(self.last_iteration)
        elif line == "\n":
            self._read = self._between
            return self._end("iteration")
        else:
            assert self.last_iteration is not None
            _read_field(line, self.last_iteration)
        return None

    def _between(self, line: str) -> str | None:
        if ITERATION.match(line):
            self._read = self._iteration
            return self._iteration(line)
        return self._training_end(line)

    def _training_end(self, line: str) -> str | None:
        if match := re.match(rf"Total seconds required for training: {NUMBER}", line):
            self.training_seconds = float(match[1])
        elif line == "\n" and self.training_seconds is not None:
            self._read = self._storing
            return self._end("optimization_end")
        return None

    def _storing(self, line: str) -> str | None:
        if match := re.match(rf"Seconds required: {NUMBER}", line):
            self.storing_seconds = float(match[1])
        elif line == "\n":
            return self._end("end")
        return None


def _read_field(line: str, iteration: dict[str, Any]) -> None:
    """Store the numbers in a line under their names."""
    for pattern, name, kind in FIELDS:
        if match := re.match(pattern, line):
            iteration[name] = kind(match[1])
            return
    if match := re.match(rf"\s+(.+): {COUNTS} \((.*), (.*), (.*)\)", line):
        counts, scores = map(int, match.group(2, 3, 4)), map(_score, match.group(5, 6, 7))
        iteration["scores"][match[1]] = LabelScore(*counts, *scores)
    elif match := re.match(rf"Macro-average precision, recall, F1: {SCORE}", line):
        for name, value in zip(("avg_precision", "avg_recall", "avg_f1"), match.groups()):
            iteration[name] = float(value)
    elif match := re.match(rf"(Item|Instance) accuracy: {RATIO}", line):
        name = f"{match[1].lower()}_accuracy"
        right, total = int(match[2]), int(match[3])
        iteration[name] = Fraction(right, total) if total else Fraction(0)
        iteration[f"{name}_float"] = float(iteration[name])


def _score(text: str) -> float | None:
    return None if "*" in text else float(text)
