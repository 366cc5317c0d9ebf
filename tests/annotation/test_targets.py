"""How predictions get into Docs: entities and tags written as arrays, against spaCy's own slower
ways.
"""

from itertools import pairwise

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, Span

from spacy_hocrf.annotation.prediction import Prediction, batch_of
from spacy_hocrf.annotation.targets import EntsTarget, SpansTarget, TagsTarget

NAMES = ("PERSON", "DET", "Größe")  # the second is one of spaCy's symbols
ENTITY = ["ENT_IOB", "ENT_TYPE", "ENT_KB_ID", "ENT_ID"]
LENGTHS = [0, 1, 5, 0, 12, 3]


def predicted(spans, names=NAMES):
    start, end, label = np.array(spans, dtype=np.int64).reshape(-1, 3).T
    return Prediction(start, end, label.astype(np.int32), names, None)


def random_spans(rng, length):
    """Sorted spans that do not overlap and often touch."""
    cuts = np.flatnonzero(np.append(rng.random(length) < 0.6, True))
    return [
        (int(a), int(b), int(rng.integers(len(NAMES))))
        for a, b in pairwise(cuts)
        if rng.random() < 0.7
    ]


def docs_of(vocab, lengths=LENGTHS):
    return [Doc(vocab, words=[f"w{i}" for i in range(length)]) for length in lengths]


def outside(doc):
    doc.set_ents([])


def knowledge_base(doc):
    for token in doc:
        token.ent_kb_id_ = "Q1"


def identified(doc):
    doc.ents = [Span(doc, 0, len(doc), label="OLD", kb_id="Q2", span_id="old")] if len(doc) else []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "before, overwrite",
    [
        (None, False),
        (None, True),
        (outside, False),
        (knowledge_base, False),
        (identified, True),
    ],
)
def test_entities_are_written_as_set_ents_writes_them(seed, before, overwrite):
    rng = np.random.default_rng(seed)
    vocab = spacy.blank("xx").vocab
    docs, expected = docs_of(vocab), docs_of(vocab)
    for doc in [*docs, *expected]:
        if before is not None:
            before(doc)
    spans = [random_spans(rng, len(doc)) for doc in docs]
    EntsTarget(None, overwrite).annotate(docs, [predicted(found) for found in spans])
    for doc, other, found in zip(docs, expected, spans):
        if len(other):
            other.set_ents([Span(other, start, end, NAMES[y]) for start, end, y in found])
        assert doc.to_array(ENTITY).tolist() == other.to_array(ENTITY).tolist()
        assert [(e.start, e.end, e.label_) for e in doc.ents] == [
            (a, b, NAMES[y]) for a, b, y in found
        ]
        assert doc.spans == {}


def test_every_doc_knows_its_labels_by_name():
    """Docs of one batch may have vocabularies of their own."""
    first, second = spacy.blank("xx").vocab, spacy.blank("xx").vocab
    docs = [Doc(vocab, words=["a", "b"]) for vocab in (first, second, second)]
    EntsTarget(None, False).annotate(
        docs, [predicted([(0, 1, 2)]), predicted([(1, 2, 2)]), predicted([(0, 2, 0)], ("other",))]
    )
    assert [doc.ents[0].label_ for doc in docs] == ["Größe", "Größe", "other"]


@pytest.mark.parametrize("seed", range(5))
def test_tags_are_written_as_token_by_token(seed):
    rng = np.random.default_rng(seed)
    vocab = spacy.blank("xx").vocab
    docs, expected = docs_of(vocab), docs_of(vocab)
    for doc in [*docs, *expected]:
        for token in list(doc)[1::2]:
            token.tag_ = "OLD"
    spans = [random_spans(rng, len(doc)) for doc in docs]
    TagsTarget(overwrite=True).annotate(docs, [predicted(found) for found in spans])
    for doc, other, found in zip(docs, expected, spans):
        for start, end, label in found:
            for token in other[start:end]:
                token.tag_ = NAMES[label]
        assert [token.tag_ for token in doc] == [token.tag_ for token in other]


@pytest.mark.slow
@pytest.mark.parametrize(
    "target",
    [EntsTarget(None, False), EntsTarget("key", True), SpansTarget("sc"), TagsTarget(False)],
)
@pytest.mark.parametrize("lengths", [[], [0], [0, 0], [2, 0]])
def test_nothing_is_written_where_nothing_is_predicted(target, lengths):
    docs = docs_of(spacy.blank("xx").vocab, lengths)
    target.annotate(docs, [predicted([]) for _ in docs])
    assert all(not doc.ents and not any(token.tag for token in doc) for doc in docs)
    assert all(
        list(doc.spans) == (["sc"] if isinstance(target, SpansTarget) else []) for doc in docs
    )
    assert all(len(group) == 0 for doc in docs for group in doc.spans.values())


def test_predictions_of_several_calls_have_probabilities_together_if_all_have():
    one = predicted([(0, 1, 0)])._replace(scores=np.array([0.5]))
    other = predicted([(0, 2, 1)], NAMES[1:])
    assert batch_of([one, one]).scores.tolist() == [0.5, 0.5]
    assert batch_of([one, other]).scores is None and batch_of([]).scores is None
    together = batch_of([one, other])
    labels = [together.names[y] for y in together.spans.label]
    assert labels == ["PERSON", "Größe"] and together.spans.offsets.tolist() == [0, 1, 2]


def test_a_prediction_in_words():
    assert predicted([(0, 2, 1), (5, 6, 0)]).spans == ((0, 2, "DET"), (5, 6, "PERSON"))
    assert predicted([]).spans == ()
