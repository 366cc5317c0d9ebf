# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Converts items and their attributes, as users of CRF toolkits write them, to arrays. Tagging spends most of
its time here.

An item is a list of strings, its attributes, or a dict. The meaning of a dict depends on its values:

    {"walk": 0.5}             the attribute walk with the value 0.5; True is 1.0 and False is 0.0
    {"word": "Paris"}         the attribute word:Paris
    {"word": {"a": 2.0}}      the attribute word:a with the value 2.0, to any depth
    {"word": ["a", "b"]}      the attributes word:a and word:b
"""

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from spacy_hocrf.sequences.errors import SequenceErrors

__all__ = ["Attributes", "Items", "attributes_of", "look_up", "read_items"]

cdef str SEPARATOR = ":"
cdef object ONE = 1.0


Attributes = tuple  # names of an item's attributes and their values, None if all are 1


class Items(NamedTuple):
    """R known attributes of D sequences, whose N items are concatenated: see items.pyi."""

    offsets: object
    row_offsets: object
    attribute: object
    value: object


def read_items(sequence):
    """Return the attributes of each item of a sequence. RAISES (ValueError): H270 or H271."""
    if isinstance(sequence, (str, bytes, Mapping)):
        raise ValueError(SequenceErrors.H270.format(found=f"part of {_shown(sequence)}"))
    return [attributes_of(item) for item in sequence]


def attributes_of(item):
    """Return the attributes of an item.

    item (Union[Mapping, Iterable[str]]): names, or names with values as in the module's docstring.
    RAISES (ValueError): H270 for another item, H271 for another value.
    """
    cdef list names = [], values
    if type(item) is list:
        for name in <list> item:
            names.append(name if type(name) is str else _text(name))
        return names, None
    if type(item) is dict or isinstance(item, Mapping):
        values = []
        _add_all(None, item, names, values)
        return names, None if _ones(values) else values
    if isinstance(item, (str, bytes)) or not isinstance(item, Iterable):
        raise ValueError(SequenceErrors.H270.format(found=_shown(item)))
    return [_text(name) for name in item], None


def look_up(sequences, dict numbers not None):
    """Convert sequences to arrays.

    sequences (Sequence[Sequence[Attributes]]): D sequences.
    numbers (dict[str, int]): number of each known attribute; others are left out.
    """
    cdef Py_ssize_t i, rows = 0, n_items = 0, known = 0
    cdef bint plain = True
    cdef list names
    for sequence in sequences:
        for names, values in sequence:
            n_items += 1
            rows += len(names)
            plain = plain and values is None
    offsets = np.zeros(len(sequences) + 1, dtype=np.int64)
    row_offsets = np.zeros(n_items + 1, dtype=np.int64)
    attribute, value = np.empty(rows, dtype=np.int32), np.ones(0 if plain else rows)
    cdef long long[::1] first_item = offsets, first_row = row_offsets
    cdef int[::1] numbered = attribute
    cdef double[::1] valued = value
    n_items = 0
    for d, sequence in enumerate(sequences):
        for names, values in sequence:
            for i in range(len(names)):
                number = numbers.get(names[i])
                if number is None:
                    continue
                numbered[known] = number
                if values is not None:
                    valued[known] = (<list> values)[i]
                known += 1
            n_items += 1
            first_row[n_items] = known
        first_item[d + 1] = n_items
    return Items(offsets, row_offsets, attribute[:known], None if plain else value[:known])


cdef _add_all(str prefix, mapping, list names, list values):
    """Append the attributes that a mapping stands for."""
    cdef str name
    if type(mapping) is not dict:
        mapping = dict(mapping)
    for key, value in (<dict> mapping).items():
        name = key if type(key) is str else _text(key)
        if prefix is not None:
            name = prefix + SEPARATOR + name
        # most common types first: checks for the others are slow
        if type(value) is str:
            names.append(name + SEPARATOR + <str> value)
            values.append(ONE)
        elif type(value) is bool:
            names.append(name)
            values.append(ONE if value else 0.0)
        elif type(value) is dict:
            _add_all(name, value, names, values)
        else:
            _add(name, value, names, values)


cdef _add(str name, value, list names, list values):
    """Append the attributes that a name and its value stand for."""
    if isinstance(value, (str, bytes)):
        names.append(name + SEPARATOR + _text(value))
        values.append(ONE)
    elif isinstance(value, float) or (hasattr(value, "__float__") and not getattr(value, "shape", ())):
        try:
            number = float(value)
        except (OverflowError, TypeError, ValueError):  # such as 10**400
            number = math.nan
        if not math.isfinite(number):
            raise ValueError(SequenceErrors.H271.format(name=name, found=_shown(value)))
        names.append(name)
        values.append(number)
    elif isinstance(value, Mapping):
        _add_all(name, value, names, values)
    elif isinstance(value, Iterable):
        for each in value:
            names.append(name + SEPARATOR + _text(each))
            values.append(ONE)
    else:
        raise ValueError(SequenceErrors.H271.format(name=name, found=_shown(value)))


cdef bint _ones(list values):
    for value in values:
        if value is not ONE and <double> value != 1.0:
            return False
    return True


cdef str _text(name):
    if isinstance(name, bytes):
        try:
            return name.decode("utf8")
        except UnicodeDecodeError as error:
            raise ValueError(SequenceErrors.H270.format(found=_shown(name))) from error
    if not isinstance(name, str):
        found = f"one with the attribute {_shown(name)}"
        raise ValueError(SequenceErrors.H270.format(found=found))
    return str.__str__(name)  # also of a subclass


cdef str _shown(value):
    """The beginning of a value, with its type."""
    return f"{repr(value)[:40]} ({type(value).__name__})"
