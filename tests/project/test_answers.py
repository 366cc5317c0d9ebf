"""The project answers: errors that are made up, and its scripts on a few texts."""

from pathlib import Path

import pytest
from documentation import page
from project_checks import table_rows

PROJECT = Path(__file__).parents[2] / "project" / "answers"
LOADS = ("answers", "defaults")


def tweets(load, count):
    text = load("readers").Text
    names = ["Ada", "Rome", "Max", "Bonn", "Emmy", "Oslo"]
    return [
        text(
            [names[i % 6], "is", "in", names[(i * 5 + 1) % 6], str(i)],
            [(0, 1, "PER"), (3, 4, "LOC")],
        )
        for i in range(count)
    ]


# -------------------- planted errors


def test_every_other_error_is_another_label_and_the_rest_are_missing(load, monkeypatch):
    module = load("planted")
    monkeypatch.setattr(module, "SHARE", 0.5)
    annotation = [[(0, 1, "A"), (1, 3, "B")], [(0, 2, "C")], [(i, i + 1, "A") for i in range(9)]]
    changed, errors = module.plant(annotation, 3)
    assert len(errors) == 6 and module.plant(annotation, 3) == (changed, errors)
    before, after = (
        {(i, start, end): label for i, spans in enumerate(of) for start, end, label in spans}
        for of in (annotation, changed)
    )
    missing = {place for place in before if place not in after}
    swapped = {place for place in after if after[place] != before[place]}
    assert len(missing) == len(swapped) == 3 and missing | swapped == errors


def test_planted_errors_are_found_in_references(load, monkeypatch):
    module = load("planted")
    monkeypatch.setattr(module, "SHARE", 0.1)
    found = module.look(tweets(load, 30), 0)
    assert [row[1] for row in found] == list(module.RANKINGS)
    assert all(row[2:4] == ("57", "6") for row in found)
    assert float(found[0][-1].rstrip("%")) >= 50


def test_a_third_each_has_another_label_is_missing_or_is_moved(load):
    module = load("worth")
    texts = tweets(load, 30)
    found = module.plant(texts, 0.5, 0)
    assert found == module.plant(texts, 0.5, 0) != module.plant(texts, 0.5, 1)
    assert module.plant(texts, 0.0, 0) == texts
    swapped = missing = moved = 0
    for before, after in zip(texts, found, strict=True):
        assert after.words == before.words and len(after.spans) <= len(before.spans)
        places = {span[:2]: span[2] for span in after.spans}
        kept = [span for span in before.spans if span in after.spans]
        other = [span for span in before.spans if places.get(span[:2], span[2]) != span[2]]
        swapped += len(other)
        missing += len(before.spans) - len(after.spans)
        moved += len(after.spans) - len(kept) - len(other)
        covered = [t for span in after.spans for t in range(*span[:2])]
        assert len(set(covered)) == len(covered) and set(covered) <= set(range(5))
    assert swapped == missing == moved == 10


def test_weights_are_compared_with_none(load):
    module = load("worth")
    texts = tweets(load, 30)
    parts = {"train": texts, "dev": texts[:6]}
    none, alike, doubted = module.compare("conll04", parts, "20", 0.1, 0)
    assert 0 < min(none, alike, doubted) <= max(none, alike, doubted) <= 100


def test_an_error_is_hit_by_what_overlaps_it_in_its_text(load):
    module = load("planted")
    span = load("spacy_hocrf.annotation.best_readings").ScoredSpan
    doubts = [
        module.Doubt(0, span(2, 4, "A", 0.1), None, 0.1, 0.9),
        module.Doubt(1, None, span(0, 3, "B", 0.8), 0.2, 0.8),
    ]
    errors = {(0, 3, 5), (0, 4, 5), (1, 2, 3), (2, 0, 9)}
    assert module.hit(doubts, errors) == {(0, 3, 5), (1, 2, 3)}
    assert [module.improbable(doubt) for doubt in doubts] == [0.9, 0.8]


