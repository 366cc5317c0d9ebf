r"""Escapes dollar signs in a config: spaCy doubles them whenever it saves one, and `${` begins a variable.

Therefore settings that hold text (labels, separators, values, templates) write \x24 for a dollar sign. In
Python it is the dollar sign itself.
"""

from collections.abc import Mapping
from typing import Any

__all__ = ["DOLLAR", "TAKEN", "with_dollars", "without_dollars"]

DOLLAR = r"\x24"
"""Stands for a dollar sign in a config."""

TAKEN = frozenset(
    {
        "expression",
        "forbidden",
        "labels",
        "pairs",
        "pattern",
        "patterns",
        "required",
        "separator",
        "sources",
        "states",
        "targets",
        "template",
        "value",
    }
)
"""Settings in which DOLLAR is replaced."""

REGEX = "REGEX"
r"""Key in a pattern of spaCy's `Matcher`: its regular expression understands \x24 itself."""


def with_dollars(value: Any) -> Any:
    """Replace DOLLAR by dollar signs in a setting, or a list or mapping of settings."""
    if isinstance(value, str):
        return value.replace(DOLLAR, "$")
    if isinstance(value, Mapping):
        return {key: each if key == REGEX else with_dollars(each) for key, each in value.items()}
    return type(value)(map(with_dollars, value)) if isinstance(value, (list, tuple)) else value


def without_dollars(text: str) -> str:
    """Replace dollar signs in a text, for a config."""
    return text.replace("$", DOLLAR)
