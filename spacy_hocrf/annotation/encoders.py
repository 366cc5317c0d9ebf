"""Saves Docs without looking up the registered encoders over and over.

Whenever srsly packs or unpacks something, several times per Doc, it asks two registries for all encoders
and decoders. Each time catalogue goes through the entry points of all installed packages, although it has
read them already, and through all registered functions: half a millisecond, in which this component reads
ten texts. So these two registries cache their result. Nothing changes but the time: functions that are
registered later are found, too.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

import catalogue
import srsly

__all__ = ["remember_encoders"]


@cache
def remember_encoders() -> None:
    """Let the registries of srsly cache their functions, unless srsly or catalogue has changed: then the
    problem may have been fixed.
    """
    for registry in (srsly.msgpack_encoders, srsly.msgpack_decoders):
        if type(registry) is catalogue.Registry and hasattr(catalogue, "REGISTRY"):
            registry.get_all = _CachedFunctions(registry)


class _CachedFunctions:
    """Cached result of `Registry.get_all`, looked up again after a function was registered anywhere."""

    def __init__(self, registry: catalogue.Registry) -> None:
        self._find, self._namespace = registry.get_all, tuple(registry.namespace)
        self._functions: Mapping[str, Any] = {}
        self._n_registered = -1

    def __call__(self) -> dict[str, Any]:
        registered = catalogue.REGISTRY
        if len(registered) != self._n_registered:
            self._n_registered, self._functions = len(registered), self._find()
        # a function may have been replaced by another one under the same name
        return {
            name: registered.get((*self._namespace, name), own)
            for name, own in self._functions.items()
        }
