"""Soft targets: a training text with a distribution over segmentations, given by probabilities of spans.

    q(s) ∝ Π exp(log_odds) over the soft spans of s,    0 for a segmentation with any other span there

The sum over segmentations runs over the model's own lattice, with `annotation.log_odds` as the scores of the
spans, so the counts of all features, of any order, are exact: see `engine.forbidden`.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.annotation.annotation import Annotation, NamedSpan, constrain_batch, log_odds
from spacy_hocrf.answers.forbidden import span_patterns
from spacy_hocrf.engine.forbidden import Forbidden, ForbiddenPattern, Observed
from spacy_hocrf.learning.training_rules import TrainingRules, automaton_of
from spacy_hocrf.model.scheme import LabelScheme
from spacy_hocrf.model.structure import Structure
from spacy_hocrf.types import Potentials

__all__ = ["soft_targets"]

Bits = NDArray[np.uint8]


def soft_targets(
    structure: Structure,
    rules: TrainingRules | None,
    allowed: Bits,
    offsets: NDArray[np.int64],
    annotations: Sequence[Annotation],
    potentials: Potentials,
) -> Observed:
    """Return the observed distribution of D texts with soft spans.

    allowed (uint8 [N, Y]): bits that training sums over. offsets (int64 [D + 1]): first token of each text.
    potentials (Potentials): potentials of the texts that are all 0; changed.
    """
    scheme = structure.scheme
    automaton = rules.compile if rules else partial(automaton_of, structure)
    certain = [annotation.certain for annotation in annotations]
    bits = constrain_batch(scheme, allowed, offsets, certain)
    soft_patterns = list[ForbiddenPattern]()
    for annotation, first, last in zip(annotations, offsets.tolist(), offsets[1:].tolist()):
        odds = log_odds(annotation.soft).tolist()
        scores = {each[:3]: score for each, score in zip(annotation.soft, odds, strict=True)}
        _restrict(bits[first:last], scheme, scores)
        for span in (*scores, *_others(scheme, scores)):
            score = scores.get(span, -np.inf)
            soft_patterns += [
                each._replace(score=score) for each in span_patterns(scheme, (first, last), span)
            ]
    soft_patterns = sorted(each for each in soft_patterns if _is_possible(bits, each))
    single = [each for each in soft_patterns if len(each.pattern) == 1]
    single_scores = np.array([each.score for each in single])
    rows = [(start, end, *pattern) for start, end, pattern, _ in single]
    places = np.array(rows, dtype=np.int64).reshape(-1, 3)
    if scheme.encoding != "segments":
        # a label of a token instead of a segment: a bit, or a score of the token
        forbidden, tokens = np.isneginf(single_scores), (places[:, 0], places[:, 2])
        bits[places[forbidden, 0], places[forbidden, 2]] = 0
        np.add.at(potentials.token, tokens, np.where(forbidden, 0.0, single_scores))
        places, single_scores = places[:0], single_scores[:0]
    patterns = tuple(each for each in soft_patterns if len(each.pattern) > 1)
    scored = Forbidden(places, patterns, scores=single_scores)
    wider = scored.added_to(structure.patterns)
    compiled = None if wider is structure.patterns else automaton(wider)
    return Observed(bits, scored, compiled, potentials)


def _restrict(bits: Bits, scheme: LabelScheme, spans: Iterable[NamedSpan]) -> None:
    """Restrict tokens of soft spans to the spans' labels and to no span. bits (uint8 [T, Y]): changed."""
    left = np.zeros_like(bits)
    for start, end, label in spans:
        left[start:end] |= scheme.span_bits(start, end, label)
        left[start:end, scheme.outside] = 0xFF
    covered = left.any(axis=1)
    bits[covered] &= left[covered]


def _others(scheme: LabelScheme, spans: dict[NamedSpan, float]) -> Iterator[NamedSpan]:
    """Yield the other spans that can be read off tokens which have the labels of the given spans."""
    for label in dict.fromkeys(label for _, _, label in spans):
        mine = [each for each in spans if each[2] == label]
        # labels of tokens do not tell where a span begins (io), or ends (io, bio)
        starts = {start for start, _, _ in mine}
        ends = {end for _, end, _ in mine}
        if scheme.encoding == "io":
            starts = {t for start, end, _ in mine for t in range(start, end)}
        if scheme.encoding in ("io", "bio"):
            ends = {t + 1 for start, end, _ in mine for t in range(start, end)}
        inner = {t for start, end, _ in mine for t in range(start + 1, end)}
        if scheme.encoding == "io":
            inner |= starts
        for start in sorted(starts):
            end = start + 1
            while end == start + 1 or end - 1 in inner:
                if end in ends and (start, end, label) not in spans:
                    yield start, end, label
                if end > max(ends):
                    break
                end += 1


def _is_possible(bits: Bits, each: ForbiddenPattern) -> bool:
    """Do the bits of its tokens allow a pattern? Always true for a single segment, of any length."""
    if len(each.pattern) == 1:
        return True
    first = each.end - len(each.pattern)
    return all(bits[first + i, y] for i, y in enumerate(each.pattern))
