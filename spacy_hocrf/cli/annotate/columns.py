"""Whether a table can have the fields of all texts: a column has one type.

This is found out before any text is annotated. A text that makes no column even by itself is rejected, see
`OutputFormat.held`; where texts disagree, none of them is to blame.
"""

from collections.abc import Sequence
from typing import Any

from spacy_hocrf.cli.annotate.formats import column_error, common_type
from spacy_hocrf.cli.annotate.sources import InputText

__all__ = ["ColumnTypes"]


class ColumnTypes:
    """Types of the columns that the fields of some texts make, each with the first text that has it."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[Any, int]] = {}

    def add_table(self, schema: Any, number: int) -> None:
        """Add the columns of a table.

        schema (pyarrow.Schema): of the table. number (int): of its first text.
        RAISES (ValueError): H562 for a column that has another type than before.
        """
        for field in schema:
            self._add(field.name, field.type, number)

    def add_texts(self, records: Sequence[InputText]) -> None:
        """Add the fields of some texts.

        RAISES (ValueError): H562 for a field of which there is no column.
        """
        import pyarrow

        for name in dict.fromkeys(name for record in records for name in record.row):
            values = [(record.row.get(name), record.number) for record in records]
            known = [each for each in values if each[0] is not None]
            try:
                type_ = pyarrow.array([value for value, _ in known]).type
            except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError) as error:
                for value, number in known:
                    self._add(name, pyarrow.array([value]).type, number)
                raise column_error(name, str(error)) from None
            if "struct<>" in str(type_):
                raise column_error(
                    name, f"from text {known[0][1]} on, it has objects without fields"
                )
            if known:
                self._add(name, type_, known[0][1])

    def _add(self, name: str, type_: Any, number: int) -> None:
        before, first = self._seen.setdefault(name, (type_, number))
        common = common_type(before, type_)
        if common is None:
            raise column_error(
                name, f"it is {before} in text {first}, but {type_} in text {number}"
            )
        self._seen[name] = common, first
