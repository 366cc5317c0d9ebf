"""The prices of rules about all spans of a Doc that make annotated texts most probable:
`spacy-hocrf.JointLikelihood.v1`.

With a scale t of the local score, prices w, and b_r = 1 where rule r is broken, else 0, a reading y of a
text with the annotation a has, beside the annotation, t Δs(y) - w·Δb(y) nats, Δs(y) = score(y) - score(a),
Δb(y) = b(y) - b(a). Over the best readings of each text, the annotation among them,

    loss(t, w) = Σ log Σ_y exp(t Δs(y) - w·Δb(y)) + (|w|² + (t - 1)²) / 2σ²,

    d loss / d w_r = w_r / σ² - E[Δb_r],    d loss / d t = (t - 1) / σ² + E[Δs],

which is convex (reranking by likelihood: Collins and Koo, Computational Linguistics 31, 2005). As the score
itself, what breaking a rule costs is then w / t, and the temperature is 1 / t.

Letters: D texts, n rules, m readings of a text.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import stretches
from spacy_hocrf.engine.owlqn import OWLQN
from spacy_hocrf.engine.viterbi import viterbi
from spacy_hocrf.joint.errors import RuleErrors
from spacy_hocrf.joint.learning import CrossFittedTrainer, JointModel, LearntWeights
from spacy_hocrf.joint.remembered import SpanRules
from spacy_hocrf.joint.ruled_spans import READINGS, ruled_readings
from spacy_hocrf.joint.span_rules import SpanTemplate
from spacy_hocrf.model.structure import BATCH_TOKENS
from spacy_hocrf.pipeline.annotation import constrain_batch
from spacy_hocrf.pipeline.cross_fitting import cross_fitted
from spacy_hocrf.pipeline.documents import Document
from spacy_hocrf.pipeline.learning import Learner
from spacy_hocrf.training.base import Run
from spacy_hocrf.types import Segments
from spacy_hocrf.warnings import Warnings

__all__ = ["Contrasts", "JointLikelihood", "fitted_prices", "loss_of"]

Vector = NDArray[np.float64]

LEAST_SCALE = 0.05


@dataclass(frozen=True, kw_only=True)
class JointLikelihood(CrossFittedTrainer):
    """`spacy-hocrf.JointLikelihood.v1`: prices of rules, and a temperature, with which the annotation of
    texts that the local model has not seen is most probable.

    sigma (float): standard deviation of the Gaussian prior of the prices.
    folds (int): the local scores of each text come from a model that was trained without its part, one of
        so many, of the corpus.
    nonnegative (bool): no price is below 0, so that rules of no use get the price 0.
    readings (int): of each text, so many best ones by the local score.
    seed (int): of the division.
    RAISES (ValueError): H108 for settings out of range.
    """

    sigma: float = 1.0
    readings: int = READINGS

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check("sigma", 0 < self.sigma < math.inf, "above 0 and finite")
        self._check("readings", self.readings >= 2, "at least 2")

    def begin(self, learner: Learner, joint: JointModel) -> Run:
        """The local trainer's own run. RAISES (ValueError): H312 for joint features that are no rules."""
        for template in joint.templates:
            if not isinstance(template, SpanTemplate):
                raise ValueError(RuleErrors.H312.format(template=template.name, name=joint.name))
        return super().begin(learner, joint)

    def learn(self, learner: Learner, joint: JointModel) -> LearntWeights | None:
        """Learn the prices from a corpus.

        learner (Learner): has the corpus, and the local settings; it is left as it is.
        RETURNS (Optional[LearntWeights]): None if fewer than two texts are annotated completely.
        """
        groups = [
            [document for document in dict.fromkeys(group) if len(document)]
            for group in learner.corpus.groups(most=joint.decoder.max_group_tokens)
        ]
        groups = [group for group in groups if group]
        features = joint.features(learner.scheme)
        rules = features.rules
        if rules is None or len(groups) < 2:
            return None
        texts: list[Contrasts] = []
        breaking = 0
        for model, unseen in cross_fitted(
            learner, groups, folds=self.folds, seed=self.seed, steps=learner.steps
        ):
            assert model.scheme.names == features.scheme.names
            documents = [document for number in unseen for document in groups[number]]
            for first, last in stretches(list(map(len, documents)), BATCH_TOKENS):
                found = _contrasts(model, learner, documents[first:last], rules, self.readings)
                texts += found
                breaking += last - first - len(found)
        if breaking:
            counts = {"found": breaking, "all": breaking + len(texts)}
            warnings.warn(Warnings.W033.format(name=joint.name, **counts), stacklevel=2)
        return fitted_prices(texts, len(rules), self)


