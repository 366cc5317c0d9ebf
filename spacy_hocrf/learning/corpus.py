"""The training corpus of a component: the documents it was shown, with their number of copies.

Documents are identified by their content, never by identity: `initialize` and `update` read the corpus
separately, and every update makes new Docs. Documents with the same text and annotation are distinct if
`initialize` saw them with different features, such as images of one word by two writers. A document whose
features have changed (because an earlier component was trained meanwhile) replaces its older version.
"""

import hashlib
import warnings
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Protocol

from spacy.strings import StringStore
from spacy.tokens import Doc
from spacy.training import Example

from spacy_hocrf.annotation.annotators import state_of
from spacy_hocrf.annotation.documents import Document
from spacy_hocrf.annotation.gold import Gold
from spacy_hocrf.annotation.groups import group_in, register
from spacy_hocrf.annotation.weights import WEIGHT, weight_of
from spacy_hocrf.arrays import stretches
from spacy_hocrf.errors import Errors
from spacy_hocrf.features.records import Record, RecordedBatch, are_recordable, record
from spacy_hocrf.features.spans import SpanTemplate
from spacy_hocrf.features.templates import Template
from spacy_hocrf.features.tokens import TokenBatch, beginning, joined_stores
from spacy_hocrf.features.vectors import Vectors
from spacy_hocrf.model.dense import DenseScore
from spacy_hocrf.model.heads import Head, inputs_of, listens
from spacy_hocrf.model.structure import BATCH_TOKENS
from spacy_hocrf.types import CONST, LENGTH
from spacy_hocrf.warnings import Warnings

__all__ = ["Corpus", "Difference", "Memory", "NoMemory", "check_groups"]

DIGEST_SIZE = 16
"""Bytes of the hash of a document's content, and of the hash of its features."""
N_QUOTED = 3
"""Number of texts that a warning quotes."""


class Memory(Protocol):
    """What a corpus keeps of documents besides features and annotation, for other parts of the component."""

    @property
    def blanks(self) -> bool:
        """Must it be known which tokens are whitespace?"""
        ...

    @property
    def recordable(self) -> bool:
        """Are the attributes to be read known, and equal for all Docs? If not, Docs are kept whole."""
        ...

    def reads(self, doc: Doc) -> Mapping[str, set[str]]:
        """Return what will be read of a Doc, by reader, in the format of `TokenBatch.reads`."""
        ...


@dataclass(frozen=True)
class NoMemory:
    """A memory that keeps nothing."""

    blanks = False
    recordable = True

    def reads(self, doc: Doc) -> Mapping[str, set[str]]:
        """Return an empty mapping: nothing is read."""
        return {}


@dataclass(frozen=True)
class Difference:
    """What some examples would change in a corpus."""

    documents: Mapping[bytes, Document]  # new and changed ones, by key
    replaced: Mapping[bytes, bytes]  # key of the document that a changed one replaces
    skipped: frozenset[bytes]  # without any annotation
    usable: int  # number of examples that are documents of the corpus, new or not
    read: int  # number of examples
    empty: int  # number of examples without tokens, or of weight 0
    weightless: int = 0  # how many of these have weight 0


