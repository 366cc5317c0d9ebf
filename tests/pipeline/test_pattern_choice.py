"""Which label patterns a component has: named ones, counts of each order, patterns without a longest."""

import numpy as np
import pytest
import spacy
from small_corpus import documents, examples, fit, found, initialize, learn_from, trained, untrained
from spacy.training import Example

from spacy_hocrf.learning import survey as surveying
from spacy_hocrf.saving import schema

SEMI = {}
RUNS = {**SEMI, "outside": "run"}
BIO = {"encoding": "bio"}
TAGS = {"encoding": "tags"}
NAMED = [["PERSON", "O", "PLACE"], ["PLACE", "O"]]


def longer(nlp):
    """Names of the labels of all patterns of two or more."""
    structure = nlp.get_pipe("hocrf").structure
    names = structure.scheme.names
    return [tuple(names[y] for y in z) for z in structure.patterns if len(z) > 1]


def initialized(factory="hocrf", rows=None, **model):
    nlp = untrained(factory, model)
    initialize(nlp, rows)
    return nlp


# Patterns that are named


@pytest.mark.parametrize("order", ["auto", None, 2, 3])
def test_named_patterns_come_with_what_they_begin_and_end_with(order):
    nlp = initialized(**RUNS, patterns=NAMED, order=order)
    assert {*longer(nlp)} == {
        ("PERSON", "O", "PLACE"),
        ("PERSON", "O"),
        ("O", "PLACE"),
        ("PLACE", "O"),
    }
    assert nlp.get_pipe("hocrf").structure.settings.order == (3 if order == 3 else 2)


@pytest.mark.parametrize(
    "factory, model, patterns",
    [
        ("hocrf", BIO, [["B-PERSON", "I-PERSON", "I-PERSON"]]),
        ("hocrf_tagger", TAGS, [["NAME", "WORD", "PUNCT"]]),
        ("hocrf_spans", SEMI, [["O", "O"]]),
        ("hocrf", SEMI, []),
    ],
)
def test_labels_have_the_names_of_the_encoding(factory, model, patterns):
    nlp = initialized(factory, **model, patterns=patterns)
    assert [z for z in longer(nlp) if len(z) == 3] == [tuple(z) for z in patterns if len(z) == 3]
    assert len(longer(nlp)) == len(
        {
            z[i:j]
            for z in map(tuple, patterns)
            for i in (0, 1)
            for j in (2, 3)
            if j - i > 1 and j <= len(z)
        }
    )


def test_a_pattern_that_no_text_has_is_there_without_a_weight():
    nlp = trained(model={**RUNS, "patterns": [["PLACE", "PLACE"]], "repeats": True})
    structure = nlp.get_pipe("hocrf").structure
    assert longer(nlp) == [("PLACE", "PLACE")]
    assert (structure.index.feature_pattern < structure.scheme.n_labels).all()


def test_an_unknown_label_is_named():
    with pytest.raises(ValueError, match=r"H324.*'TOWN'.*O, PERSON, PLACE"):
        initialized(**SEMI, patterns=[["PERSON", "TOWN"]])


def test_a_succession_that_cannot_be_is_named():
    with pytest.raises(
        ValueError, match=r"H325.*'B-PERSON', 'O', 'I-PERSON'.*'I-PERSON' never.*'O'"
    ):
        initialized(**BIO, patterns=[["B-PERSON", "O", "I-PERSON"]])


# Counts of each order


def test_counts_of_each_order():
    every = initialized(**SEMI, order=2)
    seen = every.get_pipe("hocrf").structure.index
    count = dict(zip(map(seen.patterns.__getitem__, seen.feature_pattern), seen.feature_count))
    pairs = [z for z in seen.patterns if len(z) == 2]
    triples = [z for z in seen.patterns if len(z) == 3]
    least = int(np.median([count[z] for z in triples])) + 1
    some = initialized(**SEMI, order=2, min_pattern_count=[1, least])
    patterns = some.get_pipe("hocrf").structure.patterns
    assert [z for z in patterns if len(z) == 2] == pairs
    kept = [z for z in patterns if len(z) == 3]
    assert kept == [z for z in triples if count[z] >= least] and 0 < len(kept) < len(triples)


# No longest pattern


@pytest.mark.slow
@pytest.mark.parametrize(
    "factory, model", [("hocrf", SEMI), ("hocrf", RUNS), ("hocrf", BIO), ("hocrf_tagger", TAGS)]
)
def test_without_an_order_the_longest_pattern_has_it(factory, model):
    endless, bounded = (
        initialized(factory, **model, order=None),
        initialized(factory, **model, order=9),
    )
    order = endless.get_pipe("hocrf").structure.settings.order
    longest = max(map(len, longer(endless)))
    assert order == longest - 1 > 2
    same = initialized(factory, **model, order=order)
    assert longer(endless) == longer(same) == longer(bounded)[: len(longer(same))]
    assert len(same.get_pipe("hocrf").structure.index) == len(
        endless.get_pipe("hocrf").structure.index
    )
    assert (
        longest == max(len(each.predicted) for each in examples(same)) or factory != "hocrf_tagger"
    )


