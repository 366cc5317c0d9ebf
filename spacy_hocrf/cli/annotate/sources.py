"""Read the texts of files in chunks, which can be sent to worker processes.

Chunks are lines, Arrow record batches or the bytes of a `DocBin`, never Docs; the worker parses them.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from spacy_hocrf.annotation.readers import bin_in
from spacy_hocrf.cli.docbins import docs_of_file, visible_files
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
    "parquet_files",
    "source_files",
]

BOM = "\xef\xbb\xbf"
"""UTF-8 byte order mark, decoded as latin1, which maps each byte to a character."""

MAX_QUOTE_LENGTH = 30
"""Number of characters of a line that an error message quotes."""


class InputText(NamedTuple):
    """A text to annotate."""

    number: int  # from 1 on, over all files
    text: str | Doc
    row: Mapping[str, Any]  # all fields of the record, which are copied to the output


class Rejected(NamedTuple):
    """A record without a text that can be annotated."""

    number: int  # from 1 on, over all files
    reason: str
    found: str  # the record, or its beginning


class Chunk(NamedTuple):
    """Consecutive texts of one file."""

    number: int  # from 0 on, over all files
    first: int  # number of its first text
    size: int  # number of texts
    content: Any  # for `Source.records`

    @property
    def schema(self) -> Any:
        """Schema of the input columns (`pyarrow.Schema`); None for a format without one."""
        return getattr(self.content, "schema", None)


class Source(Protocol):
    """A format of files with texts."""

    def count(self, path: Path) -> int:
        """Count the texts of a file."""
        ...

    def contents(self, path: Path, size: int) -> Iterator[tuple[int, Any]]:
        """Yield `size` texts at a time: their number, and the texts as an object that can be pickled."""
        ...

    def records(self, chunk: Chunk, vocab: Vocab, text: str) -> Iterator[InputText | Rejected]:
        """Parse the texts of a chunk.

        text (str): name of the field, or column, with the text.
        """
        ...


class Lines:
    """Text files (.txt): every line is a text."""

    def count(self, path: Path) -> int:
        """Count the lines."""
        with path.open(encoding="latin1") as file:
            return sum(1 for _ in file)

    def contents(self, path: Path, size: int) -> Iterator[tuple[int, list[bytes]]]:
        """Yield lists of lines, with "\\n" as line ending."""
        with path.open(encoding="latin1") as file:
            file.seek(len(BOM) if file.read(len(BOM)) == BOM else 0)
            while lines := [line.encode("latin1") for line in islice(file, size)]:
                yield len(lines), lines

    def records(self, chunk: Chunk, vocab: Vocab, text: str) -> Iterator[InputText | Rejected]:
        """Decode the lines, without line endings; those that are not UTF-8 are rejected."""
        for number, line in enumerate(chunk.content, start=chunk.first):
            try:
                if b"\0" in line:
                    raise ValueError("found a zero byte, as in UTF-16: save the file in UTF-8")
                yield self.record(number, line.rstrip(b"\n").decode("utf8"), text)
            except ValueError as error:
                yield Rejected(number, str(error), line.decode("utf8", "replace"))

    def record(self, number: int, line: str, text: str) -> InputText:
        """Parse a line. RAISES (ValueError): if it has no text."""
        return InputText(number, line, {text: line})


class JSONLinesSource(Lines):
    """JSON lines: every line is an object with the text in one field."""

    def record(self, number: int, line: str, text: str) -> InputText:
        """Parse a line of JSON. RAISES (ValueError): if it is no object with a text."""
        row = _parsed(line) if line.strip() else None
        if not isinstance(row, dict):
            quote = line.strip()[:MAX_QUOTE_LENGTH] or "an empty line"
            raise ValueError(f"found {quote}, expected a JSON object")
        return InputText(number, _text_of(row, text), row)


class ParquetSource:
    """Parquet tables with the texts in one column (`pip install pyarrow`)."""

    def count(self, path: Path) -> int:
        """Count the rows. RAISES (ValueError): H583 for a damaged table."""
        with _naming(path):
            return int(parquet_files().ParquetFile(path).metadata.num_rows)

    def contents(self, path: Path, size: int) -> Iterator[tuple[int, Any]]:
        """Yield Arrow record batches. RAISES (ValueError): H583 for a damaged table."""
        # a batch never extends over two row groups, whatever its size
        with _naming(path):
            for batch in parquet_files().ParquetFile(path).iter_batches(batch_size=size):
                yield batch.num_rows, batch

    def records(self, chunk: Chunk, vocab: Vocab, text: str) -> Iterator[InputText | Rejected]:
        """Convert the rows; those without a text are rejected."""
        for number, row in enumerate(chunk.content.to_pylist(), start=chunk.first):
            try:
                yield InputText(number, _text_of(row, text), row)
            except ValueError as error:
                yield Rejected(number, str(error), str(row))


class DocSource:
    """spaCy's DocBin files, whose tokens are kept."""

    def count(self, path: Path) -> int:
        """Count the Docs."""
        return len(bin_in(path))

    def contents(self, path: Path, size: int) -> Iterator[tuple[int, bytes]]:
        """Yield some of the Docs at a time, as the bytes of a DocBin."""
        docs = docs_of_file(path)
        while chunk := list(islice(docs, size)):
            yield len(chunk), DocBin(docs=chunk, store_user_data=True).to_bytes()

    def records(self, chunk: Chunk, vocab: Vocab, text: str) -> Iterator[InputText | Rejected]:
        """Yield the Docs of a chunk."""
        docs = DocBin(store_user_data=True).from_bytes(chunk.content).get_docs(vocab)
        for number, doc in enumerate(docs, start=chunk.first):
            yield InputText(number, doc, {})


