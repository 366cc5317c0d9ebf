"""Sequences that are read once, to be tagged or trained on several times."""

from collections.abc import Iterable
from typing import Any

from spacy_hocrf.sequences.items import Attributes, read_items

__all__ = ["ItemSequence", "attributes_in"]


class ItemSequence:
    """The items of a sequence.

    sequence (Iterable[Any]): items as `spacy_hocrf.sequences.items` reads them, or an ItemSequence.
    RAISES (ValueError): H270 or H271 for an invalid item.
    """

    def __init__(self, sequence: "ItemSequence | Iterable[Any]") -> None:
        self._items = attributes_in(sequence)

    def items(self) -> list[dict[str, float]]:
        """Return the attributes of each item with their values."""
        return [dict(zip(names, values or [1.0] * len(names))) for names, values in self._items]

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"<ItemSequence of size {len(self)}>"


def attributes_in(sequence: ItemSequence | Iterable[Any]) -> list[Attributes]:
    """Return the attributes of the items. RAISES (ValueError): H270 or H271 for an invalid item."""
    return sequence._items if isinstance(sequence, ItemSequence) else read_items(sequence)
