"""The loss of a batch against enumeration."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_hocrf.engine.automaton import compile_automaton
from spacy_hocrf.engine.forbidden import Observed
from spacy_hocrf.learning.likelihood import negative_log_likelihood


@given(oracle.batches(min_size=1, max_size=3, max_tokens=4), st.data())
def test_loss_and_derivative_match_enumeration(problems, data):
    potentials = oracle.batch([problem.potentials for problem in problems])
    model = problems[0].patterns, problems[0].limits, problems[0].forbidden
    carried = [z for z, flag in zip(model[0], problems[0].carried) if flag]
    automaton = compile_automaton(*model[:2], forbidden=model[2], carried=carried)
    kept = data.draw(st.lists(st.booleans(), max_size=len(potentials.allowed)))
    observed = potentials.allowed.copy()
    observed[np.flatnonzero(kept), :-1] = 0
    losses, difference = negative_log_likelihood(potentials, Observed(observed), automaton)
    bounds = potentials.offsets.tolist()
    for problem, loss, (first, last) in zip(problems, losses, pairwise(bounds), strict=True):
        known = replace(problem.potentials, allowed=observed[first:last])
        left = oracle.log_partition(known, *model)
        if not np.isfinite(left):
            assert loss == np.inf
            continue
        everything = oracle.log_partition(problem.potentials, *model)
        assert loss == pytest.approx(everything - left, rel=1e-9, abs=1e-9)
        free, fixed = (oracle.expectations(one, *model) for one in (problem.potentials, known))
        counts = difference.token[first:last]
        np.testing.assert_allclose(counts, free.token - fixed.token, rtol=1e-8, atol=1e-9)
