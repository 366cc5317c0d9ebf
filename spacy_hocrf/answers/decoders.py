"""Decoders: how an answer is read off a model; `[components.*.decoder]` names one of them.

An answer is a set of non-overlapping spans for every sequence: the most probable segmentation (`Viterbi`),
the one of the n most probable that looks best as a whole (`Reranked`), the spans with the largest expected
F-score (`ExpectedF`), or, for a tagger, the most probable tag of every token (`ExpectedAccuracy`). `add_pipe`
creates the decoder; its first answer imports the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.pool import BufferPool
from spacy_hocrf.errors import Errors
from spacy_hocrf.types import AUTO, CONTINUE, FIRST, LAST, Potentials, Segments

if TYPE_CHECKING:
    from spacy_hocrf.answers.whole_readings import Reranker
    from spacy_hocrf.engine.automaton import Automaton
    from spacy_hocrf.engine.forward_backward import Buffers
    from spacy_hocrf.engine.marginals import SegmentMarginals, Window
    from spacy_hocrf.engine.probable import Starts
    from spacy_hocrf.engine.viterbi import Best
    from spacy_hocrf.model.scheme import LabelScheme

__all__ = [
    "BUILT_IN",
    "DEFAULT_COST",
    "Answer",
    "Candidates",
    "Decoder",
    "ExpectedAccuracy",
    "ExpectedF",
    "Reranked",
    "Viterbi",
    "checked_answer",
    "checked_decoder",
    "checked_numbers",
]

DEFAULT_COST = 0.25
"""Cost of a span where none could be learnt."""
MAX_READINGS = 100


Blank = NDArray[np.bool_] | None


class Answer(NamedTuple):
    """Non-overlapping spans of D sequences."""

    spans: Segments  # their labels are indices into the scheme's `labels`
    scores: NDArray[np.float64] | None  # [n] of each span, if already known
    possible: NDArray[np.bool_]  # [D] does the sequence have an allowed segmentation?
    log_partition: NDArray[np.float64] | None = None  # [D] log Z, if already known
    # [D] P(exactly these spans), if it differs from the model's
    text_probabilities: NDArray[np.float64] | None = None


class Candidates(NamedTuple):
    """Spans of D sequences; they may overlap."""

    spans: Segments  # their labels are indices into the scheme's `labels`
    scores: NDArray[np.float64]  # [n] probability of each span
    possible: NDArray[np.bool_]  # [D] does the sequence have an allowed segmentation?
    log_partition: NDArray[np.float64]  # [D] log Z


class Decoder(Protocol):
    """Reads an answer off log potentials; compared by its settings."""

    def serves(self, encoding: str) -> bool:
        """Can it decode models of this encoding: "segments", "tags", "io", "bio" or "bieso"?"""
        ...

    def answer(
        self,
        potentials: Potentials,
        automaton: Automaton,
        scheme: LabelScheme,
        blank: Blank = None,
    ) -> Answer:
        """Return the answer for D sequences; no spans for a sequence without an allowed segmentation.

        potentials (Potentials): their log potentials, N tokens in all.
        automaton (Automaton): states and arcs of the model, for functions such as `viterbi`.
        scheme (LabelScheme): names of the labels (`scheme.labels`); `scheme.spans(segments)` makes the
            spans of Segments of the model.
        blank (Optional[bool [N]]): whitespace tokens. The model's spans may begin or end with them, but are
            shown without; if the answer has scores, its spans are already trimmed. None if there is no such
            whitespace.
        RETURNS (Answer): spans in order and without overlaps. Anything else is H590.
        """
        ...

    def scores(
        self,
        potentials: Potentials,
        automaton: Automaton,
        scheme: LabelScheme,
        spans: Segments,
    ) -> NDArray[np.float64]:
        """Return a score of each span, finite and at least 0 (else H590): float64 [n]. It is called if the
        answer has none.

        potentials, automaton, scheme: as in `answer`.
        spans (Segments): n spans of the D sequences, which may overlap; their labels are indices into the
            scheme's `labels`.

        Scores of mutually exclusive spans are added up where they would be shown as one span.
        """
        ...


@dataclass(frozen=True)
class Viterbi:
    """`spacy-hocrf.Viterbi.v1`: the exact best segmentation, with exact probabilities of its spans."""

    # working memory of the engine
    pool: BufferPool = field(default_factory=BufferPool, init=False, repr=False, compare=False)

    def serves(self, encoding: str) -> bool:
        """Can it decode a model of this encoding? It decodes every model."""
        return True

    def answer(
        self,
        potentials: Potentials,
        automaton: Automaton,
        scheme: LabelScheme,
        blank: Blank = None,
    ) -> Answer:
        """Return the spans of the best segmentation, without scores."""
        best = self.best(potentials, automaton)
        return Answer(scheme.spans(best.segments), None, ~np.isneginf(best.scores))

    def best(self, potentials: Potentials, automaton: Automaton) -> Best:
        """Return the highest-scoring segmentation (Nguyen et al., JMLR 15, §2.4)."""
        from spacy_hocrf.engine.viterbi import viterbi

        with self.pool.lend(automaton) as buffers:
            return viterbi(potentials, automaton, buffers=buffers)

    def scores(
        self,
        potentials: Potentials,
        automaton: Automaton,
        scheme: LabelScheme,
        spans: Segments,
    ) -> NDArray[np.float64]:
        """Return P(exactly this span is in the segmentation | Doc, constraints) of each span."""
        from spacy_hocrf.engine.marginals import window_marginals

        if scheme.encoding == "segments":
            return self.marginals(potentials, automaton, scheme, spans).probability
        with self.pool.lend(automaton) as buffers:
            if scheme.encoding == "tags":
                chances = _tag_probabilities(potentials, automaton, buffers).token
                return np.clip(chances[_first_tokens(potentials, spans), spans.label], 0.0, 1.0)
            lengths, named = np.diff(potentials.offsets).tolist(), scheme.named(spans)
            windows = [
                _window(scheme, i, span, lengths[i])
                for i, sequence_spans in enumerate(named)
                for span in sequence_spans
            ]
            return window_marginals(potentials, automaton, windows, buffers=buffers)

    def marginals(
        self,
        potentials: Potentials,
        automaton: Automaton,
        scheme: LabelScheme,
        spans: Segments,
        starts: Starts | None = None,
    ) -> SegmentMarginals:
        """Return P(span | Doc, constraints) and log Z, for a model whose spans are segments.

        starts (Optional[Starts]): as in `engine.probable.probable_spans`.
        """
        from spacy_hocrf.engine.marginals import segment_marginals

        segments = spans._replace(label=scheme.rules[spans.label, 3])
        with self.pool.lend(automaton) as buffers:
            return segment_marginals(
                potentials, automaton, segments, starts=starts, buffers=buffers
            )


@dataclass(frozen=True)
class ExpectedF(Viterbi):
    """`spacy-hocrf.ExpectedF.v1`: the spans with the largest expected F-score, with their exact
    probabilities.

    F_β = (1 + β²) TP / (β² G + P), with G annotated and P predicted spans. The ratio of the corpus
    expectations is largest for the set of non-overlapping spans that maximises

        Σ (P(span | Doc) - c),   c = F* / (1 + β²)

    where F* is the optimal value (Dinkelbach, Management Science 13, 1967): a span gains its probability and
    costs c.

    beta (float): above 1, recall counts more; below 1, precision.
    cost (Union[float, str]): c, between 0 and 1 (exclusive); "auto" learns it at the end of training from
        held-out texts.
    RAISES (ValueError): H150 or H151 for settings out of range.
    """

    beta: float = 1.0
    cost: float | str = AUTO

    def __post_init__(self) -> None:
        if self.cost != AUTO and not _between(self.cost, 0.0, 1.0):
            raise ValueError(Errors.H150.format(found=repr(self.cost)))
        if not _between(self.beta, 0.0, float("inf")):
            raise ValueError(Errors.H151.format(found=repr(self.beta)))

    def at(self, cost: float) -> ExpectedF:
        """Return a copy with this cost that shares the working memory."""
        other = replace(self, cost=cost)
        object.__setattr__(other, "pool", self.pool)
        return other

    def serves(self, encoding: str) -> bool:
        """Can it decode a model of this encoding? It decodes models of spans."""
        return encoding != "tags"

    def answer(
        self,
        potentials: Potentials,
        automaton: Automaton,
        scheme: LabelScheme,
        blank: Blank = None,
    ) -> Answer:
        """Return the set of spans with the largest total gain, with their probabilities."""
        return self.chosen(self.candidates(potentials, automaton, scheme, self.price, blank))

    @cached_property
    def price(self) -> float:
        """The cost c of a span; DEFAULT_COST until it is learnt."""
        return DEFAULT_COST if self.cost == AUTO else float(self.cost)

    def chosen(self, candidates: Candidates) -> Answer:
        """Choose the answer from all spans that are at least as probable as their price."""
        from spacy_hocrf.engine.probable import best_subset

        best = best_subset(candidates.spans, candidates.scores - self.price)
        return Answer(candidates.spans.at(best), candidates.scores[best], *candidates[2:])

    def candidates(
        self,
        potentials: Potentials,
        automaton: Automaton,
        scheme: LabelScheme,
        at_least: float,
        blank: Blank = None,
        starts: Starts | None = None,
    ) -> Candidates:
        """Return all spans of at least this probability, as they are shown.

        blank (Optional[bool [N]]): as in `answer`. starts: as in `engine.probable.probable_spans`.
        """
        from spacy_hocrf.engine.probable import probable_spans

        least = at_least
        if blank is not None:
            from spacy_hocrf.annotation.whitespace import (
                most_variants,
                scores_of_shown,
                spans_shown,
            )

            # at least one variant of a span has an equal share or more of its probability
            least = at_least / most_variants(blank)
        with self.pool.lend(automaton) as buffers:
            probable = probable_spans(
                potentials, automaton, scheme.rules, least, starts=starts, buffers=buffers
            )
        possible_and_log_z = probable.log_partition > -np.inf, probable.log_partition
        if blank is None:
            return Candidates(probable.spans, probable.probability, *possible_and_log_z)
        shown = spans_shown(probable.spans, blank, potentials.offsets)
        scores = scores_of_shown(
            lambda spans: self.scores(potentials, automaton, scheme, spans),
            shown,
            blank,
            potentials.offsets,
        )
        likely = scores >= at_least
        return Candidates(shown.only(likely), scores[likely], *possible_and_log_z)


@dataclass(frozen=True)
class Reranked(Viterbi):
    """`spacy-hocrf.Reranked.v1`: of the n most probable readings, the one that as a whole looks most like
    annotated texts, by weights that are learnt in training from held-out texts (`answers.whole_readings`).
    Until these are learnt, the most probable reading.

    n (int): number of readings to compare, from 2 to 100.
    RAISES (ValueError): H580 for any other n.
    """

    n: int = 10
    reranker: Reranker | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if type(self.n) is not int or not 2 <= self.n <= MAX_READINGS:
            raise ValueError(Errors.H580.format(found=repr(self.n)))

    def knows(self, labels: Sequence[str]) -> bool:
        """Has the reranker been trained for these labels?"""
        return self.reranker is not None and len(self.reranker.counts.labels) == len(labels)

    def by(self, reranker: Reranker) -> Reranked:
        """Return a copy with this reranker that shares the working memory."""
        other = replace(self)
        object.__setattr__(other, "pool", self.pool)
        object.__setattr__(other, "reranker", reranker)
        return other

    def serves(self, encoding: str) -> bool:
        """Can it decode a model of this encoding? It decodes models of spans."""
        return encoding != "tags"


@dataclass(frozen=True)
class ExpectedAccuracy(Viterbi):
    """`spacy-hocrf.ExpectedAccuracy.v1`: the tag sequence with the largest expected number of correct tags.

    Each token gets its most probable tag, unless that gives a forbidden transition: among the allowed
    sequences, the answer has the largest sum of tag probabilities.
    """

    def serves(self, encoding: str) -> bool:
        """Can it decode a model of this encoding? It decodes models of tags."""
        return encoding == "tags"

    def answer(
        self,
        potentials: Potentials,
        automaton: Automaton,
        scheme: LabelScheme,
        blank: Blank = None,
    ) -> Answer:
        """Return the tags with the probabilities that they were chosen by."""
        from spacy_hocrf.engine.viterbi import viterbi

        with self.pool.lend(automaton) as buffers:
            probable = _tag_probabilities(potentials, automaton, buffers)
            best, chances = viterbi(probable, automaton, buffers=buffers), probable.token
        spans = scheme.spans(best.segments)
        scores = np.clip(chances[_first_tokens(potentials, spans), spans.label], 0.0, 1.0)
        return Answer(spans, scores, ~np.isneginf(best.scores))


BUILT_IN = (Viterbi, ExpectedF, Reranked, ExpectedAccuracy)
"""Decoders whose answers need no check."""


def checked_decoder(decoder: Any, name: str, encoding: str) -> Decoder:
    """Check and return the decoder of the component with this name; `Viterbi` for None.

    encoding (str): encoding of its model.
    RAISES (ValueError): H118 if the decoder lacks a member of `Decoder`, H152 if it cannot decode the model.
    """
    if decoder is None:
        return Viterbi()
    members = sorted(member for member in vars(Decoder) if not member.startswith("_"))
    missing = [member for member in members if not hasattr(decoder, member)]
    kind = type(decoder).__name__
    if missing:
        raise ValueError(Errors.H118.format(name=name, found=kind, missing=", ".join(missing)))
    checked: Decoder = decoder
    if not checked.serves(encoding):
        reads = "tags" if encoding == "tags" else "spans"
        raise ValueError(Errors.H152.format(name=name, found=kind, reads=reads))
    return checked


def checked_answer(decoder: Decoder, found: Any, potentials: Potentials, n_labels: int) -> Answer:
    """Return the answer of a decoder as arrays of the types of `Answer`.

    potentials (Potentials): log potentials of the D sequences that it has read.
    n_labels (int): number of labels that a span may have.
    RAISES (ValueError): H590 for anything but spans of these sequences, in order and without overlaps, and
        numbers of the extents of `Answer`.
    """
    lengths = np.diff(potentials.offsets)
    columns = list(map(np.asarray, found.spans)) if isinstance(found, Answer) else []
    extents = [column.shape for column in columns]
    n = columns[1].size if len(columns) == len(Segments._fields) else -1
    whole = all(column.dtype.kind in "iu" or not column.size for column in columns)
    if extents != [(len(lengths) + 1,), *[(n,)] * 3] or not whole:
        described = f"{type(found).__name__} with spans of the extents {extents}"
        expected = f"Answer with Segments, whole numbers of the extents [{len(lengths) + 1}], [n], [n], [n]"
        _refuse(decoder, "answer", described, expected)
    offsets, start, end, label = (column.astype(np.int64) for column in columns)
    if offsets[0] != 0 or offsets[-1] != n or (np.diff(offsets) < 0).any():
        _refuse(decoder, "answer", f"offsets {offsets.tolist()}", f"ascending ones, from 0 to {n}")
    sequence = np.repeat(np.arange(len(lengths)), np.diff(offsets))
    fits = (start >= 0) & (start < end) & (end <= lengths[sequence])
    fits &= (label >= 0) & (label < n_labels)
    fits[1:] &= (start[1:] >= end[:-1]) | (sequence[1:] > sequence[:-1])
    for i in np.flatnonzero(~fits)[:1].tolist():
        described = (
            f"the span [{start[i]}, {end[i]}) with label {label[i]} in sequence {sequence[i]}"
        )
        expected = "spans inside the sequence, in order and without overlaps"
        _refuse(decoder, "answer", described, f"{expected}, with labels below {n_labels}")
    spans = Segments(offsets, *(column.astype(np.int32) for column in (start, end, label)))
    scores = None if found.scores is None else checked_numbers(decoder, "answer", found.scores, n)
    possible = checked_numbers(decoder, "answer", found.possible, len(lengths)) > 0
    text, log_z = found.text_probabilities, found.log_partition
    if text is not None:
        text = checked_numbers(decoder, "answer", text, len(lengths))
    if log_z is not None:
        log_z = checked_numbers(decoder, "answer", log_z, len(lengths), least=-np.inf)
    return Answer(spans, scores, possible, log_z, text)


def checked_numbers(
    decoder: Decoder, method: str, found: Any, n: int, least: float = 0.0
) -> NDArray[np.float64]:
    """Return n numbers that a method of a decoder has returned, float64 [n].

    RAISES (ValueError): H590 for anything but numbers from `least` up that are below infinity.
    """
    numbers = np.asarray(found)
    if numbers.shape != (n,) or not (numbers.dtype.kind in "biuf" or not n):
        described = f"an array of {numbers.dtype} with the extents {numbers.shape}"
        _refuse(decoder, method, described, f"{n} numbers")
    scores: NDArray[np.float64] = numbers.astype(np.float64)
    for i in np.flatnonzero(~((scores >= least) & (scores < np.inf)))[:1].tolist():
        _refuse(decoder, method, f"{scores[i]} at {i}", f"finite numbers of at least {least:g}")
    return scores


def _refuse(decoder: Decoder, name: str, found: str, expected: str) -> NoReturn:
    kind = type(decoder).__name__
    raise ValueError(Errors.H590.format(decoder=kind, name=name, found=found, expected=expected))


def _between(value: Any, least: float, most: float) -> bool:
    return type(value) in (int, float) and least < value < most


def _first_tokens(potentials: Potentials, spans: Segments) -> NDArray[np.int64]:
    """Return the index in the batch of each span's first token, int64 [n]."""
    return np.repeat(potentials.offsets[:-1], np.diff(spans.offsets)) + spans.start


