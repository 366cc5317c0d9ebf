"""Docs of a file of spaCy's, and which file it is that is damaged."""

import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.vocab import Vocab

from spacy_hocrf.cli.errors import CommandErrors

__all__ = ["bin_of", "docs_of", "examples_of"]

DAMAGED = (ValueError, LookupError, TypeError, AttributeError, zlib.error)
"""What spaCy raises for a file that is damaged, or of another kind."""


def bin_of(path: Path) -> DocBin:
    """What a file has, no document made yet. RAISES (ValueError): H070 for a file that is none."""
    try:
        return DocBin().from_disk(path)
    except DAMAGED as error:
        raise ValueError(CommandErrors.H070.format(path=path, reason=error)) from error


def docs_of(path: Path) -> Iterator[Doc]:
    """Documents of a file. RAISES (ValueError): H070 for a file that is none."""
    found = bin_of(path)
    try:
        yield from found.get_docs(Vocab())
    except DAMAGED as error:
        raise ValueError(CommandErrors.H070.format(path=path, reason=error)) from error


def examples_of(
    reader: Callable[[Language], Iterable[Example]],
    nlp: Language,
    files: Callable[[], Iterable[Path]],
) -> list[Example]:
    """All Examples of a corpus.

    files (Callable[[], Iterable[Path]]): those that it is read from; asked for where reading goes wrong, so
        that the one that is damaged is named.
    RAISES (ValueError): H070
    """
    try:
        return list(reader(nlp))
    except DAMAGED:
        for file in files():
            for _ in docs_of(file):
                pass
        raise
