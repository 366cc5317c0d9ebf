"""Annotate chunks of texts with a pipeline, and write them as parts.

If the pipeline has only spaCy's tokenizer and one component of ours, half of the time for short texts would
go into making Docs that are not needed: `PlainReader` goes directly from words to the rows of
`rows.spans_in`.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import spacy
from numpy.typing import NDArray
from spacy.cli._util import import_code
from spacy.language import Language
from spacy.tokens import Doc

from spacy_hocrf.annotation.identity import set_identity
from spacy_hocrf.annotation.prediction import BatchPrediction
from spacy_hocrf.annotation.targets import EntsTarget, SpansTarget
from spacy_hocrf.arrays import offsets_of, stretches
from spacy_hocrf.cli.annotate.formats import (
    ACCEPTED,
    CANDIDATES,
    FORMATS,
    PROBABILITY,
    READINGS,
    Annotated,
)
from spacy_hocrf.cli.annotate.parts import Job, Parts, check_fields
from spacy_hocrf.cli.annotate.rows import (
    Rows,
    SpanArrays,
    acceptance_in,
    candidates_in,
    readings_in,
    spans_in,
    text_row,
)
from spacy_hocrf.cli.annotate.sources import SOURCES, Chunk, InputText, Rejected
from spacy_hocrf.cli.convert.entries import about_text, named_id
from spacy_hocrf.cli.pipelines import component_of
from spacy_hocrf.features.words import PlainTexts, TextBatch, WordTokenizer
from spacy_hocrf.model.structure import BATCH_TOKENS
from spacy_hocrf.pipeline.component import SegmentationPipe

__all__ = ["Annotator", "PlainReader"]

ACCEPTANCE = [(PROBABILITY, "the probability that all is right"), (ACCEPTED, "the acceptance")]
MAX_REJECT_LENGTH = 200
"""Number of characters of a rejected record that are written."""


class Annotator:
    """Reads chunks of texts in one format, and writes parts in another.

    source (str): suffix of the texts' files, one of SOURCES.
    acceptance (Optional[Acceptance]): the model's thresholds for accepting texts unread.
    RAISES (ValueError): H204 for an unknown component, H247 for a field that is written twice; OSError: E050
        if the model does not exist.
    """

    def __init__(self, job: Job, source: str, parts: Parts) -> None:
        import_code(job.code)
        self.job, self.source, self.parts = job, source, parts
        self._format = FORMATS[parts.suffix]
        self.nlp: Language = spacy.load(job.model)
        self.folder: Path = self.nlp.path  # where it was loaded from
        if all(isinstance(pipe, SegmentationPipe) for _, pipe in self.nlp.pipeline):
            self.nlp.max_length = sys.maxsize  # spaCy's limit is for parsers
        _, self._pipe = component_of(self.nlp, job.component)
        self.acceptance = self._pipe.acceptance
        accepts = self.acceptance is not None
        fields = [*job.fields, *ACCEPTANCE] if accepts else job.fields
        check_fields(job.text, fields)
        self._names = [name for name, _ in fields]
        spans_only = not (job.n_best or job.at_least or accepts or parts.suffix == ".spacy")
        plain = spans_only and PlainReader.can_read(self.nlp, self._pipe)
        self._plain = PlainReader(self.nlp, self._pipe) if plain else None

    def __call__(self, chunk: Chunk) -> int:
        """Annotate a chunk and write its part. Nothing is kept in memory: the vocabulary forgets new words.

        RETURNS (int): number of texts.
        """
        with self.nlp.memory_zone():
            records, rejected = self.records(chunk)
            texts = self._annotated(records, rejected)
            content = self._format.part(texts, chunk.schema)
        cut = [each._replace(found=each.found[:MAX_REJECT_LENGTH]) for each in sorted(rejected)]
        self.parts.write(chunk.number, content, cut)
        return chunk.size

    def records(self, chunk: Chunk) -> tuple[list[InputText], list[Rejected]]:
        """Read a chunk: the texts that can be annotated and written, and the rejected ones."""
        records, rejected = list[InputText](), list[Rejected]()
        for record in SOURCES[self.source].records(chunk, self.nlp.vocab, self.job.text):
            if isinstance(record, Rejected):
                rejected.append(record)
                continue
            try:
                records.append(record._replace(row=self._held(record.row, chunk.schema)))
            except ValueError as error:
                rejected.append(Rejected(record.number, str(error), str(record.row)))
        return records, rejected

    def _held(self, row: Mapping[str, Any], schema: Any) -> Mapping[str, Any]:
        """Convert the fields of a text to the output format. RAISES (ValueError): if they do not fit it."""
        clash = next((field for field in self._names if field in row), None)
        if clash is not None:
            raise ValueError(f"has a field {clash!r}, which is to be written: see --into")
        return self._format.held(row, schema)

    def _annotated(self, records: Sequence[InputText], rejected: list[Rejected]) -> list[Annotated]:
        """Annotate texts, without Docs if possible, the rest in one batch; if that fails, one by one,
        rejecting those that cannot be read.
        """
        into, plain = self.job.into, self._without_docs(records)
        done = {records[i].number: Annotated(records[i].row, {into: plain[i]}, None) for i in plain}
        if len(done) == len(records):
            return list(done.values())
        others = [record for i, record in enumerate(records) if i not in plain]
        done.update(self._with_docs(others, rejected))
        return [done[number] for number in sorted(done)]

    def _without_docs(self, records: Sequence[InputText]) -> dict[int, Rows]:
        """Annotate without Docs the texts for which this is possible: rows of spans by index of the text."""
        texts = [record.text for record in records if isinstance(record.text, str)]
        if self._plain is None or len(texts) < len(records):
            return {}
        try:
            indices, spans = self._plain(texts) or ([], None)
        except Exception:  # one text fails; it is rejected when read with Docs
            return {}
        return {} if spans is None else dict(zip(indices, spans.rows()))

    def _with_docs(
        self, records: Sequence[InputText], rejected: list[Rejected]
    ) -> list[tuple[int, Annotated]]:
        """Annotate texts as Docs; return them with their numbers, and reject those that fail."""
        try:
            docs = list(self.nlp.pipe(map(self._input, records)))
            return self._rows(records, docs)
        except Exception as error:
            if len(records) == 1:
                [record] = records
                reason = f"{type(error).__name__}: {error}"
                rejected.append(Rejected(record.number, reason, str(record.text)))
                return []
        return [text for record in records for text in self._with_docs([record], rejected)]

    def _input(self, record: InputText) -> str | Doc:
        """Return the text, or a Doc with the group's attribute if its threshold depends on a field."""
        acceptance = self.acceptance
        if acceptance is None or acceptance.by is None or acceptance.by not in record.row:
            return record.text
        doc = self.nlp.make_doc(record.text) if isinstance(record.text, str) else record.text
        doc._.set(acceptance.by, record.row[acceptance.by])
        return doc

    def _rows(
        self, records: Sequence[InputText], docs: Sequence[Doc]
    ) -> list[tuple[int, Annotated]]:
        pipe, job = self._pipe, self.job
        if self.parts.suffix == ".spacy":
            for record, doc in zip(records, docs, strict=True):
                set_identity(doc, named_id(record.row), about_text(record.row, {job.text}))
        outputs: list[dict[str, Any]] = [{job.into: spans_in(doc, pipe.target)} for doc in docs]
        for fields, doc in zip(outputs, docs, strict=True) if self.acceptance else ():
            fields.update(acceptance_in(doc))
        if job.n_best or job.at_least:
            for fields, reading in zip(outputs, pipe.readings(docs), strict=True):
                if job.n_best:
                    fields[READINGS] = readings_in(reading, job.n_best)
                if job.at_least:
                    fields[CANDIDATES] = candidates_in(reading, job.at_least)
        return [
            (record.number, Annotated(record.row or self._row(doc), fields, doc))
            for record, fields, doc in zip(records, outputs, docs, strict=True)
        ]

    def _row(self, doc: Doc) -> Mapping[str, Any]:
        """Fields to write for a text that was read as a Doc."""
        return self._format.held(text_row(doc, self.job.text), None)


