"""`spacy-hocrf.Features.v1`: the blocks of a config as one list of templates, and what every model needs
besides them.

A semi-Markov model is as good as its account of segments: with words alone nothing says how many
there are, how long, and in which order. So the labels' bias, their patterns and lengths are there
unless somebody says otherwise, as are the transitions of the usual toolkits for CRFs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol, TypeVar

from spacy_hocrf.errors import Errors
from spacy_hocrf.features.config import make_segment
from spacy_hocrf.features.errors import FeatureErrors
from spacy_hocrf.features.segments import TransitionTemplate
from spacy_hocrf.features.templates import Template
from spacy_hocrf.features.vectors import Vectors

__all__ = ["Complete", "Named", "Wider", "make_features", "make_label_patterns"]


class Named(Protocol):
    """An element of a block: a template, or a dense score of ours."""

    @property
    def name(self) -> str:
        """Name that no other element has."""
        ...


AnyNamed = TypeVar("AnyNamed", bound=Named)


class Complete(list[AnyNamed]):
    """Elements of a block that needs no basic templates beside it."""


@dataclass(frozen=True)
class Wider:
    """A template that the model has only if texts held back say so when the component is initialised."""

    template: Template

    @property
    def name(self) -> str:
        """Name of the template."""
        return self.template.name


def make_features(*templates: Sequence[AnyNamed], basics: bool = True) -> list[AnyNamed | Any]:
    """`spacy-hocrf.Features.v1`: all templates of its `*` blocks, and the basics.

    templates (Sequence[Template]): what the other functions of this folder, or yours, return. What
        several blocks have alike is there once.
    basics (bool): add label patterns alone, of all orders that the model has, the labels' bias among
        them, and the segment's length in bins, where no block has them. A `spacy-hocrf.Window.v1`
        among the blocks has decided that already.
    RETURNS (list[Template]): the templates, in the order of the blocks.
    RAISES (ValueError): H028 if there is none; H029 if a block has two of one name, H240 if two
        blocks have different ones of one name, H575 for a block that is no list of templates.
    """
    for block in templates:
        if not isinstance(block, list | tuple) or not all(hasattr(each, "name") for each in block):
            raise ValueError(FeatureErrors.H575.format(found=repr(block)))
    merged = _merged(templates)
    if not merged:
        raise ValueError(Errors.H028)
    if not basics or any(isinstance(block, Complete) for block in templates):
        return [*merged.values()]
    added = [*make_segment(["LENGTH"]), *make_label_patterns()]
    return [*merged.values(), *(each for each in added if each.name not in merged)]


def make_label_patterns(order: int | None = None) -> list[TransitionTemplate]:
    """Label patterns alone, from the labels' bias to those of an order.

    order (Optional[int]): null for that of the model.
    """
    if order is None:
        return [TransitionTemplate(0, every=True)]
    return [TransitionTemplate(k) for k in range(order + 1)]


def _merged(blocks: Sequence[Sequence[AnyNamed]]) -> dict[str, AnyNamed]:
    """Templates by their names; what is there only if it can be gives way to others."""
    asked_for = {each.name for each in chain(*blocks) if not _optional(each)}
    merged: dict[str, AnyNamed] = {}
    for block in blocks:
        names: set[str] = set()
        for each in block:
            if each.name in names:
                raise ValueError(Errors.H029.format(name=each.name))
            names.add(each.name)
            if _optional(each) and each.name in asked_for:
                continue
            other = merged.setdefault(each.name, each)
            if other != each:
                text = FeatureErrors.H240.format(name=each.name, first=other, second=each)
                raise ValueError(text)
    return merged


def _optional(each: object) -> bool:
    return isinstance(each, Wider) or (isinstance(each, Vectors) and each.optional)
