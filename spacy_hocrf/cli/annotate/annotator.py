"""A pipeline that annotates one chunk of texts after the other and writes their parts."""

from collections.abc import KeysView, Sequence
from pathlib import Path
from typing import NamedTuple

import spacy
from spacy.cli._util import import_code
from spacy.language import Language
from spacy.tokens import Doc

from spacy_hocrf.cli.annotate.formats import CANDIDATES, FORMATS, READINGS, Annotated
from spacy_hocrf.cli.annotate.found import Rows, candidates_in, readings_in, spans_in, text_row
from spacy_hocrf.cli.annotate.parts import Job, Parts
from spacy_hocrf.cli.annotate.plain import PlainReader
from spacy_hocrf.cli.annotate.sources import SOURCES, Chunk, Record, Rejected
from spacy_hocrf.cli.components import component_of
from spacy_hocrf.cli.convert.entries import about_text, named_id
from spacy_hocrf.pipeline.identity import set_identity

__all__ = ["Annotator", "Done", "Part"]

SHOWN = 200
"""So many characters of what is rejected are written."""


class Part(NamedTuple):
    """What is to be written of a chunk."""

    number: int
    size: int  # texts
    content: bytes
    rejected: list[Rejected]  # of the texts


class Done(NamedTuple):
    """What was done with a chunk."""

    number: int
    size: int  # texts


class Annotator:
    """Reads chunks of texts in one format, and writes parts in another.

    source (str): suffix of the texts' files, one of SOURCES.
    RAISES (ValueError): H204 unless the component is there; OSError: E050 if the model is not.
    """

    def __init__(self, job: Job, source: str, parts: Parts) -> None:
        import_code(job.code)
        self.job, self.source, self.parts = job, source, parts
        self.nlp: Language = spacy.load(job.model)
        _, self._pipe = component_of(self.nlp, job.component)
        spans_only = not (job.n_best or job.at_least or parts.suffix == ".spacy")
        plain = spans_only and PlainReader.can_read(self.nlp, self._pipe)
        self._plain = PlainReader(self.nlp, self._pipe) if plain else None

    def __call__(self, chunk: Chunk) -> Done:
        """Write a chunk's part."""
        return self.write(self.part(chunk))

    def part(self, chunk: Chunk) -> Part:
        """The part of a chunk. Nothing of its texts is kept: new words are forgotten."""
        with self.nlp.memory_zone():
            records, rejected = self._records(chunk)
            texts = self._annotated(records, rejected)
            schema = SOURCES[self.source].schema(chunk)
            content = FORMATS[self.parts.suffix].part(texts, schema)
        shown = [each._replace(found=each.found[:SHOWN]) for each in sorted(rejected)]
        return Part(chunk.number, chunk.size, content, shown)

    def write(self, part: Part) -> Done:
        """Write a part."""
        self.parts.write(part.number, part.content, part.rejected)
        return Done(part.number, part.size)

    def _records(self, chunk: Chunk) -> tuple[list[Record], list[Rejected]]:
        records, rejected, fields = list[Record](), list[Rejected](), self._fields
        for found in SOURCES[self.source].records(chunk, self.nlp.vocab, self.job.text):
            if isinstance(found, Rejected):
                rejected.append(found)
            elif fields.isdisjoint(found.row):
                records.append(found)
            else:
                taken = next(field for field in fields if field in found.row)
                reason = f"has a field {taken!r}, which is to be written: see --into"
                rejected.append(Rejected(found.number, reason, str(found.row)))
        return records, rejected

    def _annotated(self, records: Sequence[Record], rejected: list[Rejected]) -> list[Annotated]:
        """Texts without Docs where that can be; the others all together; where that fails, one by one,
        without those that cannot be read.
        """
        into, plain = self.job.into, self._without_docs(records)
        done = {records[i].number: Annotated(records[i].row, {into: plain[i]}, None) for i in plain}
        if len(done) == len(records):
            return list(done.values())
        others = [record for i, record in enumerate(records) if i not in plain]
        done.update(self._with_docs(others, rejected))
        return [done[number] for number in sorted(done)]

    def _without_docs(self, records: Sequence[Record]) -> dict[int, Rows]:
        """The spans of some texts, by their places."""
        texts = [record.text for record in records if isinstance(record.text, str)]
        if self._plain is None or len(texts) < len(records):
            return {}
        try:
            found = self._plain(texts)
        except Exception:  # of one text; it will be met again
            return {}
        if found is None:
            return {}
        numbers, spans = found
        return dict(zip(numbers, spans.rows()))

    def _with_docs(
        self, records: Sequence[Record], rejected: list[Rejected]
    ) -> list[tuple[int, Annotated]]:
        """Each with its number."""
        try:
            docs = list(self.nlp.pipe([record.text for record in records]))
            return self._rows(records, docs)
        except Exception as error:
            if len(records) == 1:
                [record] = records
                reason = f"{type(error).__name__}: {error}"
                rejected.append(Rejected(record.number, reason, str(record.text)))
                return []
        return [each for record in records for each in self._with_docs([record], rejected)]

    def _rows(self, records: Sequence[Record], docs: Sequence[Doc]) -> list[tuple[int, Annotated]]:
        pipe, job = self._pipe, self.job
        if self.parts.suffix == ".spacy":
            for record, doc in zip(records, docs, strict=True):
                set_identity(doc, named_id(record.row), about_text(record.row, {job.text}))
        found = [{job.into: spans_in(doc, pipe.target)} for doc in docs]
        if job.n_best or job.at_least:
            for fields, reading in zip(found, pipe.readings(docs), strict=True):
                if job.n_best:
                    fields[READINGS] = readings_in(reading, job.n_best)
                if job.at_least:
                    fields[CANDIDATES] = candidates_in(reading, job.at_least)
        return [
            (record.number, Annotated(record.row or text_row(doc, job.text), fields, doc))
            for record, fields, doc in zip(records, found, docs, strict=True)
        ]

    @property
    def folder(self) -> Path:
        """Where the pipeline was loaded from."""
        path: Path = self.nlp.path
        return path

    @property
    def _fields(self) -> KeysView[str]:
        """What is written of each text."""
        further = {READINGS: self.job.n_best, CANDIDATES: self.job.at_least}
        asked = (field for field, number in further.items() if number)
        return dict.fromkeys([self.job.into, *asked]).keys()