class PlainReader:
    """Annotates texts without making Docs, for pipelines with a single component, see `can_read`."""

    def __init__(self, nlp: Language, pipe: SegmentationPipe) -> None:
        self._pipe, self._words = pipe, WordTokenizer(nlp, _reads(pipe))

    @staticmethod
    def can_read(nlp: Language, pipe: SegmentationPipe) -> bool:
        """Can the pipeline annotate texts without Docs?"""
        alone = [other for _, other in nlp.pipeline] == [pipe]
        by_itself = type(pipe).predict is SegmentationPipe.predict and pipe.joint is None
        spans = isinstance(pipe.target, EntsTarget | SpansTarget) and not pipe.target.n_best
        readable = TextBatch.can_read(_reads(pipe))
        return alone and by_itself and spans and readable and WordTokenizer.can_read(nlp)

    def __call__(self, texts: Sequence[str]) -> tuple[list[int], SpanArrays] | None:
        """Annotate the texts that need no Docs: their indices and spans; None if there are none.

        RAISES (NeedsDocs): if a template reads an attribute that `can_read` did not foresee.
        """
        plain = self._words.read(texts)
        if not plain.numbers:
            return None
        batch_ranges = stretches(np.diff(plain.offsets).tolist(), BATCH_TOKENS)
        batches = (TextBatch(plain, *batch) for batch in batch_ranges)
        return plain.numbers, self._spans(plain, list(self._pipe.predict_batches(batches)))

    def _spans(self, plain: PlainTexts, predictions: Sequence[BatchPrediction]) -> SpanArrays:
        """Convert the predicted spans to character offsets."""
        counts = np.concatenate([np.diff(batch.spans.offsets) for batch in predictions])
        base = np.repeat(plain.offsets[:-1], counts)
        start, end, label = (
            np.concatenate([getattr(batch.spans, part) for batch in predictions])
            for part in ("start", "end", "label")
        )
        return SpanArrays(
            offsets_of(counts),
            plain.start[base + start],
            plain.end[base + end - 1],
            label,
            predictions[0].names,
            self._chances(predictions),
        )

    def _chances(self, predictions: Sequence[BatchPrediction]) -> NDArray[np.float64] | None:
        """Probabilities of all spans, rounded to float32 as in Docs; None if they are not kept."""
        kept = not isinstance(self._pipe.target, EntsTarget) or self._pipe.target.scores_key
        scores = [batch.scores for batch in predictions if batch.scores is not None]
        if not kept or len(scores) < len(predictions):
            return None
        return np.concatenate(scores).astype(np.float32).astype(np.float64)


def _reads(pipe: SegmentationPipe) -> tuple[str, ...]:
    """Token attributes that a prediction reads."""
    structure, target = pipe.structure, pipe.target
    return (
        *(structure.index.attributes if structure.ready else ()),
        *target.reads,
        *target.writes_by,
        "IS_SPACE",
    )
