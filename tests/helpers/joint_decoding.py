"""What a component with joint features decodes, as segmentations."""

from functools import partial

import numpy as np
import oracle
from small_corpus import learner_of

from spacy_hocrf.answers.predictor import Predictor
from spacy_hocrf.engine.pool import BufferPool
from spacy_hocrf.joint.decoding import JointDecoder
from spacy_hocrf.model import structure


def segments_of(pipe, docs, groups, joint=None):
    """Segmentations, gaps and certificates, as the component decodes them.

    joint (Optional[JointDecoder]): in the place of the component's own.
    """
    result = decoded(pipe, docs, groups, joint)
    segmentations = [list(each) for each in oracle.listed(result.best.segments)]
    return segmentations, result.gap, result.certificate


def decoded(pipe, docs, groups, joint=None):
    """All that the joint decoder of a component, or another one, says of Docs."""
    if joint is None:
        known = pipe.joint.features, pipe.joint.weights, pipe.joint.decoder
        joint = JointDecoder(*known, pipe.rules, BufferPool())
    taken = []

    class Spy(JointDecoder):
        def decode(self, *arguments):
            taken.append(super().decode(*arguments))
            return taken[-1]

    learner = learner_of(pipe)
    joint = Spy(joint.features, joint.weights, joint.settings, joint.rules, joint.pool)
    placed = learner.snapshot().placed
    predictor = Predictor(learner.structure, placed, pipe.target, joint.rules)
    [batch] = structure.token_batches(docs)
    groups = np.arange(len(docs)) if groups is None else groups
    predictor.predict(batch, scores=False, threshold=None, revise=partial(joint.decode, groups))
    return taken[0]
