"""Constraints in training: losses and gradients against enumeration, and through the component."""

import warnings
from dataclasses import replace
from itertools import pairwise

import numpy as np
import oracle
import pytest
from derivatives import assert_gradient
from joint_config import joint
from numpy.testing import assert_allclose
from random_constraints import PROBLEMS, Constrained
from random_readings import KINDS
from small_corpus import (
    MODELS,
    documents,
    examples,
    fit,
    found,
    initialize,
    learner_of,
    untrained,
    words,
)
from spacy.training import Example

from spacy_hocrf.annotation.annotation import Annotation
from spacy_hocrf.answers.decoders import ExpectedF
from spacy_hocrf.engine.objective import Objective
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.learning.cost import _evidence
from spacy_hocrf.learning.likelihood import negative_log_likelihood
from spacy_hocrf.rules import compiled

SORTS = ("successions", "numbers", "both")
MISC = "spacy-hocrf.Constraints.v1"


def constraints(**settings):
    return {"@misc": MISC, **settings}


class Learnt(Constrained):
    """A random problem with an annotation that the constraints know nothing of."""

    def __init__(self, kind, seed, sort):
        super().__init__(kind, seed, {"both": "all"}.get(sort, sort), texts=False)
        rng = np.random.default_rng([seed, 23])
        self.annotation = self.random_annotation(rng)
        self.agreeing = [each for each in self.kept if self.agrees(each)]

    def random_annotation(self, rng):
        """Some spans of a segmentation that the model can have, and which tokens nobody looked at."""
        if not self.every:
            return Annotation((), np.ones(self.length, dtype=bool))
        spans = sorted(oracle.decoded(self.scheme, self.every[rng.integers(len(self.every))]))
        complete = rng.random() < 0.5
        known = [span for span in spans if complete or rng.random() < 0.6]
        unknown = np.zeros(self.length, dtype=bool)
        covered = np.zeros(self.length, dtype=bool)
        for start, end, _ in known:
            covered[start:end] = True
        for start, end, _ in set(spans) - set(known):
            unknown[start:end] = True
        if not complete:
            unknown |= ~covered & (rng.random(self.length) < 0.5)
        return Annotation(tuple(known), unknown)

    def agrees(self, segmentation):
        spans = set(oracle.decoded(self.scheme, segmentation))
        outside = ~self.annotation.unknown
        for start, end, _ in self.annotation.spans:
            outside[start:end] = False
        return spans >= set(self.annotation.spans) and not any(
            outside[start:end].any() for start, end, _ in spans
        )


@pytest.mark.slow
@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("kind", KINDS)
def test_losses_and_gradients_are_those_of_the_segmentations_that_keep_them(kind, sort):
    compared = broken = 0
    for problem in (Learnt(kind, seed, sort) for seed in range(PROBLEMS)):
        tokens, free = problem.batch(), problem.structure.potentials.allowed
        (fits,) = problem.training.fits(tokens, free, [problem.annotation])
        possible = any(map(problem.agrees, problem.every))
        assert fits == (bool(problem.agreeing) or not possible)
        broken += not fits
        if not problem.agreeing:
            continue
        kept = problem.training.constrained(tokens, free)
        potentials = replace(problem.structure.potentials, allowed=kept)
        observed = problem.training.observed(tokens, free, [problem.annotation])
        (loss,), gradient = negative_log_likelihood(
            potentials, observed, problem.training.automaton
        )
        (total, every), (left, known) = map(problem.sums, (problem.kept, problem.agreeing))
        assert loss == pytest.approx(total - left, rel=1e-7, abs=1e-7)
        for part, counts in every.items():
            derivative = getattr(gradient, part)
            if derivative is not None:
                assert_allclose(derivative, counts - known[part], atol=1e-7)
        compared += 1
    assert compared > PROBLEMS / 3
    assert broken


ROWS = [
    ("Emmy likes Paris", [(0, 4, "PERSON"), (11, 16, "PLACE")]),
    ("Paris , Emmy slept", [(0, 5, "PLACE"), (8, 12, "PERSON")]),
    ("Ada Lovelace Paris", [(0, 12, "PERSON"), (13, 18, "PLACE")]),
    ("It rains .", []),
]
TWICE = ("Emmy likes Emmy", [(0, 4, "PERSON"), (11, 15, "PERSON")])
ALL = constraints(
    forbidden=[["PLACE", "PERSON"], ["", "O"]],
    required=[["PERSON", "PLACE"]],
    at_most={"PLACE": 1},
    at_least={"PERSON": 1},
    training="all",
)
ONCE = {"at_most": {"PERSON": 1}, "training": "all"}
SPANS = {name: model for name, model in MODELS.items() if name != "tagger"}


