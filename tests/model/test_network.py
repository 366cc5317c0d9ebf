"""What a model knows besides its weights: limits, templates in use, bits of white space, batches,
and how it grows.
"""

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc

from spacy_hocrf.features.config import make_token, make_transition
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.model.network import Network, Settings, token_batches
from spacy_hocrf.types import CONTINUE, FIRST, LAST, Segment

ANYTHING = FIRST | CONTINUE | LAST
TEMPLATES = (*make_token(["ORTH"]), *make_transition(1), *make_transition(2))


@pytest.fixture(scope="module")
def vocab():
    return spacy.blank("en").vocab


def docs_of(vocab, *texts):
    return [Doc(vocab, words=text.split(" ") if text else []) for text in texts]


@pytest.mark.parametrize(
    "max_length, label, longest, limit",
    [
        (None, "A", 4, 4),
        (None, "A", 0, 1),  # never seen in training
        (0, "A", 4, 0),
        (6, "A", 4, 6),
        (2, "A", 4, 4),  # a limit below what is in the training data grows
        ({"A": 3}, "A", 1, 3),
        ({"A": 3}, "A", 9, 9),
        ({"A": 3}, "B", 9, 0),
        ({"A": 0}, "A", 9, 0),
    ],
)
def test_limits(max_length, label, longest, limit):
    assert Settings((), max_length=max_length).limit(label, longest) == limit


@pytest.mark.parametrize(
    "setting, seen, forbidden",
    [(None, True, ()), (None, False, ((1, 1),)), (True, False, ()), (False, True, ((1, 1),))],
)
def test_repeats_are_those_of_training_unless_they_are_set(setting, seen, forbidden):
    network = Network(Settings((), repeats=setting))
    network.set_labels(["A"], {"A": 2}, outside=True, repeats=seen)
    assert network.scheme.forbidden == forbidden
    assert network.scheme.limits == (1, 2)


def test_no_span_begins_or_ends_on_white_space(vocab):
    network = Network(Settings(()))
    network.set_labels(["A"], {"A": 3}, outside=True, repeats=True)
    bits = network.allowed(docs_of(vocab, "a \n b", "\n"))
    assert bits[:, 0].tolist() == [ANYTHING] * 4
    assert bits[:, 1].tolist() == [ANYTHING, CONTINUE, ANYTHING, CONTINUE]


@pytest.mark.parametrize(
    "settings, outside",
    [
        (Settings(()), False),
        (Settings((), encoding="tags"), True),
        (Settings((), encoding="bio"), True),
    ],
)
def test_white_space_has_a_label_where_it_must_or_by_token(vocab, settings, outside):
    network = Network(settings)
    network.set_labels(["A"], {"A": 3}, outside=outside, repeats=True)
    assert network.allowed(docs_of(vocab, "a \n b"))[1, -1] == ANYTHING


@pytest.mark.parametrize("texts", [[], ["", ""]])
def test_empty_docs_have_no_bits(vocab, texts):
    network = Network(Settings(()))
    network.set_labels(["A"], {"A": 3}, outside=True, repeats=True)
    assert network.allowed(docs_of(vocab, *texts)).shape == (0, 2)


def learn(network, docs, segmentations, patterns):
    return network.learn(patterns, iter([(TokenBatch(docs, learn=True), segmentations)]))


def test_templates_of_an_order_above_the_models_are_left_out(vocab):
    network = Network(Settings(TEMPLATES, order=1))
    network.set_labels(["A"], {"A": 1}, outside=True, repeats=True)
    assert not network.ready
    learn(
        network,
        docs_of(vocab, "a b c"),
        [[Segment(i, i + 1, i % 2) for i in range(3)]],
        ((0,), (1,), (0, 1), (1, 0), (0, 1, 0)),
    )
    assert network.ready
    assert [template.name for template in network.index.templates] == ["ORTH[0]", "LABELS@1"]
    assert network.index.feature_order.max() == 1


def test_learning_more_keeps_the_numbers_meaning(vocab):
    network = Network(Settings(TEMPLATES, order=2))
    network.set_labels(["A"], {"A": 1}, outside=True, repeats=True)
    patterns = ((0,), (1,), (0, 1))
    learn(network, docs_of(vocab, "b c"), [[Segment(0, 1, 0), Segment(1, 2, 1)]], patterns)

    def described() -> list[str]:
        return [
            network.index.describe(f, vocab.strings, ["O", "A"]) for f in range(len(network.index))
        ]

    before = described()
    moved = learn(
        network,
        docs_of(vocab, "a b c"),
        [[Segment(0, 1, 1), Segment(1, 2, 1), Segment(2, 3, 0)]],
        (*patterns, (1, 1), (1, 1, 0)),
    )
    after = described()
    assert [after[new] for new in moved] == before
    assert {("ORTH[0]=b", "A"), ("LABELS@1", "A A"), ("LABELS@2", "A A O")} <= set(after) - set(
        before
    )
    assert network.compiled.feature_pattern is network.index.feature_pattern


def test_batches_have_about_as_many_tokens_as_they_should(vocab, monkeypatch):
    monkeypatch.setattr("spacy_hocrf.model.network.BATCH_TOKENS", 3)
    docs = docs_of(vocab, "a b", "c", "", "d e f g", "", "h")
    found = [
        ([doc.text.split() for doc in batch.docs], first) for batch, first in token_batches(docs)
    ]
    assert found == [([["a", "b"], ["c"]], 0), ([[], ["d", "e", "f", "g"]], 2), ([[], ["h"]], 4)]
    assert list(token_batches([])) == []


def test_nothing_can_be_done_before_labels_and_features_are_known(vocab):
    network = Network(Settings(TEMPLATES))
    docs = docs_of(vocab, "a")
    assert network.patterns == ()
    for call in (
        lambda: network.observe(docs),
        lambda: network.allowed(docs),
        lambda: network.compile(None, np.zeros((0, 0), dtype=np.uint8)),
    ):
        with pytest.raises(ValueError, match=r"H042"):
            call()
