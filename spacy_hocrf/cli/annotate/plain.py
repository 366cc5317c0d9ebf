"""Spans of many short texts, for which no Docs are made: from words to rows of characters.

With a pipeline of nothing but a tokenizer of spaCy's and a component of ours, half of the time would go into
Docs that nobody looks at. The rows are those of `found.spans_in`.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from spacy.language import Language

from spacy_hocrf.arrays import stretches
from spacy_hocrf.cli.annotate.found import as_row
from spacy_hocrf.features.words import PlainTexts, TextBatch, Words
from spacy_hocrf.model.structure import BATCH_TOKENS
from spacy_hocrf.pipeline.component import SegmentationPipe
from spacy_hocrf.pipeline.prediction import Prediction
from spacy_hocrf.pipeline.targets import EntsTarget, SpansTarget

__all__ = ["PlainReader", "Rows"]

Rows = list[dict[str, Any]]


class PlainReader:
    """Reads texts with the only component of a pipeline, see `can_read`."""

    def __init__(self, nlp: Language, pipe: SegmentationPipe) -> None:
        self._nlp, self._pipe, self._words = nlp, pipe, Words(nlp)

    @staticmethod
    def can_read(nlp: Language, pipe: SegmentationPipe) -> bool:
        """Is there nothing that needs Docs?"""
        alone = [each for _, each in nlp.pipeline] == [pipe]
        by_itself = type(pipe).predict is SegmentationPipe.predict
        spans = isinstance(pipe.target, EntsTarget | SpansTarget) and not pipe.target.n_best
        return alone and by_itself and spans and Words.can_read(nlp)

    def __call__(self, texts: Sequence[str]) -> dict[int, Rows]:
        """The spans of those texts that are plain, by their numbers."""
        plain = self._words.read(texts)
        if not plain.numbers:
            return {}
        ranges = stretches(np.diff(plain.offsets).tolist(), BATCH_TOKENS)
        batches = (TextBatch(plain, *each, self._nlp) for each in ranges)
        found = self._pipe.predict_batches(batches)
        return dict(zip(plain.numbers, self._rows(plain, found)))

    def _rows(self, plain: PlainTexts, found: Sequence[Prediction]) -> list[Rows]:
        """The spans of each text."""
        bounds = np.cumsum([0, *(len(each.label) for each in found)])
        base = np.repeat(plain.offsets[:-1], np.diff(bounds))
        first = base + np.concatenate([each.start for each in found])
        last = base + np.concatenate([each.end for each in found]) - 1
        names = found[0].names
        labels = [names[y] for y in np.concatenate([each.label for each in found]).tolist()]
        chances = self._chances(found, len(labels))
        places = plain.start[first].tolist(), plain.end[last].tolist()
        rows = list(map(as_row, *places, labels, chances))
        return [rows[i:j] for i, j in pairwise(bounds.tolist())]

    def _chances(self, found: Sequence[Prediction], n: int) -> list[float] | list[None]:
        """Of n spans, as Docs keep them."""
        kept = not isinstance(self._pipe.target, EntsTarget) or self._pipe.target.scores_key
        scores = [each.scores for each in found if each.scores is not None]
        if not kept or len(scores) < len(found):
            return [None] * n
        rounded: list[float] = np.concatenate(scores).astype(np.float32).tolist()
        return rounded
