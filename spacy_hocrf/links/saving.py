"""Saves learnt links as a JSON header and named arrays, and loads them, checked."""

from typing import Any

import numpy as np
from msgspec import Struct

from spacy_hocrf.links.errors import LinkErrors
from spacy_hocrf.links.model import LinkModel
from spacy_hocrf.links.pairs import LinkPairs
from spacy_hocrf.links.templates import LinkFeatures
from spacy_hocrf.saving.archive import FORMAT, Payload
from spacy_hocrf.saving.persistence import described, differences
from spacy_hocrf.saving.schema import Whole, checked

__all__ = ["read_links", "write_links"]

KIND = "links"


class _UntrainedHeader(Struct, forbid_unknown_fields=True):
    """The header of an untrained component."""

    format: Whole
    kind: str
    ready: bool


class _Header(_UntrainedHeader):
    """The header of learnt links."""

    settings: dict[str, Any]


def write_links(model: LinkModel | None, features: LinkFeatures, pairs: LinkPairs) -> Payload:
    """Convert a model to a payload; None is an untrained component."""
    header: dict[str, Any] = {"format": FORMAT, "kind": KIND, "ready": model is not None}
    if model is None:
        return Payload(header, {})
    header["settings"] = _described(features, pairs)
    return Payload(header, {"keys": model.keys, "weights": model.weights})


def read_links(
    payload: Payload, features: LinkFeatures, pairs: LinkPairs, name: str
) -> LinkModel | None:
    """Return a saved model; None if the component was untrained.

    features (LinkFeatures), pairs (LinkPairs): settings of the component that it is loaded into.
    name (str): name of the component, for errors.
    RAISES (ValueError): H134 for an invalid header, H301 for other settings than the saved
        ones, H302 for arrays that do not fit, H307 for data of another component.
    """
    header, arrays = payload.header, payload.arrays
    kind = header.get("kind", "segments")
    if kind != KIND:
        raise ValueError(LinkErrors.H307.format(found=str(kind)[:40], expected=KIND))
    ready = checked(bool, header.get("ready"), "ready")
    links = checked(_Header if ready else _UntrainedHeader, header)
    if not isinstance(links, _Header):
        return None
    changes = differences(links.settings, _described(features, pairs))
    if changes:
        raise ValueError(LinkErrors.H301.format(difference="; ".join(changes)[:400], name=name))
    none = np.zeros(0, dtype=np.bool_)
    keys, weights = arrays.get("keys", none), arrays.get("weights", none)
    fits = {name: False for name in arrays}
    fits["keys"] = keys.dtype == np.uint64 and keys.ndim == 1 and bool((keys[1:] > keys[:-1]).all())
    fits["weights"] = weights.dtype == np.float64 and weights.shape == keys.shape
    fits["weights"] = fits["weights"] and bool(np.isfinite(weights).all())
    for array, fine in fits.items():
        if not fine:
            raise ValueError(LinkErrors.H302.format(name=array[:40]))
    return LinkModel(keys, weights)


def _described(features: LinkFeatures, pairs: LinkPairs) -> dict[str, Any]:
    """Description of the settings that features and weights depend on."""
    values: dict[str, Any] = {
        f"values.{name}": described(value, kind=type(value).__qualname__)
        for name, value in features.values.items()
    }
    # as numbers of JSON, since they are compared with those that were read
    return described(None, **values, templates=[*features.templates], one_each=pairs.one_each)
