"""A tiny corpus of people and places, and pipelines that learn it: for the tests of the component
and of spaCy's commands.
"""

from functools import cache
from itertools import product

import numpy as np
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import load_model_from_config
from thinc.api import Config

from spacy_hocrf.annotation.readers import predicted_of

PEOPLE = ("Ada Lovelace", "Alan Turing", "Grace Hopper", "Emmy", "Carl Friedrich Gauss")
PLACES = ("London", "New York", "Paris", "San Jose")
SENTENCES = (
    "{person} was born in {place} .",
    "In {place} , {person} slept .",
    "Nobody but {person} likes {place}",
    "It rains .",
)

PIPELINE = """
[nlp]
lang = "xx"
pipeline = ["hocrf"]

[components]

[components.hocrf]
factory = "hocrf"
"""
CONFIG = f"""{PIPELINE}
[components.hocrf.trainer]
@misc = "spacy-hocrf.LBFGS.v1"
sigma = 10.0
"""

MODELS = {  # factory, and what its config has besides the trainer
    "semi-CRF, outside tokens": ("hocrf", {}),
    "semi-CRF, outside runs": ("hocrf", {"outside": "run", "order": 2}),
    "CRF, io": ("hocrf", {"encoding": "io"}),
    "CRF, bio": ("hocrf", {"encoding": "bio", "order": 2}),
    "CRF, bieso": ("hocrf", {"encoding": "bieso"}),
    "spans": ("hocrf_spans", {}),
    "tagger": ("hocrf_tagger", {}),
}
FEATURES = {"@misc": "spacy-hocrf.Window.v1"}


def documents(count=10):
    """(text, [(first character, end character, label)]) in a fixed order, without repetition."""
    pairs = [
        (person, place)
        for shift in range(len(PEOPLE))
        for person, place in zip(PEOPLE[shift:], PLACES)
    ]
    rows = [
        _fill(sentence, person, place)
        for (person, place), sentence in product(pairs, SENTENCES[:3])
    ]
    unique = {text: (text, spans) for text, spans in rows}
    return [*[*unique.values()][: count - 1], (SENTENCES[-1], [])]


def every_name(count=24):
    """Texts of three tokens, all different, with a name each, whose label the word does not always tell."""
    return [
        (f"{name} {verb} {number}", [(0, len(name), label)])
        for name, verb, number in _names(count)
        for label in ["PLACE" if verb == "left" or name == "Paris" else "PERSON"]
    ]


def ambiguous(count=24):
    """The same texts; in a third of them the name is none, and chance decides about some others."""
    return [
        (f"{name} {verb} {number}", [(0, len(name), label)] if i % 3 else [])
        for i, (name, verb, number) in enumerate(_names(count))
        for label in ["PLACE" if name == "Paris" or i % 5 == 0 else "PERSON"]
    ]


def one_of_two(count=48, seed=3):
    """Texts with two words that may be a person, one of which is: what a CRF of spans cannot see."""
    rng, rows = np.random.default_rng(seed), []
    words = ("April", "Will", "Rose", "Mark", "Grace", "Frank")
    for number in range(count):
        one, other = rng.permutation(words)[:2]
        text = f"{one} then {other} {number}"
        start = 0 if rng.random() < 0.5 else len(f"{one} then ")
        rows.append((text, [(start, start + len(one if not start else other), "PERSON")]))
    return rows


