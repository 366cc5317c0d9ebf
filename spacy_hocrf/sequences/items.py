"""Items and their attributes, as users of CRF toolkits write them → arrays.

An item is a list of strings, its attributes, or a dict. What a dict means, by its values:

    {"walk": 0.5}             the attribute walk with the value 0.5; True is 1.0 and False is 0.0
    {"word": "Paris"}         the attribute word:Paris
    {"word": {"a": 2.0}}      the attribute word:a with the value 2.0, to any depth
    {"word": ["a", "b"]}      the attributes word:a and word:b
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import offsets_of
from spacy_hocrf.sequences.errors import SequenceErrors

__all__ = ["Attributes", "Items", "attributes_of", "look_up", "read_items"]

SEPARATOR = ":"


class Attributes(NamedTuple):
    """Attributes of one item."""

    names: list[str]
    values: list[float] | None  # None if all are 1


class Items(NamedTuple):
    """Known attributes of D sequences, whose N items are laid end to end."""

    offsets: NDArray[np.int64]  # [D + 1] first item of each sequence
    row_offsets: NDArray[np.int64]  # [N + 1] first row of each item
    attribute: NDArray[np.int32]  # [R]
    value: NDArray[np.float64] | None  # [R] None if all are 1


def read_items(sequence: Iterable[Any]) -> list[Attributes]:
    """The attributes of each item of a sequence. RAISES (ValueError): H270 or H271."""
    if isinstance(sequence, str | bytes | Mapping):
        raise ValueError(SequenceErrors.H270.format(found=f"of {type(sequence).__name__}"))
    return [attributes_of(item) for item in sequence]


def attributes_of(item: Any) -> Attributes:
    """The attributes of an item.

    item (Union[Mapping, Iterable[str]]): names, or names with what the module's docstring lists.
    RAISES (ValueError): H270 for anything else, H271 for a value that is nothing of that.
    """
    if isinstance(item, Mapping):
        names: list[str] = []
        values: list[float] = []
        _add_all("", item, names, values)
        return Attributes(names, values if any(value != 1.0 for value in values) else None)
    if isinstance(item, str | bytes) or not isinstance(item, Iterable):
        raise ValueError(SequenceErrors.H270.format(found=_shown(item)))
    return Attributes([name if type(name) is str else _text(name) for name in item], None)


def look_up(sequences: Sequence[Sequence[Attributes]], number: Callable[[str, int], int]) -> Items:
    """Sequences as arrays.

    number (Callable): the `get` of a dict with the number of each attribute; attributes that it
        answers with -1 are left out.
    """
    items = list(chain.from_iterable(sequences))
    flat = [number(name, -1) for item in items for name in item.names]
    attribute = np.array(flat, dtype=np.int32)
    row_offsets = offsets_of([len(item.names) for item in items])
    value = None
    if any(item.values is not None for item in items):
        value = np.ones(len(attribute))
        for item, first, last in zip(items, row_offsets[:-1].tolist(), row_offsets[1:].tolist()):
            if item.values is not None:
                value[first:last] = item.values
    known = attribute >= 0
    if not known.all():
        row_offsets = np.append(0, np.cumsum(known))[row_offsets]
        attribute, value = attribute[known], None if value is None else value[known]
    return Items(offsets_of([len(each) for each in sequences]), row_offsets, attribute, value)


def _add_all(
    prefix: str, mapping: Mapping[Any, Any], names: list[str], values: list[float]
) -> None:
    """Append the attributes that the names of a mapping and their values stand for."""
    for key, value in mapping.items():
        name = prefix + (key if type(key) is str else _text(key))
        kind = type(value)
        if (
            kind is str
        ):  # first the types that nearly all values have: asking for the others is slow
            names.append(f"{name}{SEPARATOR}{value}")
            values.append(1.0)
        elif kind is bool:
            names.append(name)
            values.append(float(value))
        elif kind is dict:
            _add_all(name + SEPARATOR, value, names, values)
        else:
            _add(name, value, names, values)


def _add(name: str, value: Any, names: list[str], values: list[float]) -> None:
    """Append the attributes that a name and its value stand for."""
    if isinstance(value, str | bytes):
        names.append(f"{name}{SEPARATOR}{_text(value)}")
        values.append(1.0)
    elif isinstance(value, float | Real | np.bool_):
        number = float(value)
        if not math.isfinite(number):
            raise ValueError(SequenceErrors.H271.format(name=name, found=value))
        names.append(name)
        values.append(number)
    elif isinstance(value, Mapping):
        _add_all(name + SEPARATOR, value, names, values)
    elif isinstance(value, Iterable):
        for each in value:
            names.append(f"{name}{SEPARATOR}{_text(each)}")
            values.append(1.0)
    else:
        raise ValueError(SequenceErrors.H271.format(name=name, found=_shown(value)))


def _text(name: Any) -> str:
    if isinstance(name, bytes):
        try:
            return name.decode("utf8")
        except UnicodeDecodeError as error:
            raise ValueError(SequenceErrors.H270.format(found=_shown(name))) from error
    if not isinstance(name, str):
        found = f"one with the attribute {_shown(name)}"
        raise ValueError(SequenceErrors.H270.format(found=found))
    return name


def _shown(value: Any) -> str:
    """The beginning of a value, with its type."""
    return f"{repr(value)[:40]} ({type(value).__name__})"
