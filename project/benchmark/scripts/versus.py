"""Two checkouts of this repository, side by side: is one faster, and are the answers the same?

`python scripts/versus.py OTHER --data assets` runs each workload in a process of the other checkout
and in one of this checkout. They work in turns, so that what else the machine does hits both; of
each the turn with the least CPU time for a unit of work counts. Where a process happens to lie in
memory makes it up to a tenth faster or slower for its whole life, so there are several pairs of
processes, each begun by the other side, and the ratio is the median of theirs, beside the least and
the largest. `--pairs 4 --rounds 5` is a run to trust. Both must be built in place.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer

HERE = Path(__file__).resolve().parent
WORKLOADS = {  # by number of the bar; the last are what users run without any setting
    "1 evaluation, CRF, order 1, CoNLL-2000": "crf conll 1",
    "2 evaluation, CRF, order 1, Cora": "crf cora 1",
    "4 evaluation, CRF, order 2, CoNLL-2000": "crf conll 2",
    "5 evaluation, CRF, order 3, Cora": "crf cora 3",
    "5 evaluation, CRF, order 3, CoNLL-2000": "crf conll 3",
    "6 evaluation, semi-CRF, order 1, Cora": "semi 1",
    "6 evaluation, semi-CRF, order 3, Cora": "semi 3",
    "7 long documents, L = 10": "long 10",
    "7 long documents, L = 100": "long 100",
    "7 long documents, L = 1,000": "long 1000",
    "7 long documents, unlimited": "long none",
    "8 punctuation SC1": "jmlr punctuation 1",
    "8 punctuation SC2": "jmlr punctuation 2",
    "8 punctuation SC3": "jmlr punctuation 3",
    "8 references SC1": "jmlr references 1",
    "8 references SC2": "jmlr references 2",
    "8 references SC3": "jmlr references 3",
    "9 tagging, order 1": "tag 1",
    "9 tagging, order 3": "tag 3",
    "10 nlp.pipe, no scores": "pipe",
    "13 loading 1.4 million features": "load",
    "default: evaluation, CoNLL-2000": "default training",
    "default: initialize, 2,000 sentences": "initialize",
    "default: nlp.pipe with scores": "default pipe",
    "default: nlp(text), 20 tokens": "default text",
    "default: nlp.pipe with scores, Docs of 100 tokens": "default docs 100",
    "default: nlp.pipe with scores, Docs of 10,000 tokens": "default docs 10000",
    "default: nlp.pipe with scores, Docs of 100,000 tokens": "default docs 100000",
    "labels: evaluation, CRF, order 1, EWT, 4": "labels 4",
    "labels: evaluation, CRF, order 1, EWT, 16": "labels 16",
    "labels: evaluation, CRF, order 1, EWT, 34": "labels 34",
    "labels: evaluation, CRF, order 1, EWT, 49": "labels 49",
    "labels: evaluation, CRF, order 1, EWT, 137": "labels 137",
    "labels: evaluation, CRF, order 1, EWT, 203": "labels 203",
    "labels: evaluation, CRF, order 1, EWT, 284": "labels 284",
}
TURN = 0.4  # CPU seconds of one turn, about


class Side:
    """A process of one checkout.

    root (Path): the checkout.
    """

    def __init__(self, root: Path, data: Path) -> None:
        scripts = root / "project" / "benchmark" / "scripts"
        environment = {**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "side.py"), str(scripts), str(data.resolve())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=scripts.parent,
        )

    def ask(self, **command: Any) -> dict[str, Any]:
        """RAISES (RuntimeError): if the process has ended."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._process.args} has ended")
        reply: dict[str, Any] = json.loads(line)
        return reply

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def main(
    other: Annotated[Path, typer.Argument(help="The other checkout, built in place")],
    data: Annotated[Path, typer.Option(help="Folder with conll2000/, hosemicrf/ and ewt/")] = Path(
        "assets"
    ),
    rounds: Annotated[int, typer.Option(help="Turns of each process")] = 7,
    pairs: Annotated[int, typer.Option(help="Pairs of processes for each workload")] = 1,
    only: Annotated[str, typer.Option(help="Only workloads whose name contains this")] = "",
) -> None:
    """Print a table: CPU time of a unit of work in both checkouts, and whether answers agree."""
    print("| workload | other, ms | this, ms | this / other | least to most | answers |")
    print("|---|---:|---:|---:|---:|---|", flush=True)
    for what, name in WORKLOADS.items():
        if only not in what:
            continue
        found = [pair(other, data, name, rounds, turned=i % 2 == 1) for i in range(pairs)]
        ratios = sorted(times["this"] / times["other"] for times, _ in found)
        mine, others = (min(times[key] for times, _ in found) for key in ("this", "other"))
        answers = "equal" if all(same for _, same in found) else "**differ**"
        extremes = f"{ratios[0]:.3f} to {ratios[-1]:.3f}"
        cells = f"{1e3 * others:.4g} | {1e3 * mine:.4g} | {median(ratios):.3f} | {extremes}"
        print(f"| {what} | {cells} | {answers} |", flush=True)


def pair(
    other: Path, data: Path, name: str, rounds: int, *, turned: bool
) -> tuple[dict[str, float], bool]:
    """One workload in a new process of each checkout.

    turned (bool): this checkout's process is begun first, and goes first.
    RETURNS (tuple[dict[str, float], bool]): CPU seconds of a unit of work of "other" and "this", and
        whether their answers are the same.
    """
    roots = {"other": other, "this": HERE.parents[2]}
    keys = list(reversed(roots)) if turned else list(roots)
    sides = {key: Side(roots[key], data) for key in keys}
    for side in sides.values():
        side.ask(prepare=name)
    first = {key: side.ask(turn=1) for key, side in sides.items()}
    pieces = max(1, round(TURN / max(first["other"]["cpu"], 1e-6)))
    best = {key: float("inf") for key in sides}
    same = first["other"]["answer"] == first["this"]["answer"]
    for _ in range(rounds):
        replies = {key: side.ask(turn=pieces) for key, side in sides.items()}
        same &= replies["other"]["answer"] == replies["this"]["answer"]
        for key, reply in replies.items():
            if reply["units"]:
                best[key] = min(best[key], reply["cpu"] / reply["units"])
    for side in sides.values():
        side.close()
    return best, same


if __name__ == "__main__":
    typer.run(main)
