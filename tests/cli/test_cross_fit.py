"""`python -m spacy hocrf cross-fit`: every text is annotated by a pipeline that was trained on the
others, and by nothing else.
"""

from functools import partial

import commands
import doubt_command
import numpy as np
import pytest
import spacy
from small_corpus import documents, examples
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.util import load_model_from_config
from thinc.api import Config

import spacy_hocrf.cli  # noqa: F401 - adds the commands
from spacy_hocrf.cli import cross_fit as module
from spacy_hocrf.cli.config import starting_config
from spacy_hocrf.cli.cross_fit import cross_fit

FOLDS, SEED, COUNT = 3, 5, 13


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("cross_fit") / "train.spacy"
    data = examples(spacy.blank("en"), documents(COUNT))
    DocBin(docs=[example.reference for example in data]).to_disk(path)
    return path


def config(corpus):
    made = doubt_command.config(spans=True)
    words = {"window": 0, "prefix": [], "suffix": [], "bigrams": [], "flags": []}
    made["components"]["hocrf"]["model"]["features"].update(attrs=["NORM"], **words)
    made["paths"]["dev"] = corpus.as_posix()
    made["training"].update(max_steps=20, eval_frequency=20, patience=0)
    return made


def triples(spans):
    return [(span.start, span.end, span.label_) for span in spans]


def test_spans_are_those_of_models_that_have_not_seen_the_text(corpus):
    result = cross_fit(
        config(corpus), corpus, key="mine", source="spans.hocrf", folds=FOLDS, seed=SEED
    )
    parts = np.random.default_rng(SEED).permutation(COUNT) % FOLDS
    gold = list(DocBin().from_disk(corpus).get_docs(spacy.blank("en").vocab))
    assert [doc.text for doc in result.docs] == [doc.text for doc in gold]
    for k in range(FOLDS):
        nlp = load_model_from_config(config(corpus), auto_fill=True)
        references = list(DocBin().from_disk(corpus).get_docs(nlp.vocab))
        data = [
            Example(nlp.make_doc(doc.text), doc)
            for doc, part in zip(references, parts)
            if part != k
        ]
        optimizer = nlp.initialize(lambda: data)  # noqa: B023 - called at once
        for _ in range(20):
            nlp.update(data, sgd=optimizer)
        for i in np.flatnonzero(parts == k):
            doc = nlp(gold[i].text)
            expected = doc.spans["hocrf"]
            found = result.docs[i].spans["mine"]
            assert triples(found) == triples(expected)
            assert found.attrs["scores"] == pytest.approx(expected.attrs["scores"], rel=1e-3)
            assert triples(result.docs[i].ents) == triples(gold[i].ents)
    assert result.scored and result.counts.total() == sum(
        len(doc.spans["mine"]) for doc in result.docs
    )
    # some names are in one fold only
    assert any(triples(doc.ents) != triples(doc.spans["mine"]) for doc in result.docs)


def test_texts_of_a_group_are_held_back_together(corpus, monkeypatch):
    def stop(docs, folds, seed, attribute):
        raise ValueError(f"{len(docs)} texts by {attribute}")

    made = config(corpus)
    made["components"]["hocrf"]["group_by"] = "hocrf_group"
    monkeypatch.setattr(module, "folds_of", stop)
    with pytest.raises(ValueError, match="13 texts by hocrf_group"):
        cross_fit(made, corpus, folds=2)


run = partial(commands.run, "cross-fit")


def test_the_command_writes_texts_with_spans(corpus, tmp_path):
    made = config(corpus)
    made["paths"]["dev"] = "elsewhere.spacy"
    made.to_disk(tmp_path / "config.cfg")
    output = tmp_path / "new" / "fitted.spacy"
    printed = run(
        tmp_path / "config.cfg", corpus, output, "--folds", 2, "--paths.dev", corpus.as_posix()
    )
    assert "spans without scores in 13 texts" in printed and "PERSON" in printed
    docs = list(DocBin().from_disk(output).get_docs(spacy.blank("en").vocab))
    expected = cross_fit(config(corpus), corpus, folds=2).docs
    assert [triples(doc.spans["ner"]) for doc in docs] == [
        triples(doc.spans["ner"]) for doc in expected
    ]
    assert [triples(doc.ents) for doc in docs] == [triples(doc.ents) for doc in expected]


def test_tokens_are_those_of_the_annotation(tmp_path):
    nlp = spacy.blank("en")
    docs = []
    for i in range(6):
        doc = Doc(nlp.vocab, words=["Ada-Lovelace", f"s{i}"])
        doc.ents = [doc.char_span(0, 12, label="PERSON")]
        docs.append(doc)
    DocBin(docs=docs).to_disk(tmp_path / "train.spacy")
    made = config(tmp_path / "train.spacy")
    made["corpora"]["train"]["gold_preproc"] = True
    made["corpora"]["dev"]["gold_preproc"] = True
    result = cross_fit(made, tmp_path / "train.spacy", folds=2)
    assert {str(triples(doc.spans["ner"])) for doc in result.docs} == {"[(0, 1, 'PERSON')]"}


def test_what_the_pipeline_does_not_write_is_no_source(corpus):
    with pytest.raises(ValueError, match="H186"):
        cross_fit(config(corpus), corpus, source="spans.sc", folds=2)


def test_a_pipeline_that_writes_groups_alone_has_no_entities(tmp_path):
    docs = [example.reference for example in examples(spacy.blank("en"), documents(COUNT))]
    for doc in docs:
        doc.spans["sc"] = list(doc.ents)
    path = tmp_path / "train.spacy"
    DocBin(docs=docs).to_disk(path)
    made = starting_config("en", None, "sc")
    made["paths"].update(train=path.as_posix(), dev=path.as_posix())
    with pytest.raises(ValueError, match=r"H186\] .* ents .*: spans\.sc"):
        cross_fit(made, path, folds=2)
    assert cross_fit(made, path, source="spans.sc", folds=2).counts.total()


def test_a_pipeline_that_learns_nothing_needs_no_folds(corpus):
    made = config(corpus)
    made["nlp"]["pipeline"] = ["ruler"]
    made["components"] = {"ruler": {"factory": "span_ruler"}}
    with pytest.raises(ValueError, match=r"^\[H184\].*ruler"):
        cross_fit(made, corpus, source="spans.ruler", folds=2)
    made = config(corpus)
    made["training"]["frozen_components"] = ["hocrf"]
    with pytest.raises(ValueError, match=r"^\[H184\].*hocrf"):
        cross_fit(made, corpus, folds=2)


def test_a_corpus_without_a_path_is_named(corpus):
    made = config(corpus)
    del made["corpora"]["train"]["path"]
    for each in (made, Config()):
        with pytest.raises(ValueError, match=r"^\[H185\].*corpora.train"):
            cross_fit(each, corpus, folds=2)


def test_what_is_best_is_not_decided_by_the_training_texts(corpus):
    made = config(corpus)
    made["paths"]["dev"] = None
    with pytest.raises(ValueError, match=r"^\[E913\]"):
        cross_fit(made, corpus, folds=2)
