"""What the component learns from: every loop reaches one objective, and that objective is the one
that the paper defines.
"""

import io
import logging
import math
import re
import sys
import warnings
from collections import Counter
from itertools import product

import numpy as np
import oracle
import pytest
import spacy
from component_oracle import distribution
from numpy.testing import assert_allclose
from small_corpus import (
    FEATURES,
    MODELS,
    documents,
    examples,
    fit,
    found,
    initialize,
    learn_from,
    learner_of,
    objective_at_optimum,
    teach,
    trained,
    untrained,
    weakly_trained,
    words,
)
from spacy.tokens import Doc, Span, Token
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from spacy.util import minibatch, registry
from thinc.api import Config

from spacy_hocrf.model.architectures import weights_of
from spacy_hocrf.training.lbfgs import LBFGSTrainer
from spacy_hocrf.warnings import Warnings

DEFAULT = {"@misc": "spacy-hocrf.LBFGS.v1"}
SEMI = {"features": FEATURES}
TAGS = {"@misc": "spacy-hocrf.Token.v1", "attrs": ["TAG", "ORTH"]}
TENSOR = {"@misc": "spacy-hocrf.Real.v1", "source": "tensor"}


def with_template(block):
    """An untrained pipeline with one template."""
    features = {"@misc": "spacy-hocrf.Features.v1", "*": {"one": block}}
    return untrained(model={**SEMI, "features": features})


@pytest.fixture(scope="module", autouse=True)
def reader():
    @registry.readers("test.small_corpus.v1")
    def read_small_corpus():
        return lambda nlp: iter(examples(nlp, documents(24)))


def spacy_train(*, steps, size, accumulate):
    """What `spacy train` does, in this process; the trained pipeline and the printed rows."""
    config = Config().from_str(untrained(trainer=DEFAULT).config.to_str(), interpolate=False)
    config["corpora"] = {name: {"@readers": "test.small_corpus.v1"} for name in ("train", "dev")}
    config["training"].update(
        max_steps=steps, eval_frequency=10, patience=0, accumulate_gradient=accumulate
    )
    config["training"]["batcher"] = {"@batchers": "spacy.batch_by_sequence.v1", "size": size}
    nlp = init_nlp(config)
    stream = io.StringIO()
    train(nlp, stdout=stream, stderr=stream)
    rows = [line.split() for line in stream.getvalue().splitlines() if line[:1] == " "]
    return nlp, rows


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*:UserWarning")
def test_every_loop_ends_at_the_same_objective(capsys):
    command, rows = spacy_train(steps=150, size=7, accumulate=1)
    accumulated, _ = spacy_train(steps=150, size=5, accumulate=3)
    plain = untrained(trainer=DEFAULT)
    data = examples(plain, documents(24))
    optimizer = plain.initialize(lambda: data)
    for _ in range(100):
        for batch in minibatch(data, 16):
            plain.update(batch, sgd=optimizer)
    ends = [objective_at_optimum(nlp) for nlp in (command, plain, accumulated)]
    with capsys.disabled():
        print(
            f"\nspacy train {ends[0]:.9f}, plain loop {ends[1]:.9f}, accumulate_gradient = 3 {ends[2]:.9f}"
        )
    assert ends == pytest.approx([ends[0]] * 3, rel=1e-6)
    assert len(rows) == 15 + 1
    assert float(rows[0][2]) > 0, "the loss of the first row is 0"
    assert float(rows[-1][3]) == 100.0


def test_an_epoch_sums_to_the_objective():
    nlp = untrained()
    data = initialize(nlp)
    weights = nlp.get_pipe("hocrf").model.get_param("W").astype(np.float64)
    objective, _ = nlp.get_pipe("hocrf").objective()(weights)
    losses: dict = {}
    for batch in (*minibatch(data, 3), [Example.from_dict(nlp.make_doc("Nothing is known"), {})]):
        nlp.update(batch, sgd=False, losses=losses)
    assert losses["hocrf"] == pytest.approx(objective, rel=1e-12)
    assert objective > 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "texts", [[""], [], ["Nothing is known"]], ids=["empty", "no example", "no annotation"]
)
def test_losses_are_always_set(texts):
    nlp = trained(rows=documents(4))
    data = [Example.from_dict(nlp.make_doc(text), {}) for text in texts]
    assert nlp.get_pipe("hocrf").update(data) == {"hocrf": 0.0}


