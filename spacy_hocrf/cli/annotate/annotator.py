"""A pipeline that annotates one chunk of texts after the other and writes their parts."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import spacy
from spacy.cli._util import import_code
from spacy.language import Language
from spacy.tokens import Doc

from spacy_hocrf.cli.annotate.formats import CANDIDATES, FORMATS, READINGS, Annotated
from spacy_hocrf.cli.annotate.found import candidates_in, readings_in, spans_in, text_row
from spacy_hocrf.cli.annotate.parts import Job, Parts
from spacy_hocrf.cli.annotate.sources import SOURCES, Chunk, Record, Rejected
from spacy_hocrf.cli.components import component_of

__all__ = ["Annotator", "Done"]

SHOWN = 200
"""So many characters of what is rejected are written."""


class Done(NamedTuple):
    """What was done with a chunk."""

    number: int
    size: int  # texts
    rejected: int  # of them


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

    def __call__(self, chunk: Chunk) -> Done:
        """Write a chunk's part. Nothing of its texts is kept: new words are forgotten."""
        with self.nlp.memory_zone():
            records, rejected = self._records(chunk)
            texts = self._annotated(records, rejected)
            schema = SOURCES[self.source].schema(chunk)
            content = FORMATS[self.parts.suffix].part(texts, schema)
        shown = [each._replace(found=each.found[:SHOWN]) for each in sorted(rejected)]
        self.parts.write(chunk.number, content, shown)
        return Done(chunk.number, chunk.size, len(rejected))

    def _records(self, chunk: Chunk) -> tuple[list[Record], list[Rejected]]:
        records, rejected = list[Record](), list[Rejected]()
        for found in SOURCES[self.source].records(chunk, self.nlp.vocab, self.job.text):
            if isinstance(found, Rejected):
                rejected.append(found)
            elif taken := [field for field in self._fields if field in found.row]:
                reason = f"has a field {taken[0]!r}, which is to be written: see --into"
                rejected.append(Rejected(found.number, reason, str(found.row)))
            else:
                records.append(found)
        return records, rejected

    def _annotated(self, records: Sequence[Record], rejected: list[Rejected]) -> list[Annotated]:
        """All together; where that fails, one by one, without those that cannot be read."""
        try:
            docs = list(self.nlp.pipe([record.text for record in records]))
            return self._rows(records, docs)
        except Exception as error:
            if len(records) == 1:
                [record] = records
                reason = f"{type(error).__name__}: {error}"
                rejected.append(Rejected(record.number, reason, str(record.text)))
                return []
        return [each for record in records for each in self._annotated([record], rejected)]

    def _rows(self, records: Sequence[Record], docs: Sequence[Doc]) -> list[Annotated]:
        pipe, job = self._pipe, self.job
        found = [{job.into: spans_in(doc, pipe.target)} for doc in docs]
        if job.n_best or job.at_least:
            for fields, reading in zip(found, pipe.readings(docs), strict=True):
                if job.n_best:
                    fields[READINGS] = readings_in(reading, job.n_best)
                if job.at_least:
                    fields[CANDIDATES] = candidates_in(reading, job.at_least)
        return [
            Annotated(record.row or text_row(doc, job.text), fields, doc)
            for record, fields, doc in zip(records, found, docs, strict=True)
        ]

    @property
    def folder(self) -> Path:
        """Where the pipeline was loaded from."""
        path: Path = self.nlp.path
        return path

    @property
    def _fields(self) -> list[str]:
        """What is written of each text."""
        further = {READINGS: self.job.n_best, CANDIDATES: self.job.at_least}
        return [self.job.into, *(field for field, asked in further.items() if asked)]
