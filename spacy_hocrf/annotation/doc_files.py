"""Docs of `.spacy` files, a block at a time: of a file of any size, little is in memory.

Such a file is a compressed map of msgpack (spaCy's `DocBin`): "tokens", "spaces" and "lengths" are the bytes
of arrays of all Docs, "strings" are those that occur, and "cats", "flags", "span_groups" and "user_data" have
an item for each Doc. Where each of these begins is found once, by decompressing the file. From there on each
is decompressed by itself, as far as it is asked for.
"""

import zlib
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice, repeat
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab
from srsly import msgpack

from spacy_hocrf.annotation.errors import CorpusErrors

__all__ = ["read_docs"]

CHUNK = 1 << 16
"""Bytes that are read, or skipped, together."""
BLOCK = 20_000
"""Tokens of a block of Docs, if they are not of a single one."""
OPENED = 4
"""Files of which it is remembered where everything is."""
COLUMNS: tuple[tuple[str, Any], ...] = (
    ("cats", {}),
    ("flags", {}),
    ("span_groups", b""),
    ("user_data", None),
)
"""Lists with an item for each Doc, and the item of those that are missing."""
BYTES = {0xC4: 1, 0xC5: 2, 0xC6: 4}
"""How msgpack marks bytes, and in how many bytes their number follows."""


def read_docs(vocab: Vocab, paths: Iterable[Path]) -> Iterator[Doc]:
    """The Docs of files, one file after the other, without those that are empty.

    RAISES (ValueError): H257 for a file of another kind, or a damaged one.
    """
    for path in paths:
        try:
            about = path.stat()
            yield from _docs_of(_fields(path, about.st_mtime_ns, about.st_size), vocab)
        except (
            zlib.error,
            msgpack.UnpackException,
            EOFError,
            LookupError,
            TypeError,
            ValueError,
        ) as error:
            reason = str(error) or type(error).__name__
            raise ValueError(CorpusErrors.H257.format(path=path, reason=reason)) from error


class _Inflated:
    """The decompressed content of a file from some place on. The file is not kept open.

    place (int): of the first byte that is still to be read.
    inflater: what has read all before it; None at the beginning.
    """

    def __init__(self, path: Path, place: int = 0, inflater: Any = None) -> None:
        self._path, self._place = path, place
        self._inflater = zlib.decompressobj() if inflater is None else inflater

    def copy(self) -> "_Inflated":
        """Another one, from the same place on."""
        return _Inflated(self._path, self._place, self._inflater.copy())

    def read(self, size: int) -> bytes:
        """So many bytes, fewer at the end."""
        pieces, left = [], size
        while left:
            piece = self._inflater.decompress(self._inflater.unconsumed_tail, left)
            if not piece and not self._inflater.eof:
                piece = self._inflater.decompress(self._more(), left)
            elif not piece:
                break
            pieces.append(piece)
            left -= len(piece)
        return b"".join(pieces)

    def exactly(self, size: int) -> bytes:
        """So many bytes. RAISES (EOFError): if there are fewer."""
        data = self.read(size)
        if len(data) < size:
            raise EOFError("it ends too early")
        return data

    def skip(self, size: int) -> None:
        """Go on so many bytes later."""
        for first in range(0, size, CHUNK):
            self.exactly(min(CHUNK, size - first))

    def _more(self) -> bytes:
        """Compressed bytes. RAISES (EOFError): if there are no more."""
        with self._path.open("rb") as file:
            file.seek(self._place)
            data = file.read(CHUNK)
        if not data:
            raise EOFError("it ends too early")
        self._place += len(data)
        return data


class _Field(NamedTuple):
    """Where a value of the map is."""

    begin: _Inflated
    size: int  # of bytes; -1 for another value

    def bytes(self) -> _Inflated:
        """To be read. RAISES (TypeError): unless it is bytes."""
        if self.size < 0:
            raise TypeError("an array is not where it should be")
        return self.begin.copy()

    def unpacker(self) -> Any:
        """An unpacker of a value that is not bytes."""
        return msgpack.Unpacker(self.begin.copy(), raw=False)

    def items(self) -> Iterator[Any]:
        """Items of a list, one after the other."""
        unpacker = self.unpacker()
        for _ in range(unpacker.read_array_header()):
            yield unpacker.unpack()


@lru_cache(OPENED)
def _fields(path: Path, changed: int, size: int) -> dict[str, _Field]:
    """Where the values of a file are, by their names.

    changed, size (int): when it was written, and its bytes; another file has others.
    """
    fields: dict[str, _Field] = {}
    stream = _Inflated(path)
    header = msgpack.Unpacker(stream.copy())
    number = header.read_map_header()
    stream.skip(header.tell())
    for _ in range(number):
        unpacker = msgpack.Unpacker(stream.copy(), raw=False)
        name = unpacker.unpack()
        stream.skip(unpacker.tell())
        kind = stream.copy().exactly(1)[0]
        if kind in BYTES:
            stream.skip(1)
            extent = int.from_bytes(stream.exactly(BYTES[kind]), "big")
            fields[name] = _Field(stream.copy(), extent)
        else:
            fields[name] = _Field(stream.copy(), -1)
            unpacker = fields[name].unpacker()
            unpacker.skip()
            extent = unpacker.tell()
        stream.skip(extent)
    return fields


def _docs_of(fields: dict[str, _Field], vocab: Vocab) -> Iterator[Doc]:
    for string in fields["strings"].items():
        vocab.strings.add(string)
    attributes = fields["attrs"].unpacker().unpack()
    number, size = fields["lengths"].size // 4, sum(map(sum, _blocks(fields["lengths"])))
    sizes = {"lengths": 4 * number, "spaces": size, "tokens": 8 * len(attributes) * size}
    if any(fields[name].size != expected for name, expected in sizes.items()) or any(
        fields[name].unpacker().read_array_header() != number
        for name, _ in COLUMNS
        if name in fields
    ):
        raise EOFError("its arrays are not of the same Docs")
    tokens, spaces = fields["tokens"].bytes(), fields["spaces"].bytes()
    columns = {
        name: fields[name].items() if name in fields else repeat(default)
        for name, default in COLUMNS
    }
    for lengths in _blocks(fields["lengths"]):
        size, block = sum(lengths), DocBin()
        kind = np.dtype(np.uint64)
        flat = np.frombuffer(tokens.exactly(kind.itemsize * len(attributes) * size), kind)
        gaps = np.frombuffer(spaces.exactly(size), bool).reshape(-1, 1)
        ends = np.cumsum(lengths)[:-1]
        block.attrs = attributes
        block.tokens = np.split(flat.reshape(-1, len(attributes)), ends)
        block.spaces = np.split(gaps, ends)
        for name, items in columns.items():
            setattr(block, name, [*islice(items, len(lengths))])
        yield from filter(len, block.get_docs(vocab))


def _blocks(field: _Field) -> Iterator[list[int]]:
    """Lengths of the Docs of a block, of one block after the other."""
    stream, number = field.bytes(), field.size // 4
    block, size = list[int](), 0
    for first in range(0, number, CHUNK):
        data = stream.exactly(4 * min(CHUNK, number - first))
        for length in np.frombuffer(data, np.int32).tolist():
            if block and size + length > BLOCK:
                yield block
                block, size = [], 0
            block.append(length)
            size += length
    if block:
        yield block
