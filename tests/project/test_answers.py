"""The project answers: curves and errors that are made up, and both scripts on a few texts."""

from pathlib import Path

import numpy as np
import pytest
from documentation import page
from project_checks import check_declarations, table_rows

PROJECT = Path(__file__).parents[2] / "project" / "answers"
LOADS = ("answers", "defaults")

pytestmark = pytest.mark.skipif(
    not PROJECT.exists(), reason="project/answers is not in this distribution"
)


def test_commands_have_what_they_need():
    check_declarations("answers")


# -------------------- what to annotate next

CURVE = [(100, 0.5), (200, 0.6), (300, 0.6), (400, 0.55), (500, 0.7)]


@pytest.mark.parametrize(
    "f, expected",
    [(0.4, 100), (0.5, 100), (0.55, 150), (0.6, 200), (0.65, 466.7), (0.8, float("inf"))],
)
def test_the_texts_needed_are_those_of_the_first_crossing(load, f, expected):
    assert load("annotate").needed(CURVE, f) == pytest.approx(expected, abs=0.1)


def rows(way, seed, scores):
    return [
        {"way": way, "seed": seed, "texts": 100 * (i + 1), "f": f} for i, f in enumerate(scores)
    ]


RESULTS = [
    *rows("random", 0, [0.3, 0.4, 0.5]),
    *rows("doubt", 0, [0.3, 0.5, 0.55]),
    *rows("random", 1, [0.3, 0.4, 0.6]),
    *rows("doubt", 1, [0.3, 0.5, 0.55]),
]


def test_the_report_says_what_share_of_the_texts_is_enough(load, check_plot, tmp_path):
    module = load("annotate")
    load("common.plot").publish(RESULTS, tmp_path / "a.md", module.render, module.draw)
    check_plot(tmp_path / "a.png")
    _, _, first, second, both = table_rows((tmp_path / "a.md").read_text(encoding="utf8"))
    assert first == ["0", "50.0%", "300", "55.0%", "200", "67%"]
    assert second == ["1", "60.0%", "300", "55.0%", "never", ""]
    assert both == ["mean", "55.0%", "300", "55.0%", "300", "100%"]


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


def test_both_ways_begin_alike_and_spend_the_budget(load, monkeypatch):
    module = load("annotate")
    for name, value in (("HELD", 10), ("STEP", 5), ("BUDGET", 15)):
        monkeypatch.setattr(module, name, value)
    asked = []
    known = module.next_texts
    monkeypatch.setattr(
        module, "next_texts", lambda nlp, docs: asked.append(len(docs)) or known(nlp, docs)
    )
    curves = {way: list(module.annotate(tweets(load, 30), way, 1)) for way in module.WAYS}
    assert all([row["texts"] for row in curve] == [5, 10, 15] for curve in curves.values())
    assert curves["random"][0]["f"] == curves["doubt"][0]["f"]
    assert asked == [15, 10]


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


def test_an_error_is_hit_by_what_overlaps_it_in_its_text(load):
    module = load("planted")
    span = load("spacy_hocrf.pipeline.reading").ScoredSpan
    doubts = [
        module.Doubt(0, span(2, 4, "A", 0.1), None, 0.1, 0.9),
        module.Doubt(1, None, span(0, 3, "B", 0.8), 0.2, 0.8),
    ]
    errors = {(0, 3, 5), (0, 4, 5), (1, 2, 3), (2, 0, 9)}
    assert module.hit(doubts, errors) == {(0, 3, 5), (1, 2, 3)}
    assert [module.improbable(doubt) for doubt in doubts] == [0.9, 0.8]


# -------------------- corrections, and rules


def test_errors_beside_a_correction_are_those_of_other_tokens(load):
    module = load("correct")
    gold = {(0, 2, "A"), (2, 4, "B"), (5, 6, "A")}
    found = {(0, 2, "B"), (2, 4, "B"), (4, 6, "A")}
    assert module.errors(found, gold, range(2), 6) == (1, 2)
    assert module.errors(gold | {(4, 5, "")}, gold, range(4, 5), 6) == (0, 0)
    assert module.best_match((1, 4, "A"), gold) == (2, 4, "B")
    assert module.best_match((4, 5, "A"), gold) == (4, 5, "")


