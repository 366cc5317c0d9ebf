"""Readings: exact probabilities of anything that can be said about the spans of a text.

Everything follows from the log potentials φ of the text, which are computed once. With Z(A) the sum of exp
φ(s) over the allowed segmentations s that agree with A,

    P(A) = Z(A) / Z,    E[count] = ∂ log Z / ∂φ,    entropy = log Z - Σ φ · E[count]

(Nguyen et al., JMLR 15 (2014) §2.3). What earlier components have set is taken as certain, as in predictions.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import islice, pairwise
from math import exp
from typing import NoReturn, overload

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc, Span

from spacy_hocrf.annotation.acceptance import Acceptance
from spacy_hocrf.annotation.annotation import Annotation, NamedSpans, constrain, covered, trim
from spacy_hocrf.annotation.best_readings import ReadingSet, ScoredReading, ScoredSpan
from spacy_hocrf.annotation.errors import ReadingErrors
from spacy_hocrf.annotation.spans import row_of
from spacy_hocrf.annotation.whitespace import scores_of_shown, variants_of
from spacy_hocrf.answers.alternatives import Alternatives
from spacy_hocrf.answers.contrast import Asked
from spacy_hocrf.answers.decoders import Candidates, ExpectedF
from spacy_hocrf.answers.explaining import Explainer, Explanation
from spacy_hocrf.answers.pages import as_frame, make_page, text_on_page
from spacy_hocrf.answers.part import Part
from spacy_hocrf.answers.predictor import Predictor
from spacy_hocrf.engine.alternatives import sum_between
from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.forward_backward import expectations, log_partition
from spacy_hocrf.features.tokens import TokenBatch, beginning
from spacy_hocrf.model.scheme import OUTSIDE
from spacy_hocrf.rules.ends import Ends
from spacy_hocrf.types import START, Expectations, LabelPattern, Potentials, is_number, is_whole

__all__ = ["BatchReading", "Reading", "readings_of"]

SPARSE_PARTS = ("row", "length", "span")
TOLERANCE = 1e-6
"""Log probabilities that differ by less than this count as equal (rounding errors)."""
MAX_IN_BATCH = 100
"""Up to this many readings are computed for all Docs of a batch at once; beyond it, that is slower."""


def readings_of(
    predictor: Predictor, batch: TokenBatch, acceptance: Acceptance | None = None
) -> Iterator["Reading"]:
    """Yield a reading of every Doc of a batch.

    acceptance (Optional[Acceptance]): knows how far down the list the right reading tends to be.
    RAISES (ValueError): H007 if a Doc has no allowed segmentation.
    """
    readings = dict[int, Reading]()
    for part, log_zs in predictor.parts(batch):
        batch_reading = BatchReading(part, predictor.exact, Explainer(predictor, part))
        for number, (i, log_z) in enumerate(zip(part.docs.tolist(), log_zs.tolist())):
            readings[i] = Reading(batch.docs[i], batch_reading, number, log_z, acceptance)
    yield from (readings[i] for i in range(len(batch.docs)))


class BatchReading:
    """Docs that are decoded together, with results cached for all of them.

    exact (ExpectedF): computes candidates and their probabilities.
    """

    def __init__(self, part: Part, exact: ExpectedF, explainer: Explainer) -> None:
        self.part, self.exact, self.explainer = part, exact, explainer
        self._candidates: tuple[float, Candidates] | None = None  # of the last call

    def expectations(self, potentials: Potentials, automaton: Automaton) -> Expectations:
        """Return expected counts, in newly allocated arrays."""
        with self.exact.pool.lend(automaton) as buffers:
            counts = expectations(potentials, automaton, buffers=buffers)
            token = None if counts.token is None else counts.token.copy()
            return replace(counts, token=token, row=counts.row.copy())

    @cached_property
    def token_counts(self) -> NDArray[np.float64]:
        """P(the token is in a segment of the label), float64 [N, Y]."""
        counts = self.expectations(self.part.potentials, self.part.automaton).token
        assert counts is not None
        return counts

    def candidates(self, at_least: float) -> Candidates:
        """Return all spans of at least this probability."""
        cached, part = self._candidates, self.part
        if cached is None or cached[0] != at_least:
            candidates = self.exact.candidates(*part.inputs, at_least, part.blank)
            self._candidates = cached = at_least, candidates
        return cached[1]

    @cached_property
    def alternatives(self) -> Alternatives:
        """The n best and random readings of the Docs."""
        return Alternatives(self.part, self.exact.pool)


class Reading:
    """The model's posterior distribution over the segmentations of one Doc, at the time the reading was made.
    All numbers are exact.

    doc (Doc): the text.
    labels (tuple[str, …]): the model's labels.
    names (tuple[str, …]): labels of the model's segments: for a semi-CRF or a tagger, `labels` and "O" for
        unlabelled text; for a CRF, with prefixes "B-", "I-" and so on.
    log_partition (float): log Z, in nats.
    """

    def __init__(
        self,
        doc: Doc,
        batch: BatchReading,
        number: int,
        log_z: float,
        acceptance: Acceptance | None = None,
    ) -> None:
        self.doc, self.log_partition = doc, log_z
        self._alternatives, self._number, self._acceptance = batch.alternatives, number, acceptance
        self._batch, self._under = batch, batch.part.under
        self._scheme, self._automaton = batch.part.scheme, batch.part.automaton
        self.labels, self.names = self._scheme.labels, self._scheme.names

    def __len__(self) -> int:
        """Number of tokens T."""
        return int(self._tokens.stop - self._tokens.start)

    def probability(self, start: int, end: int, label: str) -> float:
        """Return P(exactly this span is there), whatever the other spans are.

        RAISES (ValueError): H197 for a span outside the Doc, H198 for an unknown label.
        """
        return float(self.probabilities([(start, end, label)])[0])

    def probabilities(self, spans: Iterable[Span | tuple[int, int, str]]) -> NDArray[np.float64]:
        """Return P(exactly this span is there) for each of some spans, float64 [n], in as many passes over
        the text as for a single one. The spans may overlap.

        RAISES (ValueError): H197 for a span outside the Doc, H198 for an unknown label, H569 for an object
            that is no span.
        """
        rows = [row for span in spans for row in self._checked([row_of(span)])]
        possible = np.array([self._scheme.can_have([row]) for row in rows], dtype=bool)
        chances, asked = np.zeros(len(rows)), [row for row, p in zip(rows, possible.tolist()) if p]
        if asked:
            chances[possible] = np.minimum(1.0, self._scores(asked))
        return chances

    def spans(self, at_least: float = 0.5) -> list[ScoredSpan]:
        """Return all spans with at least this probability, sorted by start and end; below 0.5 they may
        overlap.

        RAISES (ValueError): H200 unless 0 < at_least <= 1.
        """
        if not (is_number(at_least) and 0 < float(at_least) <= 1):
            raise ValueError(ReadingErrors.H200.format(found=repr(at_least)))
        candidates = self._batch.candidates(at_least)
        own = slice(*candidates.spans.offsets[self._number : self._number + 2].tolist())
        start, end, label = (column[own].tolist() for column in candidates.spans[1:])
        names, scores = (self.labels[y] for y in label), candidates.scores[own].tolist()
        return [ScoredSpan(*row) for row in zip(start, end, names, scores)]

    def log_probability(
        self, spans: Iterable[Span | tuple[int, int, str]], *, complete: bool = True
    ) -> float:
        """Return the joint log probability of some spans, in nats; -inf if they are impossible together.

        spans (Iterable[Union[Span, Tuple[int, int, str]]]): in any order.
        complete (bool): True: of these spans and no others; False: whatever the other spans are.
        RAISES (ValueError): H197 for a span outside the Doc or one that overlaps another, H198 for an unknown
            label, H569 for an object that is no span, H201 if too much whitespace lies beside them.
        """
        asked = self._checked([*map(row_of, spans)])
        if not self._scheme.can_have(asked):
            return -np.inf
        if complete:
            log_z = self._alternatives.log_z(self._number, asked, beginning(self.doc))
            return log_z - self.log_partition
        variants = variants_of(self._blank, asked, beginning(self.doc))
        return float(np.logaddexp.reduce(list(map(self._log_z, variants)))) - self.log_partition

    def best(self, n: int = 10) -> list[ScoredReading]:
        """Return the n most probable readings, best first; all of them if there are fewer than n.

        Where a CRF's spans may begin or end with whitespace, several segmentations are shown as one reading,
        which is ranked by the most probable of them.
        RAISES (ValueError): H210 for n below 1, H201 if too much whitespace lies beside spans.
        """
        n = _checked_number(n)
        if n > MAX_IN_BATCH or self._alternatives.has_blank(self._number):
            return list(islice(self.alternatives(), n))
        return list(self._alternatives.best(self._number, n, self.log_partition))

    def alternatives(self) -> Iterator[ScoredReading]:
        """Iterate lazily over all readings in the order of `best`.

        RAISES (ValueError): H201 if too much whitespace lies beside the spans of the next reading.
        """
        return self._alternatives.of(self._number, self.log_partition, beginning(self.doc))

    def set(self, level: float, most: int = 1000) -> ReadingSet:
        """Return the most probable readings, enough of them to contain the right one in a given share of new
        texts that resemble those of `hocrf calibrate --accept`. The best reading is always included.

        level (float): the minimum share, over the random choice of both the calibration texts and the new
            ones.
        most (int): consider at most this many readings; `complete` is False if there may be more.
        RAISES (ValueError): H505 if the model has not learnt how far down the list right readings are, H506
            to H508 if this level cannot be reached, H210 for `most` below 1, H201 as in `alternatives`.
        """
        most = _checked_number(most)
        if self._acceptance is None or not self._acceptance.behind:
            raise ValueError(ReadingErrors.H505)
        farthest = self._acceptance.farthest(level) + TOLERANCE
        ordered = not self._alternatives.has_blank(self._number)
        readings, remaining, at_least = ReadingSet(), 1.0, -np.inf
        for rank, reading in enumerate(self.alternatives()):
            at_least = reading.log_probability - farthest if not readings else at_least
            probable = reading.log_probability >= at_least
            if remaining < exp(at_least) or (ordered and not probable):
                break
            if rank == most:
                readings.complete = False
                break
            readings += [reading] if probable else []
            remaining -= reading.probability
        readings.sort(key=lambda reading: -reading.log_probability)
        return readings

    def sample(self, n: int = 1, seed: int = 0) -> list[NamedSpans]:
        """Draw n independent random readings; each reading is drawn with its probability.

        seed (int): the same seed gives the same readings on every run.
        RETURNS (list[NamedSpans]): start, end and label of all spans of each reading.
        RAISES (ValueError): H210 for n below 1.
        """
        drawn = self._alternatives.drawn(self._number, np.random.default_rng(seed))
        return list(islice(drawn, _checked_number(n)))

    def tokens(self) -> NDArray[np.float64]:
        """Return P(the token is in a span of the label), float64 [T, L + 1], in the order of `labels`; the
        last column is P(the token is in no span).
        """
        scheme, counts = self._scheme, self._batch.token_counts[self._tokens]
        chances = np.zeros((len(self), len(self.labels) + 1))
        # add up the columns of the engine's labels that stand for the same label
        column = [
            -1 if y == scheme.outside else scheme.user_label(y) for y in range(len(self.names))
        ]
        np.add.at(chances.T, column, counts.T)
        return np.clip(chances, 0.0, 1.0)

    def token_entropy(self) -> NDArray[np.float64]:
        """Return the entropy of each token's label, in nats, float64 [T]."""
        chances = self.tokens()
        logs = np.log(np.where(chances > 0, chances, 1.0))
        return np.asarray(-(chances * logs).sum(axis=1))

    def entropy(self) -> float:
        """Return the entropy of the segmentation as a whole, in nats: 0 if it is certain."""
        potentials, counts = self._potentials, self._counts
        parts = ("const", "start", "end", "token", "inner")
        pairs = [(getattr(potentials, part), getattr(counts, part)) for part in parts]
        pairs += [(getattr(potentials, f"{p}_score"), getattr(counts, p)) for p in SPARSE_PARTS]
        score = sum(_expected(phi, count) for phi, count in pairs if phi is not None)
        cost = self._under.expected_cost(potentials)
        return max(0.0, self.log_partition - score + cost)

    def expected_breaks(self) -> dict[str, float]:
        """Return the probability that each rule about all spans is broken, by rule name: E[b_r].

        RAISES (ValueError): H219 if the rules together have too many states.
        """
        return self._under.break_probabilities(self._potentials)

    def expected_count(self, label: str) -> float:
        """Return the expected number of spans with a label.

        RAISES (ValueError): H198 for an unknown label.
        """
        self._check_label(label)
        scheme = self._scheme
        beginning_with = {scheme.encode_span(0, n, label)[0].label for n in (1, 2)}
        count = sum(float(self._counts.const[y]) for y in beginning_with)
        if scheme.encoding == "io":  # a token after one of the same label begins no span
            (y,) = beginning_with
            count -= float(self.pattern([self.names[y]] * 2).sum())
        return max(0.0, count)

    @overload
    def pattern(self, names: Sequence[str]) -> NDArray[np.float64]: ...
    @overload
    def pattern(self, names: Sequence[str], start: int, end: int) -> float: ...
    def pattern(
        self, names: Sequence[str], start: int | None = None, end: int | None = None
    ) -> NDArray[np.float64] | float:
        """Return P(a segment with the last of these labels begins at the token, preceded by segments with the
        others), float64 [T]; or, for a stretch, P(consecutive spans with exactly these labels cover it).

        names (Sequence[str]): labels of consecutive segments, oldest first. Without a stretch, they are
            elements of `names`; for a stretch, of `labels`, plus "O" for an unlabelled segment: one token, or
            with outside = "run" all tokens between two spans.
        start, end (Optional[int]): first token of the stretch, and one past its last. Whitespace at the ends
            of spans counts.
        RAISES (ValueError): H199 for an unknown name, or no names, H197 for a stretch outside the Doc.
        """
        if start is not None or end is not None:
            return self._covered(names, start, end)
        pattern = self._pattern_of(names, self.names)
        potentials, automaton = self._potentials, self._automaton
        if len(pattern) == 1:
            if potentials.start is None:
                potentials = replace(potentials, start=np.zeros((len(self), len(self.names))))
            counts = self._batch.expectations(potentials, automaton)
            assert counts.start is not None
            return np.clip(counts.start[:, pattern[0]], 0.0, 1.0)
        if pattern not in automaton.patterns:
            potentials = replace(potentials, const=np.append(potentials.const, 0.0))
            patterns = (*self._under.plain.patterns, pattern)
            automaton = self._under.on(self._under.rules.compile(patterns))
        number = automaton.patterns.index(pattern)
        asked, rows = _with_rows(potentials, number)
        return np.clip(self._batch.expectations(asked, automaton).row[rows], 0.0, 1.0)

    def explain(
        self, span: Span | tuple[int, int, str], instead: Asked | None = None
    ) -> Explanation:
        """Explain why a span is there: what every feature contributes to the log-odds of the best reading
        with the span against the best one without it.

        instead (Optional[Asked]): a span: compare with the best reading that has it instead of the other;
            several spans: with the reading that has exactly these.
        RAISES (ValueError): H224 to H227 for spans that the model cannot produce, or cannot do without.
        """
        return self._batch.explainer.explain(self._number, span, instead)

    def to_html(self, at_least: float = 0.5) -> str:
        """Return an HTML page that shows the spans of at least this probability, what else they could be, and
        why.

        RAISES (ValueError): H200 unless 0 < at_least <= 1.
        """
        text = text_on_page(self, self.spans(at_least), self.labels)
        title = "What the model finds, and how sure it is"
        return make_page([text], self.labels, title, lang=self.doc.lang_)

    def _repr_html_(self) -> str:
        """Show the page in a notebook."""
        return as_frame(self.to_html())

    @cached_property
    def _tokens(self) -> slice:
        """Token indices of the Doc in its batch."""
        first, last = self._batch.part.potentials.offsets[self._number : self._number + 2].tolist()
        return slice(first, last)

    @cached_property
    def _blank(self) -> NDArray[np.bool_] | None:
        """Whitespace that spans are shown without, bool [T]; None if the batch has none."""
        blank = self._batch.part.blank
        return None if blank is None else blank[self._tokens]

    @cached_property
    def _potentials(self) -> Potentials:
        """Log potentials of this Doc alone."""
        return self._batch.part.potentials.only(self._number)

    @cached_property
    def _counts(self) -> Expectations:
        return self._batch.expectations(self._potentials, self._automaton)

    def _covered(self, labels: Sequence[str], start: int | None, end: int | None) -> float:
        """P(consecutive spans with exactly these labels cover a stretch). RAISES (ValueError): H197, H199."""
        ends, bits = Ends(self._scheme), self._potentials.allowed.copy()
        self._pattern_of(labels, (*self.labels, *[OUTSIDE] * (self._scheme.outside >= 0)))
        if not (is_whole(start) and is_whole(end) and 0 <= start < end <= len(self)):
            self._refuse(f"tokens {start} to {end}")
        bits[end : end + 1, ends.continuing(labels[-1])] = 0
        if self._scheme.encoding == "io":
            bits[max(0, start - 1) : start, ends.continuing(labels[0])] = 0
        asked, rule = replace(self._potentials, allowed=bits), ends.chain(labels)
        log_p = sum_between(asked, self._automaton, start, end, rule) - self.log_partition
        return float(np.exp(min(0.0, log_p)))

    def _pattern_of(self, names: Sequence[str], labels: Sequence[str]) -> LabelPattern:
        """Return label numbers by name. RAISES (ValueError): H199 for an unknown name, or no names."""
        unknown = [name for name in names if name not in labels] if len(names) else ["nothing"]
        if unknown:
            known, text = ", ".join(labels), beginning(self.doc)
            raise ValueError(ReadingErrors.H199.format(found=unknown[0], known=known, text=text))
        return tuple(labels.index(name) for name in names)

    def _scores(self, spans: NamedSpans) -> NDArray[np.float64]:
        """Return the probabilities of spans as they are shown."""
        score = partial(self._batch.exact.scores, self._potentials, self._automaton, self._scheme)
        numbered = self._scheme.numbered([spans])
        if self._blank is None:
            return np.asarray(score(numbered))
        return scores_of_shown(score, numbered, self._blank, self._potentials.offsets)

    def _checked(self, spans: Sequence[tuple[int, int, str]]) -> NamedSpans:
        """Sort spans and trim whitespace from their ends; a span of whitespace alone becomes empty.

        RAISES (ValueError): H197 or H198.
        """
        for start, end, label in spans:
            self._check_label(label)
            if not 0 <= start < end <= len(self):
                self._refuse(f"tokens {start} to {end}")
        if self._scheme.encoding != "tags":
            spans = [(*trim(self.doc, start, end), label) for start, end, label in spans]
        ordered = sorted(spans)
        for (_, end, _), (start, after, _) in pairwise(ordered):
            if start < end:
                self._refuse(f"tokens {start} to {after}, which another span overlaps")
        return ordered

    def _refuse(self, found: str) -> NoReturn:
        text = beginning(self.doc)
        raise ValueError(ReadingErrors.H197.format(found=found, expected=len(self), text=text))

    def _check_label(self, label: str) -> None:
        if label not in self.labels:
            known = ", ".join(self.labels)
            raise ValueError(ReadingErrors.H198.format(found=label, known=known))

    def _log_z(self, spans: NamedSpans) -> float:
        """Return the log of the sum over the segmentations that contain these spans, and any others."""
        potentials, scheme = self._potentials, self._scheme
        if not scheme.can_have(spans):
            return -np.inf
        free = ~covered(spans, len(self))
        bits = constrain(scheme, potentials.allowed, Annotation(tuple(spans), free))
        asked = replace(potentials, allowed=bits & potentials.allowed)
        with self._batch.exact.pool.lend(self._automaton) as buffers:
            return float(log_partition(asked, self._automaton, buffers=buffers)[0])


