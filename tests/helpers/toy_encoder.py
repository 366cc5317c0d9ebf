"""A tiny encoder in float64, and models over it whose every number can be differentiated."""

from dataclasses import replace

import numpy as np
import spacy
from spacy.tokens import Doc
from thinc.api import Model, NumpyOps

from spacy_hocrf.engine.automaton import compile_automaton
from spacy_hocrf.features.config import make_segment, make_token, make_transition
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.model.architectures import build_high_order_crf, set_weights
from spacy_hocrf.model.heads import learning_from
from spacy_hocrf.types import Segment

TEMPLATES = [
    *make_token(["ORTH"]),
    *make_segment(["LENGTH"]),
    *make_transition(0),
    *make_transition(1),
]
PARTS = ["start", "end", "tokens", "inner"]
WIDTH = 3


def toy(width=WIDTH, seed=0):
    """An encoder in float64: a row for every letter, added to that of the letter before, bent."""

    def forward(model, docs, is_train):
        table = model.get_param("E")
        letters = [np.array([ord(word.text[0]) % 8 for word in doc], dtype=int) for doc in docs]
        bent = [np.tanh(table[some] + _before(table[some])) for some in letters]

        def backprop(gradients):
            assert len(gradients) == len(docs)
            total = np.zeros_like(table)
            for some, row, gradient in zip(letters, bent, gradients):
                inner = gradient * (1 - row**2)
                np.add.at(total, some, inner)
                np.add.at(total, some[:-1], inner[1:])
            model.inc_grad("E", total)
            return []

        return bent, backprop

    table = np.random.default_rng(seed).normal(size=(8, width))
    return Model("toy", forward, params={"E": table}, dims={"nO": width}, ops=NumpyOps())


def patterns(order):
    """Of alternating labels."""
    return tuple(
        tuple((first + i) % 2 for i in range(length))
        for length in range(1, order + 2)
        for first in (0, 1)
    )


def _before(rows):
    return np.concatenate([np.zeros((min(1, len(rows)), rows.shape[1])), rows[:-1]])


def build(encoding, tok2vec, features=TEMPLATES, longest=2, **settings):
    """A model with the features of alternating labels, and random weights."""
    if encoding == "segments":
        settings.setdefault("parts", PARTS)
    settings = {"encoding": encoding, "tok2vec": tok2vec, "scale": 0.7, **settings}
    model = build_high_order_crf(features, **settings)
    structure = model.attrs["structure"]
    docs = texts()
    scores = learning_from(structure.settings.scores, docs[0])
    structure.settings = replace(structure.settings, scores=scores)
    tags = structure.settings.encoding == "tags"
    structure.set_labels(
        ["A", "B"] if tags else ["A"], {"A": longest}, outside=not tags, repeats=True
    )
    segments = [[Segment(i, i + 1, i % 2) for i in range(len(doc))] for doc in docs]
    structure.learn(
        patterns(structure.settings.order), iter([(TokenBatch(docs, learn=True), segments)])
    )
    set_weights(model, np.random.default_rng(0).normal(size=structure.size))
    return model


def texts():
    vocab = spacy.blank("xx").vocab
    return [Doc(vocab, words=list(text)) for text in ("xyzx", "", "zy")]


def automaton_of(model):
    structure = model.attrs["structure"]
    scheme = structure.scheme
    return compile_automaton(
        structure.patterns,
        scheme.limits,
        forbidden=scheme.forbidden,
        carried=structure.index.carried,
    )


def central(value_at, place, step=1e-5):
    """The derivative by one number of an array, which is put back."""
    array, index = place
    kept, ends = array[index], []
    for sign in (1, -1):
        array[index] = kept + sign * step
        ends.append(value_at())
    array[index] = kept
    return (ends[0] - ends[1]) / (2 * step)
