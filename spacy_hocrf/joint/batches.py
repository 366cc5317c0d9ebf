"""Which Docs are decoded together: consecutive Docs of one group, in batches of a stream that split no
group.
"""

import warnings
from collections.abc import Hashable, Iterable, Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc

from spacy_hocrf.annotation.groups import get_group
from spacy_hocrf.warnings import Warnings

__all__ = ["group_batches", "groups_apart", "numbered"]


def numbered(
    docs: Iterable[Doc], attribute: str | None, *, most: int, name: str
) -> Iterator[tuple[int, Doc]]:
    """Yield Docs with the numbers of their groups, ascending.

    attribute (Optional[str]): consecutive Docs with an equal value of this extension attribute are a
        group; a Doc with the value None is its own group, and so are all Docs without an attribute.
    most (int): most tokens in a group; larger ones are split between Docs, with a warning.
    name (str): name of the component, for warnings. The first group that is interrupted and comes back is
        warned about.
    """
    number, size = -1, 0
    before: Hashable = None
    earlier: set[Hashable] | None = set()
    split = False
    for doc in docs:
        group = get_group(doc, attribute)
        if group is None or group != before:
            if earlier is not None and group is not None:
                if group in earlier:
                    warnings.warn(Warnings.W008.format(group=group, name=name), stacklevel=2)
                    earlier = None
                else:
                    earlier.add(group)
            number, size, split = number + 1, 0, False
        elif size + len(doc) > most:
            if not split:
                warnings.warn(Warnings.W007.format(most=most, name=name), stacklevel=2)
            number, size, split = number + 1, 0, True
        size += len(doc)
        before = group
        yield number, doc


def group_batches(
    docs: Iterable[tuple[int, Doc]], size: int
) -> Iterator[tuple[list[Doc], NDArray[np.int64]]]:
    """Yield Docs in batches that hold whole groups.

    docs (Iterable[Tuple[int, Doc]]): numbers of groups, ascending, and Docs.
    size (int): least number of Docs in a batch; the group of the last one is completed.
    RETURNS (Iterator[Tuple[List[Doc], int64 [D]]]): the Docs of each batch, and the numbers of
        their groups.
    """
    numbers: list[int] = []
    batch: list[Doc] = []
    for number, doc in docs:
        if len(batch) >= size and number != numbers[-1]:
            yield batch, np.array(numbers, dtype=np.int64)
            numbers, batch = [], []
        numbers.append(number)
        batch.append(doc)
    if batch:
        yield batch, np.array(numbers, dtype=np.int64)


def groups_apart(
    docs: list[Doc], numbers: NDArray[np.int64] | None
) -> Iterator[tuple[list[Doc], NDArray[np.int64]]]:
    """Yield the groups of a batch one by one, so that a bad one costs no other.

    numbers (Optional[int64 [D]]): group of each Doc, ascending; None if each Doc is a group of its own.
    """
    numbers = np.arange(len(docs)) if numbers is None else numbers
    bounds = np.flatnonzero(np.diff(numbers)) + 1
    for first, end in pairwise([0, *bounds.tolist(), len(docs)]):
        yield docs[first:end], numbers[first:end] - numbers[first]
