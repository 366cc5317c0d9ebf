"""Groups of Docs: which are decoded together, in any batches."""

import warnings
from functools import cache

import numpy as np
import pytest
from joint_config import joint
from small_corpus import documents, examples, found, trained, untrained
from spacy.training import Example

from spacy_hocrf.joint.batches import group_batches, numbered
from spacy_hocrf.model import structure

PHRASES = {"@misc": "spacy-hocrf.IdenticalPhrases.v1", "weight": 9.0}
GROUPED = joint({"phrases": PHRASES}, group_by="hocrf_group")
# with these "Quux" is a person beside "nobody but", and alone it is not
WINDOW = {"@misc": "spacy-hocrf.Window.v1", "window": 2, "bigrams": ["NORM"], "flags": []}
MODEL = {"order": 1, "features": WINDOW}
CLEAR, UNCLEAR, OTHER = "Nobody but Quux likes Paris", "Quux", "It rains ."


@cache
def learnt():
    settings = {**GROUPED, "learn": False}
    return trained(model=MODEL, joint=settings, rows=documents()).to_bytes()


@pytest.fixture
def nlp():
    return untrained(model=MODEL, joint=GROUPED).from_bytes(learnt())


def stream(nlp, *rows):
    """Docs of rows (group, text)."""
    for group, text in rows:
        doc = nlp.make_doc(text)
        doc._.hocrf_group = group
        yield doc


MIXED = [
    (None, UNCLEAR),
    (1, CLEAR),
    (1, OTHER),
    (1, UNCLEAR),
    ("two", UNCLEAR),
    ("two", OTHER),
    (None, CLEAR),
    (None, UNCLEAR),
]


@pytest.mark.slow
@pytest.mark.parametrize("batch_size", [1, 2, 3, 100])
@pytest.mark.parametrize("batch_tokens", [1, 6, 20_000])
def test_batches_cut_no_group(nlp, batch_size, batch_tokens, monkeypatch):
    pipe = nlp.get_pipe("hocrf")
    expected = [prediction.spans for prediction in pipe.predict(stream(nlp, *MIXED))]
    monkeypatch.setattr(structure, "BATCH_TOKENS", batch_tokens)
    docs = list(nlp.pipe(stream(nlp, *MIXED), batch_size=batch_size))
    assert [doc.text for doc in docs] == [text for _, text in MIXED]
    assert [tuple(found(doc)) for doc in docs] == expected
    person, unclear = ((0, 1, "PERSON"),), expected[0]
    assert [expected[i] for i in (3, 4, 7)] == [person, unclear, unclear]
    assert unclear != person


@pytest.mark.slow
def test_a_call_is_a_group_of_one(nlp):
    clear, unclear = stream(nlp, (1, CLEAR), (1, UNCLEAR))
    assert found(nlp(clear)) and found(nlp(unclear)) != [(0, 1, "PERSON")]


@pytest.mark.slow
def test_evaluation_decodes_groups(nlp):
    golds = [(CLEAR, [(11, 15, "PERSON"), (22, 27, "PLACE")]), (UNCLEAR, [(0, 4, "PERSON")])]
    data = [
        Example.from_dict(doc, {"entities": gold})
        for doc, (_, gold) in zip(stream(nlp, (1, CLEAR), (1, UNCLEAR)), golds)
    ]
    assert nlp.evaluate(data, batch_size=1)["ents_f"] == 1.0
    apart = [
        Example.from_dict(doc, {"entities": gold})
        for doc, (_, gold) in zip(stream(nlp, (1, CLEAR), (2, UNCLEAR)), golds)
    ]
    assert nlp.evaluate(apart, batch_size=1)["ents_f"] < 1.0


@pytest.mark.slow
def test_without_the_attribute_every_document_is_a_group():
    nlp = untrained(model=MODEL, joint=GROUPED).from_bytes(learnt())
    nlp.get_pipe("hocrf").joint.group_by = None
    docs = list(nlp.pipe(stream(nlp, (1, CLEAR), (1, UNCLEAR))))
    assert found(docs[1]) != [(0, 1, "PERSON")]


def test_a_group_that_comes_back_is_warned_about_once(nlp):
    rows = [(1, CLEAR), (2, OTHER), (1, UNCLEAR), (2, OTHER), (None, OTHER), (None, OTHER)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        docs = list(nlp.pipe(stream(nlp, *rows), batch_size=1))
    assert [str(warning.message)[:6] for warning in caught] == ["[W008]"]
    assert found(docs[2]) != [(0, 1, "PERSON")]


def test_a_large_group_is_split_between_documents_with_a_warning(nlp):
    pipe = nlp.get_pipe("hocrf")
    pipe.joint.decoder = type(pipe.joint.decoder)(
        **{**vars(pipe.joint.decoder), "max_group_tokens": 8}
    )
    rows = [(1, CLEAR), (1, OTHER), (1, UNCLEAR), (1, CLEAR)]  # 5 and 3, 1 and 5 tokens
    with pytest.warns(UserWarning, match=r"^\[W007\].*8 tokens") as caught:
        docs = list(nlp.pipe(stream(nlp, *rows), batch_size=1))
    assert len(caught) == 1
    assert found(docs[2]) == [(0, 1, "PERSON")]  # with the fourth
    with pytest.warns(UserWarning, match=r"^\[W007\]"):
        docs = list(nlp.pipe(stream(nlp, *rows[:3])))
    assert found(docs[2]) != [(0, 1, "PERSON")]
    # one Doc is never split
    [doc] = nlp.pipe(stream(nlp, (2, " . ".join([CLEAR] * 3 + [UNCLEAR]))))
    labels = {start: label for start, _, label in found(doc)}
    assert labels[2] == labels[8] == labels[14] == labels[18]


@pytest.mark.parametrize("batch_size", [1, 3, 10])
def test_an_error_concerns_its_group_only(nlp, batch_size):
    pipe = nlp.get_pipe("hocrf")
    failed = []
    pipe.set_error_handler(
        lambda name, proc, docs, error: failed.append([doc.text for doc in docs])
    )
    target = pipe.target

    class Broken(type(target)):
        def annotate(self, docs, predictions, read=None):
            if any(doc.text == OTHER for doc in docs):
                raise ValueError("broken")
            super().annotate(docs, predictions, read)

    pipe.target = Broken(target.scores_key, target.overwrite)
    docs = list(
        pipe.pipe(
            stream(nlp, (1, CLEAR), (1, UNCLEAR), (2, OTHER), (2, OTHER), (3, UNCLEAR)),
            batch_size=batch_size,
        )
    )
    assert [doc.text for doc in docs] == [CLEAR, UNCLEAR, UNCLEAR]
    assert failed == [[OTHER, OTHER]]


def test_numbers_and_batches_of_groups(nlp):
    docs = list(stream(nlp, *MIXED))
    pairs = list(numbered(docs, "hocrf_group", most=100, name="hocrf"))
    assert [number for number, _ in pairs] == [0, 1, 1, 1, 2, 2, 3, 4]
    assert [number for number, _ in numbered(docs, None, most=1, name="hocrf")] == list(range(8))
    batches = list(group_batches(pairs, 2))
    assert [numbers.tolist() for _, numbers in batches] == [[0, 1, 1, 1], [2, 2], [3, 4]]
    assert [doc for docs, _ in batches for doc in docs] == docs
    assert list(group_batches([], 3)) == []


def test_training_reads_groups_like_other_documents(nlp):
    data = examples(nlp)
    assert np.isfinite(nlp.update(data, sgd=nlp.create_optimizer())["hocrf"])
