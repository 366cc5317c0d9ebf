"""Rules about all spans of a Doc for the tests: templates, a corpus that keeps some, readings of texts."""

import numpy as np
import oracle

from spacy_hocrf.arrays import offsets_of
from spacy_hocrf.joint.span_rules import Apart, AtLeast, AtMost, Precedes, Together
from spacy_hocrf.types import Segments

TEMPLATES = [AtMost(), AtMost(most=2), AtLeast(), AtLeast(least=2), Precedes(), Together(), Apart()]


def rule(kind, **settings):
    return {"@misc": f"spacy-hocrf.{kind}.v1", **settings}


def together(segmentations):
    """Segmentations of several sequences as arrays."""
    rows = np.array([row for each in segmentations for row in each], dtype=np.int32).reshape(-1, 3)
    return Segments(offsets_of([len(each) for each in segmentations]), *rows.T)


def kind_of(template, label):
    """A rule as the oracle has it."""
    kind = type(template).__name__
    if kind in ("AtMost", "AtLeast"):
        return kind, getattr(template, {"AtMost": "most", "AtLeast": "least"}[kind]), label
    return (kind, *label.split(" & "))


NAMES = ("Ada", "Max", "Emmy", "Joe", "Ann", "Bob", "Eve", "Tim")


def one_name_each(seed, count):
    """Texts with three or four names, of which just one is a PERSON: more often one behind "mr"."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        names = rng.choice(NAMES, int(rng.integers(3, 5)), replace=False).tolist()
        person = int(rng.integers(len(names)))
        text, spans = "", []
        for i, name in enumerate(names):
            text += "mr " if rng.random() < (0.95 if i == person else 0.4) else "and "
            spans += [(len(text), len(text) + len(name), "PERSON")] if i == person else []
            text += f"{name} "
        rows.append((text.strip(), spans))
    return rows


def all_outputs(task, forbidden):
    """Features, local score and loss of all segmentations of a task's text.

    forbidden: pairs of labels that may not follow each other.
    """
    potentials, automaton = task._potentials, task._automaton
    limits = automaton.limits.tolist()
    every = list(oracle.segmentations(potentials, limits, frozenset(forbidden)))
    local = [oracle.score(potentials, automaton.patterns, each) for each in every]
    labels = np.array([[y for a, b, y in each for _ in range(a, b)] for each in every])
    broken = task._rules.broken(together(every))
    return -broken.astype(float), np.array(local), (labels != task._labels).sum(axis=1)


def gold_features(task, n):
    found = np.zeros(n)
    found[task.gold.features[:-1]] = task.gold.counts[:-1]
    return found
