"""Where probabilities are kept: what people do to Docs with predictions, and what is left of them."""

import pickle
import warnings
from itertools import pairwise

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from spacy import displacy
from spacy.tokens import Doc, DocBin, Span, SpanGroup

from spacy_hocrf.annotation import probabilities
from spacy_hocrf.annotation.prediction import Prediction
from spacy_hocrf.annotation.probabilities import register_scores
from spacy_hocrf.annotation.targets import EntsTarget, SpansTarget, TagsTarget

VOCAB = spacy.blank("xx").vocab
WORDS = "Ada Lovelace lives in New York now".split()
NAMES = ("PERSON", "CITY")
FOUND = [(0, 2, 0), (4, 6, 1)]
SCORES = [0.75, 0.5]
register_scores()


def doc_of(words=WORDS):
    return Doc(VOCAB, words=words)


def prediction(spans=FOUND, scores=SCORES, names=NAMES):
    start, end, label = np.array(spans, dtype=np.int32).reshape(-1, 3).T
    return Prediction(start, end, label, names, np.array(scores, dtype=np.float64))


def annotated(target=EntsTarget("hocrf", False, spans=True), found=None):  # noqa: B008 - frozen
    doc = doc_of()
    target.annotate([doc], [found or prediction()])
    return doc


def known(doc, key=None):
    """Text, label and score of each entity, or of each span of a group."""
    return [(s.text, s.label_, s._.hocrf_score) for s in (doc.spans[key] if key else doc.ents)]


EXPECTED = [("Ada Lovelace", "PERSON", 0.75), ("New York", "CITY", 0.5)]


def merged(doc, start=0, end=2):
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[start:end])
    return doc


def split(doc):
    with doc.retokenize() as retokenizer:
        retokenizer.split(doc[2], ["li", "ves"], heads=[doc[1], doc[1]])
    return doc


def at_once(doc):
    """As many tokens as before."""
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[0:2])
        retokenizer.split(doc[6], ["n", "ow"], heads=[doc[5], doc[5]])
    return doc


def through_bytes(doc):
    return Doc(VOCAB).from_bytes(doc.to_bytes())


def through_json(doc):
    return Doc(VOCAB).from_json(doc.to_json(underscore=["hocrf_scores"]))


def through_bin(doc, **settings):
    return next(iter(DocBin(docs=[doc], **settings).get_docs(VOCAB)))


@pytest.mark.parametrize("change", [None, merged, at_once])  # DocBin adds a space to `split`
@pytest.mark.parametrize(
    "way",
    [
        lambda doc: doc,
        Doc.copy,
        through_bytes,
        lambda doc: pickle.loads(pickle.dumps(doc)),
        through_json,
        through_bin,
        lambda doc: through_bin(doc, store_user_data=True),
        lambda doc: Doc.from_docs([doc]),
        lambda doc: doc[:].as_doc(copy_user_data=True),
    ],
    ids="same copy bytes pickle json bin bin_with_user_data from_docs as_doc".split(),
)
@pytest.mark.parametrize(
    "target, key", [(EntsTarget("hocrf", False, spans=True), None), (SpansTarget("sc"), "sc")]
)
def test_probabilities_are_where_the_spans_are(way, change, target, key):
    doc = annotated(target)
    doc = doc if change is None else change(doc)
    doc = way(doc)
    if key in doc.spans or key is None:  # `as_doc` leaves span groups out
        assert known(doc, key) == EXPECTED
    assert doc[2:4]._.hocrf_score is None


@pytest.mark.parametrize(
    "target", [EntsTarget("hocrf", False, 1, spans=True), SpansTarget("sc", n_best=1)]
)
@pytest.mark.parametrize("change", [merged, split, at_once])
def test_groups_follow_their_tokens(target, change):
    doc = change(annotated(target))
    for group in doc.spans.values():
        assert [(s.text, s.label_) for s in group] == [row[:2] for row in EXPECTED]
        assert len(group) == 2 and group[1].text == "New York" and not group.has_overlap
        assert_allclose(group.attrs["scores"], SCORES)
    key = next(iter(doc.spans))
    page = displacy.render(doc, style="span", options={"spans_key": key}, jupyter=False)
    assert "PERSON" in page and "CITY" in page


