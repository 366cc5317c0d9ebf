"""The weights of dense scores, kept with the model that they were learnt in."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.errors import Errors
from spacy_hocrf.model.dense import n_dense
from spacy_hocrf.model.scheme import LabelScheme
from spacy_hocrf.model.structure import Settings
from spacy_hocrf.pipeline.persistence import Section, described

__all__ = ["ScoresKeeper"]


class ScoresKeeper:
    """Saves the weights behind those of the features, with what the scores are.

    settings (Settings): of the model; name (str): of the component, for errors.
    weights (Callable[[], float32 [H]]): the weights to save.
    """

    setting = "[components.*.model.scores]"

    def __init__(
        self, settings: Settings, name: str, weights: Callable[[], NDArray[np.float32]]
    ) -> None:
        self._settings = settings
        self._name = name
        self._weights = weights

    def saved(self) -> Section | None:
        """None without dense scores."""
        if not self._settings.scores:
            return None
        return Section({"scores": self._described()}, {"weights": self._weights()})

    def checked(self, section: Section | None, scheme: LabelScheme) -> NDArray[np.float32]:
        """The weights, float32 [H].

        RAISES (ValueError): H039 for damaged data, H054 for other dense scores than the saved ones.
        """
        before = [] if section is None else section.header.get("scores")
        now = self._described()
        if before != now:
            difference = f"the dense scores were {before} and are {now}"
            raise ValueError(Errors.H054.format(difference=difference[:2000], name=self._name))
        weights = np.zeros(0) if section is None else section.arrays.get("weights", np.zeros(0))
        expected = (n_dense(self._settings.scores, scheme.n_labels),)
        sound = weights.dtype.kind == "f" and weights.shape == expected
        if not sound or not np.isfinite(weights).all():
            raise ValueError(Errors.H039.format(name="scores.weights"))
        return weights.astype(np.float32)

    def adopt(self, value: Any) -> None:
        """Nothing: `Learner.restore` has put them behind the weights of the features."""

    def _described(self) -> list[list[Any]]:
        """Names, kinds and settings, in order."""
        return [
            [name, type(score).__name__, described(score, part=score.part, width=score.width)]
            for name, score in self._settings.scores
        ]
