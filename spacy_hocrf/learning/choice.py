"""What "auto" has come to mean in a component's settings: chosen when it is initialised, used whenever
its training goes on, and kept with the model.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any

from msgspec import Meta, Struct, to_builtins

from spacy_hocrf.model.scheme import LabelScheme
from spacy_hocrf.saving.persistence import Section
from spacy_hocrf.saving.schema import Amount, Whole

__all__ = ["Choice", "ChoiceKeeper"]


class _Header(Struct, forbid_unknown_fields=True):
    """A choice, as a model is saved with it."""

    sigma: Annotated[float, Meta(gt=0)] | None
    order: Whole | None
    documents: Amount
    wide: bool | None = None
    temperature: Annotated[float, Meta(gt=0)] | None = None


@dataclass(frozen=True)
class Choice:
    """Settings that were chosen; None for one that the config names itself, or that is still to be chosen.

    sigma (Optional[float]), order (Optional[int]), wide (Optional[bool]): by the loss of texts held back.
    documents (int): that decided on these; 0 if there were too few, and they are defaults.
    cost (Optional[float]): of `ExpectedF`.
    temperature (Optional[float]): by which `temper` has divided all scores; None if it has not, or if a
        trainer of the whole corpus has taken a step since.
    """

    sigma: float | None = None
    order: int | None = None
    documents: int = 0
    wide: bool | None = None
    cost: float | None = None
    temperature: float | None = None


class ChoiceKeeper:
    """Saves the choice.

    choice (Callable[[], Optional[Choice]]): as it is; None if nothing was chosen.
    """

    setting = "[components.*.trainer]"

    def __init__(self, choice: Callable[[], Choice | None]) -> None:
        self._choice = choice

    def saved(self) -> Section | None:
        """None if nothing was chosen."""
        choice = self._choice()
        if choice is None or replace(choice, documents=0) == Choice():
            return None
        settings = choice.sigma, choice.order, choice.documents, choice.wide, choice.temperature
        return Section(to_builtins(_Header(*settings)), {})

    def checked(self, section: Section | None, scheme: LabelScheme) -> Choice | None:
        """The choice. RAISES (ValueError): H039 or H134 for what is none."""
        if section is None:
            return None
        saved = section.read("choice", _Header)
        settings = saved.sigma, saved.order, saved.documents
        return Choice(*settings, wide=saved.wide, temperature=saved.temperature)

    def adopt(self, value: Any) -> None:
        """Nothing: `Learner.restore` has taken it."""
