"""Read the texts to annotate, and the annotation that their file already has."""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc

from spacy_hocrf.annotation.annotation import runs
from spacy_hocrf.annotation.identity import id_of
from spacy_hocrf.annotation.spans import words_of
from spacy_hocrf.annotation.targets import Target
from spacy_hocrf.cli.convert.command import convert
from spacy_hocrf.cli.convert.docs import docs_of
from spacy_hocrf.cli.convert.records import OF_UNSPACED, ConvertedText, Report, SourceFile
from spacy_hocrf.cli.corpora import read_docs
from spacy_hocrf.cli.counts import EntsScorer, Scorer
from spacy_hocrf.cli.errors import CommandErrors
from spacy_hocrf.cli.label.readings import TokenPlaces
from spacy_hocrf.cli.label.session import TextToLabel
from spacy_hocrf.cli.pipelines import scorer_of

__all__ = ["texts_to_label"]

MAX_LENGTH = 20_000
"""Largest number of characters of a text: longer ones are not annotated as a whole."""
MAX_LETTERS = 6
"""Mean number of letters, in scripts without blanks, above which a token cannot be a single word."""
UNSPLIT = (
    "texts whose tokens are many words each, since these have no blanks between them: see --lang"
)


def texts_to_label(
    path: Path, nlp: Language, target: Target, report: Report
) -> tuple[list[Doc], list[TextToLabel]]:
    """Read texts as Docs, and in the form that a session needs.

    path (Path): a file or folder: one text per line (.txt), Docs (.spacy), or a format that `convert` reads.
    nlp (Language): its tokenizer is used if the file has no tokens.
    target (Target): where the annotation of Docs is.
    report (Report): problems are added to it.
    RAISES (ValueError): H561 if there are no texts, H257, H290, H291, H380 or H381 for files that cannot
        be read.
    """
    scorer: Scorer = EntsScorer()
    limit, nlp.max_length = nlp.max_length, sys.maxsize  # longer texts are left out below
    if path.name.lower().removesuffix(".gz").endswith(".txt") and path.is_file():
        docs = [*docs_of(_lines(SourceFile(path, report=report)), nlp, into="ents", align="strict")]
    elif path.suffix == ".spacy" or (path.is_dir() and any(path.rglob("*.spacy"))):
        docs, scorer = [doc for doc in read_docs(path) if len(doc)], scorer_of(target)
    else:
        docs = [*convert(path, nlp, report)]
    nlp.max_length, kept = limit, list[Doc]()
    for number, doc in enumerate(docs, start=1):
        if sum(map(len, words_of(doc))) <= MAX_LENGTH:
            kept.append(doc)
        else:
            report.lose(f"texts of more than {MAX_LENGTH:,} characters: left out", f"text {number}")
    report.lose(UNSPLIT, "it", sum(_is_unsplit(doc) for doc in kept))
    if not kept:
        raise ValueError(CommandErrors.H561.format(path=path))
    return kept, [_text(doc, scorer) for doc in kept]


def _lines(source: SourceFile) -> Iterator[ConvertedText]:
    for number, line in enumerate(source.lines(), start=1):
        if line.strip():
            yield ConvertedText(source.at(f"line {number}"), text=line, spans=None)


def _is_unsplit(doc: Doc) -> bool:
    """Do tokens in a script without blanks between words contain several words each, on average?"""
    letters = [len(OF_UNSPACED.findall(word)) for word in words_of(doc)]
    return sum(letters) > MAX_LETTERS * sum(map(bool, letters))


def _text(doc: Doc, scorer: Scorer) -> TextToLabel:
    words, id_ = words_of(doc), id_of(doc) or ""
    if not scorer.annotated(doc):
        return TextToLabel(words, id_)
    places = TokenPlaces(words)
    covered, spans = np.zeros(len(doc), dtype=bool), []
    for label, start, end in sorted(scorer.items(doc), key=lambda item: item[1] - item[2]):
        if not covered[start:end].any():  # the longest of overlapping spans
            covered[start:end] = True
            spans.append((*places.chars(start, end), label))
    unknown = scorer.unknown(doc)
    stretches = [] if unknown is None else [places.chars(*run) for run in runs(unknown)]
    blank = tuple((first, last) for first, last in stretches if first < last)
    return TextToLabel(words, id_, tuple(sorted(spans)), blank)
