"""Temperatures: how much surer, or less sure, a model should be.

With a scale s_y = 1 / T_y of the scores of all features whose last label is y, the loss of annotated texts
that the model has not seen,

    loss(s) = log Z(s) - log Z(s, annotation),    d loss / d s_y = Σ φ_y · (E[count] - E[count | annotation]),

has its minimum where the probabilities are right on average (Platt scaling with one parameter, as Guo et
al., ICML 2017, §4.2, of a structured model). The scores are linear in the weights, so that the scales are
taken into these, and nothing else of the model changes.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.training import Example

from spacy_hocrf.annotation.annotation import constrain_batch
from spacy_hocrf.annotation.errors import TemperatureErrors
from spacy_hocrf.annotation.groups import group_in
from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.forbidden import Observed
from spacy_hocrf.engine.lbfgs import LBFGS
from spacy_hocrf.engine.selection import select_sequences
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.learning.learning import Learner
from spacy_hocrf.learning.likelihood import negative_log_likelihood
from spacy_hocrf.model.scheme import OUTSIDE, LabelScheme
from spacy_hocrf.model.structure import Structure
from spacy_hocrf.types import Expectations, Potentials

__all__ = ["HeldOut", "named_temperatures", "scaled_weights", "scales_of"]

LEAST = 2
"""Groups of texts, usually of one each, of which half is tried on the other half."""

Scales = NDArray[np.float64]
DENSE = ("start", "end", "token", "inner")


@dataclass(frozen=True)
class HeldOut:
    """Annotated texts that a model has not seen, D of them.

    potentials (Potentials): of the texts. observed (uint8 [N, Y]): bits of what agrees with the annotation.
    """

    potentials: Potentials
    observed: NDArray[np.uint8]
    automaton: Automaton
    scheme: LabelScheme
    groups: tuple[Hashable, ...]  # [D] equal for texts that are tried together

    def __len__(self) -> int:
        """Number of texts D."""
        return len(self.potentials.offsets) - 1

    @classmethod
    def of(cls, learner: Learner, examples: Sequence[Example]) -> "HeldOut":
        """Examples that some reading of the model agrees with; others say nothing of temperatures.

        RAISES (ValueError): H220 if they are fewer than LEAST.
        """
        batch = TokenBatch([example.predicted for example in examples])
        structure, known = learner.structure, learner.snapshot()
        compiled = structure.compile(structure.observe(batch), learner.allowed(batch))
        potentials = compiled.potentials(known.placed)
        annotations = [
            learner.as_modelled(learner.gold.target.annotation(example)) for example in examples
        ]
        observed = constrain_batch(
            learner.scheme, potentials.allowed, potentials.offsets, annotations
        )
        attribute = learner.corpus.group_by
        own = (group_in(example, attribute) for example in examples)
        groups = tuple(i if group is None else (group,) for i, group in enumerate(own))
        found = cls(potentials, observed, learner.automaton, learner.scheme, groups)
        losses, _ = negative_log_likelihood(potentials, Observed(observed), learner.automaton)
        possible = np.flatnonzero(np.isfinite(losses) & (np.diff(potentials.offsets) > 0))
        if (readable := len({groups[i] for i in possible.tolist()})) < LEAST:
            raise ValueError(TemperatureErrors.H220.format(found=readable, expected=LEAST))
        return found.only(possible)

    def only(self, texts: NDArray[np.int64]) -> "HeldOut":
        """Some of the texts, int64 [n]."""
        chosen = select_sequences(self.potentials, texts)
        bits = select_sequences(replace(self.potentials, allowed=self.observed), texts)
        groups = tuple(self.groups[i] for i in texts.tolist())
        return replace(self, potentials=chosen, observed=bits.allowed, groups=groups)

    def loss(self, scales: Scales) -> tuple[float, Scales]:
        """Nats a token, and its derivative.

        scales (float64 [Y]): of the scores of each of the engine's labels.
        """
        potentials, last = self.potentials, _last_labels(self.automaton)
        losses, difference = negative_log_likelihood(
            _scaled(potentials, scales, last), Observed(self.observed), self.automaton
        )
        tokens = max(1, int(potentials.offsets[-1]))
        gradient = _by_label(potentials, difference, last, len(scales))
        return float(losses.sum()) / tokens, gradient / tokens

    def fitted(self, *, by_label: bool) -> Scales:
        """The scales with the smallest loss, float64 [Y]; one for all labels, or one for each of the
        users' labels and for text in no span.
        """
        groups = _groups(self.scheme) if by_label else np.zeros(self.scheme.n_labels, dtype=int)
        optimiser = LBFGS(np.zeros(int(groups.max()) + 1))
        while optimiser.status == "running":
            scales = np.exp(optimiser.x)[groups]
            loss, gradient = self.loss(scales)
            by_group = np.zeros_like(optimiser.x)
            np.add.at(by_group, groups, gradient * scales)
            optimiser.tell(loss, by_group)
        return np.asarray(np.exp(optimiser.best_x)[groups])


def scales_of(held_out: HeldOut, seed: int = 0) -> Scales:
    """Scales of the engine's labels, float64 [Y]: one for all, or by label if that has the smaller loss
    where those of one half of the texts are tried on the other half.
    """
    number = {group: i for i, group in enumerate(dict.fromkeys(held_out.groups))}
    of_text = np.array([number[group] for group in held_out.groups])
    order = np.random.default_rng(seed).permutation(len(number))
    sides = [np.flatnonzero(np.isin(of_text, half)) for half in np.array_split(order, 2)]
    halves = [held_out.only(side) for side in sides]
    losses = {
        by_label: sum(
            one.loss(other.fitted(by_label=by_label))[0] for one, other in (halves, halves[::-1])
        )
        for by_label in (False, True)
    }
    return held_out.fitted(by_label=losses[True] < losses[False])


def named_temperatures(scheme: LabelScheme, scales: Scales) -> dict[str, float]:
    """Temperature of each of the user's labels, and of text in no span as "O"."""
    found = {}
    for y, scale in enumerate(scales.tolist()):
        name = OUTSIDE if y == scheme.outside else scheme.labels[scheme.user_label(y)]
        found[name] = 1 / scale
    return found


