"""Random problems of a few tokens with every kind of labels, and all that a reading of one could say, by
enumeration.
"""

from itertools import combinations

import numpy as np
import oracle
import spacy
from numpy.testing import assert_allclose
from spacy.tokens import Doc

from spacy_hocrf.answers.decoders import ExpectedF
from spacy_hocrf.answers.part import Part
from spacy_hocrf.answers.reading import BatchReading, Reading
from spacy_hocrf.engine.automaton import compile_automaton
from spacy_hocrf.engine.forward_backward import log_partition
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.model.scheme import make_scheme
from spacy_hocrf.rules.compiled import CompiledRules
from spacy_hocrf.rules.constraints import Constraints
from spacy_hocrf.rules.followed import FollowedRules
from spacy_hocrf.types import CONTINUE, Potentials

VOCAB = spacy.blank("xx").vocab
KINDS = {
    "tokens": ("segments", ["A", "B"], "token"),
    "runs": ("segments", ["A", "B"], "run"),
    "labelled": ("segments", ["A", "B", "C"], None),
    "io": ("io", ["A", "B"], "token"),
    "bio": ("bio", ["A", "B"], "token"),
    "bieso": ("bieso", ["A"], "token"),
    "tags": ("tags", ["A", "B", "C"], None),
}
PROBLEMS = oracle.so_many(45)  # of each kind


def random_problem(kind, seed, blank=None):
    """A scheme, patterns of up to four labels, and potentials of one text of up to four tokens.

    blank (Optional[bool [T]]): is each token of the text white space? None for any text.
    """
    encoding, labels, outside = KINDS[kind]
    rng = np.random.default_rng([seed, len(kind)])
    scheme = make_scheme(
        labels,
        encoding=encoding,
        outside=outside,
        repeats=bool(seed % 3),
        limits=rng.choice([0, 1, 2, 3], len(labels)).tolist(),
    )
    n, length = scheme.n_labels, int(rng.integers(1, 5)) if blank is None else len(blank)
    longer = {tuple(rng.integers(0, n, rng.integers(2, 5)).tolist()) for _ in range(5)}
    patterns = (*((y,) for y in range(n)), *sorted(longer, key=lambda z: (len(z), z)))
    if blank is None:
        blank = rng.random(length) < 0.3 if seed % 2 else np.zeros(length, dtype=bool)
    allowed = scheme.allowed(np.array([0, length]))
    if scheme.outside >= 0 and encoding != "io":  # white space is only inside
        ends = [
            y != scheme.outside and not name.startswith("I-") for y, name in enumerate(scheme.names)
        ]
        allowed[np.ix_(blank, ends)] &= CONTINUE
    token, row_pattern = np.sort(rng.integers(0, length, 6)), rng.integers(n, len(patterns), 6)

    def scores(*extents):
        return rng.normal(size=extents) * rng.choice([0.5, 3.0])

    potentials = Potentials(
        offsets=np.array([0, length]),
        const=scores(len(patterns)),
        start=None if seed % 5 == 0 else scores(length, n),
        end=scores(length, n),
        token=scores(length, n),
        inner=None if seed % 7 == 0 else scores(length, n),
        row_offsets=np.searchsorted(token, np.arange(length + 1)).astype(np.int64),
        row_part=rng.integers(0, 4, 6).astype(np.uint8),
        row_pattern=row_pattern.astype(np.int32),
        row_score=scores(6),
        length_pattern=np.array([0, n - 1], dtype=np.int32),
        length_score=scores(2, 3),
        span_start=np.zeros(1, dtype=np.int64),
        span_end=np.array([length]),
        span_pattern=np.array([n - 1], dtype=np.int32),
        span_score=scores(1),
        allowed=allowed,
    )
    return scheme, patterns, potentials, blank


