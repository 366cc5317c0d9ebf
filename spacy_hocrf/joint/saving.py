"""The weights of joint features, kept with the model that they were learnt beside."""

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
    """What is saved beside the weights."""

    templates: dict[str, Any]  # what each means
    names: list[str]  # of the features


class JointWeightsKeeper:
    """Saves weights by the names of their features, with what the features mean.

    templates (Sequence[JointTemplate]): of the component.
    name (str): of the component, for errors.
    weights (Callable[[], float64 [G]]): the weights to save.
    adopt (Callable[[Mapping[str, float]], None]): takes loaded weights, by the names of the features.
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
        """Section with the weights; None without templates."""
        if not self._templates:
            return None
        header = {"templates": self._described(), "names": list(self._features().names)}
        weights = self._weights()
        return Section(header, {"weights": np.where(np.isinf(weights), 0.0, weights)})

    def checked(self, section: Section | None, scheme: LabelScheme) -> dict[str, float]:
        """Weights by the names of the features; {} for a model saved without joint features.

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
        """Use these weights; None for those that the templates begin with."""
        self._adopt(value or {})

    def _described(self) -> dict[str, Any]:
        """Names of the features; not the weight that they begin with."""
        meaning = {
            template.name: described(template, outside=template.outside, weight=None)
            for template in self._templates
        }
        return meaning
