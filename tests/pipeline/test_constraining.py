"""Constraints in ordinary pipelines: from the config, from a span group, as corrections; saved, loaded,
in several processes; and every error.
"""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise

import numpy as np
import pytest
import spacy
from oracle import so_many
from small_corpus import (
    MODELS,
    entity_scores,
    found,
    like_shared,
    shared,
    trained,
    untrained,
    with_entities,
    words,
)
from spacy.tokens import Doc, DocBin, Span
from spacy.util import raise_error

from spacy_hocrf.annotation.acceptance import Acceptance
from spacy_hocrf.annotation.spans import named
from spacy_hocrf.annotation.text_constraints import KINDS
from spacy_hocrf.rules import compiled, ends, violations
from spacy_hocrf.rules.constraints import Constraints
from spacy_hocrf.types import Segments

KEY = "hocrf_constraints"
TEXT = "Ada Lovelace was born in London ."
SPANS = {name: model for name, model in MODELS.items() if name != "tagger"}


def constraints(**settings):
    return {"@misc": "spacy-hocrf.Constraints.v1", **settings}


@pytest.fixture
def nlp():
    return shared("semi-CRF, outside tokens")


def like(nlp, factory="hocrf", **settings):
    """A pipeline with the same model and other constraints."""
    other = untrained(factory, constraints=constraints(**settings))
    return other.from_bytes(nlp.to_bytes())


@pytest.mark.slow
def test_a_pipeline_without_constraints_predicts_as_before(nlp):
    assert found(nlp(TEXT)) == [(0, 2, "PERSON"), (5, 6, "PLACE")]
    doc = like(nlp)(TEXT)
    assert found(doc) == found(nlp(TEXT))
    scores = [list(entity_scores(each)) for each in (doc, nlp(TEXT))]
    assert scores[0] == scores[1]


@pytest.mark.parametrize("name", SPANS)
def test_each_label_at_most_once(name):
    factory, model = SPANS[name]
    plain = shared(name)
    text = "Ada Lovelace likes Alan Turing and Paris"
    assert sum(label == "PERSON" for *_, label in found(plain(text))) == 2
    other = untrained(factory, model, constraints=constraints(at_most={"PERSON": 1}))
    other.from_bytes(plain.to_bytes())
    once = found(other(text))
    assert sum(label == "PERSON" for *_, label in once) == 1
    assert (6, 7, "PLACE") in once


def test_what_is_forbidden_at_the_edges_and_between(nlp):
    text = "Ada Lovelace Paris"
    assert found(like(nlp, at_least={"PERSON": 1})(text))[0][2] == "PERSON"
    doc = like(nlp, forbidden=[["", "PERSON"], ["PERSON", "PLACE"]])(text)
    assert all(label != "PERSON" or start > 0 for start, _, label in found(doc))
    doc = like(nlp, required=[["PERSON", "PLACE"], ["", "PERSON"]])(text)
    assert [label for *_, label in found(doc)] == ["PERSON", "PLACE"]


def test_more_rules_than_a_memory_has_states_for(nlp, monkeypatch):
    """Rules that were too improbable to be remembered hold all the same."""
    text = "Ada Lovelace likes Alan Turing and Paris"
    expected = found(like(nlp, at_most={"PERSON": 1}, tolerance=0.0)(text))
    once = like(nlp, at_most={"PERSON": 1}, tolerance=0.999999)
    assert found(once(text)) == expected
    alternatives = once.get_pipe("hocrf").reading(once.make_doc(text)).best(30)
    assert len(alternatives) == 30
    assert all(str(each.spans).count("PERSON") < 2 for each in alternatives)
    monkeypatch.setattr(compiled, "MAX_JOINT_STATES", 1)
    refused = pytest.raises(ValueError, match=r"H219.*more than 1 states")
    with pytest.warns(UserWarning, match="W049"), refused:
        once(text)


