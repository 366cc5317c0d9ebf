"""Numbered strings in CRFsuite's model files: a hash table that is written once (CQDB, a
constant quark database; http://www.chokkan.org/software/cqdb/).

    header    "CQDB", size of the chunk, flags, BYTE_ORDER, number of strings, offset of the array
    tables    256 pairs: offset and number of slots of a hash table
    records   number, size of the string with its NUL, the string, NUL
    slots     pairs: hash and offset of a record, for one hash table after the other
    array     offset of the record of each number

All numbers are uint32, little-endian; offsets are counted from the beginning of the chunk. A string
is in table h % 256, from slot (h >> 8) % slots on, h being the hash of Bob Jenkins ("lookup3",
http://burtleburtle.net/bob/c/lookup3.c) of the string with its NUL. Converting numbers to strings requires
only the array and the records.
"""

import struct
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["hash_keys", "read_quarks", "write_quarks"]

MAGIC = b"CQDB"
HEADER = struct.Struct("<4s5I")
PAIR = struct.Struct("<2I")
BYTE_ORDER = 0x62445371
TABLES = 256
FIRST_RECORD = HEADER.size + TABLES * PAIR.size
BLOCK = 12  # bytes that are hashed at a time
SEED = 0xDEADBEEF
MIX, FINISH = (4, 6, 8, 16, 19, 4), (14, 11, 25, 16, 4, 14, 24)  # bits to rotate by

Words32 = NDArray[np.uint32]


def read_quarks(data: bytes, start: int) -> list[str]:
    """Return the strings of a chunk by number.

    data (bytes): the file. start (int): where the chunk begins.
    RAISES (ValueError): with the reason, if the chunk is invalid.
    """
    if start + HEADER.size > len(data):
        raise ValueError("the strings begin behind its end")
    magic, size, _, order, n, array = HEADER.unpack_from(data, start)
    if magic != MAGIC or order != BYTE_ORDER:
        raise ValueError("there are no strings where they should begin")
    end = start + size
    if end > len(data) or array + 4 * n > size:
        raise ValueError("the strings go on behind its end")
    return [
        _read_record(data, start + offset, end)
        for offset in np.frombuffer(data, "<u4", n, start + array).tolist()
    ]


def write_quarks(strings: Sequence[str]) -> bytes:
    """Make a chunk of distinct strings, numbered in order."""
    keys = [string.encode("utf8", "surrogatepass") + b"\0" for string in strings]
    lengths = np.array([len(key) for key in keys], dtype=np.int64)
    ends = FIRST_RECORD + np.cumsum(lengths + PAIR.size)
    offsets = (ends - lengths - PAIR.size).astype("<u4")
    records = [PAIR.pack(i, len(key)) + key for i, key in enumerate(keys)]
    first_slot = FIRST_RECORD + sum(map(len, records))
    pairs, slots = _hash_tables(hash_keys(keys), offsets, first_slot)
    array = first_slot + len(slots)
    size = array + 4 * len(keys)
    header = HEADER.pack(MAGIC, size, 0, BYTE_ORDER, len(keys), array)
    return b"".join([header, pairs, *records, slots, offsets.tobytes()])


def hash_keys(keys: Sequence[bytes]) -> Words32:
    """Return the hash of each key, uint32 [n]."""
    result = np.zeros(len(keys), dtype=np.uint32)
    by_length: dict[int, list[int]] = {}
    for i, key in enumerate(keys):
        by_length.setdefault(len(key), []).append(i)
    for length, places in by_length.items():
        padded = b"".join(keys[i] + bytes(-length % BLOCK) for i in places)
        result[places] = _hash(np.frombuffer(padded, "<u4").reshape(len(places), -1), length)
    return result


def _read_record(data: bytes, start: int, end: int) -> str:
    if start + PAIR.size > end:
        raise ValueError("a string begins behind its end")
    length = PAIR.unpack_from(data, start)[1]
    first = start + PAIR.size
    if length == 0 or first + length > end:
        raise ValueError("a string goes on behind its end")
    try:
        return data[first : first + length - 1].decode("utf8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise ValueError("a string is not UTF-8") from error


def _hash_tables(hashed: Words32, offsets: Words32, first: int) -> tuple[bytes, bytes]:
    """Return offset and number of slots of each table, and all slots, which begin at `first`. A table has two
    slots per string, and a string takes the first free one from its own place on.
    """
    pairs, slots = [], []
    table = hashed % TABLES
    order = np.argsort(table, kind="stable")
    bounds = np.searchsorted(table[order], np.arange(TABLES + 1)).tolist()
    for number in range(TABLES):
        members = order[bounds[number] : bounds[number + 1]]
        n = 2 * len(members)
        pairs.append(PAIR.pack(first if n else 0, n))
        first += n * PAIR.size
        rows = [(0, 0)] * n
        for key, offset in zip(hashed[members].tolist(), offsets[members].tolist()):
            slot = (key >> 8) % n
            while rows[slot][1]:
                slot = (slot + 1) % n
            rows[slot] = key, offset
        slots += [PAIR.pack(*row) for row in rows]
    return b"".join(pairs), b"".join(slots)


def _hash(words: Words32, length: int) -> Words32:
    """Hashes [n] of keys of equal length, uint32 [n, ·] padded with 0 to whole blocks.

    In every step the three parts of the state are rotated.
    """
    a, b, c = (np.full(len(words), (SEED + length) % 2**32, dtype=np.uint32) for _ in "abc")
    last = max(0, words.shape[1] - 3)
    for first in range(0, last, 3):
        a, b, c = a + words[:, first], b + words[:, first + 1], c + words[:, first + 2]
        for bits in MIX:
            a, b, c = b, c + b, (a - c) ^ _rotated(c, bits)
    if not length:
        return c
    a, b, c = a + words[:, last], b + words[:, last + 1], c + words[:, last + 2]
    for bits in FINISH:
        a, b, c = b, (c ^ b) - _rotated(b, bits), a
    return b


def _rotated(x: Words32, bits: int) -> Words32:
    rotated: Words32 = (x << np.uint32(bits)) | (x >> np.uint32(32 - bits))
    return rotated
