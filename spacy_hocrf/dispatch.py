"""Which compiled kernels run: those of the best instruction set that this machine has, unless
others are asked for.

The environment variable HOCRF_INSTRUCTIONS names one of PATHS for the whole process, which reads it
once; `use_instructions` does so for a part of it. The results of two instruction sets differ in the
last bits only.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from spacy_hocrf.errors import Errors

__all__ = ["PATHS", "VARIABLE", "active", "instruction_sets", "kernels", "use_instructions"]

PATHS = ("single", "baseline", "avx2", "avx512")
"""Builds of the kernels, by the number of sequences side by side: 1, 2, 4 and 8. No platform has all:
on x86-64 there is no `baseline`, elsewhere there are only the first two.
"""

VARIABLE = "HOCRF_INSTRUCTIONS"

_forced: list[str] = []


@cache
def instruction_sets() -> tuple[str, ...]:
    """The builds that were made for this platform and that its processor can run, the widest last."""
    single = import_module("spacy_hocrf.engine.kernels.single")
    return tuple(
        path
        for path in PATHS
        if single.runs(path) and find_spec(f"spacy_hocrf.engine.kernels.{path}") is not None
    )


def active() -> str:
    """The build that runs now. RAISES (ValueError): H059 if HOCRF_INSTRUCTIONS named one that
    cannot run here.
    """
    return _forced[-1] if _forced else _asked()


@cache
def _asked() -> str:
    """The build of the environment variable, or the widest; looked for once."""
    path = os.environ.get(VARIABLE, "")
    return _check(path) if path else instruction_sets()[-1]


@contextmanager
def use_instructions(path: str) -> Iterator[None]:
    """Run one build in all threads until the end of the block.

    path (str): one of `instruction_sets()`.
    RAISES (ValueError): H059 for any other.
    """
    _forced.append(_check(path))
    try:
        yield
    finally:
        _forced.pop()


@cache
def kernels(path: str, layer: str = "engine") -> Any:
    """The compiled module of a build.

    layer (str): "engine" for the recurrences, "model" for the scores.
    """
    return import_module(f"spacy_hocrf.{layer}.kernels.{path}")


def _check(path: str) -> str:
    if path not in instruction_sets():
        raise ValueError(
            Errors.H059.format(found=path, known=", ".join(instruction_sets()), variable=VARIABLE)
        )
    return path