def _tag_probabilities(
    potentials: Potentials, automaton: Automaton, buffers: Buffers
) -> Potentials:
    """Return potentials that score every label of a token with its probability, and nothing else."""
    from spacy_hocrf.engine.forward_backward import expectations

    counts = expectations(potentials, automaton, buffers=buffers)
    return replace(potentials.unscored(), token=np.array(counts.token))  # buffers are reused


def _window(scheme: LabelScheme, sequence: int, span: tuple[int, int, str], length: int) -> Window:
    """Return the label constraints under which a decoded span of a CRF is exactly this span: its own labels,
    and neighbours that do not extend it.
    """
    from spacy_hocrf.engine.marginals import Window

    start, end, label = span
    path = np.zeros((end - start, scheme.n_labels), dtype=np.uint8)
    for segment in scheme.encode_span(start, end, label):
        path[segment.start - start, segment.label] = FIRST | CONTINUE | LAST
    neighbour = np.full((1, scheme.n_labels), FIRST | CONTINUE | LAST, dtype=np.uint8)
    neighbour[0, scheme.continuing(label)] = 0
    before = scheme.encoding == "io" and start > 0
    after = scheme.encoding in ("io", "bio") and end < length
    allowed = np.concatenate([neighbour[: int(before)], path, neighbour[: int(after)]])
    return Window(sequence, start - int(before), allowed)
