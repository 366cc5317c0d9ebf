"""Where a Doc keeps the probabilities of what was predicted, and how `span._.hocrf_score` and
`token._.hocrf_score` find them.

A component's table of spans is one value of `doc.user_data`, under a key like those of spaCy's extension
attributes of spans, and knows spans by their characters. It is bytes, which nobody has to translate when a
Doc is saved, copied or sent. So merged and split tokens do no harm, and `copy`,
`to_bytes`, `Doc.from_docs` and `as_doc(copy_user_data=True)` take it along, the last two to where the text
is then. `doc._.hocrf_scores` is all that is known, as `to_json` and `from_json` take it.
"""

import json
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
    "KnownScore",
    "add_scores",
    "forget_scores",
    "group_scores",
    "has_scores",
    "is_scored",
    "keep_scores",
    "known_scores",
    "register_scores",
    "score_of",
    "tag_score_of",
]

TAGS = "token.tag"
"""Key of the table of tags; those of spans have the key of their span group."""

UNDERSCORE, PREFIX = "._.", "hocrf_score:"

PLACES: MutableMapping[Doc, tuple[Any, list[Any]]] = WeakKeyDictionary()
"""Where a Doc's tables are, among attributes of tokens, of which there may be many thousands."""
SAVED: MutableMapping[Doc, tuple[Any, dict[tuple[int, int, str], float]]] = WeakKeyDictionary()
"""Scores that a Doc's span groups keep, by first character, end and label."""


class KnownScore(NamedTuple):
    """A span with its probability."""

    start: int  # first character
    end: int  # one past the last character
    label: str
    score: float


class _Table(NamedTuple):
    """Spans of a Doc by position, S of them."""

    start: NDArray[np.uint64]  # [S] first character
    end: NDArray[np.uint64]  # [S] one past the last character
    label: NDArray[np.int32]  # [S] place of the label in the names
    names: tuple[str, ...]
    score: NDArray[np.float32]  # [S] probability


COLUMNS = ("<u8", "<u8", "<i4", "<f4")
"""How start, end, label and score are written."""
ROW = 24
"""Bytes of a span."""


def keep_scores(
    doc: Doc, key: str, found: DecodedSpans, names: tuple[str, ...], *, also_none: bool = False
) -> None:
    """Write the table of a component, if it has predicted probabilities; there must be none.

    key (str): of its span group, or TAGS.
    names (Tuple[str, ...]): the labels.
    also_none (bool): write that there is no span, too, so that those that are there are others'.
    """
    if found.scores is not None and (also_none or len(found.scores)):
        here = slice(found.first, found.last)
        _, _, label, start, end = found.columns
        doc.user_data[_place(key)] = _packed(
            start[here], end[here], label[here], names, found.scores
        )


def add_scores(doc: Doc, key: str, known: Iterable[KnownScore]) -> list[KnownScore]:
    """Write what else is known; what is there goes before.

    RETURNS (List[KnownScore]): all that is known now, by position.
    """
    spans = {row[:3]: row for row in [*known, *known_scores(doc, key)]}
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


def forget_scores(doc: Doc, key: str) -> list[KnownScore]:
    """Take away what is known of a component's spans.

    RETURNS (List[KnownScore]): what was known.
    """
    if not doc.user_data:
        return []
    known = list(known_scores(doc, key))
    for place in [place for place, found, _, _ in _tables(doc) if found == key]:
        del doc.user_data[place]
    return known


def known_scores(doc: Doc, key: str) -> Iterator[KnownScore]:
    """Spans of a component that have a score, with it."""
    for _, found, offset, table in _tables(doc):
        if found == key:
            start, end, label, names, score = table
            rows = zip(*(column.tolist() for column in (start, end, label, score)))
            yield from (KnownScore(offset + i, offset + j, names[y], p) for i, j, y, p in rows)


def group_scores(doc: Doc, key: str) -> list[KnownScore]:
    """Scores that a span group keeps: all that is left in Docs that were saved without
    `user_data`, as `DocBin` does.
    """
    group = doc.spans.get(key)
    if group is None or not is_scored(group):
        return []
    try:
        rows = [(span.start_char, span.end_char, span.label_) for span in group]
    except IndexError:  # tokens were merged since then, and a saved group does not follow
        return []
    return [KnownScore(*row, float(score)) for row, score in zip(rows, group.attrs["scores"])]


def has_scores(doc: Doc, key: str | None) -> bool:
    """Has a component predicted with probabilities, perhaps that there is nothing? None without a key."""
    saved = key is not None and is_scored(doc.spans.get(key))
    return saved or any(found == key for _, found, _, _ in _tables(doc))


def is_scored(group: SpanGroup | None) -> bool:
    """Has a component of ours written this group, with probabilities?"""
    return group is not None and "hocrf" in group.attrs


