"""The training corpus of a component: the documents it was shown, each once per copy.

Documents are known by their content, never by identity: `initialize` and `update` read the corpus
separately, and every update makes new Docs. Documents of one text and annotation are two if
`initialize` saw them with different features, such as images of one word by two writers. A document
whose features have changed (an earlier component was trained meanwhile) replaces its older self.
"""

import hashlib
import warnings
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
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

DIGEST = 16
"""Bytes of the hash of a document's content, and of that of its features."""
FIRST = 3
"""Texts that a warning names."""


class Memory(Protocol):
    """What a corpus remembers of documents besides features and annotation, for others to ask."""

    @property
    def blanks(self) -> bool:
        """Which tokens are white space?"""
        ...

    @property
    def recordable(self) -> bool:
        """Is it known what will be asked, the same of every Doc? Else the Docs are kept whole."""
        ...

    def reads(self, doc: Doc) -> Mapping[str, set[str]]:
        """What will be asked of a Doc, in the words of `TokenBatch.reads`, by who asks."""
        ...


@dataclass(frozen=True)
class NoMemory:
    """A memory of nothing."""

    blanks = False
    recordable = True

    def reads(self, doc: Doc) -> Mapping[str, set[str]]:
        """Nothing at all."""
        return {}


@dataclass(frozen=True)
class Difference:
    """What some examples would change about a corpus."""

    documents: Mapping[bytes, Document]  # new and changed ones, by key
    older: Mapping[bytes, bytes]  # key of the document that a changed one replaces
    skipped: frozenset[bytes]  # without any annotation
    usable: int  # number of examples that are documents of the corpus, new or not
    read: int  # number of examples
    empty: int  # number of examples without tokens, or of weight 0
    weightless: int = 0  # of these, those of weight 0


