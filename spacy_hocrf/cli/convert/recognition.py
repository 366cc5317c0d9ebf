"""What a file is by its content: does it look as files of a format do, and if of none, what is it?"""

import re
import zlib
from collections import Counter
from collections.abc import Sequence

import srsly

from spacy_hocrf.cli.convert.labels import OUTSIDE, scheme_of
from spacy_hocrf.cli.convert.records import ConvertSettings

__all__ = [
    "is_attributes",
    "is_brat",
    "is_columns",
    "is_conllu",
    "is_json",
    "is_markup",
    "kind_of",
    "kind_of_bytes",
    "looks_of",
]

LINES = 5000
"""Lines that are looked at."""
LABELLED = 0.2
"""Part of the lines that have O, in columns of a corpus that has such a label."""
DOCSTART, BREAK = "-DOCSTART-", re.compile(r"(\r\n|\r|\n)[ \t]*(\r\n|\r|\n)")
"""What is between texts."""
LABEL, NAMED = re.compile(r"[^\W\d][\w.:/&+|@$'-]*"), 0.8
"""What labels without prefixes look like, and the part of them that must."""
OF_BRAT = re.compile(r"T\d+\t\S+ \d+ \d+(;\d+ \d+)*(\t|$)|[REAMN]\d+\t|#\d*\t|\*\t")
OF_CONLLU = re.compile(r"\d+([-.]\d+)?(\t[^\t]+){9}")
OF_MARKUP = re.compile(r"<(\?xml\s|!DOCTYPE\s|!--|[A-Za-z_][\w.:-]*(\s|/?>))", re.IGNORECASE)

HTML = re.compile(r"(?is)\s*(<\?xml[^>]*>\s*)?(<!--.*?-->\s*)*(<!doctype html|<html)")

