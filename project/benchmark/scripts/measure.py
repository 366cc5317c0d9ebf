"""How times, speeds and memory are measured: CPU time, in turns, the best of several rounds."""

import gc
import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

ROUNDS = 5
WINDOW = 0.4  # CPU seconds of one side's turn, about

Key = TypeVar("Key")
Work = Callable[[], int]
"""What is timed; returns how many units of work it did: evaluations, tokens."""


def take_turns(
    sides: Mapping[Key, Callable[[], Work]],
    rounds: int = ROUNDS,
) -> dict[Key, float]:
    """CPU seconds for one unit of work of each side, A/B/A/B; the least of all rounds.

    sides (Mapping[Key, Callable[[], Work]]): each prepares its next turn, which is not timed, and
        returns it.
    RAISES (ValueError): if a side has no work left, such as a training that has converged.
    """
    best = dict.fromkeys(sides, math.inf)
    for _ in range(rounds):
        for name, prepare in sides.items():
            work = prepare()
            gc.collect()
            begun = time.process_time()
            units = work()
            spent = time.process_time() - begun
            if not units:
                raise ValueError(
                    f"{name} has come to its end: there are too few iterations for {rounds} rounds"
                )
            best[name] = min(best[name], spent / units)
    return best


def latencies(
    sides: Mapping[Key, Callable[[str], object]],
    texts: Sequence[str],
    percentiles: Sequence[float],
    rounds: int = ROUNDS,
) -> dict[Key, list[float]]:
    """CPU seconds that one text takes, at these percentiles of all texts; the sides take turns, and of
    each percentile the least of all rounds counts.
    """
    times: dict[Key, list[list[float]]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, process in sides.items():
            gc.collect()
            seconds = []
            for text in texts:
                begun = time.process_time()
                process(text)
                seconds.append(time.process_time() - begun)
            times[name].append(np.percentile(seconds, percentiles).tolist())
    return {name: np.min(values, axis=0).tolist() for name, values in times.items()}


def turn_length(seconds: float, most: int) -> int:
    """How many iterations of so many seconds make one turn."""
    return max(1, min(most, round(WINDOW / max(seconds, 1e-9))))


def peak_memory() -> int | None:
    """Bytes that this process had in memory at most; None where there is no /proc to ask."""
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
    return int(fields["VmHWM"].split()[0]) * 1024
