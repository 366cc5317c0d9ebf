"""What Viterbi shows is the most probable reading, also where several segmentations are shown as one."""

import numpy as np
import pytest
from pytest import approx
from small_corpus import MODELS, PEOPLE, PLACES, examples, fit, untrained

FULL = "semi-CRF, no outside"
KINDS = [*(kind for kind in MODELS if kind != "tagger"), FULL]
COVERED = [
    (f"{person} {place}", [(0, len(person), "PERSON"), (len(person) + 1, -1, "PLACE")])
    for person, place in zip(PEOPLE, PLACES)
]
VITERBI = {"@misc": "spacy-hocrf.Viterbi.v1"}
TEXTS = (
    "Ada \n Paris",
    "\n Ada \n\n met",
    "In \n Paris \n",
    "Ada \n\n \t Max \n",
    "Grace \n Hopper slept",
    "Nobody",
)
SEEDS = 28


def made(kind, **settings):
    factory, model = MODELS.get(kind, ("hocrf", {}))
    nlp = untrained(factory, model, decoder=VITERBI, **settings)
    rows = [(text, [(i, j % (len(text) + 1), y) for i, j, y in spans]) for text, spans in COVERED]
    data = examples(nlp, rows) if kind == FULL else examples(nlp)
    nlp.initialize(lambda: data)
    fit(nlp, data, 2)
    return nlp


def shown(pipe, doc):
    key = getattr(pipe.target, "spans_key", None)
    spans = doc.ents if key is None else doc.spans[key]
    return tuple((span.start, span.end, span.label_) for span in spans)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_no_reading_is_more_probable(kind):
    """1,176 texts of all kinds of models, with random weights."""
    nlp = made(kind)
    pipe = nlp.get_pipe("hocrf")
    size, other = pipe.model.get_param("W").shape, 0
    for seed in range(SEEDS):
        weights = np.random.default_rng(seed).normal(0, 0.4, size)
        pipe.model.set_param("W", weights.astype(np.float32))
        docs = list(nlp.pipe(TEXTS))
        for doc, reading in zip(docs, pipe.readings([nlp.make_doc(text) for text in TEXTS])):
            every = list(reading.alternatives())
            assert sum(each.probability for each in every) == approx(1.0)
            best = max(each.probability for each in every)
            found = np.exp(reading.log_probability(shown(pipe, doc)))
            assert found == approx(best, rel=1e-9)
            other += every[0].probability < best * (1 - 1e-9)
    solid = pipe.structure.scheme.solid  # then the two never differ
    assert other == 0 if solid else other > 5


def test_texts_without_white_space_are_not_looked_at_again(monkeypatch):
    from spacy_hocrf.answers.alternatives import Alternatives

    calls = []
    most_probable = Alternatives.most_probable
    monkeypatch.setattr(
        Alternatives, "most_probable", lambda *a: calls.append(1) or most_probable(*a)
    )
    nlp = made(FULL)
    list(nlp.pipe(["Ada met Max", "In Paris"]))
    assert not calls
    list(nlp.pipe(["Ada met Max", "In \n Paris"]))
    assert len(calls) == 1


@pytest.mark.parametrize("price", ["inf", 0.5])
def test_rules_are_kept_and_paid_for(price):
    rule = {"@misc": "spacy-hocrf.AtMost.v1", "labels": ["PLACE"], "most": 1, "price": price}
    nlp = made(
        KINDS[0], constraints={"@misc": "spacy-hocrf.Constraints.v1", "rules": {"one": rule}}
    )
    pipe = nlp.get_pipe("hocrf")
    size = pipe.model.get_param("W").shape
    for seed in range(10):
        weights = np.random.default_rng(seed).normal(0, 0.6, size)
        pipe.model.set_param("W", weights.astype(np.float32))
        for text in TEXTS:
            reading = pipe.reading(nlp.make_doc(text))
            best = max(each.probability for each in reading.alternatives())
            found = np.exp(reading.log_probability(shown(pipe, nlp(text))))
            assert found == approx(best, rel=1e-6)
