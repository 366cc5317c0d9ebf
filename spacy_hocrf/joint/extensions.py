"""The extension attributes of Docs that are decoded together: their group, which users set, and what
is proved of their reading, which the component sets.

In this folder, this file alone writes Docs.
"""

from collections.abc import Hashable, Sequence

from spacy.tokens import Doc

__all__ = ["GROUP", "PROOFS", "get_group", "register", "set_group", "set_proof"]

GROUP = "hocrf_group"
"""Any hashable id; Docs with an equal one are a group, and None is a group of its own."""

PROOFS = ("hocrf_gap", "hocrf_certificate", "hocrf_trace")
"""The gap (float, nats), the certificate (bool) and, if it is asked for, bound and score by iteration
(nats). None where every Doc is decoded alone.
"""


def register(*names: str) -> None:
    """Extension attributes of these names, None by default; those that are there stay."""
    for name in names:
        if not Doc.has_extension(name):
            Doc.set_extension(name, default=None)


def get_group(doc: Doc, attribute: str) -> Hashable:
    """The value of a registered extension attribute that says which Docs are a group."""
    group: Hashable = doc._.get(attribute)
    return group


def set_group(doc: Doc, group: Hashable) -> None:
    """Set `doc._.hocrf_group`, which is registered if need be."""
    register(GROUP)
    doc._.set(GROUP, group)


def set_proof(
    doc: Doc,
    gap: float,
    certificate: bool | None,
    trace: Sequence[tuple[float, float]] | None,
) -> None:
    """Set `doc._.hocrf_gap` (nats), `doc._.hocrf_certificate` and `doc._.hocrf_trace` (nats), which are
    registered.
    """
    doc._.hocrf_gap, doc._.hocrf_certificate = gap, certificate
    doc._.hocrf_trace = None if trace is None else [list(step) for step in trace]