def test_the_best_readings_of_texts_that_remember_different_rules(nlp, monkeypatch):
    monkeypatch.setattr(violations, "READ_STATES", 1)  # just those of the tolerance
    other = untrained(n_best=3, constraints=constraints(at_most={"PERSON": 1, "PLACE": 1}))
    other.from_bytes(nlp.to_bytes())
    pipe = other.get_pipe("hocrf")
    texts = ["It rains .", "Ada Lovelace likes Alan Turing and Paris", TEXT, "London likes Paris"]
    readings = list(pipe.readings(map(other.make_doc, texts)))
    assert len({id(reading._batch) for reading in readings}) > 1
    for doc, reading in zip(other.pipe(texts), readings, strict=True):
        groups = [doc.spans[f"hocrf_{rank}"] for rank in (1, 2, 3)]
        for group, best in zip(groups, reading.best(3), strict=True):
            assert named(group) == best.spans
            assert group.attrs["probability"] == pytest.approx(best.probability)


def test_constraints_of_single_texts(nlp):
    pipe = nlp.get_pipe("hocrf")
    for kind, span, expected in [
        ("span", (2, 3, "PLACE"), {(2, 3, "PLACE")}),
        ("outside", (0, 1, ""), set()),
        ("inside", (1, 2, "PLACE"), {(0, 2, "PLACE"), (1, 2, "PLACE"), (1, 3, "PLACE")}),
        ("only", (0, 2, "PLACE"), set()),
    ]:
        doc = nlp.make_doc(TEXT)
        pipe.constrain(doc, span, kind)
        spans = set(found(pipe(doc)))
        assert (0, 2, "PERSON") not in spans or kind == "span"
        assert not expected or spans & expected, (kind, spans)
    doc = nlp.make_doc(TEXT)
    pipe.constrain(doc, (0, 2, "PERSON"), "not")
    assert (0, 2, "PERSON") not in found(pipe(doc))
    assert pipe.reading(doc).probability(0, 2, "PERSON") == 0.0


@pytest.mark.parametrize("name", MODELS)
def test_many_texts_are_constrained_as_each_by_itself(name, monkeypatch):
    """Constraints of all texts of a batch become structural zeros together."""
    nlp = shared(name)
    pipe, rng, alone = nlp.get_pipe("hocrf"), np.random.default_rng(3), []
    once = Constraints(at_most={pipe.labels[0]: 1}, tolerance=0.0)
    monkeypatch.setattr(pipe, "constraints", once)
    for doc in (randomly_constrained(nlp, rng) for _ in range(so_many(200))):
        with suppress(ValueError):  # H216 and H217 are tested elsewhere
            alone.append((doc, pipe.reading(doc).log_partition, pipe.predict([doc])[0].spans))
    docs, log_z, spans = zip(*alone)
    assert len(docs) > so_many(200) / 4
    assert {each.id_ for doc in docs for each in doc.spans[KEY]} >= {*KINDS} - {"outside"}
    together = [reading.log_partition for reading in pipe.readings(docs)]
    np.testing.assert_allclose(together, log_z, rtol=1e-9)  # of other sums, side by side
    assert [each.spans for each in pipe.predict(docs)] == list(spans)


def randomly_constrained(nlp, rng):
    """A Doc with up to four constraints; white space is in it."""
    known = ["Ada", "Lovelace", "likes", "Paris", "\n", "New", "York"]
    doc = words(nlp, *rng.choice(known, rng.integers(1, 9)).tolist())
    kinds, labels = [*KINDS, ""], nlp.get_pipe("hocrf").labels
    doc.spans[KEY] = [
        Span(doc, start, rng.integers(start, len(doc) + 1), label, span_id=kind)
        for kind, label in zip(rng.choice(kinds, rng.integers(1, 5)), rng.choice(labels, 4))
        for start in [rng.integers(0, len(doc))]
    ]
    return doc


