"""A component that predicts and writes what it has predicted, Doc by Doc or batch by batch."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any

from spacy.util import minibatch

from spacy_hocrf.errors import Errors
from spacy_hocrf.pipeline.constraining import ConstrainingPipe
from spacy_hocrf.pipeline.errors import ComponentErrors
from spacy_hocrf.pipeline.prediction import PredictedDocs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from spacy.tokens import Doc
    from spacy.training import Example

    from spacy_hocrf.pipeline.prediction import Prediction
    from spacy_hocrf.training.base import Trainer

__all__ = ["AnnotatingPipe", "checked_threshold"]


class AnnotatingPipe(ConstrainingPipe):
    """A component that writes its predictions. Between prediction and writing nobody has the Docs, so that
    they are read once for both.
    """

    _settable: frozenset[str] = frozenset({"constraints", "error_handler", "scorer", "target"})
    _trainer: Trainer
    cfg: dict[str, Any]

    def __setattr__(self, name: str, value: Any) -> None:
        """RAISES (ValueError): H460 for an attribute that there is not, such as a setting, which would
        change nothing.
        """
        there = getattr(type(self), name, self)
        fixed = there is self or (isinstance(there, property) and there.fset is None)
        if fixed and not name.startswith("_") and name not in self._settable:
            known = ", ".join(sorted({*self._settable, "threshold"}))
            found = {"found": name, "known": known, "name": self.name}
            raise ValueError(ComponentErrors.H460.format(**found))
        super().__setattr__(name, value)

    @property
    def trainer(self) -> Trainer:
        """How the model is learnt; see `set_trainer`."""
        return self._trainer

    @property
    def threshold(self) -> float | None:
        """Decoded spans of a lower probability are dropped; None for none. It can be set.

        RAISES (ValueError): H055 for anything but a number from 0 to 1.
        """
        threshold: float | None = self.cfg["threshold"]
        return threshold

    @threshold.setter
    def threshold(self, value: float | None) -> None:
        self.cfg = {**self.cfg, "threshold": checked_threshold(value, self.name)}

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
            except Exception as error:
                if len(docs) == 1:
                    handle_error(self.name, self, docs, error)
                    continue
                # one by one, so that the others are not lost with the Doc that is in the way
                docs = [done for doc in docs if (done := self(doc)) is not None]
            yield from docs

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


def checked_threshold(threshold: Any, name: str) -> float | None:
    """A threshold as it is given, or None for none.

    name (str): of the component.
    RAISES (ValueError): H055 for anything but a number from 0 to 1.
    """
    if threshold is None:
        return None
    if isinstance(threshold, Real) and 0 <= float(threshold) <= 1:
        return float(threshold)
    raise ValueError(Errors.H055.format(found=repr(threshold), name=name))
