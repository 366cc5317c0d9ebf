"""Label schemes: encoding and decoding, forbidden successions, bits and limits."""

from itertools import pairwise, product

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_hocrf.arrays import offsets_of
from spacy_hocrf.model.scheme import ENCODINGS, make_scheme
from spacy_hocrf.types import CONTINUE, FIRST, LAST, Segment

LABELS = ("A", "B")
KINDS = [
    *(
        ("segments", outside, repeats)
        for outside in ("token", "run", None)
        for repeats in (True, False)
    ),
    *((encoding, "token", True) for encoding in ENCODINGS),
    ("bio", None, True),
    ("bieso", None, True),
    ("tags", None, True),
]


def scheme_of(encoding, outside="token", repeats=True, limits=(3, 0)):
    return make_scheme(LABELS, encoding=encoding, outside=outside, repeats=repeats, limits=limits)


@st.composite
def annotations(draw, *, outside):
    """Length and sorted spans; without an outside label they cover everything."""
    spans, at = [], 0
    for _ in range(draw(st.integers(0, 5))):
        start = at + (draw(st.integers(0, 2)) if outside else 0)
        at = start + draw(st.integers(1, 3))
        spans.append((start, at, draw(st.sampled_from(LABELS))))
    return at + (draw(st.integers(0, 2)) if outside else 0), spans


@pytest.mark.parametrize("encoding, outside, repeats", KINDS)
@given(data=st.data())
def test_decoding_undoes_encoding(encoding, outside, repeats, data):
    scheme = scheme_of(encoding, outside, repeats)
    length, spans = data.draw(annotations(outside=outside))
    segments = scheme.encode(spans, length)
    assert [t for start, end, _ in segments for t in range(start, end)] == list(range(length))
    expected = spans
    if encoding == "io":
        expected = merged(spans)
    elif encoding == "tags":
        expected = [(i, i + 1, label) for start, end, label in spans for i in range(start, end)]
    assert oracle.decoded(scheme, segments) == expected
    followed = {(a.label, b.label) for a, b in pairwise(segments)}
    if encoding != "segments" or repeats:
        assert not followed & set(scheme.forbidden)
    elif merged(spans) == spans:
        assert not followed & set(scheme.forbidden)
    if encoding != "segments":
        assert all(end - start == 1 for start, end, _ in segments)


@pytest.mark.parametrize("encoding, outside, repeats", KINDS)
@given(data=st.data())
def test_sequences_laid_end_to_end_are_decoded_apart(encoding, outside, repeats, data):
    scheme = scheme_of(encoding, outside, repeats)
    drawn = data.draw(st.lists(annotations(outside=outside), max_size=4))
    segmentations = [scheme.encode(spans, length) for length, spans in drawn]
    offsets, start, end, label = scheme.spans(oracle.segments_of(segmentations))
    found = [(int(a), int(b), LABELS[y]) for a, b, y in zip(start, end, label)]
    assert [found[a:b] for a, b in pairwise(offsets)] == [
        oracle.decoded(scheme, segments) for segments in segmentations
    ]


def test_a_span_does_not_go_on_in_the_next_sequence():
    segments = oracle.segments_of([[(0, 1, 1)], [], [(0, 1, 1)]])
    offsets, start, end, _ = scheme_of("io").spans(segments)
    assert (offsets.tolist(), start.tolist(), end.tolist()) == ([0, 1, 1, 2], [0, 0], [1, 1])


@pytest.mark.parametrize("encoding, outside, repeats", KINDS)
@given(data=st.data())
def test_what_is_encoded_is_allowed(encoding, outside, repeats, data):
    scheme = scheme_of(encoding, outside, repeats)
    length, spans = data.draw(annotations(outside=outside))
    allowed = scheme.allowed(np.array([0, length]))
    for start, end, label in scheme.encode(spans, length):
        assert allowed[start, label] & FIRST
        assert allowed[end - 1, label] & LAST
        assert all(allowed[t, label] & CONTINUE for t in range(start + 1, end))


def merged(spans):
    joined = []
    for start, end, label in spans:
        if joined and joined[-1][1:] == (start, label):
            joined[-1] = (joined[-1][0], end, label)
        else:
            joined.append((start, end, label))
    return joined


NAMES = {
    "io": ["O", "A", "B"],
    "bio": ["O", "B-A", "I-A", "B-B", "I-B"],
    "bieso": ["O", "B-A", "I-A", "E-A", "S-A", "B-B", "I-B", "E-B", "S-B"],
}


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_exactly_the_illegal_successions_are_forbidden(encoding):
    scheme = scheme_of(encoding)
    assert list(scheme.names) == NAMES[encoding]
    found = {(scheme.names[a], scheme.names[b]) for a, b in scheme.forbidden}
    goes_on = {"B-": ("I-", "E-"), "I-": ("I-", "E-")}
    expected = set()
    for a, b in product(scheme.names, repeat=2):
        continues = b[:2] in ("I-", "E-")
        legal = not continues or (b[2:] == a[2:] and b[:2] in goes_on.get(a[:2], ()))
        if encoding == "bieso" and a[:2] in goes_on and not continues:
            legal = False  # a span that is open must be closed
        if not legal:
            expected.add((a, b))
    assert found == (set() if encoding == "io" else expected)