class Corpus:
    """The documents that a component learns from.

    gold (Gold): reads what is known of them.
    templates (Sequence[Template]): what the features are made of.
    scores (Sequence[Tuple[str, DenseScore]]): what else the model reads.
    blanks (bool): does the model ask which tokens are white space?
    memory (Optional[Memory]): what else is remembered of the documents.
    group_by (Optional[str]): extension attribute of Docs that is equal for those of one group; a
        document without a value is a group by itself.
    """

    def __init__(
        self,
        gold: Gold,
        templates: Sequence[Template],
        *,
        scores: Sequence[tuple[str, DenseScore]] = (),
        blanks: bool,
        memory: Memory | None = None,
        group_by: str | None = None,
    ) -> None:
        self.gold, self.group_by = gold, group_by
        self.set_readers(templates, scores)
        self._memory: Memory = NoMemory() if memory is None else memory
        self._blanks = blanks or self._memory.blanks
        # by content and fingerprint of the features, end to end
        self._documents: dict[bytes, Document] = {}
        register(WEIGHT)
        # of each content, longest known first; once there is a change
        self._keys: dict[bytes, list[bytes]] | None = None
        self._skipped: set[bytes] = set()  # contents
        self._raw: set[bytes] = set()  # by content and state: examples before others wrote to them
        self._size = 0
        self._stores = list[StringStore]()  # of the vocabularies that its Docs have had
        self.reads: Sequence[str] | None = None
        """What the features read of a Doc; known once there is one."""

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
        """Take other templates and dense scores, as long as there are no documents."""
        self._templates = [each for each in templates if each.part not in (LENGTH, CONST)]
        self._scores = scores

    def compare(self, examples: Iterable[Example], *, initial: bool = False) -> Difference:
        """What is new in some examples; nothing is taken in.

        initial (bool): these are the whole corpus, so equal ones are copies; later, a document that
            is known already is that same document once more, and only equal ones among the new of
            one batch are copies.
        RAISES (ValueError): H025 or H027 for features that cannot be read, H051 for a template that
            reads the answer, H217 for a constraint that cannot be read, H520 for a weight that is none.
        """
        fresh: dict[bytes, Document] = {}
        skipped: set[bytes] = set()
        seen: Counter[bytes] = Counter()
        worth: dict[bytes, float] = {}
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
            source, fingerprint = self._read(doc)
            key = content + fingerprint
            seen[key] += 1
            worth[key] = worth.get(key, 0.0) + weight
            if key in fresh or key in self._documents:
                continue
            annotation = self.gold.annotation(example)
            if annotation.left_out:
                overlapping.append((annotation.left_out, beginning(doc)))
            if annotation.empty:
                skipped.add(content)
                del seen[key]
            else:
                known = beginning(doc), annotation, 0, group
                fresh[key] = Document(source or doc.copy(), *known)
        if overlapping:
            self._warn_of(overlapping)
        older = {} if initial or not fresh else self._match(fresh, seen)
        for key, document in fresh.items():
            before = self._documents[older[key]] if key in older else None
            document.copies = seen[key] if before is None else before.copies
            document.weight = worth[key] if before is None else before.weight
        skips = frozenset(skipped)
        return Difference(fresh, older, skips, seen.total(), read, empty, weightless)

    def _warn_of(self, overlapping: Sequence[tuple[int, str]]) -> None:
        """Once for all texts. overlapping: of each, spans that are left out, and its beginning."""
        some = "', '".join(text for _, text in overlapping[:FIRST])
        counts = {"found": sum(n for n, _ in overlapping), "texts": len(overlapping)}
        text = Warnings.W003.format(**counts, place=self.gold.target.place, first=some)
        warnings.warn(text, stacklevel=4)

    def note(self, example: Example) -> None:
        """Recognize an example of the corpus from now on by what it was before components wrote to it that
        write the same each time.
        """
        mark = self._mark(example)
        if mark is not None:
            self._raw.add(mark)

    def recognized(self, examples: Iterable[Example]) -> Difference | None:
        """What `compare` says of examples after others wrote to them, all of which were noted before; None
        if one was not.
        """
        usable = read = empty = 0
        for example in examples:
            read += 1
            if not len(example.predicted) or not weight_of(example.reference):
                empty += 1
                continue
            mark = self._mark(example) if self._raw else None
            if mark not in self._raw:
                return None
            usable += mark[:DIGEST] not in self._skipped
        return Difference({}, {}, frozenset(), usable, read, empty)

    def add(self, difference: Difference) -> list[Document]:
        """Take in what `compare` has found. RETURNS (list[Document]): the documents that are new or
        have changed.
        """
        if difference.older:
            self._raw.clear()  # what was noted has become another document
        for key, document in difference.documents.items():
            if key in difference.older:
                self._remove(difference.older[key])
            self._documents[key] = document
            self._size += document.copies
            if self._keys is not None:
                self._keys.setdefault(key[:DIGEST], []).append(key)
        self._skipped |= difference.skipped
        return list(difference.documents.values())

    def discard(self, documents: Iterable[Document]) -> None:
        """Take documents out again."""
        unwanted = {id(document) for document in documents}
        for key in [key for key, document in self._documents.items() if id(document) in unwanted]:
            self._remove(key)

    def without(self, documents: Iterable[Document]) -> "Corpus":
        """A corpus of the other documents, which the two have in common from then on."""
        unwanted = {id(document) for document in documents}
        return self.only(d for d in self._documents.values() if id(d) not in unwanted)

    def only(self, documents: Iterable[Document]) -> "Corpus":
        """A corpus of some of the documents, which the two have in common from then on."""
        other = Corpus(
            self.gold,
            self._templates,
            scores=self._scores,
            blanks=self._blanks,
            memory=self._memory,
            group_by=self.group_by,
        )
        wanted = {id(document) for document in documents}
        other._documents = {
            key: document for key, document in self._documents.items() if id(document) in wanted
        }
        other._size = sum(document.copies for document in other._documents.values())
        other._stores, other.reads = self._stores, self.reads
        return other

    def groups(self, *, most: int) -> list[list[Document]]:
        """The completely annotated documents, copies included, by their groups.

        most (int): tokens of a group; larger ones are split. A document by itself never is.
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
        """The tokens of some documents, as the templates read them."""
        sources = [document.source for document in documents]
        docs = [source for source in sources if isinstance(source, Doc)]
        if docs:
            return TokenBatch(docs, learn=learn)
        records = [source for source in sources if isinstance(source, Record)]
        return RecordedBatch(records, self._recorded, joined_stores(self._stores), learn=learn)

    def batches(self, documents: Sequence[Document]) -> Iterator[TokenBatch]:
        """Documents to learn from, about BATCH_TOKENS tokens at a time."""
        for first, last in stretches(map(len, documents), BATCH_TOKENS):
            yield self.batch(documents[first:last], learn=True)

    @property
    def _recorded(self) -> set[str]:
        return {*(self.reads or ()), *(["IS_SPACE"] if self._blanks else [])}

    def _match(self, fresh: dict[bytes, Document], seen: Mapping[bytes, int]) -> dict[bytes, bytes]:
        """Which known documents the fresh ones are, with other features than before.

        Where several have one content, those that are not seen with their known features change,
        longest known first. Fresh ones beyond these are taken out.

        RETURNS (dict[bytes, bytes]): the older key of each fresh one that has changed.
        """
        if self._keys is None:
            self._keys = {}
            for key in self._documents:
                self._keys.setdefault(key[:DIGEST], []).append(key)
        waiting: dict[bytes, list[bytes]] = {}
        older: dict[bytes, bytes] = {}
        for key in list(fresh):
            content = key[:DIGEST]
            if content in self._keys:
                if content not in waiting:
                    waiting[content] = [
                        other for other in reversed(self._keys[content]) if other not in seen
                    ]
                if waiting[content]:
                    older[key] = waiting[content].pop()
                else:
                    del fresh[key]
        return older

    def _remove(self, key: bytes) -> None:
        self._size -= self._documents.pop(key).copies
        if self._keys is not None:
            keys = self._keys[key[:DIGEST]]
            keys.remove(key)
            if not keys:
                del self._keys[key[:DIGEST]]

    def _content(self, example: Example, group: Hashable) -> bytes:
        """A digest of text and annotation, and of the group, if there is one."""
        content = self.gold.key(example.reference) + (
            b"" if group is None else repr(group).encode()
        )
        return hashlib.blake2b(content, digest_size=DIGEST).digest()

    def _mark(self, example: Example) -> bytes | None:
        state = state_of(example.predicted)
        if state is None:
            return None
        content = self._content(example, group_in(example, self.group_by))
        return content + hashlib.blake2b(state, digest_size=DIGEST).digest()

    def _read(self, doc: Doc) -> tuple[Record | None, bytes]:
        """What features are extracted from, None where that is the Doc itself, and its fingerprint."""
        if self.reads is None:
            self._probe(doc)
        if doc.vocab.strings not in self._stores:
            self._stores.append(doc.vocab.strings)
        assert self.reads is not None
        for _, score in self._scores:
            if isinstance(score, Vectors):
                score.check(doc)
        readers = [*self._templates, *(score for _, score in self._scores)]
        if are_recordable(readers) and self._memory.recordable:
            return record(doc, self._recorded)
        return None, TokenBatch([doc]).fingerprint(self.reads) + self._heard(doc)

    def _heard(self, doc: Doc) -> bytes:
        """A digest of what another component says to the encoder, if it listens to one."""
        heads = (score for _, score in self._scores if isinstance(score, Head))
        head = next(heads, None)
        if head is None or not listens(head.encoder):
            return b""
        rows = head.inputs(TokenBatch([doc]))
        return hashlib.blake2b(rows.tobytes(), digest_size=DIGEST).digest()

    def _probe(self, doc: Doc) -> None:
        """Find out what the templates read. RAISES (ValueError): H051 for one, of whatever kind,
        that reads the answer.
        """
        reads: set[str] = set()
        for template in self._templates:
            batch = TokenBatch([doc], learn=True)
            template.events(batch)
            reads |= self._checked(batch.reads, template.name)
        for name, score in self._scores:
            batch = TokenBatch([doc], learn=True)
            inputs_of([(name, score)], batch)
            reads |= self._checked(batch.reads, name)
        for name, asked in self._memory.reads(doc).items():
            reads |= self._checked(asked, name)
        self.reads = sorted(reads)

    def _checked(self, reads: set[str], template: str) -> set[str]:
        for attribute in sorted(reads & self.gold.target.answers):
            raise ValueError(Errors.H051.format(template=template, attribute=attribute))
        return reads


def check_groups(corpus: Corpus, templates: Iterable[Template]) -> None:
    """Components that annotate write after `initialize`, and some write no group where they find
    nothing, so this is asked late.

    RAISES (ValueError): H182 if a span group that a template reads is in no document.
    """
    keys = (template.key for template in templates if isinstance(template, SpanTemplate))
    for key in dict.fromkeys(filter(None, keys)):
        if not any(corpus.batch([document]).has_group(key) for document in corpus.documents):
            raise ValueError(Errors.H182.format(key=key, found=len(corpus)))
