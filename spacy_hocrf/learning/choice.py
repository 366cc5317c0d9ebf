"""The values chosen for settings that are "auto": chosen when a component is initialised, used whenever its
training continues, and saved with the model.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any

from msgspec import Meta, Struct, structs

from spacy_hocrf.model.scheme import LabelScheme
from spacy_hocrf.saving.persistence import Section
from spacy_hocrf.saving.schema import Amount, Whole

__all__ = ["Choice", "ChoiceKeeper"]


class _Header(Struct, forbid_unknown_fields=True):
    """The saved form of a choice."""

    sigma: Annotated[float, Meta(gt=0)] | None
    order: Whole | None
    documents: Amount
    wide: bool | None = None
    temperature: Annotated[float, Meta(gt=0)] | None = None


@dataclass(frozen=True)
class Choice:
    """Settings that were chosen; None for one that the config sets itself, or that is not chosen yet.

    sigma (Optional[float]), order (Optional[int]), wide (Optional[bool]): chosen by the loss on held-out
        texts.
    documents (int): number of held-out documents they were chosen by; 0 if there were too few, and they are
        defaults.
    cost (Optional[float]): cost of a span for `ExpectedF`.
    temperature (Optional[float]): temperature by which `temper` has divided the weights; None if it has not,
        or if a trainer on the whole corpus has taken a step since.
    """

    sigma: float | None = None
    order: int | None = None
    documents: int = 0
    wide: bool | None = None
    cost: float | None = None
    temperature: float | None = None


class ChoiceKeeper:
    """Saves the choice.

    choice (Callable[[], Optional[Choice]]): returns the current one; None if nothing was chosen.
    """

    setting = "[components.*.trainer]"

    def __init__(self, choice: Callable[[], Choice | None]) -> None:
        self._choice = choice

    def saved(self) -> Section | None:
        """Return the section to save; None if nothing was chosen."""
        choice = self._choice()
        if choice is None or replace(choice, documents=0) == Choice():
            return None
        settings = {name: getattr(choice, name) for name in _Header.__struct_fields__}
        return Section(settings, {})

    def checked(self, section: Section | None, scheme: LabelScheme) -> Choice | None:
        """Return the saved choice. RAISES (ValueError): H039 or H134 for an invalid section."""
        if section is None:
            return None
        return Choice(**structs.asdict(section.read("choice", _Header)))

    def adopt(self, value: Any) -> None:
        """Do nothing: `Learner.restore` has already taken the choice."""
