"""What a trained component can be asked about a text besides its spans."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from spacy.pipeline import TrainablePipe

from spacy_hocrf.model.structure import token_batches
from spacy_hocrf.pipeline.storage import StoredPipe

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from spacy.tokens import Doc, Span
    from spacy.training import Example

    from spacy_hocrf.features.tokens import TokenBatch
    from spacy_hocrf.pipeline.contrast import Asked
    from spacy_hocrf.pipeline.explaining import Explanation
    from spacy_hocrf.pipeline.learning import Learner
    from spacy_hocrf.pipeline.prediction import BatchPrediction
    from spacy_hocrf.pipeline.predictor import Predictor
    from spacy_hocrf.pipeline.reading import Reading

__all__ = ["AnsweringPipe"]


class AnsweringPipe(StoredPipe, TrainablePipe):
    """A component that answers questions about single Docs.

    _scores (bool): compute the probability of every span.
    """

    _scores: bool

    def reading(self, doc: Doc) -> Reading:
        """What the model knows about a Doc: exact probabilities of spans, tokens and whole readings.

        doc (Doc): a Doc that earlier components are done with; it is not changed. Entities that the
            component itself has predicted, with their probabilities, are asked about like others.
        RETURNS (Reading): answers by the model as it is now; Docs that are decoded together are read one
            by one.
        RAISES (ValueError): H007 if the Doc has no allowed segmentation, H042 before training.
        """
        return next(self.readings([doc]))

    def readings(self, docs: Iterable[Doc]) -> Iterator[Reading]:
        """A reading of each Doc, made in batches, which takes less time than one by one."""
        from spacy_hocrf.pipeline.reading import readings_of
        from spacy_hocrf.pipeline.targets import EntsTarget

        predictor = self._predictor()
        if isinstance(predictor.target, EntsTarget):
            predictor = replace(predictor, target=replace(predictor.target, keeps_own=False))
        for batch, _ in token_batches(list(docs)):
            yield from readings_of(predictor, batch)

    def predict_batches(self, batches: Iterable[TokenBatch]) -> Iterator[BatchPrediction]:
        """What `predict` says of Docs, of tokens that may come from elsewhere; each Doc by itself, and
        without alternatives.
        """
        predictor, watch = self._predictor(), self._learner.watch
        for batch in batches:
            yield predictor.spans(batch, **self._asked)
            if watch is not None:
                watch.look(batch, self.name)

    def explain(
        self, doc: Doc, span: Span | tuple[int, int, str], instead: Asked | None = None
    ) -> Explanation:
        """Why the model would set a span, or why not: what every feature contributes to the log-odds of the
        best reading with the span against the best one without it.

        doc (Doc): a Doc that earlier components are done with; it is not changed.
        span (Union[Span, Tuple[int, int, str]]): any span, not only one that is predicted.
        instead (Optional[Asked]): compare with the best reading that has this span and not the other, or
            with the reading that has exactly these spans.
        RAISES (ValueError): H007 or H042 as `reading`; H224 to H227 for what the model cannot have, or
            cannot be without.
        """
        return self.reading(doc).explain(span, instead)

    def temper(self, examples: Iterable[Example]) -> dict[str, float]:
        """Make the model as sure as it should be, by annotated texts that it has not seen.

        examples (Iterable[Example]): predicted Docs that earlier components are done with.
        RETURNS (Dict[str, float]): temperature of each label, and of text in no span as "O": what the
            scores of all features that end in it are divided by. They are the same, unless one for each
            label is better where half of the texts is tried on the other half.
        RAISES (ValueError): H042 before training, H220 with fewer than two texts that the model can read as
            they are annotated.
        """
        from spacy_hocrf.pipeline.temperature import (
            HeldOut,
            named_temperatures,
            scaled_weights,
            scales_of,
        )

        learner = self._learner
        held_out = HeldOut.of(learner, list(examples))
        scales = scales_of(held_out)
        with learner.lock:
            weights = scaled_weights(learner.structure, self.model.get_param("W"), scales)
            self.model.set_param("W", weights)
        return named_temperatures(held_out.scheme, scales)

    @property
    def _asked(self) -> dict[str, Any]:
        """What is asked of a `Predictor`."""
        return {"scores": self._scores, "threshold": self.cfg["threshold"]}

    @property
    def _learner(self) -> Learner:
        """What has learnt the model."""
        raise NotImplementedError

    def _predictor(self) -> Predictor:
        """What predicts with the model as it is now. RAISES (ValueError): H042 before training."""
        raise NotImplementedError
