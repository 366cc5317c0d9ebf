"""What the header of a saved model must be: types, ranges and sizes, checked once on load, before
anything is made of it.

A checksum stops accidents, not people: the header may say anything. `HEADER` is its shape, LIMITS
what a model may cost at most; the relations of the arrays stand in `features/saved.py`.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from spacy_hocrf.errors import Errors

__all__ = [
    "HEADER",
    "LIMITS",
    "Check",
    "Limit",
    "anything",
    "check_json",
    "check_size",
    "flag",
    "inside",
    "listing",
    "mapping",
    "optional",
    "positive",
    "record",
    "text",
    "whole",
]


class Limit(NamedTuple):
    """The most that is read, and why."""

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
"""Sizes that are checked before the thing itself is made. Ours stay far below: the largest model
that we have trained has 10⁷ features, 10⁵ label patterns and 10² labels."""

Check = Callable[[Any, str], None]
"""Takes a value and its path in the header. RAISES (ValueError): H134 for what it does not allow."""


def check_size(name: str, found: int) -> None:
    """RAISES (ValueError): H136 for a size above its limit."""
    limit = LIMITS[name]
    if found > limit.most:
        text = Errors.H136.format(name=name, found=found, most=limit.most, reason=limit.reason)
        raise ValueError(text)


def check_json(text: bytes) -> None:
    """Count what JSON asks for before it is parsed: small values take many times their bytes.

    RAISES (ValueError): H136.
    """
    check_size("bytes of the header", len(text))
    check_size("values in the header", text.count(b",") + text.count(b":"))
    check_size("strings in the header", text.count(b'"') // 2)
    check_size("lists and objects in the header", text.count(b"[") + text.count(b"{"))


def whole(least: int, most: int) -> Check:
    """A whole number within bounds; 1.0 and true are none."""

    def check(value: Any, path: str) -> None:
        if type(value) is not int or not least <= value <= most:
            _refuse(value, path, f"a whole number from {least} to {most}")

    return check


def positive(value: Any, path: str) -> None:
    """A number above 0, infinity included."""
    if type(value) not in (int, float) or not value > 0:
        _refuse(value, path, "a number above 0")


def inside(least: float, most: float) -> Check:
    """A number between two others."""

    def check(value: Any, path: str) -> None:
        if type(value) not in (int, float) or not least < value < most:
            _refuse(value, path, f"a number above {least:g} and below {most:g}")

    return check


def optional(item: Check) -> Check:
    """null, or what the other check allows."""

    def check(value: Any, path: str) -> None:
        if value is not None:
            item(value, path)

    return check


def flag(value: Any, path: str) -> None:
    """True or false."""
    if type(value) is not bool:
        _refuse(value, path, "true or false")


def text(value: Any, path: str) -> None:
    """A string."""
    if type(value) is not str:
        _refuse(value, path, "a string")


def anything(value: Any, path: str) -> None:
    """Whatever JSON has: somebody else compares it."""


def listing(item: Check, size: str | None = None) -> Check:
    """A list.

    size (Optional[str]): name of its limit.
    """

    def check(value: Any, path: str) -> None:
        if type(value) is not list:
            _refuse(value, path, "a list")
        if size is not None:
            check_size(size, len(value))
        for i, entry in enumerate(value):
            item(entry, f"{path}[{i}]")

    return check


def mapping(item: Check) -> Check:
    """An object with any names, but values of one kind."""

    def check(value: Any, path: str) -> None:
        if type(value) is not dict:
            _refuse(value, path, "an object")
        for key, entry in value.items():
            item(entry, f"{path}.{key}")

    return check


def record(fields: Mapping[str, Check]) -> Check:
    """An object with exactly these names."""

    def check(value: Any, path: str) -> None:
        if type(value) is not dict or value.keys() != fields.keys():
            _refuse(value, path, f"an object with {', '.join(fields)}")
        for key, field in fields.items():
            field(value[key], f"{path}.{key}" if path else key)

    return check


def _refuse(found: Any, path: str, expected: str) -> None:
    shown = repr(found)[:80] if not isinstance(found, dict | list) else f"a {type(found).__name__}"
    raise ValueError(Errors.H134.format(name=path or "the header", found=shown, expected=expected))


UNTRAINED: Mapping[str, Check] = {
    "format": whole(0, 2**31),
    "ready": flag,
    "labels": listing(text, "labels"),
}
TRAINED: Mapping[str, Check] = {
    **UNTRAINED,
    "has_outside": flag,
    "repeats": flag,
    "limits": listing(whole(0, 2**31 - 1)),
    "settings": record(
        {
            **dict.fromkeys(("encoding", "outside", "repeats"), anything),
            "order": whole(0, 2**31 - 1),
            "templates": mapping(anything),
        }
    ),
    "learnt": record(
        {
            "longest": mapping(whole(0, 2**31 - 1)),
            "repeats": flag,
            "documents": whole(0, 2**53),
            "said": mapping(whole(0, 2**53)),
        }
    ),
    "extra": mapping(record({"setting": text, "header": mapping(anything)})),
}
HEADER = {False: record(UNTRAINED), True: record(TRAINED)}
"""The header's shape, by whether the model has been trained."""
