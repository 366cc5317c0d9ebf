"""The weights of dense scores, saved with the model; and the words and widths that scores had when it was
saved.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.vocab import Vocab

from spacy_hocrf.errors import Errors
from spacy_hocrf.features.saved import need
from spacy_hocrf.model.dense import n_dense
from spacy_hocrf.model.heads import learnt
from spacy_hocrf.model.scheme import LabelScheme
from spacy_hocrf.model.structure import Settings
from spacy_hocrf.saving.archive import Payload
from spacy_hocrf.saving.persistence import Section, described

__all__ = ["ScoresKeeper", "as_saved"]

MAX_WIDTH = 2**24
"""Limit on the rows of weights that a dense score can have."""


def as_saved(settings: Settings, vocab: Vocab, payload: Payload) -> Settings:
    """Return a component's settings with dense scores as they were in a saved model.

    RAISES (ValueError): H171 if the vectors have changed.
    """
    return replace(settings, scores=learnt(settings.scores, vocab, _widths(payload)))


def _widths(payload: Payload) -> Mapping[str, int]:
    """Return the number of rows of weights of each dense score of a saved model, by name; invalid entries are
    left to `ScoresKeeper.checked`.
    """
    try:
        named = payload.header["extra"]["scores"]["header"]["scores"]
        widths = {str(name): settings["width"] for name, _, settings in named}
    except (KeyError, TypeError, ValueError):
        return {}
    return {name: n for name, n in widths.items() if type(n) is int and 0 <= n < MAX_WIDTH}


class ScoresKeeper:
    """Saves the weights of dense scores, which follow those of the features, with a description of the
    scores.

    settings (Settings): settings of the model; name (str): name of the component, for errors.
    weights (Callable[[], float32 [H]]): returns the weights to save.
    """

    setting = "[components.*.model.scores]"

    def __init__(
        self, settings: Settings, name: str, weights: Callable[[], NDArray[np.float32]]
    ) -> None:
        self._settings = settings
        self._name = name
        self._weights = weights

    def saved(self) -> Section | None:
        """Return the section to save; None without dense scores."""
        if not self._settings.dense:
            return None
        return Section({"scores": self._described()}, {"weights": self._weights()})

    def checked(self, section: Section | None, scheme: LabelScheme) -> NDArray[np.float32]:
        """Return the saved weights, float32 [H].

        RAISES (ValueError): H039 for damaged data, H054 if the dense scores differ from the saved ones.
        """
        saved = [] if section is None else section.header.get("scores")
        configured = self._described()
        if saved != configured:
            difference = f"the dense scores were {saved} and are {configured}"
            raise ValueError(Errors.H054.format(difference=difference[:2000], name=self._name))
        weights = np.zeros(0) if section is None else section.arrays.get("weights", np.zeros(0))
        expected = (n_dense(self._settings.dense, scheme.n_labels),)
        need(weights.dtype.kind == "f" and weights.shape == expected, "scores.weights")
        need(np.isfinite(weights).all(), "scores.weights")
        return weights.astype(np.float32)

    def adopt(self, value: Any) -> None:
        """Do nothing: `Learner.restore` has already appended them to the weights of the features."""

    def _described(self) -> list[list[Any]]:
        """Return names, kinds and settings of the scores, in order."""
        return [
            [name, type(score).__name__, described(score, part=score.part, width=score.width)]
            for name, score in self._settings.dense
        ]
