"""Annotated texts as a file has them, before they are Docs, and what of them was lost on the way."""

import gzip
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from spacy.tokens import Doc

from spacy_hocrf.cli.errors import CommandErrors

__all__ = [
    "UNSPACED",
    "CharSpan",
    "ConversionLoss",
    "ConvertSettings",
    "ConvertedText",
    "PlacedTokens",
    "Report",
    "bytes_of",
    "lines_in",
    "lines_of",
    "named_attribute",
    "refuse",
    "text_of",
    "tokens_at",
]

CharSpan = tuple[int, int, str]
"""Start, end and label."""
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
"""Letters of scripts that have no blank between words, in a regular expression: Thai and Lao, Burmese, Khmer,
Japanese, Chinese.
"""

MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"
"""Byte order mark."""
END_MARK = re.compile(rb"\x1a[\r\n]*\Z")
"""Control-Z, which some tools for DOS and Windows write behind a text."""


class ConvertedText(NamedTuple):
    """One text.

    What is not said of it is unknown, never "no span": the learner sums over all that it could be.

    place (str): where it begins, for people: "line 12".
    words (Optional[Sequence[str]]): its tokens; None for a text that is still to be tokenized.
    spaces (Optional[Sequence[bool]]): does a space follow each? None if that is unknown.
    text (str): as the spans count it; "" where they count tokens.
    spans (Optional[Sequence[CharSpan]]): of the text's characters, or of tokens; None if nobody has looked
        for any, and the reader reports why.
    tags (Optional[Sequence[str]]): a label for each token, as it stands; "" where it is unknown.
    attributes (Mapping[str, Sequence[Any]]): further columns by name, a value for each token.
    unknown (Sequence[tuple[int, int]]): start and end of parts of which nothing is known, counted as the
        spans are. Tags say for themselves what is unknown.
    id (str): of the text in the file, for `doc._.hocrf_id`; "" if it has none.
    meta (Mapping[str, Any]): what else the file says about the text, for `doc._.hocrf_meta`; what JSON can
        hold.
    scores (Mapping[CharSpan, float]): of spans that have one, from 0 to 1.
    groups (Mapping[str, Optional[Sequence[CharSpan]]]): spans that have their place already, "ents" or a key
        of doc.spans, wherever other labels go.
    doc (Optional[Doc]): the text with what its format has besides (lemmas, heads), instead of `words`. Its
        spans and tags are those of this record.
    """

    place: str
    words: Sequence[str] | None = None
    spaces: Sequence[bool] | None = None
    text: str = ""
    spans: Sequence[CharSpan] | None = ()
    tags: Sequence[str] | None = None
    attributes: Mapping[str, Sequence[Any]] = {}
    unknown: Sequence[tuple[int, int]] = ()
    id: str = ""
    meta: Mapping[str, Any] = {}
    scores: Mapping[CharSpan, float] = {}
    groups: Mapping[str, Sequence[CharSpan] | None] = {}
    doc: Doc | None = None


@dataclass(frozen=True)
class ConvertSettings:
    """How files are read. Columns are counted from 0; the last is -1.

    word, label (int): columns of the token, and of its label.
    attributes (Mapping[str, int]): further columns by the name that they get; where there is none, all
        others are named c1, c2, … by their numbers.
    delimiter (Optional[str]): between columns; None for a tab if the first line has one, else white space.
    comment (Optional[str]): what lines begin with that are none of a text, and end it.
    scheme (str): of labels of tokens, one of `labels.SCHEMES`.
    word_prefix (str): what the attribute of CRFsuite's data begins with that has the token.
    encoding (str): of files that do not say their own.
    names (Sequence[str]): of labels that are numbers, in order.
    record (str): name of the XML element that is a text; "" to go by the structure.
    """

    word: int = 0
    label: int = -1
    attributes: Mapping[str, int] = field(default_factory=dict)
    delimiter: str | None = None
    comment: str | None = None
    scheme: str = "auto"
    word_prefix: str = "w[0]="
    encoding: str = "utf8"
    names: Sequence[str] = ()
    record: str = ""

    @property
    def has_columns(self) -> bool:
        """Does any setting say how columns are read?"""
        names = ("word", "label", "attributes", "delimiter", "comment", "scheme")
        default = ConvertSettings()
        return any(getattr(self, name) != getattr(default, name) for name in names)


