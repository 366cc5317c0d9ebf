"""A header and named arrays as bytes or files, never a pickle.

The header holds a checksum over both, so that a truncated or altered file is told apart from one
that was written so. The archive's file is named by its checksum: saving puts a new archive beside
the old one, replaces the header as a whole, and deletes the old archive last, so there is a
loadable model at every moment.
"""

import hashlib
import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import srsly
from numpy.typing import NDArray

from spacy_hocrf.errors import Errors

__all__ = ["FORMAT", "Payload", "read_bytes", "read_files", "write_bytes", "write_files"]

FORMAT = 3
"""Version of the layout: versions 1 and 2, never released, had label patterns in the header."""

HEADER, ARRAYS = "cfg", "arrays"


@dataclass(frozen=True)
class Payload:
    """Header and arrays of a model."""

    header: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def write_bytes(payload: Payload) -> bytes:
    """A payload as one string of bytes."""
    header, arrays = _encode(payload)
    return bytes(srsly.msgpack_dumps({HEADER: header, ARRAYS: arrays}))


def read_bytes(data: bytes) -> Payload:
    """RAISES (ValueError): H052 for damaged data, H053 for a newer format."""
    try:
        parts = srsly.msgpack_loads(data)
        header, arrays = bytes(parts[HEADER]), bytes(parts[ARRAYS])
    except Exception as error:
        raise ValueError(
            Errors.H052.format(reason=f"the bytes cannot be read ({error})")
        ) from error
    return _decode(header, arrays)


def write_files(payload: Payload, path: Path) -> None:
    """A payload as files in a folder."""
    header, arrays = _encode(payload)
    name = _archive(srsly.json_loads(header)["checksum"])
    path.mkdir(parents=True, exist_ok=True)
    _replace(path / name, arrays)
    _replace(path / HEADER, header)
    for older in path.glob(_archive("*")):
        if older.name != name:
            older.unlink(missing_ok=True)


def read_files(path: Path) -> Payload:
    """RAISES (ValueError): H052 for missing or damaged files, H053 for a newer format."""
    try:
        header = (path / HEADER).read_bytes()
        checksum, _ = _read_header(header)
        arrays = (path / _archive(checksum)).read_bytes()
    except OSError as error:
        raise ValueError(
            Errors.H052.format(reason=f"{error.strerror}: {error.filename}")
        ) from error
    return _decode(header, arrays)


def _encode(payload: Payload) -> tuple[bytes, bytes]:
    stream = io.BytesIO()
    np.savez(stream, **payload.arrays)  # type: ignore[arg-type]
    arrays = stream.getvalue()
    body = srsly.json_dumps(payload.header)
    return srsly.json_dumps({"checksum": _checksum(body, arrays), "model": body}).encode(), arrays


def _decode(header: bytes, arrays: bytes) -> Payload:
    checksum, text = _read_header(header)
    if checksum != _checksum(text, arrays):
        raise ValueError(
            Errors.H052.format(
                reason="the checksum does not match, so a file was cut short or altered"
            )
        )
    with np.load(io.BytesIO(arrays), allow_pickle=False) as archive:
        return Payload(srsly.json_loads(text), {name: archive[name] for name in archive.files})


def _read_header(header: bytes) -> tuple[str, str]:
    """Checksum and JSON of the model proper. RAISES (ValueError): H052 if unreadable, H053 for a
    newer format.
    """
    try:
        outer = srsly.json_loads(header.decode())
        checksum, text = str(outer["checksum"]), str(outer["model"])
        version = int(srsly.json_loads(text)["format"])
    except Exception as error:
        raise ValueError(
            Errors.H052.format(reason=f"'{HEADER}' cannot be read ({error})")
        ) from error
    if version != FORMAT:
        raise ValueError(Errors.H053.format(found=version, known=FORMAT))
    return checksum, text


def _checksum(text: str, arrays: bytes) -> str:
    digest = hashlib.sha256(text.encode())
    digest.update(arrays)
    return digest.hexdigest()


def _archive(checksum: str) -> str:
    """Name of the file of the arrays."""
    return f"arrays-{checksum[:16]}.npz"


def _replace(path: Path, data: bytes) -> None:
    """Write a file as a whole or not at all."""
    temporary = path.with_name(f"{path.name}.writing")
    temporary.write_bytes(data)
    os.replace(temporary, path)
