"""Corpora in which some spans are marked, and nothing is known of all else."""

import re

import numpy as np
import oracle
import pytest
import spacy
from component_oracle import distribution
from derivatives import assert_gradient
from joint_config import joint
from numpy.testing import assert_allclose
from small_corpus import MODELS, documents, examples, fit, found, initialize, learner_of, untrained

from spacy_hocrf.training.lbfgs import LBFGSTrainer
from spacy_hocrf.training.owlqn import OWLQNTrainer
from spacy_hocrf.training.sgd import SGDTrainer

ROWS = [
    (text, [span for span in spans if span[2] == "PERSON" or i % 4 in (1, 2)])
    for i, (text, spans) in enumerate(documents(30))
]
"""Half of the places are not marked."""
WITHOUT_TAGS = [name for name in MODELS if name != "tagger"]


def begun(name="semi-CRF, outside tokens", rows=ROWS, **trainer):
    """A pipeline that has seen its corpus."""
    block = {"@misc": "spacy-hocrf.LBFGS.v1", "sigma": 2.0, **trainer}
    nlp = untrained(*MODELS[name], positives_only=True, trainer=block)
    data = initialize(nlp, rows)
    return nlp, data


def share_expected(nlp, data, weights):
    """Share of the tokens that the model expects in spans, by enumeration."""
    structure = learner_of(nlp.get_pipe("hocrf")).structure
    expected = tokens = 0
    for example in data:
        tokens += len(example.predicted)
        for segments, p in distribution(structure, [example.predicted], weights).items():
            spans = oracle.decoded(structure.scheme, segments)
            expected += p * sum(end - start for start, end, _ in spans)
    return expected / tokens


