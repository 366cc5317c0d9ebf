"""The comparison of rules in project/references: how errors are counted, and a small run."""

import spacy
from project_checks import table_rows
from small_corpus import documents, examples
from spacy.tokens import Doc, DocBin, Span

LOADS = ("references",)


def doc(*spans):
    found = Doc(spacy.blank("en").vocab, words=["a", "b", "c", "d"])
    found.set_ents([Span(found, *span) for span in spans])
    return found


def test_wrong_fields_and_missing_ones_are_errors(load):
    rules = load("rules")
    gold, found = doc((0, 2, "A"), (3, 4, "B")), doc((0, 2, "A"), (2, 4, "B"))
    assert rules.field_errors(found, gold) == 2  # one too long, one not there
    assert rules.token_errors(found, gold) == 1
    assert rules.field_errors(gold, gold) == rules.token_errors(gold, gold) == 0


def test_rules_are_learnt_and_compared(load, tmp_path, capsys):
    for name, first in (("train", 0), ("test", 24)):
        some = [eg.reference for eg in examples(spacy.blank("en"), documents(32))]
        DocBin(docs=some[first : first + 24]).to_disk(tmp_path / f"{name}.spacy")
    output = tmp_path / "rules.md"
    files = tmp_path / "train.spacy", tmp_path / "test.spacy"
    load("rules").main(*files, output=output)
    rows = table_rows(output.read_text())
    assert [row[0] for row in rows[2:]] == [
        "model alone, its decoder",
        "model alone, best segmentation",
        "with rules, its decoder",
        "with rules, best segmentation",
    ]
    assert "of 7 rules have a price" in capsys.readouterr().out
