"""Decode token labels, as corpora in columns have them, into spans.

In IOB1, IOB2, IOE, BIOES, BILOU, BMES, BMEOW and the like, a token's label is a letter and the span's label:
B begins a span, I and M are inside, E and L end it, and S, U and W are spans of one token. Any other letter
begins a span, too, if no span of its label is open.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import groupby
from typing import NamedTuple

from spacy_hocrf.cli.convert.records import CharSpan, ConvertedText, Place
from spacy_hocrf.cli.errors import CommandErrors

__all__ = [
    "SCHEMES",
    "LabelledTokens",
    "TokenRow",
    "records_of",
    "scheme_of",
    "spans_by_text",
    "spans_of",
]

SCHEMES = ("auto", "bio", "io")
OUTSIDE = frozenset({"", "_", "O"})
MISSING = "-"
"""spaCy's label for a token with unknown annotation."""
SILENT = {MISSING: "labels '-'", "": "tokens without a label"}
"""Labels that mean unknown if there is another one for tokens outside, or none at all; with descriptions."""
LETTERS = "BIESLUMW"
WAYS = {
    "B-X": re.compile(rf"(?P<letter>[{LETTERS}])-(?P<label>.+)", re.DOTALL),
    "b-X": re.compile(rf"(?i:(?P<letter>[{LETTERS}]))-(?P<label>.+)", re.DOTALL),
    "B_X": re.compile(rf"(?i:(?P<letter>[{LETTERS}]))_(?P<label>.+)", re.DOTALL),
    "X-B": re.compile(rf"(?P<label>.+)-(?i:(?P<letter>[{LETTERS}]))", re.DOTALL),
    "X_B": re.compile(rf"(?P<label>.+)_(?i:(?P<letter>[{LETTERS}]))", re.DOTALL),
    "B": re.compile(rf"(?i:(?P<letter>[{LETTERS}]))[-_]?(?P<label>)"),
}
"""Notations of letter and label."""
CANONICAL = "B-X"
BRACKETS = re.compile(r"(?:\((?P<label>[^()*]+))?(?:\*|\*?(?P<end>\)))")
"""Labels with a bracket where a span begins or ends: `(PER*`, `*`, `*)`, `(PER*)`, `(PER)`."""
TOGETHER = ("BIES", "BILU", "BMES", "BMEW", "BIEW")
"""Sets of letters that belong to one scheme."""
NAMELESS = "SPAN"
"""Label of spans if token labels are only letters."""


class LabelledTokens(NamedTuple):
    """The labels of a text's tokens, and their places for messages."""

    places: Sequence[Place]
    labels: Sequence[str]


class TokenRow(NamedTuple):
    """A token with its label and attributes, as read from a line."""

    place: Place
    label: str
    word: str
    attributes: Mapping[str, str]


def records_of(
    texts: Iterable[Sequence[TokenRow]], names: Iterable[str], scheme: str
) -> Iterator[ConvertedText]:
    """Convert texts with token labels to records with spans.

    names (Iterable[str]): names of the attributes that all tokens get, "" if a row has no value.
    scheme (str): one of SCHEMES.
    """
    texts = list(texts)
    labels = [LabelledTokens([r.place for r in rows], [r.label for r in rows]) for rows in texts]
    for rows, text, (spans, unknown) in zip(texts, labels, spans_by_text(labels, scheme)):
        yield ConvertedText(
            text.places[0],
            [row.word for row in rows],
            spans=spans,
            tags=text.labels,
            attributes={name: [r.attributes.get(name, "") for r in rows] for name in names},
            unknown=unknown,
        )


def scheme_of(labels: Iterable[str]) -> str:
    """Guess the notation of token labels: a name of WAYS if they have letters for the parts of a span, else
    "io", where adjacent tokens with the same label are one span.

    It is a notation with letters if all labels have one; or if most do and some label occurs with letters
    for both the beginning and the rest of a span, which is unlikely by chance.
    """
    times = Counter(label for label in labels if label not in OUTSIDE and label != MISSING)
    way, fitting = _best_way(times)
    evident, letters = _evidence(times, way)
    is_clear = way == CANONICAL and any(letters <= set(each) for each in TOGETHER)
    others = sum(n for label, n in times.items() if label != "o") - fitting
    is_read = (is_clear and not others) or (evident and fitting > others)
    return way if fitting and is_read else "io"


def spans_by_text(
    texts: Sequence[LabelledTokens], scheme: str
) -> list[tuple[list[CharSpan], list[tuple[int, int]]]]:
    """Decode the labels of each text: its spans in tokens, and its unknown tokens.

    scheme (str): one of SCHEMES.
    RAISES (ValueError): H362 for the scheme "bio" if no label has a letter.
    """
    times = Counter(label for text in texts for label in text.labels)
    brackets = scheme != "io" and any(label[:1] == "(" for label in times)
    if brackets and all(map(BRACKETS.fullmatch, times)):
        texts = [LabelledTokens(text.places, _with_letters(text.labels)) for text in texts]
        times = Counter(label for text in texts for label in text.labels)
    way = scheme_of(times.elements()) if scheme == "auto" else scheme
    named = [label for label in times if label not in OUTSIDE | {MISSING, "o"}]
    if scheme == "bio":
        way, fitting = _best_way(times)
        if named and not fitting:
            raise ValueError(CommandErrors.H362.format(found=named[0]))
    if scheme == "auto" and way == "io" and _look_like_parts(named):
        what = (
            "labels like parts of spans, but not all with B-, I- or the like: taken as they stand"
        )
        alike = {label for label in named if any(w.fullmatch(label) for w in WAYS.values())}
        for text in texts:
            at = [i for i, label in enumerate(text.labels) if label in alike]
            if at:
                text.places[at[0]].lose(what, len(at))
    others = times.keys() - SILENT.keys()
    silent = {*SILENT} if not others or others & {"O", "_"} else set[str]()
    if way == "io":
        return [(_runs(text.labels, silent), _unknown(text, silent)) for text in texts]
    parts = [_parsed(text.labels, way, silent) for text in texts]
    begins = any(part is not None and part[0] in "BSUW" for text in parts for part in text)
    return [_read(text, part, begins) for text, part in zip(texts, parts)]


