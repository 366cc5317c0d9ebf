"""How annotated texts are written: a part as bytes, and parts put together into one file."""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec
from spacy.tokens import Doc, DocBin

from spacy_hocrf.cli.annotate.sources import parquet_files

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

    def part(self, texts: Sequence[Annotated], schema: Any) -> bytes:
        """One table, whose columns of spans have the same types whatever is in them."""
        import pyarrow

        names = dict.fromkeys(name for text in texts for name in text.row)
        columns = {name: [_cell(text.row.get(name), schema) for text in texts] for name in names}
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
        every = [parquet.read_schema(path) for path in paths]
        schema = pyarrow.unify_schemas(every, promote_options="permissive")
        with parquet.ParquetWriter(output, schema) as writer:
            for path in paths:
                tables = [schema.empty_table(), parquet.read_table(path)]
                writer.write_table(pyarrow.concat_tables(tables, promote_options="permissive"))


class Docs:
    """Files of spaCy's, with everything that a pipeline has written to a Doc."""

    def part(self, texts: Sequence[Annotated], schema: Any) -> bytes:
        """Bytes of a `DocBin` with these texts."""
        return DocBin(
            docs=[text.doc for text in texts if text.doc], store_user_data=True
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


def _cell(value: Any, schema: Any) -> Any:
    """A value of a row. What a Doc knows of its text has no type that all Docs have, and is JSON."""
    return JSON.encode(value).decode() if schema is None and isinstance(value, Mapping) else value


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
