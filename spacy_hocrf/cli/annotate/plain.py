"""Spans of many short texts, for which no Docs are made: from words to rows of characters.

With a pipeline of nothing but a tokenizer of spaCy's and a component of ours, half of the time would go into
Docs that nobody looks at. The rows are those of `found.spans_in`.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from spacy.language import Language

from spacy_hocrf.arrays import offsets_of, stretches
from spacy_hocrf.cli.annotate.found import FoundSpans
from spacy_hocrf.features.words import PlainTexts, TextBatch, Words
from spacy_hocrf.model.structure import BATCH_TOKENS
from spacy_hocrf.pipeline.component import SegmentationPipe
from spacy_hocrf.pipeline.prediction import BatchPrediction
from spacy_hocrf.pipeline.targets import EntsTarget, SpansTarget

__all__ = ["PlainReader"]


class PlainReader:
    """Reads texts with the only component of a pipeline, see `can_read`."""

    def __init__(self, nlp: Language, pipe: SegmentationPipe) -> None:
        self._pipe, self._words = pipe, Words(nlp, _reads(pipe))

    @staticmethod
    def can_read(nlp: Language, pipe: SegmentationPipe) -> bool:
        """Is there nothing that needs Docs?"""
        alone = [each for _, each in nlp.pipeline] == [pipe]
        by_itself = type(pipe).predict is SegmentationPipe.predict
        spans = isinstance(pipe.target, EntsTarget | SpansTarget) and not pipe.target.n_best
        known = TextBatch.can_read(_reads(pipe))
        return alone and by_itself and spans and known and Words.can_read(nlp)

    def __call__(self, texts: Sequence[str]) -> tuple[list[int], FoundSpans] | None:
        """Numbers of those texts that are plain, and their spans; None if there are none.

        RAISES (NeedsDocs): if a template asks for what `can_read` did not know of.
        """
        plain = self._words.read(texts)
        if not plain.numbers:
            return None
        ranges = stretches(np.diff(plain.offsets).tolist(), BATCH_TOKENS)
        batches = (TextBatch(plain, *each) for each in ranges)
        return plain.numbers, self._spans(plain, list(self._pipe.predict_batches(batches)))

    def _spans(self, plain: PlainTexts, found: Sequence[BatchPrediction]) -> FoundSpans:
        """The spans of the texts by their characters."""
        counts = np.concatenate([np.diff(each.spans.offsets) for each in found])
        base = np.repeat(plain.offsets[:-1], counts)
        start, end, label = (
            np.concatenate([getattr(each.spans, part) for each in found])
            for part in ("start", "end", "label")
        )
        return FoundSpans(
            offsets_of(counts),
            plain.start[base + start],
            plain.end[base + end - 1],
            label,
            found[0].names,
            self._chances(found),
        )

    def _chances(self, found: Sequence[BatchPrediction]) -> NDArray[np.float64] | None:
        """Of all spans, as Docs keep them."""
        kept = not isinstance(self._pipe.target, EntsTarget) or self._pipe.target.scores_key
        scores = [each.scores for each in found if each.scores is not None]
        if not kept or len(scores) < len(found):
            return None
        return np.concatenate(scores).astype(np.float32).astype(np.float64)


def _reads(pipe: SegmentationPipe) -> tuple[str, ...]:
    """Attributes that a prediction asks for."""
    index, target = pipe.structure.index, pipe.target
    return *(index.attributes if index else ()), *target.reads, *target.writes_by, "IS_SPACE"
