"""Features of vertices, edges and triples of a grid: numbers, since every template has a known
number of values.

A template gives each vertex, edge or triple of vertices one value, such as "three messages apart,
and named by the later one". A vertex's value is one feature, which fires in state 1; an edge's
value is four features, one for each pattern of states, a triple's eight. Sections follow each
other: vertices, edges, triples; so the features of a smaller grid come first among those of a
larger.

A feature that fires has the value 1 if it is a vertex's, 0.3 if it is an edge's and 0.1 if it is a
triple's. There are many more of the latter, and the perceptron, whose updates are the features'
values, would be moved by little else.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from grid import Grid, make_grid
from logs import Kind, Window, minutes_between
from numpy.typing import NDArray

SCALES = (1.0, 0.3, 0.1)
"""Value of a feature of a vertex, an edge, a triple."""

KINDS = len(Kind)
# each bin begins with its number; 0 is the bin of the vertices (i, i)
DISTANCES = (1, 2, 3, 4, 5, 7, 10)
MINUTES = (1, 2, 3, 5, 10)
OVERLAPS = (1, 2, 3)
SILENCES = (2, 6, 15, 100, 10_000)
FAR = 4  # bins of distances that are told apart together with much else

Value = tuple[NDArray[np.int64], int]
"""A template's values, 0 to number - 1, and their number."""


@dataclass(frozen=True)
class Observed:
    """A window's features: of each vertex, edge and triple the values of its section's templates,
    as numbers of the section.
    """

    grid: Grid
    links: NDArray[np.bool_]  # [N, N] as annotated
    values: tuple[NDArray[np.int64], ...]  # [V, K1], [H, K2] and perhaps [B, K3]

    @cached_property
    def gold(self) -> NDArray[np.int32]:
        """The annotated states, int32 [V]."""
        return self.links[self.grid.source, self.grid.target].astype(np.int32)


@dataclass(frozen=True)
class Section:
    """Where the features of the vertices, the edges or the triples are among all features."""

    first: int
    n_values: int
    n_patterns: int  # 1, 4 or 8
    scale: float  # value of a feature that fires

    @property
    def end(self) -> int:
        """First feature of the next section."""
        return self.first + self.n_values * self.n_patterns

    def table(self, weights: NDArray[np.float64], values: NDArray[np.int64]) -> NDArray[np.float64]:
        """Scores of the patterns, float64 [factors, patterns]: what the values of all templates add
        up to.
        """
        return (
            weights[self.first : self.end]
            .reshape(self.n_values, self.n_patterns)[values]
            .sum(axis=1)
            * self.scale
        )


def observe(window: Window, order: int) -> Observed:
    """The features of a window.

    order (int): 1 for vertices alone, 2 for the 2D grid, 3 for the 3-wise one.
    """
    grid, pairs = make_grid(len(window.messages)), Pairs.of(window)
    templates = [
        vertex_templates(grid, pairs),
        edge_templates(grid, pairs),
        triple_templates(grid, pairs),
    ]
    return Observed(grid, window.links, tuple(numbered(found)[0] for found in templates[:order]))


def sections(order: int) -> tuple[Section, ...]:
    """The sections of the features that `observe` gives; the templates' sizes do not depend on the
    window.
    """
    grid, pairs = make_grid(0), Pairs.of(EMPTY)
    found: list[Section] = []
    for templates, patterns, scale in zip(
        (vertex_templates, edge_templates, triple_templates)[:order], (1, 4, 8), SCALES
    ):
        found.append(
            Section(
                found[-1].end if found else 0, numbered(templates(grid, pairs))[1], patterns, scale
            )
        )
    return tuple(found)


@dataclass(frozen=True)
class Pairs:
    """What is known of the messages of a window and of pairs of them; [i, j] asks something of
    message i about message j.
    """

    kind: NDArray[np.int64]  # [N]
    # [N] does it name nobody (0), an author of an earlier message of the window (1), only others
    # (2)
    named: NDArray[np.int64]
    silence: NDArray[np.int64]  # [N] bin of the number of messages since its author's last one
    author: NDArray[np.int64]  # [N]
    minutes: NDArray[np.int64]  # [N, N] bin of the time between them
    mentions: NDArray[np.int64]  # [N, N] does i name the author of j?
    overlap: NDArray[np.int64]  # [N, N] bin of the number of rare words they share
    latest: NDArray[np.int64]  # [N, N] is j the last message of its author before i?

    @classmethod
    def of(cls, window: Window) -> "Pairs":
        """Those of a window."""
        messages, n = window.messages, len(window.messages)
        author = np.array([message.author for message in messages], dtype=np.int64)
        mentions = np.array(
            [[b.author in a.mentions for b in messages] for a in messages], dtype=np.int64
        ).reshape(n, n)
        shared = np.array(
            [[len(a.words & b.words) for b in messages] for a in messages], dtype=np.int64
        ).reshape(n, n)
        minutes = np.array(
            [[minutes_between(b, a) for b in messages] for a in messages], dtype=np.int64
        ).reshape(n, n)
        names_any = np.array([bool(message.mentions) for message in messages], dtype=np.int64)
        inside = np.tril(mentions, -1).any(axis=1)
        same = author[:, None] == author
        before = np.tri(n, k=-1, dtype=np.int64)  # before[i, j]: j is before i
        # [i, j] messages between j and i that have the author of j
        between = before @ (same & (before == 1))
        return cls(
            kind=np.array([message.kind for message in messages], dtype=np.int64),
            named=np.where(names_any == 0, 0, np.where(inside, 1, 2)),
            silence=np.digitize([message.silence for message in messages], SILENCES),
            author=author,
            minutes=np.digitize(minutes, MINUTES),
            mentions=mentions,
            overlap=np.digitize(shared, OVERLAPS),
            latest=(between == 0).astype(np.int64),
        )


