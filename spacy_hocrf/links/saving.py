"""Learnt links as a JSON header and named arrays, and back, checked."""

from typing import Any

import numpy as np
from msgspec import Struct

from spacy_hocrf.links.errors import LinkErrors
from spacy_hocrf.links.model import LinkModel
from spacy_hocrf.links.templates import LinkFeatures
from spacy_hocrf.saving.archive import FORMAT, Payload
from spacy_hocrf.saving.persistence import described, differences
from spacy_hocrf.saving.schema import Whole, checked

__all__ = ["read_links", "to_payload"]

KIND = "links"


class _UntrainedHeader(Struct, forbid_unknown_fields=True):
    """The header of a component that has learnt nothing."""

    format: Whole
    kind: str
    ready: bool


class _Header(_UntrainedHeader):
    """The header of learnt links."""

    settings: dict[str, Any]


def to_payload(model: LinkModel | None, features: LinkFeatures, order: int) -> Payload:
    """A learnt model; None for one that has learnt nothing."""
    header: dict[str, Any] = {"format": FORMAT, "kind": KIND, "ready": model is not None}
    if model is None:
        return Payload(header, {})
    header["settings"] = _described(features, order)
    arrays: dict[str, Any] = {_name(i): keys for i, keys in enumerate(model.keys)}
    return Payload(header, {**arrays, "weights": model.weights})


def read_links(payload: Payload, features: LinkFeatures, order: int, name: str) -> LinkModel | None:
    """A saved model; None for one that has learnt nothing.

    features (LinkFeatures), order (int): those of the component that it is read for.
    name (str): of the component, for errors.
    RAISES (ValueError): H134 for a header of another shape, H301 for other settings than the saved
        ones, H302 for arrays that do not fit, H307 for what another component has saved.
    """
    header, arrays = payload.header, payload.arrays
    kind = header.get("kind", "segments")
    if kind != KIND:
        raise ValueError(LinkErrors.H307.format(found=str(kind)[:40], expected=KIND))
    ready = checked(bool, header.get("ready"), "ready")
    links = checked(_Header if ready else _UntrainedHeader, header)
    if not isinstance(links, _Header):
        return None
    changes = differences(links.settings, _described(features, order))
    if changes:
        raise ValueError(LinkErrors.H301.format(difference="; ".join(changes)[:400], name=name))
    keys = []
    for number in range(order):
        found = arrays.get(_name(number))
        if found is None or found.dtype != np.uint64 or found.ndim != 1:
            raise ValueError(LinkErrors.H302.format(name=_name(number)))
        if (found[1:] <= found[:-1]).any():
            raise ValueError(LinkErrors.H302.format(name=_name(number)))
        keys.append(found)
    known = {*map(_name, range(order)), "weights"}
    for other in arrays.keys() - known:
        raise ValueError(LinkErrors.H302.format(name=other[:40]))
    weights = arrays.get("weights", np.zeros(0, dtype=np.float32))
    model = LinkModel(tuple(keys), tuple(features.scales[:order]), weights)
    fits = weights.dtype == np.float64 and weights.shape == (int(model.ends[-1]),)
    if not fits or not np.isfinite(weights).all():
        raise ValueError(LinkErrors.H302.format(name="weights"))
    return model


def _described(features: LinkFeatures, order: int) -> dict[str, Any]:
    """Description of what the numbers and the weights mean."""
    names = ("vertices", "edges", "triples")[:order]
    found: dict[str, Any] = {
        f"values.{name}": _value(value) for name, value in features.values.items()
    }
    found |= {name: list(t) for name, t in zip(names, features.sections)}
    # JSON's numbers, since that is what is read
    return described(None, **found, scales=list(features.scales[:order]), order=order)


def _value(value: Any) -> dict[str, Any]:
    return described(value, kind=type(value).__qualname__)


def _name(section: int) -> str:
    """Name of the array with the numbers of a section."""
    return ("vertices", "edges", "triples")[section]