@pytest.mark.parametrize(
    "outside, repeats, forbidden",
    [
        ("token", True, ()),
        ("token", False, ((1, 1), (2, 2))),
        ("run", True, ((0, 0),)),
        ("run", False, ((0, 0), (1, 1), (2, 2))),
        (None, True, ()),
        (None, False, ((0, 0), (1, 1))),
    ],
)
def test_segments_repeat_if_they_may_and_runs_of_outside_never(outside, repeats, forbidden):
    assert scheme_of("segments", outside, repeats).forbidden == forbidden


@pytest.mark.parametrize(
    "encoding, outside, limits",
    [
        ("segments", "token", (1, 3, 0)),
        ("segments", "run", (0, 3, 0)),
        ("segments", None, (3, 0)),
        ("io", "token", (1, 1, 1)),
        ("bio", "token", (1,) * 5),
        ("tags", None, (1, 1)),
    ],
)
def test_limits_are_those_of_the_labels_and_of_outside(encoding, outside, limits):
    scheme = scheme_of(encoding, outside)
    assert scheme.limits == limits
    assert scheme.n_labels == len(limits)
    assert scheme.outside == (-1 if outside is None else 0)


def bits_by_name(scheme, lengths):
    return [dict(zip(scheme.names, row)) for row in scheme.allowed(offsets_of(lengths)).tolist()]


def test_a_doc_begins_with_no_inside_and_ends_with_nothing_open():
    first, middle, last, only = bits_by_name(scheme_of("bieso"), [3, 0, 1])
    assert {name for name, bits in middle.items() if not bits} == set()
    assert {name for name, bits in first.items() if not bits} == {"I-A", "E-A", "I-B", "E-B"}
    assert {name for name, bits in last.items() if not bits} == {"B-A", "I-A", "B-B", "I-B"}
    assert {name for name, bits in only.items() if bits} == {"O", "S-A", "S-B"}
    first, last = bits_by_name(scheme_of("bio"), [2])
    assert {name for name, bits in first.items() if not bits} == {"I-A", "I-B"}
    assert all(last.values())


@pytest.mark.parametrize("lengths", [[], [0], [0, 0]])
def test_no_tokens_have_no_bits(lengths):
    assert scheme_of("bio").allowed(offsets_of(lengths)).shape == (0, 5)


def test_a_label_that_looks_like_an_encoded_one_is_free_outside_of_encodings():
    scheme = make_scheme(["I-beam", "E-mail"], encoding="tags", outside=None)
    assert scheme.forbidden == ()
    assert (scheme.allowed(offsets_of([1])) == FIRST | CONTINUE | LAST).all()
    scheme = make_scheme(["I-beam"], encoding="bio", outside="token")
    assert oracle.decoded(scheme, scheme.encode([(0, 2, "I-beam")], 3)) == [(0, 2, "I-beam")]


@pytest.mark.parametrize(
    "encoding, expected",
    [
        ("segments", [{"B": FIRST}, {"B": CONTINUE}, {"B": CONTINUE | LAST}]),
        ("io", [{"B": FIRST | LAST}] * 3),
        ("bio", [{"B-B": FIRST | LAST}, {"I-B": FIRST | LAST}, {"I-B": FIRST | LAST}]),
        ("bieso", [{"B-B": FIRST | LAST}, {"I-B": FIRST | LAST}, {"E-B": FIRST | LAST}]),
    ],
)
def test_bits_force_exactly_a_span(encoding, expected):
    scheme = scheme_of(encoding)
    rows = scheme.span_bits(4, 7, "B").tolist()
    assert [
        {name: bits for name, bits in zip(scheme.names, row) if bits} for row in rows
    ] == expected
    alone = scheme.span_bits(4, 5, "B")
    assert np.count_nonzero(alone) == 1
    assert alone.max() == FIRST | LAST


@pytest.mark.parametrize(
    "encoding, expected",
    [("segments", []), ("tags", []), ("io", ["B"]), ("bio", ["I-B"]), ("bieso", ["I-B", "E-B"])],
)
def test_labels_by_which_a_span_goes_on(encoding, expected):
    scheme = scheme_of(encoding, None if encoding == "tags" else "token")
    assert [scheme.names[label] for label in scheme.continuing("B")] == expected


def test_runs_of_outside_are_one_segment_and_tokens_many():
    spans = [(2, 3, "A")]
    assert scheme_of("segments", "run").encode(spans, 5) == [
        Segment(0, 2, 0),
        Segment(2, 3, 1),
        Segment(3, 5, 0),
    ]
    assert scheme_of("segments", "token").encode(spans, 4) == [
        *(Segment(0, 1, 0), Segment(1, 2, 0)),
        *(Segment(2, 3, 1), Segment(3, 4, 0)),
    ]


def test_an_unknown_label_is_named_with_the_known_ones():
    with pytest.raises(ValueError, match=r"H040.*'C'.*A, B.*add_label"):
        scheme_of("bio").encode([(0, 1, "C")], 1)


@pytest.mark.parametrize("encoding", ["segments", "bio", "tags"])
def test_an_unlabelled_token_needs_an_outside_label(encoding):
    with pytest.raises(ValueError, match=r"H041.*1 to 3"):
        scheme_of(encoding, None).encode([(0, 1, "A")], 3)


@pytest.mark.parametrize(
    "labels, code",
    [
        (["A", ""], "H057"),
        ([None], "H057"),
        ([3], "H057"),
        (["\ud800"], "H132"),
        (["A", "A"], "H133"),
    ],
)
def test_a_label_that_is_none_is_refused(labels, code):
    with pytest.raises(ValueError, match=rf"^\[{code}\]"):
        make_scheme(labels, encoding="io", outside="token")
