"""How annotated texts are written: a part as bytes, and parts put together into one file."""

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
"""What JSON does not have is text."""
READINGS, CANDIDATES = "readings", "candidates"
"""Fields that are written when they are asked for."""
PROBABILITY, ACCEPTED = "probability", "accepted"
"""Fields that are written if the model knows which texts are accepted unread."""


class Annotated(NamedTuple):
    """A text that has been annotated."""

    row: Mapping[str, Any]  # what is handed through
    found: Mapping[str, Any]  # by field: lists of objects; PROBABILITY a float, ACCEPTED a bool
    doc: Doc | None  # None where nobody will ask for it


class OutputFormat(Protocol):
    """A format of files with annotated texts."""

    def held(self, row: Mapping[str, Any], schema: Any) -> Mapping[str, Any]:
        """What is handed through of a text, as files of this format can hold it.

        schema (Optional[pyarrow.Schema]): of the row, if it came with one.
        RAISES (ValueError): for a field that they cannot hold, and why.
        """
        ...

    def part(self, texts: Sequence[Annotated], schema: Any) -> bytes:
        """A file with some texts.

        schema (Optional[pyarrow.Schema]): of what is handed through, where it came with one.
        """
        ...

    def join(self, paths: Sequence[Path], output: Path) -> None:
        """Write one file that has what all of them have, in their order."""
        ...


class JSONLines:
    """Every line is a JSON object."""

    def held(self, row: Mapping[str, Any], schema: Any) -> Mapping[str, Any]:
        """Every field as it is: a line can hold all, and what JSON does not have is text."""
        return row

    def part(self, texts: Sequence[Annotated], schema: Any) -> bytes:
        """Lines; with half characters in one of them, all in ASCII, as JSON's escapes."""
        rows = [{**text.row, **text.found} for text in texts]
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
    """A table, in which lists of structs have the spans."""

    def held(self, row: Mapping[str, Any], schema: Any) -> Mapping[str, Any]:
        """A row without a schema is one of JSON, whose values have no type that all have: these are text."""
        if schema is not None:
            return row
        _as_json(row)
        return {
            name: value if isinstance(value, str | None) else JSON.encode(value).decode()
            for name, value in row.items()
        }

    def part(self, texts: Sequence[Annotated], schema: Any) -> bytes:
        """One table, whose columns of spans have the same types whatever is in them."""
        import pyarrow

        names = dict.fromkeys(name for text in texts for name in text.row)
        columns = {name: [text.row.get(name) for text in texts] for name in names}
        table = pyarrow.table(columns, schema if texts else None)
        for field in texts[0].found if texts else ():
            values = [text.found[field] for text in texts]
            scored = _spans(("score", pyarrow.float64()))
            known = {PROBABILITY: pyarrow.float64(), ACCEPTED: pyarrow.bool_()}
            type_ = _readings() if field == READINGS else known.get(field, scored)
            table = table.append_column(field, pyarrow.array(values, type_))
        sink = pyarrow.BufferOutputStream()
        parquet_files().write_table(table, sink)
        found: bytes = sink.getvalue().to_pybytes()
        return found

    def join(self, paths: Sequence[Path], output: Path) -> None:
        """The tables one after the other. A column that one of them does not have is null there."""
        import pyarrow

        parquet = parquet_files()
        schema = pyarrow.unify_schemas([parquet.read_schema(path) for path in paths])
        with parquet.ParquetWriter(output, schema) as writer:
            for path in paths:
                tables = [schema.empty_table(), parquet.read_table(path)]
                writer.write_table(pyarrow.concat_tables(tables, promote_options="default"))


class Docs:
    """Files of spaCy's, with everything that a pipeline has written to a Doc."""

    def held(self, row: Mapping[str, Any], schema: Any) -> Mapping[str, Any]:
        """What lines of JSON would have: a date is text."""
        held: dict[str, Any] = json.loads(_as_json(row))
        return held

    def part(self, texts: Sequence[Annotated], schema: Any) -> bytes:
        """Bytes of a `DocBin` with these texts."""
        return DocBin(
            docs=[text.doc for text in texts if text.doc is not None], store_user_data=True
        ).to_bytes()

    def join(self, paths: Sequence[Path], output: Path) -> None:
        """One file; all of it is in memory."""
        joined = DocBin(store_user_data=True)
        for path in paths:
            joined.merge(DocBin(store_user_data=True).from_disk(path))
        joined.to_disk(output)


FORMATS: Mapping[str, OutputFormat] = {
    ".jsonl": JSONLines(),
    ".parquet": Parquet(),
    ".spacy": Docs(),
}
"""By suffix."""


def check_columns(files: Sequence[Path]) -> None:
    """RAISES (ValueError): H562 if tables (.parquet) have columns of one name and several types."""
    import pyarrow

    try:
        pyarrow.unify_schemas([parquet_files().read_schema(file) for file in files])
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError) as error:
        raise ValueError(CommandErrors.H562.format(reason=str(error).rstrip("."))) from None


def _as_json(row: Mapping[str, Any]) -> bytes:
    """A row as JSON. RAISES (ValueError): for half a character, with the field that has it."""
    try:
        return JSON.encode(row)
    except UnicodeEncodeError as error:
        if len(row) > 1:
            for name, value in row.items():
                _as_json({name: value})
        found = f"found half a character (a lone surrogate) in the field {next(iter(row))!r}"
        raise ValueError(f"{found}. Write to .jsonl") from error


def _spans(*further: tuple[str, Any]) -> Any:
    """The type of a list of spans, with these fields besides."""
    import pyarrow

    whole, text = pyarrow.int64(), pyarrow.string()
    place = [("start", whole), ("end", whole), ("label", text)]
    return pyarrow.list_(pyarrow.struct([*place, *further]))


def _readings() -> Any:
    """The type of a list of readings."""
    import pyarrow

    fields = [("probability", pyarrow.float64()), ("spans", _spans())]
    return pyarrow.list_(pyarrow.struct(fields))