def keeps(spans):
    """What `ALL` says."""
    spans = sorted(spans)
    labels = [label for *_, label in spans]
    touching = {(a, b[2]) for a, b in pairwise(spans) if a[1] == b[0]}
    return (
        not any(a[2] == "PLACE" and label == "PERSON" for a, label in touching)
        and bool(spans)
        and spans[0][0] == 0
        and all((span, "PLACE") in touching for span in spans if span[2] == "PERSON")
        and labels.count("PLACE") <= 1
        and labels.count("PERSON") >= 1
    )


def initialized(rows, factory="hocrf", model=None, **settings):
    nlp = untrained(factory, model, **settings)
    data = initialize(nlp, rows)
    return nlp, data


def scored_readings(pipe, doc, weights, keeps=keeps):
    """Spans and score of every segmentation of a text that keeps the constraints."""
    batch, structure = TokenBatch([doc]), pipe.structure
    compiled = structure.compile(structure.observe(batch), structure.allowed(batch))
    potentials = compiled.potentials(structure.compiled.place_weights(weights))
    scheme, patterns = structure.scheme, structure.patterns
    every = oracle.segmentations(potentials, scheme.limits, frozenset(scheme.forbidden))
    scored = [
        (set(oracle.decoded(scheme, s)), oracle.score(potentials, patterns, s)) for s in every
    ]
    return [(spans, score) for spans, score in scored if keeps(spans)]


def loss_of(scored, right):
    """- log P of some of the readings, by their scores."""
    return np.logaddexp.reduce([score for _, score in scored]) - np.logaddexp.reduce(right)


@pytest.mark.slow
@pytest.mark.parametrize("name", SPANS)
def test_the_objective_is_that_of_the_segmentations_that_keep_them(name):
    with pytest.warns(UserWarning, match=r"W030.*3 of 4 .* begins 'Emmy likes Paris'"):
        nlp, _ = initialized(ROWS, *SPANS[name], constraints=ALL)
    pipe, text = nlp.get_pipe("hocrf"), nlp.make_doc(ROWS[2][0])
    weights = np.random.default_rng(3).normal(size=pipe.structure.size) * 0.5
    loss, _ = pipe.objective()(weights)
    scored = scored_readings(pipe, text, weights)
    gold = {(0, 2, "PERSON"), (2, 3, "PLACE")}
    right = [score for spans, score in scored if spans == gold]
    assert len(scored) > len(right) == 1
    penalty = 0.5 * (weights**2).sum() / 100  # sigma is 10
    assert loss == pytest.approx(loss_of(scored, right) + penalty, rel=1e-9)
    assert_gradient(pipe.objective(), weights, 3)


def led_by_one(spans):
    """Do spans begin where the text does, and have one place at most?"""
    return bool(spans) and min(spans)[0] == 0 and sum(y == "PLACE" for *_, y in spans) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("trainer", ["LBFGS", "SGD"])
def test_partial_annotation_is_summed_over_what_keeps_them(trainer):
    rules = constraints(forbidden=[["", "O"]], at_most={"PLACE": 1}, training="all")
    nlp = untrained(constraints=rules, trainer={"@misc": f"spacy-hocrf.{trainer}.v1"})
    complete = examples(nlp, ROWS[2:3])
    entities = {"entities": ["-", "-", "-", "U-PLACE", "O"]}
    partial = Example.from_dict(words(nlp, "Emmy", "Ada", "likes", "Paris", "."), entities)
    nlp.initialize(lambda: [*complete, partial])
    pipe = nlp.get_pipe("hocrf")
    weights = np.random.default_rng(6).normal(size=pipe.structure.size).astype(np.float32)
    pipe.model.set_param("W", weights)
    scored = scored_readings(pipe, partial.predicted, weights.astype(np.float64), led_by_one)
    right = [score for spans, score in scored if max(spans) == (3, 4, "PLACE")]
    assert len(scored) > len(right) > 2
    expected = loss_of(scored, right)
    if trainer == "SGD":
        scores, _ = pipe.model.begin_update([partial.predicted])
        assert pipe.get_loss([partial], scores)[0] == pytest.approx(expected, rel=1e-6)
        return
    [shard] = [s.compiled for s in learner_of(pipe).shards() if s.compiled.observed]
    nothing = np.zeros(len(weights))
    objective = Objective(
        [shard], learner_of(pipe).layout, learner_of(pipe).automaton, nothing, nothing
    )
    assert objective(weights.astype(np.float64))[0] == pytest.approx(expected, rel=1e-6)


