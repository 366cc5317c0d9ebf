"""What a trained component can be asked about a text besides its spans."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spacy_hocrf.model.structure import token_batches
from spacy_hocrf.pipeline.storage import StoredPipe

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from spacy.tokens import Doc

    from spacy_hocrf.pipeline.predictor import Predictor
    from spacy_hocrf.pipeline.reading import Reading

__all__ = ["AnsweringPipe"]


class AnsweringPipe(StoredPipe):
    """A component that answers questions about single Docs."""

    def reading(self, doc: Doc) -> Reading:
        """What the model knows about a Doc: exact probabilities of spans, tokens and whole readings.

        doc (Doc): a Doc that earlier components are done with; it is not changed.
        RETURNS (Reading): answers by the model as it is now; Docs that are decoded together are read one
            by one.
        RAISES (ValueError): H007 if the Doc has no allowed segmentation, H042 before training.
        """
        return next(self.readings([doc]))

    def readings(self, docs: Iterable[Doc]) -> Iterator[Reading]:
        """A reading of each Doc, made in batches, which takes less time than one by one."""
        from spacy_hocrf.pipeline.reading import readings_of

        predictor = self._predictor()
        for batch, _ in token_batches(list(docs)):
            yield from readings_of(predictor, batch)

    def _predictor(self) -> Predictor:
        """What predicts with the model as it is now. RAISES (ValueError): H042 before training."""
        raise NotImplementedError
