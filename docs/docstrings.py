"""Docstrings of the package as Markdown: a list of what "name (type): what it is" describes."""

import re
from linecache import getline
from typing import Any

import griffe

NAMES, TYPE = r"\w+(?:, \w+)*", r" \([^()]*(?:\([^()]*\)[^()]*)*\)"
ITEM = re.compile(rf"(\**{NAMES}{TYPE}|RETURNS|RAISES|YIELDS|(?=[a-z]){NAMES}): ?(?=\S)")
INDENT = " " * 4


class Lists(griffe.Extension):
    """Makes lists of arguments, attributes, results and errors."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of an object of the package."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)

    def on_class_members(self, *, cls: griffe.Class, **_: Any) -> None:
        """List the fields of a class that comments describe, and all of a named tuple, with their types."""
        named = "NamedTuple" in map(str, cls.bases)
        for name, field in cls.attributes.items():
            if field.annotation is None or field.docstring is not None or not field.lineno:
                continue
            text = comment(str(field.filepath), field.lineno)
            if (text or named) and cls.docstring is not None:
                described = f": {text}" if text else ""
                cls.docstring.value += f"\n\n- **{name} ({field.annotation})**{described}"


def comment(path: str, line: int) -> str:
    """Return what a comment says about the field on a line of a file: at its end, or on the lines above."""
    _, _, text = getline(path, line).partition("  # ")
    while not text.endswith("\n") and getline(path, line - 1).lstrip().startswith("# "):
        line -= 1
        text = f"{getline(path, line).strip()[2:]} {text}"
    return text.strip()


def as_markdown(text: str) -> str:
    """A docstring with its lists as Markdown has them."""
    lines, in_list = list[str](), False
    for line in text.splitlines():
        found = ITEM.match(line)
        if found:
            lines += [""] * (not in_list) + [f"- **{found[1]}**: {line[found.end() :]}"]
            in_list = True
        elif in_list and line.startswith(INDENT):
            lines.append(INDENT + line.strip())
        else:
            lines += [""] * (in_list and bool(line.strip())) + [line]
            in_list = in_list and not line.strip()
    return "\n".join(lines)
