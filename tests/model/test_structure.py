"""What a model knows besides its weights: limits, templates in use, bits of white space, batches,
and how it grows.
"""

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc

from spacy_hocrf.features.config import make_token, make_transition
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.model.structure import Settings, Structure, token_batches
from spacy_hocrf.types import CONTINUE, FIRST, LAST, Segment

ANYTHING = FIRST | CONTINUE | LAST
TEMPLATES = (*make_token(["ORTH"], parts=["tokens"]), *make_transition(1), *make_transition(2))


@pytest.fixture(scope="module")
def vocab():
    return spacy.blank("xx").vocab


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
    structure = Structure(Settings((), repeats=setting))
    structure.set_labels(["A"], {"A": 2}, outside=True, repeats=seen)
    assert structure.scheme.forbidden == forbidden
    assert structure.scheme.limits == (1, 2)


def test_no_span_begins_or_ends_on_white_space(vocab):
    structure = Structure(Settings(()))
    structure.set_labels(["A"], {"A": 3}, outside=True, repeats=True)
    bits = structure.allowed(docs_of(vocab, "a \n b", "\n"))
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
    structure = Structure(settings)
    structure.set_labels(["A"], {"A": 3}, outside=outside, repeats=True)
    assert structure.allowed(docs_of(vocab, "a \n b"))[1, -1] == ANYTHING


@pytest.mark.parametrize("texts", [[], ["", ""]])
def test_empty_docs_have_no_bits(vocab, texts):
    structure = Structure(Settings(()))
    structure.set_labels(["A"], {"A": 3}, outside=True, repeats=True)
    assert structure.allowed(docs_of(vocab, *texts)).shape == (0, 2)


def learn(structure, docs, segmentations, patterns):
    return structure.learn(patterns, iter([(TokenBatch(docs, learn=True), segmentations)]))


def test_templates_of_an_order_above_the_models_are_left_out(vocab):
    structure = Structure(Settings(TEMPLATES, order=1))
    structure.set_labels(["A"], {"A": 1}, outside=True, repeats=True)
    assert not structure.ready
    learn(
        structure,
        docs_of(vocab, "a b c"),
        [[Segment(i, i + 1, i % 2) for i in range(3)]],
        ((0,), (1,), (0, 1), (1, 0), (0, 1, 0)),
    )
    assert structure.ready
    assert [template.name for template in structure.index.templates] == ["ORTH[0]", "LABELS@1"]
    assert structure.index.feature_order.max() == 1


def test_learning_more_keeps_the_numbers_meaning(vocab):
    structure = Structure(Settings(TEMPLATES, order=2))
    structure.set_labels(["A"], {"A": 1}, outside=True, repeats=True)
    patterns = ((0,), (1,), (0, 1))
    learn(structure, docs_of(vocab, "b c"), [[Segment(0, 1, 0), Segment(1, 2, 1)]], patterns)

    def described() -> list[str]:
        return [
            structure.index.describe(f, vocab.strings, ["O", "A"])
            for f in range(len(structure.index))
        ]

    before = described()
    moved = learn(
        structure,
        docs_of(vocab, "a b c"),
        [[Segment(0, 1, 1), Segment(1, 2, 1), Segment(2, 3, 0)]],
        (*patterns, (1, 1), (1, 1, 0)),
    )
    after = described()
    assert [after[new] for new in moved] == before
    assert {("ORTH[0]=b", "A"), ("LABELS@1", "A A"), ("LABELS@2", "A A O")} <= set(after) - set(
        before
    )
    assert structure.compiled.feature_pattern is structure.index.feature_pattern


def test_batches_have_about_as_many_tokens_as_they_should(vocab, monkeypatch):
    monkeypatch.setattr("spacy_hocrf.model.structure.BATCH_TOKENS", 3)
    docs = docs_of(vocab, "a b", "c", "", "d e f g", "", "h")
    found = [[doc.text.split() for doc in batch.docs] for batch in token_batches(docs)]
    assert found == [[["a", "b"], ["c"]], [[], ["d", "e", "f", "g"]], [[], ["h"]]]
    assert list(token_batches([])) == []


def test_nothing_can_be_done_before_labels_and_features_are_known(vocab):
    structure = Structure(Settings(TEMPLATES))
    docs = docs_of(vocab, "a")
    assert structure.patterns == ()
    for call in (
        lambda: structure.observe(docs),
        lambda: structure.allowed(docs),
        lambda: structure.compile(None, np.zeros((0, 0), dtype=np.uint8)),
    ):
        with pytest.raises(ValueError, match=r"H042"):
            call()


def learnt(vocab, order, *segmented):
    """A structure that has learnt texts with the labels of their words."""
    structure = Structure(Settings(TEMPLATES, order=order))
    structure.set_labels(["A", "B"], {"A": 1, "B": 1}, outside=False, repeats=True)
    segments = [[(t, t + 1, int(y)) for t, y in enumerate(labels)] for _, labels in segmented]
    histories = {
        tuple(map(int, labels[t : t + n]))
        for _, labels in segmented
        for n in range(1, order + 2)
        for t in range(len(labels) - n + 1)
    }
    patterns = sorted({(0,), (1,), *histories}, key=lambda pattern: (len(pattern), pattern))
    batch = TokenBatch(docs_of(vocab, *(text for text, _ in segmented)), learn=True)
    structure.learn(patterns, iter([(batch, [np.array(each) for each in segments])]))
    return structure


def names_of(structure, vocab):
    index = structure.index
    return [index.describe(f, vocab.strings, ["A", "B"]) for f in range(len(index))]


@pytest.mark.parametrize("order", [0, 1, 2])
def test_every_feature_is_found_in_another_structure_or_is_not_there(vocab, order):
    one = learnt(vocab, order, ("c a b", "001"), ("d e", "11"))
    other = learnt(vocab, 1, ("a b d a", "0110"), ("x c", "10"))
    there = names_of(other, vocab)
    names = names_of(one, vocab)
    expected = [there.index(name) if name in there else -1 for name in names]
    assert one.found_in(other).tolist() == expected
    assert -1 in expected and max(expected) >= 0
    assert one.found_in(one).tolist() == list(range(len(names)))