def test_update_without_sgd_takes_no_step():
    nlp = untrained()
    data = initialize(nlp)
    pipe = nlp.get_pipe("hocrf")
    for sgd in (None, False):
        pipe.update(data, sgd=sgd)
    assert not pipe.model.get_param("W").any()
    pipe.update(data, sgd=nlp.create_optimizer())
    assert pipe.model.get_param("W").any()


def calls_of(function):
    """Python functions that a call enters, its own included: work without a clock."""
    entered = Counter()

    def count(frame, event, _):
        entered[event] += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(before)
    return entered["call"] + entered["c_call"]


def test_converged_updates_are_nearly_free(caplog):
    nlp = untrained()
    rows = documents(40)
    data = initialize(nlp, rows)
    optimizer = nlp.create_optimizer()
    first = calls_of(lambda: nlp.update(data, sgd=optimizer))
    with caplog.at_level(logging.INFO, logger="spacy"):
        fit(nlp, data)
    assert "converged" in caplog.text
    evaluations = nlp.get_pipe("hocrf").run.evaluations
    last = calls_of(lambda: nlp.update(data, sgd=optimizer))
    assert nlp.get_pipe("hocrf").run.evaluations == evaluations
    assert last < first


@pytest.mark.slow
def test_the_work_for_an_update_does_not_grow_with_the_corpus():
    def calls(count):
        nlp = untrained()
        rows = [(f"{text} {i}", spans) for i in range(count) for text, spans in documents(10)]
        data = initialize(nlp, rows)
        pipe = nlp.get_pipe("hocrf")
        pipe.update(data[:1])
        return calls_of(lambda: pipe.update(data[:1]))

    assert calls(30) == calls(1)


def test_repeated_documents_count():
    weighted, single = untrained(), untrained()
    initialize(single)
    weighted.initialize(lambda: examples(weighted, [*documents(), *documents()]))
    pipe, other = weighted.get_pipe("hocrf"), single.get_pipe("hocrf")
    weights = np.random.default_rng(0).normal(size=len(pipe.structure.index))
    prior = 0.5 * weights @ weights / 10.0**2
    once, twice = other.objective()(weights)[0] - prior, pipe.objective()(weights)[0] - prior
    assert twice == pytest.approx(2 * once, rel=1e-10)
    for _ in range(2):  # one epoch after another brings nothing new
        for batch in minibatch(examples(weighted, [*documents(), *documents()]), 7):
            weighted.update(batch, sgd=False)
    assert pipe.objective()(weights)[0] - prior == pytest.approx(twice, rel=1e-12)


# Unknown annotation


def oracle_loss(pipe, doc, agrees):
    """- log of the probability of the segmentations that agree, by enumeration."""
    every = distribution(pipe.structure, [doc], pipe.model.get_param("W"))
    agreeing = (p for s, p in every.items() if agrees(oracle.decoded(pipe.structure.scheme, s)))
    return -math.log(math.fsum(agreeing))


def loss_of(pipe, example):
    """The part that one example has in the objective."""
    loss, _ = pipe.get_loss([example], pipe.model.predict([example.predicted]))
    return loss


@pytest.fixture(params=[name for name, (factory, _) in MODELS.items() if factory == "hocrf"])
def weak_nlp(request):
    return weakly_trained(request.param)


PARTIAL = {
    "missing around an entity": (["-", "U-PLACE", "-", "-"], lambda s: (1, 2, "PLACE") in s),
    "missing beside outside": (
        ["-", "O", "O", "-"],
        lambda s: not any(a < 3 and b > 1 for a, b, _ in s),
    ),
    "missing at the end": (["B-PERSON", "L-PERSON", "-", "-"], lambda s: (0, 2, "PERSON") in s),
    "all known": (
        ["B-PERSON", "L-PERSON", "O", "U-PLACE"],
        lambda s: s == [(0, 2, "PERSON"), (3, 4, "PLACE")],
    ),
    "all outside": (["O", "O", "O", "O"], lambda s: s == []),
    "nothing known": (["-", "-", "-", "-"], lambda s: True),
}