class Corpus:
    """The documents that a component learns from.

    gold (Gold): reads their annotation.
    templates (Sequence[Template]): templates of the features.
    scores (Sequence[Tuple[str, DenseScore]]): dense scores that the model reads.
    blanks (bool): must it be known which tokens are whitespace?
    memory (Optional[Memory]): what else is kept of the documents.
    group_by (Optional[str]): extension attribute of Docs that has the same value within a group; a document
        without a value is a group by itself.
    """

    def __init__(
        self,
        gold: Gold,
        templates: Sequence[Template],
        scores: Sequence[tuple[str, DenseScore]] = (),
        *,
        blanks: bool,
        memory: Memory | None = None,
        group_by: str | None = None,
    ) -> None:
        self.gold, self.group_by = gold, group_by
        self.set_readers(templates, scores)
        self._memory: Memory = NoMemory() if memory is None else memory
        self._blanks = blanks or self._memory.blanks
        # by content followed by the fingerprint of the features
        self._documents: dict[bytes, Document] = {}
        register(WEIGHT)
        # keys by content, oldest first; built at the first change
        self._keys: dict[bytes, list[bytes]] | None = None
        self._skipped: set[bytes] = set()  # contents
        self._noted: set[bytes] = set()  # content and state of noted examples
        self._size = 0
        self._stores = list[StringStore]()  # of the vocabularies of its Docs
        self.reads: Sequence[str] | None = None
        """What the features read of a Doc; known after the first Doc."""

    def __len__(self) -> int:
        """Number of documents, copies included."""
        return self._size

    @property
    def documents(self) -> list[Document]:
        """Every distinct document, in the order of arrival."""
        return list(self._documents.values())

    def set_readers(
        self, templates: Sequence[Template], scores: Sequence[tuple[str, DenseScore]]
    ) -> None:
        """Replace the templates and dense scores, as long as there are no documents."""
        self._templates = [t for t in templates if t.part not in (LENGTH, CONST)]
        self._scores = scores

    def compare(self, examples: Iterable[Example], *, initial: bool = False) -> Difference:
        """Find out what is new in some examples, without adding anything.

        initial (bool): these are the whole corpus, so equal examples are copies; in later calls, a known
            document is the same document again, and only equal new ones within a batch are copies.
        RAISES (ValueError): H025 or H027 for features that cannot be read, H051 for a template that reads the
            answer, H217 for a constraint that cannot be read, H520 for an invalid weight, H600 for texts of a
            memory zone.
        """
        new: dict[bytes, Document] = {}
        skipped: set[bytes] = set()
        counts: Counter[bytes] = Counter()
        weights: dict[bytes, float] = {}
        overlapping = list[tuple[int, str]]()
        read = empty = weightless = 0
        for example in examples:
            read += 1
            doc, weight = example.predicted, weight_of(example.reference)
            if not len(doc) or not weight:
                empty += 1
                weightless += not weight
                continue
            group = group_in(example, self.group_by)
            content = self._content(example, group)
            if content in self._skipped or content in skipped:
                continue
            source, fingerprint = self._source_of(doc)
            key = content + fingerprint
            counts[key] += 1
            weights[key] = weights.get(key, 0.0) + weight
            if key in new or key in self._documents:
                continue
            annotation = self.gold.annotation(example)
            if annotation.left_out:
                overlapping.append((annotation.left_out, beginning(doc)))
            if annotation.empty:
                skipped.add(content)
                del counts[key]
            elif doc.vocab.in_memory_zone:  # type: ignore[attr-defined]
                raise ValueError(Errors.H600.format(text=beginning(doc)))
            else:
                fields = beginning(doc), annotation, 0, group
                new[key] = Document(source or doc.copy(), *fields)
        if overlapping:
            self._warn_of_overlaps(overlapping)
        replaced = {} if initial or not new else self._match(new, counts)
        for key, document in new.items():
            before = self._documents[replaced[key]] if key in replaced else None
            document.copies = counts[key] if before is None else before.copies
            document.weight = weights[key] if before is None else before.weight
        contents = frozenset(skipped)
        return Difference(new, replaced, contents, counts.total(), read, empty, weightless)

    def _warn_of_overlaps(self, overlapping: Sequence[tuple[int, str]]) -> None:
        """Warn once for all texts. overlapping: number of spans left out of each text, and its beginning."""
        beginnings = "', '".join(text for _, text in overlapping[:N_QUOTED])
        counts = {"found": sum(n for n, _ in overlapping), "texts": len(overlapping)}
        text = Warnings.W003.format(**counts, place=self.gold.target.place, first=beginnings)
        warnings.warn(text, stacklevel=4)

    def note(self, example: Example) -> None:
        """From now on, recognise an example of the corpus by its state before other components write to it,
        provided that they always write the same.
        """
        mark = self._mark(example)
        if mark is not None:
            self._noted.add(mark)

    def recognized(self, examples: Iterable[Example]) -> Difference | None:
        """Return what `compare` would return for examples after other components wrote to them, if all of
        them were noted before; else None.
        """
        usable = read = empty = 0
        for example in examples:
            read += 1
            if not len(example.predicted) or not weight_of(example.reference):
                empty += 1
                continue
            mark = self._mark(example) if self._noted else None
            if mark not in self._noted:
                return None
            usable += mark[:DIGEST_SIZE] not in self._skipped
        return Difference({}, {}, frozenset(), usable, read, empty)

    def add(self, difference: Difference) -> list[Document]:
        """Add the result of `compare`. RETURNS (list[Document]): new and changed documents."""
        if difference.replaced:
            self._noted.clear()  # noted examples have become other documents
        for key, document in difference.documents.items():
            if key in difference.replaced:
                self._remove(difference.replaced[key])
            self._documents[key] = document
            self._size += document.copies
            if self._keys is not None:
                self._keys.setdefault(key[:DIGEST_SIZE], []).append(key)
        self._skipped |= difference.skipped
        return list(difference.documents.values())

    def discard(self, documents: Iterable[Document]) -> None:
        """Remove some documents from the corpus."""
        unwanted = {id(document) for document in documents}
        for key in [key for key, document in self._documents.items() if id(document) in unwanted]:
            self._remove(key)

    def without(self, documents: Iterable[Document]) -> "Corpus":
        """Return a corpus of the other documents; the Document objects are shared."""
        unwanted = {id(document) for document in documents}
        return self.only(d for d in self._documents.values() if id(d) not in unwanted)

    def only(self, documents: Iterable[Document]) -> "Corpus":
        """Return a corpus of some of the documents; the Document objects are shared."""
        other, ids = copy(self), {id(document) for document in documents}
        other._documents = {
            key: document for key, document in self._documents.items() if id(document) in ids
        }
        other._size = sum(document.copies for document in other._documents.values())
        other._keys, other._skipped, other._noted = None, set(), set()
        return other

    def groups(self, *, most: int) -> list[list[Document]]:
        """Return the completely annotated documents, with copies, by group.

        most (int): maximum number of tokens of a group; larger ones are split, but never a document.
        """
        groups: dict[Hashable, list[Document]] = {}
        for number, document in enumerate(self._documents.values()):
            if document.complete:
                key = (False, number) if document.group is None else (True, document.group)
                groups.setdefault(key, []).extend(
                    [document] * (1 if document.group is None else document.copies)
                )
        parts: list[list[Document]] = []
        for documents in groups.values():
            size = most + 1
            for document in documents:
                if size + len(document) > most:
                    parts.append([])
                    size = 0
                parts[-1].append(document)
                size += len(document)
        return parts

    def batch(self, documents: Sequence[Document], *, learn: bool = False) -> TokenBatch:
        """Return the tokens of some documents, for the templates to read."""
        sources = [document.source for document in documents]
        docs = [source for source in sources if isinstance(source, Doc)]
        if docs:
            return TokenBatch(docs, learn=learn)
        records = [source for source in sources if isinstance(source, Record)]
        return RecordedBatch(records, self._recorded, joined_stores(self._stores), learn=learn)

    def batches(
        self, documents: Sequence[Document], *, learn: bool = False
    ) -> Iterator[tuple[Sequence[Document], TokenBatch]]:
        """Yield documents in batches of about BATCH_TOKENS tokens, with their tokens."""
        for first, last in stretches(map(len, documents), BATCH_TOKENS):
            yield documents[first:last], self.batch(documents[first:last], learn=learn)

    @property
    def _recorded(self) -> set[str]:
        return {*(self.reads or ()), *(["IS_SPACE"] if self._blanks else [])}

    def _match(self, new: dict[bytes, Document], counts: Mapping[bytes, int]) -> dict[bytes, bytes]:
        """Match new documents with known ones of the same content whose features have changed.

        Among several with the same content, those that were not seen again with their known features are
        replaced, oldest first. Surplus new ones are removed from `new`.

        RETURNS (dict[bytes, bytes]): for each changed document, the key of its older version.
        """
        if self._keys is None:
            self._keys = {}
            for key in self._documents:
                self._keys.setdefault(key[:DIGEST_SIZE], []).append(key)
        replaceable: dict[bytes, list[bytes]] = {}
        replaced: dict[bytes, bytes] = {}
        for key in list(new):
            content = key[:DIGEST_SIZE]
            if content in self._keys:
                if content not in replaceable:
                    replaceable[content] = [
                        other for other in reversed(self._keys[content]) if other not in counts
                    ]
                if replaceable[content]:
                    replaced[key] = replaceable[content].pop()
                else:
                    del new[key]
        return replaced

    def _remove(self, key: bytes) -> None:
        self._size -= self._documents.pop(key).copies
        if self._keys is not None:
            keys = self._keys[key[:DIGEST_SIZE]]
            keys.remove(key)
            if not keys:
                del self._keys[key[:DIGEST_SIZE]]

    def _content(self, example: Example, group: Hashable) -> bytes:
        """Hash text and annotation, and the group, if there is one."""
        content = self.gold.key(example.reference) + (
            b"" if group is None else repr(group).encode()
        )
        return hashlib.blake2b(content, digest_size=DIGEST_SIZE).digest()

    def _mark(self, example: Example) -> bytes | None:
        state = state_of(example.predicted)
        if state is None:
            return None
        content = self._content(example, group_in(example, self.group_by))
        return content + hashlib.blake2b(state, digest_size=DIGEST_SIZE).digest()

    def _source_of(self, doc: Doc) -> tuple[Record | None, bytes]:
        """Return what features are extracted from (None: the Doc itself), and its fingerprint."""
        if self.reads is None:
            self.reads = self._reads_of(doc)
        if doc.vocab.strings not in self._stores:
            self._stores.append(doc.vocab.strings)
        for _, score in self._scores:
            if isinstance(score, Vectors):
                score.check(doc)
        readers = [*self._templates, *(score for _, score in self._scores)]
        if are_recordable(readers) and self._memory.recordable:
            return record(doc, self._recorded)
        return None, TokenBatch([doc]).fingerprint(self.reads) + self._encoder_inputs(doc)

    def _encoder_inputs(self, doc: Doc) -> bytes:
        """Hash what another component passes to the encoder, if that listens to one."""
        heads = (score for _, score in self._scores if isinstance(score, Head))
        head = next(heads, None)
        if head is None or not listens(head.encoder):
            return b""
        rows = head.inputs(TokenBatch([doc]))
        return hashlib.blake2b(rows.tobytes(), digest_size=DIGEST_SIZE).digest()

    def _reads_of(self, doc: Doc) -> list[str]:
        """Find out what the templates read. RAISES (ValueError): H051 if one, or a score, reads answers."""
        reads: set[str] = set()
        for template in self._templates:
            batch = TokenBatch([doc], learn=True)
            template.events(batch)
            reads |= self._without_answers(batch.reads, template.name)
        for name, score in self._scores:
            batch = TokenBatch([doc], learn=True)
            inputs_of([(name, score)], batch)
            reads |= self._without_answers(batch.reads, name)
        for name, read in self._memory.reads(doc).items():
            reads |= self._without_answers(read, name)
        return sorted(reads)

    def _without_answers(self, reads: set[str], template: str) -> set[str]:
        for attribute in sorted(reads & self.gold.target.answers):
            raise ValueError(Errors.H051.format(template=template, attribute=attribute))
        return reads


def check_groups(corpus: Corpus, templates: Iterable[Template]) -> None:
    """Check that the span groups that templates read exist.

    It is called late, since annotating components write after `initialize`, and some write no group where
    they find nothing.

    RAISES (ValueError): H182 if a span group that a template reads is in no document.
    """
    keys = (template.key for template in templates if isinstance(template, SpanTemplate))
    for key in dict.fromkeys(filter(None, keys)):
        if not any(corpus.batch([document]).has_group(key) for document in corpus.documents):
            raise ValueError(Errors.H182.format(key=key, found=len(corpus)))
