"""Evaluation of held-out sequences, in CRFsuite's words."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

__all__ = ["performance"]


def performance(
    labels: list[str],
    predicted: NDArray[np.int32],
    gold: NDArray[np.int32],
    offsets: NDArray[np.int64],
) -> Iterator[str]:
    """Yield lines with the precision, recall and F1 of each label, and accuracies.

    predicted, gold (int32 [N]): labels of the items of D sequences.
    offsets (int64 [D + 1]): first item of each sequence.
    """
    n = len(labels)
    right = predicted == gold
    match = np.bincount(gold[right], minlength=n)
    model, ref = np.bincount(predicted, minlength=n), np.bincount(gold, minlength=n)
    with np.errstate(invalid="ignore", divide="ignore"):
        precision, recall = match / model, match / ref
        f1 = 2.0 * precision * recall / (precision + recall)
    yield "Performance by label (#match, #model, #ref) (precision, recall, F1):\n"
    for y, label in enumerate(labels):
        numbers = f"({match[y]}, {model[y]}, {ref[y]})"
        scores = [np.nan_to_num(measure[y]) for measure in (precision, recall, f1)]
        text = ", ".join(f"{score:.4f}" for score in scores) if ref[y] else "******, ******, ******"
        yield f"    {label}: {numbers} ({text})\n"
    means = [np.nan_to_num(measure).sum() / max(1, n) for measure in (precision, recall, f1)]
    yield f"Macro-average precision, recall, F1: ({', '.join(f'{mean:.6f}' for mean in means)})\n"
    yield _accuracy("Item", int(right.sum()), len(right))
    all_right = np.array([right[a:b].all() for a, b in pairwise(offsets)], dtype=bool)
    yield _accuracy("Instance", int(all_right.sum()), len(all_right))


def _accuracy(name: str, right: int, total: int) -> str:
    return f"{name} accuracy: {right} / {total} ({right / max(1, total):.4f})\n"