@pytest.mark.parametrize("tags, agrees", [*PARTIAL.values()], ids=[*PARTIAL])
def test_missing_annotation_is_marginalised_out(weak_nlp, tags, agrees):
    pipe = weak_nlp.get_pipe("hocrf")
    doc = words(weak_nlp, "Ada", "Lovelace", "likes", "Paris")
    example = Example.from_dict(doc, {"entities": tags})
    assert loss_of(pipe, example) == pytest.approx(
        oracle_loss(pipe, doc, agrees), rel=1e-9, abs=1e-12
    )


def test_misaligned_annotation_is_marginalised_out(weak_nlp):
    pipe = weak_nlp.get_pipe("hocrf")
    doc = Doc(weak_nlp.vocab, words=["in", "NewYork", "Emmy"], spaces=[True, True, False])
    reference = Doc(
        weak_nlp.vocab, words=["in", "New", "York", "Emmy"], spaces=[True, False, True, False]
    )
    reference.ents = [Span(reference, 1, 2, label="PERSON"), Span(reference, 3, 4, label="PERSON")]
    expected = oracle_loss(
        pipe, doc, lambda s: (2, 3, "PERSON") in s and not any(a == 0 for a, _, _ in s)
    )
    assert loss_of(pipe, Example(doc, reference)) == pytest.approx(expected, rel=1e-9)


def test_white_space_inside_a_misaligned_entity_is_unknown():
    pipe = untrained().get_pipe("hocrf")
    doc = Doc(
        pipe.vocab,
        words=["aNew", " ", "Yorkb", "\n", "c"],
        spaces=[False, False, True, False, False],
    )
    reference = Doc(
        pipe.vocab, words=["a", "New", "York", "b", "c"], spaces=[False, True, False, True, False]
    )
    reference.ents = [Span(reference, 1, 3, label="PLACE")]
    annotation = pipe.target.annotation(Example(doc, reference))
    assert annotation.unknown.tolist() == [True, True, True, False, False]
    assert annotation.spans == ()


def test_a_misaligned_span_is_unknown_although_another_reads_the_same():
    pipe = untrained("hocrf_spans").get_pipe("hocrf")
    doc = Doc(pipe.vocab, words=["Emmy", "xEmmy", "y"])
    reference = Doc(pipe.vocab, words=["Emmy", "x", "Emmy", "y"], spaces=[True, False, True, True])
    reference.spans["sc"] = [
        Span(reference, 0, 1, label="PERSON"),
        Span(reference, 2, 3, label="PERSON"),
    ]
    annotation = pipe.target.annotation(Example(doc, reference))
    assert annotation.spans == ((0, 1, "PERSON"),)
    assert annotation.unknown.tolist() == [False, True, False]


@pytest.mark.slow
@pytest.mark.parametrize(
    "factory, empty", [("hocrf", {"entities": []}), ("hocrf_spans", {"spans": {"sc": []}})]
)
def test_empty_annotation_is_all_outside_and_none_is_missing(factory, empty):
    nlp = trained(factory, rows=documents(4))
    pipe = nlp.get_pipe("hocrf")
    doc = words(nlp, "Ada", "Lovelace", "likes")
    assert loss_of(pipe, Example.from_dict(doc, {})) == pytest.approx(0.0, abs=1e-12)
    outside = loss_of(pipe, Example.from_dict(doc, empty))
    assert outside == pytest.approx(oracle_loss(pipe, doc, lambda spans: spans == []), rel=1e-9)
    before = len(learner_of(pipe).corpus)
    pipe.update([Example.from_dict(nlp.make_doc("Something else"), {})])
    assert len(learner_of(pipe).corpus) == before
    pipe.update([Example.from_dict(nlp.make_doc("Something else"), empty)])
    assert len(learner_of(pipe).corpus) == before + 1


