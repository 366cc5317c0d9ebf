"""Data that workers share: Python objects whose arrays are read where they lie.

    magic | checksum | extents | pickled objects, without their arrays | each array, at a multiple of 64

Who reads a file maps it into memory: pages come when they are asked for, and several processes have one copy
of them. Such files are made and read by one training, and are never a way to hand on a model: unlike
those of `saving/archive.py`, they can name any class.
"""

import mmap
import os
import pickle
import struct
import zlib
from collections.abc import Iterable, Mapping
from io import BytesIO
from pathlib import Path
from typing import IO, Any

from spacy_hocrf.errors import Errors

__all__ = ["mapped_objects", "objects_in", "pieces_of", "read_mapped", "write_pieces"]

MAGIC = b"hocrf working 1\n"
EXTENTS = struct.Struct("<IQQ")  # checksum of all that follows it, bytes pickled, number of arrays
ALIGNMENT = 64


def write_pieces(path: Path, pieces: Iterable[bytes | memoryview]) -> None:
    """Write what `pieces_of` gives as a whole or not at all."""
    temporary = path.with_name(f"{path.name}.writing")
    with temporary.open("wb") as file:
        file.writelines(pieces)
    os.replace(temporary, path)


def pieces_of(value: Any, known: Mapping[int, Any]) -> list[bytes | memoryview]:
    """Objects as they are written, end to end.

    known (Mapping[int, Any]): by the `id` of an object that the reader has already, what it is called.
    """
    arrays: list[memoryview] = []
    pickled = BytesIO()
    _Pickler(pickled, known, arrays).dump(value)
    body: list[bytes | memoryview] = [struct.pack("<QQ", pickled.tell(), len(arrays))]
    body += [struct.pack("<Q", array.nbytes) for array in arrays] + [pickled.getvalue()]
    at = len(MAGIC) + 4 + sum(map(len, body))
    for array in arrays:
        body += [bytes(-at % ALIGNMENT), array]
        at += -at % ALIGNMENT + array.nbytes
    checksum = 0
    for piece in body:
        checksum = zlib.crc32(piece, checksum)
    return [MAGIC, struct.pack("<I", checksum), *body]


def read_mapped(path: Path, known: Mapping[Any, Any]) -> Any:
    """The objects of a file; changes to their arrays are not written.

    known (Mapping[Any, Any]): the objects that were not written, by what they are called.
    RAISES (ValueError): H252 for a file that is not as it was written.
    """
    try:
        with path.open("rb") as file:
            return mapped_objects(file, known, str(path))
    except OSError as error:
        raise ValueError(Errors.H252.format(path=path, reason=error)) from error


def mapped_objects(file: IO[bytes], known: Mapping[Any, Any], path: str) -> Any:
    """Objects of an open file, see `read_mapped`; it may be closed afterwards."""
    try:
        data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    except (OSError, ValueError) as error:
        raise ValueError(Errors.H252.format(path=path, reason=error)) from error
    return objects_in(data, known, path)


def objects_in(data: memoryview, known: Mapping[Any, Any], path: str) -> Any:
    """The objects of what was written, whose arrays are where they lie.

    path (str): where it came from, for the error.
    RAISES (ValueError): H252 if it is not as it was written.
    """
    begin = len(MAGIC)
    if bytes(data[:begin]) != MAGIC or len(data) < begin + EXTENTS.size:
        raise ValueError(Errors.H252.format(path=path, reason="it is of another kind"))
    checksum, size, number = EXTENTS.unpack_from(data, begin)
    if zlib.crc32(data[begin + 4 :]) != checksum:
        raise ValueError(Errors.H252.format(path=path, reason="its checksum does not match"))
    at = begin + EXTENTS.size
    extents = struct.unpack_from(f"<{number}Q", data, at)
    at += 8 * number
    pickled, at = bytes(data[at : at + size]), at + size
    arrays = []
    for extent in extents:
        at += -at % ALIGNMENT
        arrays.append(data[at : at + extent])
        at += extent
    return _Unpickler(BytesIO(pickled), known, arrays).load()


class _Pickler(pickle.Pickler):
    """Leaves out arrays, and objects that the reader has."""

    def __init__(self, file: BytesIO, known: Mapping[int, Any], arrays: list[memoryview]) -> None:
        super().__init__(file, protocol=5, buffer_callback=lambda array: arrays.append(array.raw()))
        self._known = known

    def persistent_id(self, value: Any) -> Any:
        """Name under which the reader has the object, None if it has no such object."""
        return self._known.get(id(value))


class _Unpickler(pickle.Unpickler):
    """Puts in what was left out."""

    def __init__(self, file: BytesIO, known: Mapping[Any, Any], arrays: list[memoryview]) -> None:
        super().__init__(file, buffers=arrays)
        self._known = known

    def persistent_load(self, name: Any) -> Any:
        """The object that is called so."""
        return self._known[name]
