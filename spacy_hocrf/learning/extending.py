"""Teaches a trained model more texts and more labels; only the new labels need be annotated."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from spacy.training import Example

from spacy_hocrf.annotation.weights import counting
from spacy_hocrf.errors import Errors
from spacy_hocrf.learning.learning import Learner
from spacy_hocrf.rules.compiled import CompiledRules
from spacy_hocrf.rules.errors import ConstraintErrors
from spacy_hocrf.training.base import Run
from spacy_hocrf.training.lbfgs import LBFGSTrainer

__all__ = ["EXTEND_SIGMA", "learn_more"]

EXTEND_SIGMA = 1.0
"""Sigma of the prior on changes of the existing weights for a new label. Of 0.1, 0.3, 1 and 3 it costs the
old labels least (CoNLL04, each label in turn, 50 texts: -0.7, -0.6, -0.2 and -1.3 of F1): it lets the
evidence against a new label fade.
"""


def learn_more(
    learner: Learner,
    examples: Sequence[Example],
    alone: bool | None,
    sigma: float | None,
    after_step: Callable[[Run], None],
    rules: Callable[[], CompiledRules],
) -> list[str]:
    """Learn more texts, with labels that may be new to the learner; see `SegmentationPipe.extend`.

    learner (Learner): learner of a loaded model, without a corpus.
    after_step (Callable[[Run], None]): called after each step of the trainer.
    rules (Callable[[], CompiledRules]): returns the constraints, compiled for the learner's labels.
    """
    trainer, gold = learner.trainer, learner.gold
    if not isinstance(trainer, LBFGSTrainer):
        raise ValueError(Errors.H510.format(found=type(trainer).__name__))
    annotations = [gold.annotation(example) for example in counting(examples)]
    labels = list(dict.fromkeys(y for annotation in annotations for y in annotation.labels))
    new_labels = [label for label in labels if label not in learner.labels]
    if not labels:
        raise ValueError(Errors.H511.format(found=len(annotations), places=gold.places))
    for label in new_labels:
        learner.add_label(label)
    for label in new_labels:
        if (what := rules().excluding(label)) is not None:
            raise ValueError(ConstraintErrors.H582.format(label=label, what=what))
    if alone is None and new_labels:
        alone = gold.positives_only or len(new_labels) == len(labels)
    if alone is not None:
        positives_only = gold.positives_only and alone
        # a constraint leaves open where the spans of its label end
        constrained = {constraint.label for each in annotations for constraint in each.constraints}
        searched = [label for label in labels if label not in constrained] if alone else None
        learner.gold = replace(gold, positives_only=positives_only, alone=searched)
        learner.corpus.gold = learner.gold
    if sigma is None:
        sigma = EXTEND_SIGMA if new_labels else trainer.adapt_sigma
    learner.set_trainer(replace(trainer, prior="loaded", adapt_sigma=sigma))
    try:
        learner.add(examples)
        learner.loss()
        while (run := learner.run) is not None and run.running:
            learner.step(run)
            after_step(run)
    finally:
        learner.gold = learner.corpus.gold = gold
        learner.set_trainer(trainer)
    return new_labels