def register_scores() -> None:
    """Let spans and tokens have `_.hocrf_score`, Docs `_.hocrf_scores`, what says which text they are, and
    what says whether somebody needs to read them; and let these be saved fast.
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
    """Probability of a span that a component of ours has predicted: `span._.hocrf_score`; None for
    any other span.
    """
    doc, wanted = span.doc, (span.start_char, span.end_char, span.label_)
    keys = set()
    for _, key, offset, table in _tables(doc):
        score = None if key == TAGS else _look_up(table, offset, *wanted)
        if score is not None:
            return score
        keys.add(key)
    return _saved(doc, keys).get(wanted)


def tag_score_of(token: Token) -> float | None:
    """Probability of a tag that a component of ours has predicted: `token._.hocrf_score`; None for any
    other token.
    """
    wanted = token.idx, token.idx + len(token), token.tag_
    tables = ((offset, table) for _, key, offset, table in _tables(token.doc) if key == TAGS)
    found = (_look_up(table, offset, *wanted) for offset, table in tables)
    return next((score for score in found if score is not None), None)


def _saved(doc: Doc, but: Collection[str]) -> dict[tuple[int, int, str], float]:
    """Scores that span groups keep, besides those of these keys."""
    state = [
        (len(doc), key, len(group), np.asarray(group.attrs["scores"]).tobytes())
        for key, group in doc.spans.items()
        if key not in but and is_scored(group)
    ]
    known, scores = SAVED.get(doc, (None, {}))
    if known != state:
        rows = (row for _, key, _, _ in state[::-1] for row in group_scores(doc, key))
        scores = {row[:3]: row.score for row in rows}
        SAVED[doc] = state, scores
    return scores


@lru_cache
def _place(key: str) -> Any:
    """One object for all Docs: the garbage collector counts them."""
    return UNDERSCORE, PREFIX + key, 0, 0


def _packed(
    start: NDArray[np.uint64],
    end: NDArray[np.uint64],
    label: NDArray[np.int32],
    names: tuple[str, ...],
    score: NDArray[np.float32],
) -> bytes:
    """A table as bytes: how many its names have, these as JSON, and column after column."""
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
    """Names, and before them how many bytes they have."""
    said = json.dumps(names).encode()
    return len(said).to_bytes(4, "little") + said


def _unpacked(packed: bytes) -> _Table:
    first = 4 + int.from_bytes(packed[:4], "little")
    n, columns = (len(packed) - first) // ROW, list[NDArray[Any]]()
    for kind in COLUMNS:
        columns.append(np.frombuffer(packed, kind, n, first))
        first += columns[-1].nbytes
    start, end, label, score = columns
    return _Table(start, end, label, _names(packed[4 : len(packed) - n * ROW]), score)


@lru_cache
def _names(said: bytes) -> tuple[str, ...]:
    return tuple(json.loads(said))


def _tables(doc: Doc) -> Iterator[tuple[Any, str, int, _Table]]:
    """Place in `user_data`, key, the character that it counts from, and table."""
    data: dict[Any, Any] = doc.user_data
    state = id(data), len(data), next(reversed(data), None)  # whatever is added is the last
    known, places = PLACES.get(doc, (None, []))
    if known != state:
        places = [
            place
            for place in data
            if isinstance(place, tuple) and len(place) == 4 and str(place[1]).startswith(PREFIX)
        ]
        PLACES[doc] = state, places
    for place in places:
        _, name, offset, _ = place
        yield place, name.removeprefix(PREFIX), offset, _unpacked(data[place])


def _look_up(table: _Table, offset: int, start: int, end: int, label: str) -> float | None:
    starts, ends, labels, names, scores = table
    if start < offset:
        return None
    first = np.array([start - offset, start - offset + 1], dtype=np.uint64)
    for i in range(*np.searchsorted(starts, first)):  # several, if they overlap
        if ends[i] == end - offset and names[labels[i]] == label:
            return float(scores[i])
    return None


def _as_json(doc: Doc) -> list[dict[str, Any]]:
    """All that is known: `doc._.hocrf_scores`."""
    keys = dict.fromkeys(key for _, key, _, _ in _tables(doc))
    return [{"key": key, **row._asdict()} for key in keys for row in known_scores(doc, key)]


def _from_json(doc: Doc, rows: Iterable[dict[str, Any]]) -> None:
    """Know this and nothing else."""
    known: dict[str, list[KnownScore]] = {}
    for row in rows:
        values = {name: value for name, value in row.items() if name != "key"}
        known.setdefault(str(row["key"]), []).append(KnownScore(**values))
    for key in {key for _, key, _, _ in _tables(doc)}:
        forget_scores(doc, key)
    for key, found in known.items():
        add_scores(doc, key, found)