BYTES = (
    (b"%PDF", "a PDF"),
    (b"PK\x03\x04", "a zip archive, such as DOCX, XLSX or ODT"),
    (b"\x89PNG", "a picture (PNG)"),
    (b"\xff\xd8\xff", "a picture (JPEG)"),
    (b"GIF8", "a picture (GIF)"),
    (b"PAR1", "a table of Parquet"),
    (b"ARROW1", "a table of Arrow"),
    (b"SQLite format 3", "a data base of SQLite"),
    (b"\x89HDF", "HDF5"),
    (b"\x93NUMPY", "an array of NumPy"),
    (b"\xd0\xcf\x11\xe0", "a file of Microsoft Office"),
    (b"\x1f\x8b", "compressed by gzip, but its name does not end with .gz"),
    (b"BZh", "compressed by bzip2"),
    (b"\xfd7zXZ", "compressed by xz"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd"),
    (b"\x7fELF", "a program"),
    (b"{\\rtf", "RTF"),
)
"""How files begin that are no text."""
PICKLE = re.compile(rb"\x80[\x02-\x05]")
TAR, AT = b"ustar", 257

TEXTS = (
    (HTML.pattern, "HTML"),
    (r"\\(documentclass|usepackage|begin\{|section\{|input\{)", "LaTeX"),
    (r"@[A-Za-z]+\s*\{[^,\n]*,\s*\n", "BibTeX"),
    (r"TY  - ", "RIS"),
    (r"%0 ", "EndNote"),
    (r"\d+\|[ta]\|", "PubTator"),
    (r"(\d+\s*\n)?\d\d:\d\d:\d\d[,.]\d\d\d --> ", "subtitles (SRT)"),
    (r"WEBVTT", "subtitles (WebVTT)"),
    (r"(From \S+ .*\n|(Return-Path|Received|From|To|Subject|Date|Message-ID): )", "mail"),
    (r"(?i)<(doc|docid|sgml|tei|source_file)\b", "SGML, or XML that is damaged"),
    (r"#!", "a script"),
    (r"#FORMAT=WebAnno", "WebAnno TSV of another version; export it as WebAnno TSV v3"),
    (r"c=\"[^\"\n]*\" \d+:\d+ \d+:\d+\|\|t=", "annotation of i2b2 (.con), which has no text"),
    (r"---[ \t]*\n|%YAML", "YAML"),
    (r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|[A-Z][a-z]{2} +\d+ \d\d:\d\d:", "a log"),
    (r"\S+ \S+ \S+ \[\d\d/[A-Z][a-z]{2}/\d{4}:", "a log"),
    (r"#{1,6} [^\n]*\n|[^\n]+\n(=+|-+)[ \t]*\n|[*-] \[[^\]\n]*\]\(", "Markdown"),
)
"""What the beginning of a text looks like that is in another format."""
COMMENTS = re.compile(r"(#(?!include)|;|//|--|/\*)[^\n]*(\n\s*|$)")
CODE = (
    (r"(?i)(create table|insert into|drop table|begin transaction|set names)\b", "SQL"),
    (r"\[[^\]\n]+\][ \t]*\n", "INI or TOML"),
    (r"[\w\"'-]+:[ \t\n]", "YAML, or lines of names and values"),
    (r"[\w.-]+ ?= ?\S", "settings (names and values)"),
    (
        r"(import|from|package|using|#include|def|class|function|const|let|var|public|fn|use) [^\n]*",
        "source code",
    ),
)
"""The same of a text that may begin with comments."""


def kind_of_bytes(content: bytes) -> str:
    """Kind of a file that is not text; "" for a text."""
    for begin, name in BYTES:
        if content.startswith(begin):
            return name
    if PICKLE.match(content):
        return "a pickle of Python"
    if content[AT : AT + len(TAR)] == TAR:
        return "an archive (tar)"
    if content[:1] == b"\x78":
        try:
            if b"attrs" in zlib.decompressobj().decompress(content, 256):
                return "a file of spaCy's (.spacy), which needs no converting"
        except zlib.error:
            return ""
    return ""


def kind_of(text: str) -> str:
    """Format of a text that is in another format; "" if it is not known."""
    damaged = sum(sign == "\ufffd" or (sign < " " and not sign.isspace()) for sign in text[:LINES])
    if "\0" in text or damaged > LABELLED / 2 * min(len(text), LINES):
        return "no text, or one in UTF-16: see --encoding"
    begin = text[:LINES].lstrip()
    for pattern, name in TEXTS:
        if re.match(pattern, begin):
            return name
    while comment := COMMENTS.match(begin):
        begin = begin[comment.end() :]
    for pattern, name in CODE:
        if re.match(pattern, begin):
            return name
    rows = [line.split() for line in _lines(text) if not line.startswith("#")]
    if (
        len(set(map(len, rows))) == 1
        and len(rows[0]) > 2
        and _is_numbered([row[0] for row in rows])
    ):
        return "columns of which the first counts: see --word and --label"
    return ""


def looks_of(text: str) -> str:
    """Description of the lines of a text, for people."""
    widths = [len(line.split()) for line in _lines(text)]
    least, most = min(widths, default=0), max(widths, default=0)
    if most == 1:
        delimiter = next((each for each in ";,|" if 2 * text.count(each) >= len(widths)), "")
        hint = f", perhaps with {delimiter!r} between columns: see --delimiter"
        return "lines of one column" + hint * bool(delimiter)
    return f"lines of {least} to {most} words, whose last ones look like no labels"


def is_json(text: str) -> bool:
    """Does it begin with a JSON list or object, in a line or as a whole?"""
    begin = text.lstrip()
    if begin[:1] not in ("{", "["):
        return False
    for part in (re.split(r"[\r\n]", begin, maxsplit=1)[0], begin):
        try:
            return isinstance(srsly.json_loads(part), list | dict)
        except ValueError:
            continue
    return False


def is_markup(text: str) -> bool:
    """Does it begin and end with an element, and is it no HTML?"""
    if HTML.match(text):
        return False
    return bool(OF_MARKUP.match(text.lstrip())) and text.rstrip().endswith(">")


def is_brat(text: str) -> bool:
    """Is each line one of brat's annotation, and one of them a span?"""
    lines = _lines(text)
    return all(map(OF_BRAT.match, lines)) and any(line.startswith("T") for line in lines)


def is_conllu(text: str) -> bool:
    """Are the lines but comments words of CoNLL-U?"""
    lines = [line for line in _lines(text) if not line.startswith("#")]
    return bool(lines) and all(map(OF_CONLLU.fullmatch, lines))


def is_attributes(text: str, settings: ConvertSettings) -> bool:
    """Has each line an attribute with its token?"""
    lines = [line for line in _lines(text) if not line.startswith("#")]
    return bool(lines) and all(f"\t{settings.word_prefix}" in line for line in lines)


def is_columns(text: str, settings: ConvertSettings) -> bool:
    """Are the lines tokens with labels?

    They are if enough labels are O, or if labels say which part of a span a token is. If not, all lines
    must have as many columns as the first one, there must be several texts, and labels must be few, and
    names, of words.
    """
    if settings.has_columns:
        return True
    rows = [line.split("\t") if "\t" in line else line.split() for line in _lines(text)]
    rows = [row for row in rows if not row[0].startswith(DOCSTART)]
    width = len(rows[0]) if rows else 0
    at = settings.label
    labels = [row[at] for row in rows if -len(row) <= at < len(row) and len(row) > 1]
    if not labels or len(labels) < len(rows) / 2:
        return False
    if width > 2 and _is_numbered([row[0] for row in rows]):
        return False
    if labels.count("O") >= LABELLED * len(rows) or scheme_of(labels) != "io":
        return True
    if not BREAK.search(text.strip()) and DOCSTART not in text:
        return False
    if any(len(row) != width for row in rows) or {row[1] for row in rows} <= {"=", ":", ":="}:
        return False
    words = [row[0] for row in rows]
    is_text = 4 * sum(any(map(str.isalpha, word)) for word in words) >= len(words)
    are_keys = all(word.endswith((":", "=")) for word in words)
    names = Counter(label for label in labels if label not in OUTSIDE)
    named = sum(times for label, times in names.items() if LABEL.fullmatch(label))
    n = len(names)
    few = 2 * n <= len(rows) and n * n <= 4 * len(rows)
    return is_text and not are_keys and few and named >= NAMED * names.total() > 0


def _is_numbered(words: Sequence[str]) -> bool:
    """Is the first column a number in each line, so that it is no token?"""
    return len(words) > 1 and all(word.isdecimal() for word in words)


def _lines(text: str) -> list[str]:
    """The first lines that are not empty."""
    lines = re.split(r"\r\n|\r|\n", text, maxsplit=LINES)[:LINES]
    return [line for line in lines if line.strip()]