def _names(count):
    words = product(("Ada", "Emmy", "Paris", "Washington"), ("met", "left", "in"), "123456")
    return [*words][:: 72 // count][:count]


def _fill(sentence, person, place):
    text = sentence.format(person=person, place=place)
    named = ((person, "PERSON"), (place, "PLACE"))
    return text, sorted(
        (text.index(name), text.index(name) + len(name), label) for name, label in named
    )


def annotation(nlp, text, spans):
    """Entities, the span group "sc" and tags of a text, as `Example.from_dict` takes them."""
    doc = nlp.make_doc(text)
    tags = [
        "NAME" if token.text[0].isupper() else "PUNCT" if token.is_punct else "WORD"
        for token in doc
    ]
    return {"entities": spans, "spans": {"sc": spans}, "tags": tags}


def examples(nlp, rows=None):
    """Annotated examples of some documents, by default all ten."""
    rows = documents() if rows is None else rows
    return [
        Example.from_dict(nlp.make_doc(text), annotation(nlp, text, spans)) for text, spans in rows
    ]


def entity_scores(doc):
    """How probable the entities are that a component has predicted, float32 [S]."""
    scores = [ent._.hocrf_score for ent in doc.ents]
    return np.array([score for score in scores if score is not None], dtype=np.float32)


def untrained(factory="hocrf", model=None, **settings):
    """A pipeline of one component, "hocrf", made from a config string."""
    config = Config().from_str(CONFIG)
    component = config["components"]["hocrf"]
    component.update(settings, factory=factory)
    if model:
        component["model"] = {"features": FEATURES, **model}
    return load_model_from_config(config, auto_fill=True)


def fit(nlp, data, steps=100):
    """Update with all the data until the component has converged; the losses of each step."""
    losses = []
    for _ in range(steps):
        losses.append(nlp.update(data, sgd=nlp.create_optimizer())["hocrf"])
        run = nlp.get_pipe("hocrf").run
        if run is not None and not run.running:
            break
    return losses


def initialize(nlp, rows=None):
    """Initialize with examples of some documents, by default all ten; the examples."""
    data = examples(nlp, rows)
    nlp.initialize(lambda: data)
    return data


def learn_from(nlp, data, steps=100):
    """Initialize and update with Examples, for so many steps at most."""
    nlp.initialize(lambda: data)
    fit(nlp, data, steps)


def teach(nlp, rows=None, steps=100):
    """The same with those of some documents, by default all ten; the examples."""
    data = examples(nlp, rows)
    learn_from(nlp, data, steps)
    return data


def trained(factory="hocrf", model=None, rows=None, steps=100, **settings):
    """A pipeline that has learnt its examples by heart, or for so many steps."""
    nlp = untrained(factory, model, **settings)
    teach(nlp, rows, steps)
    return nlp


@cache
def shared(name):
    """A trained pipeline of `MODELS` that no test changes."""
    return trained(*MODELS[name])


def like_shared(name, **settings):
    """The same model for one test alone, perhaps with other settings; without the corpus."""
    return untrained(*MODELS[name], **settings).from_bytes(shared(name).to_bytes())


@cache
def weakly_trained(name):
    """One with a narrow prior, so that it is sure of nothing; no test changes it."""
    weak = {"@misc": "spacy-hocrf.LBFGS.v1", "sigma": 0.3}
    return trained(*MODELS[name], trainer=weak, rows=documents(6))


def objective_at_optimum(nlp):
    """The exact objective at float64, for a component that has converged."""
    pipe = nlp.get_pipe("hocrf")
    assert not pipe.run.running
    return pipe.run.loss


def learner_of(pipe):
    """What trains a component, and knows its corpus: no public name. Of a fold, what trains its model."""
    return pipe._learner


def decoder_of(pipe):
    """The decoder of a component with the cost that it has learnt: no public name."""
    return pipe._decoder


def found(doc):
    """What a component has written: entities, spans or tags."""
    if doc.has_annotation("ENT_IOB"):
        return _triples(doc.ents)
    return _triples(doc.spans["sc"]) if "sc" in doc.spans else [token.tag_ for token in doc]


def _triples(spans):
    return [(span.start, span.end, span.label_) for span in spans]


def with_entities(doc, *triples, blocked=()):
    """The Doc with entities, such as an earlier component sets."""
    spans = [Span(doc, start, end, label=label) for start, end, label in triples]
    doc.set_ents(
        spans,
        blocked=[doc[start:end] for start, end in blocked],
        default="outside" if triples else "missing",
    )
    return doc


def bare_docs(nlp, docs):
    """Their tokens alone."""
    return [predicted_of(nlp, doc, gold_preproc=True) for doc in docs]


def words(nlp, *tokens):
    """A Doc of exactly these tokens."""
    return Doc(nlp.vocab, words=list(tokens))
