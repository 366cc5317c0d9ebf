"""The texts of a file, a chunk of them at a time, as they travel to who annotates them.

Chunks are lines, columns of Arrow or a `DocBin`, never Docs. What they say is read where they arrive.
"""

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from spacy_hocrf.annotation.readers import bin_in
from spacy_hocrf.cli.docbins import docs_of
from spacy_hocrf.cli.errors import CommandErrors
from spacy_hocrf.features.tokens import is_unicode

__all__ = [
    "SOURCES",
    "Chunk",
    "DocSource",
    "InputText",
    "JSONLinesSource",
    "Lines",
    "ParquetSource",
    "Rejected",
    "Source",
    "chunks_of",
    "files_of",
    "parquet_files",
]

BOM = "\xef\xbb\xbf"
"""In latin1, which has a letter for each byte."""


class InputText(NamedTuple):
    """A text to annotate."""

    number: int  # from 1 on, over all files
    text: str | Doc
    row: Mapping[str, Any]  # what else is known of it, to be handed through


class Rejected(NamedTuple):
    """A record that holds no text to annotate."""

    number: int  # from 1 on, over all files
    reason: str
    found: str  # as it stands, or its beginning


class Chunk(NamedTuple):
    """Neighbouring texts of one file."""

    number: int  # from 0 on, over all files
    first: int  # number of its first text
    size: int  # texts
    content: Any  # for `Source.records`


class Source(Protocol):
    """A format of files with texts."""

    def count(self, path: Path) -> int:
        """How many texts a file has."""
        ...

    def contents(self, path: Path, size: int) -> Iterator[tuple[int, Any]]:
        """So many texts at a time, each time with their number, as something that can be pickled."""
        ...

    def records(self, chunk: Chunk, vocab: Vocab, text: str) -> Iterator[InputText | Rejected]:
        """The texts of a chunk.

        text (str): name of the field, or column, with the text.
        """
        ...

    def schema(self, chunk: Chunk) -> Any:
        """Schema of the columns that are handed through (`pyarrow.Schema`), if the format has one."""
        ...


class Lines:
    """Every line is a text."""

    def count(self, path: Path) -> int:
        """How many lines there are."""
        with path.open(encoding="latin1") as file:
            return sum(1 for _ in file)

    def contents(self, path: Path, size: int) -> Iterator[tuple[int, list[bytes]]]:
        """Lines, each with a "\\n" for whatever ends it."""
        with path.open(encoding="latin1") as file:
            file.seek(len(BOM) if file.read(len(BOM)) == BOM else 0)
            while lines := [line.encode("latin1") for line in islice(file, size)]:
                yield len(lines), lines

    def records(self, chunk: Chunk, vocab: Vocab, text: str) -> Iterator[InputText | Rejected]:
        """The lines without their ends; those that are not UTF-8 are rejected."""
        for number, line in enumerate(chunk.content, start=chunk.first):
            try:
                if b"\0" in line:
                    raise ValueError("found a zero byte, as in UTF-16: save the file in UTF-8")
                yield self.record(number, line.rstrip(b"\n").decode("utf8"), text)
            except ValueError as error:
                yield Rejected(number, str(error), line.decode("utf8", "replace"))

    def record(self, number: int, line: str, text: str) -> InputText:
        """Record in a line. RAISES (ValueError): if there is nothing in it that could be
        annotated.
        """
        return InputText(number, line, {text: line})

    def schema(self, chunk: Chunk) -> Any:
        """None: lines have no types."""


class JSONLinesSource(Lines):
    """Every line is a JSON object, of which one field is a text."""

    def record(self, number: int, line: str, text: str) -> InputText:
        """Record in a line of JSON."""
        row = _parsed(line) if line.strip() else None
        if not isinstance(row, dict):
            found = "an empty line" if row is None else f"a {type(row).__name__}"
            raise ValueError(f"found {found}, expected a JSON object")
        return InputText(number, _text_of(row, text), row)


