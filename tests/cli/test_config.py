"""`python -m spacy hocrf config`, and `auto --vectors`: configs that train, with word vectors."""

import io
import shlex
import shutil
import subprocess
import sys
from functools import partial

import commands
import numpy as np
import pytest
import spacy
from small_corpus import documents, examples
from spacy.tokens import Doc, DocBin, Span
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from spacy.util import load_config, load_model_from_config
from spacy.vectors import Vectors

import spacy_hocrf.cli  # noqa: F401 - adds the commands
from spacy_hocrf.cli.auto.command import MODEL, auto
from spacy_hocrf.cli.auto.texts import AutoSetup


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A corpus, `train.spacy`, and a pipeline with word vectors, `vectors`."""
    folder, nlp = tmp_path_factory.mktemp("starting"), spacy.blank("en")
    docs = [example.reference for example in examples(nlp, documents(40))]
    DocBin(docs=docs).to_disk(folder / "train.spacy")
    words = sorted({token.text for doc in docs for token in doc})
    table = np.random.default_rng(0).normal(size=(len(words), 6)).astype(np.float32)
    nlp.vocab.vectors = Vectors(strings=nlp.vocab.strings, data=table, keys=words)
    nlp.to_disk(folder / "vectors")
    spacy.blank("en").to_disk(folder / "bare")
    DocBin().to_disk(folder / "none.spacy")
    return folder


config_of = partial(commands.run, "config")


@pytest.mark.parametrize("vectors, spans_key", [(True, None), (False, None), (True, "sc")])
def test_the_config_trains_as_it_says(folder, tmp_path, vectors, spans_key):
    path = tmp_path / "new" / "config.cfg"
    options = ["--vectors", folder / "vectors"] if vectors else []
    done = config_of(path, *options, *(["--spans-key", spans_key] if spans_key else []))
    assert "spacy train" in done
    config = load_config(path)
    name = "hocrf_spans" if spans_key else "hocrf"
    assert config["nlp"]["pipeline"] == [name]
    assert config["training"]["patience"] == 0 and config["training"]["max_steps"] == 40
    if spans_key:
        assert config["components"][name]["spans_key"] == spans_key
        return
    corpus = folder / "train.spacy"
    options = ["--paths.train", corpus, "--paths.dev", corpus, "--training.max_steps", 10]
    command = [sys.executable, "-m", "spacy", "train", path, "--output", tmp_path, *options]
    # the installed package, not the sources of the folder that the tests run in
    subprocess.run([*map(str, command)], check=True, capture_output=True, cwd=tmp_path)
    structure = spacy.load(tmp_path / "model-last").get_pipe(name).structure
    assert structure.n_dense == (7 * structure.scheme.n_labels if vectors else 0)


def test_a_config_that_streams_trains_the_same_model(folder, tmp_path):
    found = {}
    for name, options in {"here": [], "streamed": ["--stream"]}.items():
        path = tmp_path / f"{name}.cfg"
        corpus = folder / "train.spacy"
        config_of(path, "--train", corpus, "--dev", corpus, *options)
        config = load_config(path, overrides={"training.max_steps": 10})
        nlp = init_nlp(config)
        train(nlp)
        found[name] = nlp.get_pipe("hocrf").model.get_param("W").tobytes()
        assert (nlp.config["training"]["max_epochs"] == -1) == bool(options)
    assert found["here"] == found["streamed"]


@pytest.mark.parametrize(
    "options, code",
    [
        (["--vectors", "no_such_pipeline"], "H187"),
        (["--vectors", "bare"], "H188"),
        (["--lang", "qq"], "H159"),
        (["--pipeline", "ner"], "H260"),
        (["--pipeline", "hocrf", "--spans-key", "sc"], "H261"),
        (["--pipeline", "hocrf_tagger", "--teachers", "llm"], "H253"),
        (["--spans-key", "$"], "H267"),
        (["--spans-key", "other", "--train", "train.spacy"], "H153"),
        (["--train", "vectors"], "H577"),
        (["--dev", "none.spacy"], "H158"),  # every score would be 0
    ],
)
@pytest.mark.filterwarnings("ignore:.*(W112|W090)")
def test_what_is_not_there_is_named_and_nothing_is_written(
    folder, tmp_path, monkeypatch, options, code
):
    monkeypatch.chdir(folder)
    done = config_of(tmp_path / "config.cfg", *options, code=1)
    assert code in done
    assert not [*tmp_path.iterdir()]


def test_paths_with_dollar_signs_are_read_as_they_are(folder, tmp_path):
    path, corpus = tmp_path / "config.cfg", tmp_path / "$a$$b.spacy"
    shutil.copy(folder / "train.spacy", corpus)
    config_of(path, "--train", corpus)
    read = load_config(path)
    for config in (read, read.interpolate(), load_config(path, interpolate=True)):
        assert config["paths"]["train"] == corpus.as_posix()
    nlp = init_nlp(load_config(path, {"paths.dev": str(corpus)}))
    assert nlp.get_pipe("hocrf").labels


@pytest.mark.parametrize("command", ["config", "auto"])
def test_what_would_be_a_variable_of_the_config_is_refused(folder, tmp_path, command):
    corpus, output = tmp_path / "${a.b}.spacy", tmp_path / "output"
    shutil.copy(folder / "train.spacy", corpus)
    arguments = [output, "--train", corpus] if command == "config" else [corpus, output]
    done = commands.run(command, *arguments, code=1)
    assert "H269" in done and not output.exists()


def test_the_command_that_it_prints_can_be_typed(tmp_path):
    path = tmp_path / "my config.cfg"
    done = config_of(path)
    printed = shlex.split(done.strip().split("\n")[-1])
    assert printed[:5] == ["python", "-m", "spacy", "train", str(path)]
    assert "spacy train 'my config.cfg' --output" in path.read_text(encoding="utf8")


def test_a_file_that_is_there_is_replaced_only_by_force(tmp_path):
    path = tmp_path / "config.cfg"
    path.write_text("mine")
    done = config_of(path, code=1)
    assert "H157" in done and path.read_text() == "mine"
    config_of(path, "--force")
    assert "[training]" in path.read_text()


def test_auto_learns_with_the_vectors_and_writes_where_they_are_from(folder, tmp_path):
    vectors = str(folder / "vectors")
    auto(AutoSetup(folder / "train.spacy", vectors=vectors), tmp_path / "out")
    assert load_config(tmp_path / "out" / "config.cfg")["paths"]["vectors"] == vectors
    assert spacy.load(tmp_path / "out" / MODEL).get_pipe("hocrf").structure.n_dense


@pytest.mark.parametrize("pipeline", ["hocrf", "hocrf_spans", "hocrf_tagger"])
def test_a_config_with_texts_trains_unchanged(folder, tmp_path, pipeline):
    corpus, nlp = tmp_path / "corpus.spacy", spacy.blank("en")
    docs = list(DocBin().from_disk(folder / "train.spacy").get_docs(nlp.vocab))
    for doc in docs:
        doc.spans["sc"] = list(doc.ents)
        for token in doc:
            token.tag_ = "Aa" if token.is_title else "a"
    DocBin(docs=docs).to_disk(corpus)
    path = tmp_path / "config.cfg"
    done = config_of(path, "--pipeline", pipeline, "--train", corpus, "--dev", corpus)
    assert "40 texts, 2 labels" in done
    assert "--paths" not in done and "--paths" not in path.read_text()
    config = load_config(path, overrides={"training.max_steps": 3})
    assert not config["corpora"]["train"]["gold_preproc"]
    nlp, out = init_nlp(config), io.StringIO()
    train(nlp, None, stdout=out, stderr=io.StringIO())
    assert nlp.pipe_names == [pipeline] and "OBJECTIVE" in out.getvalue()


def test_texts_that_are_annotated_by_constraints_alone_train_unchanged(folder, tmp_path):
    corpus, nlp = tmp_path / "corpus.spacy", spacy.blank("en")
    docs = []
    for whole in DocBin().from_disk(folder / "train.spacy").get_docs(nlp.vocab):
        doc = nlp.make_doc(whole.text)  # no entities are set: none is known
        doc.spans["hocrf_constraints"] = [
            Span(doc, ent.start, ent.start + 1, ent.label_, span_id="inside") for ent in whole.ents
        ]
        if whole.ents:
            docs.append(doc)
    DocBin(docs=docs).to_disk(corpus)
    path = tmp_path / "config.cfg"
    done = config_of(path, "--train", corpus, "--dev", folder / "train.spacy")
    assert f"{len(docs)} texts" in done and "Constraints on single texts name " in done
    config = load_config(path, overrides={"training.max_steps": 5})
    assert not config["corpora"]["train"]["gold_preproc"]
    nlp, out = init_nlp(config), io.StringIO()
    train(nlp, None, stdout=out, stderr=io.StringIO())
    assert {*nlp.get_pipe("hocrf").labels} == {"PERSON", "PLACE"}
    assert nlp(docs[0].text).ents


def test_texts_that_the_tokenizer_does_not_fit_keep_their_tokens(tmp_path):
    vocab = spacy.blank("en").vocab
    doc = Doc(vocab, words=["Ada", "sbook", "lies"], spaces=[False, True, False])
    doc.ents = [Span(doc, 0, 1, label="PERSON")]
    DocBin(docs=[doc]).to_disk(tmp_path / "train.spacy")
    path = tmp_path / "config.cfg"
    done = config_of(path, "--train", tmp_path / "train.spacy")
    printed = " ".join(done.split())
    assert "1 of 1 annotated spans fit no tokens" in printed
    assert "the tokenizer (en)" in printed and "another language, name it with --lang" in printed
    corpora = load_config(path)["corpora"]
    assert corpora["train"]["gold_preproc"] and corpora["dev"]["gold_preproc"]
    assert "--paths.dev dev.spacy" in done and "--paths.train" not in done


@pytest.mark.parametrize("goal, decoder", [("fields", "ExpectedF"), ("texts", "Reranked")])
def test_a_config_says_what_the_model_is_best_at(tmp_path, goal, decoder):
    config_of(tmp_path / "a.cfg", "--for", goal)
    block = load_config(tmp_path / "a.cfg")["components"]["hocrf"]
    assert block["decoder"]["@misc"] == f"spacy-hocrf.{decoder}.v1"
    model = block["model"]
    assert (model["order"], model["unseen"]) == ((3, True) if goal == "texts" else ("auto", False))
    load_model_from_config(load_config(tmp_path / "a.cfg"), auto_fill=True)


def test_weights_for_what_is_unseen_are_left_out_for_a_large_corpus(tmp_path, monkeypatch):
    path, output = tmp_path / "train.spacy", tmp_path / "a.cfg"
    docs = [example.reference for example in examples(spacy.blank("en"), documents(12))]
    DocBin(docs=docs).to_disk(path)
    size = 2 * sum(map(len, docs))
    for limit, unseen in ((size, True), (size - 1, False)):
        monkeypatch.setattr("spacy_hocrf.cli.config.LARGE", limit)
        config_of(output, "--for", "texts", "--train", path, "--force")
        assert load_config(output)["components"]["hocrf"]["model"]["unseen"] == unseen


def test_a_config_with_teachers_trains_on_what_they_have_found(tmp_path):
    nlp, docs = spacy.blank("en"), []
    for example in examples(nlp, documents(12)):
        doc = Doc(nlp.vocab, words=[token.text for token in example.reference])
        doc.spans["llm"] = [Span(doc, e.start, e.end, e.label_) for e in example.reference.ents]
        doc.spans["llm"].attrs["scores"] = [0.75] * len(doc.spans["llm"])
        doc.spans["other"] = [*doc.spans["llm"]]
        docs.append(doc)
    path, output = tmp_path / "taught.spacy", tmp_path / "config.cfg"
    DocBin(docs=docs).to_disk(path)
    done = config_of(output, "--train", path, "--dev", path, code=1)
    assert "H153" in done and not output.exists()
    done = config_of(output, "--train", path, "--teachers", "lm", code=1)
    assert "H153" in done and "doc.ents or doc.spans['lm']" in " ".join(done.split())
    done = config_of(output, "--train", path, "--dev", path, "--teachers", "llm, other")
    assert "12 texts are not annotated: teachers say what is in them" in done
    config = load_config(output)
    assert config["components"]["hocrf"]["teachers"] == ["llm", "other"]
    nlp = init_nlp(config)
    pipe = nlp.get_pipe("hocrf")
    assert [*pipe.labels] == ["PERSON", "PLACE"]
    result = commands.run("debug", output)
    assert "of 12 training texts are not annotated: teachers say" in result.replace("\n", " ")
    assert "overlap longer ones" not in result


def test_scoring_on_the_training_texts_is_warned_of(folder, tmp_path):
    train = folder / "train.spacy"
    shutil.copy(train, tmp_path / "dev.spacy")
    done = config_of(tmp_path / "same.cfg", "--train", train, "--dev", tmp_path / "dev.spacy")
    assert "--dev is the same as --train" in done
    other = DocBin(docs=[spacy.blank("en")("Max ran")]).to_bytes()
    (tmp_path / "other.spacy").write_bytes(other)
    done = config_of(tmp_path / "other.cfg", "--train", train, "--dev", tmp_path / "other.spacy")
    assert "the same as" not in done
