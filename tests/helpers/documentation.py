"""What README and the pages of the documentation say, for tests: texts, sections, and blocks of code."""

import re
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
FENCED = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", flags=re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^\[(.+)\]$", flags=re.MULTILINE)
NOT_RUN = re.compile(r"<!-- not run: (.+) -->\n\Z")
ADDED = re.compile(r"<!-- with the block above -->\n\Z")
COMMAND = re.compile(r"<!-- command: (\w+) -->\n\Z")


class Block(NamedTuple):
    """A block of code.

    page (str): path of the file, from the root.
    line (int): of its first line in the file.
    language (str): python, bash, ini, or another that is not run.
    code (str): without the indentation of a list.
    output (Optional[str]): what stands right below as what it prints.
    reason (str): why no test runs it, as the comment above it says; "" if one does.
    command (str): its name among the commands that `.ci/run` runs; "" for none.
    added (bool): is this config a part of the one above?
    """

    page: str
    line: int
    language: str
    code: str
    output: str | None
    reason: str
    command: str
    added: bool

    @property
    def in_journey(self) -> bool:
        """Does `.ci/journey` run it? All that tests run, and what only `.ci/run` does, but not the tests."""
        return not self.reason or (self.reason.startswith("`.ci/run`") and self.command != "test")

    @property
    def installs(self) -> bool:
        """Does it make the environment that the blocks after it are run in?"""
        return self.language == "bash" and self.code.startswith("python3 -m venv .venv")


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
    match = re.search(rf"^(#+) {re.escape(heading)}\n", text, flags=re.MULTILINE)
    assert match, f"{name} has no heading {heading}"
    rest = text[match.end() :]
    last = re.search(rf"^#{{1,{len(match[1])}}} ", without_code(rest), flags=re.MULTILINE)
    return rest[: last.start()] if last else rest


def without_code(text):
    """The text with a blank for every character of its blocks of code."""
    return FENCED.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def blocks(text, language):
    """The blocks of code in a language; "" for none, as for what is printed."""
    return [code for _, found, code in FENCED.findall(text) if found == language]


def code_of(name):
    """All blocks of code of a file, in their order; what is printed is none."""
    text = page(name)
    fenced = [*FENCED.finditer(text)]
    for block, below in zip(fenced, [*fenced[1:], None]):
        if not block[2]:
            continue
        printed = below and not below[2] and not text[block.end() : below.start()].strip()
        above, line = text[: block.start()], text.count("\n", 0, block.start()) + 1
        reason = NOT_RUN.search(above)
        named = COMMAND.search(above)
        command = named[1] if named else ""
        told = reason[1] if reason else "`.ci/run` runs it" if command else ""
        code, output = dedent(block[3]), below[3] if printed else None
        yield Block(name, line, block[2], code, output, told, command, bool(ADDED.search(above)))


def with_parents(code):
    """A config with the blocks that those in it are parts of."""
    known = set(BLOCK.findall(code))
    parents = {
        name.rsplit(".", depth)[0] for name in known for depth in range(1, name.count(".") + 1)
    }
    named = {name for name in parents - known if not name.endswith("*")}
    return "".join(f"[{name}]\n" for name in sorted(named)) + code
