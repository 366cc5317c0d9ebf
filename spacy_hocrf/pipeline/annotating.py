"""A component that predicts and writes what it has predicted, Doc by Doc or batch by batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spacy.util import minibatch

from spacy_hocrf.pipeline.constraining import ConstrainingPipe
from spacy_hocrf.pipeline.prediction import PredictedDocs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from spacy.tokens import Doc
    from spacy.training import Example

    from spacy_hocrf.pipeline.prediction import Prediction

__all__ = ["AnnotatingPipe"]


class AnnotatingPipe(ConstrainingPipe):
    """A component that writes its predictions. Between prediction and writing nobody has the Docs, so that
    they are read once for both.
    """

    def __call__(self, doc: Doc) -> Doc | None:
        """Predict and annotate one Doc.

        RETURNS (Optional[Doc]): the same; None after an error that the error handler lets pass.
        """
        handle_error = self.get_error_handler()
        try:
            self._annotate([doc], self.predict([doc]))
            return doc
        except Exception as error:
            handle_error(self.name, self, [doc], error)
            return None

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Predict and annotate a stream of Docs.

        batch_size (int): Docs at a time.
        YIELDS (Doc): the Docs, in order.
        """
        handle_error = self.get_error_handler()
        for docs in minibatch(stream, size=batch_size):  # type: ignore[no-untyped-call]
            try:
                self._annotate(docs, self.predict(docs))
                yield from docs
            except Exception as error:
                handle_error(self.name, self, docs, error)

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        """What the scorer says of examples whose spans have no white space at their ends.

        kwargs (Any): for the scorer.
        """
        from spacy_hocrf.pipeline.scoring import comparable

        return dict(super().score(comparable(examples, self.target), **kwargs))

    def _annotate(self, docs: Sequence[Doc], predictions: Sequence[Prediction]) -> None:
        """Write predictions that were made just now, so that the Docs need not be read again."""
        if isinstance(predictions, PredictedDocs):
            predictions.unchanged = True
        self.set_annotations(docs, predictions)

    def set_annotations(self, docs: Iterable[Doc], scores: Sequence[Prediction]) -> None:
        """Write predictions to their Docs."""
        if isinstance(scores, PredictedDocs) and scores.unchanged:
            for batch, predictions in scores.batches:
                self.target.annotate(batch.docs, predictions, batch)
        else:
            self.target.annotate(list(docs), list(scores))