def losses(rows, weights=None, **settings):
    """The objective at random weights, or at the same ones."""
    nlp, _ = initialized(rows, constraints=constraints(**settings))
    pipe = nlp.get_pipe("hocrf")
    if weights is None:
        weights = np.random.default_rng(0).normal(size=pipe.structure.size)
    return pipe.objective()(weights)[0]


@pytest.mark.slow
def test_training_keeps_as_much_as_it_is_told():
    rules = {"forbidden": [["PLACE", "PERSON"]], "at_most": {"PLACE": 1}}
    none, successions, everything = (
        losses(ROWS, **rules, training=training) for training in ("none", "successions", "all")
    )
    assert none > successions + 0.1 > everything + 0.2
    assert losses(ROWS) == none
    assert losses(ROWS, **rules) == successions
    only_numbers = {"at_most": {"PLACE": 1}}
    assert losses(ROWS, **only_numbers) == none


def test_documents_that_break_them_teach_nothing():
    nlp = untrained(constraints=constraints(**ONCE))
    data = examples(nlp, [*ROWS, TWICE, TWICE])
    with pytest.warns(UserWarning, match=r"W030.* 1 of 5 .*'Emmy likes Emmy'"):
        nlp.initialize(lambda: data)
    learner = learner_of(nlp.get_pipe("hocrf"))
    texts = {document.text for shard in learner.shards() for document in shard._documents}
    assert texts == {text for text, _ in ROWS}
    assert len(learner.corpus) == 6
    fit(nlp, data)
    assert found(nlp("Emmy likes Paris")) == [(0, 1, "PERSON"), (2, 3, "PLACE")]


def test_documents_that_break_them_come_with_an_update():
    nlp, data = initialized(ROWS, constraints=constraints(**ONCE))
    fit(nlp, data)
    more = examples(nlp, [TWICE])
    with pytest.warns(UserWarning, match=r"W030.* 1 of 1 "):
        nlp.update(more, sgd=False)
        nlp.update([], sgd=False)
        nlp.update(data, sgd=False)


def test_partial_annotation_that_cannot_keep_them_teaches_nothing():
    nlp = untrained(constraints=constraints(forbidden=[["PERSON", "PLACE"]]))
    partial = Example.from_dict(
        words(nlp, "Emmy", "Paris", "rains"), {"entities": ["U-PERSON", "U-PLACE", "-"]}
    )
    fine = Example.from_dict(
        words(nlp, "Emmy", "Paris", "slept"), {"entities": ["U-PERSON", "-", "O"]}
    )
    with pytest.warns(UserWarning, match=r"W030.* 1 of 5 .*'Emmy Paris rains'"):
        nlp.initialize(lambda: [*examples(nlp, [*ROWS[:2], ROWS[3], ROWS[3]]), partial, fine, fine])
    shards = learner_of(nlp.get_pipe("hocrf")).shards()
    assert "Emmy Paris rains" not in {d.text for shard in shards for d in shard._documents}
    [known] = [shard for shard in shards if shard.compiled.observed]
    assert ([d.text for d in known._documents], known.copies) == (["Emmy Paris slept"], 2)


def test_white_space_does_not_count_at_the_edges():
    rows = [("  Emmy slept \n", [(2, 6, "PERSON")]), ("\n It rains", [])]
    with pytest.warns(UserWarning, match=r"W030.* 1 of 2 "):
        for model in (None, MODELS["CRF, bio"][1]):
            initialized(rows, model=model, constraints=constraints(forbidden=[["", "O"]]))


def test_nothing_left_to_learn_from_is_an_error():
    nlp = untrained(constraints=constraints(at_least={"PLACE": 3}, training="all"))
    data = examples(nlp, ROWS)
    with pytest.raises(ValueError, match=r"H223.*all 4 training documents.*'Emmy likes Paris'"):
        nlp.initialize(lambda: data)


@pytest.mark.slow
def test_more_than_training_can_remember(monkeypatch):
    monkeypatch.setattr(compiled, "MAX_JOINT_STATES", 3)
    rules = {"at_most": {"PLACE": 1, "PERSON": 1}}
    with pytest.raises(ValueError, match=r"H221.*more than 1024 states.*'successions'"):
        initialized(ROWS, constraints=constraints(**rules, training="all"))
    initialized(ROWS, constraints=constraints(**rules))


