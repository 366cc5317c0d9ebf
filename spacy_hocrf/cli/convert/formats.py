"""The formats that are read: one row each, and which of them a file is in."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from spacy_hocrf.cli.convert.attributes import read_attributes
from spacy_hocrf.cli.convert.chats import LINKS, LOG, read_chats
from spacy_hocrf.cli.convert.columns import read_columns
from spacy_hocrf.cli.convert.conllu import read_conllu
from spacy_hocrf.cli.convert.letters import read_letters
from spacy_hocrf.cli.convert.lines import read_json
from spacy_hocrf.cli.convert.markup import read_markup
from spacy_hocrf.cli.convert.phrases import read_phrases
from spacy_hocrf.cli.convert.records import Record, Report, Settings, refuse

__all__ = ["FORMATS", "Format", "files_of", "format_of"]

Reader = Callable[[Path, Settings, Report], Iterator[Record]]
"""The texts of a file. Raises H290 for what the format does not have, and reports what it leaves out."""


@dataclass(frozen=True)
class Format:
    """How files of a tool are known and read.

    what (str): whose they are, for people.
    suffixes (tuple[str, ...]): how their names end, without .gz; a longer one goes before a shorter one.
    into (str): where labels go by default: "ents", "tags", or a key of doc.spans.
    beside (str): how the name of a second file ends that the reader takes with each, or "".
    fits (Optional[Callable[[Path], bool]]): is a file of these suffixes in this format, by its content? Rows
        of the table are asked in their order; None is always.
    """

    read: Reader
    what: str
    suffixes: tuple[str, ...] = ()
    into: str = "ents"
    beside: str = ""
    fits: Callable[[Path], bool] | None = None


COLUMNS = "columns"
"""What files are whose names say nothing."""

FORMATS: Mapping[str, Format] = {
    COLUMNS: Format(
        read_columns,
        "columns (CoNLL, CRF++, Wapiti)",
        (".conll", ".txt", ".tsv", ".iob", ".bio", ".ner", ".data", ".train", ".dev", ".test"),
    ),
    "crfsuite": Format(read_attributes, "attributes (CRFsuite)", (".crfsuite",)),
    "json": Format(read_json, "JSON (Prodigy, doccano, Label Studio)", (".json", ".jsonl")),
    "xml": Format(read_markup, "XML (parserator, AnyStyle)", (".xml",)),
    "conllu": Format(read_conllu, "CoNLL-U", (".conllu",)),
    "phrases": Format(read_phrases, "lists of phrases beside texts (MSM2013)"),
    "letters": Format(read_letters, "images of letters", into="tags"),
    "chat": Format(read_chats, "chats with links", (LOG,), into="sc", beside=LINKS),
}


def format_of(path: Path) -> str:
    """The name of the format that a file is in, by its name, and by its content where the name leaves a
    choice.
    """
    claiming = _claiming(path)
    longest = max((len(suffix) for _, suffix in claiming), default=0)
    for name, suffix in claiming:
        fits = FORMATS[name].fits
        if len(suffix) == longest and (fits is None or fits(path)):
            return name
    return COLUMNS


def files_of(folder: Path, format_: str, report: Report) -> list[Path]:
    """The files of a folder and of those in it that are read, sorted; others are reported.

    format_ (str): a name of FORMATS, or "auto" for any. If the format has no suffixes, or no file has
        one of them, it is all files.
    RAISES (ValueError): H290 if there are none.
    """
    paths = [path for path in folder.rglob("*") if path.is_file()]
    visible = (
        path for path in paths if not any(p[0] == "." for p in path.relative_to(folder).parts)
    )
    files = sorted(path for path in visible if not _is_beside(path))
    chosen = [
        path for path in files if any(format_ in (name, "auto") for name, _ in _claiming(path))
    ]
    if not chosen and format_ != "auto":
        chosen = files
    if not chosen:
        suffixes = (each for row in FORMATS.values() for each in row.suffixes)
        refuse(folder, "it", f"{len(files)} files", f"some that end with {', '.join(suffixes)}")
    for path in sorted({*files} - {*chosen}):
        report.lose("files of no known format: left out", path.relative_to(folder).as_posix())
    return chosen


def _claiming(path: Path) -> list[tuple[str, str]]:
    """Formats that have files with such a name, each with the suffix that fits."""
    name = path.name.lower().removesuffix(".gz")
    return [
        (format_, suffix)
        for format_, row in FORMATS.items()
        for suffix in row.suffixes
        if name.endswith(suffix)
    ]


def _is_beside(path: Path) -> bool:
    """Does a reader take this file together with another one?"""
    return any(
        path.with_name(path.name.removesuffix(row.beside) + suffix).is_file()
        for row in FORMATS.values()
        if row.beside and path.name.endswith(row.beside)
        for suffix in row.suffixes
    )
