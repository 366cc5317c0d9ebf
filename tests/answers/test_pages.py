"""What a page says of a text."""

from math import inf
from types import SimpleNamespace

import pytest

from spacy_hocrf.answers.pages import surety

SPANS = [(0, 1, "PER", 0.9), (2, 3, "LOC", 0.7)]


def reading(log_probability):
    return SimpleNamespace(
        labels=("PER", "LOC"),
        log_probability=lambda spans: log_probability([*spans]),
        best=lambda n: [SimpleNamespace(probability=0.4)][:n],
    )


def too_many_ways(spans):
    raise ValueError


@pytest.mark.parametrize(
    "log_probability, spans, expected",
    [
        (lambda spans: -float(len(spans)), SPANS, 0.1353),
        (lambda spans: -inf, SPANS, 0.4),
        (too_many_ways, SPANS, 0.7),
        (too_many_ways, [], 1.0),
    ],
)
def test_a_text_is_as_sure_as_all_of_its_spans_together(log_probability, spans, expected):
    assert surety(reading(log_probability), spans) == pytest.approx(expected, abs=1e-4)
