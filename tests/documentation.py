"""What README and the pages of the documentation say, for tests."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
FENCED = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", flags=re.MULTILINE | re.DOTALL)


def page(name):
    """The text of README.md, or of a page of docs/."""
    return (ROOT / name).read_text(encoding="utf8")


def pages():
    """README.md and all pages, by their paths."""
    paths = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf8") for path in paths}


def everything():
    """All that they say, one after the other."""
    return "\n".join(pages().values())


def section(name, heading):
    """What stands under a heading of a page, with what is below it."""
    text = page(name)
    found = re.search(rf"^(#+) {re.escape(heading)}\n", text, flags=re.MULTILINE)
    assert found, f"{name} has no heading {heading}"
    rest = text[found.end() :]
    last = re.search(rf"^#{{1,{len(found[1])}}} ", without_code(rest), flags=re.MULTILINE)
    return rest[: last.start()] if last else rest


def without_code(text):
    """The text with a blank for every character of its blocks of code."""
    return FENCED.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def blocks(text, language):
    """The blocks of code in a language; "" for none, as for what is printed."""
    return [code for _, found, code in FENCED.findall(text) if found == language]
