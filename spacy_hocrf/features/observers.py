"""Observers: templates grouped by what they observe, whatever the part of a segment and the number of
earlier labels that their features see.

The default features look at a word as the first token of a segment, as its last and as any: one
*observer* with three templates. Its observations are extracted, hashed and numbered once, and the
weights of the three are adjacent.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard, get_args

from spacy_hocrf.features.checks import checked_events
from spacy_hocrf.features.flags import FLAGS
from spacy_hocrf.features.pieces import PiecesTemplate
from spacy_hocrf.features.plan import MAX_COLUMNS, Plan
from spacy_hocrf.features.table import ObservationTable
from spacy_hocrf.features.templates import (
    AttributeTemplate,
    Events,
    FlagTemplate,
    Found,
    NgramTemplate,
    PositionTemplate,
    RealTemplate,
    Template,
)
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.types import CONST, LENGTH, TOKEN

__all__ = ["Observer", "observers_of", "planned"]

SharedTemplate = (
    AttributeTemplate
    | FlagTemplate
    | NgramTemplate
    | PiecesTemplate
    | PositionTemplate
    | RealTemplate
)
SHARED_TEMPLATES = get_args(SharedTemplate)
"""Templates whose observations do not depend on part and order; of other classes this is not known."""


@dataclass(frozen=True)
class Observer:
    """Templates with the same observations, each at another part or with another order."""

    number: int  # first column of its observations in the table
    name: str  # equal in two models if they observe the same
    templates: tuple[int, ...]  # numbers of the templates, ascending
    template: Template  # the first of them

    @property
    def looks(self) -> bool:
        """Does it look at Docs? Lengths and label patterns are known without them."""
        return self.template.part not in (LENGTH, CONST)

    def events(self, batch: TokenBatch) -> Events:
        """Return all its events. RAISES (ValueError): H130 for events that do not fit the batch."""
        return checked_events(self.template, batch)

    def found(self, batch: TokenBatch, table: ObservationTable) -> Found:
        """Return the known observations of tokens.

        RAISES (ValueError): H130 for events that do not fit the batch.
        """
        events = self.events(batch)
        return Found(table.lookup(self.number, events.values), events.token, events.weight)


def observers_of(templates: Sequence[Template]) -> tuple[Observer, ...]:
    """Group templates into observers, in the order of the first template of each."""
    numbers_by_name = dict[tuple[str, int], list[int]]()
    copies = dict[tuple[str, int, int], int]()
    for number, template in enumerate(templates):
        place = (_observed(template), template.part, template.order)
        copies[place] = copies.get(place, 0) + 1
        numbers_by_name.setdefault((place[0], copies[place]), []).append(number)
    return tuple(
        Observer(number, f"{name} {copy}", tuple(numbers), templates[numbers[0]])
        for number, ((name, copy), numbers) in enumerate(numbers_by_name.items())
    )


def planned(observers: Sequence[Observer]) -> tuple[Plan, tuple[Observer, ...]]:
    """Return a plan that serves as many observers as possible in one pass, and the other observers."""
    columns = list[str]()
    steps, others = list[tuple[str, int, Sequence[tuple[int, int]]]](), list[Observer]()
    for observer in observers:
        attributes = observer.template.attributes if _is_shared(observer.template) else ()
        together = list(dict.fromkeys([*columns, *attributes]))
        step = _step(observer.template, together) if len(together) <= MAX_COLUMNS else None
        if step is None:
            others += [observer] if observer.looks else []
        else:
            columns = together
            steps.append((step[0], observer.number, step[1]))
    return Plan(columns, steps), tuple(others)


def _step(
    template: Template, columns: Sequence[str]
) -> tuple[str, Sequence[tuple[int, int]]] | None:
    """The step of a plan that serves a template; None if there is no such step."""
    if not _is_shared(template) or template.width > MAX_COLUMNS:
        return None
    if isinstance(template, AttributeTemplate):
        terms = [(columns.index(attribute), offset) for attribute, offset in template.terms]
        return ("value" if len(terms) == 1 else "tuple"), terms
    if isinstance(template, NgramTemplate) and template.kind in ("prefix", "suffix"):
        return template.kind, [(columns.index(template.attribute), template.size)]
    if isinstance(template, FlagTemplate):
        bits = [(FLAGS.index(flag), value) for value, flag in enumerate(template.flags)]
        return "bits", [(columns.index("FLAGS"), template.offset), *bits]
    return None


def _is_shared(template: Template) -> TypeGuard[SharedTemplate]:
    return type(template) in SHARED_TEMPLATES


def _observed(template: Template) -> str:
    """Description of what a template observes, equal only for templates that observe the same."""
    if _is_shared(template):
        return repr(replace(template, part=TOKEN, order=0))
    return f"'{template.name}'"