def test_a_label_that_no_document_has_is_found_at_once():
    with pytest.raises(ValueError, match=r"H215.*'PLAICE'"):
        initialized(ROWS, constraints=constraints(forbidden=[["PLAICE", "O"]]))


def test_another_word_for_what_training_keeps():
    with pytest.raises(ValueError, match=r"H214.*training = always.*none, successions, all"):
        untrained(constraints=constraints(training="always"))


@pytest.mark.slow
@pytest.mark.parametrize("trainer", ["LBFGS", "SGD"])
def test_every_trainer_keeps_them(trainer):
    rows = [*documents(), TWICE]
    settings = {
        "trainer": {"@misc": f"spacy-hocrf.{trainer}.v1"},
        "constraints": constraints(**ONCE, forbidden=[["PERSON", "PLACE"]]),
    }
    nlp = untrained(**settings)
    data = examples(nlp, rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nlp.initialize(lambda: data)
    fit(nlp, data, 30)
    for text, spans in documents():
        doc = nlp(text)
        assert [(span.start_char, span.end_char, span.label_) for span in doc.ents] == spans
    other = untrained(**settings).from_bytes(nlp.to_bytes())
    assert found(other("Emmy likes Paris")) == found(nlp("Emmy likes Paris"))


def test_a_span_that_is_too_long_is_another_error():
    nlp, _ = initialized(ROWS, constraints=constraints(forbidden=[["PERSON", "PERSON"]]))
    long = examples(nlp, [("Emmy Ada Lovelace slept", [(0, 17, "PERSON")])])
    pipe = nlp.get_pipe("hocrf")
    scores, _ = pipe.model.begin_update([long[0].predicted])
    with pytest.raises(ValueError, match="H007"):
        pipe.get_loss(long, scores)


def test_costs_are_learnt_from_what_keeps_them():
    rows = [ROWS[1], ROWS[3]]
    nlp, _ = initialized(rows, constraints=constraints(forbidden=[["", "PERSON"]]))
    learner = learner_of(nlp.get_pipe("hocrf"))
    found_spans = _evidence(learner, ExpectedF(), learner.corpus.documents).spans
    starts = set(zip(found_spans.start.tolist(), found_spans.label.tolist()))
    assert (1, 0) in starts and (0, 1) in starts and (0, 0) not in starts


def test_a_batch_that_breaks_them():
    nlp, data = initialized(
        ROWS, constraints=constraints(**ONCE), trainer={"@misc": "spacy-hocrf.SGD.v1"}
    )
    twice = examples(nlp, [TWICE])
    pipe = nlp.get_pipe("hocrf")
    scores, _ = pipe.model.begin_update([twice[0].predicted])
    with pytest.raises(ValueError, match=r"H222.*'Emmy likes Emmy'"):
        pipe.get_loss(twice, scores)
    assert nlp.update(twice, sgd=False)["hocrf"] == 0.0
    alone, together = (nlp.update(batch, sgd=False)["hocrf"] for batch in (data, data + twice))
    assert alone == together > 0


@pytest.mark.slow
def test_settings_are_chosen_and_costs_learnt_with_them():
    rows = [*documents(40), TWICE]
    nlp = untrained(
        trainer={"@misc": "spacy-hocrf.LBFGS.v1", "sigma": "auto"},
        decoder={"@misc": "spacy-hocrf.ExpectedF.v1"},
        constraints=constraints(**ONCE, forbidden=[["PERSON", "PERSON"]]),
    )
    data = examples(nlp, rows)
    with pytest.warns(UserWarning, match="W030"):
        nlp.initialize(lambda: data)
    pipe = nlp.get_pipe("hocrf")
    assert pipe.choice.sigma > 0
    fit(nlp, data)
    assert pipe.reading(nlp.make_doc("Emmy likes Paris")).probability(0, 1, "PERSON") > 0.5


@pytest.mark.slow
def test_joint_weights_are_learnt_as_before():
    rules = constraints(forbidden=[["PLACE", "PERSON"]])
    trainer = {"@misc": "spacy-hocrf.JointMaxMargin.v1"}
    other = ("Paris likes Paris", [(0, 5, "PLACE"), (12, 17, "PLACE")])
    weights = []
    for settings in ({}, {"constraints": rules}):
        nlp, data = initialized(
            [*documents(), TWICE, other], joint=joint(trainer=trainer), **settings
        )
        fit(nlp, data)
        weights.append(nlp.get_pipe("hocrf").model.get_param("W"))
    assert (weights[0] == weights[1]).all()
