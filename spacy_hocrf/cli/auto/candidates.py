"""Settings to choose from: the default of the factory, and changes of it.

Which have a place here was decided on the dev parts of the twelve tasks in project/defaults, with three
draws of 100 texts and one of 400: those that had the lowest loss of held-back texts, or the highest F1, on
one of them. Those with the highest average F1 come first, since time may be short. The wide windows came
later, for larger corpora: with all texts they add 2 to 3 points of F1 to talks there. A CRF with an
encoding (bieso, order 2, a wide window) is none of them: it was behind by 0.6 points of F1 on average over 36
draws of 100 texts, and by 0.8 of ten draws of 400, though its loss is sometimes lower.
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

__all__ = ["DEFAULT", "Candidate", "candidates", "window_of", "with_changes"]

DEFAULT = "default"
WRITTEN = {"attrs": ["NORM", "SHAPE", "ORTH"], "window": {"NORM": 1, "SHAPE": 2, "ORTH": 0}}

CHANGES: tuple[Mapping[str, Any], ...] = (
    {"order": 3, "unseen": True, "features": WRITTEN},
    {"order": 3, "unseen": True},
    {"unseen": True, "features": WRITTEN},
    {"order": 2, "unseen": True},
    {"unseen": True},
    {"unseen": True, "unseen_transitions": True},
    {"unseen": True, "unseen_transitions": True, "features": {"wide": True}},
    {"features": {"wide": True}},
    {"order": 2},
    {"order": 3},
)
"""Changes of the default model."""


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
    for changes in CHANGES:
        other = with_changes(model, changes)
        if all(other != known.settings["model"] for known in found):
            settings = deepcopy({**default, "model": other})
            found.append(Candidate(_spell(model, other), settings))
    return found


def with_changes(model: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The block of a model with other settings; of features, those of `Window.v1`, alone or among others."""
    changed = {**model, **changes}
    if "features" in changes:
        features, window = model["features"], {**window_of(model), **changes["features"]}
        among = {**features, "*": {**features.get("*", {}), "window": window}}
        changed["features"] = among if "*" in features else window
    return changed


def window_of(model: Mapping[str, Any]) -> Mapping[str, Any]:
    """The block of `Window.v1` in that of a model."""
    features: Mapping[str, Any] = model["features"]
    window: Mapping[str, Any] = features["*"]["window"] if "*" in features else features
    return window


def _spell(model: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Difference between two models, for people."""
    words = []
    if other["order"] != model["order"]:
        words.append(f"order {other['order']}")
    for key in ("unseen", "unseen_transitions"):
        if key in other and other[key] != model[key]:
            words.append(key if other[key] else f"no {key}")
    before, after = window_of(model), window_of(other)
    if after["wide"] is True is not before["wide"]:
        words.append("wide window")
    elif after != before:
        words.append("word as written")
    return ", ".join(words)
