"""Files of JSON: what an entry looks like says which tool or library has written it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from spacy_hocrf.cli.convert.entries import Entries, entries_of, first_key
from spacy_hocrf.cli.convert.libraries import (
    read_doc,
    read_extractions,
    read_pairs,
    read_paragraphs,
)
from spacy_hocrf.cli.convert.lines import read_texts
from spacy_hocrf.cli.convert.listed import TAGS, WORDS, read_gliner, read_tags
from spacy_hocrf.cli.convert.records import Record, Report, Settings

__all__ = ["read_entries"]

Shape = Callable[[Path, Entries, Settings, Report], Iterator[Record]]
"""Reads entries that look alike. Raises H290 for what does not look so in every part."""


def read_entries(path: Path, settings: Settings, report: Report) -> Iterator[Record]:
    """The texts of a file of JSON: entries that look alike and follow each other are read together.

    RAISES (ValueError): H290 for what is no JSON, or looks like nothing that is read; H291 for what is not
        in UTF-8.
    """
    entries = _unwrapped(entries_of(path, report), report)
    for read, run in groupby(entries, key=lambda each: _shape_of(each[1]) or read_texts):
        yield from read(path, list(run), settings, report)


def _shape_of(entry: Any) -> Shape | None:
    """What reads such an entry; None for a text with spans, or anything else."""
    if isinstance(entry, list):
        is_pair = len(entry) == 2 and isinstance(entry[0], str) and isinstance(entry[1], Mapping)
        return read_pairs if is_pair else None
    if not isinstance(entry, Mapping):
        return None
    if isinstance(entry.get("paragraphs"), list) and "text" not in entry:
        return read_paragraphs
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


def _unwrapped(entries: Iterable[tuple[str, Any]], report: Report) -> Entries:
    """The entries of a file, without what is around them: an object that has their list, or an entry that
    is a list itself.
    """
    entries = list(entries)
    values = [entry for _, entry in entries]
    if _shape_of(values) is not None:
        return [("entry 1", values)]
    if len(values) != 1 or not isinstance(values[0], Mapping):
        return entries
    (found,) = values
    inside = None
    if "classes" in found and isinstance(found.get("annotations"), list):
        inside = found["annotations"]  # pairs of a text and its entities
    if isinstance(found.get("features"), list) and isinstance(found.get("rows"), list):
        inside = [_viewed(row, found["features"]) for row in found["rows"]]
    if inside is None:
        return entries
    report.lose("entries that are null: left out", "it", sum(each is None for each in inside))
    return [(f"entry {i}", e) for i, e in enumerate(inside, start=1) if e is not None]


def _viewed(row: Any, features: Sequence[Any]) -> Any:
    """A row as Hugging Face's viewer gives it, with the names of labels instead of their numbers."""
    found = row.get("row") if isinstance(row, Mapping) else None
    if not isinstance(found, Mapping):
        return row
    named = dict(found)
    for each in features:
        kind = each.get("type") if isinstance(each, Mapping) else None
        inner = kind.get("feature") if isinstance(kind, Mapping) else None
        names = inner.get("names") if isinstance(inner, Mapping) else None
        values = found.get(str(each.get("name"))) if names else None
        if isinstance(names, list) and isinstance(values, list):
            known = dict(enumerate(names))
            named[each["name"]] = [known.get(v, v) if type(v) is int else v for v in values]
    return named


def _is_placed(token: Any) -> bool:
    """Is it a token as Doc.to_json writes it?"""
    return (
        isinstance(token, Mapping)
        and "text" not in token
        and type(token.get("start")) is int
        and type(token.get("end")) is int
    )
