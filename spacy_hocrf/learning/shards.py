"""Shards: the corpus in the form that the engine's objectives take, documents whose features are extracted
once and that are scored together, with their annotation.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.annotation.annotation import known_segments
from spacy_hocrf.annotation.documents import Document
from spacy_hocrf.arrays import stretches
from spacy_hocrf.engine.forbidden import Observed
from spacy_hocrf.engine.reduction import MIN_PARTS
from spacy_hocrf.engine.stretches import LONG, SIDE_BY_SIDE
from spacy_hocrf.engine.threads import Threads
from spacy_hocrf.engine.tying import Tied
from spacy_hocrf.learning.corpus import Corpus
from spacy_hocrf.learning.loaded import LoadedModel
from spacy_hocrf.learning.soft_targets import soft_targets
from spacy_hocrf.learning.training_rules import TrainingRules, allowed_in, observed_in, satisfiable
from spacy_hocrf.model.compiled_shard import CompiledShard
from spacy_hocrf.model.histories import as_segments
from spacy_hocrf.model.placement import CompiledIndex
from spacy_hocrf.model.structure import Structure
from spacy_hocrf.model.tying import inseparable, tie
from spacy_hocrf.types import Observations, Segmentation

__all__ = ["CorpusShard", "make_shards", "tied_shards"]

SHARD_TOKENS = 4_000
"""Number of tokens scored together; it affects the last bit of the objective."""
MIN_COUNTED_TOKENS = SHARD_TOKENS // SIDE_BY_SIDE
"""Minimum number of tokens that a document counts for, unless it is cut: documents run side by side in the
lanes of the kernels, which would otherwise be empty.
"""

SOFT = 1
"""Kind of documents that have soft spans."""
MAX_TIED_TOKENS = 500_000
"""Maximum number of tokens for tying weights: the observations of a larger corpus take too much memory to be
kept. The more texts there are, the fewer features share a weight.
"""
MAX_TIED_SHARE = 0.85
"""Maximum share of features with a weight of their own for tying: otherwise the second layout takes as much
memory as fewer weights save.
"""


class CorpusShard:
    """Compiles a shard of some documents of the corpus when it is first needed; either all of them are
    completely annotated or none is, and either all have soft spans that count or none has.

    copies (int): how often each document counts; 0 to use its weight.
    rules (Optional[TrainingRules]): constraints on the segmentations that are summed over.
    loaded (Optional[LoadedModel]): fills in what the annotation leaves open; None to use the model being
        learnt.
    soft (bool): use the soft spans, rather than the most probable of them?
    """

    def __init__(
        self,
        structure: Structure,
        corpus: Corpus,
        documents: Sequence[Document],
        copies: int = 1,
        rules: TrainingRules | None = None,
        loaded: LoadedModel | None = None,
        soft: bool = False,
    ) -> None:
        self.copies, self._soft = copies, soft
        self._rules, self._loaded = rules, loaded
        self._structure = structure
        self._corpus = corpus
        self._documents = documents
        self._compiled: CompiledShard | None = None
        # observations and allowed bits, until they are compiled
        self._observed: tuple[Observations, NDArray[np.uint8]] | None = None

    @property
    def compiled(self) -> CompiledShard:
        """The compiled arrays, kept until `release`."""
        if self._compiled is None:
            self._compiled = self._compile()
        return self._compiled

    @property
    def tokens(self) -> int:
        """Number of tokens of the shard."""
        return sum(map(len, self._documents))

    def observe(self) -> Observations:
        """Return the observations of its tokens, kept until they are compiled."""
        self._observed = self._observed or self._observation()
        return self._observed[0]

    def arranged(self, compiled: CompiledIndex) -> "CorpusShard":
        """Return a shard with another layout of the features; the observations are moved there."""
        structure = copy(self._structure)
        structure.compiled = compiled
        options = self.copies, self._rules, self._loaded, self._soft
        other = CorpusShard(structure, self._corpus, self._documents, *options)
        other._observed, self._observed = self._observed, None
        return other

    def release(self) -> None:
        """Release everything that can be computed again."""
        self._compiled = None

    def _observation(self) -> tuple[Observations, NDArray[np.uint8]]:
        tokens = self._corpus.batch(self._documents)
        return self._structure.observe(tokens), allowed_in(self._structure, self._rules, tokens)

    def _compile(self) -> CompiledShard:
        structure, documents = self._structure, self._documents
        observations, allowed = self._observed or self._observation()
        self._observed = None
        batch = structure.compile(observations, allowed)
        annotations = [document.annotation for document in documents]
        texts = [document.text for document in documents]
        observed: Observed | None = None
        if self._soft:
            arguments = structure, self._rules, allowed, batch.offsets, annotations
            observed = soft_targets(*arguments, batch.potentials(structure.compiled.nothing()))
            segments: Sequence[Segmentation] = [[] for _ in documents]
        elif all(document.complete for document in documents):
            segments = [known_segments(structure.scheme, annotation) for annotation in annotations]
        else:
            loaded = self._loaded
            if loaded is not None:
                allowed = loaded.allowed(allowed, batch.offsets, annotations)
            observed = observed_in(structure, self._rules, allowed, batch.offsets, annotations)
            if loaded is not None:
                observed = replace(observed, scores=batch.potentials(loaded.weights))
            segments = [[] for _ in documents]
        weights = None if self.copies else np.array([document.weight for document in documents])
        gold = as_segments(segments), structure.trie
        return CompiledShard(batch, observed, *gold, self.copies or 1, texts, weights)


def make_shards(
    structure: Structure,
    corpus: Corpus,
    rules: TrainingRules | None = None,
    loaded: LoadedModel | None = None,
) -> list[CorpusShard]:
    """Divide a corpus into shards of about SHARD_TOKENS tokens at most: complete documents first, then those
    with soft spans, then those without constraints of their own; short documents before long ones.

    rules (Optional[TrainingRules]): constraints that training observes; documents that cannot satisfy them
        are left out.
    loaded (Optional[LoadedModel]): fills in what the annotation leaves open.

    A document with an integral weight is put into shards that count 1, 2, 4, … times, so that it is in few of
    them; others are in separate shards, which have weights. Documents of nearly the same length are best
    processed side by side. A corpus that needs several shards gets a multiple of MIN_PARTS, which are
    grouped into parts of equal size.
    """
    rows = [
        (_kind(document), copies, document)
        for document in satisfiable(structure, rules, corpus, corpus.documents)
        for copies in _copies(document.weight)
    ]
    rows.sort(key=lambda row: (*row[:2], len(row[2])))
    shards: list[CorpusShard] = []
    for (kind, copies), group in groupby(rows, key=lambda row: row[:2]):
        chosen = [document for _, _, document in group]
        sizes = [_counted_tokens(document) for document in chosen]
        shards += [
            CorpusShard(structure, corpus, chosen[first:last], copies, rules, loaded, kind == SOFT)
            for first, last in stretches(sizes, _shard_size(sum(sizes)))
        ]
    return shards


def tied_shards(structure: Structure, shards: Sequence[CorpusShard], threads: int) -> Tied:
    """Return shards with tied weights, one for all features that they cannot distinguish, if that saves
    enough weights.

    structure (Structure): structure of the shards, which have not been compiled yet.
    """
    index, compiled = structure.index, structure.compiled
    if sum(shard.tokens for shard in shards) <= MAX_TIED_TOKENS:
        observations = Threads(threads).map(CorpusShard.observe, shards)
        classes = inseparable(index, (own.tokens for own in observations))
        arranged, group = tie(index, classes, compiled.dense_weights)
        if len(arranged.place) <= MAX_TIED_SHARE * len(index):
            return Tied([shard.arranged(arranged) for shard in shards], arranged, group)
    return Tied(shards, compiled, None)


def _kind(document: Document) -> int:
    """Return the kind of a document; documents of one kind share shards."""
    if document.soft:
        return SOFT
    return 0 if document.complete else 3 if document.constraints else 2


def _copies(weight: float) -> list[int]:
    """Return how often shards count a document: powers of two that add up to an integral weight; [0], to use
    the weight itself, if it is not integral.
    """
    number = int(weight)
    if number != weight:
        return [0]
    bits = range(number.bit_length())
    return [1 << bit for bit in bits if number >> bit & 1]


def _counted_tokens(document: Document) -> int:
    """Return the number of tokens that a document counts for in a shard."""
    tokens = len(document)
    return tokens if tokens >= LONG else min(tokens, MIN_COUNTED_TOKENS)


def _shard_size(tokens: int) -> int:
    """Return the number of tokens of each shard of a corpus."""
    rounds = -(-tokens // (SHARD_TOKENS * MIN_PARTS))
    return tokens if tokens <= SHARD_TOKENS else -(-tokens // (rounds * MIN_PARTS))
