"""Stores the probabilities of predicted spans and tags in a Doc, where `span._.hocrf_score` and
`token._.hocrf_score` look them up.

A component's table is one value of `doc.user_data`, under a key like those of spaCy's extension attributes
of spans. It identifies spans by their characters, so that merging and splitting tokens does no harm, and
is stored as bytes, which need no conversion when a Doc is saved, copied or sent. `copy`, `to_bytes`,
`Doc.from_docs` and `as_doc(copy_user_data=True)` keep it; the last two adjust its offset.
`doc._.hocrf_scores` has all tables as JSON, for `to_json` and `from_json`.
"""

import json
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, MutableMapping
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc, Span, SpanGroup, Token

from spacy_hocrf.annotation.encoders import remember_encoders
from spacy_hocrf.annotation.groups import register
from spacy_hocrf.annotation.identity import register_identity
from spacy_hocrf.annotation.prediction import DecodedSpans

__all__ = [
    "TAGS",
    "SpanScore",
    "add_scores",
    "forget_scores",
    "group_scores",
    "has_scores",
    "is_scored",
    "keep_scores",
    "register_scores",
    "score_of",
    "span_scores",
    "tag_score_of",
]

TAGS = "token.tag"
"""Key of the table of tags; tables of spans have the key of their span group."""

UNDERSCORE, PREFIX = "._.", "hocrf_score:"

PLACES: "MutableMapping[Doc, tuple[Any, _Places]]" = WeakKeyDictionary()
"""Cache of where a Doc's tables are in `user_data`, among possibly many thousands of other values."""
SCORES: MutableMapping[Doc, tuple[Any, dict[tuple[int, int, str], float]]] = WeakKeyDictionary()
"""Cache of the scores in a Doc's span groups, by first character, one past the last, and label."""


class SpanScore(NamedTuple):
    """A span with its probability."""

    start: int  # first character
    end: int  # one past the last character
    label: str
    score: float


class _Places(NamedTuple):
    """The tables of a Doc: key in `user_data`, key of the component, and character offset of each. A Doc that
    `Doc.from_docs` has joined has tables for each of its parts.
    """

    written: list[tuple[Any, str, int]]  # in the order in which they were written
    last_first: list[tuple[Any, str, int]]  # by descending offset
    keys: set[str]  # of the components


class _Table(NamedTuple):
    """S spans of a Doc, by position."""

    start: NDArray[np.uint64]  # [S] first character
    end: NDArray[np.uint64]  # [S] one past the last character
    label: NDArray[np.int32]  # [S] place of the label in the names
    names: tuple[str, ...]
    score: NDArray[np.float32]  # [S] probability


COLUMNS = ("<u8", "<u8", "<i4", "<f4")
"""Data types in which start, end, label and score are stored."""
ROW_BYTES = 24
"""Bytes of a span."""


def keep_scores(
    doc: Doc, key: str, spans: DecodedSpans, names: tuple[str, ...], *, also_none: bool = False
) -> None:
    """Write the table of a component if it has predicted probabilities. No table may be there yet.

    key (str): key of its span group, or TAGS.
    names (Tuple[str, ...]): the labels.
    also_none (bool): write an empty table, too, which says that existing entities are not predicted ones.
    """
    if spans.scores is not None and (also_none or len(spans.scores)):
        own = slice(spans.first, spans.last)
        _, _, label, start, end = spans.columns
        doc.user_data[_place(key)] = _packed(start[own], end[own], label[own], names, spans.scores)


def add_scores(doc: Doc, key: str, scores: Iterable[SpanScore]) -> list[SpanScore]:
    """Add scores to a component's table; existing scores take precedence.

    RETURNS (List[SpanScore]): all scores of the table, by position.
    """
    spans = {row[:3]: row for row in [*scores, *span_scores(doc, key)]}
    rows = sorted(spans.values(), key=attrgetter("start"))
    names = sorted({row.label for row in rows})
    if rows:
        doc.user_data[_place(key)] = _packed(
            np.array([row.start for row in rows], dtype=np.uint64),
            np.array([row.end for row in rows], dtype=np.uint64),
            np.array([names.index(row.label) for row in rows], dtype=np.int32),
            tuple(names),
            np.array([row.score for row in rows], dtype=np.float32),
        )
    return rows


