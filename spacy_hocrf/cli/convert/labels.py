"""A label for each token, as corpora in columns have it, and the spans that it means."""

import re
from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise

from spacy.training import iob_to_biluo
from spacy.training.iob_utils import tags_to_entities

from spacy_hocrf.cli.convert.records import CharSpan, Report

__all__ = ["SCHEMES", "scheme_of", "spans_by_text", "spans_of"]

SCHEMES = ("auto", "bio", "io")
OUTSIDE = frozenset({"", "_", "O"})
PREFIXED = re.compile(r"[BIOESLUM]-.+", re.DOTALL)
PARTS = {
    part: re.compile(rf"{part}([-_].*)?|.+[-_]{part}", re.DOTALL | re.IGNORECASE) for part in "BI"
}
"""What labels look like that mean the beginning and the inside of a span in some way of writing."""
BILUO = {"E": "L", "S": "U", "M": "I"}
"""Letters of other schemes that mean the same: the end, a single token, the middle."""


def scheme_of(labels: Iterable[str]) -> str:
    """ "bio" if all labels but those for no span have a letter in front that says which part of a span the
    token is (IOB, BIO, BILOU, BIOES, BMES); else "io": neighbours with one label are one span.
    """
    found = set(labels) - OUTSIDE
    return "bio" if found and all(map(PREFIXED.fullmatch, found)) else "io"


def spans_by_text(
    texts: Sequence[tuple[str, Sequence[str]]], scheme: str, report: Report
) -> list[list[CharSpan]]:
    """The spans of each text, by tokens.

    texts (Sequence[tuple[str, Sequence[str]]]): the place of each, and a label for each token.
    scheme (str): one of SCHEMES.
    """
    is_guess = scheme == "auto"
    if is_guess:
        scheme = scheme_of(label for _, labels in texts for label in labels)
    if scheme == "bio" and any(
        label[:1] in "BSU" for _, labels in texts for label in labels if label
    ):
        for place, labels in texts:
            what = "labels inside a span that does not begin: taken as its beginning"
            report.lose(what, place, _misplaced(labels))
    elif (
        is_guess
        and scheme == "io"
        and _look_like_parts({label for _, labels in texts for label in labels})
    ):
        for place, labels in texts:
            what = "labels like parts of spans, but not all with B-, I- or the like: taken as they stand"
            parts = sum(any(part.fullmatch(each) for part in PARTS.values()) for each in labels)
            report.lose(what, place, parts)
    return [spans_of(labels, scheme) for _, labels in texts]


def spans_of(labels: Sequence[str], scheme: str) -> list[CharSpan]:
    """First token, one past the last, and label of each span of a text.

    labels (Sequence[str]): one for each token.
    scheme (str): "bio" or "io". A part of a span without its beginning begins one.
    """
    if scheme == "io":
        found, at = [], 0
        for label, run in groupby("O" if each in OUTSIDE else each for each in labels):
            end = at + len(list(run))
            if label != "O":
                found.append((at, end, label))
            at = end
        return found
    tags = ["O" if each in OUTSIDE else BILUO.get(each[0], each[0]) + each[1:] for each in labels]
    return [(start, last + 1, label) for label, start, last in tags_to_entities(iob_to_biluo(tags))]


def _look_like_parts(labels: Iterable[str]) -> bool:
    """Has one a prefix, or do some look like beginnings and some like insides?"""
    found = set(labels) - OUTSIDE
    both = all(any(map(part.fullmatch, found)) for part in PARTS.values())
    return both or any(map(PREFIXED.fullmatch, found))


def _misplaced(labels: Sequence[str]) -> int:
    """How many parts of spans in a text follow no other part of theirs, where spans have beginnings."""
    return sum(
        each[0] in "IMEL" and each not in OUTSIDE and before[2:] != each[2:]
        for before, each in pairwise(["O", *labels])
        if each
    )
