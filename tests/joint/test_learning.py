"""Joint weights learnt by the component: from a config, in `spacy train` and in a plain loop, and
worth it on unseen documents.
"""

import copy
import io
import logging
import pickle
from dataclasses import asdict
from functools import cache
from typing import ClassVar

import numpy as np
import pytest
import spacy
from consistent_corpus import in_sentences, texts, whole
from numpy.testing import assert_allclose, assert_array_equal
from small_corpus import PIPELINE, documents, examples, found, learner_of, untrained
from spacy.tokens import Doc
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from spacy.util import load_model_from_config, minibatch, registry
from thinc.api import Config

from spacy_hocrf.joint.corpus import documents_together
from spacy_hocrf.joint.templates import IdenticalPhrases
from spacy_hocrf.joint.trainers import JointMaxMargin, is_due
from spacy_hocrf.learning.heldout import cross_fitted

pytestmark = pytest.mark.slow

CONFIG = f"""{PIPELINE}
[components.hocrf.model]
@architectures = "spacy-hocrf.HighOrderCRF.v1"
order = 1

[components.hocrf.model.features]
@misc = "spacy-hocrf.Features.v1"

[components.hocrf.model.features.*.words]
@misc = "spacy-hocrf.Token.v1"
attrs = ["LOWER"]
window = [-2, -1, 1, 2]

[components.hocrf.trainer]
@misc = "spacy-hocrf.LBFGS.v1"
sigma = 1.0
threads = 1

[components.hocrf.joint]
@misc = "spacy-hocrf.Joint.v1"

[components.hocrf.joint.features]

[components.hocrf.joint.features.phrases]
@misc = "spacy-hocrf.IdenticalPhrases.v1"
max_length = 1

[components.hocrf.joint.trainer]
@misc = "spacy-hocrf.JointMaxMargin.v1"
folds = 3
"""
CONFIGURED = Config().from_str(CONFIG)["components"]["hocrf"]
TRAIN, TEST = 30, 40


def pipeline(*, model=None, local=None, folds_by=None, **joint):
    """A pipeline of CONFIG with other settings of [components.hocrf.joint].

    folds_by (Optional[str]): group_by of the component itself.
    """
    config = Config().from_str(CONFIG)
    component = config["components"]["hocrf"]
    component["joint"].update(joint)
    component["model"] = model or component["model"]
    component["trainer"] = local or component["trainer"]
    component["group_by"] = folds_by
    return load_model_from_config(config, auto_fill=True)


def fit(nlp, data, size=1000, epochs=300):
    """Train until the local model has converged; the number of steps."""
    nlp.initialize(lambda: data)
    pipe, optimizer, steps = nlp.get_pipe("hocrf"), nlp.create_optimizer(), 0
    for _ in range(epochs):
        for batch in minibatch(data, size):
            nlp.update(batch, sgd=optimizer)
            steps += 1
            if pipe.run is not None and not pipe.run.running:
                return steps
    return steps


def scores(nlp, data):
    """F1 with and without the joint patterns."""
    pipe = nlp.get_pipe("hocrf")
    together = nlp.evaluate(data)["ents_f"]
    weights = pipe.joint.weights
    pipe.joint.weights = np.zeros(len(weights))
    alone = nlp.evaluate(data)["ents_f"]
    pipe.joint.weights = weights
    return together, alone


@cache
def learnt():
    nlp = pipeline()
    fit(nlp, whole(nlp, 0, TRAIN))
    return nlp.to_bytes()


@pytest.fixture
def nlp():
    return pipeline().from_bytes(learnt())


def test_patterns_with_learnt_weights_beat_the_model_alone_on_unseen_documents(nlp):
    together, alone = scores(nlp, whole(nlp, 1, TEST))
    assert (nlp.get_pipe("hocrf").joint.weights > 1.0).all()
    assert together > 0.98 > 0.75 > alone


def test_what_was_learnt_is_saved_and_loaded(nlp, tmp_path):
    data = whole(nlp, 2, 10)
    expected = [found(doc) for doc in nlp.pipe([example.predicted.copy() for example in data])]
    nlp.to_disk(tmp_path)
    for other in (spacy.load(tmp_path), pickle.loads(pickle.dumps(nlp)), copy.deepcopy(nlp)):
        assert_array_equal(
            other.get_pipe("hocrf").joint.weights, nlp.get_pipe("hocrf").joint.weights
        )
        assert [
            found(doc) for doc in other.pipe([example.predicted.copy() for example in data])
        ] == expected
    again = spacy.load(tmp_path).get_pipe("hocrf")
    assert again.joint.trainer == nlp.get_pipe("hocrf").joint.trainer