class ConversionLoss(NamedTuple):
    """Something that is not in the Docs as it is in the file."""

    what: str  # and why
    place: str
    times: int


@dataclass
class Report:
    """Counts of what was read, and of what was not as it should be.

    bare (int): texts that are said to have no span.
    inside (str): the file of a folder that is being read, "" for a file alone.
    """

    texts: int = 0
    tokens: int = 0
    labels: Counter[str] = field(default_factory=Counter)
    """Spans, or tags, that were written, by label; 0 for one of whose spans all were lost."""
    bare: int = 0
    losses: list[ConversionLoss] = field(default_factory=list)
    inside: str = ""

    @property
    def lost(self) -> Counter[str]:
        """How often something was lost or changed, by what and why."""
        times = Counter[str]()
        for loss in self.losses:
            times[loss.what] += loss.times
        return times

    def lose(self, what: str, place: str, times: int = 1) -> None:
        """Note something that is not in the Docs as it is in the file."""
        if times:
            place = f"{self.inside}, {place}" if self.inside else place
            self.losses.append(ConversionLoss(what, place, int(times)))


def bytes_of(path: Path) -> bytes:
    """Content of a file, decompressed if its name ends with .gz, without the end mark of DOS.

    RAISES (ValueError): H290 for one that is damaged.
    """
    content = path.read_bytes()
    if path.suffix == ".gz":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            refuse(path, "it", str(error), "what gzip has compressed")
    return END_MARK.sub(b"", content)


def text_of(path: Path, encoding: str) -> str:
    """A text file, without byte order marks in front.

    RAISES (ValueError): H290 for a .gz that is damaged, H291 for bytes that the encoding does not have.
    """
    try:
        text = bytes_of(path).decode(encoding)
        text.encode("utf8")
    except (UnicodeError, LookupError) as error:
        raise ValueError(CommandErrors.H291.format(path=path, found=error, name=encoding)) from None
    return text.lstrip(MARK)


def lines_of(path: Path, encoding: str) -> list[str]:
    """The lines of a text file, as `lines_in` has them.

    RAISES (ValueError): H290 for a .gz that is damaged, H291 for bytes that the encoding does not have.
    """
    return lines_in(text_of(path, encoding))


def lines_in(text: str) -> list[str]:
    """Lines, without their ends, and without the byte order marks of files that were joined."""
    return [line.lstrip(MARK) for line in re.split(r"\r\n|\r|\n", text)]


def refuse(path: Path, place: str, found: str, expected: str) -> NoReturn:
    """RAISES (ValueError): H290, always."""
    known = {"path": path, "place": place, "found": found, "expected": expected}
    raise ValueError(CommandErrors.H290.format(**known))


def named_attribute(name: str) -> str:
    """A name that an extension attribute may have."""
    found = re.sub(r"\W", "_", name.replace("-", "m")).strip("_")
    return f"c{found}" if not found or found[0].isdigit() else found


class PlacedTokens(NamedTuple):
    """Tokens that make up a whole text.

    words (list[str]): the tokens.
    spaces (list[bool]): does a blank follow each?
    numbers (list[int]): which of the places each has; -1 for what was between two of them.
    """

    words: list[str]
    spaces: list[bool]
    numbers: list[int]


def tokens_at(text: str, places: Iterable[tuple[int, int]]) -> PlacedTokens:
    """A token for each place, and one for whatever is between two of them besides one blank.

    places (Iterable[tuple[int, int]]): start and end of each token, in order, none inside another.
    """
    tokens = PlacedTokens([], [], [])
    at = 0
    for number, (start, end) in enumerate([*places, (len(text), len(text))]):
        between = text[at:start]
        if tokens.words and between[:1] == " ":
            tokens.spaces[-1] = True
            between = between[1:]
        for word, its in ((between, -1), (text[start:end], number)):
            if word:
                tokens.words.append(word)
                tokens.spaces.append(False)
                tokens.numbers.append(its)
        at = end
    return tokens
