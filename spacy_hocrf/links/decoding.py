"""How links are decided: the settings of the decoder, and the pairs that it has found."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.graph.dual import dual_decompose
from spacy_hocrf.graph.result import Decoding
from spacy_hocrf.graph.settings import DualSettings
from spacy_hocrf.links.grid import Grid
from spacy_hocrf.links.one_each import OneEach

__all__ = ["FoundLinks", "LinkDecoder", "links_by_doc"]


@dataclass(frozen=True, kw_only=True)
class LinkDecoder(DualSettings):
    """`spacy-hocrf.LinkDecoder.v1`: how the links of a thread are decided (Qian and Liu, TACL 2
    (2014) §3). The spanning forest is the grid's rows, as in the paper; where each source has one link
    at most, the decoder chooses it.

    trace (bool): is `doc._.hocrf_links_trace` set: the lowest bound and the highest score so far,
        after each iteration?
    All other settings are those of `DualSettings`.
    RAISES (ValueError): H087 for an unknown word, H088 for a number out of range.
    """

    max_iterations: int = 200
    trace: bool = False

    def decode(
        self, grid: Grid, tables: tuple[NDArray[np.float64], ...], one_each: bool
    ) -> Decoding:
        """The best states of the vertices that were found, and a bound of all.

        tables (tuple of float64 [n, P]): as `Grid.instance` has them.
        one_each (bool): is one vertex on at most of each source?
        """
        if one_each:
            rows = OneEach(grid)
            found = dual_decompose(rows.instance(tables), self)
            return replace(found, assignment=rows.on(found.assignment))
        instance = grid.instance(tables)
        return dual_decompose(
            instance, self, edges=grid.row_edges if len(instance.weights) else None
        )


class FoundLinks(NamedTuple):
    """The links of one Doc, and what is proved of those of its thread."""

    links: list[tuple[int, int]]  # item and target, as `extensions` has them
    gap: float  # nats
    certificate: bool
    trace: Sequence[tuple[float, float]] | None  # bound and score by iteration


def links_by_doc(
    source: NDArray[np.int64], target: NDArray[np.int64], firsts: NDArray[np.int64]
) -> list[list[tuple[int, int]]]:
    """Linked items of a thread as pairs of each Doc, counted from its first item."""
    doc = np.searchsorted(firsts, source, side="right") - 1
    pairs = np.stack([source, target], axis=1) - firsts[doc][:, None]
    found: list[list[tuple[int, int]]] = [[] for _ in range(len(firsts) - 1)]
    for number, (i, j) in zip(doc.tolist(), pairs.tolist()):
        found[number].append((i, j))
    return found