@pytest.mark.parametrize("encoding", ["io", "bieso"])
def test_an_encoded_crf_learns_them_too(encoding):
    nlp = pipeline(model={**CONFIGURED["model"], "encoding": encoding})
    fit(nlp, whole(nlp, 0, TRAIN))
    together, alone = scores(nlp, whole(nlp, 1, TEST))
    assert together > 0.98 > 0.75 > alone


def test_groups_of_documents_learn_like_whole_ones():
    nlp = pipeline(group_by="hocrf_group")
    data = in_sentences(nlp, 0, TRAIN)
    fit(nlp, data)
    pipe = nlp.get_pipe("hocrf")
    together, alone = scores(nlp, in_sentences(nlp, 1, TEST))
    assert together > 0.98 > 0.75 > alone
    groups = documents_together(learner_of(pipe).corpus, pipe.joint.features, most=5000)
    assert len(groups) == TRAIN
    assert all(len(documents) > 1 for group in groups for documents, _ in group)
    assert all(
        len({document.group for part in group for document in part.documents}) == 1
        for group in groups
    )


def test_useless_features_keep_weights_near_zero():
    """All names have one shape, whatever their labels."""
    phrases = CONFIGURED["joint"]["features"]["phrases"]
    blocks = {"words": phrases, "shapes": {**phrases, "attr": "SHAPE"}}
    nlp = pipeline(features=blocks)
    fit(nlp, whole(nlp, 0, TRAIN))
    pipe = nlp.get_pipe("hocrf")
    weights = dict(zip(pipe.joint.feature_names, pipe.joint.weights.tolist()))
    for label in nlp.get_pipe("hocrf").labels:
        assert weights[f"IdenticalPhrases[LOWER,1-1], {label}"] > 0.8
        assert weights[f"IdenticalPhrases[SHAPE,1-1], {label}"] < 0.2


def test_weights_learnt_on_a_models_own_documents_would_be_worth_less(monkeypatch):
    """A model that sees the names themselves knows those of its own documents by heart."""
    nlp = pipeline(model={**CONFIGURED["model"], "features": {"@misc": "spacy-hocrf.Window.v1"}})
    data = whole(nlp, 0, TRAIN)
    fit(nlp, data)
    crossed = nlp.get_pipe("hocrf").joint.weights
    monkeypatch.setattr(
        "spacy_hocrf.joint.trainers.cross_fitted",
        lambda learner, groups, **_: [(learner, list(range(len(groups))))],
    )
    pipe = nlp.get_pipe("hocrf")
    own = pipe.joint.trainer.learn(learner_of(pipe), pipe.joint.model).weights
    assert (own < 0.5 * crossed).all()


def test_the_plain_loop_the_batches_and_the_trainer_all_reach_the_same_weights():
    ends = []
    for size in (7, 1000):
        nlp = pipeline()
        data = whole(nlp, 0, 12)
        fit(nlp, data, size)
        ends.append(nlp.get_pipe("hocrf").joint.weights)
    assert_allclose(ends[0], ends[1], rtol=1e-6, atol=1e-6)


def test_they_are_learnt_at_the_end_and_for_loops_that_stop_before_it():
    due = [step for step in range(1, 300) if is_due(step, running=True)]
    assert due == [16, 64, 256]
    assert all(is_due(step, running=False) for step in range(1, 300))


def test_a_step_without_a_change_learns_nothing_anew(monkeypatch):
    nlp = pipeline()
    data = whole(nlp, 0, 8)
    learn, calls = JointMaxMargin.learn, []
    monkeypatch.setattr(
        JointMaxMargin,
        "learn",
        lambda self, learner, joint: calls.append(learner.steps) or learn(self, learner, joint),
    )
    steps = fit(nlp, data)
    assert calls == [step for step in range(1, steps + 1) if is_due(step, running=step < steps)]
    for _ in range(5):
        nlp.update(data, sgd=nlp.create_optimizer())
    assert len(calls) == len({*calls})
    # new documents: the local training goes on, and so does this
    nlp.update(whole(nlp, 5, 4), sgd=nlp.create_optimizer())
    pipe = nlp.get_pipe("hocrf")
    while pipe.run.running:
        nlp.update(data, sgd=nlp.create_optimizer())
    assert calls[-1] > steps


