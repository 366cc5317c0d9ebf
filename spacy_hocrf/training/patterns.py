"""Which label patterns a model has: those seen in training, up to its order."""

from collections import Counter
from collections.abc import Iterable, Sequence

from spacy_hocrf.types import LabelPattern

__all__ = ["select_patterns"]


def select_patterns(
    histories: Iterable[Sequence[int]],
    n_labels: int,
    order: int,
    *,
    min_count: int = 1,
    more: Iterable[LabelPattern] = (),
) -> tuple[LabelPattern, ...]:
    """The label n-grams of the training data (Nguyen et al., JMLR 15, §2.1: the label pattern
    sparsity).

    histories (Iterable[Sequence[int]]): labels of consecutive known segments.
    n_labels (int): number of labels Y.
    order (int): longest pattern less one.
    min_count (int): patterns of two or more labels that are seen less often are left out.
    more (Iterable[LabelPattern]): patterns of two or more labels that the model has anyway.
    RETURNS (tuple[LabelPattern, ...]): the Y single labels, then longer patterns by length and
        label.
    """
    counts: Counter[LabelPattern] = Counter()
    for labels in histories:
        for length in range(2, min(order + 1, len(labels)) + 1):
            counts.update(tuple(labels[i : i + length]) for i in range(len(labels) - length + 1))
    frequent = (z for z, count in counts.items() if count >= min_count)
    longer = sorted({*frequent, *more}, key=lambda z: (len(z), z))
    return (*((y,) for y in range(n_labels)), *longer)
