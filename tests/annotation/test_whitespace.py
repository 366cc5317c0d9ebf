"""What is shown of spans that may begin or end with white space."""

from itertools import groupby

import numpy as np
import pytest
from oracle import listed, segments_of
from small_corpus import untrained
from spacy.tokens import Doc

from spacy_hocrf.annotation.annotation import trim
from spacy_hocrf.annotation.whitespace import (
    most_variants,
    scores_of_shown,
    spans_shown,
    without_whitespace,
)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_spans_lose_their_white_space_as_one_by_one(seed):
    rng = np.random.default_rng(seed)
    doc = Doc(
        untrained().vocab,
        words=rng.choice(["a", " ", "\n", "b c"], 12, p=[0.2, 0.3, 0.3, 0.2]).tolist(),
    )
    spans = [sorted(rng.choice(13, 2, replace=False).tolist()) for _ in range(30)]
    start, end = np.array(spans).T
    blank = np.array([token.is_space for token in doc])
    first, last = without_whitespace(blank, start, end)
    expected = [trim(doc, *span) for span in spans]
    assert [span for span in zip(first.tolist(), last.tolist()) if span[0] < span[1]] == [
        s for s in expected if s[0] < s[1]
    ]
    assert [a < b for a, b in zip(first, last)] == [a < b for a, b in expected]


@pytest.mark.parametrize("seed", range(20))
def test_what_is_shown_has_the_scores_of_all_its_variants(seed):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 8, 4)
    offsets = np.append(0, np.cumsum(lengths))
    blank = rng.random(offsets[-1]) < 0.5
    chance = [
        {(i, j, y): rng.random() for j in range(n + 1) for i in range(j) for y in ("A", "B")}
        for n in lengths
    ]
    wanted = [{} for _ in lengths]
    for d, spans in enumerate(chance):
        for (i, j, y), p in spans.items():
            solid = [t for t in range(i, j) if not blank[offsets[d] + t]]
            if solid:
                key = solid[0], solid[-1] + 1, y
                wanted[d][key] = wanted[d].get(key, 0.0) + p
    rows = [[(i, j, "AB".index(y)) for i, j, y in sorted(spans)] for spans in chance]
    shown = spans_shown(segments_of(rows), blank, offsets)
    places = list(zip(*(column.tolist() for column in shown[1:])))
    named = [
        [(i, j, "AB"[y]) for i, j, y in places[first:last]]
        for first, last in zip(shown.offsets, shown.offsets[1:])
    ]
    assert named == [sorted(found) for found in wanted]

    def score(spans):
        found = enumerate(listed(spans))
        return np.array([chance[d][i, j, "AB"[y]] for d, rows in found for i, j, y in rows])

    scores = scores_of_shown(score, shown, blank, offsets)
    expected = [wanted[d][span] for d, found in enumerate(named) for span in found]
    assert scores.tolist() == pytest.approx(expected)
    longest = max((len(list(run)) for white, run in groupby(blank) if white), default=0)
    assert most_variants(blank) == (longest + 1) ** 2
