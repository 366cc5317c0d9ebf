"""A training document gives back what it was made of."""

import numpy as np
import pytest

from spacy_hocrf.annotation.annotation import Annotation
from spacy_hocrf.annotation.documents import Document


@pytest.mark.parametrize("length", [1, 255, 256, 70_000])
@pytest.mark.parametrize("known", [True, False])
def test_a_document_keeps_its_annotation(length, known):
    unknown = np.zeros(length, dtype=bool)
    unknown[0] = not known
    spans = tuple(
        (i, i + 1, f"label {i % 3}")
        for i in range(0 if known else 1, length, max(1, length // 100))
    )
    annotation = Annotation((*spans, (length - 1, length, "last")), unknown)
    document = Document(np.arange(length), "text", annotation, 1)
    assert len(document) == length and document.text == "text"
    assert document.source.tolist() == list(range(length))
    assert document.annotation.spans == annotation.spans
    assert document.annotation.unknown.tolist() == unknown.tolist()
    assert document.complete == known
    document.annotation = Annotation((), unknown)
    assert document.annotation.spans == ()
