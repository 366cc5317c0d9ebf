"""Differences between two systems: row by row with a p-value, and over all tasks with an interval.

A row is a task and a number of training texts. Its F1 is the mean over its draws. Its p is that of
the approximate randomization test over held-out texts (`spacy_hocrf.cli.randomization`), where a
text has the counts of all draws together.
"""

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import numpy as np
from scipy.special import stdtrit
from tasks import ALL, TASKS

from spacy_hocrf.api import randomization_test

sys.path.append(str(Path(__file__).parents[2]))
from common.report import Result

LEVEL = 0.95
"""Of intervals."""

Draws = dict[int, Result]
Row = tuple[str, str]
"""Task and size."""


@dataclass(frozen=True)
class Difference:
    """What one system has more than another in a row."""

    row: Row
    pairs: list[tuple[Result, Result]]  # the results of both, a pair for each draw

    @property
    def points(self) -> float:
        """Of F1, the mean over draws."""
        return mean(100 * (one["f"] - other["f"]) for one, other in self.pairs)

    @property
    def p(self) -> float:
        """How probable so large a difference is if both systems are equally good."""
        # int [2, D, 3]: right, found, wanted
        counts = np.array([[result["counts"] for result in pair] for pair in self.pairs])
        right, found, wanted = np.moveaxis(counts.sum(axis=0), 2, 0)[..., None]
        return float(randomization_test(right, found, wanted[0]).p[0])


@dataclass(frozen=True)
class Summary:
    """Differences of several rows: their mean with an interval, and the worst and the best of the tasks."""

    rows: int
    mean: float
    low: float
    high: float
    ahead: int  # rows
    worst_row: Difference
    worst_task: str
    worst_mean: float  # of the rows of that task
    best_task: str
    best_mean: float


def by_row(results: Iterable[Result], part: str) -> dict[Row, dict[str, Draws]]:
    """The results of a part by row, system and draw. The last line counts where there are several,
    such as those of earlier defaults.

    RETURNS (Dict[Row, Dict[str, Draws]]): in the order of the tasks, few texts first.
    """
    rows: dict[Row, dict[str, Draws]] = {}
    for result in results:
        if result["part"] == part:
            systems = rows.setdefault((result["task"], result["size"]), {})
            systems.setdefault(result["system"], {})[result["draw"]] = result
    tasks = list(TASKS)
    return dict(sorted(rows.items(), key=lambda item: (tasks.index(item[0][0]), order(item[0][1]))))


def order(size: str) -> float:
    """Sorts sizes."""
    return math.inf if size == ALL else int(size)


def percent(draws: Draws) -> float:
    """Mean F1 of some draws."""
    return 100 * mean(result["f"] for result in draws.values())


def differences(rows: dict[Row, dict[str, Draws]], system: str, other: str) -> list[Difference]:
    """What a system has more than another in the rows that have both, on the draws of both."""
    compared = []
    for row, systems in rows.items():
        one, two = systems.get(system, {}), systems.get(other, {})
        if both := sorted(one.keys() & two.keys()):
            compared.append(Difference(row, [(one[number], two[number]) for number in both]))
    return compared


def summarize(some: Sequence[Difference]) -> Summary:
    """The mean over rows, and its interval over tasks: rows of one task are no independent evidence
    (jackknife, one task left out at a time). There must be a row.
    """
    tasks = {difference.row[0]: None for difference in some}
    by_task = {
        task: [difference.points for difference in some if difference.row[0] == task]
        for task in tasks
    }
    ascending = sorted(by_task, key=lambda task: mean(by_task[task]))
    worst, best = ascending[0], ascending[-1]
    centre = mean(difference.points for difference in some)
    radius = jackknife(list(by_task.values()))
    return Summary(
        rows=len(some),
        mean=centre,
        low=centre - radius,
        high=centre + radius,
        ahead=sum(difference.points > 0 for difference in some),
        worst_row=min(some, key=lambda difference: difference.points),
        worst_task=worst,
        worst_mean=mean(by_task[worst]),
        best_task=best,
        best_mean=mean(by_task[best]),
    )


def jackknife(groups: Sequence[Sequence[float]]) -> float:
    """Half of the interval of the mean of all values, infinite for one group: Student's t times the
    standard error. With one value in each group, that of the mean of a sample.
    """
    if len(groups) < 2:
        return math.inf
    without = [
        mean(value for j, group in enumerate(groups) if j != i for value in group)
        for i in range(len(groups))
    ]
    n = len(groups)
    error = math.sqrt((n - 1) / n * sum((value - mean(without)) ** 2 for value in without))
    return float(stdtrit(n - 1, 0.5 + LEVEL / 2)) * error
