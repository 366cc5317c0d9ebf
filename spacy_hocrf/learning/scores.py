"""The weights of dense scores, kept with the model that they were learnt in; and what scores know of
words, when training begins and when a model is loaded.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_hocrf.errors import Errors
from spacy_hocrf.model.dense import n_dense
from spacy_hocrf.model.heads import learning_from, learnt
from spacy_hocrf.model.scheme import LabelScheme
from spacy_hocrf.model.structure import Settings
from spacy_hocrf.saving.archive import Payload
from spacy_hocrf.saving.persistence import Section, described

__all__ = ["ScoresKeeper", "as_saved", "looking_at"]

WIDEST = 2**24
"""Rows of weights that a dense score can have at most."""


def looking_at(settings: Settings, doc: Doc) -> Settings:
    """A component's settings, its dense scores told what there is for words.

    doc (Doc): a training text with tokens.
    RAISES (ValueError): as `features.vectors.Vectors.learning_from`.
    """
    return replace(settings, scores=learning_from(settings.scores, doc))


def as_saved(settings: Settings, vocab: Vocab, payload: Payload) -> Settings:
    """A component's settings, its dense scores as they were in a saved model.

    RAISES (ValueError): H171 if there are other vectors now.
    """
    return replace(settings, scores=learnt(settings.scores, vocab, _widths(payload)))


def _widths(payload: Payload) -> Mapping[str, int]:
    """How many rows of weights each dense score of a saved model has, by name; anything else that
    may be there is left to `ScoresKeeper.checked`.
    """
    try:
        named = payload.header["extra"]["scores"]["header"]["scores"]
        widths = {str(name): settings["width"] for name, _, settings in named}
    except (KeyError, TypeError, ValueError):
        return {}
    return {name: width for name, width in widths.items() if _is_width(width)}


def _is_width(found: Any) -> bool:
    return type(found) is int and 0 <= found < WIDEST


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
        if not self._settings.dense:
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
        expected = (n_dense(self._settings.dense, scheme.n_labels),)
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
            for name, score in self._settings.dense
        ]