def test_corrections_of_small_texts(load, monkeypatch):
    module = load("correct")
    monkeypatch.setattr(module, "FOLDS", 2)
    texts = tweets(load, 8)
    (row,) = [module.row("tweets", {"train": texts[:4], "dev": texts[4:]})]
    assert row[:2] == ("tweets", "8")
    nlp = load("spacy").blank("xx")
    nlp.add_pipe("hocrf")
    module.learn(
        nlp, [module.Example(d, d) for d in (module.make_doc(nlp.vocab, t) for t in texts)]
    )
    wrong = texts[0]._replace(spans=[(0, 1, "LOC"), (3, 4, "PER")])
    effect = module.effect_of(nlp, wrong)
    assert effect.tokens[0] == effect.spans[0] / 2 == 1
    assert module.effect_of(nlp, texts[0]) is None
    assert not module.possible(nlp.get_pipe("hocrf"), (0, 2, "PER"))


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


# -------------------- rules


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


# -------------------- texts of which a little is known


def test_what_is_told_of_a_text_is_as_it_is_annotated(load):
    module = load("partly")
    text = module.Text(["a", "b", "c", "d"], [(0, 2, "A"), (3, 4, "B")])
    for seed in range(5):
        rng = np.random.default_rng(seed)
        one, two = module.known_of(text, "a word of each", rng)
        assert one[2:] == ("A", "inside") and 0 <= one[0] < one[1] == one[0] + 1 <= 2
        assert two == (3, 4, "B", "inside")
        assert module.known_of(text, "one word", rng)[0][3] == "inside"
        assert module.known_of(text, "one span", rng)[0][:3] in text.spans


@pytest.mark.parametrize("way", ["nothing", "one word", "one span", "everything"])
def test_a_fifth_is_annotated_and_the_others_as_the_way_says(load, way):
    module = load("partly")
    parts = {"train": tweets(load, 10), "dev": tweets(load, 4)}
    nlp = module.spacy.blank("xx")
    examples = module.examples_of(nlp, parts["train"], way, 0)
    known = [bool(example.reference.ents) for example in examples]
    assert known == [True] * 2 + {"nothing": [], "everything": [True] * 8}.get(way, [False] * 8)
    least, most = (float(cell) for cell in module.measured(parts, way, 2)[1:3])
    assert 0 <= least <= most <= 100


# -------------------- trust


def test_thresholds_of_one_half_are_tried_on_the_other(load):
    module = load("trust")
    known = dict(annotated=np.linspace(0.3, 1.0, 400), text=np.arange(400) // 2)
    empty = {name: np.zeros(0) for name in ("label", "probability", "right", "annotated_label")}
    found = module.Calibration(**empty, **known)
    assert {module.reaches(found, 200, 0.9, split) for split in range(3)} <= {"reached", "missed"}
    cannot = module.replace(found, annotated=np.where(np.arange(400) % 9, known["annotated"], 0.0))
    assert module.reaches(cannot, 200, 0.95, 0) == "H209"
    assert module.reaches(found, 200, 0.999, 0) == "H208"


def test_temperatures_and_probabilities_of_small_texts(load, monkeypatch):
    module = load("trust")
    texts = tweets(load, 24)
    row = module.tempered("tweets", {"train": texts[:16], "dev": texts[16:]}, 12)
    assert row[:2] == ("tweets", "12") and len(row) == 9
    monkeypatch.setattr(module, "FOLDS", 2)
    found = module.cross_calibrated(texts, 0)
    assert len(found.annotated) == 48 and set(found.text) == set(range(24))


# -------------------- what is written


def test_the_readme_has_the_tables_that_were_printed():
    readme = table_rows((PROJECT / "README.md").read_text(encoding="utf8"))
    for name in ("annotate", "planted", "correct", "once", "rules", "partly", "trust"):
        printed = table_rows((PROJECT / f"{name}.md").read_text(encoding="utf8"))
        assert printed and all(row in readme for row in printed)


def test_the_page_of_constraints_says_what_was_measured():
    _, *rows = table_rows((PROJECT / "partly.md").read_text(encoding="utf8"))
    nothing, word, _, each, everything = (row[2] for row in rows if row[0] == "cora")
    written = " ".join(page("docs/constraints.md").split())
    assert f"from {nothing} to {word}, a word of each of their spans to {each}" in written
    assert f"all annotated it is {everything} " in written


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
    assert f"the first tenth of the list has {doubt} of these errors" in written
    assert f"by the probability of the annotated span has {chance} (" in written
    both = table_rows((PROJECT / "annotate.md").read_text(encoding="utf8"))[-1]
    assert f"{both[4]} chosen texts come to the F1 of {both[2]} random ones" in written
