"""Read the Docs that a command is given in a file, and the corpora of a config."""

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import registry, resolve_dot_names
from thinc.api import fix_random_seed

from spacy_hocrf.cli.docbins import doc_files, docs_of_file, examples_of
from spacy_hocrf.cli.errors import CommandErrors

__all__ = ["read_corpus", "read_docs", "train_and_dev"]

DEV = 5
"""One text in five is for development."""


def read_corpus(nlp: Language, part: str = "train") -> list[Example]:
    """Read the training corpus, in the same order at every call; no other corpus is read.

    part (str): "dev" for the development corpus.
    RAISES (ValueError): H257 for a damaged file at its path, H381 if it is empty because its path has
        files, but none of spaCy's.
    """
    config = nlp.config.interpolate()
    fix_random_seed(config["training"]["seed"] or 0)
    place = config["training"][f"{part}_corpus"]
    section, _, name = place.partition(".")
    block = config[section].get(name, {})
    if block:
        reader = registry.resolve({"corpus": block})["corpus"]
    else:  # one function makes all corpora
        [reader] = resolve_dot_names(config, [place])
    path = block.get("path")

    def files() -> list[Path]:
        return doc_files(path) if isinstance(path, str) and Path(path).exists() else []

    examples = examples_of(reader, nlp, files)
    if not examples and isinstance(path, str):
        doc_files(path)
    return examples


def read_docs(path: str | Path, *, least: int = 0) -> list[Doc]:
    """Read the documents of a file, or of all files in a folder.

    least (int): minimum number of documents.
    RAISES (ValueError): H257 or H381 for a file without Docs, H158 for fewer documents.
    """
    docs = [doc for file in doc_files(path) for doc in docs_of_file(file)]
    if len(docs) < least:
        raise ValueError(CommandErrors.H158.format(path=path))
    return docs


def train_and_dev(texts: Sequence[str]) -> tuple[list[int], list[int]]:
    """Split texts into training and development (a fifth): the indices of both. A hash of the text decides,
    so equal texts are in the same part, and a text stays in its part when others are added.

    texts (Sequence[str]): at least one. With several, neither part is empty; a single text is in both.
    """
    digests = (blake2b(text.encode("utf8", "replace"), digest_size=8).digest() for text in texts)
    is_dev = [int.from_bytes(digest, "big") % DEV == 0 for digest in digests]
    is_dev = is_dev if not all(is_dev) else [False] * len(texts)
    if not any(is_dev):  # spaCy needs a development corpus
        is_dev[-1] = len(texts) > 1
    train = [i for i, dev in enumerate(is_dev) if not dev]
    return train, [i for i, dev in enumerate(is_dev) if dev] or train