def test_spacy_train_learns_and_keeps_the_best(tmp_path, caplog):
    @registry.readers("test.consistent.v1")
    def read(seed: int, count: int):
        return lambda nlp: iter(whole(nlp, seed, count))

    config = Config().from_str(pipeline().config.to_str(), interpolate=False)
    for i, name in enumerate(("train", "dev")):
        config.setdefault("corpora", {})[name] = {
            "@readers": "test.consistent.v1",
            "seed": i,
            "count": (TRAIN, TEST)[i],
        }
    config["training"].update(max_steps=150, eval_frequency=30, patience=0)
    config.to_disk(tmp_path / "config.cfg")
    nlp = init_nlp(spacy.util.load_config(tmp_path / "config.cfg", interpolate=False))
    (tmp_path / "out").mkdir()
    stream = io.StringIO()
    with caplog.at_level(logging.INFO, logger="spacy"):
        spacy.util.logger.addHandler(caplog.handler)
        train(nlp, tmp_path / "out", stdout=stream, stderr=stream)
        spacy.util.logger.removeHandler(caplog.handler)
    logged = {
        record.getMessage() for record in caplog.records if "joint weights" in record.getMessage()
    }
    assert len(logged) >= 2
    assert any("IdenticalPhrases[LOWER,1-1], FIRM: " in message for message in logged)
    best = spacy.load(tmp_path / "out" / "model-best")
    together, alone = scores(best, whole(best, 1, TEST))
    assert together > 0.98 > 0.75 > alone


@pytest.mark.parametrize(
    "rows",
    [[("Ada likes Ada", [(0, 3, "PERSON"), (10, 13, "PERSON")]), ("It rains", [])], documents(10)],
)
def test_where_nothing_is_connected_a_warning_says_so(rows):
    nlp = pipeline()
    data = examples(nlp, rows)
    with pytest.warns(UserWarning, match=r"W009.*'hocrf' learns no joint weights"):
        fit(nlp, data)
    assert_array_equal(
        nlp.get_pipe("hocrf").joint.weights, np.zeros(len(nlp.get_pipe("hocrf").labels))
    )


def test_documents_annotated_in_part_are_left_out():
    nlp = pipeline()
    data = whole(nlp, 0, 8)
    for example in data[:3]:
        reference = example.reference
        reference.set_ents(list(reference.ents[:2]), default="missing")
    fit(nlp, data)
    pipe = nlp.get_pipe("hocrf")
    groups = documents_together(learner_of(pipe).corpus, pipe.joint.features, most=5000)
    assert len(groups) == 5
    assert (pipe.joint.weights > 0).any()


def test_a_group_is_split_where_it_is_too_large():
    nlp = pipeline(
        group_by="hocrf_group",
        decoder={"@misc": "spacy-hocrf.DualDecomposition.v1", "max_group_tokens": 15},
    )
    data = in_sentences(nlp, 0, 6)
    nlp.initialize(lambda: data)
    corpus = learner_of(nlp.get_pipe("hocrf")).corpus
    parts = corpus.groups(most=15)
    assert sum(map(len, parts)) == len(data) and len(parts) > 6
    assert all(
        sum(map(len, part)) <= 15 and len({document.group for document in part}) == 1
        for part in parts
    )
    assert [len(part) for part in corpus.groups(most=5000)] == [6] * 6


def test_documents_that_are_held_back_together_need_not_be_decoded_together():
    nlp = pipeline(folds_by="hocrf_group")
    data = whole(nlp, 0, 12)
    for i, example in enumerate(data):
        example.reference._.hocrf_group = i % 4
    nlp.initialize(lambda: data)
    pipe = nlp.get_pipe("hocrf")
    learner, joint = learner_of(pipe), pipe.joint
    groups = documents_together(learner.corpus, joint.features, most=joint.model.most)
    members = [[document for part in group for document in part.documents] for group in groups]
    assert [len(each) for each in members] == [1] * 12
    seen = []
    for _, unseen in cross_fitted(learner, members, folds=2, seed=0, steps=1):
        seen.append({members[number][0].group for number in unseen})
        assert len(unseen) == 6
    assert len(seen) == 2 and sorted(seen[0] | seen[1]) == [0, 1, 2, 3] and not seen[0] & seen[1]


