"""`hocrf annotate` in project/benchmark: the texts that are made up, and all of it on few of them."""

from itertools import islice
from pathlib import Path

import pytest
from project_checks import table_rows

PROJECT = Path(__file__).parents[2] / "project" / "benchmark"
LOADS = ("benchmark",)

pytestmark = [
    pytest.mark.skipif(
        not PROJECT.exists(), reason="project/benchmark is not in this distribution"
    ),
    pytest.mark.skipif(not Path("/proc").is_dir(), reason="memory is asked of /proc"),
]

STREETS = ["Oak", "Elm", "State", "Lake", "Pine", "High"]


@pytest.fixture
def corpus(tmp_path):
    """Six addresses as usaddress has them."""
    address = (
        "<AddressString><AddressNumber>12{i},</AddressNumber> <StreetName>{street}</StreetName> "
        "<StreetNamePostType>St,</StreetNamePostType> <PlaceName>Town {street}</PlaceName></AddressString>"
    )
    lines = [address.format(i=i, street=street) for i, street in enumerate(STREETS)]
    path = tmp_path / "assets" / "usaddress" / "labeled.xml"
    path.parent.mkdir(parents=True)
    path.write_text("\n".join(lines))
    return path


def test_fields_are_those_of_any_address_and_digits_are_new(load, corpus):
    script = load("annotate")
    known = list(script.read_labelled_words(corpus))
    texts = list(islice(script.made_up(known), 200))
    assert texts == list(islice(script.made_up(known), 200))
    numbers, streets, kinds, _, towns = zip(*map(str.split, texts))
    assert len({*numbers}) > 100 and all(number[-1] == "," for number in numbers)
    assert {*streets} == {*towns} == {*STREETS} and {*kinds} == {"St,"}
    assert any(street != town for street, town in zip(streets, towns))


def test_few_texts_are_measured_and_killed_and_nothing_is_left(load, corpus, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # `python -m` would take a package that lies in the current folder
    script, output = load("annotate"), tmp_path / "annotate.md"
    script.main(
        output, tmp_path / "assets", texts=20_000, kills=2, size=200, work=tmp_path / "work"
    )
    rows = table_rows(output.read_text(encoding="utf8"))
    runs = [row[:2] for row in rows if len(row) == 6 and row[0][0].isdigit()]
    assert runs == [["2,000", "1"], ["20,000", "1"], ["20,000", "2"]]
    found = dict(row for row in rows if len(row) == 2)
    assert found["processes that run afterwards"] == "0"
    assert found["unfinished files"] == "0"
    assert found["bytes of two processes are those of one"] == "yes"
    assert found["bytes after all kills, too"] == "yes"
    # all may be done before the second
    assert sum(int(each.split()[0]) for each in found["killed"].split(", ")) > 0
