"""The compiled builds of the kernels, so that a test runs on each; automata of drawn problems."""

from contextlib import contextmanager

import pytest

from spacy_hocrf import dispatch
from spacy_hocrf.engine import forward_backward
from spacy_hocrf.engine.automaton import compile_automaton

BUILDS = dispatch.instruction_sets()
"""The builds that this machine can run."""


@contextmanager
def running(build):
    """One build for the time of the block, however small its groups of sequences; on every other
    one, the lengths of a label are summed together however few they are.
    """
    with pytest.MonkeyPatch.context() as patch, dispatch.use_instructions(build):
        patch.setattr(forward_backward, "MAX_LEFT_OVER", 0)
        patch.setattr(forward_backward, "MIN_TAIL", 1 if build in ("baseline", "avx512") else 8)
        yield


def automaton_of(problem):
    carried = [z for z, flag in zip(problem.patterns, problem.carried) if flag]
    return compile_automaton(
        problem.patterns, problem.limits, forbidden=problem.forbidden, carried=carried
    )
