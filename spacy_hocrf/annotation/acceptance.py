"""Which texts nobody needs to read: those that are right as a whole, as surely as somebody has asked for.

A text is accepted if P(the spans that are shown and no others) is at least a threshold, which
`python -m spacy hocrf calibrate --accept` finds on annotated texts that the model has not seen. What is
promised is of texts like these, and of what this model shows: it is gone when training goes on, or when
other settings decide what is shown.

Are other texts like these? If they are, how sure the model is of them has the same distribution, and the
largest difference of two distribution functions, of n and m texts, is above d with the probability

    2 Σ_k (-1)^(k-1) exp(-2 k² λ²),    λ = (√e + 0.12 + 0.11 / √e) d,    e = n m / (n + m)

(Kolmogorov and Smirnov; Stephens, Journal of the Royal Statistical Society B 32, 1970).

Which readings need be looked at, so that the right one is among them? Those that are less probable than the
best one by no more nats than the right reading was in a share of texts that the model has not seen. Where a
new text is exchangeable with n of these, the k-th smallest of their differences is no smaller than its own
with a probability of k / (n + 1), at least (split conformal prediction; Vovk et al., 2005).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from math import ceil, exp, floor, log, sqrt
from typing import TYPE_CHECKING, Annotated

import numpy as np
from msgspec import Meta, Struct
from spacy.tokens import Doc

from spacy_hocrf.annotation.errors import ReadingErrors
from spacy_hocrf.annotation.groups import get_group
from spacy_hocrf.types import is_number

if TYPE_CHECKING:
    from spacy_hocrf.annotation.prediction import Prediction

__all__ = ["ALARM", "SAMPLE", "Acceptance", "fingerprint", "mark"]

Share = Annotated[float, Meta(gt=0, lt=1)]
Probability = Annotated[float, Meta(ge=0, le=1)]
ALARM = 0.01
"""Texts that are like those of the sample are taken for others with this probability."""
SMALL, TERMS = 0.2, 20
"""Below that the probability is 1 to 12 digits; so many terms are enough above."""
MOST_ODDS = 700
"""Of which `exp` is a number."""
SAMPLE = 1_000
"""So many numbers are kept of a sample."""
TINY = 1e-9
"""Errors of rounding."""
Nats = Annotated[float, Meta(ge=0)]
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
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
    sample (Tuple[float, …]): how sure the model was of those texts, ascending; quantiles where they are many.
    slope, intercept (float): the log-odds that all of a text is right are slope · log-odds of the model +
        intercept, which is how often it was in those texts.
    behind (Tuple[float, …]): by how many nats the right reading was less probable than the best one in
        those texts, ascending; without those that the model cannot have, and some of many.
    shown (str): `fingerprint` of the settings that decide what is shown; "" until a component has it.
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
    sample: tuple[Probability, ...] = ()
    behind: tuple[Nats, ...] = ()
    shown: str = ""

    def farthest(self, level: float) -> float:
        """So much less probable than the best reading of a text, in nats, is the right one at most.

        level (float): in this share of new texts, at least.
        RAISES (ValueError): H506 if there are too few texts for that, H507 if the model cannot have the right
            reading of too many, H508 unless 0 < level < 1.
        """
        if not (is_number(level) and 0 < float(level) < 1):
            raise ValueError(ReadingErrors.H508.format(found=repr(level)))
        n = self.texts
        needed = ceil(level / (1 - level) - TINY)
        if n < needed:
            raise ValueError(ReadingErrors.H506.format(found=n, needed=needed, level=level))
        place = ceil(ceil((n + 1) * level - TINY) * min(n, SAMPLE) / n)
        if place > len(self.behind):
            most = floor(100 * len(self.behind) * n / min(n, SAMPLE) / (n + 1)) / 100
            raise ValueError(ReadingErrors.H507.format(level=level, n=n, most=most))
        return self.behind[place - 1]

    def likeness(self, probabilities: Sequence[float]) -> float:
        """How probably texts are as unlike those of the sample by chance, if they are like them: the promise
        is about such texts alone.

        probabilities (Sequence[float]): `doc._.hocrf_probability` of each.
        RETURNS (float): 1.0 where there is no sample, or no text.
        """
        known = np.sort([self.honest(p) for p in self.sample])
        given = np.sort(np.asarray(probabilities, dtype=np.float64))
        n, m = len(known), len(given)
        if not n or not m:
            return 1.0
        places = np.concatenate([known, given])
        shares = [np.searchsorted(x, places, "right") / len(x) for x in (known, given)]
        root = sqrt(n * m / (n + m))
        scaled = (root + 0.12 + 0.11 / root) * float(np.abs(shares[0] - shares[1]).max())
        if scaled < SMALL:
            return 1.0
        terms = [(-1) ** (k - 1) * exp(-2 * (k * scaled) ** 2) for k in range(1, TERMS)]
        return float(min(1.0, max(0.0, 2 * sum(terms))))

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


def fingerprint(*settings: object) -> str:
    """Differs for settings that are written differently; where an object lies in memory is no part of it."""
    return sha256(ADDRESS.sub("", repr(settings)).encode()).hexdigest()


def mark(docs: Sequence[Doc], predictions: Sequence[Prediction], acceptance: Acceptance) -> None:
    """Write `doc._.hocrf_probability` and `doc._.hocrf_accepted`."""
    for doc, prediction in zip(docs, predictions):
        if prediction.whole is not None:
            doc._.hocrf_probability = acceptance.honest(prediction.whole)
            doc._.hocrf_accepted = acceptance.accepts(doc, prediction.whole)
