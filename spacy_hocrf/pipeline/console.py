"""`spacy-hocrf.ConsoleLogger.v1`: the table of `spacy train`, with how far training is.

Beside epoch, step and scores, as spaCy's own logger has them, of every component of this package: the
objective and the norm of its gradient, the time of a step, and the step at which it converges.
"""

import sys
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import IO, Any, Literal

import srsly
from spacy.language import Language
from spacy.training.loggers import setup_table
from tqdm import tqdm
from wasabi.printer import Printer

from spacy_hocrf.pipeline.component import SegmentationPipe
from spacy_hocrf.warnings import Warnings

__all__ = ["ConsoleTable", "Logger", "logger_of"]

Log = Callable[[dict[str, Any] | None], None]
Logger = Callable[[Language, IO[str], IO[str]], tuple[Log, Callable[[], None]]]

WIDTHS = {"E": 3, "#": 6, "Score": 6, "Sec/step": 8}
WINDOW_STEPS, MIN_DECREASE = 5, 0.05
"""Steps, and a share of the objective: if it fell by less in so many, F1 no longer changes."""
SCORE_WIDTH, LOSS_WIDTH, MAX_WIDTH = 6, 9, 24


def logger_of(
    progress_bar: Literal["train", "eval"] | None,
    console_output: bool,
    output_file: str | Path | None,
) -> Logger:
    """The logger with the settings of `factories.make_console_logger`."""

    def begin(
        nlp: Language, stdout: IO[str] = sys.stdout, stderr: IO[str] = sys.stderr
    ) -> tuple[Log, Callable[[], None]]:
        file = None if output_file is None else Path(output_file)
        table = ConsoleTable(nlp, stdout if console_output else None, file)
        if progress_bar is None:
            return table.log, table.finish
        bar = _Bar(nlp, progress_bar == "train", stderr)

        def log(info: dict[str, Any] | None) -> None:
            bar.step(info)
            table.log(info)

        def finish() -> None:
            bar.close()
            table.finish()

        return log, finish

    return begin


