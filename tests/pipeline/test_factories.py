"""The three factories: their default configs show what a default model uses, and no more."""

import pytest
import spacy
from small_corpus import documents, examples
from spacy.cli.init_config import init_config
from spacy.tokens import DocBin
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from thinc.api import Config

from spacy_hocrf.pipeline.component import SegmentationPipe

SETTINGS = {  # besides those of all three
    "hocrf": "scores_key spans n_best threshold overwrite positives_only teachers",
    "hocrf_spans": "spans_key select n_best scores threshold positives_only teachers",
    "hocrf_tagger": "scores overwrite",
}


@pytest.mark.parametrize("factory", SETTINGS)
def test_the_default_config_shows_what_a_default_model_uses(factory):
    nlp = spacy.blank("xx")
    assert type(nlp.add_pipe(factory)) is SegmentationPipe
    block = Config().from_str(nlp.config.to_str())["components"][factory]
    every = "factory model trainer decoder joint constraints group_by scorer"
    assert set(block) == {*SETTINGS[factory].split(), *every.split()}
    assert block["joint"] is None
    assert block["constraints"] is None
    assert block["model"]["scores"] is None
    assert block["model"]["features"]["@misc"] == "spacy-hocrf.Window.v1"
    assert block["trainer"]["@misc"] == "spacy-hocrf.LBFGS.v1"
    expected_f = {"@misc": "spacy-hocrf.ExpectedF.v1", "beta": 1.0, "cost": "auto"}
    viterbi = {"@misc": "spacy-hocrf.Viterbi.v1"}
    assert block["decoder"] == (viterbi if factory == "hocrf_tagger" else expected_f)


@pytest.mark.slow
def test_the_spancat_scorer_scores_what_hocrf_spans_predicts(tmp_path):
    nlp, scores = trained("hocrf_spans", tmp_path)
    assert nlp.get_pipe("hocrf_spans").cfg["spans_key"] == "sc"
    assert scores["spans_sc_f"] > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("factory", ["hocrf", "hocrf_tagger"])
def test_a_config_of_init_config_trains_as_it_is(factory, tmp_path):
    _, scores = trained(factory, tmp_path)
    assert scores["ents_f" if factory == "hocrf" else "tag_acc"] > 0.9


def trained(factory, folder):
    """A pipeline trained for some steps with what `init config` writes, and its scores."""
    blank = spacy.blank("xx")
    data = examples(blank, documents(12))
    for example in data:
        example.reference.spans["sc"] = list(example.reference.ents)
        for token in example.reference:
            token.tag_ = token.ent_type_ or "O"
    DocBin(docs=[example.reference for example in data]).to_disk(folder / "train.spacy")
    config = init_config(lang="en", pipeline=[factory], optimize="efficiency", gpu=False)
    config["paths"].update(train=str(folder / "train.spacy"), dev=str(folder / "train.spacy"))
    config["training"].update(max_steps=20, eval_frequency=10)
    nlp = init_nlp(config)
    train(nlp)
    return nlp, nlp.evaluate(data)


@pytest.mark.parametrize("factory", SETTINGS)
def test_a_decoder_of_another_kind_is_named_with_what_it_lacks(factory):
    other = {"decoder": {"@misc": "spacy-hocrf.LBFGS.v1"}}
    with pytest.raises(
        ValueError, match=rf"^\[H118\].*'{factory}'.*LBFGSTrainer.* answer, scores, serves"
    ):
        spacy.blank("xx").add_pipe(factory, config=other)


def test_what_makes_no_component_is_no_joint():
    other = {"joint": {"@misc": "spacy-hocrf.LBFGS.v1"}}
    with pytest.raises(ValueError, match=r"^\[H119\].*LBFGSTrainer"):
        spacy.blank("xx").add_pipe("hocrf", config=other)