def test_a_span_without_its_tokens_is_left_out_with_its_score():
    doc = merged(annotated(), 3, 5)
    group = doc.spans["hocrf"]
    assert [span.text for span in group] == ["Ada Lovelace"]
    assert_allclose(group.attrs["scores"], SCORES[:1])
    assert [ent._.hocrf_score for ent in doc.ents] == [0.75, None]
    assert through_bytes(doc).spans["hocrf"].attrs["scores"].tolist() == [0.75]


@given(st.data())
def test_groups_have_what_char_span_finds(data):
    words = data.draw(st.lists(st.sampled_from(["a", "bc", "def"]), min_size=1, max_size=8))
    doc = doc_of(words)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(words)), min_size=2, max_size=6)))
    spans = [(a, b, i % 2) for i, (a, b) in enumerate(pairwise(cuts))] if len(cuts) > 1 else []
    SpansTarget("sc").annotate([doc], [prediction(spans, np.linspace(0, 1, len(spans)))])
    if data.draw(st.booleans()):  # looked at before, so that the spans are made
        assert [(s.start, s.end) for s in doc.spans["sc"]] == [row[:2] for row in spans]
    made = [Span(doc, start, end, label=NAMES[y]) for start, end, y in spans]
    before = [(span.start_char, span.end_char, span.label_) for span in made]
    start = data.draw(st.integers(0, len(doc) - 1))
    end = data.draw(st.integers(start + 1, len(doc)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        merged(doc, start, end)
    left = [row for row in before if doc.char_span(*row[:2]) is not None and row[0] < row[1]]
    assert [(s.start_char, s.end_char, s.label_) for s in doc.spans["sc"]] == left
    assert len(doc.spans["sc"].attrs["scores"]) == len(left)
    assert all(span.text == doc.text[span.start_char : span.end_char] for span in doc.spans["sc"])


def test_a_group_can_be_changed_as_any_other():
    doc = annotated()
    group = doc.spans["hocrf"]
    group.append(Span(doc, 2, 3, label="VERB"))
    group += [Span(doc, 3, 4, label="IN")]
    doc.spans["all"] = SpanGroup(doc, spans=[Span(doc, 6, 7)])
    doc.spans["all"].extend(group)
    assert [span.text for span in doc.spans["all"]] == ["now", *(span.text for span in group)]
    group[0] = Span(doc, 0, 1, label="PERSON")
    merged(doc, 2, 4)
    assert [span.text for span in group] == ["Ada", "New York"]
    del group[1]
    assert len(group) == 1


def test_a_group_outlives_its_doc_as_any_other():
    group = annotated().spans["hocrf"]
    assert len(group) == 2 and group.attrs["scores"].tolist() == SCORES
    with pytest.raises(RuntimeError, match="E865"):
        group[0]


def test_groups_of_a_loaded_doc_are_spacys_own():
    """docs/scores.md says what to do."""
    doc = merged(merged(through_bytes(annotated())), 1, 3)
    with pytest.raises(IndexError, match="E035"):
        doc.copy()
    assert known(doc) == EXPECTED
    del doc.spans["hocrf"]
    assert known(doc.copy()) == known(through_bytes(doc)) == EXPECTED


def test_scores_of_joined_and_of_cut_docs_are_where_the_text_is():
    doc = Doc.from_docs([annotated(), annotated(found=prediction([(2, 3, 1)], [0.25]))])
    assert known(doc) == [*EXPECTED, ("lives", "CITY", 0.25)]
    assert known(doc[4:].as_doc(copy_user_data=True))[0] == EXPECTED[1]
    assert [ent._.hocrf_score for ent in doc[4:].as_doc().ents] == [None, None]


@pytest.mark.parametrize("target", [EntsTarget("hocrf", False), TagsTarget(False)])
def test_a_score_of_a_joined_doc_is_looked_up_in_the_table_of_its_part(target, monkeypatch):
    each = prediction([(i, i + 1, i % 2) for i in range(7)], np.arange(7) / 8)
    doc = Doc.from_docs([annotated(target, each) for _ in range(50)])
    places = list(doc) if isinstance(target, TagsTarget) else doc.ents
    looked_into, unpacked = [], probabilities._unpacked
    monkeypatch.setattr(
        probabilities, "_unpacked", lambda packed: looked_into.append(1) or unpacked(packed)
    )
    assert [place._.hocrf_score for place in places] == [i / 8 for i in range(7)] * 50
    assert len(looked_into) == len(places)
    assert Span(doc, len(doc) - 2, len(doc), "CITY")._.hocrf_score is None
    assert len(looked_into) <= len(places) + 1


@pytest.mark.parametrize("target", [EntsTarget("hocrf", False), TagsTarget(False)])
def test_a_cut_doc_lists_its_own_scores_only(target):
    cut = annotated(target)[2:3].as_doc(copy_user_data=True)
    assert cut._.hocrf_scores == []
    assert through_json(cut)._.hocrf_scores == []
    target.annotate([cut], [prediction([(0, 1, 0)], [0.25])])
    assert [(row["start"], row["end"]) for row in cut._.hocrf_scores] == [(0, 5)]


@pytest.mark.parametrize("key", ["hocrf", "other"])
@pytest.mark.parametrize("way", [lambda doc: doc, through_bytes, through_bin])
def test_a_second_run_keeps_what_is_known_of_entities_that_stay(key, way):
    doc = way(annotated())
    EntsTarget(key, False, spans=True).annotate([doc], [prediction([(6, 7, 1)], [0.25])])
    assert known(doc) == [*EXPECTED, ("now", "CITY", 0.25)]
    group = doc.spans[key]
    own = EXPECTED if key == "hocrf" else []
    assert [(s.text, s.label_) for s in group] == [*(row[:2] for row in own), ("now", "CITY")]
    assert group.attrs["scores"].tolist() == [*(row[2] for row in own), 0.25]


def test_a_run_that_overwrites_forgets():
    doc = annotated()
    EntsTarget("hocrf", True, spans=True).annotate(
        [doc], [prediction([(4, 6, 0), (6, 7, 1)], [0.5, 0.25])]
    )
    assert known(doc) == [("New York", "PERSON", 0.5), ("now", "CITY", 0.25)]
    assert Span(doc, 0, 2, label="PERSON")._.hocrf_score is None
    spans = annotated(SpansTarget("sc"))
    SpansTarget("sc").annotate([spans], [prediction([(6, 7, 1)], [0.25])])
    assert known(spans, "sc") == [("now", "CITY", 0.25)]
    assert Span(spans, 0, 2, label="PERSON")._.hocrf_score is None


@pytest.mark.parametrize("forgotten", [False, True])
def test_what_is_predicted_again_has_its_new_score_once(forgotten):
    """As `overwrite` does, and a correction."""
    target, doc = EntsTarget("hocrf", not forgotten, spans=True), annotated()
    if forgotten:
        target.forget(doc, 0, 0)
    target.annotate([doc], [prediction(scores=[0.25, 0.125])])
    expected = [("Ada Lovelace", "PERSON", 0.25), ("New York", "CITY", 0.125)]
    assert known(doc) == known(doc, "hocrf") == expected
    assert [row["score"] for row in doc._.hocrf_scores] == [0.25, 0.125]


def test_spans_of_two_components_keep_their_own_scores():
    doc = annotated()
    SpansTarget("sc").annotate([doc], [prediction([(0, 2, 1), (2, 3, 1)], [0.125, 0.25])])
    assert known(doc) == EXPECTED
    assert known(doc, "sc") == [("Ada Lovelace", "CITY", 0.125), ("lives", "CITY", 0.25)]
    assert {row["key"] for row in doc._.hocrf_scores} == {"hocrf", "sc"}


class Attributes(dict):
    """Counts how often somebody looks through all of them."""

    looked_through = 0

    def __iter__(self):
        self.looked_through += 1
        return super().__iter__()

    def items(self):
        self.looked_through += 1
        return super().items()


def test_attributes_of_tokens_are_not_looked_through_for_every_score():
    doc = Doc(VOCAB, words=WORDS, user_data=Attributes())
    EntsTarget("hocrf", False).annotate([doc], [prediction()])
    doc.user_data.update((("._.", "page", token.idx, None), 1) for token in doc)
    doc.user_data.looked_through = 0
    assert [known(doc) for _ in range(10)] == [EXPECTED] * 10
    assert doc.user_data.looked_through <= 1
    del doc.user_data["._.", "page", 0, None]  # as many as before
    SpansTarget("sc").annotate([doc], [prediction([(2, 3, 1)], [0.25])])
    assert known(doc, "sc") == [("lives", "CITY", 0.25)] and known(doc) == EXPECTED
    doc.user_data = {}
    assert [score for _, _, score in known(doc)] == [None, None]
    EntsTarget("other", False).annotate([doc], [prediction([(2, 3, 1)], [0.75])])
    assert {row["key"] for row in doc._.hocrf_scores} == {"other"}


def test_scores_of_a_saved_group_are_those_that_it_has_now():
    doc = through_bin(annotated(SpansTarget("sc")))
    assert known(doc, "sc") == EXPECTED
    doc.spans["sc"].attrs["scores"] = np.array([0.25, 0.5], dtype=np.float32)
    assert [score for _, _, score in known(doc, "sc")] == [0.25, 0.5]
    doc.spans["sc"].append(Span(doc, 2, 3, "CITY"))
    assert [score for _, _, score in known(doc, "sc")] == [0.25, 0.5, None]
    doc.spans["sc"] = list(doc.spans["sc"])
    assert [score for _, _, score in known(doc, "sc")] == [None, None, None]


@pytest.mark.parametrize(
    "way",
    [
        Doc.copy,
        through_bytes,
        through_json,
        lambda doc: Doc.from_docs([doc]),
        lambda doc: Doc.from_docs(
            [doc[:2].as_doc(copy_user_data=True), doc[2:].as_doc(copy_user_data=True)]
        ),
    ],
)
def test_tags_keep_their_scores(way):
    tags = prediction([(i, i + 1, i % 2) for i in range(7)], np.arange(7) / 8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        doc = way(annotated(TagsTarget(False), tags))
    assert [token._.hocrf_score for token in doc] == [i / 8 for i in range(7)]
    TagsTarget(False).annotate([doc], [prediction([(0, 1, 0)], [1.0])])
    assert [token._.hocrf_score for token in doc] == [1.0, *(i / 8 for i in range(1, 7))]
    doc[1].tag_ = "MINE"
    assert doc[1]._.hocrf_score is None


def test_json_has_them_by_name():
    found = annotated()._.hocrf_scores
    assert found[0] == {"key": "hocrf", "start": 0, "end": 12, "label": "PERSON", "score": 0.75}
    doc = doc_of()
    doc._.hocrf_scores = found
    assert doc._.hocrf_scores == found
    doc._.hocrf_scores = []
    assert doc._.hocrf_scores == [] and not doc.user_data


def test_without_scores_nothing_is_kept():
    doc = doc_of()
    none = prediction()._replace(scores=None)
    for target in (EntsTarget(None, False), SpansTarget("sc"), TagsTarget(False)):
        target.annotate([doc], [none])
    assert not doc.user_data and not doc.spans["sc"].attrs and len(doc.spans["sc"]) == 2
