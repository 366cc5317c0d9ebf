"""`hocrf config --encoder` and `hocrf auto --encoder`: configs and models with a frozen encoder in front."""

import commands
import numpy as np
import pytest
import spacy
from numpy.testing import assert_array_equal
from small_corpus import documents, examples
from spacy.cli.package import package
from spacy.tokens import DocBin
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from spacy.util import load_config
from spacy.vectors import Vectors

pytest.importorskip("onnxruntime", reason="needs the extra 'encoder'")
pytest.importorskip("onnx", reason="needs the extra 'test'")
from onnx_encoder import model, write

from spacy_hocrf.cli.auto.command import MODEL, auto
from spacy_hocrf.cli.auto.texts import AutoSetup
from spacy_hocrf.cli.config import starting_config

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A corpus, an encoder, and a pipeline with vectors."""
    folder, nlp = tmp_path_factory.mktemp("encoder"), spacy.blank("en")
    docs = [example.reference for example in examples(nlp, documents(30))]
    DocBin(docs=docs).to_disk(folder / "train.spacy")
    write(folder / "encoder")
    nlp.vocab.vectors = Vectors(
        strings=nlp.vocab.strings, data=np.eye(2, 6, dtype="f"), keys=["the", "in"]
    )
    nlp.to_disk(folder / "vectors")
    return folder


def trained(config, folder, tmp_path):
    """The pipeline that a config makes."""
    corpus = str(folder / "train.spacy")
    overrides = {"paths.train": corpus, "paths.dev": corpus, "training.max_steps": 5}
    nlp = init_nlp(load_config(config, overrides={**overrides, "training.eval_frequency": 5}))
    (tmp_path / "trained").mkdir()
    train(nlp, tmp_path / "trained")
    return spacy.load(tmp_path / "trained" / "model-last")


def answers(nlp, **settings):
    """Entities and probabilities."""
    docs = nlp.pipe([eg.text for eg in examples(spacy.blank("en"), documents(12))], **settings)
    return [[(e.start, e.end, e.label_, e._.hocrf_score) for e in doc.ents] for doc in docs]


@pytest.mark.filterwarnings("ignore:.*:UserWarning")  # of files that `spacy package` leaves open
@pytest.mark.parametrize(
    "options, n_dense", [([], 1), (["--vectors", "VECTORS"], 2), (["--stream"], 1)]
)
def test_a_config_trains_over_an_encoder(folder, tmp_path, options, n_dense):
    """Saved, loaded, packaged and in two processes it says the same, without the encoder's folder."""
    write(tmp_path / "encoder")
    path = tmp_path / "config.cfg"
    options = [folder / "vectors" if each == "VECTORS" else each for each in options]
    commands.run("config", path, "--encoder", tmp_path / "encoder", *options)
    config = load_config(path)
    assert config["nlp"]["pipeline"] == ["hocrf_encoder", "hocrf"]
    assert config["training"]["annotating_components"] == ["hocrf_encoder"]
    assert sorted(config["components"]["hocrf"]["model"]["features"]["*"]) == ["encoder", "window"]
    nlp = trained(path, folder, tmp_path)
    assert len(nlp.get_pipe("hocrf").structure.settings.dense) == n_dense
    expected = answers(nlp)
    assert any(expected)
    (tmp_path / "encoder").rename(tmp_path / "gone")
    assert answers(nlp, n_process=2, batch_size=4) == expected
    (tmp_path / "packages").mkdir()
    package(tmp_path / "trained" / "model-last", tmp_path / "packages", create_sdist=False)
    (packed,) = (tmp_path / "packages").glob("*/en_*/en_*")
    assert answers(spacy.load(packed)) == expected
    assert "spacy-hocrf[encoder]" in (packed.parents[1] / "meta.json").read_text()


def test_auto_chooses_over_an_encoder(folder, tmp_path):
    places = [folder / "train.spacy", tmp_path / "out"]
    commands.run("auto", *places, "--encoder", folder / "encoder")
    nlp = spacy.load(tmp_path / "out" / MODEL)
    assert nlp.pipe_names == ["hocrf_encoder", "hocrf"]
    weights = nlp.get_pipe("hocrf").structure.settings.dense
    assert [score.width for _, score in weights] == [7]
    again = trained(tmp_path / "out" / "config.cfg", folder, tmp_path)
    assert again.pipe_names == nlp.pipe_names


def test_rows_of_auto_are_those_of_the_pipeline(folder, tmp_path):
    results = auto(AutoSetup(folder / "train.spacy", encoder=folder / "encoder"), tmp_path / "o")
    nlp = spacy.load(tmp_path / "o" / MODEL)
    for example in results.texts.examples[:5]:
        assert_array_equal(example.predicted.tensor, nlp(example.predicted.text).tensor)


@pytest.mark.parametrize("name", ["config", "auto"])
def test_a_folder_without_an_encoder_is_refused(folder, tmp_path, name):
    arguments = [folder / "train.spacy", tmp_path / "out"] if name == "auto" else [tmp_path / "out"]
    assert "H491" in commands.run(name, *arguments, "--encoder", folder, code=1)
    assert not (tmp_path / "out").exists()


def test_arrays_of_another_width_than_in_training_are_refused(folder, tmp_path):
    config = tmp_path / "config.cfg"
    starting_config("en", None, encoder=folder / "encoder").to_disk(config)
    nlp = trained(config, folder, tmp_path)
    other = spacy.blank("en")
    other.add_pipe("hocrf_encoder", config={"folder": str(write(tmp_path / "b", model(width=4)))})
    nlp.get_pipe("hocrf_encoder").from_bytes(other.get_pipe("hocrf_encoder").to_bytes())
    with pytest.raises(ValueError, match=r"H172.*arrays of 4 dimensions.*and 6"):
        nlp("Ada went to Rome")
