"""What "auto" has come to mean in a component's settings: chosen when it is initialised, used whenever
its training goes on, and kept with the model.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta, Struct, to_builtins

from spacy_hocrf.model.scheme import LabelScheme
from spacy_hocrf.saving.persistence import Section
from spacy_hocrf.saving.schema import Amount, Whole
from spacy_hocrf.types import LabelPattern

__all__ = ["Choice", "ChoiceKeeper"]


class _Header(Struct, forbid_unknown_fields=True):
    """A choice without its patterns, as a model is saved with it."""

    sigma: Annotated[float, Meta(gt=0)] | None
    order: Whole | None
    documents: Amount


@dataclass(frozen=True)
class Choice:
    """Settings that were chosen; None for one that the config names itself."""

    sigma: float | None
    order: int | None
    documents: int  # that decided; 0 if there were too few, and these are defaults
    # of two or more labels, where they are selected; the model itself keeps them
    patterns: tuple[LabelPattern, ...] = ()


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
        if choice is None or (choice.sigma is None and choice.order is None):
            return None
        header = _Header(choice.sigma, choice.order, choice.documents)
        return Section(to_builtins(header), {})

    def checked(self, section: Section | None, scheme: LabelScheme) -> Choice | None:
        """The choice. RAISES (ValueError): H039 or H134 for what is none."""
        if section is None:
            return None
        saved = section.read("choice", _Header)
        return Choice(saved.sigma, saved.order, saved.documents)

    def adopt(self, value: Any) -> None:
        """Nothing: `Learner.restore` has taken it."""
