"""Output formats of annotated texts: make a part as bytes, and join parts into one file."""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec
from spacy.tokens import Doc, DocBin

from spacy_hocrf.cli.annotate.sources import parquet_files
from spacy_hocrf.cli.errors import CommandErrors

__all__ = [
    "ACCEPTED",
    "CANDIDATES",
    "FORMATS",
    "PROBABILITY",
    "READINGS",
    "Annotated",
    "Docs",
    "JSONLines",
    "OutputFormat",
    "Parquet",
    "check_columns",
]

JSON = msgspec.json.Encoder(enc_hook=str)
"""Encodes values without a JSON type as strings."""
READINGS, CANDIDATES = "readings", "candidates"
"""Optional fields."""
PROBABILITY, ACCEPTED = "probability", "accepted"
"""Fields that are written if the model has thresholds for accepting texts unread."""


class Annotated(NamedTuple):
    """A text that has been annotated."""

    row: Mapping[str, Any]  # fields of the input
    fields: Mapping[str, Any]  # new ones: lists of objects; PROBABILITY a float, ACCEPTED a bool
    doc: Doc | None  # None if it is not needed


class OutputFormat(Protocol):
    """A format of files with annotated texts."""

    def held(self, row: Mapping[str, Any], schema: Any) -> Mapping[str, Any]:
        """Convert the input fields of a text to this format.

        schema (Optional[pyarrow.Schema]): schema of the row, if it has one.
        RAISES (ValueError): with the reason, for a field that the format cannot hold.
        """
        ...

    def part(self, texts: Sequence[Annotated], schema: Any) -> bytes:
        """Make the content of a file with some texts.

        schema (Optional[pyarrow.Schema]): schema of the input fields, if they have one.
        """
        ...

    def join(self, paths: Sequence[Path], output: Path) -> None:
        """Join files into one, in their order."""
        ...


class JSONLines:
    """JSON lines: every line is an object."""

    def held(self, row: Mapping[str, Any], schema: Any) -> Mapping[str, Any]:
        """Return all fields unchanged; values without a JSON type are written as strings."""
        return row

    def part(self, texts: Sequence[Annotated], schema: Any) -> bytes:
        """Encode lines; if one has a lone surrogate, all are in ASCII with JSON escapes."""
        rows = [{**text.row, **text.fields} for text in texts]
        try:
            return JSON.encode_lines(rows)
        except UnicodeEncodeError:
            return "".join(f"{json.dumps(row, default=str)}\n" for row in rows).encode()

    def join(self, paths: Sequence[Path], output: Path) -> None:
        """Join parts line after line."""
        with output.open("wb") as file:
            for path in paths:
                with path.open("rb") as part:
                    shutil.copyfileobj(part, file)


class Parquet:
    """Parquet: a table, with spans as lists of structs."""

    def held(self, row: Mapping[str, Any], schema: Any) -> Mapping[str, Any]:
        """Convert values to strings if there is no schema: in JSON, a column may mix several types."""
        if schema is not None:
            return row
        _as_json(row)
        return {
            name: value if isinstance(value, str | None) else JSON.encode(value).decode()
            for name, value in row.items()
        }

    def part(self, texts: Sequence[Annotated], schema: Any) -> bytes:
        """Make a table; the types of its span columns do not depend on their content."""
        import pyarrow

        names = dict.fromkeys(name for text in texts for name in text.row)
        columns = {name: [text.row.get(name) for text in texts] for name in names}
        table = pyarrow.table(columns, schema if texts else None)
        for field in texts[0].fields if texts else ():
            values = [text.fields[field] for text in texts]
            scored = _spans(("score", pyarrow.float64()))
            types = {PROBABILITY: pyarrow.float64(), ACCEPTED: pyarrow.bool_()}
            type_ = _readings() if field == READINGS else types.get(field, scored)
            table = table.append_column(field, pyarrow.array(values, type_))
        sink = pyarrow.BufferOutputStream()
        parquet_files().write_table(table, sink)
        content: bytes = sink.getvalue().to_pybytes()
        return content

    def join(self, paths: Sequence[Path], output: Path) -> None:
        """Concatenate the tables. A column that is missing in one of them is null there."""
        import pyarrow

        parquet = parquet_files()
        schemas = [*map(parquet.read_schema, paths), pyarrow.schema([])]  # without texts no parts
        schema = pyarrow.unify_schemas(schemas)
        with parquet.ParquetWriter(output, schema) as writer:
            for path in paths:
                tables = [schema.empty_table(), parquet.read_table(path)]
                writer.write_table(pyarrow.concat_tables(tables, promote_options="default"))


class Docs:
    """spaCy's DocBin files, with all annotation of the pipeline."""

    def held(self, row: Mapping[str, Any], schema: Any) -> Mapping[str, Any]:
        """Convert the fields to JSON values: a date becomes a string."""
        held: dict[str, Any] = json.loads(_as_json(row))
        return held

    def part(self, texts: Sequence[Annotated], schema: Any) -> bytes:
        """Bytes of a `DocBin` with these texts."""
        return DocBin(
            docs=[text.doc for text in texts if text.doc is not None], store_user_data=True
        ).to_bytes()

    def join(self, paths: Sequence[Path], output: Path) -> None:
        """Join the files, in memory."""
        joined = DocBin(store_user_data=True)
        for path in paths:
            joined.merge(DocBin(store_user_data=True).from_disk(path))
        joined.to_disk(output)


FORMATS: Mapping[str, OutputFormat] = {
    ".jsonl": JSONLines(),
    ".parquet": Parquet(),
    ".spacy": Docs(),
}
"""Output formats by suffix."""


def check_columns(files: Sequence[Path]) -> None:
    """Check .parquet tables. RAISES (ValueError): H562 if columns of one name differ in type."""
    import pyarrow

    try:
        pyarrow.unify_schemas([parquet_files().read_schema(file) for file in files])
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError) as error:
        raise ValueError(CommandErrors.H562.format(reason=str(error).rstrip("."))) from None


def _as_json(row: Mapping[str, Any]) -> bytes:
    """Encode a row as JSON. RAISES (ValueError): for a lone surrogate, naming the field."""
    try:
        return JSON.encode(row)
    except UnicodeEncodeError as error:
        if len(row) > 1:
            for name, value in row.items():
                _as_json({name: value})
        reason = f"found half a character (a lone surrogate) in the field {next(iter(row))!r}"
        raise ValueError(f"{reason}. Write to .jsonl") from error


def _spans(*further: tuple[str, Any]) -> Any:
    """Arrow type of a list of spans, with further fields."""
    import pyarrow

    number, text = pyarrow.int64(), pyarrow.string()
    place = [("start", number), ("end", number), ("label", text)]
    return pyarrow.list_(pyarrow.struct([*place, *further]))


def _readings() -> Any:
    """Arrow type of a list of readings."""
    import pyarrow

    fields = [("probability", pyarrow.float64()), ("spans", _spans())]
    return pyarrow.list_(pyarrow.struct(fields))