def forget_scores(doc: Doc, key: str) -> list[SpanScore]:
    """Delete the tables of a component.

    RETURNS (List[SpanScore]): the deleted scores.
    """
    if not doc.user_data:
        return []
    scores = list(span_scores(doc, key))
    for place in [place for place, table_key, _, _ in _tables(doc) if table_key == key]:
        del doc.user_data[place]
    return scores


def span_scores(doc: Doc, key: str) -> Iterator[SpanScore]:
    """Yield the spans of a component's tables with their scores; those of a Doc that was cut from a longer
    one are without the spans of other parts.
    """
    length = doc[-1].idx + len(doc[-1]) if len(doc) else 0
    for _, table_key, offset, table in _tables(doc):
        if table_key == key:
            start, end, label, names, score = table
            for i, j, y, p in zip(*(column.tolist() for column in (start, end, label, score))):
                if 0 <= offset + i and offset + j <= length:
                    yield SpanScore(offset + i, offset + j, names[y], p)


def group_scores(doc: Doc, key: str) -> list[SpanScore]:
    """Return the scores in a span group's attrs, the only ones left if Docs were saved without `user_data`,
    as by `DocBin`.
    """
    group = doc.spans.get(key)
    if group is None or not is_scored(group):
        return []
    try:
        rows = [(span.start_char, span.end_char, span.label_) for span in group]
    except IndexError:  # tokens were merged since, which a saved group does not follow
        return []
    return [SpanScore(*row, float(score)) for row, score in zip(rows, group.attrs["scores"])]


def has_scores(doc: Doc, key: str | None) -> bool:
    """Has a component predicted with probabilities, if only that there are no spans? False without a key."""
    in_group = key is not None and is_scored(doc.spans.get(key))
    return in_group or any(table_key == key for _, table_key, _, _ in _tables(doc))


def is_scored(group: SpanGroup | None) -> bool:
    """Was this group written by a component of this package, with probabilities?"""
    return group is not None and "hocrf" in group.attrs


def register_scores() -> None:
    """Register `span._.hocrf_score`, `token._.hocrf_score`, `doc._.hocrf_scores` and the Docs' attributes for
    identity and acceptance; and make saving Docs fast.
    """
    register_identity()
    remember_encoders()
    if not Span.has_extension("hocrf_score"):
        Span.set_extension("hocrf_score", getter=score_of)
    if not Token.has_extension("hocrf_score"):
        Token.set_extension("hocrf_score", getter=tag_score_of)
    register("hocrf_probability", "hocrf_accepted")
    if not Doc.has_extension("hocrf_scores"):
        Doc.set_extension("hocrf_scores", getter=_as_json, setter=_from_json)


def score_of(span: Span) -> float | None:
    """Return the probability of a span that was predicted by a component of this package, None for any other:
    `span._.hocrf_score`.
    """
    doc, wanted = span.doc, (span.start_char, span.end_char, span.label_)
    score = _look_up(doc, *wanted, tags=False)
    if score is None:
        score = _group_scores_except(doc, _places(doc).keys).get(wanted)
    return score


def tag_score_of(token: Token) -> float | None:
    """Return the probability of a tag that was predicted by a component of this package, None for any other:
    `token._.hocrf_score`.
    """
    return _look_up(token.doc, token.idx, token.idx + len(token), token.tag_, tags=True)


def _group_scores_except(doc: Doc, keys: Collection[str]) -> dict[tuple[int, int, str], float]:
    """Scores in the attrs of span groups, except for groups with these keys."""
    state = [
        (len(doc), key, len(group), np.asarray(group.attrs["scores"]).tobytes())
        for key, group in doc.spans.items()
        if key not in keys and is_scored(group)
    ]
    cached_state, scores = SCORES.get(doc, (None, {}))
    if cached_state != state:
        rows = (row for _, key, _, _ in state[::-1] for row in group_scores(doc, key))
        scores = {row[:3]: row.score for row in rows}
        SCORES[doc] = state, scores
    return scores


@lru_cache
def _place(key: str) -> Any:
    """Return the key of `user_data`, one object for all Docs, since the garbage collector counts objects."""
    return UNDERSCORE, PREFIX + key, 0, 0


