"""The learnt prices of a component's rules.

Every component has a `RulePrices` from the start; learning them (prices.py) is imported when it is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spacy_hocrf.learning.learnt_decoder import STEPS_BEFORE_LEARNING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from spacy_hocrf.learning.corpus import Corpus
    from spacy_hocrf.learning.learning import Learner
    from spacy_hocrf.model.scheme import LabelScheme
    from spacy_hocrf.rules.constraints import Constraints
    from spacy_hocrf.saving.persistence import Section
    from spacy_hocrf.training.base import Run

__all__ = ["RulePrices"]


class RulePrices:
    """Learnt prices by rule name, which it also saves.

    constraints (Callable[[], Constraints]): returns the current constraints.
    name (str): name of the component, for the log.
    """

    setting = "[components.*.constraints.rules]"

    def __init__(self, constraints: Callable[[], Constraints], name: str) -> None:
        self._constraints = constraints
        self.learnt: Mapping[str, float] = {}
        self._name = name
        self._learnt_from: tuple[Corpus, int] | None = None  # a corpus and its size at that time

    def learn(self, learner: Learner, run: Run) -> None:
        """Learn prices after a step, if any are to be learnt: once per corpus, like the decoder's cost. A
        loaded model that is adapted to a small corpus keeps its prices.
        """
        constraints = self._constraints()
        if not constraints.learnt or learner.adapts:
            return
        corpus_and_size = learner.corpus, len(learner.corpus)
        is_due = learner.steps >= STEPS_BEFORE_LEARNING or not run.running
        if is_due and self._learnt_from != corpus_and_size:
            from spacy_hocrf.learning.prices import learn_prices

            self.learnt = learn_prices(learner, constraints, self._name)
            self._learnt_from = corpus_and_size

    def saved(self) -> Section | None:
        """Return the section to save; None if nothing was learnt."""
        if not self.learnt:
            return None
        from spacy_hocrf.learning.prices import prices_section

        return prices_section(self.learnt)

    def checked(self, section: Section | None, scheme: LabelScheme) -> dict[str, float] | None:
        """Return the saved prices. RAISES (ValueError): H039 or H134 for an invalid section."""
        from spacy_hocrf.learning.prices import saved_prices

        return None if section is None else saved_prices(section)

    def adopt(self, value: Any) -> None:
        """Use these prices; None if nothing was learnt."""
        self.learnt = value or {}
        self._learnt_from = None
