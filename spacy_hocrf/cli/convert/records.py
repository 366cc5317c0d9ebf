"""Annotated texts as read from a file, before Docs are made of them, and a report of losses."""

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
    "OF_UNSPACED",
    "UNSPACED",
    "CharSpan",
    "ConversionLoss",
    "ConvertSettings",
    "ConvertedText",
    "Place",
    "PlacedTokens",
    "Report",
    "SourceFile",
    "bytes_of",
    "decoded",
    "lines_in",
    "named_attribute",
    "refuse_file",
    "text_of",
    "tokens_at",
]

CharSpan = tuple[int, int, str]
"""Start, end and label."""
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
"""Letters of scripts without blanks between words, for a regular expression: Thai and Lao, Burmese, Khmer,
Japanese, Chinese.
"""
OF_UNSPACED = re.compile(f"[{UNSPACED}]")

MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"
"""Byte order mark."""
END_MARK = re.compile(rb"\x1a[\r\n]*\Z")
"""Control-Z, which some tools for DOS and Windows write at the end of a file."""


class ConvertedText(NamedTuple):
    """A text with its annotation.

    Missing annotation is unknown, never "no span": the learner sums over all possible labels.

    place (Place): where it begins.
    words (Optional[Sequence[str]]): its tokens; None for a text that is still to be tokenized.
    spaces (Optional[Sequence[bool]]): does a space follow each token? None if that is unknown.
    text (str): the text whose characters the spans count; "" if they count tokens.
    spans (Optional[Sequence[CharSpan]]): spans in characters of the text, or in tokens; None if it is not
        annotated; the reader reports why.
    tags (Optional[Sequence[str]]): original label of each token; "" if it is unknown.
    attributes (Mapping[str, Sequence[Any]]): further columns by name, a value for each token.
    unknown (Sequence[tuple[int, int]]): start and end of parts with unknown annotation, in the units of the
        spans. For tags, "" marks unknown ones.
    id (str): id of the text in the file, for `doc._.hocrf_id`; "" if it has none.
    meta (Mapping[str, Any]): other data of the text in the file, for `doc._.hocrf_meta`, as JSON values.
    scores (Mapping[CharSpan, float]): scores of spans that have one, from 0 to 1.
    groups (Mapping[str, Optional[Sequence[CharSpan]]]): spans with a fixed place, "ents" or a key of
        doc.spans, independent of `into`.
    doc (Optional[Doc]): the text with further annotation of its format (lemmas, heads), instead of `words`.
        Its spans and tags are those of this record.
    """

    place: "Place"
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
    attributes (Mapping[str, int]): further columns by attribute name; if empty, all others are named c1, c2,
        … by their numbers.
    delimiter (Optional[str]): column separator; None for a tab if the first line has one, else white space.
    comment (Optional[str]): prefix of lines that are left out, and end a text.
    scheme (str): scheme of token labels, one of `labels.SCHEMES`.
    word_prefix (str): prefix of the attribute with the token, in CRFsuite's data.
    encoding (str): encoding of files that do not declare one.
    names (Sequence[str]): names of numeric labels, in order.
    record (str): name of the XML element that is a text; "" to guess it from the structure.
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
    def changed(self) -> list[str]:
        """Names of the settings that are not the default."""
        default = ConvertSettings()
        return [name for name, value in vars(self).items() if value != getattr(default, name)]


class ConversionLoss(NamedTuple):
    """Something in the file that is not, or not unchanged, in the Docs."""

    what: str  # what is lost or changed, and why
    place: str
    times: int


@dataclass
class Report:
    """Counts of the texts read, and losses.

    bare (int): number of texts that are annotated to have no span.
    """

    texts: int = 0
    tokens: int = 0
    labels: Counter[str] = field(default_factory=Counter)
    """Number of spans, or tags, that were written, by label; 0 if all spans of a label were lost."""
    bare: int = 0
    losses: list[ConversionLoss] = field(default_factory=list)

    @property
    def lost(self) -> Counter[str]:
        """Number of losses and changes by kind."""
        times = Counter[str]()
        for loss in self.losses:
            times[loss.what] += loss.times
        return times

    def lose(self, what: str, place: str, times: int = 1) -> None:
        """Record a loss or change; none if `times` is 0."""
        if times:
            self.losses.append(ConversionLoss(what, place, int(times)))


