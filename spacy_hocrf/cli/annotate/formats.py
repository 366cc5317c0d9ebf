"""How annotated texts are written: a part as bytes, and parts put together into one file."""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec
from spacy.tokens import Doc, DocBin

from spacy_hocrf.cli.annotate.sources import parquet_files
from spacy_hocrf.cli.convert.entries import WHOLE
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
    "column_error",
    "common_type",
]

JSON = msgspec.json.Encoder(enc_hook=str)
"""What JSON does not have is text."""
OF_COLUMNS = {str, float, bool, type(None)}
"""Types of JSON of which there is a column whatever the value is."""
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
        """A row without a schema is one of JSON, whose objects have no type that all have: these are text."""
        if schema is not None:
            return row
        _as_json(row)
        return {n: v if type(v) in OF_COLUMNS else _cell(n, v) for n, v in row.items()}

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
        """The tables one after the other. A column that one of them does not have is null there.

        RAISES (ValueError): H562 for a value that the type of its column in all parts does not have.
        """
        import pyarrow

        parquet = parquet_files()
        every = [parquet.read_schema(path) for path in paths]
        schema = pyarrow.unify_schemas(every, promote_options="permissive")
        with parquet.ParquetWriter(output, schema) as writer:
            for path in paths:
                part = parquet.read_table(path)
                try:
                    writer.write_table(_widened(part, schema))
                except pyarrow.ArrowInvalid as error:
                    raise column_error(_unfit(part, schema), str(error)) from None


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


def column_error(name: str, reason: str) -> ValueError:
    """H562 for a field of which there is no column."""
    return ValueError(CommandErrors.H562.format(name=name, reason=reason.rstrip(".")))


def common_type(one: Any, other: Any) -> Any:
    """The type (`pyarrow.DataType`) of a column with values of both; None if there is none."""
    import pyarrow

    schemas = [pyarrow.schema([("", type_)]) for type_ in (one, other)]
    try:
        return pyarrow.unify_schemas(schemas, promote_options="permissive").field(0).type
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError):
        return None


def _widened(table: Any, schema: Any) -> Any:
    """A table with all columns of a schema."""
    import pyarrow

    return pyarrow.concat_tables([schema.empty_table(), table], promote_options="permissive")


def _unfit(table: Any, schema: Any) -> str:
    """The first column whose values do not all have the type that the schema says."""
    import pyarrow

    for name in table.column_names:
        try:
            _widened(table.select([name]), pyarrow.schema([schema.field(name)]))
        except pyarrow.ArrowInvalid:
            return str(name)
    raise AssertionError("the whole table did not fit")


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


def _cell(name: str, value: Any) -> Any:
    """A value of JSON as a column can have it. RAISES (ValueError): if there is no such column."""
    if isinstance(value, dict):
        return JSON.encode(value).decode()
    reason = ""
    if isinstance(value, int) and not -WHOLE <= value < WHOLE:
        reason = "it has more than 64 bits"
    elif isinstance(value, list):
        reason = _why_no_column(value)
    if reason:
        found = f"found {value!r:.80} in the field {name!r}"
        raise ValueError(f"{found}, which no column can have: {reason}. Write to .jsonl, or .spacy")
    return value


def _why_no_column(value: list[Any]) -> str:
    """Why there is no column of such lists, "" if there is one."""
    import pyarrow

    if all(isinstance(each, str) for each in value):
        return ""
    try:
        pyarrow.array([value])
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, OverflowError) as error:
        return str(error).rstrip(".")
    return ""


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
