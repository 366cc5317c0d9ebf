"""Clusters of words: `spacy-hocrf.Clusters.v1`.

Which cluster a word is in follows from the word alone, so that a plan finds what is observed of it with
all else that does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.errors import Errors
from spacy_hocrf.features.clustering import NONE, VECTORS, Clustering, make_clustering, read_paths
from spacy_hocrf.features.columns import spread
from spacy_hocrf.features.config import check_offsets, check_order, checked_parts
from spacy_hocrf.features.errors import ClusterErrors
from spacy_hocrf.features.templates import Events, Observing, Template, template_name
from spacy_hocrf.features.tokens import TokenBatch, check_attribute
from spacy_hocrf.types import TOKEN

if TYPE_CHECKING:
    from spacy.strings import StringStore
    from spacy.vocab import Vocab

__all__ = ["ClusterTemplate", "make_clusters", "with_clusterings"]

Place = tuple[str, tuple[int, ...]]
"""Source and sizes of a clustering."""

SIZES = (50, 200, 1000)
"""Numbers of clusters of word vectors."""
MOST_CLUSTERS = 2**16
BITS = (4, 6, 10, 20)
"""Of paths: the lengths that Ratinov and Roth (CoNLL 2009) have taken."""
MOST_BITS = 30


@dataclass(frozen=True)
class ClusterTemplate(Observing):
    """The cluster of a word, at one granularity; see `make_clusters`."""

    source: str
    sizes: tuple[int, ...]  # of the clustering
    granularity: int  # place among them
    attribute: str
    offset: int
    part: int = TOKEN
    order: int = 0
    width: int = 1

    @property
    def name(self) -> str:
        size = self.sizes[self.granularity]
        text = f"{Path(self.source).stem}/{size}:{self.attribute}[{self.offset}]"
        return template_name(text, self.part, self.order)

    @property
    def attributes(self) -> tuple[str, ...]:
        return (self.attribute,)

    @property
    def place(self) -> Place:
        """Source and sizes that its clustering is made from."""
        return self.source, self.sizes

    @property
    def clustering(self) -> Clustering | None:
        """The clusters of words; None before training, and in a model that was saved without."""
        return getattr(self, "_clustering", None)

    def knowing(self, clustering: Clustering | None) -> ClusterTemplate:
        """A copy of the template with another clustering."""
        bound = replace(self)
        object.__setattr__(bound, "_clustering", clustering)
        return bound

    def clusters(self, words: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Clusters of words, uint64 [V]; NONE for words without one."""
        assert self.clustering is not None
        return self.clustering.clusters(words, self.granularity)

    def events(self, batch: TokenBatch) -> Events:
        """Clusters of words inside the Doc; of words without one, that, at the first granularity."""
        words, codes = batch.distinct(self.attribute)
        numbers = self.clusters(words).astype(np.int32)
        found = spread(numbers, -1, codes, batch.offsets, self.offset)
        some = found >= 0 if self.granularity == 0 else found > NONE
        return Events(np.flatnonzero(some), found[some].astype(np.uint64).reshape(-1, 1))

    def describe(self, values: Sequence[int], strings: StringStore) -> str:
        """The number of the cluster, or the beginning of its path."""
        (value,) = values
        if value == NONE:
            return "none"
        return str(value) if self.source == VECTORS else f"{int(value):b}"[1:]

    def __deepcopy__(self, memo: object) -> ClusterTemplate:
        """Return self: neither a template nor its clustering ever changes."""
        return self

    def __reduce__(self) -> tuple[type[ClusterTemplate], tuple[object, ...]]:
        return ClusterTemplate, astuple(self)  # bound anew when a model is loaded


def with_clusterings(templates: Iterable[Template], vocab: Vocab) -> tuple[Template, ...]:
    """Templates in which each template of clusters has a newly made clustering.

    RAISES (ValueError): as `make_clustering` and `read_paths`.
    """
    made: dict[Place, Clustering] = {}
    found = list[Template]()
    for template in templates:
        if isinstance(template, ClusterTemplate):
            source, sizes = template.place
            if template.place not in made:
                made[template.place] = (
                    make_clustering(vocab.vectors, sizes, template.name)
                    if source == VECTORS
                    else read_paths(source, sizes, vocab.strings)
                )
            template = template.knowing(made[template.place])
        found.append(template)
    return tuple(found)


def make_clusters(
    source: str = VECTORS,
    sizes: Sequence[int] | None = None,
    attr: str = "ORTH",
    window: Sequence[int] = (0,),
    parts: Sequence[str] = ("tokens", "start", "end"),
    order: int = 0,
) -> list[ClusterTemplate]:
    """`spacy-hocrf.Clusters.v1`: the clusters that words are in, each granularity an observation; and
    which words are in none.

    source (str): "vectors" for clusters that are made of the word vectors of the vocabulary when
        training begins, which takes scikit-learn; else the path of a file of Brown clusters, with a
        path, a word and a count in each line, tabs between them. It is read when training begins;
        the model has what it says.
    sizes (Optional[Sequence[int]]): the granularities, ascending: numbers of clusters, null for 50,
        200 and 1,000; or bits at the beginning of paths, null for 4, 6, 10 and 20.
    attr (str): attribute of a token that is the word: "LOWER" if the source has no capitals.
    window (Sequence[int]): offsets from the observed token; there is nothing beyond the Doc.
    parts (Sequence[str]): where in a segment: "tokens", "start", "end", "inner".
    order (int): earlier segments whose labels the features see.
    RETURNS (list[ClusterTemplate]): one template for each part, granularity and offset.
    RAISES (ValueError): H023, H024, H030 to H032, H038, H140 or H194; when training begins H170, H175,
        H192, H193, H195 or H196.
    """
    if not source:
        raise ValueError(Errors.H030.format(name="source"))
    if sizes is None:
        sizes = SIZES if source == VECTORS else BITS
    most = MOST_CLUSTERS if source == VECTORS else MOST_BITS
    if not sizes:
        raise ValueError(Errors.H030.format(name="sizes"))
    whole = all(type(size) is int and 1 <= size <= most for size in sizes)
    if not whole or not all(small < large for small, large in pairwise(sizes)):
        raise ValueError(ClusterErrors.H194.format(found=list(sizes), least=1, most=most))
    check_attribute(attr)
    check_offsets(window)
    check_order(order)
    return [
        ClusterTemplate(source, tuple(sizes), granularity, attr, offset, part, order)
        for part in checked_parts(parts)
        for granularity in range(len(sizes))
        for offset in window
    ]
