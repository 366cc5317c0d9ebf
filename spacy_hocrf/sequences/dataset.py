"""Labelled sequences, collected one by one as arrays of numbers; names of attributes are stored once."""

from array import array
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import offsets_of, ranges
from spacy_hocrf.sequences.errors import SequenceErrors
from spacy_hocrf.sequences.items import Attributes, Items

__all__ = ["Dataset", "Labelled", "label_text", "sequences_at"]


class Labelled(NamedTuple):
    """Items of D sequences, and the label of each item."""

    items: Items
    label: NDArray[np.int32]  # [N]


class Dataset:
    """Labelled sequences, in the order in which they were appended.

    attributes, labels (dict[str, int]): number of each, in order of first occurrence.
    """

    def __init__(self) -> None:
        self.attributes: dict[str, int] = {}
        self.labels: dict[str, int] = {}
        self._lengths = array("q")  # [D] items of each sequence
        self._groups = array("q")  # [D] group of each sequence
        self._label = array("i")  # [N]
        self._counts = array("q")  # [N] attributes of each item
        self._attribute = array("i")  # [R]
        self._value = array("d")  # [R], or empty as long as all are 1

    def __len__(self) -> int:
        return len(self._lengths)

    def append(self, sequence: Sequence[Attributes], labels: Iterable[str], group: int = 0) -> None:
        """Add a sequence.

        group (int): number by which sequences can be held out.
        RAISES (ValueError): H272 for more or fewer labels than items, H284 for a label that is not a
            string or UTF-8 bytes; then nothing is added.
        """
        names = [label_text(label) for label in labels]
        if len(names) != len(sequence):
            raise ValueError(SequenceErrors.H272.format(items=len(sequence), labels=len(names)))
        self._lengths.append(len(names))
        self._groups.append(group)
        numbers = self.labels
        self._label.extend([numbers.setdefault(name, len(numbers)) for name in names])
        for item in sequence:
            self._append_item(item)

    def take(self, holdout: int, *, held_out: bool = False) -> Labelled:
        """Return all sequences except those of a group; or only these if `held_out`."""
        everything = self._all()
        in_group = np.array(self._groups, dtype=np.int64) == holdout
        chosen = np.flatnonzero(in_group if held_out else ~in_group)
        return everything if len(chosen) == len(self) else sequences_at(everything, chosen)

    def _append_item(self, item: Attributes) -> None:
        numbers, (names, values) = self.attributes, item
        before = len(self._attribute)
        self._attribute.extend([numbers.setdefault(name, len(numbers)) for name in names])
        self._counts.append(len(names))
        if values is not None and not self._value:
            self._value.extend([1.0] * before)
        if values is not None or self._value:
            self._value.extend(values or [1.0] * len(names))

    def _all(self) -> Labelled:
        items = Items(
            offsets=offsets_of(np.array(self._lengths, dtype=np.int64)),
            row_offsets=offsets_of(np.array(self._counts, dtype=np.int64)),
            attribute=np.array(self._attribute, dtype=np.int32),
            value=np.array(self._value, dtype=np.float64) if self._value else None,
        )
        return Labelled(items, np.array(self._label, dtype=np.int32))


def label_text(label: Any) -> str:
    """Return a label as a string. RAISES (ValueError): H284 for one that is neither a string nor UTF-8."""
    if isinstance(label, str):
        return str(label)
    try:
        return bytes.decode(label, "utf8")
    except (TypeError, UnicodeDecodeError) as error:
        raise ValueError(SequenceErrors.H284.format(found=repr(label))) from error


def sequences_at(data: Labelled, chosen: NDArray[np.int64]) -> Labelled:
    """Select sequences by number, int64 [n]; they keep that order."""
    items = data.items
    # the items of the sequences, and the attributes of these
    lengths = np.diff(items.offsets)[chosen]
    tokens = ranges(items.offsets[chosen], lengths)
    counts = np.diff(items.row_offsets)[tokens]
    rows = ranges(items.row_offsets[tokens], counts)
    value = None if items.value is None else items.value[rows]
    selected = Items(offsets_of(lengths), offsets_of(counts), items.attribute[rows], value)
    return Labelled(selected, data.label[tokens])
