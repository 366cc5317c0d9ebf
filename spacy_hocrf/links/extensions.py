"""The extension attributes of Docs that hold links, and their probabilities.

`doc._.hocrf_links`, or the attribute named by the component's setting `attribute`, is a list of pairs
[item, target]: the items of the Doc are counted from 0, and -1 is the last item of the preceding Docs
in its group, so that a pair means the same wherever a group is cut off. Span groups would not do: they
are flat, have no pairs, and cannot refer to an item of another Doc; lists of whole numbers are kept by
`DocBin(store_user_data=True)`, `to_bytes`, other processes and JSON. None, the
default, is unknown, an empty list no links. `doc._.hocrf_links_scores` has a probability for each.

No other file in this folder writes Docs.
"""

from collections.abc import Sequence
from typing import Any

from spacy.tokens import Doc

from spacy_hocrf.annotation.groups import register

__all__ = ["links_of", "register_links", "set_links"]

SCORES = "_scores"
"""Suffix of the attribute with the probability of each link (list of float)."""


def register_links(attribute: str) -> None:
    """Register the attributes for links of this name, and for their probabilities."""
    register(attribute, attribute + SCORES)


def links_of(doc: Doc, attribute: str) -> Any:
    """The value of the attribute, unchecked; None is unknown."""
    return doc._.get(attribute)


def set_links(doc: Doc, attribute: str, links: Sequence[tuple[int, int, float]]) -> None:
    """Set the links of a Doc: item, target and probability of each."""
    doc._.set(attribute, [[item, target] for item, target, _ in links])
    doc._.set(attribute + SCORES, [probability for _, _, probability in links])
