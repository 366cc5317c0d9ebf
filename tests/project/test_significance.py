"""project/common/significance.py: the table of all pairs."""

import numpy as np
import pytest
import spacy
from small_corpus import documents, examples
from spacy.tokens import DocBin

from spacy_hocrf.cli.counts import Counts


@pytest.fixture(scope="module")
def significance(load):
    return load("common.significance")


def cells(text):
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    ]


def test_every_pair_has_its_p_value_and_direction(significance):
    gold = np.ones((12, 1), dtype=np.int32)
    correct = np.zeros((3, 12, 1), dtype=np.int32)
    correct[0, :2] = 1
    correct[1] = 1
    correct[2, :3] = 1
    text = significance.make_table(
        ["C1", "C2", "SC1"], Counts(("A",), correct, np.ones_like(correct), gold), trials=5000
    )
    header, _, *rows = cells(text)
    assert header == ["", "F1", "C2", "SC1"]
    assert rows == [
        # ten documents differ: 2 of 1,024 swaps; one differs: both of 2
        ["C1", "16.67", "**0.0020 <**", "1.0000 <"],
        ["C2", "100.00", "–", "**0.0039 >**"],  # nine differ: 2 of 512
        ["SC1", "25.00", "–", "–"],
    ]


def test_files_become_a_table(significance, tmp_path):
    gold = [example.reference for example in examples(spacy.blank("en"), documents(20))]
    bad = [doc.copy() for doc in gold]
    for doc in bad:
        doc.set_ents(doc.ents[:1])
    for name, docs in (("gold", gold), ("good", gold), ("bad", bad)):
        DocBin(docs=docs).to_disk(tmp_path / f"{name}.spacy")
    files = [str(tmp_path / f"{name}.spacy") for name in ("good", "bad")]
    significance.main(tmp_path / "gold.spacy", files, trials=1000, output=tmp_path / "table.md")
    _, _, good, bad_row = cells((tmp_path / "table.md").read_text(encoding="utf8"))
    assert good == ["good", "100.00", "**0.0010 >**"]
    assert bad_row[0] == "bad" and bad_row[2] == "–"
