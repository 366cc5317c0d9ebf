"""A header and named arrays as bytes or files, never a pickle.

The header lists the arrays, which are stored uncompressed, end to end, in one archive file; so loading never
allocates more than the file's size. A checksum over both detects truncated or altered files. The archive is
named by its checksum: saving writes a new archive beside the old one and replaces the header atomically, both
synced to disk before anything is deleted, so there is a loadable model at every moment, even after power
loss.
"""

import hashlib
import math
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta, Struct, json
from numpy.typing import NDArray

from spacy_hocrf.errors import Errors
from spacy_hocrf.saving.schema import Whole, check_json, check_size, checked, exact_json

__all__ = ["FORMAT", "MAGIC", "Payload", "read_bytes", "read_files", "write_bytes", "write_files"]

FORMAT = 5
"""Version of the layout. Earlier ones were never released; 1 and 2 were zip archives."""

HEADER = "cfg"
MAGIC = b"spacy-hocrf\n"
Dtype = Literal["uint8", "uint16", "int32", "int64", "uint64", "float32", "float64"]
"""Types that an array may have; little-endian in the archive, whatever the machine."""


class _ArrayEntry(Struct, forbid_unknown_fields=True):
    """Entry of an array in the header."""

    name: str
    dtype: Dtype
    shape: Annotated[list[Annotated[int, Meta(ge=0, le=2**40)]], Meta(max_length=4)]


class _OuterHeader(Struct, forbid_unknown_fields=True):
    """The header file: the model's own header as JSON, and a checksum over everything."""

    checksum: str
    model: str


@dataclass(frozen=True)
class Payload:
    """Header and arrays of a model."""

    header: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def write_bytes(payload: Payload) -> bytes:
    """Serialise a payload to bytes."""
    header, arrays = _encode(payload)
    return b"".join([MAGIC, len(header).to_bytes(8, "little"), header, *arrays])


def read_bytes(data: bytes) -> Payload:
    """Deserialise a payload from bytes.

    RAISES (ValueError): H052 for damaged data, H053 for another format, H134 or H136 for an impossible or too
        large header.
    """
    begin = len(MAGIC) + 8
    end = begin + int.from_bytes(data[len(MAGIC) : begin], "little")
    if not data.startswith(MAGIC) or len(data) < end:
        raise _damaged("these are not the bytes of a model")
    return _decode(data[begin:end], memoryview(data)[end:])


def write_files(payload: Payload, path: Path) -> None:
    """Write a payload to files in a folder.

    RAISES (OSError): from the operating system; the folder then has the model that was there before, or, if
        only syncing its last entry failed, the new one.
    """
    header, arrays = _encode(payload)
    name = _archive(json.decode(header)["checksum"])
    path.mkdir(parents=True, exist_ok=True)
    try:
        _replace(path / name, arrays)
        _replace(path / HEADER, [header])
    except BaseException:
        if _named_in(path) != name:
            (path / name).unlink(missing_ok=True)
        raise
    for other in (*path.glob(_archive("*")), *path.glob("*.writing")):
        if other.name != name:
            other.unlink(missing_ok=True)


def read_files(path: Path) -> Payload:
    """Read a payload from files in a folder.

    RAISES (ValueError): H052 for missing or damaged files, H053 for another format, H134 or H136 for an
        impossible or too large header.
    """
    try:
        check_size("bytes of the header", (path / HEADER).stat().st_size)
        header = (path / HEADER).read_bytes()
        arrays = (path / _archive(_read_header(header)[0].checksum)).read_bytes()
    except OSError as error:
        raise ValueError(
            Errors.H052.format(reason=f"{error.strerror}: {error.filename}")
        ) from error
    return _decode(header, arrays)


def _encode(payload: Payload) -> tuple[bytes, list[memoryview]]:
    """Return the header, and the bytes of each array, without copies on little-endian machines."""
    table = [
        {"name": name, "dtype": str(array.dtype), "shape": list(array.shape)}
        for name, array in payload.arrays.items()
    ]
    arrays = [
        np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).ravel().view(np.uint8).data
        for array in payload.arrays.values()
    ]
    body = exact_json({**payload.header, "arrays": table})
    return exact_json({"checksum": _checksum(body, *arrays), "model": body}).encode(), arrays


def _decode(header: bytes, arrays: bytes | memoryview) -> Payload:
    outer, values = _read_header(header)
    if outer.checksum != _checksum(outer.model, arrays):
        raise _damaged("the checksum does not match, so a file was cut short or altered")
    table = checked(list[_ArrayEntry], values.pop("arrays", None), "arrays")
    check_size("arrays", len(table))
    return Payload(values, _arrays_of(table, arrays))


def _arrays_of(table: list[_ArrayEntry], data: bytes | memoryview) -> dict[str, NDArray[Any]]:
    """Copy the arrays listed in the table out of the data, which must contain exactly their bytes."""
    view = memoryview(data)
    arrays: dict[str, NDArray[Any]] = {}
    at = 0
    for entry in table:
        name, shape = entry.name, entry.shape
        if name in arrays:
            raise _damaged(f"there are two arrays '{name[:40]}'")
        dtype = np.dtype(entry.dtype)
        end = at + dtype.itemsize * math.prod(shape)
        if end > len(data):
            raise _damaged(f"'{name[:40]}' is larger than its file")
        values = np.frombuffer(view[at:end], dtype=dtype.newbyteorder("<"))
        try:
            arrays[name] = values.astype(dtype).reshape(shape)  # aligned, as kernels read them
        except ValueError as error:  # an extent of 0 beside others that overflow in numpy
            raise _damaged(f"'{name[:40]}' has the extents {shape}") from error
        at = end
    if at != len(data):
        raise _damaged("there are more bytes than arrays")
    return arrays


def _read_header(header: bytes) -> tuple[_OuterHeader, dict[str, Any]]:
    """Return checksum and JSON of the model header, and the values of that JSON.

    RAISES (ValueError): H052 if unreadable, H053 for another format, H136 if too large.
    """
    check_json(header)
    outer = checked(_OuterHeader, _json(header))
    values: dict[str, Any] = checked(dict, _json(outer.model))
    version = checked(Whole, values.get("format"), "format")
    if version != FORMAT:
        raise ValueError(Errors.H053.format(found=version, known=FORMAT))
    return outer, values


def _json(body: bytes | str) -> Any:
    try:
        return json.decode(body)
    except Exception as error:
        raise _damaged(f"'{HEADER}' cannot be read ({error})") from error


def _damaged(reason: str) -> ValueError:
    return ValueError(Errors.H052.format(reason=reason))


def _checksum(body: str, *arrays: bytes | memoryview) -> str:
    digest = hashlib.sha256(body.encode())
    for array in arrays:
        digest.update(array)
    return digest.hexdigest()


def _named_in(path: Path) -> str | None:
    """Return the name of the archive that the header in a folder refers to; None without a valid header."""
    try:
        return _archive(_read_header((path / HEADER).read_bytes())[0].checksum)
    except (OSError, ValueError):
        return None


def _archive(checksum: str) -> str:
    """Return the name of the archive file."""
    return f"arrays-{checksum[:16]}.bin"


def _replace(path: Path, parts: Iterable[bytes | memoryview]) -> None:
    """Write a file atomically; it is on disk when this returns."""
    temporary = path.with_name(f"{path.name}.writing")
    try:
        with temporary.open("wb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(path: Path) -> None:
    """Sync a folder's entries to disk; Windows has no such call and does it by itself."""
    if os.name == "nt":
        return
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
