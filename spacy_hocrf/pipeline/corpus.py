"""The training corpus of a component: the documents it was shown, each once per copy, and the shards made of them.

Documents are known by their content, never by identity: `initialize` and `update` read the corpus separately, and every update
makes new Docs. A document whose features have changed (an earlier component was trained meanwhile) replaces its older self.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc
from spacy.training import Example

from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.model.compiled import CompiledBatch
from spacy_hocrf.model.network import Network
from spacy_hocrf.model.placement import Placed
from spacy_hocrf.pipeline.annotation import Annotation, constrain, known_segments
from spacy_hocrf.pipeline.targets import Target
from spacy_hocrf.types import Expectations, Potentials

__all__ = ["Corpus", "CorpusShard", "Document", "News", "make_shards"]

SHARD_TOKENS = 2_000
"""Tokens scored together; part of what fixes the last bit of the objective."""


@dataclass
class Document:
    """One training document."""

    doc: Doc
    annotation: Annotation
    fingerprint: bytes
    copies: int


@dataclass(frozen=True)
class News:
    """What some examples would change about a corpus."""

    documents: Mapping[bytes, Document]  # new and changed ones, by content
    skipped: frozenset[bytes]  # without any annotation
    usable: int  # number of examples that are documents of the corpus, new or not


class Corpus:
    """The documents that a component learns from.

    target (Target): where their annotation is.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._documents: dict[bytes, Document] = {}
        self._skipped: set[bytes] = set()
        self._size = 0
        self.reads: Sequence[str] = ()
        """What the features read of a Doc; known once features have been extracted."""

    def __len__(self) -> int:
        """Number of documents, copies included."""
        return self._size

    @property
    def documents(self) -> list[Document]:
        """Every distinct document, in the order of arrival."""
        return list(self._documents.values())

    def compare(self, examples: Iterable[Example], *, initial: bool = False) -> News:
        """What is new in some examples; nothing is taken in.

        initial (bool): these are the whole corpus, so equal ones are copies; later, a document that is known already is that
            same document once more, and only equal ones among the new of one batch are copies.
        RAISES (ValueError): H025 or H027 for features that cannot be read.
        """
        fresh: dict[bytes, Document] = {}
        skipped: set[bytes] = set()
        seen: Counter[bytes] = Counter()
        for example in examples:
            key = hashlib.blake2b(self._target.key(example.reference), digest_size=16).digest()
            if not len(example.predicted) or key in self._skipped or key in skipped:
                continue
            fingerprint = self._fingerprint(example.predicted)
            known = self._documents.get(key)
            seen[key] += 1
            if key in fresh or (known is not None and known.fingerprint == fingerprint):
                continue
            annotation = self._target.annotation(example)
            if annotation.unknown.all():
                skipped.add(key)
                del seen[key]
            else:
                fresh[key] = Document(example.predicted.copy(), annotation, fingerprint, known.copies if known else 0)
        for key, document in fresh.items():
            document.copies = seen[key] if initial else document.copies or seen[key]
        return News(fresh, frozenset(skipped), seen.total())

    def add(self, news: News) -> list[Document]:
        """Take in what `compare` has found. RETURNS (list[Document]): the documents that are new or have changed."""
        for key, document in news.documents.items():
            older = self._documents.get(key)
            self._size += document.copies - (older.copies if older is not None else 0)
            self._documents[key] = document
        self._skipped |= news.skipped
        return list(news.documents.values())

    def discard(self, documents: Iterable[Document]) -> None:
        """Take documents out again."""
        unwanted = {id(document) for document in documents}
        self._documents = {key: document for key, document in self._documents.items() if id(document) not in unwanted}
        self._size = sum(document.copies for document in self._documents.values())

    def refresh_fingerprints(self) -> None:
        """Fingerprint all documents again, after `reads` has been set."""
        for document in self._documents.values():
            document.fingerprint = self._fingerprint(document.doc)

    def _fingerprint(self, doc: Doc) -> bytes:
        return TokenBatch([doc]).fingerprint(self.reads)


class CorpusShard:
    """Some documents as the objective sees them; either all are completely annotated or none is."""

    def __init__(self, network: Network, documents: Sequence[Document]) -> None:
        assert network.scheme is not None
        docs = [document.doc for document in documents]
        allowed = network.allowed(docs)
        self._documents = documents
        self._batch: CompiledBatch = network.compile(network.observe(docs), allowed)
        self._observed: NDArray[np.uint8] | None = None
        if all(document.annotation.complete for document in documents):
            segments = [known_segments(network.scheme, document.annotation) for document in documents]
            self._gold = network.gold(segments, self._batch.offsets)
        else:
            pieces = np.split(allowed, self._batch.offsets[1:-1])
            bits = [constrain(network.scheme, piece, d.annotation) for piece, d in zip(pieces, documents)]
            self._observed = np.concatenate(bits)

    def potentials(self, weights: Placed) -> Potentials:
        """Log potentials of all documents."""
        return self._batch.potentials(weights)

    def observed(self, potentials: Potentials) -> Potentials | None:
        """The potentials of the segmentations that agree with incomplete annotation; None if it is complete."""
        return None if self._observed is None else replace(potentials, allowed=self._observed)

    def add_gold_into(self, counts: Placed) -> None:
        """Add how often each feature fires in the complete annotation."""
        if self._observed is None:
            self._batch.add_counts_into(self._batch.gold_counts(self._gold), 1.0, counts)

    def add_counts_into(self, expected: Expectations, scale: float, counts: Placed) -> None:
        """Add scale times the expected count of every feature."""
        self._batch.add_counts_into(expected, scale, counts)

    def describe(self, sequence: int) -> str:
        """The beginning of a document's text."""
        return repr(self._documents[sequence].doc.text[:60])


def make_shards(network: Network, documents: Iterable[Document]) -> list[CorpusShard]:
    """Shards of about SHARD_TOKENS tokens, in the documents' order, complete ones first."""
    shards: list[CorpusShard] = []
    everything = [document for document in documents for _ in range(document.copies)]
    for complete in (True, False):
        part: list[Document] = []
        size = 0
        chosen = [document for document in everything if document.annotation.complete == complete]
        for i, document in enumerate(chosen):
            part.append(document)
            size += len(document.doc)
            if size >= SHARD_TOKENS or i + 1 == len(chosen):
                shards.append(CorpusShard(network, part))
                part, size = [], 0
    return shards