@pytest.mark.parametrize("name", MODELS)
def test_a_correction_holds_and_other_spans_are_decided_anew(name):
    factory, _ = MODELS[name]
    nlp = shared(name)
    pipe, doc = nlp.get_pipe("hocrf"), nlp(TEXT)
    label = "NAME" if factory == "hocrf_tagger" else "PLACE"
    corrected = pipe.correct(doc, Span(doc, 2, 3, label))
    assert corrected is doc
    if factory == "hocrf_tagger":
        assert doc[2].tag_ == "NAME"
        return
    assert (2, 3, "PLACE") in found(doc)
    pipe.correct(doc, (2, 3, ""))
    assert all(not start <= 2 < end for start, end, _ in found(doc))
    pipe.correct(doc, (1, 3, "PLACE"))  # after all
    assert (1, 3, "PLACE") in found(doc)
    pipe.correct(doc, (1, 3, "PLACE"), "not")
    assert (1, 3, "PLACE") not in found(doc)
    pipe.correct(doc, (0, 1, "PERSON"))  # in the place of an older one that it overlaps
    pipe.correct(doc, (0, 2, "PERSON"))
    assert (0, 2, "PERSON") in found(doc)


@pytest.mark.parametrize(
    "found",
    [
        [(0, 1, "PERSON")],
        [],
        None,
        "PERSON",
        3,
        (0, 1),
        (0, 1, 2),
        (0.5, 1, "PERSON"),
        ("0", 1, ""),
    ],
)
def test_what_is_no_span_is_refused_wherever_one_is_expected(nlp, found):
    pipe, doc = nlp.get_pipe("hocrf"), nlp.make_doc(TEXT)
    before, reading = doc.to_bytes(), pipe.reading(doc)
    for ask in (
        lambda: pipe.constrain(doc, found),
        lambda: pipe.correct(doc, found),
        lambda: pipe.explain(doc, found),
        lambda: pipe.explain(doc, (0, 1, "PERSON"), instead=[found]),
        lambda: reading.log_probability([found]),
        lambda: reading.probabilities([found]),
    ):
        with pytest.raises(ValueError, match=r"H569.*first token, one past the last"):
            ask()
    assert doc.to_bytes() == before
    with pytest.raises(ValueError, match=r"H569.*Doc"):
        pipe.constrain(doc, doc)


def test_a_span_may_have_numbers_of_numpy(nlp):
    pipe, doc = nlp.get_pipe("hocrf"), nlp.make_doc(TEXT)
    pipe.constrain(doc, (np.int64(0), np.int32(1), "PERSON"))
    assert [(span.start, span.end) for span in doc.spans[KEY]] == [(0, 1)]
    reading = pipe.reading(doc)
    found = reading.probabilities([Span(doc, 0, 1, "PERSON")]).tolist()
    assert found == [pytest.approx(1.0)]


@pytest.mark.parametrize("place", [(1, 1), (2, 1), (-1, 1), (0, 99)])
def test_a_stretch_that_is_none_is_refused_and_the_doc_can_be_copied(nlp, place):
    pipe, doc = nlp.get_pipe("hocrf"), nlp(TEXT)
    for ask in (pipe.constrain, pipe.correct):
        with pytest.raises(ValueError, match=rf"H217.*{place[0]} to {place[1]}.*no stretch"):
            ask(doc, (*place, "PERSON"))
    assert KEY not in doc.copy().spans


def test_a_correction_that_cannot_be_leaves_the_doc_as_it_was(nlp):
    pipe, doc = nlp.get_pipe("hocrf"), nlp(TEXT)
    before = doc.to_bytes()
    with pytest.raises(ValueError, match=r"H217.*'CITY'"):
        pipe.correct(doc, (0, 1, "CITY"))
    with pytest.raises(ValueError, match=r"H217.*longer"):
        pipe.correct(doc, (0, 7, "PLACE"))
    assert doc.to_bytes() == before


def test_a_correction_keeps_entities_of_earlier_components(nlp):
    pipe = nlp.get_pipe("hocrf")
    doc = pipe(with_entities(nlp.make_doc(TEXT), (2, 4, "EVENT")))
    assert (2, 4, "EVENT") in found(doc)
    pipe.correct(doc, (5, 6, "PERSON"))
    assert {(2, 4, "EVENT"), (5, 6, "PERSON")} <= set(found(doc))


