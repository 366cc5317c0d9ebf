"""How the weights of global features are learnt: on top of local scores, of models that have not
seen the documents.

The corpus' documents are divided, by groups, and every part is scored by a model that is trained on
the others with the component's own settings, for as many steps as its own model has had. What must
be decoded together in one part is a task of the global trainer.
"""

from dataclasses import dataclass, replace

import numpy as np

from spacy_hocrf.graph.learning import Task
from spacy_hocrf.joint.connected import Connected, connected_documents
from spacy_hocrf.joint.cross_fitting import cross_fitted
from spacy_hocrf.joint.decoding import DualDecomposition
from spacy_hocrf.joint.features import GlobalFeatures
from spacy_hocrf.joint.tasks import JointTask
from spacy_hocrf.joint.trainers import GlobalTrainer, LearntWeights
from spacy_hocrf.pipeline.annotation import constrain
from spacy_hocrf.pipeline.corpus import Corpus
from spacy_hocrf.pipeline.learning import Learner

__all__ = ["GlobalLearning", "is_due"]

FIRST, FACTOR = 16, 4


def is_due(steps: int, running: bool) -> bool:
    """Are the global weights to be learnt after so many steps of the local training?

    At its end, and for loops that stop before it after 16, 64, 256, … steps: all of them cost
    little more than the last.
    """
    goal = FIRST
    while goal < steps:
        goal *= FACTOR
    return not running or steps == goal


@dataclass(frozen=True)
class GlobalLearning:
    """Settings of the component.

    trainer (GlobalTrainer): how weights are learnt.
    features (GlobalFeatures): whose weights.
    decoder (DualDecomposition): how documents are decoded; here without local search, for speed.
    """

    trainer: GlobalTrainer
    features: GlobalFeatures
    decoder: DualDecomposition

    def learn(self, learner: Learner) -> LearntWeights | None:
        """Learn the weights from a corpus.

        learner (Learner): has the corpus, and the local settings; it is left as it is.
        RETURNS (Optional[LearntWeights]): None if fewer than two groups have anything that a global
            feature looks at.
        """
        groups, _ = connected_documents(
            learner.corpus, self.features, most=self.decoder.max_group_tokens
        )
        if len(groups) < 2:
            return None
        decoder = replace(self.decoder, local_search=False)  # a violation need not be the largest
        tasks: list[Task] = []
        members = [[document for part in group for document in part.documents] for group in groups]
        folds, seed = self.trainer.folds, self.trainer.seed
        for model, unseen in cross_fitted(
            learner, members, folds=folds, seed=seed, steps=learner.steps
        ):
            assert model.scheme.names == self.features.scheme.names
            for number in unseen:
                tasks += (
                    self._task(model, learner.corpus, part, decoder) for part in groups[number]
                )
        return self.trainer.learn(tasks, len(self.features.names))

    def _task(
        self, model: Learner, corpus: Corpus, part: Connected, decoder: DualDecomposition
    ) -> JointTask:
        """One task, with the local scores of this model."""
        tokens = corpus.batch(part.documents)
        allowed = model.structure.allowed(tokens)
        compiled = model.structure.compile(model.structure.observe(tokens), allowed)
        pieces = np.split(allowed, tokens.offsets[1:-1])
        bits = [
            constrain(model.scheme, piece, document.annotation)
            for piece, document in zip(pieces, part.documents)
        ]
        potentials = compiled.potentials(model.snapshot().placed)
        n_features = len(self.features.names)
        return JointTask(
            part.problem, potentials, model.automaton, np.concatenate(bits), decoder, n_features
        )
