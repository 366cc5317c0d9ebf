"""Numbered strings in CRFsuite's files."""

import struct

import pytest

from spacy_hocrf.sequences.quarks import hash_keys, read_quarks, write_quarks

STRINGS = ["a", "b", "", "солнце:не светит", "x" * 11, "x" * 12, "x" * 13, "x" * 300, "\ud800"]


def test_hash_of_what_its_author_publishes():
    # http://burtleburtle.net/bob/c/lookup3.c, driver5
    assert hash_keys([b"Four score and seven years ago", b""]).tolist() == [0x17770551, 0xDEADBEEF]


def test_hash_of_every_length_is_its_own():
    keys = [b"x" * n for n in range(40)]
    assert len(set(hash_keys(keys).tolist())) == 40
    assert hash_keys(keys).tolist() == [int(hash_keys([key])[0]) for key in keys]


@pytest.mark.parametrize("strings", [STRINGS, [], [f"w{i}" for i in range(2000)]])
def test_strings_are_read_back(strings):
    assert read_quarks(b"before" + write_quarks(strings), 6) == strings


def test_every_string_is_found_by_its_hash():
    strings = [f"w{i}" for i in range(2000)]
    chunk = write_quarks(strings)
    for i, string in enumerate(strings):
        key = string.encode() + b"\0"
        hashed = int(hash_keys([key])[0])
        table, n = struct.unpack_from("<2I", chunk, 24 + 8 * (hashed % 256))
        slot = (hashed >> 8) % n
        while True:
            found, record = struct.unpack_from("<2I", chunk, table + 8 * slot)
            assert record, "an empty slot before the string"
            if found == hashed and struct.unpack_from("<2I", chunk, record) == (i, len(key)):
                break
            slot = (slot + 1) % n


@pytest.mark.parametrize(
    "place, value",
    [
        (0, b"X"),
        (4, b"\xff\xff"),
        (12, b"\0"),
        (16, b"\xff\xff"),
        (20, b"\xff\xff\xff"),
        (2072, b"\xff" * 8),
    ],
)
def test_damage_is_noticed(place, value):
    chunk = bytearray(write_quarks(["a", "b"]))
    chunk[place : place + len(value)] = value
    with pytest.raises(ValueError):
        read_quarks(bytes(chunk), 0)


@pytest.mark.parametrize("length", [0, 23, 2100])
def test_a_part_is_noticed(length):
    with pytest.raises(ValueError, match="end"):
        read_quarks(write_quarks(["a", "b"])[:length], 0)


def test_invalid_text_is_noticed():
    chunk = bytearray(write_quarks(["a"]))
    chunk[2080] = 0xFF
    with pytest.raises(ValueError, match="UTF-8"):
        read_quarks(bytes(chunk), 0)
