"""Word attributions: how much each word contributes to a span, computed from the features that look at it.

The contribution of a feature that looks at several words is shared equally between them, which is its Shapley
value. Contributions that depend on no word, such as the previous label or the length, are left out.
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
from spacy_hocrf.model.placement import CompiledIndex, Placed
from spacy_hocrf.model.structure import Structure
from spacy_hocrf.types import INNER, Expectations, Potentials

__all__ = ["TextShares", "WordShares"]

TOKEN_PARTS = ("start", "end", "token", "inner")
Offsets = tuple[int, ...]


class WordShares:
    """Attributes the scores of a model to words.

    structure (Structure): the model's structure. compiled (CompiledIndex): its compiled features.
    weights (float64 [F]): weights of the features, followed by those of the dense scores.
    """

    def __init__(
        self, structure: Structure, compiled: CompiledIndex, weights: NDArray[np.float64]
    ) -> None:
        self._structure, self._compiled, self._weights = structure, compiled, weights

    @cached_property
    def groups(self) -> list[tuple[Offsets, Placed]]:
        """The sets of words that features look at, as offsets from the token where they are observed; each
        with the weights of just those features.
        """
        index, scheme = self._structure.index, self._structure.scheme
        of_template = [_looks_at(template) for template in index.templates]
        dense = [score for _, score in self._structure.settings.dense]
        # a dense score looks at the token that it scores, unless it has an offset
        of_dense = [(each.offset if isinstance(each, Vectors) else 0,) for each in dense]
        rows = [each.width * scheme.n_labels for each in dense]
        groups = list[tuple[Offsets, Placed]]()
        for offsets in dict.fromkeys([*of_template, *of_dense]):
            if offsets is not None:
                # which weights belong to a template or a dense score that looks at just these words
                template_fits = np.array([own == offsets for own in of_template], dtype=bool)
                dense_fits = np.repeat([own == offsets for own in of_dense], rows).astype(bool)
                fits = np.concatenate([template_fits[index.feature_template], dense_fits])
                placed = self._compiled.place_weights(np.where(fits, self._weights, 0.0))
                groups.append((offsets, placed))
        return groups


class TextShares:
    """Attributes scores to the words of one text."""

    def __init__(self, shares: WordShares, text: CompiledBatch) -> None:
        self._shares, self._text = shares, text

    @cached_property
    def _observed(self) -> list[tuple[Offsets, Potentials]]:
        """For each set of offsets, the potentials of the features that look at these words."""
        return [(offsets, self._text.potentials(placed)) for offsets, placed in self._shares.groups]

    def between(self, one: Expectations, other: Expectations) -> NDArray[np.float64]:
        """Return each word's share in the score difference of two segmentations, in nats, float64 [T].

        one, other (Expectations): how often each entry of the potentials fires in each of them.
        """
        length = len(self._text.allowed)
        shares, differing = np.zeros(length), _differing(one, other)
        row = np.flatnonzero(one.row != other.row)
        row_token = np.searchsorted(self._text.row_offsets, row, side="right") - 1
        for offsets, potentials in self._observed:
            # difference of the scores that are observed at each token
            observed = np.zeros(length)
            for part, (tokens, labels, counts) in differing.items():
                scores = getattr(potentials, part)
                if scores is not None:
                    np.add.at(observed, tokens, scores[tokens, labels] * counts)
            counts = one.row[row] - other.row[row]
            np.add.at(observed, row_token, potentials.row_score[row] * counts)
            # each of these words gets an equal share
            for offset in offsets:
                looked_at = np.arange(length) + offset
                inside = (looked_at >= 0) & (looked_at < length)
                np.add.at(shares, looked_at[inside], observed[inside] / len(offsets))
        return shares


def _differing(
    one: Expectations, other: Expectations
) -> dict[str, tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]]:
    """Return, for each part, the tokens and labels whose counts differ, and the differences."""
    differences = {}
    for part in TOKEN_PARTS:
        counts, other_counts = getattr(one, part), getattr(other, part)
        if counts is not None and other_counts is not None:
            difference = counts - other_counts
            tokens, labels = np.nonzero(difference)
            differences[part] = tokens, labels, difference[tokens, labels]
    return differences


def _looks_at(template: Template) -> Offsets | None:
    """Return the offsets of the words that a template looks at, relative to the token where it observes them;
    None if it looks at no word or is of an unknown type.
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


def _sorted(offsets: Sequence[int]) -> Offsets:
    """Sort offsets and remove duplicates."""
    return tuple(sorted(set(offsets)))