class Contrasts(NamedTuple):
    """m readings of a text beside its annotation, the last one."""

    scores: NDArray[np.float64]  # [m] Δs
    rules: NDArray[np.int64]  # [k] those that some readings break, and others do not
    broken: NDArray[np.float64]  # [m, k] Δb: 1, 0 or -1

    def loss(self, scale: float, prices: NDArray[np.float64]) -> tuple[float, float, Vector]:
        """Nats, and the slope by the scale and by the prices of its rules, float64 [k].

        prices (float64 [n]): of all rules.
        """
        values = scale * self.scores - self.broken @ prices[self.rules]
        highest = values.max()
        shares = np.exp(values - highest)
        total = shares.sum()
        shares /= total
        slope = -(shares @ self.broken)
        return float(highest + np.log(total)), float(shares @ self.scores), slope


def loss_of(texts: Sequence[Contrasts], x: Vector, variance: float) -> tuple[float, Vector]:
    """The loss, and its slope.

    x (float64 [1 + n]): the scale, and the prices. variance (float): of the prior.
    """
    away = x.copy()
    away[0] -= 1.0
    value, slope = float(away @ away) / (2 * variance), away / variance
    for text in texts:
        more, by_scale, by_price = text.loss(float(x[0]), x[1:])
        value += more
        slope[0] += by_scale
        slope[1 + text.rules] += by_price
    return value, slope


def fitted_prices(
    texts: Sequence[Contrasts], n_rules: int, settings: JointLikelihood
) -> LearntWeights:
    """The scale and the prices with the smallest loss, as prices of the local score and a temperature."""
    start = np.zeros(1 + n_rules)
    start[0] = 1.0
    # for w >= 0 the loss is loss - c·w + c·|w|, and below 0 that is 2c·|w| more: a price there costs more
    # than all texts are worth
    bars = np.full(1 + n_rules, (1.0 + len(texts)) * settings.nonnegative)
    bars[0] = 0.0
    optimiser = OWLQN(start, bars, gradient_tolerance=1e-4, improvement_tolerance=1e-6)
    while optimiser.status == "running":
        x = optimiser.x
        if x[0] < LEAST_SCALE:
            optimiser.tell(math.inf, bars)
            continue
        value, slope = loss_of(texts, x, settings.sigma**2)
        optimiser.tell(value - float(bars @ x), slope - bars)
    scale, prices = float(optimiser.best_x[0]), optimiser.best_x[1:]
    used = int(np.count_nonzero(prices))
    summary = (
        f"{optimiser.status}, {optimiser.evaluations} evaluations, loss {optimiser.best_f:.5g}, "
        f"temperature {1 / scale:.3g}, {used} of {n_rules} rules"
    )
    return LearntWeights(prices / scale, summary, 1.0 / scale)


def _contrasts(
    model: Learner, learner: Learner, documents: Sequence[Document], rules: SpanRules, readings: int
) -> list[Contrasts]:
    """Readings of texts by the local scores of this model; none of those whose annotation breaks a hard
    rule, or is not possible.
    """
    tokens = learner.corpus.batch(documents)
    allowed = model.structure.allowed(tokens)
    compiled = model.structure.compile(model.structure.observe(tokens), allowed)
    potentials = compiled.potentials(model.snapshot().placed)
    annotations = [document.annotation for document in documents]
    annotated = constrain_batch(model.scheme, allowed, tokens.offsets, annotations)
    right = viterbi(replace(potentials, allowed=annotated), model.automaton)
    gold = rules.broken(right.segments)
    texts = []
    for i, found in enumerate(ruled_readings(potentials, model.automaton, rules, readings)):
        if right.scores[i] == -np.inf or (gold[i] & rules.hard).any():
            continue
        kept = ~(found.broken & rules.hard).any(axis=1)
        kept &= ~_same(found.segments, _part(right.segments, i))  # it is put behind them
        differences = found.broken[kept].astype(np.float64) - gold[i]
        own = np.flatnonzero(differences.any(axis=0))
        texts.append(
            Contrasts(
                np.append(found.scores[kept] - right.scores[i], 0.0),
                own,
                np.vstack([differences[:, own], np.zeros(len(own))]),
            )
        )
    return texts


def _same(segmentations: Segments, other: Segments) -> NDArray[np.bool_]:
    """Which of m segmentations of a text have the segments of another one? bool [m]"""
    wanted = np.stack(other[1:])
    sizes = np.diff(segmentations.offsets)
    found = sizes == wanted.shape[1]
    rows = np.stack(segmentations[1:])
    for j in np.flatnonzero(found).tolist():
        first, last = segmentations.offsets[j : j + 2].tolist()
        found[j] = np.array_equal(rows[:, first:last], wanted)
    return np.asarray(found)


def _part(segments: Segments, i: int) -> Segments:
    """Those of one sequence."""
    own = slice(*segments.offsets[i : i + 2].tolist())
    return Segments(np.array([0, own.stop - own.start]), *(column[own] for column in segments[1:]))