class Enumerated:
    """A problem's reading, and all its segmentations with their probabilities."""

    def __init__(self, kind, seed, blank=None):
        self.scheme, patterns, potentials, blank = random_problem(kind, seed, blank)
        carried = frozenset(patterns)
        limits, forbidden = self.scheme.limits, frozenset(self.scheme.forbidden)
        automaton = compile_automaton(patterns, limits, forbidden=forbidden, carried=carried)
        self.kept = self.every = [
            list(s) for s in oracle.segmentations(potentials, limits, forbidden)
        ]
        scores = np.array([oracle.score(potentials, patterns, each) for each in self.every])
        self.log_z = np.logaddexp.reduce(scores) if len(scores) else -np.inf
        self.p = np.exp(scores - self.log_z)
        self.length = len(blank)
        doc = Doc(VOCAB, words=[" " if is_blank else "x" for is_blank in blank])
        total = float(log_partition(potentials, automaton)[0])
        trims = not self.scheme.solid and self.scheme.encoding != "tags"
        shown = blank if trims and blank.any() else None
        rules = CompiledRules(Constraints(), self.scheme, automaton, carried)
        under, batch = FollowedRules(rules, automaton), TokenBatch([doc])
        self.part = Part(batch, potentials, under, shown, np.arange(1))
        self.reading = Reading(doc, BatchReading(self.part, ExpectedF(), None), 0, total)
        self.blank = blank if shown is not None else np.zeros(self.length, dtype=bool)
        self.trims = blank & (self.scheme.encoding != "tags")  # no shown span ends with it

    def close(self, found, expected, atol=1e-10):
        assert_allclose(found, expected, rtol=1e-9, atol=atol)

    def decoded(self):
        """Spans of each segmentation, as the model has them."""
        return [oracle.decoded(self.scheme, each) for each in self.every]

    def shown(self):
        """Spans of each segmentation, without white space at their ends."""
        return [frozenset(filter(None, map(self.trimmed, spans))) for spans in self.decoded()]

    def trimmed(self, span):
        start, end, label = span
        solid = [t for t in range(start, end) if not self.blank[t]]
        return (solid[0], solid[-1] + 1, label) if solid else None


def covering(problem, segmentations, seed, n=6):
    """Stretches of a problem's text with labels that cover them in some segmentation or in none, and how
    probably these do.

    segmentations (list): those that have the probabilities `problem.p`.
    RETURNS (Iterator[tuple]): labels, start, end, and the probability, of n stretches.
    """
    scheme, rng = problem.scheme, np.random.default_rng(seed)
    known = [*scheme.labels, *["O"] * (scheme.outside >= 0)]
    chains = []
    for segments in segmentations:
        outside = [(a, b, "O") for a, b, label in segments if label == scheme.outside]
        chains.append(sorted([*oracle.decoded(scheme, segments), *outside]))
    for i in range(n):
        chain = chains[rng.integers(len(chains))] if i % 3 else []
        stretches = list(combinations(range(len(chain) + 1), 2))
        if stretches and chain:
            first, last = stretches[rng.integers(len(stretches))]
            labels = [label for *_, label in chain[first:last]]
            start, end = chain[first][0], chain[last - 1][1]
        else:
            start = int(rng.integers(problem.length))
            end = int(rng.integers(start + 1, problem.length + 1))
            labels = rng.choice(known, rng.integers(1, end - start + 1)).tolist()
        expected = 0.0
        for chain, p in zip(chains, problem.p):
            inside = [label for a, b, label in chain if start <= a and b <= end]
            edges = {edge for a, b, _ in chain for edge in (a, b)}
            expected += p * (inside == labels and {start, end} <= edges)
        yield labels, start, end, expected


def enumerated(kind, count=PROBLEMS):
    """So many random problems, those without a segmentation left out."""
    problems = [Enumerated(kind, seed) for seed in range(count)]
    return [problem for problem in problems if problem.every]


def scored_as_wholes(features, weights):
    """Scores of a text's readings, and which of them are too far from the first one to be looked at.

    features (float64 [m, N_FEATURES]): ψ of each, the first is log P. weights (float64 [N_FEATURES]).
    """
    scored, apart = features @ weights, weights[0] * (features[:, 0] - features[0, 0])
    far = apart < -6
    return np.where(far, scored[0] + apart, scored), far
