"""Which label patterns a model has: those seen in training, up to its order."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import combinations, pairwise

from spacy_hocrf.types import LabelPattern

__all__ = ["longer_patterns", "parts_of", "select_patterns"]


def select_patterns(
    histories: Iterable[Sequence[int]],
    n_labels: int,
    order: int | None,
    *,
    min_counts: Sequence[int] = (1,),
    more: Iterable[LabelPattern] = (),
    most: int | None = None,
) -> tuple[LabelPattern, ...]:
    """The label n-grams of the training data (Nguyen et al., JMLR 15, §2.1: the label pattern
    sparsity).

    histories (Iterable[Sequence[int]]): labels of consecutive known segments.
    n_labels (int): number of labels Y.
    order (Optional[int]): longest pattern less one; None for no limit.
    min_counts (Sequence[int]): patterns that are seen less often are left out: of order 1, 2, …, the
        last for all higher ones. So are those that begin or end with what is left out.
    more (Iterable[LabelPattern]): patterns of two or more labels that the model has anyway.
    most (Optional[int]): longer patterns are not looked for once there are more.
    RETURNS (tuple[LabelPattern, ...]): the Y single labels, then longer patterns by length and
        label.
    """
    # of each text, where the patterns of the length before begin that are frequent
    live = [(labels, [*range(len(labels))]) for labels in histories]
    found = {*more}
    length = 1
    while live and (order is None or length <= order) and (most is None or len(found) <= most):
        length += 1
        least = _least(min_counts, length)
        windows = [(labels, _windows(labels, starts, length)) for labels, starts in live]
        counts = Counter(z for _, pairs in windows for _, z in pairs)
        frequent = {z for z, count in counts.items() if count >= least}
        found |= frequent
        live = [(labels, [i for i, z in pairs if z in frequent]) for labels, pairs in windows]
        live = [(labels, starts) for labels, starts in live if len(starts) > 1]
    longer = sorted(found, key=lambda z: (len(z), z))
    return (*((y,) for y in range(n_labels)), *longer)


def longer_patterns(
    histories: Iterable[Sequence[int]],
    known: Collection[LabelPattern],
    longest: int,
    min_counts: Sequence[int] = (1,),
) -> Counter[LabelPattern]:
    """Patterns that are not known: pairs, and those that are one label longer than a known one.

    histories (Iterable[Sequence[int]]): labels of consecutive known segments.
    known (Collection[LabelPattern]): of two or more labels; what each begins and ends with is known,
        too.
    longest (int): labels of a pattern, at most.
    min_counts (Sequence[int]): as `select_patterns` takes them.
    RETURNS (Counter[LabelPattern]): each with how often it is seen.
    """
    counts: Counter[LabelPattern] = Counter()
    for labels in histories:
        for start in range(len(labels) - 1):
            first = True  # is what the pattern begins with known?
            for end in range(start + 2, min(start + longest, len(labels)) + 1):
                pattern = tuple(labels[start:end])
                if pattern in known:
                    continue
                last = len(pattern) == 2 or pattern[1:] in known
                if first or last:
                    counts[pattern] += 1
                first = False
                if not last and len(pattern) > 2:
                    break
    return Counter({z: n for z, n in counts.items() if n >= _least(min_counts, len(z))})


def parts_of(pattern: LabelPattern) -> Iterator[LabelPattern]:
    """The pattern itself, and all successions of two or more labels in it."""
    for first, last in combinations(range(len(pattern) + 1), 2):
        if last - first > 1:
            yield pattern[first:last]


def _least(min_counts: Sequence[int], length: int) -> int:
    """How often a pattern of so many labels must be seen."""
    return min_counts[min(length - 1, len(min_counts)) - 1]


def _windows(
    labels: Sequence[int], starts: Sequence[int], length: int
) -> list[tuple[int, LabelPattern]]:
    """Windows of labels, each with where it begins, whose first labels and whose last ones begin at
    `starts`, ascending.
    """
    return [(i, tuple(labels[i : i + length])) for i, j in pairwise(starts) if j == i + 1]
