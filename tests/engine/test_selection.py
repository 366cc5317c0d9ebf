"""Chosen sequences of a batch score as they do in it."""

import numpy as np
import oracle
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from spacy_hocrf.engine.selection import select_sequences


@given(oracle.batches(min_size=1), st.randoms(use_true_random=False))
def test_selected_sequences_are_those_of_the_batch(problems, random):
    together = oracle.batch([problem.potentials for problem in problems])
    chosen = [i for i in range(len(problems)) if random.random() < 0.6]
    random.shuffle(chosen)
    selected = select_sequences(together, np.array(chosen, dtype=np.int64))
    if not chosen:
        assert len(selected.offsets) == 1 and not len(selected.token)
        return
    expected = oracle.batch([problems[i].potentials for i in chosen])
    for name in expected.__dataclass_fields__:
        assert_array_equal(getattr(selected, name), getattr(expected, name), err_msg=name)
