"""Templates of CRF++ and patterns of Wapiti: the strings that are observed at an item with given
columns.

A line is one template, such as U05:%x[-1,0]/%x[0,1]. Its text is observed, with commands replaced by column 0
of the item before and column 1 of the item itself: `features/commands.py` has the commands. The
first letter determines the labels of the features: U or u for the item's own, B or b for the last two
labels, and Wapiti's * for both. A line that is only B, or b, is left out: transitions are features
anyway.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spacy_hocrf.features.commands import TOOLKITS, Command, parse_template
from spacy_hocrf.features.dollars import without_dollars
from spacy_hocrf.sequences.errors import SequenceErrors

__all__ = ["ItemTemplates", "read_templates"]

Rows = Sequence[Sequence[str]]
"""Columns of each item of a sequence."""


@dataclass(frozen=True)
class ItemTemplates:
    """The templates of a file.

    toolkit (str): "crf++" or "wapiti".
    texts (tuple[str, ...]): each template as written in the file, without comments.
    templates (tuple): texts and commands of each template, in order.
    transitions (bool): is there a line that is only B, or b?
    """

    toolkit: str
    texts: tuple[str, ...]
    templates: tuple[tuple[str | Command, ...], ...]
    transitions: bool

    @property
    def attribute_orders(self) -> Mapping[str, Sequence[int]]:
        """Argument `attribute_orders` of `HighOrderCRF`."""
        return TOOLKITS[self.toolkit].orders

    def blocks(self, columns: Sequence[str]) -> list[dict[str, Any]]:
        """Convert the templates to blocks of `spacy-hocrf.Features.v1`, for tokens instead of items.

        Templates of unchanged texts of neighbours become `Conjunction.v1`; all others become `Item.v1`.

        columns (Sequence[str]): the token attribute for each column, such as ["ORTH", "_.c1"].
        RETURNS (list[dict]): settings of each block.
        RAISES (ValueError): H289 for a column without an attribute.
        """
        blocks = []
        for text, parts in zip(self.texts, self.templates):
            commands = [part for part in parts if isinstance(part, Command)]
            for command in commands:
                if command.column >= len(columns):
                    raise _no_column("The list of --columns", len(columns), command.column)
            if all(command.is_plain and abs(command.offset) <= 1 for command in commands):
                terms = [f"{columns[command.column]}[{command.offset}]" for command in commands]
                blocks += [_block(terms, order) for order in self.attribute_orders[text[0]]]
            else:
                read = columns[: 1 + max(command.column for command in commands)]
                names = {"toolkit": self.toolkit, "template": without_dollars(text)}
                blocks.append({"@misc": "spacy-hocrf.Item.v1", **names, "columns": [*read]})
        pairs = _block([], 1)
        return [*blocks, pairs] if self.transitions and pairs not in blocks else blocks

    def items(self, rows: Rows) -> list[list[str]]:
        """Return the strings that are observed at each item.

        rows (Sequence[Sequence[str]]): columns of each item, without the label.
        RAISES (ValueError): H289 if an item lacks a column that a template reads.
        """
        return [
            ["".join(self._value(part, rows, at) for part in parts) for parts in self.templates]
            for at in range(len(rows))
        ]

    def _value(self, part: str | Command, rows: Rows, at: int) -> str:
        """The text of a part of a template at an item."""
        if isinstance(part, str):
            return part
        place = part.place(at, len(rows))
        if not 0 <= place < len(rows):
            distance = place if place < 0 else place - len(rows) + 1
            return part.changed(TOOLKITS[self.toolkit].outside(distance))
        if part.column >= len(rows[place]):
            raise _no_column(f"Item {place}", len(rows[place]), part.column)
        return part.changed(rows[place][part.column])


def read_templates(text: str, toolkit: str) -> ItemTemplates:
    """Parse the templates of a file.

    text (str): its contents. toolkit (str): "crf++" or "wapiti".
    RAISES (ValueError): H278 for another toolkit, H288 for an invalid line.
    """
    if toolkit not in TOOLKITS:
        expected = " or ".join(map(repr, TOOLKITS))
        raise ValueError(
            SequenceErrors.H278.format(name="toolkit", found=toolkit, expected=expected)
        )
    syntax = TOOLKITS[toolkit]
    templates: list[tuple[str | Command, ...]] = []
    texts, transitions = [], False
    for number, line in enumerate(text.split("\n"), 1):
        line = syntax.comment.sub("", line, count=1).rstrip()
        if not line:
            continue
        if toolkit == "wapiti":
            line = line[0].lower() + line[1:]
        parts = parse_template(line, syntax, number)
        if len(parts) == 1 and syntax.orders[line[0]] == [1]:
            transitions = True
            continue
        templates.append(parts)
        texts.append(line)
    return ItemTemplates(toolkit, tuple(texts), tuple(templates), transitions)


def _block(terms: list[str], order: int) -> dict[str, Any]:
    if not terms:
        return {"@misc": "spacy-hocrf.Transition.v1", "order": order}
    return {
        "@misc": "spacy-hocrf.Conjunction.v1",
        "terms": terms,
        "parts": ["tokens"],
        "order": order,
    }


def _no_column(what: str, found: int, column: int) -> ValueError:
    return ValueError(SequenceErrors.H289.format(what=what, found=found, column=column))
