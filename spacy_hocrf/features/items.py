"""Templates of CRF++ or Wapiti applied to the tokens of a Doc: `spacy-hocrf.Item.v1`.

The texts that commands insert are computed once per distinct value of an attribute; an observation has one
value per command. `describe` shows it as the string that the toolkit would make.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from spacy.strings import StringStore, get_string_id

from spacy_hocrf.features.commands import TOOLKITS, Command, parse_template, wrong_template
from spacy_hocrf.features.config import checked_parts
from spacy_hocrf.features.dollars import with_dollars, without_dollars
from spacy_hocrf.features.errors import FeatureErrors
from spacy_hocrf.features.templates import Events, Observing, Template, spell, template_name
from spacy_hocrf.features.tokens import NUMBERS, TokenBatch, check_attribute
from spacy_hocrf.types import TOKEN

__all__ = ["ItemTemplate", "make_item"]


@dataclass(frozen=True)
class ItemTemplate(Observing):
    """A template of CRF++ or Wapiti that reads attributes of tokens as columns."""

    toolkit: str  # of TOOLKITS
    text: str
    columns: tuple[str, ...]
    part: int = TOKEN
    order: int = 0

    @cached_property
    def pieces(self) -> tuple[str | Command, ...]:
        """The texts and commands of the template."""
        return parse_template(self.text, TOOLKITS[self.toolkit])

    @cached_property
    def commands(self) -> tuple[Command, ...]:
        return tuple(piece for piece in self.pieces if isinstance(piece, Command))

    @property
    def name(self) -> str:
        return template_name(self.text, self.part, self.order)

    @property
    def width(self) -> int:
        return len(self.commands)

    @property
    def attributes(self) -> tuple[str, ...]:
        """Token attribute that each command reads."""
        return tuple(self.columns[command.column] for command in self.commands)

    def events(self, batch: TokenBatch) -> Events:
        """One event per token."""
        columns = [
            self._column(command, attribute, batch)
            for command, attribute in zip(self.commands, self.attributes)
        ]
        return Events(np.arange(len(batch)), np.stack(columns, axis=1))

    def _column(self, command: Command, attribute: str, batch: TokenBatch) -> NDArray[np.uint64]:
        """Text that a command inserts at each token, as hashes, uint64 [N]."""
        _, changed = batch.map_strings(attribute, lambda text: [command.changed(text)])
        first, last = batch.offsets[:-1][batch.sequence], batch.offsets[1:][batch.sequence]
        place = np.arange(len(batch)) + command.offset
        if command.absolute:
            place = command.offset + (last if command.offset < 0 else first - 1)
        before, after = np.minimum(place - first, 0), np.maximum(place - last + 1, 0)
        distance = before + after  # one of them is 0
        values = np.zeros(len(batch), dtype=np.uint64)
        values[distance == 0] = changed[place[distance == 0]]
        for far in np.unique(distance[distance != 0]).tolist():
            outside = command.changed(TOOLKITS[self.toolkit].outside(far))
            values[distance == far] = batch.intern(outside)
        return values

    def nothing(self, command: Command) -> list[int]:
        """Return the values of a command where its column is empty, or outside of the text."""
        toolkit = TOOLKITS[self.toolkit]
        distances = range(1, toolkit.farthest + 2)
        outside = [toolkit.outside(sign * n) for n in distances for sign in (-1, 1)]
        return [int(get_string_id(command.changed(text))) for text in ("", str(None), *outside)]

    def describe(self, values: Sequence[int], strings: StringStore) -> str:
        """Return the string that the toolkit observes."""
        value = iter(values)
        return "".join(
            piece if isinstance(piece, str) else spell(next(value), strings)
            for piece in self.pieces
        )


def make_item(
    toolkit: str, template: str, columns: Sequence[str], parts: Sequence[str] = ("tokens",)
) -> list[Template]:
    """`spacy-hocrf.Item.v1`: what a template of CRF++ or a pattern of Wapiti observes.

    toolkit (str): "crf++" or "wapiti".
    template (str): such as "U01:%x[-2,0]/%x[0,1]". Its first letter tells how many earlier labels its
        features see. "\\x24" is a dollar sign, which spaCy doubles whenever it saves a config.
    columns (Sequence[str]): the attribute for each column, such as ["ORTH", "_.c1"].
    parts (Sequence[str]): where in a segment: "tokens", "start", "end", "inner".
    RETURNS (list[Template]): one template per part, two for Wapiti's *.
    RAISES (ValueError): H023, H024, H031, H038, H235, H236, H238, H239 or H288.
    """
    syntax = TOOLKITS.get(toolkit)
    if syntax is None:
        raise ValueError(FeatureErrors.H238.format(found=toolkit, known=", ".join(TOOLKITS)))
    if "$" in template:
        raise ValueError(
            FeatureErrors.H239.format(found=template, instead=without_dollars(template))
        )
    text = with_dollars(template)
    reads = [p.column for p in parse_template(text, syntax) if isinstance(p, Command)]
    if not reads:
        raise wrong_template(1, text, "a command, such as %x[0,0]")
    if max(reads) >= len(columns):
        names = {"template": template, "column": max(reads), "found": len(columns)}
        raise ValueError(FeatureErrors.H236.format(**names))
    for column in columns:
        check_attribute(column)
        if column in NUMBERS:
            raise ValueError(FeatureErrors.H235.format(found=column))
    return [
        ItemTemplate(toolkit, text, tuple(columns), part, order)
        for part in checked_parts(parts)
        for order in syntax.orders[text[0]]
    ]