def test_equal_documents_of_two_groups_are_two():
    nlp = pipeline(group_by="hocrf_group")
    [text] = texts(0, 1)
    data = in_sentences(nlp, 0, 1) + in_sentences(nlp, 0, 1)
    for example in data[len(text) :]:
        example.predicted._.hocrf_group = None
        example.reference._.hocrf_group = "another"  # a reader may set it on the reference only
    nlp.initialize(lambda: data)
    corpus = learner_of(nlp.get_pipe("hocrf")).corpus
    assert len(corpus.documents) == 2 * len(text)
    assert {document.group for document in corpus.documents} == {"0.0", "another"}


@pytest.mark.parametrize("prior, kept", [("loaded", True), ("zero", False)])
def test_a_loaded_model_that_adapts_to_few_documents_keeps_its_joint_weights(prior, kept):
    nlp = pipeline(
        local={"@misc": "spacy-hocrf.LBFGS.v1", "threads": 1, "prior": prior}
    ).from_bytes(learnt())
    pipe, optimizer = nlp.get_pipe("hocrf"), nlp.resume_training()
    before = pipe.joint.weights
    data = whole(nlp, 7, 6)
    for _ in range(100):
        nlp.update(data, sgd=optimizer)
    assert not pipe.run.running
    assert np.array_equal(pipe.joint.weights, before) == kept


def test_null_leaves_the_weights_as_they_are():
    nlp = pipeline(
        learn=False,
        features={"phrases": {"@misc": "spacy-hocrf.IdenticalPhrases.v1", "weight": 1.5}},
    )
    fit(nlp, whole(nlp, 0, 8))
    assert nlp.get_pipe("hocrf").joint.weights.tolist() == [1.5, 1.5]


def test_without_joint_features_nothing_is_remembered_for_them():
    nlp = untrained()
    nlp.initialize(lambda: examples(nlp))
    pipe = nlp.get_pipe("hocrf")
    assert pipe.joint is None
    assert "IS_STOP" not in learner_of(pipe).corpus.reads


class Mine(IdenticalPhrases):
    """Somebody's own template."""

    reads: ClassVar[list[str]] = []
    name = "mine"

    def find(self, batch, groups):
        for attribute in self.reads:
            batch.column(attribute)
        return super().find(batch, groups)


def with_template_of_ones_own():
    template = IdenticalPhrases(max_length=1)
    registry.misc("test.mine.v1", func=lambda: Mine(**asdict(template)))
    return pipeline(features={"mine": {"@misc": "test.mine.v1"}})


def test_weights_of_a_template_of_ones_own_are_learnt_from_whole_documents():
    nlp = with_template_of_ones_own()
    fit(nlp, whole(nlp, 0, 8))
    pipe = nlp.get_pipe("hocrf")
    assert all(isinstance(document.source, Doc) for document in learner_of(pipe).corpus.documents)
    assert (pipe.joint.weights > 0.3).all()


def test_a_template_of_ones_own_that_reads_the_answer_is_an_error(monkeypatch):
    monkeypatch.setattr(Mine, "reads", ["ENT_TYPE"])
    nlp = with_template_of_ones_own()
    with pytest.raises(ValueError, match=r"H051.*mine.*ENT_TYPE"):
        nlp.initialize(lambda: whole(nlp, 0, 4))


@pytest.mark.parametrize(
    "code, settings, found",
    [
        (
            "H121",
            {"trainer": {"@misc": "spacy-hocrf.LBFGS.v1"}},
            "LBFGSTrainer.*lacks lacks, learnt",
        ),
        ("H109", {"local": {"@misc": "spacy-hocrf.SGD.v1"}}, "SGDTrainer"),
    ],
)
def test_a_trainer_that_cannot_learn_them_is_an_error(code, settings, found):
    with pytest.raises(ValueError, match=rf"{code}.*{found}"):
        pipeline(**settings)


def test_initializing_anew_forgets_them():
    nlp = pipeline()
    data = whole(nlp, 0, 8)
    fit(nlp, data)
    assert (nlp.get_pipe("hocrf").joint.weights > 0).any()
    nlp.initialize(lambda: data)
    assert_array_equal(nlp.get_pipe("hocrf").joint.weights, np.zeros(2))
