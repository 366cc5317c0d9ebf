"""Validation of the header of a saved model: types, ranges and sizes, checked on loading before anything is
built.

A checksum protects against accidents, not against people: the header may contain anything. Each part of it is
declared as a `msgspec.Struct` in the file that writes it, and `checked` validates it; LIMITS bounds the cost
of a model; the relations between arrays are checked in `features/saved.py`.
"""

import json
from typing import Annotated, Any, NamedTuple, TypeVar

from msgspec import Meta, ValidationError, convert

from spacy_hocrf.errors import Errors

__all__ = [
    "LIMITS",
    "Amount",
    "Limit",
    "Whole",
    "check_json",
    "check_size",
    "checked",
    "exact_json",
]


class Limit(NamedTuple):
    """An upper bound, and the reason for it."""

    most: int
    reason: str


LIMITS = {
    "bytes of the header": Limit(2**26, "JSON takes many times its bytes in memory"),
    "values in the header": Limit(2**20, "each is an object"),
    "strings in the header": Limit(2**16, "each is an object of 50 bytes and more"),
    "lists and objects in the header": Limit(2**13, "each takes up to 250 bytes"),
    "arrays": Limit(2**10, "a model has ten, and a few for each further section"),
    "labels": Limit(2**14, "each is a column of the scores"),
    "forbidden successions": Limit(2**20, "each is an arc of the automaton"),
    "label patterns": Limit(2**20, "each is a state or an arc of the automaton, an object of 1 kB"),
    "labels in all label patterns": Limit(2**24, "the automaton holds each several times"),
    "observations": Limit(2**31 - 1, "they are numbered in 32 bits"),
    "features": Limit(2**31 - 1, "they are numbered in 32 bits"),
}
"""Size limits that are checked before anything is built. Real models stay far below: the largest model that
we have trained has 10⁷ features, 10⁵ label patterns and 10² labels.
"""

Whole = Annotated[int, Meta(ge=0, le=2**31 - 1)]
"""A non-negative 32-bit integer; 1.0 and true are invalid."""
Amount = Annotated[int, Meta(ge=0, le=2**53)]
"""A count, of documents for instance, that a float64 represents exactly."""
Shape = TypeVar("Shape")


def checked(shape: type[Shape], value: Any, name: str = "") -> Shape:
    """Validate a part of the header as its declared type.

    name (str): path of the part in the header.
    RAISES (ValueError): H134 with the path of the invalid value.
    """
    try:
        return convert(value, shape)
    except ValidationError as error:
        reason, _, place = str(error).partition(" - at `$")
        name = (name + place.removesuffix("`")).lstrip(".") or "the header"
        raise ValueError(Errors.H134.format(name=name, reason=reason)) from error


def check_size(name: str, found: int) -> None:
    """Check a size against its limit. RAISES (ValueError): H136 if it is exceeded."""
    limit = LIMITS[name]
    if found > limit.most:
        text = Errors.H136.format(name=name, found=found, most=limit.most, reason=limit.reason)
        raise ValueError(text)


def exact_json(value: Any) -> str:
    """Return a value as JSON whose numbers are read back to the last bit (srsly rounds them).

    RAISES (ValueError): for an infinite number, or NaN.
    """
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def check_json(text: bytes) -> None:
    """Check what JSON would allocate before parsing it: small values take many times their size in memory.

    RAISES (ValueError): H136.
    """
    check_size("bytes of the header", len(text))
    check_size("values in the header", text.count(b",") + text.count(b":"))
    check_size("strings in the header", text.count(b'"') // 2)
    check_size("lists and objects in the header", text.count(b"[") + text.count(b"{"))
