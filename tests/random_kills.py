"""Training that is killed again and again, workers, the command or both, while it initializes, trains or
saves: the same model in the end, nothing that runs, and no file but the model. It takes minutes:

    python tests/random_kills.py --kills 50 --seed 0
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

TRAINING = """
import hashlib
import sys
from pathlib import Path
import spacy_hocrf.learning.shards
from small_corpus import documents, examples, untrained

spacy_hocrf.learning.shards.SHARD_TOKENS = 9
work = Path(sys.argv[1])
workers = {"@misc": "spacy-hocrf.Processes.v1", "number": 2, "parts": 8, "folder": str(work)}
kept = {"checkpoint": str(work / "checkpoint"), "checkpoint_every": 2}
trainer = {"@misc": "spacy-hocrf.LBFGS.v1", "sigma": 3.0, "improvement_tolerance": 0.0}
nlp = untrained(trainer={**trainer, **kept, "workers": workers})
print("initialize", flush=True)
data = examples(nlp, documents(40))
nlp.initialize(lambda: data)
pipe = nlp.get_pipe("hocrf")
print("train", flush=True)
while pipe.run.running:
    nlp.update(data)
    print("train", flush=True)
print("save", flush=True)
nlp.to_disk(work / "model")
print("model", hashlib.sha256(pipe.to_bytes()).hexdigest(), flush=True)
"""
SECONDS = 60
"""So long may processes take to see that the others are gone."""


def main(
    kills: Annotated[int, typer.Option(help="So many")] = 50,
    seed: Annotated[int, typer.Option(help="Of moments and of who is killed")] = 0,
) -> None:
    """Kill, and compare with a training that nobody disturbs."""
    rng, done = random.Random(seed), Counter[str]()
    with tempfile.TemporaryDirectory() as name:
        quiet, work = Path(name) / "quiet", Path(name) / "work"
        expected, lines = train(quiet, None, done)
        found = ""
        starts, models = 0, list[str]()
        while done.total() < kills or not found:
            plan = None
            if done.total() < kills:
                whom = rng.choice(["worker", "command", "both"])
                plan = rng.randrange(lines), rng.random() * 0.1, whom
            starts += 1
            found, _ = train(work, plan, done)
            models += filter(None, [found])
        left = [path.name for path in work.iterdir() if path.name != "model"]
        running = count_running(name)
        same = all(model == expected for model in models)
        print(f"{dict(done)}\n{starts} starts, {len(models)} ends, always the same model: {same}")
        print(f"still running: {running}; files left: {left}")
        if left or running or not same:
            raise typer.Exit(1)


def train(work: Path, plan: tuple[int, float, str] | None, done: Counter[str]) -> tuple[str, int]:
    """Run the training in a folder.

    plan: after which line of it, after how many seconds more, and who is killed; None for nobody.
    RETURNS: the model's digest, none if it was killed; lines that it has printed before.
    """
    work.mkdir(exist_ok=True)
    path = os.pathsep.join(filter(None, [str(Path(__file__).parent / "helpers"), *sys.path]))
    running = subprocess.Popen(
        [sys.executable, "-c", TRAINING, work],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
    )
    count = 0
    with running:
        assert running.stdout is not None
        for line in running.stdout:
            if line.startswith("model"):
                return line.split()[1], count
            if plan is not None and count == plan[0]:
                _, seconds, whom = plan
                time.sleep(seconds)
                workers = children(running.pid)
                if workers or whom == "command":
                    # also if it has just ended by itself
                    done[f"{whom} at {line.strip()}"] += 1
                    if whom != "command":
                        kill(random.choice(workers))
                    if whom != "worker":
                        kill(running.pid)
            count += 1
    return "", count


def children(pid: int) -> list[int]:
    """What a process has begun."""
    found = list[int]()
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (thread / "children").read_text().split())
    return found


def kill(pid: int) -> None:
    """Without a word."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def count_running(name: str) -> int:
    """Processes that work in a folder, once those that see that they are alone have ended."""
    for _ in range(SECONDS):
        running = 0
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                running += name.encode() in path.read_bytes()
        if not running:
            break
        time.sleep(1)
    return running


if __name__ == "__main__":
    typer.run(main)