def test_partial_tags_are_marginalised_out():
    nlp = trained("hocrf_tagger", trainer={"@misc": "spacy-hocrf.LBFGS.v1", "sigma": 0.3})
    doc = words(nlp, "Emmy", "slept", ".")
    example = Example.from_dict(doc, {"tags": ["NAME", "", "PUNCT"]})
    pipe = nlp.get_pipe("hocrf")
    expected = oracle_loss(pipe, doc, lambda s: (0, 1, "NAME") in s and (2, 3, "PUNCT") in s)
    assert loss_of(pipe, example) == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow
def test_the_objective_of_partly_annotated_documents_is_learnt():
    rows = documents(9)
    nlp = untrained()
    data = examples(nlp, rows)
    partial = Example.from_dict(
        nlp.make_doc("Emmy likes San Jose"), {"entities": ["U-PERSON", "-", "-", "-"]}
    )
    nlp.initialize(lambda: [*data, partial])
    losses = fit(nlp, [*data, partial])
    assert losses[-1] < 0.2 * losses[0]
    assert (0, 1, "PERSON") in found(nlp(partial.text))


def test_with_nothing_but_entities_known_there_is_still_an_outside_label():
    nlp = untrained()
    data = [Example.from_dict(words(nlp, "Emmy", "slept"), {"entities": ["U-PERSON", "-"]})]
    nlp.initialize(lambda: data)
    assert nlp.get_pipe("hocrf").structure.scheme.outside == 0


# Documents that change


def first_tags(nlp):
    """Tags of the first tokens of all documents of the corpus."""
    corpus = learner_of(nlp.get_pipe("hocrf")).corpus
    return {
        nlp.vocab.strings[int(corpus.batch([document]).column("TAG")[0])]
        for document in corpus.documents
    }


def test_changed_features_replace_the_document():
    nlp = with_template(TAGS)

    def tagged(tag):
        data = examples(nlp)
        for example in data:
            for token in example.predicted:
                token.tag_ = tag
        return data

    nlp.initialize(lambda: tagged("A"))
    pipe = nlp.get_pipe("hocrf")
    pipe.update(tagged("A"))
    run = pipe.run
    pipe.update(tagged("A"))
    assert pipe.run is run
    pipe.update(tagged("B"))
    assert pipe.run is not run
    assert len(learner_of(pipe).corpus) == 10
    assert first_tags(nlp) == {"B"}


def images(nlp, numbers):
    """Equal texts with equal annotation, told apart by an array alone."""
    data = examples(nlp, documents()[:1] * len(numbers))
    for example, number in zip(data, numbers):
        example.predicted.tensor = np.full((len(example.predicted), 1), number, dtype=np.float32)
    return data


def first_values(nlp):
    return sorted(
        float(document.source.real[0][0, 0])
        for document in learner_of(nlp.get_pipe("hocrf")).corpus.documents
    )


@pytest.fixture
def drawn():
    return with_template(TENSOR)


def test_equal_texts_with_different_features_are_different_documents(drawn):
    drawn.initialize(lambda: images(drawn, [1, 2, 2, 3]))
    pipe = drawn.get_pipe("hocrf")
    assert first_values(drawn) == [1, 2, 3]
    assert [document.copies for document in learner_of(pipe).corpus.documents] == [1, 2, 1]
    assert len(learner_of(pipe).corpus) == 4
    pipe.update(images(drawn, [3, 1]))
    run = pipe.run
    for batch in minibatch(images(drawn, [1, 2, 2, 3]), 3):
        pipe.update(batch)
    assert pipe.run is run
    weights = np.random.default_rng(0).normal(size=len(pipe.structure.index))
    prior = 0.5 * weights @ weights / 10.0**2
    pipe.model.set_param("W", weights.astype(np.float32))
    alone = sum(loss_of(pipe, example) for example in images(drawn, [1, 2, 2, 3]))
    # the model's weights have single precision
    assert pipe.objective()(weights)[0] == pytest.approx(alone + prior, rel=1e-6)


