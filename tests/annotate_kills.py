"""`hocrf annotate` that is killed before each change of a file, once: nothing is lost, the same command goes
on, and none says that all is done over a file that is not whole.
"""

import io
import json
import os
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "helpers"))

from annotating import some_texts, write_pipeline

from spacy_hocrf.cli import hocrf_cli
from spacy_hocrf.cli.annotate import command  # so that nobody has to wait for it

__all__ = ["Annotating", "command"]

CHANGES = {"open", "os.mkdir", "os.remove", "os.rename", "os.rmdir"}


class Annotating:
    """Commands that annotate the same texts, each in a process of its own.

    folder (Path): for all files.
    """

    def __init__(self, folder: Path) -> None:
        self.steps = Counter[str]()
        self.work, self._texts, self._model = (
            folder / "work",
            folder / "texts.jsonl",
            folder / "model",
        )
        write_pipeline(self._model)
        rows = [{"text": text} for text in some_texts()]
        self._texts.write_text("".join(f"{json.dumps(row)}\n" for row in [*rows, {"text": 3}]))
        self.output = self.work / "out.jsonl"
        self.clear()
        code, said = self.end(self.begin())
        assert code == 0, said
        self.whole = self.output.read_bytes()
        self.clear()

    def clear(self) -> None:
        """Begin anew."""
        self.work.mkdir(exist_ok=True)
        for path in self.work.iterdir():
            path.unlink()

    def begin(self, watch: Callable[[str, Any], None] | None = None) -> tuple[int, int]:
        """Start the command. watch: hears of every change of a file before it is made.

        RETURNS: its process, and a pipe with what it says.
        """
        here, there = os.pipe()
        process = os.fork()
        if process:
            os.close(there)
            return process, here
        code = 1
        try:
            text = io.StringIO()
            if watch is not None:
                sys.addaudithook(_of_work(str(self.work), watch))
            with redirect_stdout(text), redirect_stderr(text):
                try:
                    arguments = [self._model, self._texts, self.output, "--size", "3"]
                    hocrf_cli(["annotate", *map(str, arguments)])
                except SystemExit as ended:
                    code = int(ended.code or 0)
            os.write(there, text.getvalue().encode())
        finally:
            os._exit(code)
        raise AssertionError

    def end(self, began: tuple[int, int]) -> tuple[int, str]:
        """Wait: the exit code, or a signal's negative number, and what was said."""
        process, here = began
        with open(here, "rb") as pipe:
            said = pipe.read().decode()
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), said

    def check(self, code: int, said: str) -> None:
        """Is the output whole if that was said, or not there?"""
        found = self.output.read_bytes() if self.output.exists() else None
        assert found in (None, self.whole), (
            f"{len(found or b'')} bytes instead of {len(self.whole)}"
        )
        assert found or code, f"done without an output: {said}"

    def check_going_on(self) -> None:
        """Does the same command end with everything?"""
        code, said = self.end(self.begin())
        # a job that was killed when nothing was left to do is there already
        assert code == 0 or ("[H350]" in said and self.output.exists()), said
        self.check(code, said)
        left = sorted(path.name for path in self.work.iterdir())
        assert left == ["out.jsonl", "out.jsonl.rejects.jsonl"], left
        self.clear()

    def kill_before(self, number: int) -> bool:
        """Kill a command before a change of a file. RETURNS: has it come to it?"""
        met = iter(range(number, -1, -1))
        here, there = os.pipe()

        def watch(event: str, path: Any) -> None:
            if not next(met):
                os.write(there, _step_of(event, str(path)).encode())
                os.kill(os.getpid(), signal.SIGKILL)

        code, said = self.end(self.begin(watch))
        os.close(there)
        with open(here) as pipe:
            self.steps[pipe.read() or "not at all"] += 1
        self.check(code, said)
        self.check_going_on()
        return code == -signal.SIGKILL


def _of_work(
    work: str, watch: Callable[[str, Any], None]
) -> Callable[[str, tuple[Any, ...]], None]:
    """An audit hook that tells of changes in a folder."""

    def hear(event: str, given: tuple[Any, ...]) -> None:
        if event in CHANGES and str(given[0]).startswith(work):
            reads = event == "open" and given[1] in ("r", "rb", None)
            if not reads:
                watch(event, given[0])

    return hear


def _step_of(event: str, path: str) -> str:
    """What a change of a file belongs to."""
    inside = path.rpartition("out.jsonl")[2]
    if inside.startswith(".lock"):
        return "lock"
    if ".parts.unfinished" in inside or (inside == ".parts" and event == "os.rename"):
        return "tidy"
    if inside == ".parts" or "_plan" in inside:
        return "plan"
    if "part-" in inside:
        return "part"
    return "rejects" if "reject" in inside else "gather"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        jobs, number = Annotating(Path(name)), 0
        while jobs.kill_before(number):
            number += 1
        steps = ", ".join(f"{step}: {n}" for step, n in sorted(jobs.steps.items()))
        print(f"killed before each change of a file, while at {steps}")
