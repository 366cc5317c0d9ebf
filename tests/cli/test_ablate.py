"""`python -m spacy hocrf ablate`: what is left out, and every row against training from scratch."""

import csv
import json
from functools import partial

import commands
import numpy as np
import pytest
import spacy
from joint_config import joint
from pytest import approx
from small_corpus import CONFIG, ambiguous, examples, learn_from, trained
from spacy.tokens import DocBin
from spacy.training import Example
from spacy.util import load_model_from_config
from thinc.api import Config

import spacy_hocrf.cli  # noqa: F401 - adds the commands
from spacy_hocrf.cli import ablate as module
from spacy_hocrf.cli.ablate import ablate, ablations
from spacy_hocrf.model.architectures import weights_of

TRAINING = """
[corpora]

[corpora.train]
@readers = "spacy.Corpus.v1"
path = ${paths.train}

[paths]
train = "TRAIN"

[training]
train_corpus = "corpora.train"
max_steps = 200
"""
WINDOW = {"@misc": "spacy-hocrf.Window.v1"}
PARTS = ["NORM, prefix, suffix", "SHAPE", "window", "prefix", "suffix", "bigrams", "flags"]
PARTS += ["boundaries", "lengths", "order"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Twenty-four documents in which no model gets everything right."""
    path = tmp_path_factory.mktemp("ablate") / "train.spacy"
    docs = [example.reference for example in examples(spacy.blank("en"), ambiguous())]
    DocBin(docs=docs).to_disk(path)
    return path


def config(corpus, features=None, factory="hocrf", **settings):
    """A component with nothing that is "auto"."""
    text = (CONFIG + TRAINING).replace("TRAIN", corpus.as_posix())
    made = Config().from_str(text, interpolate=False)
    decoder = {"@misc": "spacy-hocrf.Viterbi.v1"}
    made["components"]["hocrf"] |= {"factory": factory, "decoder": decoder, **settings}
    model = {"@architectures": "spacy-hocrf.HighOrderCRF.v1", "order": 1}
    made["components"]["hocrf"]["model"] = {**model, "features": features or WINDOW}
    return made


run = partial(commands.run, "ablate")


def from_scratch(made, held_back):
    """The entities that a component finds in some documents, and how many weights it has, if it was trained
    on the others.
    """
    nlp = load_model_from_config(made, auto_fill=True)
    gold = list(DocBin().from_disk(made.interpolate()["paths"]["train"]).get_docs(nlp.vocab))
    pairs = [Example(nlp.make_doc(doc.text), doc) for doc in gold]
    learnt = [pair for i, pair in enumerate(pairs) if i not in held_back]
    learn_from(nlp, learnt, steps=200)
    spans = [
        {(ent.label_, ent.start, ent.end) for ent in nlp(gold[i].text).ents} for i in held_back
    ]
    wanted = [{(ent.label_, ent.start, ent.end) for ent in gold[i].ents} for i in held_back]
    counts = np.array([[len(a & b), len(a), len(b)] for a, b in zip(spans, wanted)]).sum(axis=0)
    return counts, len(weights_of(nlp.get_pipe("hocrf").model))


@pytest.mark.slow
def test_every_row_is_that_of_models_without_the_part(corpus):
    blocks = {
        "window": WINDOW,
        "pairs": {"@misc": "spacy-hocrf.Conjunction.v1", "terms": ["NORM[-1]", "NORM[0]"]},
    }
    both = {"@misc": "spacy-hocrf.Features.v1", "*": blocks}
    results = ablate(config(corpus, both), folds=3, trials=99)
    systems = {system["name"]: system for system in results["systems"]}
    assert [*systems] == ["all features", "window", *(f"window.{part}" for part in PARTS), "pairs"]
    assert results["chosen"] == {"sigma": 10.0, "order": 1} and results["documents"] == 24
    without = {
        "all features": blocks,
        "pairs": {"window": WINDOW},
        "window": {"pairs": blocks["pairs"]},
        "window.suffix": {**blocks, "window": {**WINDOW, "suffix": []}},
        "window.SHAPE": {
            **blocks,
            "window": {**WINDOW, "attrs": ["NORM"], "window": {"NORM": 1}},
        },
        "window.order": {**blocks, "window": {**WINDOW, "order": 0}},
    }
    parts = np.random.default_rng(0).permutation(24) % 3
    for name, left in without.items():
        made = config(corpus, {"@misc": "spacy-hocrf.Features.v1", "*": left})
        found = [from_scratch(made, np.flatnonzero(parts == k).tolist()) for k in range(3)]
        right, shown, wanted = sum(counts for counts, _ in found)
        assert systems[name]["all"]["f"] == approx(2 * right / (shown + wanted)), name
        assert systems[name]["weights"] == round(sum(n for _, n in found) / 3), name
    assert len({system["all"]["f"] for system in systems.values()}) > 2


def filled(**settings):
    """A block of `Window.v1` with every setting, none of them null or "auto"."""
    block = {"attrs": ["NORM", "SHAPE"], "window": {"NORM": 1, "SHAPE": 2}, "prefix": [1, 2]}
    block |= {"suffix": [3], "bigrams": ["FLAGS", "SHAPE"], "flags": [0], "boundaries": True}
    block |= {"lengths": True, "order": None, "vectors": False, "wide": True}
    return {**WINDOW, **block, **settings}


def test_an_attribute_goes_with_all_that_is_observed_of_it():
    variants = ablations(filled())
    assert [*variants] == PARTS
    word = {"attrs": ["SHAPE"], "window": {"SHAPE": 2}, "prefix": [], "suffix": []}
    assert variants["NORM, prefix, suffix"] == filled(**word)
    shape = {"attrs": ["NORM"], "window": {"NORM": 1}, "bigrams": ["FLAGS"]}
    assert variants["SHAPE"] == filled(**shape)
    assert variants["window"] == filled(window=0) and variants["order"] == filled(order=0)


def test_what_is_off_already_is_not_left_out():
    off = {"attrs": ["NORM"], "window": {"NORM": 1}, "suffix": [], "flags": [], "lengths": False}
    assert [*ablations(filled(**off))] == ["window", "prefix", "bigrams", "boundaries", "order"]
    assert "vectors" in ablations(filled(vectors=True))


@pytest.mark.slow
def test_what_is_auto_is_chosen_once_and_the_table_is_printed_and_written(corpus, tmp_path):
    made = config(corpus)
    made["components"]["hocrf"]["model"]["order"] = "auto"
    made["components"]["hocrf"]["trainer"]["sigma"] = "auto"
    del made["components"]["hocrf"]["decoder"]
    made.to_disk(tmp_path / "c.cfg")
    arguments = ["--folds", 2, "--trials", 50]
    printed = run(tmp_path / "c.cfg", *arguments, "-o", tmp_path / "out.csv")
    run(tmp_path / "c.cfg", *arguments, "-o", tmp_path / "out.json")
    results = json.loads((tmp_path / "out.json").read_text(encoding="utf8"))
    assert {*results["chosen"]} == {"sigma", "order", "cost"}
    assert all(isinstance(value, int | float) for value in results["chosen"].values())
    with (tmp_path / "out.csv").open(encoding="utf8", newline="") as file:
        header, *rows = csv.reader(file)
    assert (header[0], header[-1]) == ("without", "weights")
    assert [row[0] for row in rows] == ["all features", *PARTS]
    for row, system in zip(rows, results["systems"]):  # the same on every run
        assert row[3] == f"{100 * system['all']['f']:.2f}"
        assert row[-1] == f"{system['weights']:,}" and " ".join(row[1:4])[:5] in printed


@pytest.mark.slow
@pytest.mark.parametrize("factory, place", [("hocrf_spans", "'sc'"), ("hocrf_tagger", "token.tag")])
def test_every_factory_has_its_items(corpus, factory, place):
    lean = {"prefix": [], "suffix": [], "bigrams": [], "flags": [], "boundaries": False}
    results = ablate(config(corpus, {**WINDOW, **lean}, factory), folds=2, trials=9)
    assert place in results["place"] and results["systems"][0]["all"]["f"] > 0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*W004")
def test_texts_annotated_in_part_leave_the_cost_to_the_default(corpus, tmp_path):
    docs = list(DocBin().from_disk(corpus).get_docs(spacy.blank("en").vocab))
    for doc in docs:
        doc.set_ents(list(doc.ents), default="missing")
    DocBin(docs=docs).to_disk(tmp_path / "part.spacy")
    lean = {"prefix": [], "suffix": [], "bigrams": [], "flags": [], "boundaries": False}
    made = config(tmp_path / "part.spacy", {**WINDOW, **lean})
    del made["components"]["hocrf"]["decoder"]
    results = ablate(made, folds=2, trials=9)
    assert results["chosen"]["cost"] == "auto"
    assert results["systems"][1]["texts"]["gold"] == 0 < results["systems"][1]["all"]["gold"]


@pytest.mark.parametrize(
    "change, code",
    [
        ({"features": {"@misc": "spacy-hocrf.Token.v1", "attrs": ["NORM"]}}, "H565"),
        ({"trainer": {"@misc": "spacy-hocrf.SGD.v1"}}, "H076"),
    ],
)
def test_where_nothing_can_be_left_out(corpus, tmp_path, change, code):
    config(corpus, **change).to_disk(tmp_path / "c.cfg")
    assert f"[{code}]" in run(tmp_path / "c.cfg", code=1)


def blocks(attr):
    """Two blocks of features."""
    token = {"@misc": "spacy-hocrf.Token.v1"}
    shapes, others = {**token, "attrs": ["SHAPE"]}, {**token, "attrs": [attr]}
    return {"@misc": "spacy-hocrf.Features.v1", "*": {"shapes": shapes, "others": others}}


def behind(made, tagger):
    """A config with a tagger in front, which annotates."""
    made["nlp"] |= {"lang": "xx", "pipeline": ["tagger", "hocrf"]}
    made["components"]["tagger"] = tagger
    made["training"]["annotating_components"] = ["tagger"]
    return made


def test_a_trained_component_in_front_annotates_as_it_is(corpus, tmp_path):
    trained("hocrf_tagger").to_disk(tmp_path / "tagger")
    tagger = {"source": (tmp_path / "tagger").as_posix(), "component": "hocrf"}
    made = behind(config(corpus, blocks("TAG")), tagger)
    results = ablate(made, component="hocrf", folds=2, trials=9)  # W013 if it has written nothing
    weights = {system["name"]: system["weights"] for system in results["systems"]}
    assert weights["others"] < weights["all features"]


def test_an_untrained_component_in_front_must_not_annotate(corpus):
    made = behind(config(corpus, blocks("NORM")), {"factory": "tagger"})
    with pytest.raises(ValueError, match=r"H078.*'tagger'"):
        ablate(made)
    made["training"]["annotating_components"] = []
    assert ablate(made, folds=2, trials=9)["component"] == "hocrf"  # beside it, it is left alone


def test_one_of_two_components_is_named(corpus):
    made = config(corpus, blocks("NORM"))
    made["nlp"]["pipeline"] = ["hocrf", "second"]
    made["components"]["second"] = {**made["components"]["hocrf"], "factory": "hocrf_spans"}
    with pytest.raises(ValueError, match=r"H204.*hocrf, second"):
        ablate(made)
    assert ablate(made, component="second", folds=2, trials=9)["place"] == "doc.spans['sc']"


@pytest.mark.parametrize(
    "settings, attribute",
    [
        ({}, None),
        ({"group_by": "hocrf_group"}, "hocrf_group"),
        ({"joint": joint(group_by="hocrf_group", learn=False)}, "hocrf_group"),
    ],
)
def test_texts_that_belong_together_are_in_one_fold(corpus, monkeypatch, settings, attribute):
    def stop(docs, folds, seed, group_by):
        assert group_by == attribute
        raise ValueError("asked")

    monkeypatch.setattr(module, "folds_of", stop)
    with pytest.raises(ValueError, match="asked"):
        ablate(config(corpus, **settings))
