"""What is known of a Doc, as bits of its tokens and labels."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import oracle
import pytest

from spacy_hocrf.annotation.annotation import Annotation, constrain, constrain_batch
from spacy_hocrf.arrays import offsets_of
from spacy_hocrf.model.scheme import make_scheme

LABELS = ["A", "B"]


def scheme_of(encoding):
    return make_scheme(LABELS, encoding=encoding, outside="token", repeats=True, limits=[3, 3])


def annotations():
    """Of Docs of 4, 0, 3 and 2 tokens: complete, empty, known in part, unknown."""
    return [
        Annotation(((0, 2, "A"), (2, 3, "B")), np.zeros(4, dtype=bool)),
        Annotation((), np.zeros(0, dtype=bool)),
        Annotation(((1, 2, "B"),), np.array([True, False, False])),
        Annotation((), np.ones(2, dtype=bool)),
    ]


@pytest.mark.parametrize("encoding", ["segments", "io", "bio", "bieso"])
@pytest.mark.parametrize("docs", [0, 1, 4])
def test_docs_of_a_batch_are_constrained_one_by_one(encoding, docs):
    scheme, known = scheme_of(encoding), annotations()[:docs]
    lengths = [len(annotation.unknown) for annotation in known]
    bits = scheme.allowed(offsets_of(lengths))
    offsets = np.cumsum([0, *lengths])
    before = bits.copy()
    found = constrain_batch(scheme, bits, offsets, known)
    assert (bits == before).all() and found.shape == bits.shape and found.dtype == np.uint8
    for annotation, (first, last) in zip(known, pairwise(offsets), strict=True):
        assert (found[first:last] == constrain(scheme, bits[first:last], annotation)).all()


AGREES = {
    0: lambda spans: spans == {(0, 2, "A"), (2, 3, "B")},
    2: lambda spans: (1, 2, "B") in spans and all(end < 3 for _, end, _ in spans),
    3: lambda spans: True,
}


@pytest.mark.parametrize("encoding", ["segments", "io", "bio", "bieso"])
@pytest.mark.parametrize("number, agrees", AGREES.items(), ids=["complete", "in part", "unknown"])
def test_exactly_the_segmentations_that_agree_are_left(encoding, number, agrees):
    scheme, annotation = scheme_of(encoding), annotations()[number]
    bits = scheme.allowed(np.array([0, len(annotation.unknown)]))
    everything = spans_by(scheme, bits)
    agreeing = {spans for spans in everything if agrees(spans)}
    assert spans_by(scheme, constrain(scheme, bits, annotation)) == agreeing
    assert agreeing and (number == 3 or agreeing < everything)


def spans_by(scheme, bits):
    """The spans of every allowed segmentation."""
    found = oracle.segmentations(
        SimpleNamespace(allowed=bits), scheme.limits, frozenset(scheme.forbidden)
    )
    return {frozenset(oracle.decoded(scheme, segments)) for segments in found}
