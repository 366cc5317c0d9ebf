"""The extension attributes of Docs that hold links, and their probabilities.

`doc._.hocrf_links`, or whatever name the component's `attribute` gives, is a list of pairs
[item, target]: the items of the Doc are counted from 0, and -1 is the last item of the Docs before
it in its group, so that a pair means the same wherever a group is cut off. It is no span group,
which is flat, knows no pairs, and cannot name an item of another Doc; as lists of whole numbers it
goes through `DocBin(store_user_data=True)`, `to_bytes`, other processes and JSON. None, the
default, is unknown, an empty list no links. `doc._.hocrf_links_scores` has a probability for each.

In this folder, this file alone writes Docs.
"""

from collections.abc import Sequence
from typing import Any

from spacy.tokens import Doc

from spacy_hocrf.annotation.groups import register

__all__ = ["links_of", "register_links", "set_links"]

SCORES = "_scores"
"""Behind the attribute's name: the probability of each link (list of float)."""


def register_links(attribute: str) -> None:
    """Let Docs have links of this name, and their probabilities."""
    register(attribute, attribute + SCORES)


def links_of(doc: Doc, attribute: str) -> Any:
    """Value of the attribute; anything may be in it, and None is unknown."""
    return doc._.get(attribute)


def set_links(doc: Doc, attribute: str, found: Sequence[tuple[int, int, float]]) -> None:
    """Write links: an item, its target and the probability of each."""
    doc._.set(attribute, [[item, target] for item, target, _ in found])
    doc._.set(attribute + SCORES, [probability for _, _, probability in found])
