"""The extension attributes of jointly decoded Docs, set by the component: what has been proved about the
reading.

No other file in this folder writes Docs.
"""

from collections.abc import Sequence

from spacy.tokens import Doc

__all__ = ["PROOFS", "set_proof"]

PROOFS = ("hocrf_gap", "hocrf_certificate", "hocrf_trace")
"""The gap (float, nats), the certificate (bool) and, on request, bound and score by iteration (nats).
None where every Doc is decoded alone.
"""


def set_proof(
    doc: Doc,
    gap: float,
    certificate: bool | None,
    trace: Sequence[tuple[float, float]] | None,
) -> None:
    """Set `doc._.hocrf_gap` (nats), `doc._.hocrf_certificate` and `doc._.hocrf_trace` (nats); they must be
    registered.
    """
    doc._.hocrf_gap, doc._.hocrf_certificate = gap, certificate
    doc._.hocrf_trace = None if trace is None else [list(step) for step in trace]