@pytest.mark.parametrize("size", [1, 2, 4])
def test_equal_texts_whose_features_change_replace_each_other_once_an_epoch(drawn, size):
    drawn.initialize(lambda: images(drawn, [1, 2, 3]))
    pipe = drawn.get_pipe("hocrf")
    for numbers in ([4, 5, 6], [9, 8, 7]):
        for batch in minibatch(images(drawn, numbers), size):
            pipe.update(batch)
        assert first_values(drawn) == sorted(numbers)
    pipe.update(images(drawn, [7, 10]))  # what is seen unchanged is not replaced
    assert (
        7 in first_values(drawn) and 10 in first_values(drawn) and len(learner_of(pipe).corpus) == 3
    )
    pipe.update(images(drawn, [11, 12, 13, 14]))  # no more than there were
    assert len(learner_of(pipe).corpus) == 3


@pytest.mark.filterwarnings("ignore:.*W013")  # what comes later, by hand
def test_the_users_documents_may_change_later():
    nlp = with_template(TAGS)
    data = initialize(nlp)
    for example in data:
        example.predicted[0].tag_ = "changed"
    assert first_tags(nlp) == {""}


@pytest.mark.filterwarnings("ignore:.*W013")  # what comes later, by hand
def test_custom_attributes_are_part_of_the_features():
    Token.set_extension("test_flavour", default="", force=True)
    try:
        nlp = with_template({**TAGS, "attrs": ["_.test_flavour"]})
        initialize(nlp)
        pipe = nlp.get_pipe("hocrf")
        run = pipe.run
        again = examples(nlp)
        again[0].predicted[0]._.test_flavour = "sweet"
        for _ in range(2):  # one document in ten waits for an update that brings nothing new
            pipe.update(again)
        assert pipe.run is not run
    finally:
        Token.remove_extension("test_flavour")


@pytest.mark.slow
@pytest.mark.parametrize("when", ["initialize", "update"])
def test_features_that_are_not_numbers(when):
    nlp = with_template(TENSOR)
    data = examples(nlp)
    for example in data:
        example.predicted.tensor = np.ones((len(example.predicted), 2), dtype=np.float32)
    pipe = nlp.get_pipe("hocrf")
    if when == "update":
        learn_from(nlp, data)
    before = pipe.to_bytes()
    broken = examples(nlp, [("Emmy likes Paris", [(0, 4, "PERSON")])])
    broken[0].predicted.tensor = np.full((3, 2), np.nan, dtype=np.float32)
    with pytest.raises(ValueError, match=r"H025.*'tensor'.*Emmy likes Paris"):
        pipe.initialize(lambda: [*data, *broken]) if when == "initialize" else nlp.update(
            [*data, *broken], sgd=None
        )
    assert pipe.to_bytes() == before
    if when == "update":
        assert len(learner_of(pipe).corpus) == len(data)
        pipe.update(data)


# Other trainers


@pytest.mark.slow
def test_sgd_learns():
    nlp = untrained(trainer={"@misc": "spacy-hocrf.SGD.v1", "sigma": 10.0})
    data = examples(nlp)
    optimizer = nlp.initialize(lambda: data)
    optimizer.learn_rate = 0.05
    losses = []
    for _ in range(30):
        epoch: dict = {}
        for batch in minibatch(data, 4):
            nlp.update(batch, sgd=optimizer, losses=epoch)
        losses.append(epoch["hocrf"])
    pipe = nlp.get_pipe("hocrf")
    assert pipe.run is None
    assert losses[0] > 5 * losses[-1]
    assert nlp.evaluate(data)["ents_f"] == 1.0
    again = untrained(trainer={"@misc": "spacy-hocrf.SGD.v1", "sigma": 10.0}).from_bytes(
        nlp.to_bytes()
    )
    again.update(data, sgd=again.resume_training())
    assert again.evaluate(data)["ents_f"] == 1.0


