r"""Dollar signs in a config: spaCy doubles them whenever it saves one, and `${` begins a variable.

So our settings write \x24 where text may have one: labels, separators, values and templates. What Python
gets has the dollar sign itself.
"""

from collections.abc import Mapping
from typing import Any

__all__ = ["DOLLAR", "TAKEN", "with_dollars", "without_dollars"]

DOLLAR = r"\x24"
"""What stands for a dollar sign in a config."""

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
"""Settings that take it."""

REGEX = "REGEX"
r"""Of a pattern of spaCy's `Matcher`: a regular expression reads \x24 by itself."""


def with_dollars(value: Any) -> Any:
    """A setting, or a list or mapping of them, as Python gets it."""
    if isinstance(value, str):
        return value.replace(DOLLAR, "$")
    if isinstance(value, Mapping):
        return {key: each if key == REGEX else with_dollars(each) for key, each in value.items()}
    return type(value)(map(with_dollars, value)) if isinstance(value, (list, tuple)) else value


def without_dollars(text: str) -> str:
    """A text as a config has it."""
    return text.replace("$", DOLLAR)
