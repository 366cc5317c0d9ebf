"""Weights of training texts: the extension attribute `doc._.hocrf_weight`, which multiplies a text's part of
the loss. 2 counts the text twice, and 0 leaves it out.
"""

from collections.abc import Iterable
from math import isfinite

from spacy.tokens import Doc
from spacy.training import Example

from spacy_hocrf.annotation.groups import register
from spacy_hocrf.errors import Errors
from spacy_hocrf.features.tokens import beginning
from spacy_hocrf.types import is_number

__all__ = ["WEIGHT", "counting", "set_weight", "weight_of"]

WEIGHT = "hocrf_weight"
"""Name of the attribute: a number >= 0; None is 1."""


def weight_of(reference: Doc) -> float:
    """Return the weight of a training text; 1.0 without one.

    reference (Doc): the example's reference. The attribute must be registered.
    RAISES (ValueError): H520 for anything but a finite number >= 0.
    """
    weight = reference._.get(WEIGHT)
    if weight is None:
        return 1.0
    if not is_number(weight) or not isfinite(weight) or weight < 0:
        raise ValueError(Errors.H520.format(found=repr(weight), text=repr(beginning(reference))))
    return float(weight)


def counting(examples: Iterable[Example]) -> list[Example]:
    """Drop examples of weight 0. RAISES (ValueError): H255 if all have weight 0, H520 as `weight_of`."""
    every = list(examples)
    kept = [example for example in every if weight_of(example.reference)]
    if every and not kept:
        raise ValueError(Errors.H255.format(found=len(every)))
    return kept


def set_weight(reference: Doc, weight: float) -> None:
    """Set `doc._.hocrf_weight`, registering it if necessary."""
    register(WEIGHT)
    reference._.set(WEIGHT, weight)
