"""What commands count and draw is what Docs show, with what earlier components have set."""

import json
from math import inf

import numpy as np
import pytest
from pytest import approx
from small_corpus import ambiguous, examples, trained
from spacy.tokens import Span
from spacy.training import Example

from spacy_hocrf.cli.accept import whole_texts
from spacy_hocrf.cli.calibrate import calibrate
from spacy_hocrf.cli.counts import count_items
from spacy_hocrf.cli.doubt import next_texts
from spacy_hocrf.cli.doubts import doubts_of
from spacy_hocrf.cli.label.estimates import Decided, estimates
from spacy_hocrf.cli.pipelines import ready_docs, scorer_of
from spacy_hocrf.cli.show import show
from spacy_hocrf.cli.shown import ShownText

PATTERNS = [
    {"label": "VERB", "pattern": "met"},  # a label that the model does not have
    {"label": "PLACE", "pattern": "Washington"},  # often a person
]


@pytest.fixture(scope="module", params=["entity_ruler", "hocrf"])
def nlp(request):
    """A component behind others, one of ours among them, whose probabilities have the same key."""
    nlp = trained("hocrf", {}, rows=ambiguous(36), steps=20)
    if request.param == "hocrf":
        places = [
            (text, [(0, 5, "PLACE")] if text.startswith("Paris") else [])
            for text, _ in ambiguous(36)
        ]
        nlp.add_pipe("hocrf", "places", source=trained(rows=places), first=True)
    nlp.add_pipe("entity_ruler", first=True).add_patterns(PATTERNS)
    return nlp


@pytest.fixture(scope="module")
def gold(nlp):
    """Texts in which the verbs are annotated, but for one."""
    found = [example.reference for example in examples(nlp, ambiguous(72))]
    for doc in found[1:]:
        verbs = [Span(doc, i, i + 1, "VERB") for i in range(3) if doc[i].text == "met"]
        doc.ents = [*doc.ents, *verbs]
    return found


@pytest.fixture(scope="module")
def after(nlp, gold):
    """The Docs as the pipeline leaves them."""
    return list(nlp.pipe(doc.text for doc in gold))


def spans_of(doc):
    return {(ent.start, ent.end, ent.label_) for ent in doc.ents}


def shown_texts(nlp, gold):
    """Of each text what is known of it, and what is predicted."""
    pipe = nlp.get_pipe("hocrf")
    ready = ready_docs(nlp, gold, "hocrf")
    readings = pipe.readings(ready, keeps_own=True)
    return [(ShownText(each, pipe.target), p) for each, p in zip(readings, pipe.predict(ready))]


def test_what_is_found_is_what_docs_show(nlp, gold, after):
    for (text, prediction), doc in zip(shown_texts(nlp, gold), after, strict=True):
        assert {span[:3] for span in text.predictions(prediction)} == spans_of(doc)
        set_before = spans_of(doc) - {*prediction.spans}
        assert text.before == set_before
        for span in set_before:
            assert text.scored([span]) == [(*span, 1.0)] and (*span, 1.0) in text.spans(0.5)
        assert text.scored([(0, 1, "UNHEARD")]) == [(0, 1, "UNHEARD", 0.0)]
        outside = text.outside()
        assert all(outside[span[0]] == 0 for span in set_before)
        taken = {start for start, _, _ in set_before}
        others = (span for span in text.spans(1e-9) if span[:3] not in set_before)
        assert taken.isdisjoint(t for span in others for t in range(span.start, span.end))


def test_whole_texts_are_right_as_docs_show_them(nlp, gold, after):
    whole = whole_texts(nlp, gold, "hocrf")
    right = [spans_of(a) == spans_of(b) for a, b in zip(after, gold)]
    assert whole.right.tolist() == right and 0 < sum(right) < len(right)
    score = nlp.evaluate([Example(nlp.make_doc(doc.text), doc) for doc in gold])
    assert score["hocrf_texts_acc"] == whole.right.mean()
    assert np.isfinite(whole.behind[whole.right]).all()
    assert whole.behind[0] == inf  # a verb that is annotated nowhere is shown by every reading
    turned = whole_texts(nlp, gold[::-1], "hocrf")
    assert whole.behind.tolist() == turned.behind[::-1].tolist()


def test_pages_have_the_scores_of_evaluate(nlp, gold, after):
    _, rest = show(nlp, gold, "hocrf").split('id="data">')
    data = json.loads(rest.split("</script>")[0])
    score = nlp.evaluate([Example(nlp.make_doc(doc.text), doc) for doc in gold])
    assert data["scores"][0]["f"] == approx(score["ents_f"])
    assert data["scores"][0]["found"] == sum(len(doc.ents) for doc in after)
    assert "VERB" in data["labels"]
    for text, doc in zip(data["texts"], after, strict=True):
        shown = {(start, end, data["labels"][y]) for start, end, y, *_ in text["spans"]}
        assert shown == spans_of(doc)
        verbs = [row for row in text["spans"] if data["labels"][row[2]] == "VERB"]
        assert all(row[3] == 1.0 and row[5] == {"refused": "set"} for row in verbs)
        rows = [row for row in text["gold"] if data["labels"][row[2]] == "VERB"]
        assert all(row[3] == 1.0 for row in rows)
        assert text["sure"] > 0


def test_calibration_counts_what_was_set_before_as_certain(nlp, gold, after):
    counted = calibrate(nlp, gold, "hocrf")
    mine, annotated = counted.label == "VERB", counted.annotated_label == "VERB"
    assert (counted.probability[mine] == 1.0).all() and (counted.annotated[annotated] == 1.0).all()
    assert counted.right[mine].sum() == mine.sum() - 1 == annotated.sum() > 0
    counts = count_items(scorer_of(nlp.get_pipe("hocrf").target), [after], gold)
    assert counted.right.sum() >= counts.correct.sum()


def test_what_was_set_before_is_doubted_where_it_is_not_annotated(nlp, gold):
    texts = [text for text, _ in shown_texts(nlp, gold)]
    for i, (doc, text) in enumerate(zip(gold, texts)):
        items = {(label, start, end) for start, end, label in spans_of(doc)}
        doubts = doubts_of(i, text, items, None)
        for doubt in doubts:
            if doubt.annotated is not None and doubt.annotated[:3] in text.before:
                assert doubt.annotated_chance == 1.0 and doubt.degree < 0.1
        wrong = [doubt.degree for doubt in doubts if doubt.answer == (1, 2, "VERB", 1.0)]
        assert len(wrong) == (i == 0) and all(degree > 0.9 for degree in wrong)


def test_texts_to_annotate_next_have_what_is_shown(nlp, gold, after):
    found = {
        each.number: {span[:3] for span in each.found} for each in next_texts(nlp, gold, "hocrf")
    }
    assert [found[i] for i in range(len(gold))] == [spans_of(doc) for doc in after]


def test_estimates_while_annotating_count_what_is_shown(nlp, gold, after):
    pipe = nlp.get_pipe("hocrf")
    ready = ready_docs(nlp, gold, "hocrf")
    decided = [Decided(Example(*pair), True, (str(i),)) for i, pair in enumerate(zip(ready, gold))]
    *_, said = estimates(lambda some, near=None: pipe, pipe, decided, [], 0)
    counts = count_items(scorer_of(pipe.target), [after], gold)
    f = 2 * counts.correct.sum() / (counts.predicted.sum() + counts.gold.sum())
    pipe.acceptance = None
    assert said.f == approx(f)
