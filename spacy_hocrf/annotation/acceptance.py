"""Which texts nobody needs to read: those that are right as a whole, as surely as somebody has asked for.

A text is accepted if P(the spans that are shown and no others) is at least a threshold, which
`python -m spacy hocrf calibrate --accept` finds on annotated texts that the model has not seen. What is
promised is of texts like these, and of this model: it is gone when training goes on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct
from spacy.tokens import Doc

from spacy_hocrf.annotation.groups import get_group

if TYPE_CHECKING:
    from spacy_hocrf.annotation.prediction import Prediction

__all__ = ["Acceptance", "mark"]

Share = Annotated[float, Meta(gt=0, lt=1)]
Probability = Annotated[float, Meta(ge=0, le=1)]
MOST_ODDS = 700
"""Of which `exp` is a number."""
Amount = Annotated[int, Meta(ge=0, le=2**53)]


class Acceptance(Struct, frozen=True, forbid_unknown_fields=True):
    """Thresholds of P(all of a text is right), and what they promise.

    level (float): of the accepted texts to come, at least this share is right as a whole,
    confidence (float): with this probability over the choice of the texts that it was found on.
    threshold (Optional[float]): accepted are texts that are as probable; None: no text is.
    texts, accepted (int): how many it was found on, and how many of these are accepted.
    by (Optional[str]): extension attribute of Docs that says whose threshold holds, by its value; texts
        of other groups are not accepted.
    groups (Dict[str, float]): those thresholds.
    slope, intercept (float): the log-odds that all of a text is right are slope · log-odds of the model +
        intercept, which is how often it was in those texts.
    """

    level: Share
    confidence: Share
    threshold: Probability | None
    texts: Amount
    accepted: Amount
    by: str | None = None
    groups: Mapping[str, Probability] = {}
    slope: Annotated[float, Meta(gt=0)] = 1.0
    intercept: float = 0.0

    def honest(self, probability: float) -> float:
        """How probable it is that all of a text is right, from what the model says."""
        if probability in (0.0, 1.0) or (self.slope, self.intercept) == (1.0, 0.0):
            return probability
        odds = self.slope * log(probability / (1 - probability)) + self.intercept
        return 1 / (1 + exp(-odds)) if odds > -MOST_ODDS else 0.0

    def accepts(self, doc: Doc, probability: float) -> bool:
        """Need nobody read this text?

        probability (float): that all of it is right, as the model says.
        """
        least = self.threshold
        if self.by is not None:
            least = self.groups.get(str(get_group(doc, self.by)))
        return least is not None and probability >= least


def mark(docs: Sequence[Doc], predictions: Sequence[Prediction], acceptance: Acceptance) -> None:
    """Write `doc._.hocrf_probability` and `doc._.hocrf_accepted`."""
    for doc, prediction in zip(docs, predictions):
        if prediction.whole is not None:
            doc._.hocrf_probability = acceptance.honest(prediction.whole)
            doc._.hocrf_accepted = acceptance.accepts(doc, prediction.whole)
