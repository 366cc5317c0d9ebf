"""The extension attributes of Docs that hold links, and what is proved of them.

`doc._.hocrf_links`, or whatever name the component's `attribute` gives, is a list of pairs
[item, target]: the items of the Doc are counted from 0, and -1 is the last item of the Docs before
it in its group, so that a pair means the same wherever a group is cut off. It is no span group,
which is flat, knows no pairs, and cannot name an item of another Doc; as lists of whole numbers it
goes through `DocBin(store_user_data=True)`, `to_bytes`, other processes and JSON. None, the
default, is unknown, an empty list no links.

In this folder, this file alone writes Docs.
"""

from collections.abc import Sequence
from typing import Any

from spacy.tokens import Doc

from spacy_hocrf.annotation.groups import register

__all__ = ["links_of", "register_links", "set_links", "set_proof"]

GAP, CERTIFICATE, TRACE = "_gap", "_certificate", "_trace"
"""Behind the attribute's name: gap (float, nats), certificate (bool), and if it is asked for, bound
and score by iteration (nats).
"""


def register_links(attribute: str) -> None:
    """Let Docs have links of this name, and what is proved of them."""
    register(attribute, *(attribute + end for end in (GAP, CERTIFICATE, TRACE)))


def links_of(doc: Doc, attribute: str) -> Any:
    """Value of the attribute; anything may be in it, and None is unknown."""
    return doc._.get(attribute)


def set_links(doc: Doc, attribute: str, links: Sequence[tuple[int, int]]) -> None:
    """Write pairs of an item and its target."""
    doc._.set(attribute, [list(pair) for pair in links])


def set_proof(
    doc: Doc,
    attribute: str,
    gap: float,
    certificate: bool,
    trace: Sequence[tuple[float, float]] | None,
) -> None:
    """Write what is proved of the links of the Doc's thread."""
    doc._.set(attribute + GAP, gap)
    doc._.set(attribute + CERTIFICATE, certificate)
    doc._.set(attribute + TRACE, None if trace is None else [list(step) for step in trace])
