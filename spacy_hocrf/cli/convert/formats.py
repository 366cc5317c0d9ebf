"""Table of the formats that are read, and recognition of a file's format. Rows are tried in order.

In JSON, the keys of an entry tell which tool or library has written it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from spacy_hocrf.cli.convert.brat import TEXT, read_brat
from spacy_hocrf.cli.convert.columns import read_attributes, read_columns
from spacy_hocrf.cli.convert.conllu import read_conllu
from spacy_hocrf.cli.convert.entries import Entries, entries_of, first_key
from spacy_hocrf.cli.convert.libraries import read_doc, read_extractions, read_pairs
from spacy_hocrf.cli.convert.lines import SPAN_KEYS, TEXT_KEYS, read_texts
from spacy_hocrf.cli.convert.listed import TAGS, WORDS, read_gliner, read_tags
from spacy_hocrf.cli.convert.markup import read_markup
from spacy_hocrf.cli.convert.recognition import (
    OF_COLUMNS,
    is_attributes,
    is_brat,
    is_columns,
    is_conllu,
    is_json,
    is_markup,
    kind_of,
    looks_of,
)
from spacy_hocrf.cli.convert.records import (
    ConvertedText,
    ConvertSettings,
    Place,
    Report,
    SourceFile,
    bytes_of,
    refuse_file,
)
from spacy_hocrf.cli.convert.tables import is_table, read_table
from spacy_hocrf.cli.convert.webanno import HEADER, read_webanno
from spacy_hocrf.cli.docbins import visible_files
from spacy_hocrf.cli.errors import CommandErrors

__all__ = ["FORMATS", "Format", "check_options", "files_of", "format_of", "recognized"]

Reader = Callable[[SourceFile], Iterator[ConvertedText]]
"""Reads the texts of a file. Raises H290 for what violates the format, and reports what it leaves out."""


@dataclass(frozen=True)
class Format:
    """How files of a tool are recognized and read.

    what (str): description for messages.
    options (Set[str]): names of the settings that the reader follows, apart from the encoding.
    suffixes (tuple[str, ...]): suffixes of their names, without .gz; longer ones before shorter ones.
    beside (str): suffix of a second file that the reader takes with each, or "".
    fits (Optional[Callable[[str, ConvertSettings], bool]]): is a text in this format? Rows are tried in
        order, whatever the file's name; None: only the name counts.
    """

    read: Reader
    what: str
    options: Set[str] = frozenset()
    suffixes: tuple[str, ...] = ()
    beside: str = ""
    fits: Callable[[str, ConvertSettings], bool] | None = None


Shape = Callable[[SourceFile, Entries], Iterator[ConvertedText]]
"""Reads entries of one kind. Raises H290 for an invalid entry."""


def _read_entries(source: SourceFile) -> Iterator[ConvertedText]:
    """Read the texts of a JSON file: consecutive entries of one kind are read together.

    RAISES (ValueError): H290 for invalid JSON, or entries of no known kind; H291 for bytes that the encoding
        does not have.
    """
    entries = _unwrapped(source, list(entries_of(source)))
    if _shape_of(values := [entry for _, entry in entries]) is not None:
        entries = [(source.at("entry 1"), values)]  # the list itself is an entry
    for read, run in groupby(entries, key=lambda each: _shape_of(each[1]) or read_texts):
        yield from read(source, list(run))


def _unwrapped(source: SourceFile, entries: list[tuple[Place, Any]]) -> list[tuple[Place, Any]]:
    """Unwrap the only list of annotated texts in a single object, perhaps nested in others, as in
    {"data": [{"text": "Ada", "entities": []}], "version": 1}; return other entries unchanged.
    """
    objects = [entry for _, entry in entries]
    while len(objects) == 1 and isinstance(whole := objects[0], Mapping) and not _has_text(whole):
        values = [each for each in whole.values() if isinstance(each, list | Mapping) and each]
        lists = [x for x in values if isinstance(x, list) and all(map(_is_annotated, x))]
        if len(lists) == 1:
            return [(source.at(f"entry {i}"), x) for i, x in enumerate(lists[0], start=1)]
        objects = [x for x in values if isinstance(x, Mapping) and not lists]
    return entries


def _has_text(entry: Mapping[str, Any]) -> bool:
    return any(isinstance(entry.get(key), str | Mapping) for key in TEXT_KEYS)


def _is_annotated(entry: Any) -> bool:
    """Is an entry a text with its annotation?"""
    if not isinstance(entry, Mapping):
        return _shape_of(entry) is not None
    keys = (*SPAN_KEYS, "annotations")
    has_spans = any(isinstance(entry.get(key), list | Mapping) for key in keys)
    return _shape_of(entry) is not None or (_has_text(entry) and has_spans)


def _shape_of(entry: Any) -> Shape | None:
    """Find the reader of an entry; None for a text with spans, or anything else."""
    if isinstance(entry, list):
        is_pair = len(entry) == 2 and isinstance(entry[0], str) and isinstance(entry[1], Mapping)
        return read_pairs if is_pair else None
    if not isinstance(entry, Mapping):
        return None
    if "tokenized_text" in entry:
        return read_gliner
    has_text = isinstance(entry.get("text"), str)
    words_key, tags_key = (first_key(entry, keys, list) for keys in (WORDS, TAGS))
    words = entry[words_key] if words_key else None
    tags = entry[tags_key] if tags_key else []
    is_listed = words is not None and all(isinstance(each, str) for each in words)
    has_tags = (
        bool(words) and bool(tags) and not any(isinstance(each, list | dict) for each in tags)
    )
    if is_listed and (has_tags or not has_text):
        return read_tags
    if has_text:
        if "extractions" in entry:
            return read_extractions
        if isinstance(words, list) and all(map(_is_placed, words)) and (words or "ents" in entry):
            return read_doc
    return None


def _is_placed(token: Any) -> bool:
    """Is an object a token as Doc.to_json writes it?"""
    return (
        isinstance(token, Mapping)
        and "text" not in token
        and type(token.get("start")) is int
        and type(token.get("end")) is int
    )


COLUMNS = "columns"

FORMATS: Mapping[str, Format] = {
    "webanno": Format(
        read_webanno, "WebAnno TSV 3 (INCEpTION)", fits=lambda text, _: text.startswith(HEADER)
    ),
    "brat": Format(
        read_brat,
        "brat",
        suffixes=(".ann",),
        beside=TEXT,
        fits=lambda text, _: is_brat(text),
    ),
    "json": Format(
        _read_entries,
        "JSON (Prodigy, doccano, Label Studio, tokens with tags, spaCy, GLiNER, LangExtract)",
        {"names", "scheme"},
        (".json", ".jsonl", ".ndjson"),
        fits=lambda text, _: is_json(text),
    ),
    "xml": Format(
        read_markup,
        "XML (parserator, AnyStyle, TEI)",
        {"record"},
        (".xml", ".tei"),
        fits=lambda text, _: is_markup(text),
    ),
    "conllu": Format(
        read_conllu,
        "CoNLL-U",
        {"scheme"},
        (".conllu",),
        fits=lambda text, _: is_conllu(text),
    ),
    "crfsuite": Format(
        read_attributes,
        "attributes (CRFsuite)",
        {"scheme", "word_prefix"},
        (".crfsuite",),
        fits=is_attributes,
    ),
    "table": Format(
        read_table,
        "tables with a header (CSV, TSV)",
        {"delimiter", "scheme", "names"},
        (".csv",),
        fits=lambda text, _: is_table(text),
    ),
    COLUMNS: Format(
        read_columns,
        "columns (CoNLL, CRF++, Wapiti)",
        OF_COLUMNS,
        (".conll", ".iob", ".iob2", ".bio", ".bioes", ".bilou"),
        fits=is_columns,
    ),
}


def format_of(path: Path, settings: ConvertSettings) -> str:
    """Recognize the format of a file; return its name.

    RAISES (ValueError): H380 for an unknown format, H290 for a damaged .gz, H291 for an unknown encoding.
    """
    name, found = recognized(path, settings)
    if name is None:
        known = "; ".join(row.what for row in FORMATS.values())
        raise ValueError(CommandErrors.H380.format(path=path, found=found, known=known))
    return name


def check_options(path: Path, names: Iterable[str], settings: ConvertSettings) -> None:
    """Check that some file follows each setting that is not the default.

    path (Path): the file, or the folder of the files. names (Iterable[str]): names of their formats.
    RAISES (ValueError): H581 for a setting that is for other formats.
    """
    names = dict.fromkeys(names)
    for setting in settings.changed:
        followed = [name for name, row in FORMATS.items() if setting in row.options]
        if followed and names.keys().isdisjoint(followed):
            option = "--" + setting.replace("attributes", "attribute").replace("_", "-")
            known = {"option": option, "path": path, "found": ", ".join(names)}
            raise ValueError(CommandErrors.H581.format(**known, formats=", ".join(followed)))


def files_of(folder: Path, format_: str, settings: ConvertSettings, report: Report) -> list[Path]:
    """List the files to read in a folder and its subfolders, sorted; others are reported.

    format_ (str): a name of FORMATS, or "auto" for any. If no file seems to be in that format, all are read.
    RAISES (ValueError): H290 if there are none.
    """
    files = sorted(path for path in visible_files(folder) if not _is_beside(path))
    kinds = {path: recognized(path, settings) for path in files}
    if format_ != "auto":
        named = [path for path, (name, _) in kinds.items() if name == format_] or files
        kinds = {path: (format_ if path in named else None, "another format") for path in files}
    for path, (name, found) in kinds.items():
        if name is None:
            place = path.relative_to(folder).as_posix()
            report.lose(f"files of no known format, or of another: left out ({found})", place)
    chosen = [path for path, (name, _) in kinds.items() if name is not None]
    if not chosen:
        known = "; ".join(row.what for row in FORMATS.values())
        refuse_file(folder, "it", f"{len(files)} files, none of which is of a known format", known)
    return chosen


def recognized(path: Path, settings: ConvertSettings) -> tuple[str | None, str]:
    """Recognize a file by its content, or by a suffix that only one format has; or None and a description."""
    claiming = _claiming(path)
    content = bytes_of(path)
    try:
        text = content.decode(settings.encoding, "replace").lstrip("\ufeff")
    except LookupError as error:
        known = {"path": path, "found": error, "name": settings.encoding}
        raise ValueError(CommandErrors.H291.format(**known)) from None
    if not text.strip():
        return [*claiming, COLUMNS][0], ""
    for name, row in FORMATS.items():
        if row.fits is not None and row.fits(text, settings):
            if name != COLUMNS or claiming in ([], [COLUMNS]):
                return name, ""
    kind = kind_of(content, text)
    if claiming and (claiming != [COLUMNS] or not kind):
        return claiming[0], ""
    return None, kind or looks_of(text)


def _claiming(path: Path) -> list[str]:
    """List the formats that have the suffix of a file's name."""
    name = path.name.lower().removesuffix(".gz")
    return [format_ for format_, row in FORMATS.items() if name.endswith(row.suffixes)]


def _is_beside(path: Path) -> bool:
    """Is this the second file of another one, with which it is read?"""
    return any(
        path.with_name(path.name.removesuffix(row.beside) + suffix).is_file()
        for row in FORMATS.values()
        if row.beside and path.name.endswith(row.beside)
        for suffix in row.suffixes
    )