def scaled_weights(
    structure: Structure, weights: NDArray[np.floating[Any]], scales: Scales
) -> NDArray[np.float32]:
    """Weights by which the scores are scaled, float32 [size].

    scales (float64 [Y]): of the engine's labels.
    """
    last = np.array([pattern[-1] for pattern in structure.patterns])
    of_features = scales[last[structure.index.feature_pattern]]
    of_dense = np.tile(scales, structure.n_dense // len(scales))
    scaled = weights * np.concatenate([of_features, of_dense])
    return np.asarray(scaled, dtype=np.float32)


def _last_labels(automaton: Automaton) -> NDArray[np.int64]:
    """Last label of each label pattern, int64 [Z]."""
    return np.array([pattern[-1] for pattern in automaton.patterns], dtype=np.int64)


def _groups(scheme: LabelScheme) -> NDArray[np.int64]:
    """Number of the user's label that each of the engine's stands for, int64 [Y]; 0 for none."""
    found = [0 if y == scheme.outside else 1 + scheme.user_label(y) for y in range(scheme.n_labels)]
    return np.unique(found, return_inverse=True)[1].astype(np.int64)


def _scaled(potentials: Potentials, scales: Scales, last: NDArray[np.int64]) -> Potentials:
    """The log potentials with scales."""
    found = replace(
        potentials,
        const=potentials.const * scales[last],
        token=potentials.token * scales,
        row_score=potentials.row_score * scales[last[potentials.row_pattern]],
        length_score=potentials.length_score * scales[last[potentials.length_pattern]][:, None],
        span_score=potentials.span_score * scales[last[potentials.span_pattern]],
    )
    start, end, inner = (
        None if part is None else part * scales
        for part in (potentials.start, potentials.end, potentials.inner)
    )
    return replace(found, start=start, end=end, inner=inner)


def _by_label(
    potentials: Potentials, counts: Expectations, last: NDArray[np.int64], n_labels: int
) -> Scales:
    """Σ score · count of the entries of each label, float64 [Y]."""
    found = np.bincount(last, potentials.const * counts.const, n_labels)
    for pattern, score, count in (
        (potentials.row_pattern, potentials.row_score, counts.row),
        (potentials.length_pattern, potentials.length_score, counts.length),
        (potentials.span_pattern, potentials.span_score, counts.span),
    ):
        product = (score * count).T
        while product.ndim > 1:
            product = product.sum(axis=0)
        found += np.bincount(last[pattern], product, n_labels)
    for name in DENSE:
        score, count = getattr(potentials, name), getattr(counts, name)
        if score is not None:
            found += (score * count).sum(axis=0)
    return np.asarray(found)
