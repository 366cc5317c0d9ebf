"""Docs that a command is given in a file, and the corpora of a config."""

import zlib
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.util import registry, resolve_dot_names
from spacy.vocab import Vocab
from thinc.api import fix_random_seed

from spacy_hocrf.cli.convert.formats import doc_files
from spacy_hocrf.cli.errors import CommandErrors

__all__ = ["bin_of", "docs_of", "examples_of", "read_corpus", "read_docs", "train_and_dev"]

DAMAGED = (ValueError, LookupError, TypeError, AttributeError, zlib.error)
"""What spaCy raises for a file that is damaged, or of another kind."""
DEV = 5
"""One text of so many is for development."""


def read_corpus(nlp: Language, part: str = "train") -> list[Example]:
    """The training corpus, the same at every call; no other corpus is touched.

    part (str): "dev" for the development corpus.
    RAISES (ValueError): H070 for a damaged file at its path, H381 if it is empty since its path has no file
        of spaCy's, but others.
    """
    config = nlp.config.interpolate()
    fix_random_seed(config["training"]["seed"] or 0)
    place = config["training"][f"{part}_corpus"]
    section, *rest = place.split(".")
    corpora = config[section]
    if len(rest) == 1 and rest[0] in corpora:
        reader = registry.resolve({"corpus": corpora[rest[0]]})["corpus"]
    else:  # one function makes all corpora
        [reader] = resolve_dot_names(config, [place])
    path = corpora[rest[0]].get("path") if len(rest) == 1 and rest[0] in corpora else None
    return examples_of(reader, nlp, path)


def examples_of(reader: Any, nlp: Language, path: Any) -> list[Example]:
    """All Examples of a corpus. Where reading goes wrong, the file that is damaged is named.

    reader (Callable[[Language], Iterable[Example]]): spaCy's, or another one.
    path (Any): of its files, if it has some.
    RAISES (ValueError): H070, H381
    """
    try:
        examples = list(reader(nlp))
    except DAMAGED:
        if isinstance(path, str | Path) and Path(path).exists():
            read_docs(path)
        raise
    if not examples and isinstance(path, str | Path):
        doc_files(path)
    return examples


def read_docs(path: str | Path, *, least: int = 0) -> list[Doc]:
    """Documents of a file, or of all in a folder.

    least (int): so many there must be.
    RAISES (ValueError): H070 or H381 for a file that is none, H158 for fewer documents.
    """
    docs = [doc for file in doc_files(path) for doc in docs_of(file)]
    if len(docs) < least:
        raise ValueError(CommandErrors.H158.format(path=path))
    return docs


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


def train_and_dev(texts: Sequence[str]) -> tuple[list[int], list[int]]:
    """The numbers of texts for training, and of the fifth for development. Their words decide, so equal
    texts are in one part, and a text stays in its part when others are added.

    texts (Sequence[str]): at least one. Of several each part has some; one alone is both.
    """
    digests = (blake2b(text.encode("utf8", "replace"), digest_size=8).digest() for text in texts)
    is_dev = [int.from_bytes(digest, "big") % DEV == 0 for digest in digests]
    is_dev = is_dev if not all(is_dev) else [False] * len(texts)
    if not any(is_dev):  # spaCy wants some
        is_dev[-1] = len(texts) > 1
    train = [i for i, dev in enumerate(is_dev) if not dev]
    return train, [i for i, dev in enumerate(is_dev) if dev] or train