def test_an_epoch_of_sgd_sums_to_the_objective():
    nlp = untrained(trainer={"@misc": "spacy-hocrf.SGD.v1", "sigma": 10.0})
    data = initialize(nlp)
    pipe = nlp.get_pipe("hocrf")
    weights = np.random.default_rng(0).normal(size=len(pipe.structure.index)).astype(np.float32)
    pipe.model.set_param("W", weights)
    expected, gradient = pipe.objective()(weights.astype(np.float64))
    losses: dict = {}
    for batch in minibatch(data, 3):
        nlp.update(batch, sgd=False, losses=losses)
    assert losses["hocrf"] == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(pipe.model.get_grad("W"), gradient, rtol=1e-4, atol=1e-4)


def test_sgd_meets_longer_spans_than_initialize_did():
    nlp = untrained(trainer={"@misc": "spacy-hocrf.SGD.v1"})
    optimizer = nlp.initialize(lambda: examples(nlp, [("Emmy slept", [(0, 4, "PERSON")])]))
    longer = examples(nlp, [("Carl Friedrich Gauss slept", [(0, 20, "PERSON")])])
    losses = [nlp.update(longer, sgd=optimizer)["hocrf"] for _ in range(3)]
    assert all(map(math.isfinite, losses))


def test_sgd_goes_on_with_the_same_optimizer_from_other_features():
    nlp, other = (untrained(trainer={"@misc": "spacy-hocrf.SGD.v1"}) for _ in range(2))
    few, data = examples(nlp, [("Emmy slept", [(0, 4, "PERSON")])]), examples(nlp)
    optimizer = nlp.initialize(lambda: few)
    pipe, begin = nlp.get_pipe("hocrf"), (lambda: data)
    other.initialize(begin)
    saved = other.get_pipe("hocrf").to_bytes()
    for replace in (lambda: pipe.initialize(begin), lambda: pipe.from_bytes(saved)):
        pipe.initialize(lambda: few)
        nlp.update(few, sgd=optimizer)
        nlp.update(few, sgd=False)  # its gradient is not one of the new weights
        replace()
        assert not pipe.model.has_grad("W")
        first = nlp.update(data, sgd=optimizer)["hocrf"]
        assert nlp.update(data, sgd=optimizer)["hocrf"] < first


def test_averages_of_the_optimizer_are_used():
    nlp = untrained(trainer={"@misc": "spacy-hocrf.SGD.v1", "sigma": 10.0})
    data = examples(nlp)
    optimizer = nlp.initialize(lambda: data)
    optimizer.averages = {}
    for _ in range(10):
        nlp.update(data, sgd=optimizer)
    pipe = nlp.get_pipe("hocrf")
    before = pipe.model.get_param("W").copy()
    assert optimizer.averages
    with nlp.use_params(optimizer.averages):
        assert not np.array_equal(pipe.model.get_param("W"), before)
        assert nlp("Emmy slept") is not None
    assert np.array_equal(pipe.model.get_param("W"), before)


# Warnings


def caught(code, action):
    with warnings.catch_warnings(record=True) as found_here:
        warnings.simplefilter("always")
        action()
    return [str(w.message) for w in found_here if f"[{code}]" in str(w.message)]


TOUCHING = [
    ("Emmy Emmy slept", [(0, 4, "PERSON"), (5, 9, "PERSON")]),
    ("Emmy slept", [(0, 4, "PERSON")]),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [{**SEMI, "repeats": False}, {"features": FEATURES, "encoding": "io"}],
    ids=["repeats", "io"],
)
def test_neighbours_of_one_label_are_joined_with_a_warning(model):
    nlp = untrained(model=model)
    data = examples(nlp, TOUCHING)
    messages = caught("W001", lambda: nlp.initialize(lambda: data))
    assert len(messages) == 1 and messages[0].startswith("[W001] In 1 documents")
    fit(nlp, data)
    assert found(nlp(TOUCHING[0][0])) == [(0, 2, "PERSON")]


