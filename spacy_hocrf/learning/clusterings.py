"""The clusters of words that features read, kept with the model: it needs neither the vectors that
they were made of nor the file that they were read from.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.errors import Errors
from spacy_hocrf.features.clustering import Clustering
from spacy_hocrf.features.clusters import ClusterTemplate
from spacy_hocrf.features.templates import Template
from spacy_hocrf.model.scheme import LabelScheme
from spacy_hocrf.saving.archive import Payload
from spacy_hocrf.saving.persistence import Section

__all__ = ["ClusteringsKeeper", "with_saved"]

SECTION = "clusters"


def with_saved(templates: Iterable[Template], payload: Payload) -> tuple[Template, ...]:
    """A component's templates, with the clusterings that a saved model has for their settings; those that
    it has none for are left to the checks of what was saved.

    RAISES (ValueError): H039 for a damaged clustering.
    """
    names = _names(payload)
    made: dict[str, Clustering] = {}
    found = list[Template]()
    for template in templates:
        if isinstance(template, ClusterTemplate):
            name = names.get(repr(template.place), "")
            if name and name not in made:
                made[name] = Clustering.from_arrays(_arrays(payload, name), len(template.sizes))
            template = template.knowing(made.get(name))
        found.append(template)
    return tuple(found)


class ClusteringsKeeper:
    """Saves each clustering once.

    templates (Sequence[Template]): of the component, as they are or as `with_saved` gives them.
    """

    setting = "[components.*.model.features]"

    def __init__(self, templates: Sequence[Template]) -> None:
        self._templates = [each for each in templates if isinstance(each, ClusterTemplate)]

    def saved(self) -> Section | None:
        """None without templates that read clusters."""
        if not self._templates:
            return None
        clusterings = {each.place: each.clustering for each in self._templates}
        arrays = {
            f"{number}.{name}": array
            for number, clustering in enumerate(clusterings.values())
            if clustering is not None
            for name, array in clustering.arrays().items()
        }
        return Section(
            {"clusterings": [[source, [*sizes]] for source, sizes in clusterings]}, arrays
        )

    def checked(self, section: Section | None, scheme: LabelScheme) -> None:
        """RAISES (ValueError): H039 if a template has no clustering."""
        if any(each.clustering is None for each in self._templates):
            raise ValueError(Errors.H039.format(name=SECTION))

    def adopt(self, value: Any) -> None:
        """Nothing: the templates have them."""


def _names(payload: Payload) -> dict[str, str]:
    """What the arrays of each clustering are named by; anything else that may be there is passed over."""
    try:
        clusterings = payload.header["extra"][SECTION]["header"]["clusterings"]
        return {repr((source, (*sizes,))): f"{i}" for i, (source, sizes) in enumerate(clusterings)}
    except (KeyError, TypeError, ValueError):
        return {}


def _arrays(payload: Payload, name: str) -> dict[str, NDArray[Any]]:
    prefix = f"{SECTION}.{name}."
    arrays = payload.arrays.items()
    return {key.removeprefix(prefix): np.asarray(a) for key, a in arrays if key.startswith(prefix)}
