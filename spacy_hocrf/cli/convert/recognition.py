"""Recognize files by their content: tests for each format, and descriptions of files in no known format."""

import re
from collections import Counter

import srsly

from spacy_hocrf.cli.convert.columns import DOCUMENTS
from spacy_hocrf.cli.convert.entries import of_python
from spacy_hocrf.cli.convert.labels import OUTSIDE, scheme_of
from spacy_hocrf.cli.convert.records import ConvertSettings
from spacy_hocrf.cli.docbins import has_docs

__all__ = [
    "OF_COLUMNS",
    "is_attributes",
    "is_brat",
    "is_columns",
    "is_conllu",
    "is_json",
    "is_markup",
    "kind_of",
    "looks_of",
]

LINES = 5000
"""Number of lines, or characters, that are examined."""
DAMAGED = 0.1
"""Share of control characters above which a file is no text."""
LABELLED = 0.2
"""Smallest share of lines with the label O in a corpus with columns."""
BREAK = re.compile(r"(\r\n|\r|\n)[ \t]*(\r\n|\r|\n)")
"""Separator of texts."""
OF_COLUMNS = frozenset({"word", "label", "attributes", "delimiter", "comment", "scheme"})
"""Settings of files with columns."""
LABEL, NAMED = re.compile(r"[^\W\d][\w.:/&+|@$'-]*"), 0.8
"""Pattern of labels without prefixes, and the share of labels that must match it."""
OF_BRAT = re.compile(r"T\d+\t\S+ \d+ \d+(;\d+ \d+)*(\t|$)|[REAMN]\d+\t|#\d*\t|\*\t")
OF_CONLLU = re.compile(r"\d+([-.]\d+)?(\t[^\t]+){9}")
OF_MARKUP = re.compile(r"<(\?xml\s|!DOCTYPE\s|!--|[A-Za-z_][\w.:-]*(\s|/?>))", re.IGNORECASE)

HTML = re.compile(r"(?is)\s*(<\?xml[^>]*>\s*)?(<!--.*?-->\s*)*(<!doctype html|<html)")

GZIP = b"\x1f\x8b"


def kind_of(content: bytes, text: str) -> str:
    """Describe a file that is known, but not read; "" for any other text.

    text (str): the content, decoded.
    """
    if content.startswith(GZIP):
        return "compressed by gzip, but its name does not end with .gz"
    if has_docs(content):
        return "a file of spaCy's (.spacy), which needs no converting"
    begin = text[:LINES]
    damaged = sum(sign == "\ufffd" or (sign < " " and not sign.isspace()) for sign in begin)
    if "\0" in text or damaged > DAMAGED * len(begin):
        return "no text, or one in UTF-16: see hocrf convert --encoding"
    if HTML.match(text):
        return "HTML"
    if text.startswith(DOCUMENTS[1]):
        return "CoNLL-2012: see hocrf convert --word 3 --label 10"
    lines = [line.split() for line in _lines(text)]
    if max(map(len, lines), default=0) > 1 and all("|" in part for row in lines for part in row):
        return "a text per line, with | before each label: see spacy convert --converter iob"
    return "columns of which the first counts: see hocrf convert --word and --label" * _is_numbered(
        text
    )


def looks_of(text: str) -> str:
    """Describe the lines of a text, for messages."""
    widths = [len(line.split()) for line in _lines(text)]
    least, most = min(widths, default=0), max(widths, default=0)
    if most == 1:
        delimiter = next((each for each in ";,|" if 2 * text.count(each) >= len(widths)), "")
        hint = f", perhaps with {delimiter!r} between columns: see hocrf convert --delimiter"
        return "lines of one column" + hint * bool(delimiter)
    return f"lines of {least} to {most} words, whose last ones look like no labels"


def is_json(text: str) -> bool:
    """Is it a JSON list or object, as a whole or in its first line, or a Python list of such values?"""
    begin = text.lstrip()
    parts = (re.split(r"[\r\n]", begin, maxsplit=1)[0], begin)
    for part in parts if begin[:1] in ("{", "[") else ():
        try:
            return isinstance(srsly.json_loads(part), list | dict)
        except ValueError:
            continue
    value = of_python(text)
    return isinstance(value, list) and bool(value) and isinstance(value[0], list | dict)


def is_markup(text: str) -> bool:
    """Does a text begin and end with an element, and is it not HTML?"""
    is_xml = OF_MARKUP.match(text.lstrip()) and not HTML.match(text)
    return bool(is_xml) and text.rstrip().endswith(">")


def is_brat(text: str) -> bool:
    """Is every line one of brat's annotation, and at least one a span?"""
    lines = _lines(text)
    return all(map(OF_BRAT.match, lines)) and any(line.startswith("T") for line in lines)


def is_conllu(text: str) -> bool:
    """Are all lines, except for comments, words of CoNLL-U?"""
    lines = [line for line in _lines(text) if not line.startswith("#")]
    return bool(lines) and all(map(OF_CONLLU.fullmatch, lines))


def is_attributes(text: str, settings: ConvertSettings) -> bool:
    """Does every line, except for comments, have an attribute with its token (CRFsuite)?"""
    lines = [line for line in _lines(text) if not line.startswith("#")]
    return bool(lines) and all(f"\t{settings.word_prefix}" in line for line in lines)


def is_columns(text: str, settings: ConvertSettings) -> bool:
    """Are the lines tokens with labels?

    They are if enough labels are O, or if labels have letters for the parts of spans. If not, all lines must
    have as many columns as the first one, there must be several texts with words, and the labels must be few
    and look like names.
    """
    if not OF_COLUMNS.isdisjoint(settings.changed):
        return True
    lines = [line for line in _lines(text) if not line.startswith(DOCUMENTS)]
    rows = [line.split("\t") if "\t" in line else line.split() for line in lines]
    width = len(rows[0]) if rows else 0
    at = settings.label
    labels = [row[at].strip() for row in rows if -len(row) <= at < len(row) and len(row) > 1]
    if not labels or len(labels) < len(rows) / 2:
        return False
    if _is_numbered(text):
        return False
    if labels.count("O") >= LABELLED * len(rows) or scheme_of(labels) != "io":
        return True
    if not BREAK.search(text.strip()) and not any(mark in text for mark in DOCUMENTS):
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


def _is_numbered(text: str) -> bool:
    """Are there columns, and is the first one always a number, not a token?"""
    rows = [line.split() for line in _lines(text) if not line.startswith("#")]
    widths = {*map(len, rows)}
    return (
        len(rows) > 1
        and min(widths) > 2
        and len(widths) == 1
        and all(r[0].isdecimal() for r in rows)
    )


def _lines(text: str) -> list[str]:
    """Split off the first lines, without empty ones."""
    lines = re.split(r"\r\n|\r|\n", text, maxsplit=LINES)[:LINES]
    return [line for line in lines if line.strip()]
