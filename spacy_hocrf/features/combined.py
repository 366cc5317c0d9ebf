"""`spacy-hocrf.Features.v1`: merges the blocks of a config into one list of templates, and adds the basic
ones that every model needs.

A semi-Markov model needs features of segments: with features of words alone, nothing tells it how many
segments there are, how long, and in which order. So the labels' bias, label patterns and lengths are added
by default, like the transitions of the usual CRF toolkits.
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
    """An element of a block: a template, or a dense score of this package."""

    @property
    def name(self) -> str:
        """Unique name among the elements."""
        ...


AnyNamed = TypeVar("AnyNamed", bound=Named)


class Complete(list[AnyNamed]):
    """Elements of a block to which no basic templates need to be added."""


@dataclass(frozen=True)
class Wider:
    """A template that is kept only if held-out texts favour it when the component is initialized."""

    template: Template

    @property
    def name(self) -> str:
        """Name of the template."""
        return self.template.name


def make_features(*templates: Sequence[AnyNamed], basics: bool = True) -> list[AnyNamed | Any]:
    """`spacy-hocrf.Features.v1`: all templates of its `*` blocks, and the basic ones.

    templates (Sequence[Template]): what the other functions of this folder, or your own, return. Equal
        templates of several blocks are merged.
    basics (bool): add templates of label patterns alone, of all orders that the model has, including the
        labels' bias, and of the segment's length in bins, unless a block has them. A block with a
        `spacy-hocrf.Window.v1` has decided that itself.
    RETURNS (list[Template]): the templates, in the order of the blocks.
    RAISES (ValueError): H028 if there is none; H029 if a block has two of one name, H240 if two
        blocks have different ones of one name, H575 for a block that is not a list of templates.
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
    return [*merged.values(), *(template for template in added if template.name not in merged)]


def make_label_patterns(order: int | None = None) -> list[TransitionTemplate]:
    """Make templates of label patterns alone, from the labels' bias up to an order.

    order (Optional[int]): highest order; null for that of the model.
    """
    if order is None:
        return [TransitionTemplate(0, every=True)]
    return [TransitionTemplate(k) for k in range(order + 1)]


def _merged(blocks: Sequence[Sequence[AnyNamed]]) -> dict[str, AnyNamed]:
    """Merge blocks into templates by name; optional templates give way to others of their name."""
    asked_for = {template.name for template in chain(*blocks) if not _optional(template)}
    merged: dict[str, AnyNamed] = {}
    for block in blocks:
        names: set[str] = set()
        for template in block:
            if template.name in names:
                raise ValueError(Errors.H029.format(name=template.name))
            names.add(template.name)
            if _optional(template) and template.name in asked_for:
                continue
            first = merged.setdefault(template.name, template)
            if first != template:
                name = template.name
                raise ValueError(FeatureErrors.H240.format(name=name, first=first, second=template))
    return merged


def _optional(template: object) -> bool:
    return isinstance(template, Wider) or (isinstance(template, Vectors) and template.optional)
