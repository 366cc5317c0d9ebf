"""Annotated spans that have white space at an end are right where the model finds them without it: in every
command that compares the two.
"""

import pytest
import spacy
from small_corpus import bare_docs, learn_from, untrained
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_hocrf.annotation.scoring import comparable, count_whole, is_fully_annotated
from spacy_hocrf.cli.calibrate import calibrate
from spacy_hocrf.cli.counts import count_items
from spacy_hocrf.cli.doubts import doubts_of
from spacy_hocrf.cli.pipelines import scorer_of
from spacy_hocrf.cli.shown import ShownText

NAMES = ("Ada", "Max", "Emmy", "Alan", "Grace")
FACTORIES = ("hocrf", "hocrf_spans")


def with_breaks(nlp):
    """ "name: Ada\\n\\nage: 3" with 'Ada\\n\\n' as the name, as annotation tools mark it, and '\\n 3'."""
    made = []
    for i, name in enumerate(NAMES):
        doc = nlp.make_doc(f"name: {name}\n\nage:\n{i}")
        words = [token.text for token in doc]
        assert words == ["name", ":", name, "\n\n", "age", ":", "\n", str(i)]
        doc.ents = [Span(doc, 2, 4, "PER", kb_id="Q7259"), Span(doc, 6, 8, "AGE")]
        doc.spans["sc"] = [*doc.ents]
        made.append(doc)
    return made


@pytest.fixture(scope="module", params=FACTORIES)
def trained(request):
    nlp = untrained(request.param)
    gold = with_breaks(nlp)
    data = [Example(bare, doc) for bare, doc in zip(bare_docs(nlp, gold), gold)]
    learn_from(nlp, data)
    return nlp, gold


@pytest.mark.slow
def test_they_are_right_in_nlp_evaluate(trained):
    nlp, gold = trained
    metric = nlp.get_pipe("hocrf").target.metric
    before = [doc.to_bytes() for doc in gold]
    data = [Example(bare, doc) for bare, doc in zip(bare_docs(nlp, gold), gold)]
    scores = nlp.evaluate(data)
    assert scores[metric] == scores[nlp.get_pipe("hocrf").target.texts_metric] == 1.0
    assert [doc.to_bytes() for doc in gold] == before


@pytest.mark.slow
def test_they_are_right_in_counts_calibration_and_doubts(trained):
    nlp, gold = trained
    pipe = nlp.get_pipe("hocrf")
    scorer = scorer_of(pipe.target)
    predicted = list(nlp.pipe(bare_docs(nlp, gold)))
    counts = count_items(scorer, [predicted], gold)
    assert counts.correct.sum() == counts.predicted.sum() == counts.gold.sum() == 2 * len(NAMES)
    calibration = calibrate(nlp, gold)
    assert calibration.right.sum() == 2 * len(NAMES)
    assert (calibration.annotated > 0.5).all()
    for number, reading in enumerate(pipe.readings(bare_docs(nlp, gold))):
        doubts = doubts_of(
            number, ShownText(reading, pipe.target), scorer.items(gold[number]), None
        )
        assert max(doubt.degree for doubt in doubts) < 0.5


@pytest.mark.slow
def test_what_is_scored_is_a_copy_without_white_space_at_the_ends(trained):
    nlp, gold = trained
    target = nlp.get_pipe("hocrf").target
    plain = Example(nlp.make_doc("no name"), nlp.make_doc("no name"))
    spaces = Example(nlp.make_doc("a \n b"), nlp.make_doc("a \n b"))
    spaces.reference.ents = [Span(spaces.reference, 1, 2, "PER")]
    spaces.reference.spans["sc"] = [*spaces.reference.ents]
    one, same, empty = comparable([Example(gold[0].copy(), gold[0]), plain, spaces], target)
    spans = one.reference.ents if target.place == "doc.ents" else one.reference.spans["sc"]
    assert [(s.text, s.label_, s.kb_id_) for s in spans] == [
        ("Ada", "PER", "Q7259"),
        ("0", "AGE", ""),
    ]
    assert same is plain
    place = empty.reference.ents if target.place == "doc.ents" else empty.reference.spans["sc"]
    assert len(place) == 0
    if target.place == "doc.ents":
        assert [token.ent_iob_ for token in one.reference] == [*"OOBOOOOB"]


def test_tokens_that_are_not_annotated_stay_so():
    nlp = spacy.blank("xx")
    target = nlp.add_pipe("hocrf").target
    doc = nlp.make_doc("Ada \n met Max")
    assert [token.text for token in doc] == ["Ada", "\n ", "met", "Max"]
    doc.set_ents([Span(doc, 0, 2, "PER")], default="missing")
    (found,) = comparable([Example(doc.copy(), doc)], target)
    assert [token.ent_iob for token in found.reference] == [3, 2, 0, 0]