@pytest.mark.slow
@pytest.mark.parametrize("name", WITHOUT_TAGS)
def test_the_penalty_is_that_of_tokens_in_spans_and_its_gradient_that_of_differences(name):
    short = [row for row in ROWS if len(row[0].split()) < 6][:3]
    nlp, data = begun(name, short, ratio=0.5, ratio_weight=20.0)
    pipe = nlp.get_pipe("hocrf")
    learner = learner_of(pipe)
    weights = np.random.default_rng(0).normal(size=learner.structure.size) / 3
    objective = learner.objective()
    loss, _ = objective(weights)
    pipe.set_trainer(LBFGSTrainer(sigma=2.0, ratio_weight=0.0))
    tokens = sum(len(example.predicted) for example in data)
    over = abs(share_expected(nlp, data, weights) - 0.5)
    assert over > 0.01
    assert_allclose(
        loss - learner.objective()(weights)[0], 20 * tokens * over**2, rtol=1e-5, atol=1e-7
    )
    directions = np.random.default_rng(1).normal(size=(3, len(weights))) / np.sqrt(len(weights))
    assert_gradient(objective, weights, directions, step=1e-4, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("trainer", [LBFGSTrainer, OWLQNTrainer])
def test_what_is_not_marked_is_found_and_the_rest_is_not(trainer, tmp_path):
    share = {"ratio": 0.45, "ratio_weight": 100.0}
    block = {"@misc": f"spacy-hocrf.{trainer.__name__.removesuffix('Trainer')}.v1", **share}
    nlp, data = begun(**block)
    fit(nlp, data)
    pipe = nlp.get_pipe("hocrf")
    learner = learner_of(pipe)
    assert learner.adapts is False and pipe.trainer.ratio == 0.45
    expected = share_expected(nlp, data[:6], learner.weights)
    assert 0.35 < expected < 0.55
    shown = [found(doc) for doc in nlp.pipe(example.predicted.copy() for example in data)]
    every = [{(e.start, e.end, e.label_) for e in each.reference.ents} for each in data]
    whole = [
        {(e.start, e.end, e.label_) for e in each.reference.ents}
        for each in examples(nlp, documents(30))
    ]
    assert sum(map(len, whole)) > sum(map(len, every)) + 10
    right = sum(len({*mine} & gold) for mine, gold in zip(shown, whole))
    assert right > 0.8 * sum(map(len, whole)) and right > 0.9 * sum(map(len, shown))
    nlp.to_disk(tmp_path)
    again = spacy.load(tmp_path)
    assert again.config["components"]["hocrf"]["positives_only"] is True
    assert [found(doc) for doc in again.pipe(e.predicted.copy() for e in data)] == shown
    assert learner_of(again.get_pipe("hocrf")).gold.positives_only


@pytest.mark.slow
def test_a_loaded_model_that_is_adapted_says_itself_what_else_there_is():
    nlp, data = begun(ratio=0.45)
    fit(nlp, data)
    again = untrained(
        positives_only=True, trainer={"@misc": "spacy-hocrf.LBFGS.v1", "ratio": 0.45}
    ).from_bytes(nlp.to_bytes())
    again.update(data[:3])
    assert learner_of(nlp.get_pipe("hocrf")).positives is not None
    assert learner_of(again.get_pipe("hocrf")).positives is None


def test_settings_that_are_auto_have_their_defaults():
    nlp = untrained(positives_only=True, trainer={"@misc": "spacy-hocrf.LBFGS.v1", "ratio": 0.4})
    nlp.initialize(lambda: examples(nlp, ROWS))
    choice = nlp.get_pipe("hocrf").choice
    assert (choice.sigma, choice.order, choice.documents) == (2.0, 1, 0)


def test_unlabelled_text_is_possible_even_if_all_that_is_known_is_in_spans():
    nlp, _ = begun(rows=[("Ada", [(0, 3, "PERSON")]), ("Ada came", [(0, 3, "PERSON")])], ratio=0.7)
    assert learner_of(nlp.get_pipe("hocrf")).scheme.outside >= 0


@pytest.mark.parametrize(
    "ratio",
    [0, 1, 1.5, -0.1, float("nan"), "auto", "0.2", True, {}, {"A": 0.6, "B": 0.4}, {"A": 0.0}],
)
def test_a_ratio_that_no_text_can_have_is_an_error(ratio):
    with pytest.raises(ValueError, match=re.escape(f"[H530] ratio = {ratio!r} in")):
        LBFGSTrainer(ratio=ratio)


@pytest.mark.parametrize("value", [-0.1, float("inf"), float("nan"), "0.1"])
def test_the_weight_is_a_number(value):
    with pytest.raises(ValueError, match=r"H048.*ratio_weight"):
        LBFGSTrainer(ratio_weight=value)


def test_a_ratio_of_a_label_that_there_is_not_is_an_error():
    nlp, _ = begun(ratio={"PERSON": 0.35, "DAY": 0.1})
    with pytest.raises(ValueError, match=r"H531.*DAY.*PERSON, PLACE"):
        nlp.get_pipe("hocrf").run  # noqa: B018 - begins one


@pytest.mark.parametrize("ratio", [0.1, {"PERSON": 0.5, "PLACE": 0.01}])
def test_more_that_is_marked_than_there_should_be_is_an_error(ratio):
    with pytest.raises(ValueError, match=r"H534"):
        begun(ratio=ratio)


def test_texts_without_a_span_teach_nothing():
    with pytest.raises(ValueError, match=r"H533.*2 texts"):
        begun(rows=[("It rains .", []), ("It snows .", [])])


def test_a_label_of_which_nothing_is_marked_is_an_error():
    """All that is in no span could be one of it."""
    nlp = untrained(positives_only=True)
    nlp.get_pipe("hocrf").add_label("DAY")
    with pytest.raises(ValueError, match=r"H533.*a span of DAY"):
        nlp.initialize(lambda: examples(nlp))


def test_trainers_that_know_no_ratio_are_refused():
    with pytest.raises(ValueError, match=r"H532.*SGDTrainer"):
        untrained(positives_only=True, trainer={"@misc": "spacy-hocrf.SGD.v1"})
    nlp, _ = begun(ratio=0.45)
    with pytest.raises(ValueError, match="H532"):
        nlp.get_pipe("hocrf").set_trainer(SGDTrainer())


def test_joint_features_are_refused():
    with pytest.raises(ValueError, match=r"H532.*joint"):
        untrained(positives_only=True, joint=joint())
