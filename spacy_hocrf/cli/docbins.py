"""Find files in folders; read those of Docs (.spacy), and name the damaged one."""

import gzip
import shlex
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from spacy.attrs import IS_SPACE
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.training.corpus import walk_corpus
from spacy.vocab import Vocab

from spacy_hocrf.annotation.readers import DAMAGED, docs_in
from spacy_hocrf.cli.errors import CommandErrors

__all__ = ["doc_files", "docs_of_file", "examples_of", "has_docs", "visible_files"]

SUFFIX = ".spacy"
BEGINNING = 4096
"""Number of bytes that are read to see whether a file has Docs."""


def doc_files(path: str | Path) -> list[Path]:
    """List the .spacy files at a path: the file itself, or all in the folder, sorted.

    RAISES (ValueError): H563 for Docs whose name does not end in .spacy, H577 for a pipeline, H381 for a file
        of another kind, or a folder that has only such files.
    """
    path = Path(path)
    if path.is_file() and path.suffix != SUFFIX:
        with (
            suppress(OSError, EOFError),
            (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file,
        ):
            if has_docs(file.read(BEGINNING)):
                raise ValueError(CommandErrors.H563.format(path=path))
        _name_convert(path, path.with_suffix(SUFFIX), "a file of another kind")
    if path.is_dir() and not any(path.rglob(f"*{SUFFIX}")):
        if (path / "meta.json").is_file():
            raise ValueError(CommandErrors.H577.format(path=path))
        others = sum(below.is_file() for below in path.rglob("*"))
        if others:
            output = path.with_name(f"{path.name}{SUFFIX}")
            _name_convert(path, output, f"a folder with {others} other files")
        return []
    return [Path(file) for file in walk_corpus(path, SUFFIX)]


def visible_files(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder and its subfolders without hidden ones, or those of hidden folders."""
    for path in folder.rglob("*"):
        if path.is_file() and not any(part[0] == "." for part in path.relative_to(folder).parts):
            yield path


def has_docs(content: bytes) -> bool:
    """Does the content, or beginning, of a file look like a DocBin?"""
    try:
        return content[:1] == b"\x78" and b"attrs" in zlib.decompressobj().decompress(content, 256)
    except zlib.error:
        return False


def _name_convert(path: Path, output: Path, kind: str) -> None:
    arguments = shlex.join((str(path), str(output)))
    raise ValueError(CommandErrors.H381.format(path=path, found=kind, arguments=arguments))


def docs_of_file(path: Path) -> Iterator[Doc]:
    """Read the documents of a file. RAISES (ValueError): H257 if it has none."""
    yield from docs_in(path, Vocab(lex_attr_getters={IS_SPACE: str.isspace}))


def examples_of(
    reader: Callable[[Language], Iterable[Example]],
    nlp: Language,
    files: Callable[[], Iterable[Path]],
) -> list[Example]:
    """Read all Examples of a corpus.

    files (Callable[[], Iterable[Path]]): gives the files of the corpus; called if reading fails, to name the
        damaged one.
    RAISES (ValueError): H257 for a damaged file.
    """
    try:
        return list(reader(nlp))
    except DAMAGED:
        for file in files():
            for _ in docs_of_file(file):
                pass
        raise