def test_a_text_without_tokens_is_none_that_is_annotated_completely():
    nlp = spacy.blank("xx")
    for text in ("", "Ada"):
        doc = nlp.make_doc(text)
        doc.ents, doc.spans["sc"] = [], []
        for place, key in (("doc.ents", None), ("doc.spans", "sc")):
            assert is_fully_annotated(doc, place, key) == bool(text)


# Whole texts

WORDS = ["Ada", "met", "Max", "in", "Rome"]
RIGHT = [(0, 1, "PER"), (2, 3, "PER"), (4, 5, "CITY")]
WRONG = {
    "one is missing": RIGHT[:2],
    "one more": [*RIGHT, (3, 4, "CITY")],
    "another label": [*RIGHT[:2], (4, 5, "PER")],
    "another end": [*RIGHT[:2], (3, 5, "CITY")],
    "nothing": [],
}


def marked(nlp, factory, spans, words=WORDS, default="outside"):
    doc = Doc(nlp.vocab, words=words)
    made = [Span(doc, *span) for span in spans]
    if factory == "hocrf_spans":
        doc.spans["sc"] = made
    elif factory == "hocrf":
        doc.set_ents(made, default=default)
    for start, end, label in spans if factory == "hocrf_tagger" else ():
        for token in doc[start:end]:
            token.tag_ = label
    return doc


@pytest.mark.parametrize("factory", FACTORIES)
@pytest.mark.parametrize("found", [RIGHT, *WRONG.values()], ids=["right", *WRONG])
def test_a_text_is_right_if_all_of_its_spans_are_and_it_has_no_others(factory, found):
    nlp = spacy.blank("xx")
    target = nlp.add_pipe(factory).target
    pairs = [
        Example(marked(nlp, factory, spans), marked(nlp, factory, RIGHT))
        for spans in (found, RIGHT)
    ]
    assert count_whole(pairs, target) == (1 + (found == RIGHT), 2)
    assert count_whole([Example(marked(nlp, factory, []), marked(nlp, factory, []))], target) == (
        1,
        1,
    )


@pytest.mark.parametrize("factory", FACTORIES)
def test_texts_are_right_whatever_their_tokens_are(factory):
    nlp = spacy.blank("xx")
    target = nlp.add_pipe(factory).target
    gold = marked(nlp, factory, [(0, 2, "PER")], ["Ada", "Byron", "slept", "."])
    split = ["A", "da", "Byron", "slept", "."]
    pieces = [[(0, 3, "PER")], [(1, 3, "PER")], [(0, 3, "PER"), (4, 5, "X")]]
    found = [Example(marked(nlp, factory, spans, split), gold) for spans in pieces]
    assert [count_whole([each], target)[0] for each in found] == [1, 0, 0]


def test_texts_that_are_annotated_in_part_are_not_counted():
    nlp = spacy.blank("xx")
    nlp.add_pipe("hocrf")
    part = marked(nlp, "hocrf", RIGHT, default="missing")
    space = marked(nlp, "hocrf", [(0, 1, "PER"), (2, 3, "PER")], ["Ada", " ", "Max"], "missing")
    target = nlp.get_pipe("hocrf").target
    assert count_whole([Example(part.copy(), part)], target) == (0, 0)
    assert count_whole([Example(space.copy(), space)], target) == (1, 1)
    assert count_whole([Example(Doc(nlp.vocab), Doc(nlp.vocab))], target) == (0, 0)
    other = spacy.blank("xx").add_pipe("hocrf_spans").target
    assert count_whole([Example(part.copy(), part)], other) == (0, 0)


def test_a_sentence_is_right_if_all_of_its_tags_are():
    nlp = spacy.blank("xx")
    target = nlp.add_pipe("hocrf_tagger").target
    every = [(0, 1, "A"), (1, 2, "B"), (2, 3, "A"), (3, 4, "B"), (4, 5, "A")]
    gold = marked(nlp, "hocrf_tagger", every)
    for tags, expected in ((every, (1, 1)), ([*every[:4], (4, 5, "B")], (0, 1))):
        found = marked(nlp, "hocrf_tagger", tags)
        assert count_whole([Example(found, gold)], target) == expected
    part = marked(nlp, "hocrf_tagger", every[:4])
    assert count_whole([Example(gold.copy(), part)], target) == (0, 0)
