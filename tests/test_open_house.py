"""A trainer, a way to read answers, a template and a dense score of a user's own: registered, trained
through a config file, saved and loaded, with nothing of the package touched.
"""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
import spacy
from derivatives import assert_gradient
from numpy.testing import assert_allclose, assert_array_equal
from small_corpus import (
    PIPELINE,
    decoder_of,
    documents,
    entity_scores,
    examples,
    found,
    initialize,
    untrained,
    words,
)
from spacy.util import load_config, load_model_from_config, registry

from spacy_hocrf.answers.decoders import Viterbi
from spacy_hocrf.features.records import recordable
from spacy_hocrf.features.templates import Events
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.model.dense import LinearScore, checked_array, checked_scores
from spacy_hocrf.model.heads import inputs_of
from spacy_hocrf.training.base import BaseTrainer
from spacy_hocrf.training.lbfgs import LBFGSTrainer
from spacy_hocrf.types import TOKEN

CONFIG = (
    PIPELINE
    + """
[components.hocrf.model]
@architectures = "spacy-hocrf.HighOrderCRF.v1"

[components.hocrf.model.features]
@misc = "spacy-hocrf.Features.v1"

[components.hocrf.model.features.*.initial]
@misc = "test.Initial.v1"

[components.hocrf.model.features.*.labels]
@misc = "spacy-hocrf.Transition.v1"

[components.hocrf.model.scores]

[components.hocrf.model.scores.shape]
@misc = "test.Shape.v1"
part = "{part}"

[components.hocrf.trainer]
@misc = "test.Descent.v1"
steps = 60

[components.hocrf.decoder]
@misc = "test.Sharp.v1"
least = 0.0
"""
)


@dataclass(frozen=True)
class Initial:
    """The first letter of every token."""

    name: str = "initial"
    part: int = TOKEN
    order: int = 0
    width: int = 1

    def events(self, batch):
        letters = np.array([ord(doc[i].text[0]) for doc in batch.docs for i in range(len(doc))])
        tokens = np.arange(len(letters))
        return Events(tokens.astype(np.int64), letters.astype(np.uint64)[:, None])


@recordable
@dataclass(frozen=True)
class Shape(LinearScore):
    """Three numbers of every token."""

    part: str = "token"
    width: int = 3

    def inputs(self, batch):
        title, length = batch.column("IS_TITLE") != 0, batch.column("LENGTH") / 10
        return np.stack([np.ones(len(batch)), title, length], axis=1)


@dataclass(frozen=True)
class Descent(BaseTrainer):
    """Plain steps down the gradient of the likelihood."""

    steps: int = 10
    rate: float = 0.05

    def objective(self, model):
        return LBFGSTrainer(sigma=3.0).objective(model)

    def begin(self, model):
        return DescentRun(self, self.objective(model), model.weights)


class DescentRun:
    def __init__(self, trainer, objective, weights):
        self.weights, self.evaluations = weights, 0
        self._trainer, self._objective = trainer, objective
        self.loss, self._gradient = np.inf, None
        self._evaluate()

    @property
    def running(self):
        return self.evaluations <= self._trainer.steps

    @property
    def status(self):
        return f"{self.evaluations} evaluations"

    def step(self):
        self.weights = self.weights - self._trainer.rate * self._gradient
        self._evaluate()

    def _evaluate(self):
        self.loss, gradient = self._objective(self.weights)
        self._gradient = gradient.copy()
        self.evaluations += 1


@dataclass(frozen=True)
class Sharp(Viterbi):
    """Squared probabilities."""

    least: float = 0.0

    def scores(self, potentials, automaton, scheme, spans):
        return np.maximum(super().scores(potentials, automaton, scheme, spans) ** 2, self.least)


@pytest.fixture(autouse=True, scope="module")
def registered():
    registry.misc.register("test.Initial.v1", func=lambda: [Initial()])
    registry.misc.register("test.Shape.v1", func=Shape)
    registry.misc.register("test.Descent.v1", func=Descent)
    registry.misc.register("test.Sharp.v1", func=Sharp)


def trained(path, part="token"):
    path.write_text(CONFIG.format(part=part))
    nlp = load_model_from_config(load_config(path), auto_fill=True)
    data = examples(nlp, documents(12))
    optimizer = nlp.initialize(lambda: data)
    losses = []
    while nlp.get_pipe("hocrf").run.running:
        losses.append(nlp.update(data, sgd=optimizer)["hocrf"])
    return nlp, losses


