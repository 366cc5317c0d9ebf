"""Bounds of the probability that a rule about numbers is broken, against enumeration."""

import numpy as np
import oracle
import pytest
from random_constraints import Constrained
from random_readings import KINDS

from spacy_hocrf.engine.forward_backward import Buffers
from spacy_hocrf.engine.memory import Count
from spacy_hocrf.engine.probable import probable_spans
from spacy_hocrf.pipeline.ends import Ends
from spacy_hocrf.pipeline.risks import Survey, Texts, risks_of, starts_for

NEGLIGIBLE = 1e-6


def begun(label, spans):
    """Spans of a user's label."""
    return sum(y == label for *_, y in spans)


@pytest.mark.parametrize("kind", KINDS)
def test_no_rule_is_broken_more_probably_than_is_said(kind):
    """Of at most 0, 1 and 2 spans, and of at least 0, 1 and 2."""
    closer = covered = 0
    for seed in range(60):
        problem = Constrained(kind, seed, "successions")  # no numbers: all readings are there
        scheme, potentials = problem.scheme, problem.structure.potentials
        automaton = problem.rules.of
        label = scheme.labels[seed % len(scheme.labels)]
        labels = frozenset(Ends(scheme).firsts(label))
        runs = scheme.encoding == "io"
        counts = [Count(labels, least, 2, runs) for least in range(3)]
        counts += [Count(labels, 0, most, runs) for most in range(2)]
        starts = starts_for(counts, len(potentials.token))
        buffers = Buffers(automaton)
        found = probable_spans(potentials, automaton, scheme.rules, 1.0, starts=starts)
        if found.log_partition == -np.inf:
            continue
        texts = Texts(potentials, automaton, Survey(starts, found.log_partition), buffers)
        risks, bounds = (
            risks_of(counts, texts, NEGLIGIBLE, closely=each)[0] for each in (True, False)
        )
        scores = np.array(
            [oracle.score(potentials, problem.patterns, each) for each in problem.every]
        )
        p = np.exp(scores - found.log_partition[0])
        number = np.array([begun(label, oracle.decoded(scheme, each)) for each in problem.every])
        for rule, count in enumerate(counts):
            broken = (number < count.least) | (number > count.most)
            assert p[broken].sum() <= risks[rule] + 1e-8
            assert p[broken].sum() <= bounds[rule] + 1e-8
        starts_alone = starts.chance.sum() - starts.chance.sum(axis=1).max(initial=0.0)
        covered += bounds[4] < starts_alone - 1e-9
        closer += bounds[0] < max(0.0, np.sort(starts.chance.sum(axis=1))[:-2].sum()) - 1e-9
    assert closer > 0 or runs
    assert covered > 0 or scheme.encoding != "segments"
