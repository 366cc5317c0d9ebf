"""A few mutations of the fuzzer in `convert.py`, which makes as many as it is asked for."""

from collections import Counter

import pytest
from fuzz.convert import FILES, Fuzzer

from spacy_hocrf.cli.convert.formats import FORMATS, format_of
from spacy_hocrf.cli.convert.records import ConvertSettings

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def fuzzer(tmp_path_factory):
    return Fuzzer(1, tmp_path_factory.mktemp("fuzz"))


def test_damaged_files_end_in_a_coded_error_or_in_docs(fuzzer):
    found = Counter(fuzzer.outcome(k) for k in range(300))
    assert not [outcome for outcome in found if outcome.startswith("wrong")]
    assert found["read"] > 30 and {"H290", "H291", "H380", "H581"} <= found.keys()


def test_sound_files_of_every_format_are_read(fuzzer):
    formats = set()
    for name, text in FILES.items():
        names = ("O", "B-X") if name.endswith((".json", ".jsonl")) else ()
        how = {"settings": ConvertSettings(names=names)}
        fuzzer.mutate = lambda _, name=name, text=text, how=how: (name, text.encode("utf8"), how)
        assert fuzzer.outcome(0) == "read", name
        formats.add(format_of(fuzzer.folder / name, ConvertSettings()))
    assert formats == FORMATS.keys()