@pytest.mark.parametrize("label", ["PLACE", ""])
@pytest.mark.parametrize("before", [False, True])
def test_a_correction_takes_the_place_of_an_entity_of_an_earlier_component(nlp, before, label):
    pipe, doc = nlp.get_pipe("hocrf"), with_entities(nlp.make_doc(TEXT), (1, 3, "PERSON"))
    if before:
        doc = pipe(doc)
    pipe.correct(doc, (2, 3, label))
    there = [span for span in found(doc) if span[0] <= 2 < span[1]]
    assert there == ([(2, 3, label)] if label else [])


@pytest.mark.parametrize("before", [False, True])
def test_a_correction_takes_the_place_of_a_tag_of_an_earlier_component(before):
    nlp = untrained("hocrf_tagger", scores=True).from_bytes(shared("tagger").to_bytes())
    pipe, doc = nlp.get_pipe("hocrf"), nlp.make_doc(TEXT)
    doc[2].tag_ = "NAME"
    if before:
        doc = pipe(doc)
    pipe.correct(doc, (2, 3, "WORD"))
    assert doc[2].tag_ == "WORD"


def test_presets_give_way_to_constraints_of_the_text():
    nlp = trained()
    pipe = nlp.get_pipe("hocrf")
    doc = with_entities(nlp.make_doc(TEXT), (0, 2, "PERSON"))
    doc.spans[KEY] = [Span(doc, 1, 3, "PLACE", span_id="span")]
    with pytest.warns(UserWarning, match=r"W036.*'Ada Lovelace"):
        reading = pipe.reading(doc)
    assert reading.probability(1, 3, "PLACE") == pytest.approx(1.0)


@pytest.mark.parametrize(
    "settings",
    [{"at_most": {"PERSON": 1}}, {"forbidden": [["", "PERSON"]]}, {"at_least": {"PLACE": 9}}],
)
def test_entities_that_break_a_rule_stay_with_one_warning(nlp, settings):
    other = like(nlp, **settings)
    pipe, before = other.get_pipe("hocrf"), [(0, 1, "PERSON"), (3, 4, "PERSON")]
    docs = [with_entities(nlp.make_doc(TEXT), *before) for _ in range(3)]
    if "at_least" in settings:  # no reading of so few tokens, whatever is set
        with pytest.raises(ValueError, match="H216"), pytest.warns(UserWarning, match="W036"):
            pipe(docs[0])
        return
    with pytest.warns(UserWarning) as caught:
        done = list(pipe.pipe(docs))
    assert [str(each.message)[:6] for each in caught] == ["[W036]"]
    assert all(set(before) <= set(found(doc)) for doc in done)
    plain = [nlp.make_doc(TEXT) for _ in range(2)]
    assert all("PERSON" not in found(doc)[1:] for doc in pipe.pipe(plain))  # and no warning


def test_white_space_beside_a_span_that_must_not_be(nlp):
    model = {"max_length": 4}
    rows = [("a b", [(0, 1, "X"), (2, 3, "Y")]), ("a a b", [(0, 3, "X"), (4, 5, "Y")])]
    labelled = trained(model=model, rows=rows)
    pipe = labelled.get_pipe("hocrf")
    assert pipe.structure.scheme.outside < 0
    doc = words(labelled, "\n", "a", "\n", "b")
    pipe.constrain(doc, (1, 2, "X"), "not")
    assert (1, 2, "X") not in found(pipe(doc))
    assert pipe.reading(doc).probability(1, 2, "X") == pytest.approx(0.0, abs=1e-12)


