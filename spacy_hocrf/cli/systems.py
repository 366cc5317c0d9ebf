"""Several systems on the same documents, each against the first: scores, and p-values of the differences.

A paper compares one system with others, or a whole model with ablations of it. These are S - 1 tests, for
which Holm's correction is milder than for all pairs, and they fit into one table.

A system may have several runs, models trained with different seeds. Its counts in a document are the sums
over its runs, so that a shuffle swaps all of them at once.
"""

from collections.abc import Sequence
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.cli.auto.estimates import bootstrap
from spacy_hocrf.cli.counts import Counts
from spacy_hocrf.cli.randomization import f1, holm, randomization_test

__all__ = ["SYSTEM_NOTES", "compare_systems", "items_and_texts", "table_of_systems"]

STATISTICS = ("all", "texts")
INTERVAL = (0.025, 0.975)
SYSTEM_NOTES = """\
95 %        interval of F1 (bootstrap over documents)
texts       documents that have all annotated items and no others
difference  F1 minus that of the first row
p           probability of a difference at least this large if both are equally good
Holm        p, corrected for the number of rows
"""


def compare_systems(
    counts: Counts,
    systems: Sequence[tuple[str, Sequence[int]]],
    *,
    trials: int = 10_000,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """Compute the scores of systems, and the p-values of each one's differences from the first.

    counts (Counts): counts of all runs of all systems.
    systems (Sequence[tuple[str, Sequence[int]]]): the name of each, and the numbers of its runs.
    trials, seed (int): as in `randomization_test`.
    RETURNS (list[Dict[str, Any]]): for each system its `name`, `runs` (F1 of each run), and "all" and
        "texts", as in `compare_counts`: means over runs, from 0 to 1. "all" has `low` and `high`, the 95 %
        bootstrap interval of F1. All but the first have `difference` and the results of the test, with
        `p_holm`, corrected for the number of systems.
    """
    correct, predicted, gold = items_and_texts(counts)
    n_correct, n_predicted = correct.sum(axis=1), predicted.sum(axis=1)
    n_gold = np.broadcast_to(gold.sum(axis=0), n_correct.shape)
    precision, recall = f1(n_correct, n_predicted, n_predicted), f1(n_correct, n_gold, n_gold)
    f = f1(n_correct, n_predicted, n_gold)
    # scale the counts of all systems to the same number of runs: F1 is the same if all counts are multiplied
    n_runs = lcm(*(len(runs) for _, runs in systems))
    pooled = [
        [n_runs // len(runs) * array[list(runs)].sum(axis=0) for array in (correct, predicted)]
        for _, runs in systems
    ]
    # [D, S]
    right, shown = (np.stack([array[:, 0] for array in arrays], axis=1) for arrays in zip(*pooled))
    samples = bootstrap(right, shown, n_runs * gold[:, :1], seed)
    intervals = np.quantile(samples, INTERVAL, axis=0).T.tolist()
    results = list[dict[str, Any]]()
    for (name, runs), counted, (low, high) in zip(systems, pooled, intervals):
        p, r, mean = (array[list(runs)].mean(axis=0).tolist() for array in (precision, recall, f))
        system: dict[str, Any] = {
            "name": name,
            "runs": f[list(runs), 0].tolist(),
            "all": {"p": p[0], "r": r[0], "f": mean[0], "low": low, "high": high},
            "texts": {"f": mean[1]},
        }
        if results:
            pair = [np.stack(both) for both in zip(pooled[0], counted)]
            test = randomization_test(pair[0], pair[1], n_runs * gold, trials=trials, seed=seed)
            for k, statistic in enumerate(STATISTICS):
                system[statistic] |= {
                    "difference": mean[k] - results[0][statistic]["f"],
                    "p_value": test.p[k].item(),
                    "exact": test.exact[k].item(),
                    "shuffles": test.shuffles[k].item(),
                    "differ": test.documents[k].item(),
                }
        for statistic, number in zip(STATISTICS, n_gold[0].tolist()):
            system[statistic]["gold"] = number
        results.append(system)
    for statistic in STATISTICS:
        rows = [system[statistic] for system in results[1:]]
        for row, corrected in zip(rows, holm([row["p_value"] for row in rows]).tolist()):
            row["p_holm"] = corrected
    return results


def table_of_systems(
    results: Sequence[dict[str, Any]], title: str, trials: int
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Make the header and the rows of a table of `compare_systems`, with the standard deviation over runs if
    there are several.

    title (str): header of the column with the names.
    """
    digits = max(4, len(str(trials)) - 1)
    several = any(len(system["runs"]) > 1 for system in results)
    spreads = ["±"] * several
    header = (title, "P", "R", "F", *spreads, "95 %", "texts", "difference", "p", "Holm")
    rows = list[tuple[str, ...]]()
    for system in results:
        every, runs = system["all"], system["runs"]
        spread = f"{100 * np.std(runs, ddof=1):.2f}" if len(runs) > 1 else ""
        tested = [f"{every[key]:.{digits}f}" for key in ("p_value", "p_holm") if key in every]
        first = system["name"].split(",")[0]
        cells = (
            f"{first}, {len(runs)} runs" if spread else system["name"],
            *(f"{100 * every[key]:.2f}" for key in "prf"),
            *[spread] * several,
            f"{100 * every['low']:.2f}–{100 * every['high']:.2f}",
            f"{100 * system['texts']['f']:.2f}" if system["texts"]["gold"] else "",
            f"{100 * every['difference']:+.2f}" if tested else "",
            *(tested or ("", "")),
        )
        rows.append(cells)
    return header, rows


def items_and_texts(counts: Counts) -> tuple[NDArray[np.int64], ...]:
    """Counts of correct and predicted, int64 [runs, D, 2], and annotated, int64 [D, 2]: of items, and of
    whole texts, where each completely annotated document is one.
    """
    complete = np.ones(len(counts.gold), dtype=bool) if counts.complete is None else counts.complete
    whole = np.zeros(counts.correct.shape[:2], dtype=np.int64)
    whole[:, complete] = counts.whole()
    texts = np.broadcast_to(complete, whole.shape)
    columns = ((counts.correct, whole), (counts.predicted, texts), (counts.gold, complete))
    return tuple(np.stack([items.sum(axis=-1), ones], axis=-1) for items, ones in columns)
