"""The loss of one batch at given log potentials, which batch-wise trainers minimise.

    loss = log Z − log Z(observed),    its derivative by a log potential: E[count] − E[count | observed]

Z sums over all allowed segmentations, Z(observed) over those that agree with the annotation.
"""

from collections.abc import Sequence
from dataclasses import fields, replace
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Model, set_dropout_rate

from spacy_hocrf.annotation.annotation import Annotation
from spacy_hocrf.annotation.weights import weight_of
from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.forbidden import Observed
from spacy_hocrf.engine.forward_backward import expectations
from spacy_hocrf.errors import Errors
from spacy_hocrf.features.tokens import TokenBatch, beginning
from spacy_hocrf.learning.learning import Learner
from spacy_hocrf.learning.training_rules import check_constraints, observed_in
from spacy_hocrf.rules.errors import ConstraintErrors
from spacy_hocrf.types import Expectations, Potentials

__all__ = ["add_gradient_into", "loss_of", "negative_log_likelihood"]


def loss_of(
    learner: Learner, examples: Sequence[Example], potentials: Potentials
) -> tuple[float, Expectations]:
    """Return the loss of a batch, and its derivative.

    potentials (Potentials): log potentials of the examples' Docs.
    RETURNS (tuple[float, Expectations]): nats, and expected minus observed counts.
    RAISES (ValueError): H007 if no allowed segmentation agrees with an example's annotation, H222 if none of
        those that agree satisfies the constraints that training observes, H243 if the example's own
        constraints contradict its annotation.
    """
    annotations = [learner.as_modelled(learner.gold.annotation(example)) for example in examples]
    free, rules = potentials.allowed, learner.rules
    if rules is None:
        offsets = potentials.offsets
        observed = observed_in(learner.structure, None, free, offsets, annotations)
    else:
        tokens = TokenBatch([example.predicted for example in examples])
        for i in np.flatnonzero(~rules.fits(tokens, free, annotations)).tolist():
            text = repr(beginning(examples[i].predicted))
            raise ValueError(ConstraintErrors.H222.format(text=text))
        observed = rules.observed(tokens, free, annotations)
        potentials = replace(potentials, allowed=rules.constrained(tokens, free))
    weights = np.array([weight_of(example.reference) for example in examples])
    factors = None if (weights == 1.0).all() else weights
    losses, difference = negative_log_likelihood(potentials, observed, learner.automaton, factors)
    for i in np.flatnonzero(np.isinf(losses)).tolist():
        text, key = beginning(examples[i].predicted), learner.constraints_key
        if key is not None and annotations[i].constraints:
            check_constraints(learner.structure, [text], [annotations[i]], key)
        raise ValueError(Errors.H007.format(text=repr(text)))
    return float(losses.sum()), difference


def add_gradient_into(
    model: Model[list[Doc], Any], learner: Learner, examples: Sequence[Example], drop: float
) -> float:
    """Add the gradient of one batch, with its share of the prior, to the model's gradient. Examples that
    break constraints that training observes are left out.

    drop (float): dropout rate of the encoder, if the model has one.
    RETURNS (float): loss, in nats.
    RAISES (ValueError): H007 as in `loss_of`, H040 for an unknown label.
    """
    annotations = [learner.gold.annotation(example) for example in examples]
    learner.admit(annotations)
    learner.n_shown += len(examples)
    set_dropout_rate(model, drop)
    modelled = list(map(learner.as_modelled, annotations))
    examples = [e for e in _satisfiable(learner, examples, modelled) if weight_of(e.reference)]
    if not examples:
        return 0.0
    potentials, backprop = model.begin_update([example.predicted for example in examples])
    loss, d_potentials = loss_of(learner, examples, potentials)
    backprop(d_potentials)
    penalty, gradient = learner.trainer.penalty(learner)
    share = len(examples) / max(1, learner.documents)
    step: Any = (share * gradient).astype(np.float32)
    model.inc_grad("W", step)
    return loss + share * penalty


def _satisfiable(
    learner: Learner, examples: Sequence[Example], annotations: Sequence[Annotation]
) -> Sequence[Example]:
    """Return the examples that satisfy the constraints that training observes."""
    if learner.rules is None:
        return examples
    tokens = TokenBatch([example.predicted for example in examples])
    fits = learner.rules.fits(tokens, learner.structure.allowed(tokens), annotations).tolist()
    return list(compress(examples, fits))


def negative_log_likelihood(
    potentials: Potentials,
    observed: Observed,
    automaton: Automaton,
    weights: NDArray[np.float64] | None = None,
) -> tuple[NDArray[np.float64], Expectations]:
    """Return minus the log probability of the annotation of each sequence.

    observed (Observed): the segmentations that agree with it.
    weights (Optional[float64 [D]]): factor of each sequence, above 0; None for 1.
    RETURNS (tuple[float64 [D], Expectations]): nats, inf where no allowed segmentation agrees; and expected
        minus observed counts, which are meaningless there.
    """
    all_counts = expectations(potentials, automaton, weights=weights)
    agreeing = observed.expectations(potentials, automaton, weights=weights)
    with np.errstate(invalid="ignore"):  # inf - inf
        difference: dict[str, Any] = {
            field.name: _minus(getattr(all_counts, field.name), getattr(agreeing, field.name))
            for field in fields(Expectations)
        }
    losses = difference["log_partition"] * (1.0 if weights is None else weights)
    losses = np.where(np.isneginf(agreeing.log_partition), np.inf, losses)
    return losses, Expectations(**difference)


def _minus(one: Any, other: Any) -> Any:
    return None if one is None or other is None else one - other