EMPTY = Window("", (), np.zeros((0, 0), dtype=bool))


def vertex_templates(grid: Grid, pairs: Pairs) -> list[Value]:
    """Same author, names, what both look like, distance, time, shared words, and combinations of
    these.
    """
    i, j = grid.source, grid.target
    itself = flag(i == j)
    distance = bins(i - j, DISTANCES)
    near = (np.minimum(distance[0], FAR + 1), FAR + 2)
    minutes = (pairs.minutes[i, j], len(MINUTES) + 1)
    overlap = (np.where(i == j, 0, pairs.overlap[i, j]), len(OVERLAPS) + 1)
    latest = flag(pairs.latest[i, j])
    silence = (pairs.silence[i], len(SILENCES) + 1)
    kind_i, kind_j = (pairs.kind[i], KINDS), (pairs.kind[j], KINDS)
    named_i, named_j = (pairs.named[i], 3), (pairs.named[j], 3)
    relation = together(
        flag(pairs.author[i] == pairs.author[j]),
        flag(pairs.mentions[i, j]),
        flag(pairs.mentions[j, i]),
    )
    address = together(relation, named_i, named_j)
    return [
        itself,
        distance,
        together(itself, minutes),
        together(itself, address),
        together(relation, distance),
        together(relation, minutes),
        together(relation, near, latest, itself),
        together(address, near),
        together(itself, kind_i, kind_j),
        together(relation, kind_i, kind_j),
        together(near, kind_i, kind_j),
        together(overlap, relation),
        together(itself, silence, named_i, kind_i),
        together(near, silence, named_i),
    ]


def edge_templates(grid: Grid, pairs: Pairs) -> list[Value]:
    """Adjacent messages that reply to one, or that one replies to: their authors, what they look
    like, who names whom.
    """
    a, b = grid.edges.T
    direction = edge_direction(grid)
    first = np.where(grid.vertical, grid.source[a], grid.target[a])  # the two adjacent messages
    second = np.where(grid.vertical, grid.source[b], grid.target[b])
    third = np.where(grid.vertical, grid.target[a], grid.source[a])  # the one they have in common
    kinds = together((pairs.kind[first], KINDS), (pairs.kind[second], KINDS))
    same = together(
        *(
            flag(pairs.author[x] == pairs.author[y])
            for x, y in ((first, second), (first, third), (second, third))
        )
    )
    near = (
        np.minimum(
            bins(
                np.minimum(grid.source[a] - grid.target[a], grid.source[b] - grid.target[b]),
                DISTANCES,
            )[0],
            FAR,
        ),
        FAR + 1,
    )
    named = together((pairs.named[first], 3), (pairs.named[second], 3))
    calls = together(flag(pairs.mentions[first, third]), flag(pairs.mentions[second, third]))
    called = together(flag(pairs.mentions[third, first]), flag(pairs.mentions[third, second]))
    return [
        direction,
        together(direction, near),
        together(direction, same),
        together(direction, kinds),
        together(direction, same, kinds),
        together(direction, kinds, (pairs.kind[third], KINDS)),
        together(direction, same, named),
        together(direction, same, calls, called),
        together(direction, (pairs.minutes[second, first], len(MINUTES) + 1), same),
    ]


def triple_templates(grid: Grid, pairs: Pairs) -> list[Value]:
    """Adjacent pairs of edges: what the messages look like, whether they have one author, and names
    (the paper's features).
    """
    middle, one, other = grid.triples.T
    corners = (grid.source == grid.target).astype(np.int64)
    shape = together(
        (grid.shapes, 6), flag(corners[middle]), flag(corners[one]), flag(corners[other])
    )
    i, j = grid.source, grid.target
    same = pairs.author[i] == pairs.author[j]
    mentions = pairs.mentions[i, j]
    authors = together(*(flag(same[v]) for v in (middle, one, other)))
    asks = pairs.kind == Kind.QUESTION
    questions = together(*(flag(asks[x[v]]) for v in (middle, one, other) for x in (i, j)))
    names = together(*(flag(mentions[v]) for v in (middle, one, other)))
    return [
        shape,
        together(shape, authors),
        together(shape, questions),
        together(shape, names),
    ]


def edge_direction(grid: Grid) -> Value:
    """Horizontal or vertical, and whether it touches a vertex (i, i)."""
    a, b = grid.edges.T
    itself = grid.source == grid.target
    return together(flag(grid.vertical), flag(itself[a] | itself[b]))


def flag(values: NDArray) -> Value:
    """A template with the values no and yes."""
    return np.asarray(values, dtype=np.int64), 2


def bins(values: NDArray[np.int64], begins: Sequence[int]) -> Value:
    """A template with as many values as there are bins, the one below the first included."""
    return np.digitize(values, begins), len(begins) + 1


def together(*values: Value) -> Value:
    """The combination of templates."""
    number, size = values[0]
    for other, n in values[1:]:
        number, size = number * n + other, size * n
    return number, size


def numbered(templates: Sequence[Value]) -> tuple[NDArray[np.int64], int]:
    """The values of all templates as numbers of one range, int64 [factors, templates], and its
    length.
    """
    sizes = [size for _, size in templates]
    firsts = np.cumsum([0, *sizes])
    return np.stack([values + first for (values, _), first in zip(templates, firsts)], axis=1), int(
        firsts[-1]
    )