def _packed(
    start: NDArray[np.uint64],
    end: NDArray[np.uint64],
    label: NDArray[np.int32],
    names: tuple[str, ...],
    score: NDArray[np.float32],
) -> bytes:
    """A table as bytes: the length of its names, the names as JSON, and column after column."""
    return b"".join(
        (
            _head(names),
            start.astype(COLUMNS[0], copy=False).tobytes(),
            end.astype(COLUMNS[1], copy=False).tobytes(),
            label.astype(COLUMNS[2], copy=False).tobytes(),
            score.astype(COLUMNS[3], copy=False).tobytes(),
        )
    )


@lru_cache
def _head(names: tuple[str, ...]) -> bytes:
    """The names as JSON, preceded by their number of bytes."""
    encoded = json.dumps(names).encode()
    return len(encoded).to_bytes(4, "little") + encoded


def _unpacked(packed: bytes) -> _Table:
    first = 4 + int.from_bytes(packed[:4], "little")
    n, columns = (len(packed) - first) // ROW_BYTES, list[NDArray[Any]]()
    for kind in COLUMNS:
        columns.append(np.frombuffer(packed, kind, n, first))
        first += columns[-1].nbytes
    start, end, label, score = columns
    return _Table(start, end, label, _names(packed[4 : len(packed) - n * ROW_BYTES]), score)


def _last_start(packed: bytes) -> int:
    """Where the last span of a table begins, -1 without one."""
    first = 4 + int.from_bytes(packed[:4], "little")
    end = first + (len(packed) - first) // ROW_BYTES * 8
    return int.from_bytes(packed[end - 8 : end], "little") if end > first else -1


@lru_cache
def _names(encoded: bytes) -> tuple[str, ...]:
    return tuple(json.loads(encoded))


def _tables(doc: Doc) -> Iterator[tuple[Any, str, int, _Table]]:
    """Yield the key in `user_data`, the component's key, the character offset, and the table."""
    for place, key, offset in _places(doc).written:
        yield place, key, offset, _unpacked(doc.user_data[place])


def _places(doc: Doc) -> _Places:
    """Return where the tables of a Doc are."""
    data: dict[Any, Any] = doc.user_data
    state = id(data), len(data), next(reversed(data), None)  # additions come last
    cached = PLACES.get(doc)
    if cached is None or cached[0] != state:
        written = [
            (place, place[1].removeprefix(PREFIX), place[2])
            for place in data
            if isinstance(place, tuple) and len(place) == 4 and str(place[1]).startswith(PREFIX)
        ]
        places = _Places(written, sorted(written, key=_descending), {key for _, key, _ in written})
        cached = PLACES[doc] = state, places
    return cached[1]


def _descending(place: tuple[Any, str, int]) -> int:
    return -place[2]


def _look_up(doc: Doc, start: int, end: int, label: str, *, tags: bool) -> float | None:
    """Return the score of a span in the tables of tags, or in those of spans; None if it has none."""
    data, places = doc.user_data, _places(doc).last_first
    for place, key, offset in places[bisect_left(places, -start, key=_descending) :]:
        packed = data[place]
        if (key == TAGS) != tags or start - offset > _last_start(packed):
            continue
        starts, ends, labels, names, scores = _unpacked(packed)
        first = np.array([start - offset, start - offset + 1], dtype=np.uint64)
        for i in range(*np.searchsorted(starts, first)):  # several, if they overlap
            if ends[i] == end - offset and names[labels[i]] == label:
                return float(scores[i])
    return None


def _as_json(doc: Doc) -> list[dict[str, Any]]:
    """All tables as JSON: the value of `doc._.hocrf_scores`."""
    keys = dict.fromkeys(key for _, key, _, _ in _tables(doc))
    return [{"key": key, **row._asdict()} for key in keys for row in span_scores(doc, key)]


def _from_json(doc: Doc, rows: Iterable[dict[str, Any]]) -> None:
    """Replace all tables by these rows."""
    scores: dict[str, list[SpanScore]] = {}
    for row in rows:
        values = {name: value for name, value in row.items() if name != "key"}
        scores.setdefault(str(row["key"]), []).append(SpanScore(**values))
    for key in {key for _, key, _, _ in _tables(doc)}:
        forget_scores(doc, key)
    for key, rows_of_key in scores.items():
        add_scores(doc, key, rows_of_key)
