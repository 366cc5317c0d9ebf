"""Some cases of the fuzzer in `potentials.py`, which runs as many as it is asked for."""

from collections import Counter

import pytest
from fuzz.potentials import outcomes

pytestmark = pytest.mark.slow


def test_damaged_potentials_end_in_a_coded_error_or_give_the_right_answer():
    found = Counter()
    for k in range(150):
        for door, outcome in outcomes(1, k).items():
            assert not outcome.startswith("wrong"), (k, door, outcome)
            found[outcome] += 1
    assert found["right"] > 100
    assert found.keys() >= {"H004", "H005", "H006", "H009", "H138", "H139"}
