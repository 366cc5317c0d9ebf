"""Annotated texts as a file has them, before they are Docs, and what of them was lost on the way."""

import gzip
import re
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from spacy_hocrf.cli.errors import CommandErrors

__all__ = ["CharSpan", "Record", "Report", "bytes_of", "lines_of", "named_attribute", "refuse"]

CharSpan = tuple[int, int, str]
"""Start, end and label."""


class Record(NamedTuple):
    """One text.

    place (str): where it begins, for people: "line 12".
    words (Optional[Sequence[str]]): its tokens; None for a text that is still to be tokenized.
    spaces (Optional[Sequence[bool]]): does a space follow each? None if that is unknown.
    text (str): as the spans count it; "" where they count tokens.
    spans (Sequence[CharSpan]): of the text's characters, or of tokens.
    tags (Optional[Sequence[str]]): a label for each token, as it stands.
    attributes (Mapping[str, Sequence[Any]]): further columns by name, a value for each token.
    span_ids (Sequence[str]): an id for each span, or none.
    span_attributes (Mapping[str, Sequence[Any]]): what is known of spans by name, a value for each span.
    about (Mapping[str, Any]): what is known of the text by name.
    """

    place: str
    words: Sequence[str] | None = None
    spaces: Sequence[bool] | None = None
    text: str = ""
    spans: Sequence[CharSpan] = ()
    tags: Sequence[str] | None = None
    attributes: Mapping[str, Sequence[Any]] = {}
    span_ids: Sequence[str] = ()
    span_attributes: Mapping[str, Sequence[Any]] = {}
    about: Mapping[str, Any] = {}


@dataclass
class Report:
    """What was read, and what was not as it should be."""

    texts: int = 0
    tokens: int = 0
    labels: Counter[str] = field(default_factory=Counter)
    """Spans, or tags, that were written, by label."""
    lost: Counter[str] = field(default_factory=Counter)
    """How often something was lost or changed, by what and why."""
    places: dict[str, str] = field(default_factory=dict)
    """Where that was first."""

    def lose(self, what: str, place: str, times: int = 1) -> None:
        """Note something that is not in the Docs as it is in the file."""
        if times:
            self.lost[what] += times
            self.places.setdefault(what, place)


def bytes_of(path: Path) -> bytes:
    """What is in a file; of one that ends with .gz, what was compressed.

    RAISES (ValueError): H290 for one that is damaged.
    """
    content = path.read_bytes()
    if path.suffix != ".gz":
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        refuse(path, "it", str(error), "what gzip has compressed")


def lines_of(path: Path, encoding: str) -> list[str]:
    """The lines of a text file, without their ends.

    RAISES (ValueError): H290 for a damaged .gz, H291 for bytes that the encoding does not have.
    """
    try:
        text = bytes_of(path).decode(encoding)
    except (UnicodeDecodeError, LookupError) as error:
        raise ValueError(CommandErrors.H291.format(path=path, found=error, name=encoding)) from None
    return re.split(r"\r\n|\r|\n", text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}"))


def refuse(path: Path, place: str, found: str, expected: str) -> NoReturn:
    """RAISES (ValueError): H290, always."""
    known = {"path": path, "place": place, "found": found, "expected": expected}
    raise ValueError(CommandErrors.H290.format(**known))


def named_attribute(name: str) -> str:
    """A name that an extension attribute may have."""
    found = re.sub(r"\W", "_", name.replace("-", "m")).strip("_")
    return f"c{found}" if not found or found[0].isdigit() else found