@pytest.mark.slow
def test_saved_loaded_and_in_several_processes(nlp, tmp_path):
    other = like(nlp, at_most={"PERSON": 1})
    other.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    assert loaded.get_pipe("hocrf").constraints == Constraints(at_most={"PERSON": 1})
    texts = ["Ada Lovelace likes Alan Turing and Paris", TEXT] * 500
    alone = [found(other(text)) for text in texts[:2]]
    for one in (other, loaded):
        assert [found(doc) for doc in one.pipe(texts)] == alone * 500
    assert [found(doc) for doc in loaded.pipe(texts[:6], n_process=2)] == alone * 3


def test_constraints_of_a_text_are_kept_with_the_text(nlp):
    pipe, doc = nlp.get_pipe("hocrf"), nlp.make_doc(TEXT)
    pipe.constrain(doc, (0, 2, "PERSON"), "not")
    (again,) = DocBin(docs=[doc]).from_bytes(DocBin(docs=[doc]).to_bytes()).get_docs(nlp.vocab)
    assert found(pipe(again)) == found(pipe(doc)) != found(nlp(TEXT))


@pytest.mark.slow
def test_spans_with_all_that_are_probable_keep_constraints():
    nlp = trained("hocrf_spans", select="all", threshold=0.001)
    other = untrained(
        "hocrf_spans", select="all", threshold=0.001, constraints=constraints(at_most={"PERSON": 0})
    ).from_bytes(nlp.to_bytes())
    docs = nlp(TEXT), other(TEXT)
    labels = [{span.label_ for span in doc.spans["sc"]} for doc in docs]
    assert labels == [{"PERSON", "PLACE"}, {"PLACE"}]


@pytest.mark.parametrize(
    "settings, code",
    [
        ({"forbidden": [["A"]]}, "H214"),
        ({"forbidden": [["", ""]]}, "H214"),
        ({"required": ["AB"]}, "H214"),
        ({"at_most": {"A": -1}}, "H214"),
        ({"at_most": {"A": 1}, "at_least": {"A": 2}}, "H214"),
        ({"tolerance": 1}, "H214"),
        ({"spans_key": ""}, "H214"),
    ],
)
def test_settings_that_are_none_are_refused(settings, code):
    with pytest.raises(ValueError, match=code):
        Constraints(**settings)


def test_what_cannot_be_a_setting_is_refused():
    with pytest.raises(ValueError, match="H214"):
        untrained(constraints={"at_most": {"PERSON": 1}})


def test_errors_name_the_text_and_the_tokens(nlp):
    with pytest.raises(ValueError, match=r"H215.*CITY.*PERSON"):
        like(nlp, at_most={"CITY": 1})(TEXT)
    pipe = nlp.get_pipe("hocrf")
    for rows, message in [
        ([(0, 1, "PERSON", "all")], r"H217.*tokens 0 to 1.*'Ada.*'all'"),
        (
            [(0, 2, "PERSON", "span"), (1, 3, "PLACE", "span")],
            r"H217.*tokens 1 to 3 of 'Ada.*PLACE.*overlaps PERSON on tokens 0 to 2",
        ),
        (
            [(0, 1, "PERSON", "span"), (0, 1, "PERSON", "not")],
            r"H216.*'Ada.*span PERSON on tokens 0 to 1, not PERSON on tokens 0 to 1",
        ),
        ([(0, 1, "PERSON", "span"), (0, 1, "", "outside")], r"H216.*'Ada.*span PERSON on tokens 0"),
    ]:
        doc = nlp.make_doc(TEXT)
        doc.spans[KEY] = [Span(doc, a, b, label, span_id=kind) for a, b, label, kind in rows]
        with pytest.raises(ValueError, match=message):
            pipe(doc)
    with pytest.raises(ValueError, match="H217"):
        pipe.constrain(nlp.make_doc(TEXT), (0, 1, "PERSON"), "none")


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_constraint_twice_is_the_same_as_once(name, kind):
    nlp = shared(name)
    pipe, docs = nlp.get_pipe("hocrf"), [words(nlp, "Ada", "\n", "was", "born") for _ in range(2)]
    label = "" if kind == "outside" else pipe.labels[0]
    if kind == "outside" and pipe.structure.scheme.outside < 0:
        return
    for doc, last in zip(docs, ([1], [1, 1, 2])):  # white space at the end says nothing
        doc.spans[KEY] = [Span(doc, 0, end, label, span_id=kind) for end in last]
    once, twice = pipe.readings(docs)
    assert twice.log_partition == pytest.approx(once.log_partition, rel=1e-12)
    assert found(next(nlp.pipe(docs))) == found(pipe(docs[1]))


