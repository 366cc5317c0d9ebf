"""Label schemes: what the engine's labels mean, and which transitions, lengths and positions are
forbidden.

A semi-CRF's labels are the users' labels and, for unlabelled text, an outside label:
`outside = "token"` makes every unlabelled token a segment of its own, `"run"` a maximal run of them
one segment, which never repeats and has no limit. A CRF's labels are encoded: "io", "bio" or "bieso",
with illegal transitions impossible; a tagger's labels are the tags themselves.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import offsets_of
from spacy_hocrf.errors import Errors
from spacy_hocrf.features.tokens import is_unicode
from spacy_hocrf.model.scores import token_bits
from spacy_hocrf.types import CONTINUE, FIRST, LAST, Segment, Segmentation, Segments

__all__ = [
    "ENCODINGS",
    "OUTSIDE",
    "LabelScheme",
    "check_labels",
    "make_scheme",
    "most_forbidden",
]

ENCODINGS = ("io", "bio", "bieso")
OUTSIDE = "O"
PREFIXES = {"io": ("",), "bio": ("B-", "I-"), "bieso": ("B-", "I-", "E-", "S-")}


@dataclass(frozen=True)
class LabelScheme:
    """The engine's labels and their meaning."""

    labels: tuple[str, ...]  # the users' labels
    outside: int  # engine label of unlabelled text, -1 if there is none
    encoding: str  # "segments", "tags", or one of ENCODINGS
    names: tuple[str, ...]  # [Y] names of the engine labels
    limits: tuple[int, ...]  # [Y] longest segment, 0 for no limit
    forbidden: tuple[tuple[int, int], ...]  # pairs of engine labels that never follow one another
    # [3, Y] FIRST, CONTINUE, LAST: for the first token, for others, and for the last token of a Doc
    bits: NDArray[np.uint8]

    @property
    def n_labels(self) -> int:
        """Number of engine labels Y."""
        return len(self.names)

    @cached_property
    def one_token(self) -> NDArray[np.bool_]:
        """Engine labels whose segments have one token, bool [Y]."""
        return np.equal(self.limits, 1)

    @cached_property
    def longest(self) -> NDArray[np.int64]:
        """Longest span of each engine label in tokens, int64 [Y]; 0 for the outside label."""
        most = [limit or np.iinfo(np.int64).max for limit in self.limits]
        return np.array(
            [0 if y == self.outside else limit for y, limit in enumerate(most)], dtype=np.int64
        )

    @cached_property
    def solid(self) -> bool:
        """Is white space at the ends of spans excluded, which requires that it can be outside?"""
        return self.encoding in ("segments", "bieso") and self.outside >= 0

    @cached_property
    def off_blank(self) -> NDArray[np.int64]:
        """Engine labels, int64 [n], that say that a span begins or ends at a token, which is then not white
        space. None if white space cannot be outside.
        """
        places = {"segments": (0,), "bio": (0,), "bieso": (0, 2, 3)}.get(self.encoding, ())
        firsts = self.first_of.values() if self.outside >= 0 else ()
        return np.array([first + place for first in firsts for place in places], dtype=np.int64)

    @property
    def settled(self) -> bool:
        """Is there only one reading of a text, whatever the weights: one span of the only label?"""
        return len(self.names) == 1 and (self.encoding == "io" or bool(self.forbidden))

    def allowed(self, offsets: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return the bits of every token if nothing is known, uint8 [N, Y].

        offsets (int64 [D + 1]): first token of each sequence.
        """
        return token_bits(self.bits, offsets)

    def encode(self, spans: Sequence[tuple[int, int, str]], length: int) -> Segmentation:
        """Convert spans of one sequence, sorted and not overlapping, to segments that cover it.

        spans (Sequence[tuple[int, int, str]]): start, end and label.
        length (int): tokens of the sequence.
        RAISES (ValueError): H040 for an unknown label, H041 for an unlabelled token where there is
            no outside label.
        """
        segments: Segmentation = []
        at = 0
        for start, end, label in spans:
            self._fill(segments, at, start)
            segments += self.encode_span(start, end, label)
            at = end
        self._fill(segments, at, length)
        return segments

    @cached_property
    def first_of(self) -> dict[str, int]:
        """The engine's label for the first token of a span, by user's label."""
        width = len(PREFIXES.get(self.encoding, ("",)))
        return {label: i * width + (self.outside == 0) for i, label in enumerate(self.labels)}

    def encode_span(self, start: int, end: int, label: str) -> Segmentation:
        """Convert one span to segments. RAISES (ValueError): H040 for an unknown label."""
        first = self.first_of.get(label, -1)
        if first < 0:
            raise ValueError(Errors.H040.format(label=label, known=", ".join(self.labels)))
        if self.encoding == "segments":
            return [Segment(start, end, first)]
        if self.encoding in ("io", "tags"):
            return [Segment(i, i + 1, first) for i in range(start, end)]
        if self.encoding == "bio":
            return [Segment(i, i + 1, first + (i > start)) for i in range(start, end)]
        if end - start == 1:
            return [Segment(start, end, first + 3)]
        return [
            Segment(i, i + 1, first + (0 if i == start else 2 if i == end - 1 else 1))
            for i in range(start, end)
        ]

    def spans(self, segments: Segments) -> Segments:
        """Convert the segments of D sequences to spans; unlabelled text is left out.

        segments (Segments): segments with engine labels that cover every sequence.
        RETURNS (Segments): the spans, labelled by their place in `labels`.
        """
        offsets, start, end, label = segments
        prefixes = PREFIXES.get(self.encoding, ("",))
        labelled = np.flatnonzero(label != self.outside)
        start, end = start[labelled], end[labelled]
        # each label of a segment is a user's label and a prefix
        number, prefix = np.divmod(label[labelled] - (self.outside == 0), len(prefixes))
        opens = np.ones(len(labelled), dtype=bool)
        if self.encoding in ENCODINGS:
            # a span opens at B- or S-, at the start of a sequence, after a gap, and with a new label
            begins = np.zeros(len(label) + 1, dtype=bool)
            begins[offsets] = True
            opening = np.array([text in ("B-", "S-") for text in prefixes])
            opens = opening[prefix] | begins[labelled]
            opens[:1] = True
            opens[1:] |= (np.diff(labelled) > 1) | (np.diff(number) != 0)
        heads = np.flatnonzero(opens)
        tails = np.append(heads, len(labelled))[1:] - 1
        spans = np.searchsorted(labelled[heads], offsets)
        return Segments(spans, start[heads], end[tails], number[heads])

    def named(self, spans: Segments) -> list[list[tuple[int, int, str]]]:
        """Return the spans of each sequence, with the users' labels."""
        names = map(self.labels.__getitem__, spans.label.tolist())
        rows = list(zip(spans.start.tolist(), spans.end.tolist(), names))
        return [rows[first:last] for first, last in pairwise(spans.offsets.tolist())]

    def numbered(self, spans: Sequence[Sequence[tuple[int, int, str]]]) -> Segments:
        """Convert the spans of each sequence, with the users' labels, to arrays: the inverse of `named`."""
        number = {label: y for y, label in enumerate(self.labels)}
        rows = [(start, end, number[y]) for sequence in spans for start, end, y in sequence]
        columns = np.array(rows, dtype=np.int32).reshape(-1, 3).T
        return Segments(offsets_of([len(sequence) for sequence in spans]), *columns)

    def span_bits(self, start: int, end: int, label: str) -> NDArray[np.uint8]:
        """Return bits that force exactly this span, uint8 [end - start, Y]."""
        bits = np.zeros((end - start, self.n_labels), dtype=np.uint8)
        for segment in self.encode_span(start, end, label):
            for i in range(segment.start, segment.end):
                bits[i - start, segment.label] = CONTINUE
            bits[segment.start - start, segment.label] = FIRST
            bits[segment.end - 1 - start, segment.label] |= LAST
        return bits

    @cached_property
    def rules(self) -> NDArray[np.int32]:
        """Engine labels in a span of each of the users' labels, int32 [n, 5]: label of its first token, of
        further tokens, of its last token, of a span of one segment, and the label that must not precede it;
        -1 for none. See `engine.probable.probable_spans`.
        """
        shape = {"io": (0, 0, -1, -1, 0), "bio": (0, 1, -1, -1, -1), "bieso": (0, 1, 2, 3, -1)}
        row = np.array(shape.get(self.encoding, (-1, -1, -1, 0, -1)), dtype=np.int32)
        firsts = np.array([*self.first_of.values()], dtype=np.int32)[:, None]
        return np.where(row < 0, -1, firsts + row).astype(np.int32)

    def can_have(self, spans: Sequence[tuple[int, int, str]]) -> bool:
        """Can the model represent spans of one sequence, sorted and not overlapping: is each short enough and
        not empty, and are adjacent spans of one label distinguishable?
        """
        if any(start == end for start, end, _ in spans):
            return False
        if self.encoding == "io":
            touching = [a[1] == b[0] and a[2] == b[2] for a, b in pairwise(spans)]
            return not any(touching)
        if self.encoding not in ("segments", "tags"):
            return True
        for start, end, label in spans:
            limit = self.limits[self.first_of[label]]
            if end - start > (1 if self.encoding == "tags" else limit or end):
                return False
        return True

    def user_label(self, label: int) -> int:
        """Place in `labels` of an engine label that is not outside."""
        return (label - (self.outside == 0)) // len(PREFIXES.get(self.encoding, ("",)))

    def continuing(self, label: str) -> list[int]:
        """Engine labels with which a span of this label continues after its first token; empty for a
        semi-CRF.
        """
        first = self.first_of[label]
        return {"io": [first], "bio": [first + 1], "bieso": [first + 1, first + 2]}.get(
            self.encoding, []
        )

    def engine_labels(self, label: str) -> list[int]:
        """Engine labels of all tokens in spans of this label."""
        row = self.rules[self.labels.index(label), :4]
        return sorted({int(y) for y in row if y >= 0})

    def _fill(self, segments: Segmentation, start: int, end: int) -> None:
        if start >= end:
            return
        if self.outside < 0:
            raise ValueError(Errors.H041.format(start=start, end=end))
        if self.limits[self.outside] == 0:
            segments.append(Segment(start, end, self.outside))
        else:
            segments += [Segment(i, i + 1, self.outside) for i in range(start, end)]


def check_labels(labels: Sequence[Any]) -> None:
    """Check the users' labels. RAISES (ValueError): H057 for anything but a non-empty string, H132 for a
    string that is not valid Unicode, H133 for one that occurs twice.
    """
    seen: set[str] = set()
    for label in labels:
        if not isinstance(label, str) or not label:
            raise ValueError(Errors.H057.format(label=label))
        if not is_unicode(label):
            raise ValueError(Errors.H132.format(what="label", found=ascii(label)))
        if label in seen:
            raise ValueError(Errors.H133.format(label=label))
        seen.add(label)


def most_forbidden(n_labels: int, encoding: str) -> int:
    """Upper bound on the number of forbidden transitions, before a scheme is made.

    n_labels (int): users' labels.
    """
    if encoding not in ("bio", "bieso"):
        return 1 + n_labels
    return (1 + len(PREFIXES[encoding]) * n_labels) ** 2


def make_scheme(
    labels: Sequence[str],
    *,
    encoding: str,
    outside: str | None,
    repeats: bool = True,
    limits: Sequence[int] = (),
) -> LabelScheme:
    """Make the engine labels for the users' labels.

    labels (Sequence[str]): the users' labels.
    encoding (str): "segments" for a semi-CRF, "tags" for a tagger, or one of ENCODINGS for a CRF.
    outside (Optional[str]): "token" or "run" for unlabelled text, None if every token is labelled.
    repeats (bool): may two neighbouring segments share a label? For "segments" only; runs of outside
        never do.
    limits (Sequence[int]): longest segment of each label, 0 for no limit; for "segments" only.
    RETURNS (LabelScheme): the scheme. The outside label, if any, is engine label 0.
    RAISES (ValueError): H057, H132 or H133 for invalid labels.
    """
    check_labels(labels)
    shift = 0 if outside is None else 1
    prefixes = PREFIXES.get(encoding, ("",))
    names = [OUTSIDE] * shift + [prefix + label for label in labels for prefix in prefixes]
    n = len(names)
    if encoding == "segments":
        all_limits = [0 if outside == "run" else 1] * shift + list(limits)
        forbidden = [] if repeats else [(y, y) for y in range(shift, n)]
        if outside == "run":
            forbidden.insert(0, (0, 0))
    else:
        all_limits = [1] * n
        forbidden = [
            (a, b)
            for a in range(n)
            for b in range(n)
            if not _may_follow(names[a], names[b], encoding)
        ]
    bits = np.full((3, n), FIRST | CONTINUE | LAST, dtype=np.uint8)
    for y, name in enumerate(names):
        if encoding in ("bio", "bieso") and name[:2] in ("I-", "E-"):
            bits[0, y] = 0
        if encoding == "bieso" and name[:2] in ("B-", "I-"):
            bits[2, y] = 0
    return LabelScheme(
        labels=tuple(labels),
        outside=shift - 1,
        encoding=encoding,
        names=tuple(names),
        limits=tuple(all_limits),
        forbidden=tuple(forbidden),
        bits=bits,
    )


def _may_follow(previous: str, label: str, encoding: str) -> bool:
    if encoding not in ("bio", "bieso"):
        return True
    inside = label[:2] in ("I-", "E-")
    if inside:
        return previous[2:] == label[2:] and previous[:2] in ("B-", "I-")
    return encoding == "bio" or previous[:2] not in ("B-", "I-")
