"""`spacy-hocrf.Required.v1`: what a config names so that a pipeline tells which package it lacks.

spaCy resolves `[nlp]` before it looks for factories. Where the package is not installed, a pipeline with

    [nlp.before_creation]
    @callbacks = "spacy-hocrf.Required.v1"

fails with this name (E893), while a factory that is missing is called `hocrf` only (E002).
"""

from collections.abc import Callable

from spacy.language import Language

__all__ = ["make_required"]


def make_required() -> Callable[[type[Language]], type[Language]]:
    """A callback that does nothing."""
    return lambda language: language
