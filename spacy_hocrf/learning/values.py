"""Saves single values of a component, such as the threshold above which texts are accepted unread."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct, to_builtins

from spacy_hocrf.annotation.acceptance import Probability
from spacy_hocrf.model.scheme import LabelScheme
from spacy_hocrf.saving.persistence import Section

__all__ = ["ThresholdSet", "ValueKeeper"]


class ThresholdSet(Struct, forbid_unknown_fields=True):
    """A threshold of spans that was set later.

    before (Optional[float]): that of the config, which the component was made with.
    after (Optional[float]): the one that is used instead.
    """

    before: Probability | None
    after: Probability | None


class ValueKeeper:
    """Saves a value, a `msgspec.Struct`, in a section of its own.

    name (str): name of the section. shape (Any): type of the value.
    value (Callable[[], Any]): returns the current value; None if there is nothing to save.
    adopt (Callable[[Any], None]): takes a loaded one; None if none was saved.
    """

    setting = "[components.*]"

    def __init__(
        self, name: str, shape: Any, value: Callable[[], Any], adopt: Callable[[Any], None]
    ) -> None:
        self._name, self._shape, self._value, self.adopt = name, shape, value, adopt

    def saved(self) -> Section | None:
        """Return the section to save; None if there is no value."""
        value = self._value()
        return None if value is None else Section(to_builtins(value), {})

    def checked(self, section: Section | None, scheme: LabelScheme) -> Any:
        """Return the saved value. RAISES (ValueError): H039 or H134 for an invalid section."""
        return None if section is None else section.read(self._name, self._shape)
