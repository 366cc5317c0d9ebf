"""Which texts may be accepted unread: the threshold of `hocrf calibrate --accept`.

Let n_c be the smallest n with

    P(Binomial(n, 1 - level) <= c) <= 1 - confidence,    c = 0, 1, 2, …

If at most c of the n_c surest texts are wrong, an exact test rejects the hypothesis that, among all texts at
least that sure, more than a share 1 - level is wrong: given how sure the next text is, those n_c are a sample
of all surer texts. After the last n_c <= n, all n texts are tested, of which c may be wrong, too: the
probability above falls with n. Texts that are as sure as one of the n are tested, and accepted, with them.
The tests are made in this order, which does not depend on what is right, up to the first that does not
reject, so that the chance of a wrong promise is 1 - confidence overall (fixed-sequence testing, as in
Angelopoulos et al., Learn then Test, 2021).

The probability that a whole text is right is the model's, recalibrated on the same texts: log-odds
slope · z + intercept, z being the model's log-odds, fitted by maximum likelihood (Platt, 1999).
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from functools import cache
from itertools import count
from math import ceil, inf, lgamma, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc
from wasabi import msg

from spacy_hocrf.annotation.acceptance import ALARM, MAX_SAMPLE, Acceptance
from spacy_hocrf.annotation.groups import get_group, register
from spacy_hocrf.cli.counts import is_complete
from spacy_hocrf.cli.errors import CommandErrors
from spacy_hocrf.cli.pipelines import component_of, ready_docs, scorer_of
from spacy_hocrf.cli.shown import ShownText, set_before
from spacy_hocrf.engine.lbfgs import LBFGS

__all__ = [
    "CalibrationErrors",
    "WholeTexts",
    "accept",
    "binomial",
    "calibration_errors",
    "correction",
    "farthest_behind",
    "least_texts",
    "step",
    "threshold_of",
    "warn_unlike",
    "whole_texts",
]

BINS = 10
CERTAIN = 1e-9
"""Probabilities are clipped to [CERTAIN, 1 - CERTAIN]."""
MIN_SLOPE = 0.01
"""Smallest slope: a text that the model is surer of stays more probable."""
DIGITS = 10**10
"""A threshold is rounded down to a multiple of 1 / DIGITS, as it is saved."""
ACCEPT_NONE = Acceptance(0.5, 0.5, None, 0, 0)
"""Makes the component compute the probabilities, and accepts nothing."""


class CalibrationErrors(NamedTuple):
    """How far n probabilities are from how often they are right."""

    ece: float  # expected calibration error: mean of |share right - mean probability| over bins
    by_chance: float  # the one that probabilities without any error have on average


def calibration_errors(
    probability: NDArray[np.float64], right: NDArray[np.bool_]
) -> CalibrationErrors:
    """Return the errors in BINS bins of equal width; zeros for no probabilities.

    Without any error, the number of right ones in a bin is nearly normal around Σ p, with the variance
    v = Σ p (1 - p), and differs from Σ p by √(2 v / π) on average.

    probability (float64 [n]): from 0 to 1. right (bool [n]): is it right?
    """
    place = np.minimum((probability * BINS).astype(np.int64), BINS - 1)
    gaps = np.bincount(place, right - probability, BINS)
    variances = np.bincount(place, probability * (1.0 - probability), BINS)
    n = max(1, len(probability))
    by_chance = np.sqrt(2.0 * variances / np.pi).sum() / n
    return CalibrationErrors(float(np.abs(gaps).sum() / n), float(by_chance))


@dataclass(frozen=True)
class WholeTexts:
    """How a model does on n annotated texts that it has not seen."""

    probability: NDArray[np.float64]  # [n] that the whole text is right
    right: NDArray[np.bool_]  # [n] is the whole text right?
    group: NDArray[np.str_]  # [n] whose threshold holds; "" for all
    # [n] by how many nats the right reading is less probable than the best one; inf if it is impossible
    behind: NDArray[np.float64] | None = None

    @property
    def errors(self) -> CalibrationErrors:
        """Errors of the probabilities."""
        return calibration_errors(self.probability, self.right)

    def only(self, mask: NDArray[np.bool_]) -> "WholeTexts":
        """Select texts by a mask, bool [n]."""
        behind = None if self.behind is None else self.behind[mask]
        return WholeTexts(self.probability[mask], self.right[mask], self.group[mask], behind)

    def corrected(self) -> "WholeTexts":
        """Correct the probabilities of each half (every other text) by a fit on the other half."""
        chances, even = self.probability.copy(), np.arange(len(self.right)) % 2 == 0
        for side in (even, ~even):
            slope, intercept = correction(self.only(~side))
            fitted = Acceptance(0.5, 0.5, None, 0, 0, slope=slope, intercept=intercept)
            chances[side] = [fitted.calibrated(p) for p in chances[side].tolist()]
        return replace(self, probability=chances)


def whole_texts(
    nlp: Language,
    docs: Sequence[Doc],
    component: str | None = None,
    by: str | None = None,
    *,
    behind: bool = True,
) -> WholeTexts:
    """Predict the completely annotated documents, hiding their annotation from the pipeline.

    by (Optional[str]): extension attribute with the group of each document.
    behind (bool): also find how far the right reading is behind the best one, which `accept` keeps for sets
        of readings: this takes another pass over the texts.
    RAISES (ValueError): H204 for an unknown component, H252 if no document has a group, H500 for a
        component whose spans overlap.
    """
    name, pipe = component_of(nlp, component)
    if pipe.target.overlapping:
        raise ValueError(CommandErrors.H500.format(name=name))
    if by is not None:
        register(by)
        if all(get_group(doc, by) is None for doc in docs):
            raise ValueError(CommandErrors.H252.format(name=by, found=len(docs)))
    scorer = scorer_of(pipe.target)
    complete = [doc for doc in docs if is_complete(scorer, doc)]
    before, pipe.acceptance = pipe.acceptance, ACCEPT_NONE
    try:
        ready = [*ready_docs(nlp, complete, name)]
        predictions = pipe.predict(ready)
    finally:
        pipe.acceptance = before
    annotated = [{(start, end, y) for y, start, end in scorer.items(doc)} for doc in complete]
    shown = [{*p.spans, *set_before(pipe.target, doc)} for doc, p in zip(ready, predictions)]
    right = np.array([a == b for a, b in zip(annotated, shown)], dtype=bool)
    nats = None
    if behind:
        readings = pipe.readings(ready, keeps_own=True)
        texts = (ShownText(reading, pipe.target) for reading in readings)
        nats = np.array([_behind(*pair) for pair in zip(texts, annotated)], np.float64)
    groups = ["" if by is None else str(get_group(doc, by)) for doc in complete]
    chances = np.array(
        [prediction.text_probability for prediction in predictions], dtype=np.float64
    )
    return WholeTexts(chances, right, np.array(groups, dtype=np.str_), nats)


def _behind(text: ShownText, annotated: Set[tuple[int, int, str]]) -> float:
    """By how many nats the reading with these spans is less probable than the best; inf if impossible."""
    unmodelled = text.unmodelled()
    if not unmodelled <= annotated:
        return inf
    try:
        best = text.reading.best(1)[0].log_probability
        return max(0.0, best - text.reading.log_probability(annotated - unmodelled))
    except ValueError:  # an unknown label, or too much white space
        return inf


def accept(
    texts: WholeTexts, level: float, confidence: float, by: str | None = None
) -> tuple[Acceptance, dict[str, str]]:
    """Find the thresholds from which on texts may be accepted unread, one for each group.

    level (float): at least this share of accepted new texts is entirely right,
    confidence (float): with this probability, in each group.
    RETURNS (Tuple[Acceptance, Dict[str, str]]): the thresholds, and the reason for each group without one.
    RAISES (ValueError): H207 for settings out of range, H501 for too few texts, H502 if too many of the
        surest ones are wrong; with groups, only if none of them gets a threshold.
    """
    if not (0 < level < 1 and 0 < confidence < 1):
        settings = f"--accept {level} and --confidence {confidence}"
        raise ValueError(CommandErrors.H207.format(found=settings))
    groups, refused = dict[str, float](), dict[str, str]()
    error: ValueError | None = None
    for group in dict.fromkeys(texts.group.tolist()):
        try:
            groups[group] = threshold_of(texts.only(texts.group == group), level, confidence)
        except ValueError as reason:
            error, refused[group] = reason, str(reason)
    if not groups:
        raise error or ValueError(_too_few(0, level, confidence))
    least = np.array([groups.get(group, np.inf) for group in texts.group.tolist()])
    accepted = int((texts.probability >= least).sum())
    sample = np.sort(texts.probability)
    if len(sample) > MAX_SAMPLE:
        sample = np.quantile(sample, (np.arange(MAX_SAMPLE) + 0.5) / MAX_SAMPLE)
    rounded = np.floor(sample * DIGITS) / DIGITS
    acceptance = Acceptance(
        level,
        confidence,
        groups.get(""),
        len(texts.right),
        accepted,
        by,
        groups if by is not None else {},
        *correction(texts),
        tuple(rounded.tolist()),
        farthest_behind(texts),
    )
    return acceptance, refused


def farthest_behind(texts: WholeTexts) -> tuple[float, ...]:
    """Finite values of `behind` in ascending order; of more than MAX_SAMPLE texts, their quantiles
    i / MAX_SAMPLE, rounded up to a value that occurs. () if unknown.
    """
    if texts.behind is None or not len(texts.behind):
        return ()
    n, kept = len(texts.behind), min(len(texts.behind), MAX_SAMPLE)
    chosen = np.sort(texts.behind)[-(-np.arange(1, kept + 1) * n // kept) - 1]
    return tuple((np.ceil(chosen[np.isfinite(chosen)] * DIGITS) / DIGITS).tolist())


def correction(texts: WholeTexts) -> tuple[float, float]:
    """Fit slope and intercept of the log-odds. Priors N(1, 1) and N(0, 1) keep them near the model's own if
    there are few texts.
    """
    p = np.clip(texts.probability, CERTAIN, 1 - CERTAIN)
    features = np.stack([np.log(p / (1 - p)), np.ones_like(p)], axis=1)
    signs, start = np.where(texts.right, 1.0, -1.0), np.array([1.0, 0.0])
    optimiser = LBFGS(start)
    while optimiser.status == "running":
        logs = np.logaddexp(0.0, -signs * (features @ optimiser.x))  # -log P(observed)
        away = optimiser.x - start
        gradient = features.T @ (-signs * -np.expm1(-logs)) + away
        optimiser.tell(float(logs.sum() + away @ away / 2), gradient)
    slope, intercept = optimiser.best_x.tolist()
    return max(slope, MIN_SLOPE), intercept


def warn_unlike(acceptance: Acceptance, probabilities: Sequence[float]) -> None:
    """Warn if texts are unlike those that the threshold was found on.

    probabilities (Sequence[float]): corrected probability that the whole text is right, of each text.
    """
    chance = acceptance.likeness(probabilities)
    if chance < ALARM:
        msg.warn(
            "The model is more, or less, sure of these texts than of those that the threshold was found on: "
            f"a difference this large has a probability of {chance:.1g}. The promise may not hold for them. "
            "Annotate some of them, and run calibrate --accept again."
        )


def threshold_of(texts: WholeTexts, level: float, confidence: float) -> float:
    """Find the threshold for texts of one group. RAISES (ValueError): H501 or H502."""
    order = np.argsort(-texts.probability, kind="stable")
    wrong = np.cumsum(~texts.right[order])
    surest = np.floor(texts.probability[order] * DIGITS) / DIGITS
    last, first = 0, least_texts(level, confidence)
    if len(order) < first:
        raise ValueError(_too_few(len(order), level, confidence))
    for allowed in count():
        n = step(allowed, level, confidence)
        if n > len(order):  # test all texts, with as many errors allowed as in the step before
            last = len(order) if wrong[-1] < allowed else last
            break
        # with the n-th text all that are as sure would be accepted
        n = int(np.searchsorted(-surest, -surest[n - 1], side="right"))
        if n >= step(allowed + 1, level, confidence):
            continue  # the next test is of the same texts
        if wrong[n - 1] > allowed:
            if not last:
                found = {"found": int(wrong[n - 1]), "n": n, "most": allowed}
                asked = {"level": level, "confidence": confidence}
                raise ValueError(CommandErrors.H502.format(**found, **asked))
            break
        last = n
    return float(surest[last - 1])


def least_texts(level: float, confidence: float) -> int:
    """Return n_0, the smallest number of texts that can give a threshold."""
    return ceil(log(1 - confidence) / log(level))


def _too_few(texts: int, level: float, confidence: float) -> str:
    needed = least_texts(level, confidence)
    return CommandErrors.H501.format(found=texts, level=level, confidence=confidence, needed=needed)


@cache
def step(allowed: int, level: float, confidence: float) -> int:
    """Return n_c, the smallest number of texts of which c = `allowed` may be wrong."""
    n = step(allowed - 1, level, confidence) if allowed else least_texts(level, confidence)
    while binomial(n, 1 - level, allowed).sum() > 1 - confidence:
        n += 1
    return n


def binomial(n: int, p: float, most: int) -> NDArray[np.float64]:
    """P(Binomial(n, p) = k) for k from 0 to `most`, at most n."""
    logs = [
        lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(p) + (n - k) * log(1 - p)
        for k in range(most + 1)
    ]
    return np.asarray(np.exp(np.array(logs)))