def _checked_number(n: int) -> int:
    """Return a number of readings. RAISES (ValueError): H210 unless it is a whole number above 0."""
    if not is_whole(n) or n < 1:
        raise ValueError(ReadingErrors.H210.format(found=n))
    return min(n, sys.maxsize)


def _expected(phi: NDArray[np.float64], count: NDArray[np.float64]) -> float:
    """Return Σ φ · E[count]; entries that never fire are skipped, since their φ may be -inf."""
    fires = count != 0
    return float(phi[fires] @ count[fires])


def _with_rows(potentials: Potentials, pattern: int) -> tuple[Potentials, NDArray[np.int64]]:
    """Add a row of score 0 for the start of a segment with this pattern at every token; return the new
    potentials and the indices of these rows, int64 [T].
    """
    tokens = len(potentials.allowed)
    # the new row of a token comes after its other rows
    next_row = potentials.row_offsets[1:]
    rows = next_row + np.arange(tokens)
    return (
        replace(
            potentials,
            row_offsets=potentials.row_offsets + np.arange(tokens + 1),
            row_part=np.insert(potentials.row_part, next_row, np.uint8(START)),
            row_pattern=np.insert(potentials.row_pattern, next_row, np.int32(pattern)),
            row_score=np.insert(potentials.row_score, next_row, 0.0),
        ),
        rows,
    )
