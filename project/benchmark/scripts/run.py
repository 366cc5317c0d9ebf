"""Measure the bars one after another, each in a process of its own with one thread for linear
algebra.

A bar that fails is noted and does not stop the others. Every result is one line of JSON in the work
folder, so that single bars can be measured again with `--only`.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated

import typer
from bars import BARS
from corpora import DataOption, SmallOption
from models import instruction_sets
from wasabi import msg

SCRIPT = Path(__file__).with_name("bars.py")
ONE_THREAD = dict.fromkeys(
    (f"{name}_THREADS" for name in ("OPENBLAS_NUM", "OMP_NUM", "MKL_NUM", "VECLIB_MAXIMUM")), "1"
)
BY_INSTRUCTION_SET = "2"  # the bar that is measured with each of them
VARIABLE = "HOCRF_INSTRUCTIONS"


def main(
    data: DataOption = Path("assets"),
    work: Annotated[Path, typer.Option(help="Folder for the results")] = Path("metrics"),
    only: Annotated[str, typer.Option(help="Numbers of bars, separated by commas")] = ",".join(
        BARS
    ),
    small: SmallOption = False,
) -> None:
    """Measure bars, and write a result for each."""
    work.mkdir(parents=True, exist_ok=True)
    for bar in only.split(","):
        if bar not in BARS:
            msg.fail(f"There is no bar {bar!r}, but {', '.join(BARS)}", exits=1)
        measured = instruction_sets() if bar == BY_INSTRUCTION_SET else ()
        for older in work.glob(f"bar-{bar}[.-]*"):
            older.unlink()
        for instructions in reversed(measured or (None,)):
            measure(bar, data, work, small, instructions)


def measure(bar: str, data: Path, work: Path, small: bool, instructions: str | None) -> None:
    """One bar, with one instruction set (None for the package's own choice)."""
    what = f"bar {bar}" + (f", {instructions}" if instructions else "")
    output = work / (f"bar-{bar}-{instructions}.json" if instructions else f"bar-{bar}.json")
    command = [
        sys.executable,
        str(SCRIPT),
        bar,
        "--data",
        str(data),
        "--output",
        str(output),
        *(["--small"] if small else []),
    ]
    environment = os.environ | ONE_THREAD | ({VARIABLE: instructions} if instructions else {})
    print(f"{what} …", flush=True)
    begun = time.perf_counter()
    done = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True)
    spent = f"{time.perf_counter() - begun:.0f} s"
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        error = lines[-1].strip() if lines else f"exit status {done.returncode}"
        output.write_text(
            json.dumps({"bar": bar, "small": small, "error": error}) + "\n", encoding="utf8"
        )
        msg.fail(f"{what}: {error} ({spent})", done.stderr)
        return
    for row in json.loads(output.read_text(encoding="utf8"))["rows"]:
        value = row["note"] if row["value"] is None else f"{row['value']:.3g} {row['unit']}"
        msg.good(f"{what}: {row['what']}: {row['ours']} | {row['peer']} | {value} ({spent})")
    sys.stdout.flush()


if __name__ == "__main__":
    typer.run(main)
