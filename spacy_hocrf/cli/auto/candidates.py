"""Settings to choose from: the default of the factory, and changes of it.

Which have a place here was decided on the dev parts of the twelve tasks in project/defaults, with three
draws of 100 texts and one of 400: those that had the lowest loss of held-back texts, or the highest F1, on
one of them. Those with the highest F1 in the mean come first, since time may be short.
"""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

__all__ = ["DEFAULT", "Candidate", "candidates"]

DEFAULT = "default"
CRF = "spacy-hocrf.HighOrderCRF.v1"
WIDE = {"window": 2, "bigrams": ["NORM", "FLAGS"], "flags": [0]}
WRITTEN = {"attrs": ["NORM", "SHAPE", "ORTH"], "window": {"NORM": 1, "SHAPE": 2, "ORTH": 0}}

SEMI: tuple[Mapping[str, Any], ...] = (
    {"order": 3, "unseen": True, "features": WRITTEN},
    {"order": 3, "unseen": True},
    {"unseen": True, "features": WRITTEN},
    {"order": 2, "unseen": True},
    {"unseen": True},
    {"unseen": True, "unseen_transitions": True},
    {"order": 2},
    {"order": 3},
)
"""Changes of the default model."""
TOKENWISE: tuple[Mapping[str, Any], ...] = ({"encoding": "bieso", "order": 2, "features": WIDE},)
"""Settings of a CRF."""


@dataclass(frozen=True)
class Candidate:
    """Settings of a component, but for sigma and the decoder."""

    name: str  # what is different from the default
    settings: Mapping[str, Any]  # of the component


def candidates(default: Mapping[str, Any]) -> list[Candidate]:
    """The default first, then the others in the order in which they are tried.

    default (Mapping[str, Any]): the config block of the component, every setting filled in.
    """
    model = default["model"]
    found = [Candidate(DEFAULT, default)]
    for other in _models(model):
        if all(other != known.settings["model"] for known in found):
            settings = deepcopy({**default, "model": other})
            found.append(Candidate(_spell(model, other), settings))
    return found


def _models(model: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for changes in SEMI:
        yield _merged(model, changes)
    known = {"min_count", "min_pattern_count", "unseen_transitions", "features"}
    shared = {key: value for key, value in model.items() if key in known}
    for changes in TOKENWISE:
        yield _merged({"@architectures": CRF, **shared}, changes)


def _merged(block: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The block with other settings; a block in it is changed, not replaced."""
    merged = dict(block)
    for key, value in changes.items():
        inner = key == "features"
        merged[key] = {**merged[key], **value} if inner else value
    return merged


def _spell(model: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """What is different, for people."""
    words = []
    if other["@architectures"] != model["@architectures"]:
        words.append(f"CRF {other['encoding']}")
    if other["order"] != model["order"]:
        words.append(f"order {other['order']}")
    for key in ("unseen", "unseen_transitions"):
        if key in other and other[key] != model[key]:
            words.append(key if other[key] else f"no {key}")
    if other["features"] != model["features"]:
        written = "ORTH" in other["features"]["attrs"]
        words.append("word as written" if written else "wide window")
    return ", ".join(words)
