"""Which words speak for a span: what features contribute, put down to the words that they look at.

A feature that looks at several words together contributes to each the same share, which is its Shapley
value. What looks at no word, such as the label before or the length, is put down to none.
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.features.items import ItemTemplate
from spacy_hocrf.features.pieces import PiecesTemplate
from spacy_hocrf.features.templates import (
    AttributeTemplate,
    FlagTemplate,
    NgramTemplate,
    RealTemplate,
    Template,
)
from spacy_hocrf.features.vectors import Vectors
from spacy_hocrf.model.compiled import CompiledBatch
from spacy_hocrf.model.dense import DenseScore
from spacy_hocrf.model.placement import CompiledIndex, Placed
from spacy_hocrf.model.structure import Structure
from spacy_hocrf.types import INNER, Expectations, Potentials

__all__ = ["TextShares", "WordShares"]

PARTS = ("start", "end", "token", "inner")
Offsets = tuple[int, ...]


class WordShares:
    """Shares of words in the scores of a model.

    structure (Structure): of the model. compiled (CompiledIndex): of its features.
    weights (float64 [F]): of features, and of dense scores behind them.
    """

    def __init__(
        self, structure: Structure, compiled: CompiledIndex, weights: NDArray[np.float64]
    ) -> None:
        self._structure, self._compiled, self._weights = structure, compiled, weights

    @cached_property
    def groups(self) -> list[tuple[Offsets, Placed]]:
        """The words that features look at, as offsets from the token where they are observed; and the
        weights of those features alone.
        """
        index, scheme = self._structure.index, self._structure.scheme
        of_template = [_looks_at(template) for template in index.templates]
        of_dense = [_dense_looks_at(score) for _, score in self._structure.settings.dense]
        rows = [score.width * scheme.n_labels for _, score in self._structure.settings.dense]
        found = list[tuple[Offsets, Placed]]()
        for offsets in dict.fromkeys([*of_template, *of_dense]):
            if offsets is not None:
                mine = np.array([each == offsets for each in of_template], dtype=bool)
                dense = np.repeat([each == offsets for each in of_dense], rows).astype(bool)
                some = np.concatenate([mine[index.feature_template], dense])
                placed = self._compiled.place_weights(np.where(some, self._weights, 0.0))
                found.append((offsets, placed))
        return found

    def of_text(self, text: CompiledBatch) -> "TextShares":
        """Shares of the words of one text."""
        return TextShares(self, text)


class TextShares:
    """Shares of the words of one text."""

    def __init__(self, shares: WordShares, text: CompiledBatch) -> None:
        self._shares, self._text = shares, text

    @cached_property
    def _observed(self) -> list[tuple[Offsets, Potentials]]:
        """Potentials of the features that look at certain words, with the offsets of these."""
        return [(offsets, self._text.potentials(placed)) for offsets, placed in self._shares.groups]

    def between(self, one: Expectations, other: Expectations) -> NDArray[np.float64]:
        """The share of each word in the difference of the scores of two segmentations, in nats,
        float64 [T].

        one, other (Expectations): how often each entry of the potentials fires in them.
        """
        length = len(self._text.allowed)
        shares, differing = np.zeros(length), _differing(one, other)
        row = np.flatnonzero(one.row != other.row)
        row_token = np.searchsorted(self._text.row_offsets, row, side="right") - 1
        for offsets, potentials in self._observed:
            observed = np.zeros(length)
            for part, (tokens, labels, counts) in differing.items():
                scores = getattr(potentials, part)
                if scores is not None:
                    np.add.at(observed, tokens, scores[tokens, labels] * counts)
            counts = one.row[row] - other.row[row]
            np.add.at(observed, row_token, potentials.row_score[row] * counts)
            for offset in offsets:
                looked_at = np.arange(length) + offset
                inside = (looked_at >= 0) & (looked_at < length)
                np.add.at(shares, looked_at[inside], observed[inside] / len(offsets))
        return shares


def _differing(
    one: Expectations, other: Expectations
) -> dict[str, tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]]:
    """Tokens and labels of each part at which the counts differ, and by how much."""
    found = {}
    for part in PARTS:
        mine, theirs = getattr(one, part), getattr(other, part)
        if mine is not None and theirs is not None:
            difference = mine - theirs
            tokens, labels = np.nonzero(difference)
            found[part] = tokens, labels, difference[tokens, labels]
    return found


def _looks_at(template: Template) -> Offsets | None:
    """Offsets of the words that a template looks at, from the token where it observes them; None if it
    is not known to look at words of its own.
    """
    if template.part > INNER:
        return None
    if isinstance(template, AttributeTemplate):
        return _sorted([offset for _, offset in template.terms])
    if isinstance(template, ItemTemplate):
        offsets = [command.offset for command in template.commands if not command.absolute]
        return _sorted(offsets) if len(offsets) == template.width else None
    if isinstance(template, (FlagTemplate, RealTemplate, PiecesTemplate)):
        return (template.offset,)
    return (0,) if isinstance(template, NgramTemplate) else None


def _dense_looks_at(score: DenseScore) -> Offsets | None:
    """Offsets of the words that a dense score looks at, by default the token that it scores."""
    return (score.offset,) if isinstance(score, Vectors) else (0,)


def _sorted(offsets: Sequence[int]) -> Offsets:
    """Offsets without duplicates, ascending."""
    return tuple(sorted(set(offsets)))
