"""A few mutations of the fuzzer in `crfsuite.py`, which runs as many as it is asked for."""

import pytest
from fuzz.crfsuite import EXPECTED, Fuzzer


@pytest.fixture(scope="module")
def fuzzer():
    return Fuzzer(seed=1)


def test_damaged_files_end_in_a_coded_error_or_tag(fuzzer):
    found = [fuzzer.outcome(k) for k in range(400)]
    assert not [outcome for outcome in found if not EXPECTED.match(outcome)]
    assert "tags" in found and len(set(found)) > 10


def test_sound_files_are_none_of_them(fuzzer):
    for data in fuzzer.files[:2]:
        fuzzer.mutate = lambda _, data=data: data + b"\0"
        assert fuzzer.outcome(0) == "tags"
