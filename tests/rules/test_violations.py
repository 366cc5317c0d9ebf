"""Bounds of the probability that a rule is broken, against enumeration."""

from dataclasses import replace

import numpy as np
import oracle
import pytest
from random_constraints import Constrained
from random_readings import KINDS

from spacy_hocrf.engine.automaton import compile_automaton
from spacy_hocrf.engine.probable import probable_spans
from spacy_hocrf.model.scheme import make_scheme
from spacy_hocrf.rules.compiled import CompiledRules
from spacy_hocrf.rules.constraints import Constraints
from spacy_hocrf.rules.grammar import Grammar
from spacy_hocrf.rules.templates import Apart, AtLeast, AtMost, Precedes, Together
from spacy_hocrf.rules.violations import RuleSurvey, Texts, grouped, starts_for, violation_bounds
from spacy_hocrf.types import Potentials


def rules_for(scheme):
    """Rules of every kind, over the labels of segments."""
    known = [AtMost(most=n, price="inf") for n in range(3)]
    known += [AtLeast(least=n, price=0.4) for n in (1, 2)]
    known += [Precedes(price=0.7), Together(price="inf"), Apart(price=0.2)]
    first, last = scheme.labels[0], scheme.labels[-1]  # states come again in the second one
    known += [
        Grammar(expression=e, price="inf") for e in (f"{first}? {last}", f"({first} {last})*")
    ]
    constraints = Constraints(rules={str(i): each for i, each in enumerate(known)})
    automaton = compile_automaton([(y,) for y in range(scheme.n_labels)], scheme.limits)
    return CompiledRules(constraints, scheme, automaton, frozenset()).rules


@pytest.mark.parametrize("seeds", [range(6), pytest.param(range(6, 60), marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS)
def test_no_rule_is_broken_more_probably_than_is_said(kind, seeds):
    told = 0
    for seed in seeds:
        problem = Constrained(kind, seed, "successions")  # all readings are there
        scheme, potentials = problem.scheme, problem.structure.potentials
        automaton, rules = problem.rules.model_automaton, rules_for(scheme)
        starts = starts_for(rules, len(potentials.token))
        probable = probable_spans(potentials, automaton, scheme.rules, 1.0, starts=starts)
        if probable.log_partition == -np.inf:
            continue
        survey, runs = RuleSurvey(starts, probable.log_partition), scheme.encoding == "io"
        texts = Texts(potentials, automaton, survey, runs)
        violations = violation_bounds(grouped(rules), texts)[0]
        scores = [oracle.score(potentials, problem.patterns, each) for each in problem.every]
        p = np.exp(np.array(scores) - probable.log_partition[0])
        for i, rule in enumerate(rules):
            broken = [not rule.keeps([y for *_, y in each]) for each in problem.every]
            weight = -np.expm1(-rule.price)
            assert p[broken].sum() * weight <= violations[i] + 1e-8
            told += violations[i] < 0.99 * weight
    assert told > 1.5 * len(seeds) or runs


def test_spans_that_overlap_are_not_two():
    """One of two places, of which a text has one span at most: the rule is broken by no reading."""
    scheme = make_scheme(["A"], encoding="segments", outside="token", limits=[4])
    potentials = Potentials.zero(
        np.array([0, 2]), scheme.allowed(np.array([0, 2])), scheme.n_labels
    )
    automaton = compile_automaton([(y,) for y in range(scheme.n_labels)], scheme.limits)
    potentials.token[:, 1] = -20.0  # of two segments one after another
    span = {
        "span_start": [0, 1],
        "span_end": [2, 2],
        "span_pattern": [1, 1],
        "span_score": [40, 20],
    }
    types = {
        "span_start": np.int64,
        "span_end": np.int64,
        "span_pattern": np.int32,
        "span_score": float,
    }
    potentials = replace(potentials, **{k: np.array(v, dtype=types[k]) for k, v in span.items()})
    rules = CompiledRules(Constraints(at_most={"A": 1}), scheme, automaton, frozenset()).rules
    starts = starts_for(rules, 2)
    probable = probable_spans(potentials, automaton, scheme.rules, 1.0, starts=starts)
    survey = RuleSurvey(starts, probable.log_partition)
    texts = Texts(potentials, automaton, survey, runs=False)
    assert starts.chance.sum() > 0.6
    assert violation_bounds(grouped(rules), texts)[0] < 1e-6
