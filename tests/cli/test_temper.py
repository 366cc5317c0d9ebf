"""`python -m spacy hocrf temper`: what it prints and writes."""

import commands
import numpy as np
import spacy
from small_corpus import examples, trained
from spacy.tokens import DocBin

from spacy_hocrf.cli.temper import temper


def test_temper_writes_a_pipeline_with_other_weights_and_says_what_it_gains(tmp_path):
    nlp = trained()
    pipe = nlp.get_pipe("hocrf")
    before = pipe.model.get_param("W").copy()
    pipe.model.set_param("W", 5 * before)
    nlp.to_disk(tmp_path / "model")
    gold = [example.reference for example in examples(nlp)]
    for doc in gold[:3]:  # the model is wrong of late
        doc.set_ents([], default="outside")
    DocBin(docs=gold).to_disk(tmp_path / "gold.spacy")
    given = [str(tmp_path / name) for name in ("model", "gold.spacy", "out")]
    done = commands.run("temper", *given)
    assert "Temperature" in done and "ECE" in done
    out = spacy.load(tmp_path / "out").get_pipe("hocrf").model.get_param("W")
    weights = 5 * before[before != 0]
    assert (np.abs(out[before != 0]) < np.abs(weights)).all()


def test_probabilities_are_better_with_a_temperature():
    nlp = trained()
    pipe = nlp.get_pipe("hocrf")
    pipe.model.set_param("W", 5 * pipe.model.get_param("W"))
    gold = [example.reference for example in examples(nlp)]
    for doc in gold[::3]:
        doc.set_ents([], default="outside")
    tempered = temper(nlp, gold)
    assert tempered.brier[1] < tempered.brier[0] and tempered.ece[1] < tempered.ece[0]
    assert tempered.temperature > 1


def test_too_few_texts_are_an_error_with_a_code(tmp_path):
    nlp = trained()
    nlp.to_disk(tmp_path / "model")
    DocBin(docs=[examples(nlp)[0].reference]).to_disk(tmp_path / "gold.spacy")
    given = [str(tmp_path / name) for name in ("model", "gold.spacy", "out")]
    done = commands.run("temper", *given, code=1)
    assert "H220" in done
    assert not (tmp_path / "out").exists()
