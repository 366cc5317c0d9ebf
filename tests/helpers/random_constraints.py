"""Random problems with random constraints, and all segmentations that keep them; what keeps a constraint is
decided here span by span and token by token.
"""

from collections import defaultdict
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from types import SimpleNamespace

import joint_oracle
import numpy as np
import oracle
import spacy
from numpy.testing import assert_allclose
from random_readings import random_problem
from spacy.tokens import Doc, Span

from spacy_hocrf.annotation.targets import EntsTarget, TagsTarget
from spacy_hocrf.answers.decoders import ExpectedF
from spacy_hocrf.answers.predictor import Predictor
from spacy_hocrf.answers.reading import readings_of
from spacy_hocrf.engine.automaton import compile_automaton
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.learning.training_rules import TrainingRules
from spacy_hocrf.rules import templates
from spacy_hocrf.rules.compiled import CompiledRules
from spacy_hocrf.rules.constraints import Constraints

VOCAB = spacy.blank("xx").vocab
KEY = "hocrf_constraints"
COUNTS = ("AtMost", "AtLeast")
PROBLEMS = 20  # of each kind, and sort of constraints


class Constrained:
    """A random problem with random constraints, and all segmentations that keep them."""

    def __init__(self, kind, seed, which, texts=True):
        self.scheme, self.patterns, potentials, _ = random_problem(kind, 2 * seed)
        self.length = len(potentials.allowed)
        self.trims = np.zeros(self.length, dtype=bool)  # no token is white space
        rng = np.random.default_rng([seed, 17])
        self.settings = random_settings(rng, self.scheme, which)
        self.doc = Doc(VOCAB, words=["x"] * self.length)
        self.texts = (
            random_texts(rng, self.scheme, self.length)
            if texts and which in ("texts", "all")
            else []
        )
        if self.texts:
            self.doc.spans[KEY] = [
                Span(self.doc, start, end, label, span_id=name)
                for start, end, label, name in self.texts
            ]
        limits, forbidden = self.scheme.limits, frozenset(self.scheme.forbidden)
        self.every = [list(s) for s in oracle.segmentations(potentials, limits, forbidden)]
        decoded = [(each, oracle.decoded(self.scheme, each)) for each in self.every]
        kept = [(each, frozenset(spans)) for each, spans in decoded if self.keeps(spans)]
        self.kept = [each for each, _ in kept]
        self._readings = [spans for _, spans in kept]
        scores = [oracle.score(potentials, self.patterns, each) for each in self.kept]
        self.scores = np.array(scores) - [self.paid(spans) for spans in self._readings]
        self.log_z = np.logaddexp.reduce(self.scores) if len(scores) else -np.inf
        self.p = np.exp(self.scores - self.log_z)
        carried = frozenset(self.patterns)
        automaton = compile_automaton(self.patterns, limits, forbidden=forbidden, carried=carried)
        self.rules = CompiledRules(self.settings, self.scheme, automaton, carried)
        self.structure = SimpleNamespace(
            potentials=potentials,
            index=SimpleNamespace(attributes=()),
            allowed=lambda batch: potentials.allowed.copy(),
            observe=lambda batch: None,
            compile=lambda observations, allowed, once: SimpleNamespace(
                potentials=lambda weights: replace(potentials, allowed=allowed)
            ),
        )

    def keeps(self, spans):
        return self.keeps_settings(spans) and all(
            keeps_text(spans, *constraint, self.texts) for constraint in self.texts
        )

    def keeps_settings(self, spans):
        number = {y: sum(label == y for *_, label in spans) for y in self.scheme.labels}
        settings, chain = self.settings, ["", *chained(spans, self.length), ""]
        return (
            all(number[y] <= most for y, most in (settings.at_most or {}).items())
            and all(number[y] >= least for y, least in (settings.at_least or {}).items())
            and self.paid(spans) < np.inf
            and not any((a, b) in list(pairwise(chain)) for a, b in settings.forbidden)
            and all(
                y == b
                for a, b in settings.required
                for x, y in pairwise(chain)
                if x == a
            )
        )  # fmt: skip

    def broken(self, spans):
        """Prices of the rules with a price of their own, 0 for those that are kept."""
        labels = [label for *_, label in sorted(spans)]
        for template in (self.settings.rules or {}).values():
            for rule in as_rules(template, self.scheme.labels):
                yield 0.0 if joint_oracle.keeps(rule, labels) else template.price

    def paid(self, spans):
        return sum(self.broken(spans))

    def predictor(self, decoder):
        target = TagsTarget(True) if self.scheme.encoding == "tags" else EntsTarget("s", True)
        return Predictor(self.structure, None, target, self.rules, decoder)

    def predicted(self, decoder):
        (found,) = self.predictor(decoder).predict(self.batch(), scores=True, threshold=None)
        return found

    def batch(self):
        return TokenBatch([self.doc])

    def readings(self):
        """The spans of every segmentation that is left."""
        return self._readings

    shown = decoded = readings  # as `Enumerated` tells spans with their white space from others

    @cached_property
    def reading(self):
        (reading,) = readings_of(self.predictor(ExpectedF()), self.batch())
        return reading

    def close(self, found, expected, atol=3e-8):
        assert_allclose(found, expected, rtol=1e-7, atol=atol)

    def compiled(self, **settings):
        """The rules with other settings."""
        settings, rules = replace(self.settings, **settings), self.rules
        return CompiledRules(settings, self.scheme, rules.model_automaton, rules.carried)

    @cached_property
    def training(self):
        """The rules as training keeps them."""
        return TrainingRules(self.compiled(training="all"))

    def sums(self, segmentations):
        """log of their summed scores, and how often everything is expected to fire."""
        potentials = self.structure.potentials
        scores = np.array([oracle.score(potentials, self.patterns, s) for s in segmentations])
        total = np.logaddexp.reduce(scores)
        fired = [oracle.firing(potentials, self.patterns, s) for s in segmentations]
        chances = np.exp(scores - total)
        return total, {
            part: sum(p * counts[part] for p, counts in zip(chances, fired)) for part in fired[0]
        }

    @cached_property
    def _chances(self):
        found = defaultdict(float)
        for p, spans in zip(self.p, self.readings()):
            for span in spans:
                found[span] += p
        return dict(found)

    def probability(self, span):
        return self._chances.get(span, 0.0)


