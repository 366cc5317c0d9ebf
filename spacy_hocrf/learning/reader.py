"""A component's decoder, with the cost that was learnt for it.

Every component has one from the start; how a cost is learnt is in cost.py, which is imported when it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spacy_hocrf.answers.decoders import AUTO, Decoder, ExpectedF, Viterbi

if TYPE_CHECKING:
    from spacy_hocrf.learning.corpus import Corpus
    from spacy_hocrf.learning.cost import LearntCost
    from spacy_hocrf.learning.learning import Learner
    from spacy_hocrf.model.scheme import LabelScheme
    from spacy_hocrf.saving.persistence import Section
    from spacy_hocrf.training.base import Run, Trainer

__all__ = ["Reader"]

FIRST = 16
"""The cost is learnt after so many steps of training, or at its end."""


class Reader:
    """A component's decoder, with the cost that was learnt for it; a keeper of the cost.

    decoder (Decoder): as the config has it. name (str): of the component, for the log.
    """

    setting = "[components.*.decoder]"

    def __init__(self, decoder: Decoder, name: str) -> None:
        self.named = decoder
        self.cost: LearntCost | None = None
        self.exact = ExpectedF()  # finds spans and their probabilities, whatever the decoder
        self._viterbi = Viterbi()
        self._reading: tuple[LearntCost, Decoder] | None = None  # with this cost
        self._name = name
        self._learnt_from: tuple[Corpus, int] | None = None  # a corpus and its size then

    def decoder(self, trainer: Trainer) -> Decoder:
        """What reads answers off the model. `Viterbi` takes the place of an `ExpectedF` without a
        cost of its own if a trainer has learnt no probabilities, but only which segmentation is best.
        """
        if not isinstance(self.named, ExpectedF) or self.named.cost != AUTO:
            return self.named
        if not trainer.probabilistic:
            return self._viterbi
        if self.cost is None:
            return self.named
        if self._reading is None or self._reading[0] is not self.cost:
            self._reading = self.cost, self.named.at(self.cost.cost)
        return self._reading[1]

    def learn(self, learner: Learner, run: Run) -> None:
        """Learn the cost after a step, if the decoder asks for it: once for a corpus, so that what
        `spacy train` keeps has it, whichever step is the best. A loaded model that adapts to a small
        corpus keeps its own.
        """
        named, kept = self.named, learner.adapts or not learner.trainer.probabilistic
        if kept or not isinstance(named, ExpectedF) or named.cost != AUTO:
            learner.folds = ()
            return
        corpus = learner.corpus, len(learner.corpus)
        due = learner.steps >= FIRST or not run.running
        if due and self._learnt_from != corpus:
            from spacy_hocrf.learning.cost import learn_cost

            self.cost = learn_cost(learner, named, self._name)
            self._learnt_from = corpus
            learner.folds = ()  # they have done their work

    def saved(self) -> Section | None:
        """None if nothing was learnt."""
        from msgspec import to_builtins

        from spacy_hocrf.saving.persistence import Section

        return None if self.cost is None else Section(to_builtins(self.cost), {})

    def checked(self, section: Section | None, scheme: LabelScheme) -> LearntCost | None:
        """The cost. RAISES (ValueError): H039 or H134 for what is none."""
        from spacy_hocrf.learning.cost import LearntCost

        return None if section is None else section.read("cost", LearntCost)

    def adopt(self, value: Any) -> None:
        """Use this cost; None for the default."""
        self.cost = value
        self._learnt_from = None