def test_a_text_that_contradicts_itself_is_handed_to_the_error_handler_alone(nlp):
    texts = [TEXT, "In Paris , Emmy slept .", "", "It rains ."]
    expected, handled = [found(nlp(text)) for text in texts], []
    docs = [*map(nlp.make_doc, texts)]
    docs[1].spans[KEY] = [Span(docs[1], 0, 1, "PERSON"), Span(docs[1], 0, 1, "PLACE")]
    pipe = nlp.get_pipe("hocrf")
    pipe.set_error_handler(lambda name, proc, some, error: handled.append((some, str(error))))
    try:
        done = list(nlp.pipe(docs))
    finally:
        pipe.set_error_handler(raise_error)
    assert [found(doc) for doc in done] == [expected[0], *expected[2:]]
    ((some, message),) = handled
    assert some == [docs[1]] and "[H217]" in message and "In Paris" in message


def test_spans_that_the_encoding_cannot_tell_apart_contradict_each_other():
    nlp = shared("CRF, io")
    doc = nlp.make_doc(TEXT)
    for start in (0, 1):
        nlp.get_pipe("hocrf").constrain(doc, (start, start + 1, "PERSON"))
    with pytest.raises(ValueError, match="H216"):
        nlp.get_pipe("hocrf")(doc)


@pytest.mark.parametrize("name", ["semi-CRF, outside tokens", "CRF, bio", "CRF, bieso"])
@pytest.mark.parametrize("text", ["\n 12", "12 \n", "12 \n 12"])
def test_white_space_alone_keeps_no_rule(name, text):
    nlp = like_shared(name, constraints=constraints(at_least={"PERSON": 1}))
    reading = nlp.get_pipe("hocrf").reading(nlp.make_doc(text))
    for spans in (found(nlp(text)), *(each.spans for each in reading.best(20))):
        assert "PERSON" in [label for *_, label in spans]


BLANK = ["", " ", "\n\n", " \n  "]


@pytest.mark.parametrize("text", BLANK)
def test_a_text_of_white_space_alone_has_no_span_whatever_it_must_have(nlp, text):
    """So that an empty line does not end the reading of a file."""
    nlp = like(nlp, at_least={"PERSON": 1})
    docs = list(nlp.pipe([TEXT, text, TEXT]))
    assert [bool(doc.ents) for doc in docs] == [True, False, True]
    assert found(nlp(text)) == []
    own = nlp.make_doc(text)
    first, reading, _ = nlp.get_pipe("hocrf").readings([nlp.make_doc(TEXT), own, own])
    assert (reading.sample(2), reading.entropy()) == ([(), ()], 0.0)
    assert [(each.spans, each.probability) for each in reading.best(2)] == [((), 1.0)]
    assert reading.tokens().tolist() == [[0.0, 0.0, 1.0]] * len(own)
    breaks = [*first.expected_breaks().values(), *reading.expected_breaks().values()]
    assert list(map(str, breaks)) == ["0.0", "1.0"]


@pytest.mark.parametrize("text", BLANK)
def test_no_span_is_the_only_reading_of_a_text_that_cannot_keep_a_rule(nlp, text):
    own = untrained("hocrf", n_best=2, constraints=constraints(at_least={"PERSON": 1}))
    nlp = own.from_bytes(nlp.to_bytes())
    pipe = nlp.get_pipe("hocrf")
    pipe.acceptance = Acceptance(0.9, 0.9, 0.5, 10, 5)
    first, doc = nlp.pipe([TEXT, text])
    assert doc._.hocrf_probability == 1.0
    assert [len(each.spans) for each in (first, doc)] == [2, 1]


