"""`python -m spacy hocrf inspect`, against the weights themselves."""

import json

import commands
import numpy as np
import pytest
import spacy
from small_corpus import examples, learn_from, teach
from spacy.vectors import Vectors

from spacy_hocrf.cli.inspect import MAX_TEMPLATES, inspect, lines_of

TRAINER = {"@misc": "spacy-hocrf.LBFGS.v1", "sigma": 1.0, "threads": 1}


def trained(**settings):
    nlp = spacy.blank("en")
    nlp.add_pipe("hocrf", config={"trainer": TRAINER, **settings})
    teach(nlp, steps=10)
    return nlp


@pytest.fixture(scope="module", params=["segments", "bio"])
def nlp(request):
    if request.param == "segments":
        return trained(model={"order": 2})
    crf = {"encoding": "bio", "order": 1}
    return trained(model=crf)


def test_the_heaviest_features_of_every_label_are_those_of_the_weights(nlp):
    pipe = nlp.get_pipe("hocrf")
    found, index = inspect(nlp, top=7), pipe.structure.index
    weights = pipe.model.get_param("W")
    assert set(found.by_label) == set(found.labels) == set(pipe.structure.scheme.names)
    assert found.features == len(index)
    for label, features in found.by_label.items():
        described = [
            (float(weights[f]), int(index.feature_count[f]), words)
            for f in range(len(index))
            for words, pattern in [index.describe(f, nlp.vocab.strings, found.labels)]
            if pattern.split()[-1] == label and not words.startswith("LABELS")
        ]
        every = sorted((each for each in described if each[0]), key=lambda each: -each[0])
        best, worst = [w for w, *_ in every if w > 0][:7], [w for w, *_ in every if w < 0][-7:]
        assert [each.weight for each in features] == [*best, *worst]
        for each in features:
            words = each.feature.split(" after ")[0]
            assert (each.weight, each.count, words) in described


def test_label_patterns_are_listed_by_themselves_the_heaviest_first(nlp):
    index = nlp.get_pipe("hocrf").structure.index
    patterns = inspect(nlp).patterns
    assert len(patterns) == len(index.constants())
    sizes = [abs(each.weight) for each in patterns]
    assert sizes == sorted(sizes, reverse=True)
    names = nlp.get_pipe("hocrf").structure.scheme.names
    assert {each.pattern for each in patterns} <= {
        " ".join(names[y] for y in pattern) for pattern in index.patterns
    }


def test_every_weight_is_in_one_block():
    nlp = spacy.blank("en")
    data = examples(nlp)
    words = sorted({token.text for example in data for token in example.reference})
    table = np.random.default_rng(0).normal(size=(len(words), 3)).astype(np.float32)
    nlp.vocab.vectors = Vectors(strings=nlp.vocab.strings, data=table, keys=words)
    nlp.add_pipe("hocrf", config={"trainer": TRAINER, "model": {"order": 1}})
    learn_from(nlp, data, 5)
    pipe, found = nlp.get_pipe("hocrf"), inspect(nlp)
    weights = np.abs(pipe.model.get_param("W").astype(float))
    assert any(block.name.startswith("vector") for block in found.blocks)
    assert sum(block.features for block in found.blocks) == len(weights)
    assert sum(block.total for block in found.blocks) == pytest.approx(weights.sum())
    assert max(block.largest for block in found.blocks) == pytest.approx(weights.max())
    totals = [block.total for block in found.blocks]
    assert totals == sorted(totals, reverse=True)


def test_what_is_printed_names_labels_features_and_successions(nlp):
    found = inspect(nlp, labels=[inspect(nlp).labels[-1]], top=3)
    text = "\n".join(lines_of(found))
    ((label, features),) = found.by_label.items()
    assert f"{label}: feature" in text
    assert all(each.feature in text for each in features)
    assert "Label pairs" in text
    assert ("more, which --output" in text) == (len(found.blocks) > MAX_TEMPLATES)
    assert "None" not in text.splitlines()


def test_the_command_prints_and_writes_all(nlp, tmp_path):
    nlp.to_disk(tmp_path / "model")
    output = tmp_path / "new" / "found.json"
    arguments = ["inspect", str(tmp_path / "model"), "--top", "2", "--output", str(output)]
    done = commands.run(*arguments)
    written = json.loads(output.read_text(encoding="utf8"))
    assert set(written["by_label"]) == set(inspect(nlp).labels)
    assert written["features"] == len(nlp.get_pipe("hocrf").structure.index)
    assert f"{written['features']:,} features" in done


@pytest.mark.parametrize("option", [("--share", "0.9"), ("--spans-key", "sc")])
def test_options_of_a_grammar_are_refused_without_one(nlp, tmp_path, option):
    nlp.to_disk(tmp_path / "model")
    done = commands.run("inspect", tmp_path / "model", *option, code=1)
    assert f"[H576] {option[0]} has no effect without --grammar" in done


def test_a_pipeline_without_a_trained_component_is_an_error():
    with pytest.raises(ValueError, match=r"H204.*hocrf_tagger\), .* none"):
        inspect(spacy.blank("en"))
    nlp = spacy.blank("en")
    nlp.add_pipe("hocrf")
    with pytest.raises(ValueError, match="H042"):
        inspect(nlp)
