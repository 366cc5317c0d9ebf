"""The graph of one window: a vertex for every pair of messages, factors over neighbouring ones
(Qian and Liu, TACL 2014, §4.2).

Vertex (i, j) has two states: message i replies to message j (1), or not (0). Only earlier messages
are replied to, so j < i; vertex (i, i) stands for "message i begins a conversation". Vertices are
numbered row by row. Neighbours are (i, j) and (i, j + 1), with one source and adjacent targets, and
(i, j) and (i + 1, j). The 2D grid has a factor for each such edge, the 3-wise one also for each
pair of edges that share a vertex. All patterns of a factor have weights of their own.
"""

from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.api import GraphInstance

STEPS = ((0, -1), (0, 1), (-1, 0), (1, 0))  # to the left, to the right, up, down
SHAPES = tuple(combinations(range(len(STEPS)), 2))
"""Three vertices: the middle one, and the steps from it to the other two."""


@dataclass(frozen=True)
class Grid:
    """N messages' V vertices, H edges and B triples of vertices."""

    size: int  # N
    source: NDArray[np.int64]  # [V] i of vertex (i, j)
    target: NDArray[np.int64]  # [V] j
    edges: NDArray[np.int64]  # [H, 2] vertices, ascending
    vertical: NDArray[np.bool_]  # [H] do they differ in the source?
    triples: NDArray[np.int64]  # [B, 3] vertices: the middle, and the other two
    shapes: NDArray[np.int64]  # [B] which of SHAPES

    @cached_property
    def factors(self) -> tuple[NDArray[np.int64], ...]:
        """Vertices of the factors, by their number: the edges, the triples."""
        return self.edges, self.triples

    @cached_property
    def row_edges(self) -> NDArray[np.int64]:
        """The edges of the spanning tree: the rows. No factor joins the end of one to the beginning
        of the next; int64 [H', 2].
        """
        return self.edges[~self.vertical]

    def instance(
        self, scores: NDArray[np.float64], tables: tuple[NDArray[np.float64], ...]
    ) -> GraphInstance:
        """The decoding problem.

        scores (float64 [V]): of state 1 of every vertex; state 0 has none.
        tables (tuple of float64 [H, 4] and perhaps [B, 8]): scores of the patterns of every edge
            and triple, the states of its vertices read as a binary number. The 2D grid has no
            tables of triples.
        """
        vertices, states, sizes = [], [], []
        for factors, table in zip(self.factors, tables):
            width = factors.shape[1]
            every = np.array(list(product((0, 1), repeat=width)))
            vertices.append(np.repeat(factors, len(every), axis=0).ravel())
            states.append(np.tile(every, (len(factors), 1)).ravel())
            sizes.append(np.full(table.size, width))
        return GraphInstance.from_arrays(
            offsets=2 * np.arange(len(scores) + 1),
            unary=np.stack([np.zeros(len(scores)), scores], axis=1).ravel(),
            pattern_offsets=np.concatenate([[0], *sizes]).cumsum(),
            vertices=np.concatenate([np.zeros(0, dtype=np.int64), *vertices]),
            states=np.concatenate([np.zeros(0, dtype=np.int64), *states]),
            weights=np.concatenate([np.zeros(0), *(table.ravel() for table in tables)]),
        )

    def links(self, assignment: NDArray[np.int32]) -> NDArray[np.bool_]:
        """The vertices in state 1 as a matrix, bool [N, N]."""
        found = np.zeros((self.size, self.size), dtype=bool)
        found[self.source, self.target] = assignment == 1
        return found


@cache
def make_grid(size: int) -> Grid:
    """The grid of a window of `size` messages; the same object for the same size."""
    cells = [(i, j) for i in range(size) for j in range(i + 1)]
    number = {cell: v for v, cell in enumerate(cells)}
    edges = [
        (v, number[i + a, j + b])
        for (i, j), v in number.items()
        for a, b in ((0, 1), (1, 0))
        if (i + a, j + b) in number
    ]
    triples, shapes = [], []
    for (i, j), v in number.items():
        for shape, steps in enumerate(SHAPES):
            ends = [(i + STEPS[k][0], j + STEPS[k][1]) for k in steps]
            if all(end in number for end in ends):
                triples.append((v, number[ends[0]], number[ends[1]]))
                shapes.append(shape)
    source, target = np.array(cells, dtype=np.int64).reshape(-1, 2).T
    pairs = np.array(edges, dtype=np.int64).reshape(-1, 2)
    return Grid(
        size=size,
        source=source,
        target=target,
        edges=pairs,
        vertical=source[pairs[:, 0]] != source[pairs[:, 1]],
        triples=np.array(triples, dtype=np.int64).reshape(-1, 3),
        shapes=np.array(shapes, dtype=np.int64),
    )


def pattern_of(factors: NDArray[np.int64], assignment: NDArray[np.int32]) -> NDArray[np.int64]:
    """The pattern of each factor that an assignment has: the states of its vertices read as a
    binary number; int64 [factors].
    """
    return assignment[factors] @ (1 << np.arange(factors.shape[1])[::-1])