def _with_letters(labels: Sequence[str]) -> list[str]:
    """Rewrite labels in the notation of BRACKETS with the letters B and I."""
    lettered, open_ = list[str](), ""
    for label in labels:
        part = BRACKETS.fullmatch(label)
        assert part is not None
        open_ = part["label"] or open_
        lettered.append(f"{'B' if part['label'] else 'I'}-{open_}" if open_ else "O")
        open_ = "" if part["end"] else open_
    return lettered


def spans_of(labels: Sequence[str], scheme: str) -> list[CharSpan]:
    """Decode the labels of one text into spans in tokens.

    labels (Sequence[str]): label of each token. scheme (str): "io", or a name of WAYS.
    """
    return _runs(labels) if scheme == "io" else _spans(_parsed(labels, scheme))[0]


def _runs(labels: Sequence[str], silent: Set[str] = OUTSIDE) -> list[CharSpan]:
    """Join adjacent tokens with the same label. silent (Set[str]): labels for unknown annotation."""
    spans, at = list[CharSpan](), 0
    for label, run in groupby("O" if each in OUTSIDE | silent else each for each in labels):
        end = at + len(list(run))
        if label != "O":
            spans.append((at, end, label))
        at = end
    return spans


Tag = tuple[str, str]
"""A letter and the label of a span; "O" and "" for tokens outside."""


def _read(
    text: LabelledTokens, parts: Sequence[Tag | None], begins: bool
) -> tuple[list[CharSpan], list[tuple[int, int]]]:
    """Find spans and unknown tokens. begins (bool): does the corpus mark the beginnings of spans?"""
    spans, misplaced = _spans(parts)
    if begins:
        for i in misplaced:
            text.places[i].lose("labels inside a span that does not begin: taken as its beginning")
    bad = {label for label, part in zip(text.labels, parts) if part is None}
    return spans, _unknown(text, bad)


def _unknown(text: LabelledTokens, bad: Set[str]) -> list[tuple[int, int]]:
    """Find and report the tokens with labels that are no part of a span."""
    tokens = [i for i, label in enumerate(text.labels) if label in bad]
    for i in tokens:
        label = text.labels[i]
        what = SILENT.get(label, "labels that are no part of a span")
        place = text.places[i]
        name = f"{place.name} ({label})"[:60] if label else place.name
        place._replace(name=name).lose(f"{what}: unknown")
    return [(i, i + 1) for i in tokens]


def _parsed(labels: Sequence[str], way: str, silent: Set[str] = frozenset()) -> list[Tag | None]:
    """Split each label into a letter and the label of a span; None if it is neither that nor outside."""
    part_of: dict[str, Tag | None] = {label: ("O", "") for label in (OUTSIDE | {"o"}) - silent}
    for label in set(labels) - part_of.keys():
        match = WAYS[way].fullmatch(label)
        part_of[label] = match and (match["letter"].upper(), match["label"] or NAMELESS)
    return [part_of[label] for label in labels]


def _spans(parts: Sequence[Tag | None]) -> tuple[list[CharSpan], list[int]]:
    """Find the spans, and the tokens with a letter for the inside or end of a span that was not begun."""
    spans, misplaced = list[CharSpan](), list[int]()
    open_ = ""  # label of the span that the next token may be in
    for i, (letter, label) in enumerate(part or ("O", "") for part in parts):
        if letter != "O" and (letter in "BSUW" or label != open_):
            spans.append((i, i + 1, label))
            misplaced += [] if letter in "BSUW" else [i]
        elif letter != "O":
            spans[-1] = (spans[-1][0], i + 1, label)
        open_ = label if letter in "BIM" else ""
    return spans, misplaced


def _best_way(times: Counter[str]) -> tuple[str, int]:
    """Find the notation that fits most token labels, and how many it fits."""
    counts = {
        way: sum(n for label, n in times.items() if pattern.fullmatch(label))
        for way, pattern in WAYS.items()
    }
    way = max(counts, key=lambda way: counts[way])
    return way, counts[way]


def _evidence(labels: Iterable[str], way: str) -> tuple[bool, set[str]]:
    """Does some span's label occur with letters for its beginning and its rest? Also return all letters."""
    letters = defaultdict[str, set[str]](set)
    for label in labels:
        if match := WAYS[way].fullmatch(label):
            letters[match["label"]].add(match["letter"].upper())
    evident = any("B" in each and each & set("IMEL") for each in letters.values())
    return evident, set().union(*letters.values())


def _look_like_parts(labels: Sequence[str]) -> bool:
    """Is some label in canonical notation (B-X), or does one occur with letters for beginning and rest?"""
    return any(map(WAYS[CANONICAL].fullmatch, labels)) or any(
        _evidence(labels, way)[0] for way in WAYS
    )