@dataclass(frozen=True)
class SourceFile:
    """A file that is being read; without a path, texts that come from no file.

    report (Report): losses, and counts of the texts, are added to it.
    inside (str): the path in the folder that is converted; "" for a single file.
    """

    path: Path = Path()
    settings: ConvertSettings = field(default_factory=ConvertSettings)
    report: Report = field(default_factory=Report)
    inside: str = ""

    def at(self, name: str = "it") -> "Place":
        """Return a place in the file. name (str): "line 12", for messages; "it" is all of it."""
        return Place(self, name)

    def text(self) -> str:
        """Read the file by `text_of`. RAISES (ValueError): H290 or H291."""
        return text_of(self.path, self.settings.encoding)

    def lines(self) -> list[str]:
        """Read the file by `text_of`, and split it by `lines_in`. RAISES (ValueError): H290 or H291."""
        return lines_in(self.text())


class Place(NamedTuple):
    """A place in a file, at which something is lost, changed or refused."""

    source: SourceFile
    name: str

    def lose(self, what: str, times: int = 1) -> None:
        """Record a loss or change; none if `times` is 0."""
        inside = self.source.inside
        self.source.report.lose(what, f"{inside}, {self.name}" if inside else self.name, times)

    def refuse(self, found: str, expected: str) -> NoReturn:
        """Refuse what is here. RAISES (ValueError): H290, always."""
        refuse_file(self.source.path, self.name, found, expected)


def bytes_of(path: Path) -> bytes:
    """Read a file, decompressed if its name ends with .gz, without the end mark of DOS.

    RAISES (ValueError): H290 for a damaged .gz.
    """
    content = path.read_bytes()
    if path.suffix == ".gz":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            refuse_file(path, "it", str(error), "what gzip has compressed")
    return END_MARK.sub(b"", content)


def text_of(path: Path, encoding: str) -> str:
    """Read a text file, without byte order marks at its beginning.

    RAISES (ValueError): H290 for a damaged .gz, H291 for bytes that the encoding does not have.
    """
    return decoded(path, bytes_of(path), encoding).lstrip(MARK)


def decoded(path: Path, content: bytes, encoding: str) -> str:
    """Decode the content of a file. RAISES (ValueError): H291 for bytes that the encoding does not have."""
    try:
        text = content.decode(encoding)
        text.encode("utf8")
    except (UnicodeError, LookupError) as error:
        raise ValueError(CommandErrors.H291.format(path=path, found=error, name=encoding)) from None
    return text


def lines_in(text: str) -> list[str]:
    """Split a text into lines, without line endings, and without byte order marks of concatenated files."""
    return [line.lstrip(MARK) for line in re.split(r"\r\n|\r|\n", text)]


def refuse_file(path: Path, place: str, found: str, expected: str) -> NoReturn:
    """Refuse a part of a file. RAISES (ValueError): H290, always."""
    known = {"path": path, "place": place, "found": found, "expected": expected}
    raise ValueError(CommandErrors.H290.format(**known))


def named_attribute(name: str) -> str:
    """Convert a name to a valid name of an extension attribute."""
    found = re.sub(r"\W", "_", name.replace("-", "m")).strip("_")
    return f"c{found}" if not found or found[0].isdigit() else found


class PlacedTokens(NamedTuple):
    """Tokens that cover a whole text.

    words (list[str]): the tokens.
    spaces (list[bool]): does a blank follow each?
    numbers (list[int]): index of each token's place; -1 for text between two places.
    """

    words: list[str]
    spaces: list[bool]
    numbers: list[int]


def tokens_at(text: str, places: Iterable[tuple[int, int]]) -> PlacedTokens:
    """Make a token for each place, and one for other text than a single blank between two places.

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
