"""The averaged perceptron inside the component: what changes with the block [components.*.trainer], and
what does not.
"""

import io
import warnings

import numpy as np
import pytest
import spacy
from small_corpus import MODELS, documents, examples, fit, found, learner_of, trained, untrained
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from spacy.util import minibatch, registry
from thinc.api import Config

from spacy_hocrf.learning.shards import make_shards

PERCEPTRON = {"@misc": "spacy-hocrf.AveragedPerceptron.v1", "epochs": 30}


@pytest.fixture(scope="module", autouse=True)
def reader():
    @registry.readers("test.other_trainers.v1")
    def read():
        return lambda nlp: iter(examples(nlp, documents(24)))


@pytest.mark.parametrize("factory, model", [*MODELS.values()], ids=[*MODELS])
def test_every_model_learns_its_examples_by_heart(factory, model):
    nlp = trained(factory, model, trainer=PERCEPTRON)
    data = examples(nlp)
    assert (
        nlp.evaluate(data)[
            {"hocrf": "ents_f", "hocrf_spans": "spans_sc_f", "hocrf_tagger": "tag_acc"}[factory]
        ]
        == 1.0
    )
    for example in data:  # probabilities are those of the CRF with these weights
        for span in nlp(example.text).ents:
            assert 0 < span._.hocrf_score <= 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*:UserWarning")
def test_spacy_train_works_with_another_trainer_in_the_config_and_nothing_else(tmp_path):
    config = Config().from_str(untrained(trainer=PERCEPTRON).config.to_str(), interpolate=False)
    config["corpora"] = {name: {"@readers": "test.other_trainers.v1"} for name in ("train", "dev")}
    config["training"].update(max_steps=60, eval_frequency=10, patience=0)
    config.to_disk(tmp_path / "config.cfg")
    nlp = init_nlp(spacy.util.load_config(tmp_path / "config.cfg", interpolate=False))
    stream = io.StringIO()
    (tmp_path / "out").mkdir()
    train(nlp, tmp_path / "out", stdout=stream, stderr=stream)
    rows = [line.split() for line in stream.getvalue().splitlines() if line[:1] == " "]
    assert float(rows[0][2]) > 0, "the loss of the first row is 0"
    assert float(rows[-1][3]) == 100.0
    loaded = spacy.load(tmp_path / "out" / "model-last")
    assert loaded.get_pipe("hocrf").to_bytes() == nlp.get_pipe("hocrf").to_bytes()
    data = examples(loaded, documents(24))
    assert loaded.evaluate(data)["ents_f"] == 1.0
    loaded.update(data, sgd=loaded.resume_training())  # training goes on
    assert loaded.evaluate(data)["ents_f"] == 1.0


@pytest.mark.slow
def test_an_epoch_of_updates_sums_to_the_loss_and_batches_only_pace():
    ends = []
    for size in (3, 100):
        nlp = untrained(trainer=PERCEPTRON)
        data = examples(nlp)
        nlp.initialize(lambda data=data: data)
        losses: dict = {}
        for batch in minibatch(data, size):
            nlp.update(batch, sgd=False, losses=losses)
        pipe = nlp.get_pipe("hocrf")
        assert losses["hocrf"] == pytest.approx(pipe.run.loss, rel=1e-12)
        assert losses["hocrf"] >= 1
        fit(nlp, data, steps=300)
        assert not pipe.run.running
        ends.append((pipe.run.loss, pipe.model.get_param("W").tolist()))
    assert ends[0] == ends[1]


@pytest.mark.slow
def test_documents_that_arrive_later_are_learnt():
    nlp = trained(rows=documents(6), trainer=PERCEPTRON)
    late = [*documents(6), ("Frege slept in Jena", [(0, 5, "PERSON"), (15, 19, "PLACE")])]
    assert found(nlp(late[-1][0])) != [(0, 1, "PERSON"), (3, 4, "PLACE")]
    before = len(nlp.get_pipe("hocrf").structure.index)
    for _ in range(2):  # one document in seven waits for an update that brings nothing new
        nlp.update(examples(nlp, late), sgd=False)
    fit(nlp, examples(nlp, late), steps=300)
    assert len(nlp.get_pipe("hocrf").structure.index) > before
    assert found(nlp(late[-1][0])) == [(0, 1, "PERSON"), (3, 4, "PLACE")]


@pytest.mark.slow
def test_a_loaded_model_trains_on_from_its_weights():
    nlp = trained(trainer=PERCEPTRON)
    again = untrained(trainer=PERCEPTRON).from_bytes(nlp.to_bytes())
    pipe = again.get_pipe("hocrf")
    weights = pipe.model.get_param("W").copy()
    pipe.update(examples(again), sgd=None)
    known = pipe.run.weights.astype(np.float32)
    np.testing.assert_array_equal(known[known != 0], weights)  # 0 is not saved
    fit(again, examples(again), steps=300)
    assert again.evaluate(examples(again))["ents_f"] == 1.0


def test_partly_annotated_documents_are_left_out_with_a_warning():
    nlp = untrained(trainer=PERCEPTRON)
    data = examples(nlp)
    partial = Example.from_dict(
        nlp.make_doc("Emmy likes San Jose"), {"entities": ["U-PERSON", "-", "-", "-"]}
    )
    with pytest.warns(UserWarning, match=r"W005\] 1 training documents"):
        nlp.initialize(lambda: [*data, partial])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(nlp, [*data, partial], steps=300)
    learner = learner_of(nlp.get_pipe("hocrf"))
    shards = make_shards(learner.structure, learner.corpus, complete_only=True)
    assert sum(len(shard._documents) for shard in shards) == len(data) == len(learner.corpus) - 1
    assert nlp.evaluate(data)["ents_f"] == 1.0
    late = Example.from_dict(
        nlp.make_doc("Emmy likes New York"), {"entities": ["U-PERSON", "-", "-", "-"]}
    )
    with pytest.warns(UserWarning, match=r"W005\] 1 training documents"):
        for _ in range(2):
            nlp.update([late], sgd=False)


def test_a_corpus_without_a_complete_document_is_an_error():
    nlp = untrained(trainer=PERCEPTRON)
    partial = Example.from_dict(
        nlp.make_doc("Emmy likes San Jose"), {"entities": ["U-PERSON", "-", "-", "-"]}
    )
    with pytest.raises(ValueError, match=r"H080.*None of the 1 documents"):
        nlp.initialize(lambda: [partial])


@pytest.mark.slow
def test_a_loaded_model_that_sees_only_partly_annotated_documents_stays_as_it_is():
    again = untrained(trainer=PERCEPTRON).from_bytes(trained(trainer=PERCEPTRON).to_bytes())
    pipe = again.get_pipe("hocrf")
    before = pipe.to_bytes()
    partial = Example.from_dict(
        again.make_doc("Emmy likes Paris"), {"entities": ["U-PERSON", "-", "-"]}
    )
    with pytest.warns(UserWarning, match="W005"):
        for _ in range(3):
            assert pipe.update([partial], sgd=again.create_optimizer()) == {"hocrf": 0.0}
    assert pipe.run is None
    again.from_bytes(again.to_bytes())
    assert pipe.model.get_param("W").any()
    assert len(before)


def test_the_perceptron_says_how_it_ended_and_has_no_objective(caplog):
    with caplog.at_level("INFO", logger="spacy"):
        nlp = trained(trainer=PERCEPTRON)
    assert "hocrf: finished: 0 of 10 documents wrong in the last of 30 epochs" in caplog.text
    with pytest.raises(ValueError, match="H081"):
        nlp.get_pipe("hocrf").objective()
