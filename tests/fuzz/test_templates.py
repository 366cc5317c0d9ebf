"""Some cases of the fuzzer in `templates.py`, which runs as many as it is asked for."""

from collections import Counter

from fuzz.templates import outcome


def test_whatever_a_template_returns_ends_in_a_coded_error_or_in_sound_rows():
    found = Counter(outcome(1, k) for k in range(400))
    assert found.keys() == {"accepted", "H130", "H131"}
    assert min(found.values()) > 20