# -------------------- rules


def test_what_usaddress_refuses(load):
    module = load("once")
    street, cross = (0, 1, "StreetName"), (1, 2, "IntersectionSeparator")
    assert not module.is_refused([street, cross, (2, 3, "StreetName")])
    assert module.is_refused([street, (2, 3, "StreetName")])
    assert module.is_refused([cross, (2, 3, "ZipCode"), (4, 5, "ZipCode")])
    assert module.repeats([street, cross, (2, 3, "StreetName")])


def test_the_same_model_with_rules_repeats_no_label(load):
    module = load("once")
    texts = tweets(load, 12)
    nlp = load("spacy").blank("xx")
    nlp.add_pipe("hocrf")
    module.learn(nlp, [module.example_of(nlp, text) for text in texts])
    for name, rules in module.rule_sets(nlp):
        row = module.row(module.with_rules(nlp, rules), name, texts)
        assert row[1] == "12" and row[3] == "0"


def test_successions_that_no_text_has_are_forbidden(load):
    module = load("rules")
    texts = [module.Text(["a", "b", "c"], [(0, 1, "A"), (2, 3, "B")])]
    assert module.chain_of(texts[0]) == ["", "A", "O", "B", ""]
    block = module.constraints_of("cora", texts, "successions", "none")
    pairs = [tuple(pair) for pair in block["forbidden"]]
    assert ("A", "B") in pairs and ("", "O") in pairs and ("A", "") in pairs
    assert ("A", "O") not in pairs and ("", "A") not in pairs and ("", "") not in pairs


@pytest.mark.parametrize("name, training", [("none", "none"), ("successions", "successions")])
def test_rules_are_tried_on_texts_that_were_held_back(load, name, training):
    module = load("rules")
    texts = tweets(load, 12)
    row = module.measured("cora", texts, [{0, 1}, {2, 3}], name, training)
    assert len(row) == 3 and 0 <= float(row[0]) <= 100 and row[1].endswith("%")


# -------------------- what is written


def test_the_page_of_constraints_says_what_was_measured():
    _, *rows = table_rows((PROJECT / "partly.md").read_text(encoding="utf8"))
    nothing, word, _, each, everything = (row[2] for row in rows if row[0] == "cora")
    written = " ".join(page("docs/constraints.md").split())
    assert (
        f"F1 is {nothing}. One word with its label in each of the others raises it to {word}, one"
        in written
    )
    assert (
        f"one word of each of their spans to {each}. With everything annotated it is {everything} "
        in written
    )


def test_the_page_says_what_was_measured():
    """Of errors in the first tenth the least and the most, by doubt and by probability; of chosen texts
    those that are enough.
    """
    written = " ".join(page("docs/page.md").split())
    _, _, *rows = table_rows((PROJECT / "planted.md").read_text(encoding="utf8"))
    tenth = {
        name: [round(float(row[5][:-1])) for row in rows if row[1] == name] for _, name, *_ in rows
    }
    doubt, chance = (f"{min(each)} to {max(each)} %" for each in tenth.values())
    assert f"the first tenth of the list contains {doubt} of these errors" in written
    assert f"by the probability of the annotated span has {chance} there (" in written
    both = table_rows((PROJECT / "annotate.md").read_text(encoding="utf8"))[-1]
    assert f"{both[4]} chosen texts reach the F1 of {both[2]} random ones" in written


def test_the_page_of_training_says_what_weights_gain():
    rows = table_rows((PROJECT / "worth.md").read_text(encoding="utf8"))
    written = " ".join(page("docs/training.md").split())
    found = {tuple(row[:2]): (row[2], row[4]) for row in rows}
    cora, conll04 = (" to ".join(found[name, "20%"]) for name in ("cora", "conll04"))
    assert f"this raises F1 on Cora from {cora} and on CoNLL04 from {conll04};" in written