class ConsoleTable:
    """The rows of one training.

    nlp (Language): the pipeline.
    stdout (Optional[IO]): where they are printed.
    output_file (Optional[Path]): where they are written as JSONL; replaced.
    """

    def __init__(self, nlp: Language, stdout: IO[str] | None, output_file: Path | None) -> None:
        trained = [
            (name, pipe) for name, pipe in nlp.pipeline if getattr(pipe, "is_trainable", False)
        ]
        self._ours = {name: pipe for name, pipe in trained if isinstance(pipe, SegmentationPipe)}
        self._others = [name for name, _ in trained if name not in self._ours]
        weights = nlp.config["training"]["score_weights"]
        self._scores = [name for name, weight in weights.items() if weight is not None]
        self._stdout, self._file = stdout, output_file
        if output_file is not None:
            output_file.parent.mkdir(parents=True, exist_ok=True)
            output_file.write_text("", encoding="utf8")
        self._objectives: dict[str, deque[float]] = {}  # of the last steps, by component
        self._converged: dict[str, int] = {}  # id of the converged run, by component
        self._text_counts: dict[str, tuple[int, int]] = {}  # at the last two steps, by component
        self._steps, self._since, self._seconds = 0, perf_counter(), list[float]()
        columns = ["E", "#", *self._columns(), "Sec/step", *self._scores, "Score"]
        widths = [
            WIDTHS.get(name, SCORE_WIDTH if name in self._scores else LOSS_WIDTH)
            for name in columns
        ]
        header, self._widths, self._aligns = setup_table(
            cols=columns, widths=widths, max_width=MAX_WIDTH
        )
        self._print(header)
        self._print(["-" * width for width in self._widths])

    def _columns(self) -> list[str]:
        alone = len(self._ours) == 1
        named = ("Objective", "Gradient") if alone else ("Obj", "Grad")
        ours = [word if alone else f"{word} {name}" for name in self._ours for word in named]
        return [*ours, *(f"Loss {name}" for name in self._others)]

    def log(self, info: dict[str, Any] | None) -> None:
        """Note a step.

        info (Optional[Dict[str, Any]]): what `spacy.training.loop` tells of an evaluation; None for
            steps without.
        """
        self._steps += 1
        now = perf_counter()
        if info is None:  # the time of the others includes an evaluation
            self._seconds.append(now - self._since)
        for name, pipe in self._ours.items():
            self._note_component(name, pipe)
        if info is not None:
            self._add_row(info)
            self._seconds = []
        self._since = perf_counter()

    def finish(self) -> None:
        """Say what still had much to gain."""
        for name, pipe in self._ours.items():
            run, (before, texts) = pipe.run, self._text_counts.get(name, (0, 0))
            if 0 < before < texts:
                text = Warnings.W053.format(name=name, found=texts, steps=self._steps)
                self._write(Printer(no_print=True).warn(text))
            elif run is not None and run.running and self._steps and self._still_falls(name):
                text = Warnings.W020.format(name=name, found=self._steps)
                self._write(Printer(no_print=True).warn(text))

    def _still_falls(self, name: str) -> bool:
        """Has the objective just fallen by more than MIN_DECREASE? True after few steps."""
        values = self._objectives.get(name, deque())
        measured = len(values) > WINDOW_STEPS
        return not measured or values[0] - values[-1] > MIN_DECREASE * abs(values[-1])

    def _note_component(self, name: str, pipe: SegmentationPipe) -> None:
        run = pipe.run
        self._text_counts[name] = self._text_counts.get(name, (0, 0))[1], pipe.texts_since_loaded
        if run is not None:
            values = self._objectives.setdefault(name, deque(maxlen=WINDOW_STEPS + 1))
            values.append(run.loss)
        if run is None or run.running or self._converged.get(name) == id(run):
            return
        self._converged[name] = id(run)
        printer = Printer(no_print=True)
        mark = printer.good if run.status.startswith(("converged", "finished")) else printer.info
        self._write(mark(f"{name} at step {self._steps - 1}: {run.status}"))

    def _add_row(self, info: dict[str, Any]) -> None:
        """A row of the table, and of the file."""
        cells, losses = list[str](), dict[str, float]()
        for name, pipe in self._ours.items():
            run = pipe.run
            losses[name] = float(info["losses"][name]) if run is None else run.loss
            norm = getattr(run, "gradient_norm", None)
            cells += [f"{losses[name]:.2f}", "-" if norm is None else f"{norm:.1e}"]
        losses.update((name, float(info["losses"][name])) for name in self._others)
        cells += [f"{losses[name]:.2f}" for name in self._others]
        seconds = sum(self._seconds) / len(self._seconds) if self._seconds else None
        scores = {name: float(info["other_scores"].get(name, 0.0)) for name in self._scores}
        shown = [score if name == "speed" else 100 * score for name, score in scores.items()]
        cells += [
            "-" if seconds is None else f"{seconds:.3f}",
            *(f"{score:.2f}" for score in shown),
        ]
        self._print([info["epoch"], info["step"], *cells, f"{info['score']:.2f}"])
        row = {"epoch": info["epoch"], "step": info["step"], "losses": losses, "scores": scores}
        converged = [name for name in self._ours if name in self._converged]
        row |= {"score": info["score"], "seconds_per_step": seconds, "converged": converged}
        if self._file is not None:
            srsly.write_jsonl(self._file, [row], append=True, append_new_line=False)

    def _print(self, cells: Sequence[Any]) -> None:
        row = Printer(no_print=True).row(cells, widths=self._widths, aligns=self._aligns, spacing=2)
        self._write(row)

    def _write(self, text: str | None) -> None:
        if self._stdout is not None:
            print(text, file=self._stdout, flush=True)


class _Bar:
    """A progress bar for a terminal.

    whole_training (bool): up to the last step, not up to the next evaluation.
    """

    def __init__(self, nlp: Language, whole_training: bool, stderr: IO[str]) -> None:
        training = nlp.config["training"]
        self._whole_training, self._stderr = whole_training, stderr
        self._total = training["max_steps"] if whole_training else training["eval_frequency"]
        self._bar: Any = None

    def step(self, info: dict[str, Any] | None) -> None:
        """Note a step; one with an evaluation begins another bar, below its row."""
        if info is None:
            self._bar.update(1)
            return
        self.close()
        initial = info["step"] if self._whole_training else 0
        self._bar = tqdm(
            total=self._total, disable=None, leave=False, file=self._stderr, initial=initial
        )

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.close()
