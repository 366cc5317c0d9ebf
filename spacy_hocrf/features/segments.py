"""Templates on whole segments: their text, their length, or only their label pattern."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from spacy.strings import StringStore

from spacy_hocrf.features.templates import Events, Observing, spell, template_name
from spacy_hocrf.features.tokens import NUMBERS, TokenBatch
from spacy_hocrf.types import CONST, LENGTH, SPAN

__all__ = ["LengthTemplate", "TextTemplate", "TransitionTemplate"]


@dataclass(frozen=True)
class TextTemplate(Observing):
    """The segment's text: the values of one attribute of its tokens, in order, for segments of at most
    `longest` tokens.
    """

    attribute: str
    longest: int
    order: int = 0
    part: int = SPAN

    @property
    def name(self) -> str:
        return template_name(f"TEXT.{self.attribute}", self.part, self.order)

    @property
    def width(self) -> int:
        return self.longest

    def events(self, batch: TokenBatch) -> Events:
        column = batch.column(self.attribute)
        last = batch.offsets[1:][batch.sequence]
        starts, ends, values = [], [], []
        for length in range(1, self.longest + 1):
            start = np.flatnonzero(np.arange(len(batch)) + length <= last)
            text = np.zeros((len(start), self.longest), dtype=np.uint64)
            for i in range(length):
                text[:, i] = column[start + i]
            starts.append(start)
            ends.append(start + length)
            values.append(text)
        return Events(np.concatenate(starts), np.concatenate(values), None, np.concatenate(ends))

    def describe(self, values: Sequence[int], strings: StringStore) -> str:
        """The tokens; a value of 0 is no token, or one without this attribute."""
        return " ".join(
            str(v) if self.attribute in NUMBERS else spell(v, strings)
            for v in np.trim_zeros(values, "b")
        )


@dataclass(frozen=True)
class LengthTemplate(Observing):
    """The segment's length in bins; `bins` has the smallest length of each, ascending from 1."""

    bins: tuple[int, ...]
    order: int = 0
    part: int = LENGTH
    width: int = 1

    @property
    def name(self) -> str:
        return template_name("LENGTH", self.part, self.order)

    def describe(self, values: Sequence[int], strings: StringStore) -> str:
        low, above = self.bins[values[0]], self.bins[values[0] + 1 :][:1]
        return (
            f"{low}-{above[0] - 1}"
            if above and above[0] > low + 1
            else str(low)
            if above
            else f"{low}+"
        )


@dataclass(frozen=True)
class TransitionTemplate(Observing):
    """No observation: the label pattern alone. At order 0 it is the label's bias."""

    order: int
    number: int = 0  # distinguishes identical templates that are to be separate features
    part: int = CONST
    width: int = 0
    every: bool = False  # one template per order of the model, from its own on?

    @property
    def name(self) -> str:
        kind = "LABELS" if not self.number else f"LABELS.{self.number}"
        name = template_name(kind, self.part, self.order)
        return f"{name} and up" if self.every else name

    def up_to(self, order: int) -> "list[TransitionTemplate]":
        """Return the templates that it stands for in a model of an order."""
        last = order if self.every else self.order
        return [replace(self, order=k, every=False) for k in range(self.order, last + 1)]