SOURCES: Mapping[str, Source] = {
    ".txt": Lines(),
    ".jsonl": JSONLinesSource(),
    ".parquet": ParquetSource(),
    ".spacy": DocSource(),
}
"""Input formats by suffix."""


def _text_of(row: Mapping[str, Any], text: str) -> str:
    """Return the text of a row. RAISES (ValueError): if it is missing or not valid text."""
    value = row.get(text)
    if isinstance(value, str) and is_unicode(value):
        return value
    if isinstance(value, str):
        raise ValueError(f"found half a character (a lone surrogate) in the field {text!r}")
    fields = ", ".join(map(repr, row)) or "no field"
    found = f"{value!r} in the field {text!r}" if text in row else fields
    raise ValueError(f"found {found}, expected a text in the field {text!r}: see --text")


def _parsed(line: str) -> Any:
    """Parse a line of JSON. RAISES (ValueError): if it is not JSON."""
    try:
        return msgspec.json.decode(line)
    except msgspec.DecodeError:
        return json.loads(line)  # accepts lone surrogates, and has the clearest errors
    except RecursionError:
        raise ValueError("found lists or objects in one another that are too many") from None


def source_files(path: Path) -> list[Path]:
    """List a file, or the files of a folder that are not hidden, sorted by path.

    RAISES (ValueError): H345 for a suffix that is not in SOURCES, or files with several suffixes.
    """
    files = sorted(visible_files(path)) if path.is_dir() else [path]
    suffixes = sorted({file.suffix for file in files})
    if len(suffixes) != 1 or suffixes[0] not in SOURCES:
        found = ", ".join(suffix or "no suffix" for suffix in suffixes) or "no file"
        raise ValueError(
            CommandErrors.H345.format(path=path, found=found, known=", ".join(SOURCES))
        )
    return files


def chunks_of(files: list[Path], size: int) -> Iterator[Chunk]:
    """Split the texts of files of one format into chunks of `size` texts, or fewer at the end of a file."""
    number, first = 0, 1
    for path in files:
        for texts, content in SOURCES[path.suffix].contents(path, size):
            yield Chunk(number, first, texts, content)
            number, first = number + 1, first + texts


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Name the table that pyarrow cannot read. RAISES (ValueError): H583."""
    import pyarrow

    try:
        yield
    except (OSError, pyarrow.ArrowException) as error:
        raise ValueError(CommandErrors.H583.format(path=path, reason=error)) from error


def parquet_files() -> Any:
    """Import pyarrow.parquet. RAISES (ValueError): H346 if it is not installed."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise ValueError(CommandErrors.H346.format()) from None
    return parquet