def chained(spans, length):
    """Labels of neighbours, "O" for a stretch in no span."""
    found, at = [], 0
    for start, end, label in sorted(spans):
        found += ["O", label] if start > at else [label]
        at = end
    return [*found, "O"] if at < length else found


def keeps_text(spans, start, end, label, kind, texts):
    if kind == "span":
        return (start, end, label) in spans
    if kind == "not":
        return (start, end, label) not in spans
    over = {span for span in spans if span[0] < end and start < span[1]}
    if kind == "outside":
        return not over
    if kind == "inside":
        return any(a <= start and end <= b and y == label for a, b, y in spans)
    same = {y for a, b, y, k in texts if (a, b, k) == (start, end, "only")}
    return {y for *_, y in over} <= same


def random_settings(rng, scheme, which):
    labels, found = list(scheme.labels), {}
    places = [*labels, "O", ""]
    pairs = [(a, b) for a in places for b in places if a or b]
    if which in ("successions", "all"):
        chosen = rng.choice(len(pairs), 3, replace=False)
        found["forbidden"] = [pairs[i] for i in chosen[: rng.integers(0, 3)]]
        found["required"] = [pairs[chosen[2]]] if rng.random() < 0.4 else []
    if which in ("numbers", "all"):
        most = {y: int(rng.integers(0, 3)) for y in labels if rng.random() < 0.6}
        found["at_most"] = most
        least = {y: int(rng.integers(0, 3)) for y in labels if rng.random() < 0.25}
        found["at_least"] = {y: min(n, most.get(y, n)) for y, n in least.items()}
    if which == "rules":
        found["rules"] = random_rules(rng, labels)
    # as exact as can be, or only so exact that nothing here sees a difference
    return Constraints(**found, tolerance=float(rng.choice([0.0, 1e-9])))


def random_rules(rng, labels):
    """Up to three templates about all labels, or about some, of any price."""
    found = {}
    kinds = ["AtMost", "AtLeast", "Precedes", "Together", "Apart"]
    for kind in rng.permutation(kinds[: None if len(labels) > 1 else 2]).tolist()[:3]:
        number = int(rng.integers(0, 3))
        settings = {"AtMost": {"most": number}, "AtLeast": {"least": max(1, number)}}.get(kind, {})
        if rng.random() < 0.5:
            pair = [str(label) for label in rng.permutation(labels)[:2]]
            settings |= {"pairs": [pair]} if number and kind not in COUNTS else {}
            settings |= {"labels": pair[:1]} if kind in COUNTS else {}
        price = float(rng.choice([np.inf, 0.0, 0.7, 2.5]))
        found[kind] = getattr(templates, kind)(price=price, **settings)
    return found


def as_rules(template, labels):
    """Kind, and number and label or two labels, of each rule of a template."""
    kind = type(template).__name__
    if kind in COUNTS:
        number = template.most if kind == "AtMost" else template.least
        return [(kind, number, label) for label in template.labels or labels]
    pairs = [(a, b) for a in labels for b in labels if a != b]
    if kind == "Apart":
        pairs = [(a, b) for i, a in enumerate(labels) for b in labels[i + 1 :]]
    return [(kind, *pair) for pair in template.pairs or pairs]


def random_texts(rng, scheme, length):
    found = []
    for _ in range(int(rng.integers(1, 4))):
        start = int(rng.integers(0, length))
        end = int(rng.integers(start + 1, length + 1))
        label, kind = (
            str(rng.choice(scheme.labels)),
            str(rng.choice(["span", "not", "outside", "inside", "only"])),
        )
        possible = scheme.can_have([(start, end, label)])
        taken = any(a < end and start < b for a, b, _, k in found if k == "span")
        wrong = kind in ("span", "inside") and not possible
        wrong |= (kind == "span" and taken) or (kind == "outside" and scheme.outside < 0)
        if not wrong:
            found.append((start, end, label, kind))
    return found


def constrained(kind, sorts=("successions", "numbers", "texts", "rules", "all")):
    """Random problems with constraints of these sorts."""
    return [Constrained(kind, seed, sort) for sort in sorts for seed in range(PROBLEMS)]
