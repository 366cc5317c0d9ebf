"""Saving Docs without asking all installed packages again and again for encoders.

Whenever srsly packs or unpacks anything, which it does several times for a Doc, it asks two registries for
all encoders and decoders. catalogue goes through the entry points of all packages then, though it has read
them once and for all, and through every function that is registered anywhere: half a millisecond, in which
this component reads ten texts. So these two registries remember what they have found. It changes nothing but
the time: they find what they would, also what is registered later.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

import catalogue
import srsly

__all__ = ["remember_encoders"]


@cache
def remember_encoders() -> None:
    """Let the registries of srsly remember, unless they or catalogue are no longer as they were: then it may
    have been mended.
    """
    for registry in (srsly.msgpack_encoders, srsly.msgpack_decoders):
        if type(registry) is catalogue.Registry and hasattr(catalogue, "REGISTRY"):
            registry.get_all = _Remembered(registry)


class _Remembered:
    """Result of `Registry.get_all`, looked up anew whenever a function was registered anywhere."""

    def __init__(self, registry: catalogue.Registry) -> None:
        self._find, self._place = registry.get_all, tuple(registry.namespace)
        self._found: Mapping[str, Any] = {}
        self._n = -1

    def __call__(self) -> dict[str, Any]:
        registered = catalogue.REGISTRY
        if len(registered) != self._n:
            self._n, self._found = len(registered), self._find()
        # one that is registered again under its name is another one now
        return {
            name: registered.get((*self._place, name), known) for name, known in self._found.items()
        }
