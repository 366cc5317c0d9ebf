"""Saves the weights of joint features with the model."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from spacy_hocrf.errors import Errors
from spacy_hocrf.joint.features import JointFeatures
from spacy_hocrf.joint.templates import HEAVIEST, JointTemplate
from spacy_hocrf.model.scheme import LabelScheme
from spacy_hocrf.saving.persistence import Section, described, differences

__all__ = ["JointWeightsKeeper"]


class _Header(Struct, forbid_unknown_fields=True):
    """Metadata saved besides the weights."""

    templates: dict[str, Any]  # meaning of each template, by name
    names: list[str]  # names of the features


class JointWeightsKeeper:
    """Saves weights by the names of their features, together with the features' meaning.

    templates (Sequence[JointTemplate]): templates of the component.
    name (str): name of the component, for errors.
    weights (Callable[[], float64 [G]]): returns the weights to save.
    adopt (Callable[[Mapping[str, float]], None]): receives loaded weights, by the names of the features.
    """

    setting = "[components.*.joint]"

    def __init__(
        self,
        templates: Sequence[JointTemplate],
        name: str,
        features: Callable[[], JointFeatures],
        weights: Callable[[], NDArray[np.float64]],
        adopt: Callable[[Mapping[str, float]], None],
    ) -> None:
        self._templates = templates
        self._name = name
        self._features = features
        self._weights = weights
        self._adopt = adopt

    def saved(self) -> Section | None:
        """Return a section with the weights; None without templates."""
        if not self._templates:
            return None
        header = {"templates": self._described(), "names": list(self._features().names)}
        weights = self._weights()
        return Section(header, {"weights": np.where(np.isinf(weights), 0.0, weights)})

    def checked(self, section: Section | None, scheme: LabelScheme) -> dict[str, float]:
        """Check a loaded section, and return weights by feature name; {} if saved without joint features.

        RAISES (ValueError): H039 or H134 for damaged data, H103 for other templates than the saved ones.
        """
        if section is None:
            return {}
        header = section.read("joint", _Header, ["weights"])
        changes = differences(header.templates, self._described(), "template ")
        if changes:
            raise ValueError(Errors.H103.format(difference="; ".join(changes), name=self._name))
        names, weights = header.names, section.arrays["weights"]
        if names != list(JointFeatures(tuple(self._templates), scheme).names):
            raise ValueError(Errors.H039.format(name="joint.names"))
        if weights.shape != (len(names),) or not (np.abs(weights) <= HEAVIEST).all():
            raise ValueError(Errors.H039.format(name="joint.weights"))
        return dict(zip(names, weights.tolist()))

    def adopt(self, value: Any) -> None:
        """Use these weights; None for the initial weights of the templates."""
        self._adopt(value or {})

    def _described(self) -> dict[str, Any]:
        """Meaning of the templates, apart from their initial weights."""
        meaning = {
            template.name: described(template, outside=template.outside, weight=None)
            for template in self._templates
        }
        return meaning
