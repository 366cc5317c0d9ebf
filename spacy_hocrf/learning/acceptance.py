"""Saves the probability threshold above which texts are accepted unread."""

from collections.abc import Callable
from typing import Any

from msgspec import to_builtins

from spacy_hocrf.annotation.acceptance import Acceptance
from spacy_hocrf.model.scheme import LabelScheme
from spacy_hocrf.saving.persistence import Section

__all__ = ["AcceptanceKeeper"]


class AcceptanceKeeper:
    """Saves the component's `Acceptance`.

    acceptance (Callable[[], Optional[Acceptance]]): returns the current one. adopt
        (Callable[[Optional[Acceptance]], None]): takes a loaded one.
    """

    setting = "[components.*]"

    def __init__(
        self,
        acceptance: Callable[[], Acceptance | None],
        adopt: Callable[[Acceptance | None], None],
    ) -> None:
        self._acceptance, self.adopt = acceptance, adopt

    def saved(self) -> Section | None:
        """Return the section to save; None if there is no acceptance."""
        found = self._acceptance()
        return None if found is None else Section(to_builtins(found), {})

    def checked(self, section: Section | None, scheme: LabelScheme) -> Any:
        """Return the saved acceptance. RAISES (ValueError): H039 or H134 for an invalid section."""
        return None if section is None else section.read("acceptance", Acceptance)
