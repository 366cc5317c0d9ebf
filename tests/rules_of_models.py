"""Rules of every kind for small models."""

from spacy_hocrf.rules.compiled import CompiledRules
from spacy_hocrf.rules.constraints import Constraints
from spacy_hocrf.rules.templates import Apart, AtLeast, AtMost, Precedes, Together

TEMPLATES = [AtMost(), AtMost(most=2), AtLeast(), AtLeast(least=2), Precedes(), Together(), Apart()]


def kind_of(template, label):
    """A rule as the oracle has it."""
    kind = type(template).__name__
    if kind in ("AtMost", "AtLeast"):
        return kind, getattr(template, {"AtMost": "most", "AtLeast": "least"}[kind]), label
    return (kind, *label.split(" & "))


def compiled(pipe, **settings):
    index = pipe.structure.index
    known = pipe.structure.scheme, pipe.automaton, frozenset(index.carried)
    return CompiledRules(Constraints(**settings), *known)