class ParquetSource:
    """Tables of Parquet, of which one column has texts (`pip install pyarrow`)."""

    def count(self, path: Path) -> int:
        """How many rows there are."""
        return int(parquet_files().ParquetFile(path).metadata.num_rows)

    def contents(self, path: Path, size: int) -> Iterator[tuple[int, Any]]:
        """Record batches of Arrow."""
        # a batch ends with its row group, whatever size is asked for
        for batch in parquet_files().ParquetFile(path).iter_batches(batch_size=size):
            yield batch.num_rows, batch

    def records(self, chunk: Chunk, vocab: Vocab, text: str) -> Iterator[InputText | Rejected]:
        """The rows; those without a text are rejected."""
        for number, row in enumerate(chunk.content.to_pylist(), start=chunk.first):
            try:
                yield InputText(number, _text_of(row, text), row)
            except ValueError as error:
                yield Rejected(number, str(error), str(row))

    def schema(self, chunk: Chunk) -> Any:
        """That of the file."""
        return chunk.content.schema


class DocSource:
    """A file of spaCy's, whose tokens stay as they are."""

    def count(self, path: Path) -> int:
        """How many Docs there are."""
        return len(bin_in(path))

    def contents(self, path: Path, size: int) -> Iterator[tuple[int, bytes]]:
        """Files of spaCy's with some of the Docs."""
        docs = docs_of(path)
        while some := list(islice(docs, size)):
            yield len(some), DocBin(docs=some, store_user_data=True).to_bytes()

    def records(self, chunk: Chunk, vocab: Vocab, text: str) -> Iterator[InputText | Rejected]:
        """Records of the Docs in a chunk."""
        docs = DocBin(store_user_data=True).from_bytes(chunk.content).get_docs(vocab)
        for number, doc in enumerate(docs, start=chunk.first):
            yield InputText(number, doc, {})

    def schema(self, chunk: Chunk) -> Any:
        """None: what there is beside a Doc is in it."""


SOURCES: Mapping[str, Source] = {
    ".txt": Lines(),
    ".jsonl": JSONLinesSource(),
    ".parquet": ParquetSource(),
    ".spacy": DocSource(),
}
"""By suffix."""


def _text_of(row: Mapping[str, Any], text: str) -> str:
    """The text of a row. RAISES (ValueError): if there is none, or it is none."""
    found = row.get(text)
    if isinstance(found, str) and is_unicode(found):
        return found
    if isinstance(found, str):
        raise ValueError(f"found half a character (a lone surrogate) in the field {text!r}")
    fields = ", ".join(map(repr, row)) or "no field"
    what = f"{found!r} in the field {text!r}" if text in row else fields
    raise ValueError(f"found {what}, expected a text in the field {text!r}: see --text")


def _parsed(line: str) -> Any:
    """Value in a line of JSON. RAISES (ValueError): if it is not JSON."""
    try:
        return msgspec.json.decode(line)
    except msgspec.DecodeError:
        return json.loads(line)  # which takes half characters, and says best what is wrong
    except RecursionError:
        raise ValueError("found lists or objects in one another that are too many") from None


def files_of(path: Path) -> list[Path]:
    """A file, or the files of a folder that are not hidden, in the order of their names.

    RAISES (ValueError): H345 for a suffix that is not in SOURCES, or files of several.
    """
    files = [path]
    if path.is_dir():
        below = sorted(each for each in path.rglob("*") if each.is_file())
        files = [f for f in below if not any(p[0] == "." for p in f.relative_to(path).parts)]
    suffixes = sorted({each.suffix for each in files})
    if len(suffixes) != 1 or suffixes[0] not in SOURCES:
        found = ", ".join(each or "no suffix" for each in suffixes) or "no file"
        raise ValueError(
            CommandErrors.H345.format(path=path, found=found, known=", ".join(SOURCES))
        )
    return files


def chunks_of(files: list[Path], size: int) -> Iterator[Chunk]:
    """The texts of files of one format, so many at a time, or fewer at the end of a file."""
    number, first = 0, 1
    for path in files:
        for texts, content in SOURCES[path.suffix].contents(path, size):
            yield Chunk(number, first, texts, content)
            number, first = number + 1, first + texts


def parquet_files() -> Any:
    """The module pyarrow.parquet. RAISES (ValueError): H346 if it is not installed."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise ValueError(CommandErrors.H346.format()) from None
    return parquet
