"""What a user sets on a component, hands to it, or asks of one that has learnt nothing."""

import pytest
import spacy
from joint_config import joint
from small_corpus import MODELS, found, initialize, trained, untrained

from spacy_hocrf.training.lbfgs import LBFGSTrainer

TEXT = "Ada Lovelace was born in London ."


@pytest.fixture(scope="module")
def nlp():
    return trained()


def test_a_threshold_that_is_set_is_used_at_once_and_by_copies(nlp):
    pipe = nlp.get_pipe("hocrf")
    assert pipe.threshold is None and found(nlp(TEXT))
    pipe.threshold = 1.0
    try:
        assert found(nlp(TEXT)) == []
        assert pipe.cfg["threshold"] == pipe.threshold == 1.0
        for value in (2, -0.1, "0.5", float("nan")):
            with pytest.raises(ValueError, match=r"\[H055\]"):
                pipe.threshold = value
    finally:
        pipe.threshold = None
    assert found(nlp(TEXT))


@pytest.mark.parametrize(
    "name", ["treshold", "sigma", "order", "decoder", "n_best", "scores_key", "overwrite"]
)
def test_what_would_change_nothing_cannot_be_set(nlp, name):
    pipe = nlp.get_pipe("hocrf")
    with pytest.raises(ValueError, match=rf"\[H460\] '{name}'.*threshold.*\[components.hocrf\]"):
        setattr(pipe, name, 1)
    assert not hasattr(pipe, name)


def test_what_can_be_read_alone_cannot_be_set(nlp):
    pipe = nlp.get_pipe("hocrf")
    with pytest.raises(ValueError, match=r"\[H460\] 'trainer'.*set_trainer"):
        pipe.trainer = LBFGSTrainer()
    with pytest.raises(ValueError, match=r"\[H460\] 'labels'"):
        pipe.labels = ("PERSON",)
    pipe.set_trainer(LBFGSTrainer(sigma=3.0))
    assert pipe.trainer.sigma == (3.0,)


def test_what_is_decoded_together_can_be_changed_but_not_replaced():
    pipe = untrained(joint=joint()).get_pipe("hocrf")
    pipe.joint.group_by = None
    with pytest.raises(ValueError, match=r"H460.*'joint'"):
        pipe.joint = None


@pytest.mark.parametrize("text", [TEXT, b"Ada", ("Ada", "was"), None, 3])
def test_a_text_is_no_doc(nlp, text):
    pipe = nlp.get_pipe("hocrf")
    for ask in (pipe, pipe.reading, lambda each: pipe.explain(each, (0, 1, "PERSON"))):
        with pytest.raises(ValueError, match=r"\[H461\].*make_doc"):
            ask(text)


@pytest.mark.parametrize("factory", ["hocrf", "hocrf_spans", "hocrf_tagger"])
def test_a_model_that_has_learnt_nothing_says_so(factory):
    nlp = spacy.blank("xx")
    pipe = nlp.add_pipe(factory)
    pipe.add_label("PERSON")
    nlp.initialize()
    with pytest.warns(UserWarning, match=rf"W035.*'{factory}'"):
        nlp(TEXT)
    nlp(TEXT)  # once


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_a_model_that_has_not_been_trained_says_so_and_a_trained_one_does_not(name):
    nlp = untrained(*MODELS[name])
    data = initialize(nlp)
    with pytest.warns(UserWarning, match="W035"):
        nlp(TEXT)
    for _ in range(2):
        nlp.update(data, sgd=nlp.create_optimizer())
    assert nlp(TEXT)
