"""Bytes of Python objects, with all that they refer to."""

import gc
import sys
from collections.abc import Iterable
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.strings import StringStore
from spacy.vocab import Vocab

from spacy_hocrf.features.table import ObservationTable

__all__ = ["size_of"]

COMMON = (
    type,
    ModuleType,
    FunctionType,
    BuiltinFunctionType,
    MethodType,
    Language,
    StringStore,
    Vocab,
)
"""What a pipeline has in any case."""
SLOTS = 4
"""Bytes of a slot of a hash table of observations; there are two to four for each."""


def size_of(value: Any, known: Iterable[Any] = ()) -> int:
    """Bytes of a value.

    known (Iterable[Any]): what is not counted, with all that only these refer to.
    """
    seen, waiting, total = {id(each) for each in known}, [value], 0
    while waiting:
        each = waiting.pop()
        if id(each) in seen or isinstance(each, COMMON):
            continue
        seen.add(id(each))
        total += sys.getsizeof(each)
        if isinstance(each, np.ndarray):
            waiting.append(each.base)
        elif isinstance(each, ObservationTable):
            total += each.rows.nbytes + SLOTS * (2 << len(each).bit_length())
        else:
            waiting += gc.get_referents(each)
    return total
