"""A shard of texts of four words, slow and obvious, for the tests of what is learnt from shards."""

import numpy as np
import oracle

from spacy_hocrf.engine.automaton import compile_automaton
from spacy_hocrf.engine.forbidden import Observed
from spacy_hocrf.types import START, Expectations, Segment

PATTERNS = ((0,), (1,), (2,), (0, 1), (1, 0, 2))
LIMITS, FORBIDDEN = (1, 3, 0), frozenset({(2, 2)})
AUTOMATON = compile_automaton(PATTERNS, LIMITS, forbidden=FORBIDDEN)
WORDS, LABELS = 4, 3
# features: a word in a segment of a label; a label pattern; a word at the start of a segment that
#     ends in (0, 1)
F = WORDS * LABELS + len(PATTERNS) + WORDS
ANYTHING = oracle.ANYTHING


class Texts:
    """A shard of texts of words 0..3; each comes with its segments, or with bits [T, Y] if it is
    known in part.
    """

    def __init__(self, texts, segmentations=None, bits=None):
        self.texts, self.segmentations, self.bits = texts, segmentations, bits
        self.words = np.array([word for text in texts for word in text], dtype=np.int64)

    def potentials(self, weights, scratch=None):
        n = len(self.words)
        word = weights[: WORDS * LABELS].reshape(WORDS, LABELS)
        return oracle.plain(
            word[self.words],
            offsets=np.cumsum([0, *map(len, self.texts)]),
            const=weights[WORDS * LABELS :][: len(PATTERNS)].copy(),
            row_offsets=np.arange(n + 1),
            row_part=np.full(n, START, dtype=np.uint8),
            row_pattern=np.full(n, 3, dtype=np.int32),
            row_score=weights[-WORDS:][self.words],
        )

    copies, weights = 1, None

    def release(self):
        self.rested = True

    @property
    def observed(self):
        return None if self.bits is None else Observed(np.concatenate(self.bits))

    def gold(self):
        if self.bits is not None:
            return None
        return oracle.segments_of(self.segmentations)

    def add_gold_into(self, counts):
        if self.bits is None:
            self.add_segments_into(self.gold(), float(self.copies), counts)

    def add_segments_into(self, segments, scale, counts):
        for i, text in enumerate(self.texts):
            rows = [
                part[segments.offsets[i] : segments.offsets[i + 1]].tolist()
                for part in segments[1:]
            ]
            fired = oracle.firing(
                self.single(np.zeros(F), i), PATTERNS, [Segment(*row) for row in zip(*rows)]
            )
            self.add_counts_into(
                Expectations(log_partition=np.zeros(1), **fired), scale, counts, [text]
            )

    @property
    def compiled(self):
        return self

    def only(self, i):
        return Texts([self.texts[i]], [self.segmentations[i]])

    def add_counts_into(self, expected, scale, counts, texts=None):
        words = self.words if texts is None else np.array(texts[0], dtype=np.int64)
        np.add.at(counts[: WORDS * LABELS].reshape(WORDS, LABELS), words, scale * expected.token)
        counts[WORDS * LABELS :][: len(PATTERNS)] += scale * expected.const
        np.add.at(counts[-WORDS:], words, scale * expected.row)

    def describe(self, sequence):
        return str(self.texts[sequence])

    def single(self, weights, i):
        """The potentials of one text, as the oracle takes them."""
        return Texts([self.texts[i]]).potentials(weights)


class Plain:
    """The layout that leaves everything where it is."""

    def place_weights(self, weights, placed=None):
        return weights.copy()

    def nothing(self, collected=None):
        return np.zeros(F) if collected is None else collected

    extent = F

    def merge(self, counts, others):
        counts += others
        others.fill(0.0)

    def add_collected_into(self, gradient, counts):
        gradient += counts
        counts.fill(0.0)

    def take(self, counts):
        features = np.flatnonzero(counts)
        amounts = counts[features]
        counts.fill(0.0)
        return features, amounts

    def add_into(self, placed, features, amounts):
        placed[features] += amounts


PLAIN = Plain()


def random_texts(rng, count, *, known):
    texts = [tuple(map(int, rng.integers(0, WORDS, rng.integers(1, 6)))) for _ in range(count)]
    segmentations, bits = [], []
    for i, text in enumerate(texts):
        every = list(oracle.segmentations(Texts([text]).potentials(np.zeros(F)), LIMITS, FORBIDDEN))
        segmentations.append(every[rng.integers(len(every))])
        allowed = np.full((len(text), LABELS), ANYTHING, dtype=np.uint8)
        if i % 3:  # nothing is known of the first text, something of the others
            segment = segmentations[-1][-1]
            allowed[segment.start : segment.end] = 0
            allowed[segment.start : segment.end, segment.label] = ANYTHING
        bits.append(allowed)
    return Texts(texts, segmentations) if known else Texts(texts, None, bits)


def corpus(seed=0, shards=7):
    rng = np.random.default_rng(seed)
    return [random_texts(rng, 3, known=number % 3 != 2) for number in range(shards)], rng.normal(
        size=F
    )
