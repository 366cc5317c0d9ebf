"""The spans of a Doc after a component: its predictions, and the spans of earlier components that it keeps.

A prediction has only the former. A reading takes the latter as certain, except for labels and lengths that
the model does not have. All comparisons with annotation, and all drawn texts, use the spans from here.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc

from spacy_hocrf.annotation.annotation import NamedSpan, trim
from spacy_hocrf.annotation.best_readings import ScoredSpan
from spacy_hocrf.annotation.prediction import Prediction
from spacy_hocrf.annotation.targets import Target
from spacy_hocrf.answers.reading import Reading
from spacy_hocrf.features.tokens import TokenBatch

__all__ = ["ShownText", "set_before"]


def set_before(target: Target, doc: Doc) -> set[NamedSpan]:
    """Spans that earlier components have set in a Doc and a component keeps, without white space at the ends.

    target (Target): target of the component, which has not processed the Doc yet.
    """
    presets = target.presets(TokenBatch([doc])).get(0)
    spans = () if presets is None else presets.spans
    trimmed = {(*trim(doc, start, end), label) for start, end, label in spans}
    return {span for span in trimmed if span[0] < span[1]}


class ShownText:
    """A component's reading of a Doc, in which the spans of earlier components are certain.

    reading (Reading): reading of the Doc as earlier components leave it, made with `keeps_own`.
    target (Target): target of the component.

    before (Set[Tuple[int, int, str]]): spans of earlier components.
    """

    def __init__(self, reading: Reading, target: Target) -> None:
        self.reading, self.before = reading, set_before(target, reading.doc)

    def predictions(self, prediction: Prediction) -> list[ScoredSpan]:
        """All spans of the Doc after this prediction, with their probabilities."""
        spans, scores = prediction.spans, prediction.scores
        chances = self.reading.probabilities(spans) if scores is None else scores
        rows = [ScoredSpan(*span, p) for span, p in zip(spans, chances.tolist())]
        return sorted([*rows, *(ScoredSpan(*span, 1.0) for span in self.before)])

    def scored(self, spans: Iterable[NamedSpan]) -> list[ScoredSpan]:
        """Probabilities of given spans; 0 for a label that the model does not have."""
        spans = [*spans]
        possible = [s for s in spans if s[2] in self.reading.labels and s not in self.before]
        chance = dict(zip(possible, self.reading.probabilities(possible).tolist()))
        chance |= dict.fromkeys(self.before, 1.0)
        return [ScoredSpan(*span, chance.get(span, 0.0)) for span in spans]

    def spans(self, at_least: float) -> list[ScoredSpan]:
        """All spans with at least this probability, sorted by start and end.

        RAISES (ValueError): H200 unless 0 < at_least <= 1.
        """
        others = [span for span in self.reading.spans(at_least) if span[:3] not in self.before]
        return sorted([*others, *(ScoredSpan(*span, 1.0) for span in self.before)])

    def outside(self) -> NDArray[np.float64]:
        """P(the token is in no span), float64 [T]."""
        chances = self.reading.tokens()[:, -1]
        for start, end, _ in self.before:
            chances[start:end] = 0.0
        return chances

    def unmodelled(self) -> set[NamedSpan]:
        """Spans of earlier components that the model cannot have, so that no reading has them."""
        possible = [span for span in self.before if span[2] in self.reading.labels]
        chances = self.reading.probabilities(possible).tolist()
        return self.before - {span for span, p in zip(possible, chances) if p}