def test_counts_end_the_patterns():
    nlp = initialized("hocrf_tagger", **TAGS, order=None, min_pattern_count=4)
    short = initialized("hocrf_tagger", **TAGS, order=None, min_pattern_count=[2, 5, 9])
    order, other = (each.get_pipe("hocrf").structure.settings.order for each in (nlp, short))
    assert 1 <= other < order < 8


def test_templates_of_an_order_end_the_patterns():
    block = {"@misc": "spacy-hocrf.Transition.v1", "order": 2}
    features = {"@misc": "spacy-hocrf.Features.v1", "basics": False, "*": {"triples": block}}
    nlp = initialized("hocrf_tagger", **TAGS, order=None, features=features)
    assert max(map(len, longer(nlp))) == 3 and nlp.get_pipe("hocrf").structure.settings.order == 2


@pytest.mark.slow
def test_transitions_of_all_orders_need_no_length(tmp_path):
    every = {"@misc": "spacy-hocrf.Transition.v1", "order": None}
    features = {"@misc": "spacy-hocrf.Features.v1", "basics": False, "*": {"labels": every}}
    model = {**TAGS, "order": None, "features": features}
    nlp = untrained("hocrf_tagger", model)
    docs = [nlp.make_doc("x y " * n) for n in range(1, 25)]
    data = [Example.from_dict(doc, {"tags": ["X", "Y"] * (len(doc) // 2)}) for doc in docs]
    learn_from(nlp, data)
    structure = nlp.get_pipe("hocrf").structure
    assert max(map(len, structure.patterns)) == 48 == structure.settings.order + 1
    assert [template.order for template in structure.index.templates] == [*range(1, 48)]
    nlp.to_disk(tmp_path)
    other = spacy.load(tmp_path)
    assert [token.tag_ for token in other("x y " * 4)] == ["X", "Y"] * 4
    assert other.get_pipe("hocrf").structure.settings == structure.settings


@pytest.mark.parametrize(
    "limit, found", [("label patterns", 20), ("labels in all label patterns", 60)]
)
def test_too_many_patterns_say_what_to_change(monkeypatch, limit, found):
    monkeypatch.setitem(surveying.LIMITS, limit, schema.Limit(found, ""))
    text = rf"H320.*min_pattern_count = \[1\].*more than {found} {limit}, of up to.*name an order"
    with pytest.raises(ValueError, match=text):
        initialized("hocrf_tagger", **TAGS, order=None)


def test_later_texts_add_patterns_up_to_the_order_of_the_first_ones():
    rows = documents()
    nlp = initialized("hocrf_tagger", rows=rows[-1:], **TAGS, order=None)
    pipe = nlp.get_pipe("hocrf")
    order, before = pipe.structure.settings.order, longer(nlp)
    fit(nlp, examples(nlp))
    assert pipe.structure.settings.order == order
    assert max(map(len, longer(nlp))) == order + 1 and {*before} < {*longer(nlp)}


# Saved and loaded


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        {**RUNS, "patterns": NAMED},
        {**SEMI, "order": None},
        {**SEMI, "order": 2, "min_pattern_count": [1, 3]},
    ],
)
def test_a_loaded_component_predicts_the_same_and_learns_on(model, tmp_path):
    nlp = trained(model=model)
    nlp.to_disk(tmp_path)
    other = spacy.load(tmp_path)
    texts = [text for text, _ in documents(8)]
    assert [found(doc) for doc in other.pipe(texts)] == [found(doc) for doc in nlp.pipe(texts)]
    mine, theirs = (each.get_pipe("hocrf").structure for each in (nlp, other))
    assert theirs.settings == mine.settings
    assert {*theirs.patterns} <= {*mine.patterns}
    fit(other, examples(other))
    assert other.get_pipe("hocrf").structure.settings.order == mine.settings.order


@pytest.mark.slow
def test_a_model_with_a_longest_pattern_of_its_own_is_not_one_of_another_order():
    data = trained(model={**SEMI, "order": None}).to_bytes()
    with pytest.raises(ValueError, match=r"H054.*order was"):
        untrained(model={**SEMI, "order": 1}).from_bytes(data)
    assert (
        untrained(model={**SEMI, "order": None}).from_bytes(data).get_pipe("hocrf").structure.ready
    )