@pytest.mark.slow
@pytest.mark.parametrize("repeats", [None, True])
def test_repeats_are_learnt(repeats):
    nlp = trained(model={**SEMI, "repeats": repeats}, rows=TOUCHING)
    assert found(nlp(TOUCHING[0][0])) == [(0, 1, "PERSON"), (1, 2, "PERSON")]
    plain = trained(model={**SEMI, "repeats": repeats})
    scheme = plain.get_pipe("hocrf").structure.scheme
    assert bool(scheme.forbidden) == (repeats is None)


@pytest.mark.slow
def test_repeats_that_come_later_are_learnt_too():
    nlp = trained(rows=documents(4))
    fit(nlp, examples(nlp, TOUCHING))
    assert found(nlp(TOUCHING[0][0])) == [(0, 1, "PERSON"), (1, 2, "PERSON")]


@pytest.mark.slow
@pytest.mark.parametrize("limit", [2, {"PERSON": 2, "PLACE": 2}])
def test_a_limit_below_the_training_data_grows_with_a_warning(limit):
    nlp = untrained(model={**SEMI, "max_length": limit})
    data = examples(nlp, documents(60))
    messages = caught("W002", lambda: nlp.initialize(lambda: data))
    assert len(messages) == 1 and "'PERSON'" in messages[0]
    scheme = nlp.get_pipe("hocrf").structure.scheme
    assert dict(zip(scheme.names, scheme.limits)) == {"O": 1, "PERSON": 3, "PLACE": 2}
    assert not caught(
        "W002", lambda: nlp.update(examples(nlp, [("Emmy", [(0, 4, "PERSON")])]), sgd=False)
    )


def test_overlapping_spans_are_left_out_with_a_warning():
    nlp = untrained("hocrf_spans")
    doc = nlp.make_doc("Ada Lovelace slept")
    example = Example.from_dict(
        doc, {"spans": {"sc": [(0, 12, "PERSON"), (0, 3, "PERSON"), (4, 12, "PLACE")]}}
    )
    messages = caught("W003", lambda: nlp.initialize(lambda: [example]))
    assert len(messages) == 1 and messages[0].startswith("[W003] 2 overlapping spans")
    assert not caught("W003", lambda: nlp.update([example], sgd=False))
    assert nlp.get_pipe("hocrf").labels == ("PERSON",)


def overlapping(nlp):
    """A name within which the last word is a surname, in each of several texts."""
    names = ("Ada Lovelace", "Alan Turing", "Grace Hopper", "Emmy Noether")
    for name in names:
        doc, last = nlp.make_doc(f"{name} slept"), name.index(" ") + 1
        whole, part = (0, len(name), "PER"), (last, len(name), "SUR")
        annotation = {"sc": [whole, part], "names": [whole], "surnames": [part]}
        yield Example.from_dict(doc, {"spans": annotation})


@pytest.mark.parametrize("trainer", ["LBFGS", "SGD"])
def test_overlapping_spans_of_many_texts_are_one_warning(trainer):
    nlp = untrained("hocrf_spans", trainer={"@misc": f"spacy-hocrf.{trainer}.v1"})

    def train():
        data = [*overlapping(nlp)]
        nlp.initialize(lambda: data)
        for _ in range(3):
            nlp.update(data, sgd=nlp.create_optimizer())

    (message,) = caught("W003", train)
    assert re.match(r"\[W003\] 4 overlapping spans of doc.spans\['sc'\].* in 4 texts", message)
    assert "'Ada Lovelace slept', 'Alan Turing slept', 'Grace Hopper slept'" in message
    assert "Emmy" not in message


def test_a_component_for_each_layer_learns_spans_that_overlap():
    nlp = spacy.blank("xx")
    for key in ("names", "surnames"):
        nlp.add_pipe("hocrf_spans", name=key, config={"spans_key": key})
    data = [*overlapping(nlp)]
    nlp.initialize(lambda: data)
    for _ in range(20):
        nlp.update(data, sgd=nlp.create_optimizer())
    doc = nlp("Emmy Noether slept")
    layers = {key: [(s.text, s.label_) for s in doc.spans[key]] for key in ("names", "surnames")}
    assert layers == {"names": [("Emmy Noether", "PER")], "surnames": [("Noether", "SUR")]}


