"""Random small groups of Docs with random joint patterns and rules, decoded and compared with the
enumeration of all their readings.

    python tests/random_groups.py --groups 10000

Group k of a seed is always the same. Printed is what held, and how often. A group for which something
does not hold ends the run, with its number.
"""

import argparse
import sys
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "helpers"))

import joint_oracle
import numpy as np
import pytest
from joint_decoding import segments_of
from random_constraints import as_rules, random_rules
from rules_of_models import compiled
from small_corpus import MODELS, documents, trained, words

from spacy_hocrf.engine.pool import BufferPool
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.joint.decoding import DualDecomposition, JointDecoder
from spacy_hocrf.joint.features import JointFeatures
from spacy_hocrf.joint.stated import MatchedPlaces, Pattern
from spacy_hocrf.joint.templates import IdenticalPhrases

WORDS = ["Ada", "York", "New", "likes", "Emmy", "born"]
NEIGHBOURS = MatchedPlaces(
    pattern=[{"IS_TITLE": True, "PLACE": 1}, {"OP": "?"}, {"IS_TITLE": True, "PLACE": 2}]
)
BACKWARDS = MatchedPlaces(
    pattern=[{"IS_TITLE": True, "OP": "+", "PLACE": 2}, {"IS_LOWER": True, "PLACE": 1}]
)
THREE = MatchedPlaces(pattern=[{"PLACE": 1}, {"PLACE": 3}, {"IS_TITLE": True, "PLACE": 2}])
PLACES = [(NEIGHBOURS, 2), (BACKWARDS, 2), (THREE, 3), (IdenticalPhrases(max_length=2), 2)]
KINDS = ("hybrid", "hybrid", "two_slave", "naive")
ENDLESS = 0.1  # of the weights


@cache
def component(name):
    """A component that has learnt a few texts, and is not too sure of itself."""
    nlp = trained(*MODELS[name], rows=documents(5))
    pipe = nlp.get_pipe("hocrf")
    pipe.model.set_param("W", 0.3 * pipe.model.get_param("W"))
    return nlp, pipe


@dataclass
class Group:
    """Docs, what connects them, and what is expected of any answer."""

    name: str
    pipe: object
    docs: list
    decoder: JointDecoder
    patterns: list  # as joint_oracle.best takes them
    rules: list


def make_group(seed, k):
    """Group k."""
    rng = np.random.default_rng([seed, k])
    name = str(rng.choice(list(MODELS)))
    nlp, pipe = component(name)
    scheme = pipe.structure.scheme
    which = rng.random(2)
    lengths = rng.choice([1, 2, 3, 4], int(rng.integers(1, 3)))
    docs = [words(nlp, *(str(word) for word in rng.choice(WORDS, length))) for length in lengths]
    templates = [] if which[0] < 0.2 else random_patterns(rng, scheme)
    rules = {} if templates and which[1] < 0.4 else random_rules(rng, scheme.labels)
    features = JointFeatures(tuple(templates), scheme)
    weights = rng.normal(0.5, 1.5, len(features.names))
    weights = np.where(features.hard, features.initial_weights, weights)
    settings = DualDecomposition(kind=str(rng.choice(KINDS)))
    batch, numbers = TokenBatch(docs), np.zeros(len(docs), dtype=np.int64)
    patterns = [
        (places, joint_oracle.is_stated, None, weight)
        for template, weight in zip(templates, weights)
        for places in stated_sets(template, batch, numbers)
    ]
    paid = [(one, t.price) for t in rules.values() for one in as_rules(t, scheme.labels)]
    decoder = JointDecoder(features, weights, settings, compiled(pipe, rules=rules), BufferPool())
    return Group(name, pipe, docs, decoder, patterns, paid)


def random_patterns(rng, scheme):
    """Patterns over other places each, with states that the model has."""
    known = [*scheme.labels, *(f"not {label}" for label in scheme.labels), *scheme.names]
    chosen = rng.permutation(len(PLACES))[: int(rng.integers(1, 4))]
    found = []
    for places, size in (PLACES[i] for i in chosen.tolist()):
        states = [str(state) for state in rng.choice(known, size)]
        weight = rng.choice([np.inf, -np.inf]) if rng.random() < ENDLESS else 0.0
        found.append(Pattern(states=states, places=places, weight=weight))
    return found


def stated_sets(template, batch, groups):
    """Each set of places with their states: (Doc, start, end, state)."""
    found = template.find(batch, groups)
    rows = []
    for begin, end in zip(found.start.tolist(), found.end.tolist()):
        doc = int(batch.sequence[begin])
        first = int(batch.offsets[doc])
        rows.append((doc, begin - first, end - first))
    size = len(template.states)
    sets = [rows[i : i + size] for i in range(0, len(rows), size)]
    return [[(*place, state) for place, state in zip(s, template.states)] for s in sets]


def check_group(seed, k):
    """Decode a group, and compare; what held of it."""
    group = make_group(seed, k)
    endless = [w for *_, w in group.patterns if np.isinf(w)]
    worth = 1e4  # of an infinite weight: more than all else
    patterns = [(*rest, np.copysign(worth, w) if np.isinf(w) else w) for *rest, w in group.patterns]
    optimum, score = joint_oracle.best(group.pipe, group.docs, patterns, group.rules)
    numbers = np.zeros(len(group.docs), dtype=np.int64)
    found = Counter({group.decoder.settings.kind: 1, "groups": 1})
    found["with patterns"] += bool(group.patterns)
    found["with rules"] += bool(group.rules)
    if optimum == -np.inf:
        with pytest.raises(ValueError, match="H216"):
            segments_of(group.pipe, group.docs, numbers, group.decoder)
        return found + Counter(impossible=1)
    segmentations, gap, certificate = segments_of(group.pipe, group.docs, numbers, group.decoder)
    here = score(segmentations)
    assert here <= optimum + 1e-8
    found["optimal"] += here >= optimum - 1e-6
    if endless:  # its worth differs here and there, and so do the gaps
        found["with infinite patterns"] += 1
        found["infinite ones kept"] += here > optimum - worth / 2
    else:
        # Docs that are decoded together have one gap
        assert here + sum(set(gap.tolist())) >= optimum - 1e-6
    found["certain"] += bool(certificate.all())
    assert not certificate.all() or here >= optimum - 1e-6
    return found


def main():
    """Check as many groups as are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    found = Counter()
    for k in range(asked.groups):
        try:
            found += check_group(asked.seed, k)
        except BaseException:
            print(f"group {k} of seed {asked.seed}")
            raise
    for what, count in sorted(found.items()):
        print(f"{what}: {count}")


if __name__ == "__main__":
    main()
