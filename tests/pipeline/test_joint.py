"""Docs decoded together, against enumeration of all their segmentations; groups, settings, saving and loading."""

import copy
import pickle
import warnings
from functools import cache

import global_oracle
import numpy as np
import pytest
import spacy
from numpy.testing import assert_array_equal
from small_corpus import FEATURES, MODELS, documents, examples, fit, found, trained, untrained, with_entities, words
from spacy.tokens import Doc
from spacy.util import load_model_from_config
from thinc.api import Config

from spacy_hocrf.engine.viterbi import Best
from spacy_hocrf.model import network
from spacy_hocrf.pipeline.decoding import Decoder
from spacy_hocrf.pipeline.joint import JointDecoder, make_dual_decomposition

SCORED = [name for name in MODELS if name != "tagger"]
PHRASES = {"@misc": "spacy-hocrf.IdenticalPhrases.v1", "max_length": 2, "weight": 1.0}
BOTH = {
    "@misc": "spacy-hocrf.GlobalFeatures.v1",
    "*": {
        "phrases": {**PHRASES, "outside": True},
        "words": {"@misc": "spacy-hocrf.IdenticalWords.v1", "max_pairs": 2},
        "all": {"@misc": "spacy-hocrf.GroupConsistency.v1", "max_length": 1, "attr": "ORTH"},
    },
}
WORDS = ["Ada", "York", "New", "likes"]


def settings_of(kind="hybrid", **settings):
    return {"@misc": "spacy-hocrf.DualDecomposition.v1", "kind": kind, **settings}


@cache
def learnt(name, *, rows=5):
    """The bytes of a pipeline with three global templates, of little weight so far."""
    return trained(*MODELS[name], rows=documents(rows), global_features=BOTH).to_bytes()


def loaded(name, **settings):
    """The same pipeline for one test alone."""
    return untrained(*MODELS[name], **{"global_features": BOTH, **settings}).from_bytes(learnt(name))


def random_docs(nlp, rng, lengths):
    return [words(nlp, *(str(word) for word in rng.choice(WORDS, length))) for length in lengths]


def patterns_of(pipe, docs, groups):
    """The weighted patterns of BOTH, by their definition."""
    scheme, named = pipe.network.scheme, dict(zip(pipe.global_feature_names, pipe.global_weights))
    pairs = global_oracle.pairs(global_oracle.phrases(docs, groups, [1, 2]), 20)
    bundles = [set(p) for p in global_oracle.phrases(docs, groups, [1], key=lambda token: token.text)]
    skips = global_oracle.pairs(global_oracle.words(docs, groups), 2)
    states = [name for name in scheme.names if name != "O"]
    is_entity, has_state = global_oracle.is_entity, global_oracle.has_state
    rows = [
        ("IdenticalPhrases[LOWER,1-2]", pairs, is_entity, scheme.labels),
        ("IdenticalPhrases[LOWER,1-2]", pairs, has_state, ["O"]),
        ("IdenticalWords[ORTH]", skips, has_state, states),
        ("GroupConsistency[ORTH,1-1]", bundles, is_entity, scheme.labels),
    ]
    assert {f"{template}, {label}" for template, _, _, labels in rows for label in labels} == set(named)
    return [
        (places, predicate, label, named[f"{template}, {label}"])
        for template, sets, predicate, labels in rows
        for label in labels
        for places in sets
    ]


def segments_of(pipe, docs, groups):
    """Segmentations, gaps and certificates, as the component decodes them."""
    taken = []

    class Spy(JointDecoder):
        def decode(self, *arguments):
            taken.append(super().decode(*arguments))
            return taken[-1]

    learner = pipe._learner
    joint = Spy(pipe.global_features, pipe.global_weights, pipe.decoder)
    decoder = Decoder(learner.network, learner.scheme, learner.automaton, learner.placed_weights, pipe.target, joint)
    [(batch, _)] = network.token_batches(docs)
    decoder.predict(batch, scores=False, threshold=None, groups=groups)
    [result] = taken
    best = result.best
    assert isinstance(best, Best)
    rows = list(zip(best.start.tolist(), best.end.tolist(), best.label.tolist()))
    return [rows[a:b] for a, b in zip(best.offsets, best.offsets[1:])], result.gap, result.certificate


@pytest.mark.parametrize("name", SCORED)
@pytest.mark.parametrize("kind", ["hybrid", "two_slave", "naive"])
def test_a_certificate_means_the_best_of_all_joint_segmentations(name, kind):
    nlp = loaded(name, decoder=settings_of(kind))
    pipe = nlp.get_pipe("hocrf")
    pipe.model.set_param("W", 0.3 * pipe.model.get_param("W"))  # not too sure of itself
    rng = np.random.default_rng(0)
    certain = changed = 0
    for round in range(6):
        pipe.global_weights = rng.normal(0 if round % 2 else 1, 1.5, len(pipe.global_weights))
        docs = random_docs(nlp, rng, [4, 3] if round < 3 else [3, 1, 3])
        groups = np.zeros(len(docs), dtype=np.int64)
        optimum, score = global_oracle.best(pipe, docs, patterns_of(pipe, docs, groups))
        segmentations, gap, certificate = segments_of(pipe, docs, groups)
        here = score(segmentations)
        bound = here + sum(set(gap.tolist()))  # Docs decoded together have one gap
        assert here <= optimum + 1e-9
        assert bound >= optimum - 1e-6
        assert not certificate.all() or here == pytest.approx(optimum, abs=1e-6)
        certain += bool(certificate.all())
        pipe.decoder = make_dual_decomposition("chain")
        changed += [found(doc) for doc in nlp.pipe(map(Doc.copy, docs))] != [p for p in map(list, as_triples(pipe, segmentations))]
        pipe.decoder = make_dual_decomposition(kind)
    assert certain >= (1 if kind == "two_slave" else 4)
    assert changed >= 1


def as_triples(pipe, segmentations):
    return [pipe.network.scheme.decode(segments) for segments in segmentations]
