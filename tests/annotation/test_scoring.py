"""Annotated spans that have white space at an end are right where the model finds them without it: in every
command that compares the two.
"""

import pytest
import spacy
from small_corpus import fit, untrained
from spacy.tokens import Span
from spacy.training import Example

from spacy_hocrf.annotation.readers import predicted_of
from spacy_hocrf.annotation.scoring import comparable
from spacy_hocrf.cli.calibrate import calibrate
from spacy_hocrf.cli.counts import count_items
from spacy_hocrf.cli.doubts import doubts_of
from spacy_hocrf.cli.pipelines import scorer_of

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
    nlp.initialize(lambda: data)
    fit(nlp, data)
    return nlp, gold


@pytest.mark.slow
def test_they_are_right_in_nlp_evaluate(trained):
    nlp, gold = trained
    metric = nlp.get_pipe("hocrf").target.metric
    before = [doc.to_bytes() for doc in gold]
    data = [Example(bare, doc) for bare, doc in zip(bare_docs(nlp, gold), gold)]
    assert nlp.evaluate(data)[metric] == 1.0
    assert [doc.to_bytes() for doc in gold] == before


@pytest.mark.slow
def test_they_are_right_in_counts_calibration_and_doubts(trained):
    nlp, gold = trained
    pipe = nlp.get_pipe("hocrf")
    scorer = scorer_of(pipe.target)
    predicted = list(nlp.pipe(bare_docs(nlp, gold)))
    counts = count_items(scorer, [predicted], gold)
    assert counts.correct.sum() == counts.predicted.sum() == counts.gold.sum() == 2 * len(NAMES)
    found = calibrate(nlp, gold)
    assert found.right.sum() == 2 * len(NAMES)
    assert (found.annotated > 0.5).all()
    for number, reading in enumerate(pipe.readings(bare_docs(nlp, gold))):
        doubts = doubts_of(number, reading, scorer.items(gold[number]), None)
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
    nlp = spacy.blank("en")
    target = nlp.add_pipe("hocrf").target
    doc = nlp.make_doc("Ada \n met Max")
    assert [token.text for token in doc] == ["Ada", "\n ", "met", "Max"]
    doc.set_ents([Span(doc, 0, 2, "PER")], default="missing")
    (found,) = comparable([Example(doc.copy(), doc)], target)
    assert [token.ent_iob for token in found.reference] == [3, 2, 0, 0]


def bare_docs(nlp, docs):
    """Their tokens alone."""
    return [predicted_of(nlp, doc, gold_preproc=True) for doc in docs]