def test_documents_without_annotation_are_counted():
    nlp = untrained()
    data = [
        *examples(nlp),
        *(Example.from_dict(nlp.make_doc(text), {}) for text in ("What is this", "or that", "")),
    ]
    messages = caught("W004", lambda: nlp.initialize(lambda: data))
    assert len(messages) == 1 and messages[0].startswith("[W004] 2 training documents")


@pytest.mark.parametrize("labels", [None, ["PERSON"]])
def test_a_span_without_a_label_is_named_with_its_text(labels):
    nlp = untrained("hocrf_spans")
    data = examples(nlp)
    reference = data[3].reference
    reference.spans["sc"] = [*reference.spans["sc"], Span(reference, 0, 1, label="")]
    with pytest.raises(ValueError, match="H242") as caught:
        nlp.get_pipe("hocrf").initialize(lambda: data, labels=labels)
    for part in (reference[0].text, reference.text[:20], "doc.spans['sc']"):
        assert part in str(caught.value)


@pytest.mark.parametrize("parts", [[0, 3], [[0, 1, 2]], [[-1, 2]], [[2, 1]], [[0, 99]], "ab", None])
def test_what_is_no_part_of_a_text_cannot_be_unknown(parts):
    nlp = untrained("hocrf_spans")
    data = examples(nlp)
    reference = data[3].reference
    reference.spans["sc"].attrs["unknown"] = parts
    expected = f"H538.*{reference.text[:20]}.*of its {len(reference)} tokens"
    with pytest.raises(ValueError, match=expected):
        nlp.initialize(lambda: data)


def test_an_entity_without_a_label_is_none_to_spacy():
    """So that nobody can warn of it."""
    doc = spacy.blank("xx")("Ada bores Max")
    doc.ents = [Span(doc, 0, 1, label=""), Span(doc, 2, 3, label="PERSON")]
    assert [token.ent_iob_ for token in doc] == ["O", "O", "B"]


def test_codes_of_warnings_are_those_that_some_test_names():
    assert {name for name in vars(Warnings) if name[0] == "W"} == {
        f"W{i:03}"
        for i in (*range(1, 5), *range(7, 19), 20, *range(30, 33), 35, 36, *range(48, 56))
    }


@pytest.mark.slow
@pytest.mark.parametrize("outside, all_labelled", [*product(["token", "run"], [False, True])])
def test_outside_is_a_label_only_where_some_text_has_none(outside, all_labelled):
    rows = [("Emmy Paris", [(0, 4, "PERSON"), (5, 10, "PLACE")])] + [("It rains", [])] * (
        not all_labelled
    )
    nlp = trained(model={**SEMI, "outside": outside}, rows=rows)
    assert nlp.get_pipe("hocrf").structure.scheme.names == (
        *["O"] * (not all_labelled),
        "PERSON",
        "PLACE",
    )
    assert found(nlp("Emmy Paris")) == [(0, 1, "PERSON"), (1, 2, "PLACE")]


@pytest.mark.slow
def test_another_sigma_goes_on_from_the_weights_there_are():
    data_of = {
        sigma: untrained(trainer={"@misc": "spacy-hocrf.LBFGS.v1", "sigma": sigma})
        for sigma in (0.5, 1.0)
    }
    for nlp in data_of.values():
        teach(nlp)
    nlp, goal = data_of[0.5], objective_at_optimum(data_of[1.0])
    pipe = nlp.get_pipe("hocrf")
    weights = weights_of(pipe.model).copy()
    pipe.set_trainer(LBFGSTrainer(sigma=1.0))
    assert pipe.trainer.sigma == (1.0,) and pipe.run.running
    # features that always go together are added up, and divided again
    assert_allclose(pipe.run.weights, weights, rtol=1e-14)
    assert goal < pipe.run.loss < pipe.objective()(0 * weights)[0]
    fit(nlp, examples(nlp))
    assert objective_at_optimum(nlp) == pytest.approx(goal, rel=1e-6)
    with pytest.raises(ValueError, match="H058"):
        pipe.set_trainer(None)
