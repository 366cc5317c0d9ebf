"""Which texts can be accepted unread: those that are probably right as a whole.

A text is accepted if P(exactly the spans that are shown) is at least a threshold, which
`python -m spacy hocrf calibrate --accept` finds on annotated texts that the model has not seen. The promise
holds for texts like these and for what this model shows; it ends when training goes on, or when other
settings decide what is shown.

Are other texts like these? If so, the model's probabilities of them have the same distribution, and the
largest difference between the two empirical distribution functions, of n and m texts, exceeds d with
probability

    2 Σ_k (-1)^(k-1) exp(-2 k² λ²),    λ = (√e + 0.12 + 0.11 / √e) d,    e = n m / (n + m)

(Kolmogorov and Smirnov; Stephens, Journal of the Royal Statistical Society B 32, 1970).

Which readings must be looked at, so that the right one is among them? On n texts that the model has not
seen, take by how many nats the right reading was less probable than the best one. If a new text is
exchangeable with these, its own difference is at most the k-th smallest of them with probability at least
k / (n + 1) (split conformal prediction; Vovk et al., 2005). Readings within that difference are enough.
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

__all__ = ["ALARM", "MAX_SAMPLE", "Acceptance", "fingerprint", "mark"]

Share = Annotated[float, Meta(gt=0, lt=1)]
Probability = Annotated[float, Meta(ge=0, le=1)]
ALARM = 0.01
"""Probability of a false alarm: that texts like those of the sample are taken for different ones."""
MIN_LAMBDA, N_TERMS = 0.2, 20
"""For λ below MIN_LAMBDA the probability is 1 to 12 digits; above it, N_TERMS terms are enough."""
MAX_ODDS = 700
"""Largest log-odds of which `exp` is taken."""
MAX_SAMPLE = 1_000
"""Most numbers that are kept of a sample."""
ROUNDING = 1e-9
"""Tolerance for rounding errors."""
Nats = Annotated[float, Meta(ge=0)]
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
Amount = Annotated[int, Meta(ge=0, le=2**53)]


class Acceptance(Struct, frozen=True, forbid_unknown_fields=True):
    """Thresholds on the probability that a text is right as a whole, and what they promise.

    level (float): at least this share of the texts that will be accepted is right as a whole,
    confidence (float): with this probability over the choice of the calibration texts.
    threshold (Optional[float]): least probability of an accepted text; None accepts no text.
    texts, accepted (int): number of calibration texts, and how many of them are accepted.
    by (Optional[str]): extension attribute of Docs whose value (the group) selects the threshold; texts
        of other groups are not accepted.
    groups (Dict[str, float]): the threshold of each group.
    sample (Tuple[float, …]): the model's probabilities of the calibration texts, ascending; quantiles if
        there are many.
    slope, intercept (float): calibrated log-odds that a text is right = slope · the model's log-odds +
        intercept, fitted to the calibration texts.
    behind (Tuple[float, …]): by how many nats the right reading of a calibration text was less probable than
        the best one, ascending; without readings that the model cannot have, and quantiles if there are many.
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
        """Return by how many nats, at most, the right reading of a text is less probable than the best one.

        level (float): least share of new texts for which this holds.
        RAISES (ValueError): H506 if there are too few texts for that, H507 if the model cannot have the right
            reading of too many, H508 unless 0 < level < 1.
        """
        if not (is_number(level) and 0 < float(level) < 1):
            raise ValueError(ReadingErrors.H508.format(found=repr(level)))
        n = self.texts
        needed = ceil(level / (1 - level) - ROUNDING)
        if n < needed:
            raise ValueError(ReadingErrors.H506.format(found=n, needed=needed, level=level))
        place = ceil(ceil((n + 1) * level - ROUNDING) * min(n, MAX_SAMPLE) / n)
        if place > len(self.behind):
            most = floor(100 * len(self.behind) * n / min(n, MAX_SAMPLE) / (n + 1)) / 100
            raise ValueError(ReadingErrors.H507.format(level=level, n=n, most=most))
        return self.behind[place - 1]

    def likeness(self, probabilities: Sequence[float]) -> float:
        """Return the p-value of the hypothesis that texts are like those of the sample; the promise is about
        such texts alone.

        probabilities (Sequence[float]): `doc._.hocrf_probability` of each text.
        RETURNS (float): 1.0 where there is no sample, or no text.
        """
        calibration = np.sort([self.calibrated(p) for p in self.sample])
        observed = np.sort(np.asarray(probabilities, dtype=np.float64))
        n, m = len(calibration), len(observed)
        if not n or not m:
            return 1.0
        all_values = np.concatenate([calibration, observed])
        shares = [np.searchsorted(x, all_values, "right") / len(x) for x in (calibration, observed)]
        root = sqrt(n * m / (n + m))
        scaled = (root + 0.12 + 0.11 / root) * float(np.abs(shares[0] - shares[1]).max())
        if scaled < MIN_LAMBDA:
            return 1.0
        terms = [(-1) ** (k - 1) * exp(-2 * (k * scaled) ** 2) for k in range(1, N_TERMS)]
        return float(min(1.0, max(0.0, 2 * sum(terms))))

    def calibrated(self, probability: float) -> float:
        """Return the calibrated probability that a text is right as a whole, given the model's."""
        if probability in (0.0, 1.0) or (self.slope, self.intercept) == (1.0, 0.0):
            return probability
        odds = self.slope * log(probability / (1 - probability)) + self.intercept
        return 1 / (1 + exp(-odds)) if odds > -MAX_ODDS else 0.0

    def accepts(self, doc: Doc, probability: float) -> bool:
        """Can this text be accepted unread?

        probability (float): the model's probability that the text is right as a whole.
        """
        threshold = self.threshold
        if self.by is not None:
            threshold = self.groups.get(str(get_group(doc, self.by)))
        return threshold is not None and probability >= threshold


def fingerprint(*settings: object) -> str:
    """Return a hash that differs for settings with a different `repr`, apart from addresses in memory."""
    return sha256(ADDRESS.sub("", repr(settings)).encode()).hexdigest()


def mark(docs: Sequence[Doc], predictions: Sequence[Prediction], acceptance: Acceptance) -> None:
    """Set `doc._.hocrf_probability` and `doc._.hocrf_accepted`."""
    for doc, prediction in zip(docs, predictions):
        if prediction.text_probability is not None:
            doc._.hocrf_probability = acceptance.calibrated(prediction.text_probability)
            doc._.hocrf_accepted = acceptance.accepts(doc, prediction.text_probability)