@pytest.mark.slow
@pytest.mark.parametrize("part", ["start", "end", "token", "inner"])
def test_all_four_are_trained_saved_and_loaded(tmp_path, part):
    nlp, losses = trained(tmp_path / "config.cfg", part)
    pipe = nlp.get_pipe("hocrf")
    assert type(pipe.run) is DescentRun and losses[-1] < 0.2 * losses[0]
    assert pipe.structure.n_dense == 3 * pipe.structure.scheme.n_labels
    dense = pipe.model.get_param("W")[-pipe.structure.n_dense :]
    assert np.abs(dense).max() > 0.1
    text = "Ada Lovelace likes Paris"
    doc = nlp(text)
    assert found(doc)
    nlp.to_disk(tmp_path / "model")
    again = spacy.load(tmp_path / "model")
    assert_array_equal(again.get_pipe("hocrf").model.get_param("W"), pipe.model.get_param("W"))
    other = again(text)
    assert found(other) == found(doc)
    assert_array_equal(entity_scores(other), entity_scores(doc))
    decoder_of(pipe).configured = Viterbi()
    plain = entity_scores(nlp(text))
    assert_allclose(entity_scores(doc), plain**2, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("part", ["start", "end", "token", "inner"])
def test_the_gradient_of_dense_weights_is_that_of_central_differences(tmp_path, part):
    nlp, _ = trained(tmp_path / "config.cfg", part)
    pipe = nlp.get_pipe("hocrf")
    objective, size = pipe.objective(), pipe.structure.size
    weights = np.random.default_rng(0).normal(size=size)
    assert_gradient(objective, weights, np.eye(size)[-pipe.structure.n_dense :])


@pytest.mark.slow
def test_a_new_label_and_new_features_leave_dense_weights_where_they_belong(tmp_path):
    nlp, _ = trained(tmp_path / "config.cfg")
    pipe = nlp.get_pipe("hocrf")
    text, n_labels = "Ada Lovelace likes Paris", pipe.structure.scheme.n_labels
    before, dense = found(nlp(text)), pipe.model.get_param("W")[-pipe.structure.n_dense :]
    pipe.add_label("RIVER")
    data = examples(nlp, [("Ŵye xlikes żParis", [(11, 17, "PLACE")])] * 9)
    for _ in range(2):
        pipe.update(data)
    assert pipe.structure.scheme.n_labels == n_labels + 1
    after = pipe.model.get_param("W")[-pipe.structure.n_dense :].reshape(3, n_labels + 1)
    assert_array_equal(after[:, :n_labels], dense.reshape(3, n_labels))
    assert not after[:, n_labels].any()
    assert found(nlp(text)) == before


@pytest.mark.slow
def test_a_model_is_not_loaded_with_other_dense_scores(tmp_path):
    nlp, _ = trained(tmp_path / "config.cfg")
    config = load_config(tmp_path / "config.cfg")
    del config["components"]["hocrf"]["model"]["scores"]
    without = load_model_from_config(config, auto_fill=True)
    with pytest.raises(ValueError, match=r"H054.*dense scores"):
        without.get_pipe("hocrf").from_bytes(nlp.get_pipe("hocrf").to_bytes())


@pytest.mark.slow
@pytest.mark.parametrize(
    "broken, code",
    [
        ({"part": "middle"}, r"H116.*'shape'.*middle.*inner"),
        ({"width": 0}, r"H116.*width 0"),
        ({"width": 2}, r"H117.*Shape"),
    ],
)
def test_a_dense_score_that_contradicts_itself_is_named(tmp_path, broken, code):
    (tmp_path / "config.cfg").write_text(CONFIG.format(part="token"))
    config = load_config(tmp_path / "config.cfg")
    config["components"]["hocrf"]["model"]["scores"]["shape"].update(broken)
    with pytest.raises(ValueError, match=code):
        nlp = load_model_from_config(config, auto_fill=True)
        data = initialize(nlp, documents(12))
        nlp.update(data)


@pytest.mark.parametrize("extents", [(), (3, 1), (2,), (4,)])
def test_inputs_of_a_linear_score_are_a_row_of_its_width_for_each_token(extents):
    batch = TokenBatch([words(spacy.blank("xx"), "a", "b")])
    score = Shape()
    object.__setattr__(score, "inputs", lambda batch: np.ones((len(batch), *extents)))
    with pytest.raises(ValueError, match=r"H117.*'Shape' returns inputs.*\(2, 3\)"):
        inputs_of([("mine", score)], batch)


@pytest.mark.parametrize("begun, missing", [(None, "evaluations, loss"), (object(), "weights")])
def test_a_run_that_lacks_members_is_named_with_what_it_lacks(begun, missing):
    nlp = untrained()
    data = initialize(nlp)
    trainer = type("Own", (BaseTrainer,), {"begin": lambda self, model: begun})()
    nlp.get_pipe("hocrf").set_trainer(trainer)
    with pytest.raises(ValueError, match=f"H568.*'Own'.*{missing}"):
        nlp.update(data, sgd=nlp.create_optimizer())


@pytest.mark.parametrize(
    "weights, told",
    [
        (lambda w: w[:-1], "extents"),
        (lambda w: np.append(w, 1.0), "extents"),
        (lambda w: w[None], "extents"),
        (lambda w: w * 1j, "complex128"),
        (lambda w: None, "object"),
        (lambda w: w + np.nan, "nan"),
        (lambda w: w + 1e39, "1e"),
    ],
)
def test_weights_of_a_run_that_no_model_can_have_are_named(weights, told):
    nlp = untrained()
    data = initialize(nlp)
    members = {"loss": 1.0, "running": True, "status": "", "evaluations": 1, "step": lambda: None}
    begin = lambda self, model: SimpleNamespace(weights=weights(model.weights), **members)  # noqa: E731
    nlp.get_pipe("hocrf").set_trainer(type("Own", (BaseTrainer,), {"begin": begin})())
    with pytest.raises(ValueError, match=f"H593.*'Own'.*{told}"):
        nlp.update(data, sgd=nlp.create_optimizer())


def test_what_is_no_dense_score_is_named_with_what_it_lacks():
    with pytest.raises(ValueError, match=r"H116.*'mine' lacks counts, inputs, part, scores, width"):
        checked_scores({"mine": None})


def test_an_array_of_another_shape_is_named_with_what_returned_it():
    with pytest.raises(ValueError, match=r"H117.*SimpleNamespace.*inputs.*\(2, 3\).*\(3, 2\)"):
        checked_array(SimpleNamespace(), "inputs", np.zeros((2, 3)), (3, 2))
    assert checked_array(SimpleNamespace(), "inputs", [[1, 2]], (1, 2)).tolist() == [[1, 2]]