def test_white_space_that_no_segmentation_covers_cannot_be_asked_about():
    rows = [("Ada Lovelace", [(0, 12, "PERSON")]), ("Ada", [(0, 3, "PERSON")])]
    nlp = trained(model={"repeats": False, "max_length": 2}, rows=rows, steps=1)
    doc = words(nlp, "\n", "\n", "\n")
    assert found(nlp(doc)) == []
    with pytest.raises(ValueError, match="H007"):
        nlp.get_pipe("hocrf").reading(doc)


def test_text_in_no_span_cannot_be_asked_of_a_model_that_has_none():
    nlp = trained("hocrf_tagger")
    doc = nlp.make_doc(TEXT)
    nlp.get_pipe("hocrf").constrain(doc, (0, 1, ""), "outside")
    with pytest.raises(ValueError, match=r"H217.*no span"):
        nlp.get_pipe("hocrf")(doc)


def test_nothing_is_constrained_in_training(nlp):
    other = trained(constraints=constraints(at_most={"PERSON": 0}))
    weights = [each.get_pipe("hocrf").model.get_param("W") for each in (nlp, other)]
    np.testing.assert_array_equal(*weights)


def test_a_doc_without_tokens(nlp):
    other = like(nlp, at_most={"PERSON": 1}, forbidden=[["", "PERSON"]])
    assert found(other(Doc(nlp.vocab))) == []


def test_the_neighbours_of_spans_are_labels_text_and_edges():
    """Against a walk along every text."""
    rng = np.random.default_rng(5)
    for _ in range(300):
        allowed = rng.random((4, 4)) < 0.8
        lengths, rows, expected = rng.integers(0, 6, 5), [], []
        for text, length in enumerate(lengths.tolist()):
            chain, at = [3], 0
            while at < length:
                end, label = int(rng.integers(at + 1, length + 1)), int(rng.integers(0, 3))
                if label < 2:
                    rows.append((text, at, end, label))
                if label < 2 or chain[-1] != 2:
                    chain.append(label)
                at = end
            expected.append(all(allowed[a, b] for a, b in pairwise([*chain, 3]) if chain != [3]))
        columns = np.array(rows, dtype=np.int32).reshape(-1, 4).T
        offsets = np.searchsorted(columns[0], np.arange(6))
        spans = Segments(offsets, *columns[1:])
        assert ends.follows(allowed, spans, lengths).tolist() == expected


@pytest.mark.slow
def test_threads_share_memories_and_keep_few(nlp, monkeypatch):
    monkeypatch.setattr(compiled, "MAX_CACHED_STATES", 2)
    pipe = like(nlp, at_most={"PERSON": 1, "PLACE": 1}, tolerance=0.0).get_pipe("hocrf")
    texts = ["Ada Lovelace likes Alan Turing and Paris", "Paris and London", TEXT] * 30
    expected = [found(pipe(nlp.make_doc(text))) for text in texts]
    with ThreadPoolExecutor(4) as pool:
        docs = pool.map(lambda text: pipe(nlp.make_doc(text)), texts)
        assert [found(doc) for doc in docs] == expected
    assert len(pipe.rules._products) == 1


def test_constraints_and_weights_that_are_changed_count_at_once(nlp):
    pipe = like(nlp).get_pipe("hocrf")
    before = found(pipe(nlp.make_doc(TEXT)))
    pipe.constraints = Constraints(at_most={"PERSON": 0})
    assert "PERSON" not in {label for *_, label in found(pipe(nlp.make_doc(TEXT)))}
    pipe.constraints = None
    with pytest.raises(ValueError, match=r"H214.*dict.*Constraints\.v1"):
        pipe.constraints = {"at_most": {"PERSON": 0}}
    assert found(pipe(nlp.make_doc(TEXT))) == before
    pipe.model.set_param("W", np.full_like(pipe.model.get_param("W"), 1e-6))
    assert found(pipe(nlp.make_doc(TEXT))) != before
