"""What `spacy train` shows and weighs for `hocrf_spans` with a key of its own."""

import pytest
import spacy
from small_corpus import documents, examples
from spacy.tokens import Span

from spacy_hocrf.cli.config import starting_config


def corpus(nlp, key):
    made = list(examples(nlp, documents(8)))
    for example in made:
        example.reference.spans[key] = list(example.reference.ents)
    return made


def weights(nlp):
    return nlp.config["training"]["score_weights"]


def initialized(key, **components):
    """A pipeline with components, by name: factory and settings."""
    nlp = spacy.blank("xx")
    settings = {"spans_key": key, "decoder": {"@misc": "spacy-hocrf.Viterbi.v1"}}
    components = {"hocrf_spans": ("hocrf_spans", settings), **components}
    for name, (factory, config) in components.items():
        nlp.add_pipe(factory, name=name, config=config)
    return nlp


def test_the_scores_of_another_key_take_the_place_of_the_default_ones():
    nlp = initialized("parts")
    made = corpus(nlp, "parts")
    optimizer = nlp.initialize(lambda: made)
    expected = {"spans_parts_f": 1.0, "spans_parts_p": 0.0, "spans_parts_r": 0.0}
    expected["spans_parts_texts_acc"] = 0.0
    hidden = dict.fromkeys(["spans_sc_f", "spans_sc_p", "spans_sc_r", "spans_sc_texts_acc"])
    assert weights(nlp) == {**expected, **hidden}
    for _ in range(20):
        nlp.update(made, sgd=optimizer)
    scores = nlp.evaluate(made)
    assert all(scores[name] > 0 for name in expected) and not hidden.keys() & scores.keys()
    assert weights(spacy.blank("xx").from_config(nlp.config)) == weights(nlp)


def test_the_weights_of_the_config_go_before():
    nlp = initialized("parts")
    weights(nlp).update({"spans_parts_p": 1.0, "spans_sc_f": None})
    before = dict(weights(nlp))
    nlp.initialize(lambda: corpus(nlp, "parts"))
    assert weights(nlp) == before


def test_weights_are_handed_on_as_they_are_in_the_config():
    nlp = initialized("parts", tagger=("hocrf_tagger", {}))
    weights(nlp).update({"spans_sc_f": 0.2, "spans_sc_r": 0.2, "spans_sc_p": None, "tag_acc": 0.6})
    made = corpus(nlp, "parts")
    for example in made:
        for token in example.reference:
            token.tag_ = "X"
    nlp.initialize(lambda: made)
    shown = {name: weight for name, weight in weights(nlp).items() if weight}
    assert shown == {"spans_parts_f": 0.2, "spans_parts_r": 0.2, "tag_acc": 0.6}


@pytest.mark.parametrize("factory", ["hocrf_spans", "spancat"])
def test_another_component_keeps_the_default_scores(factory):
    nlp = initialized("parts", other=(factory, {}))
    made = corpus(nlp, "parts")
    for example in made:
        example.reference.spans["sc"] = [Span(example.reference, 0, 1, label="X")]
    nlp.initialize(lambda: made)
    assert weights(nlp)["spans_parts_f"] == weights(nlp)["spans_sc_f"] == 0.5


def test_two_keys_have_their_scores():
    nlp = initialized("parts", other=("hocrf_spans", {"spans_key": "wholes"}))
    made = corpus(nlp, "parts")
    for example in made:
        example.reference.spans["wholes"] = list(example.reference.ents)
    nlp.initialize(lambda: made)
    assert weights(nlp)["spans_parts_f"] == weights(nlp)["spans_wholes_f"] == 0.5
    assert weights(nlp)["spans_sc_f"] is None


def test_a_written_config_has_the_scores_of_its_key():
    found = starting_config("en", None, "parts")["training"]["score_weights"]
    assert found["spans_parts_f"] == 1.0 and found["spans_sc_f"] is None
