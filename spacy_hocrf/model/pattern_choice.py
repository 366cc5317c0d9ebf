"""Checks of the settings that determine the label patterns of a model: `patterns`, `min_pattern_count` and
`order`.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from spacy_hocrf.errors import Errors
from spacy_hocrf.features.dollars import with_dollars
from spacy_hocrf.model.errors import ModelErrors
from spacy_hocrf.types import MAX_ORDER

__all__ = [
    "COUNTS",
    "NamedPatterns",
    "PatternChoice",
    "check_counts",
    "checked_order",
    "checked_patterns",
]

COUNTS = "counts"
MAX_COUNT = 2**31 - 1
"""The largest number of tokens or segments in a setting."""


NamedPatterns = tuple[tuple[str, ...], ...]
"""Label patterns as names of labels, oldest first."""
PatternChoice = str | NamedPatterns
"""COUNTS, or the patterns themselves."""


def checked_patterns(patterns: Any, min_count: Any) -> dict[str, Any]:
    """Return the settings that `patterns` and `min_pattern_count` stand for.

    RAISES (ValueError): H044 for a count, H321 for invalid patterns.
    """
    is_list = isinstance(min_count, Sequence) and not isinstance(min_count, str) and min_count
    counts = min_count if is_list else [min_count]
    check_counts("min_pattern_count", min_count, counts, least=1)
    return {"patterns": _checked(patterns), "min_pattern_counts": tuple(counts)}


def checked_order(order: Any, patterns: PatternChoice) -> dict[str, Any]:
    """Return the settings that a number, "auto" or null stands for.

    patterns (PatternChoice): checked patterns; named ones determine the order.
    RAISES (ValueError): H241 for anything else, H322 for patterns of a higher order.
    """
    longest = max(patterns, key=len, default=()) if isinstance(patterns, tuple) else ()
    needed = max(0, len(longest) - 1)
    if order is None or order == "auto":
        if isinstance(patterns, tuple):
            return {"order": needed}
        return {"endless": True} if order is None else {"auto_order": True}
    if type(order) is not int or not 0 <= order <= MAX_ORDER:
        raise ValueError(ModelErrors.H241.format(found=repr(order)[:40], most=MAX_ORDER))
    if needed > order:
        text = ModelErrors.H322.format(pattern=list(longest), needed=needed, found=order)
        raise ValueError(text)
    return {"order": order}


def check_counts(name: str, setting: object, counts: Iterable[object], *, least: int) -> None:
    """Check that a setting consists of whole numbers that the kernels can hold: not `True`, "3" or 3.0.

    RAISES (ValueError): H044 for others, and those below `least`.
    """
    if not all(type(count) is int and least <= count <= MAX_COUNT for count in counts):
        found = repr(setting)
        raise ValueError(Errors.H044.format(name=name, found=found, least=least, most=MAX_COUNT))


def _checked(patterns: Any) -> PatternChoice:
    if patterns == COUNTS:
        return COUNTS
    if isinstance(patterns, Sequence) and not isinstance(patterns, str):
        named = [with_dollars(tuple(each)) if _are_names(each) else None for each in patterns]
        kept = tuple(each for each in named if each is not None)
        if len(kept) == len(named):
            return kept
    raise ValueError(ModelErrors.H321.format(found=repr(patterns)[:200]))


def _are_names(each: Any) -> bool:
    """Is it a list of two or more names?"""
    is_list = isinstance(each, Sequence) and not isinstance(each, str)
    return is_list and len(each) > 1 and all(isinstance(name, str) for name in each)
