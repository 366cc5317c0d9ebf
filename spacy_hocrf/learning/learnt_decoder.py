"""A component's decoder, and what is learnt for it.

Every component has a `LearntDecoder` from the start; learning a cost (cost.py) and reranking (reranking.py)
are imported when they are needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spacy_hocrf.answers.decoders import Decoder, ExpectedF, Reranked
from spacy_hocrf.types import AUTO

if TYPE_CHECKING:
    from spacy_hocrf.answers.whole_readings import Reranker
    from spacy_hocrf.learning.corpus import Corpus
    from spacy_hocrf.learning.cost import LearntCost
    from spacy_hocrf.learning.learning import Learner
    from spacy_hocrf.model.scheme import LabelScheme
    from spacy_hocrf.saving.persistence import Section
    from spacy_hocrf.training.base import Run

__all__ = ["LearntDecoder"]

STEPS_BEFORE_LEARNING = 16
"""Number of training steps after which costs, rerankers and prices are learnt, if training is so long."""


class LearntDecoder:
    """A component's decoder with the cost or reranker learnt for it, which it also saves.

    decoder (Decoder): the decoder of the config. name (str): name of the component, for the log.
    """

    setting = "[components.*.decoder]"

    def __init__(self, decoder: Decoder, name: str) -> None:
        self.configured = decoder
        has_auto_cost = isinstance(decoder, ExpectedF) and decoder.cost == AUTO
        self._learns = has_auto_cost or isinstance(decoder, Reranked)
        self.learnt: LearntCost | Reranker | None = None
        self.exact = ExpectedF()  # finds spans and their probabilities, whatever the decoder
        self._cached: tuple[LearntCost | Reranker, Decoder] | None = None  # of `current`
        self._name = name
        self._learnt_from: tuple[Corpus, int] | None = None  # a corpus and its size at that time

    @property
    def cost(self) -> float | None:
        """The learnt cost; None if there is none."""
        cost: float | None = getattr(self.learnt, "cost", None)
        return cost

    @property
    def current(self) -> Decoder:
        """The decoder, with what was learnt for it."""
        if self.learnt is None or not self._learns:
            return self.configured
        if self._cached is None or self._cached[0] is not self.learnt:
            self._cached = self.learnt, self._with(self.learnt)
        return self._cached[1]

    def learn(self, learner: Learner, run: Run) -> None:
        """Learn what the decoder needs, after a step: once per corpus, early enough that `spacy train` saves
        it whichever step is best. A loaded model that is adapted to a small corpus keeps what it has.
        """
        if learner.adapts or not self._learns:
            learner.folds = ()
            return
        corpus_and_size = learner.corpus, len(learner.corpus)
        is_due = learner.steps >= STEPS_BEFORE_LEARNING or not run.running
        if is_due and self._learnt_from != corpus_and_size:
            self.learnt = self._learn(learner)
            self._learnt_from = corpus_and_size
            learner.folds = ()  # no longer needed

    def saved(self) -> Section | None:
        """Return the section to save; None if nothing was learnt."""
        if self.learnt is None:
            return None
        from msgspec import to_builtins

        from spacy_hocrf.learning.cost import LearntCost
        from spacy_hocrf.learning.reranking import section_of
        from spacy_hocrf.saving.persistence import Section

        if isinstance(self.learnt, LearntCost):
            return Section(to_builtins(self.learnt), {})
        return section_of(self.learnt)

    def checked(self, section: Section | None, scheme: LabelScheme) -> LearntCost | Reranker | None:
        """Return what was saved. RAISES (ValueError): H039 or H134 for an invalid section."""
        from spacy_hocrf.learning.cost import LearntCost
        from spacy_hocrf.learning.reranking import checked_reranker

        if section is None:
            return None
        if "attribute" in section.header:
            return checked_reranker(section)
        return section.read("cost", LearntCost)

    def adopt(self, value: Any) -> None:
        """Use what was learnt before; None for the default."""
        self.learnt = value
        self._learnt_from = None

    def temper(self, temperature: float) -> None:
        """Adjust the reranker to scores that have been divided by a temperature."""
        from spacy_hocrf.answers.whole_readings import Reranker

        if isinstance(self.learnt, Reranker):
            self.learnt = self.learnt.tempered(temperature)

    def _learn(self, learner: Learner) -> LearntCost | Reranker | None:
        if isinstance(self.configured, Reranked):
            from spacy_hocrf.learning.reranking import learn_reranker

            return learn_reranker(learner, self.configured, self._name)
        from spacy_hocrf.learning.cost import learn_cost

        assert isinstance(self.configured, ExpectedF)
        return learn_cost(learner, self.configured, self._name)

    def _with(self, learnt: LearntCost | Reranker) -> Decoder:
        """Return the decoder with what was learnt; unchanged if that belongs to another decoder."""
        from spacy_hocrf.learning.cost import LearntCost

        decoder = self.configured
        if isinstance(learnt, LearntCost):
            return decoder.at(learnt.cost) if isinstance(decoder, ExpectedF) else decoder
        return decoder.by(learnt) if isinstance(decoder, Reranked) else decoder
