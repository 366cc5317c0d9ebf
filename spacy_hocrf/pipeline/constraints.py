"""Constraints on all spans of a text: successions that must not be or must be, and how often a label
may come. `Constraints` are the settings; `Rules` what they mean for a model.

Forbidden successions are structural zeros of the automaton, and of the first and last token. A number
of spans is remembered: the automaton is multiplied with a memory (engine/memory.py) for just those
labels that could break their rule in a text; the others do so with a probability below the tolerance.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.automaton import Automaton, compile_automaton
from spacy_hocrf.engine.forward_backward import log_partition
from spacy_hocrf.engine.memory import Count, Memory, counting, remembering
from spacy_hocrf.features.dollars import with_dollars
from spacy_hocrf.model.scheme import OUTSIDE, LabelScheme
from spacy_hocrf.pipeline.ends import EDGE, Ends, follows
from spacy_hocrf.pipeline.errors import ConstraintErrors
from spacy_hocrf.pipeline.risks import Texts, risks_of, with_more
from spacy_hocrf.types import LabelPattern, Segments

__all__ = ["MOST_STATES", "Constraints", "Rules"]

MOST_STATES = 1024
"""States of a memory: ten labels that may come once, for instance."""

KEPT_STATES = 8192
"""States of all memories that are kept for further texts."""

TRAINING = ("none", "successions", "all")

WIDER = 2
"""A memory that is there already serves a text that needs so many rules less."""


Sets = list[tuple[tuple[int, ...], NDArray[np.int64]]]
"""Some rules, and numbers of texts; the texts of different rules are different ones."""


@dataclass(frozen=True)
class Constraints:
    """`spacy-hocrf.Constraints.v1`: what every text's spans keep to.

    forbidden (Sequence[Sequence[str]]): pairs of labels; no span of the second begins where one of
        the first ends. "O" is text in no span; "" is the beginning of the text in the first place
        and its end in the second.
    required (Sequence[Sequence[str]]): pairs; where a span of the first ends, one of the second begins.
    at_most, at_least (Optional[Mapping[str, int]]): number of spans of a label in a text.
    tolerance (float): scores of predictions are wrong by no more, and 0 makes them exact: at_most and
        at_least are remembered for the labels that break them more probably. Predictions never break one.
        Readings remember more, see `risks.with_more`.
    spans_key (str): key of `doc.spans` for the constraints of single texts.
    training (str): what training keeps: "none", "successions" (forbidden and required) or "all".
    RAISES (ValueError): H214 for anything else.
    """

    forbidden: Sequence[Sequence[str]] = ()
    required: Sequence[Sequence[str]] = ()
    at_most: Mapping[str, int] | None = None
    at_least: Mapping[str, int] | None = None
    tolerance: float = 0.01
    spans_key: str = "hocrf_constraints"
    training: str = "successions"

    def __post_init__(self) -> None:
        for name in ("forbidden", "required"):
            for pair in getattr(self, name):
                if not _is_pair(pair):
                    _refuse(name, pair, 'pairs of labels, "" for the edge of the text')
            pairs = with_dollars(tuple(map(tuple, getattr(self, name))))
            object.__setattr__(self, name, pairs)
        for name in ("at_most", "at_least"):
            for label, number in (getattr(self, name) or {}).items():
                if type(number) is not int or number < 0:
                    _refuse(name, {label: number}, "whole numbers of spans by label")
        for label in self.counted:
            least, most = self.least(label), self.most(label)
            if most is not None and most < least:
                found = f"{least} of {label!r} at least, {most} at most"
                _refuse("at_most", found, "no fewer than at_least")
        if type(self.tolerance) not in (int, float) or not 0 <= self.tolerance < 1:
            _refuse("tolerance", self.tolerance, "a number of at least 0 and below 1")
        if not isinstance(self.spans_key, str) or not self.spans_key:
            _refuse("spans_key", self.spans_key, "a key of doc.spans")
        if self.training not in TRAINING:
            _refuse("training", self.training, f"one of {', '.join(TRAINING)}")

    @property
    def labels(self) -> list[str]:
        """All labels that are named."""
        pairs = [label for pair in (*self.forbidden, *self.required) for label in pair]
        return [*(label for label in pairs if label != EDGE), *self.counted]

    @property
    def counted(self) -> list[str]:
        """Labels with rules about numbers of spans, each once."""
        return list(dict.fromkeys([*(self.at_most or {}), *(self.at_least or {})]))

    def most(self, label: str) -> int | None:
        """Spans of a label at most; None for any number."""
        return (self.at_most or {}).get(label)

    def least(self, label: str) -> int:
        """Spans of a label at least."""
        return (self.at_least or {}).get(label, 0)

    @cached_property
    def in_training(self) -> bool:  # are there any that training keeps?
        successions = bool(self.forbidden or self.required)
        return {"none": False, "successions": successions, "all": not self.empty}[self.training]

    @cached_property
    def empty(self) -> bool:  # are there none but those of single texts?
        return not self.labels


class Rules:
    """What constraints mean for one model.

    constraints (Constraints): the settings. carried (Collection[LabelPattern]): of the model.

    of (Automaton): the model's.
    scheme (LabelScheme): the model's, with the forbidden successions.
    automaton (Automaton): with the same, without a memory.
    first, last (bool [Y]): may a segment of the label be first, or last, in a text?
    told (bool): has somebody been warned of entities that break them?
    RAISES (ValueError): H215 for a label that the model does not have.
    """

    def __init__(
        self,
        constraints: Constraints,
        scheme: LabelScheme,
        automaton: Automaton,
        carried: frozenset[LabelPattern],
    ) -> None:
        for label in constraints.labels:
            if label not in (*scheme.labels, OUTSIDE):
                known = ", ".join(scheme.labels)
                raise ValueError(ConstraintErrors.H215.format(found=label, known=known))
        self.constraints, self.carried, self.of = constraints, carried, automaton
        self.first = np.ones(scheme.n_labels, dtype=bool)
        self.last = self.first.copy()
        # [L + 2, L + 2] of L labels, text in no span, and the edge of the text: may one follow another?
        self._allowed = np.ones((len(scheme.labels) + 2,) * 2, dtype=bool)
        pairs = self._successions(Ends(scheme))
        self.scheme, self.automaton = scheme, automaton
        if pairs:
            forbidden = tuple(dict.fromkeys((*scheme.forbidden, *sorted(pairs))))
            self.scheme = replace(scheme, forbidden=forbidden)
            self.automaton = self.compile(automaton.patterns)
        self.counts = [self._count(label) for label in constraints.counted]
        self._remembering: dict[tuple[int, ...], tuple[Memory, Automaton]] = {}
        self._lock = Lock()
        self.told = False

    def compile(self, patterns: Sequence[LabelPattern]) -> Automaton:
        """An automaton of other patterns, without a memory."""
        limits, forbidden = self.scheme.limits, self.scheme.forbidden
        return compile_automaton(patterns, limits, forbidden=forbidden, carried=self.carried)

    def at_edges(
        self, bits: NDArray[np.uint8], blank: NDArray[np.bool_], offsets: NDArray[np.int64]
    ) -> None:
        """Take away from the bits of a batch, uint8 [N, Y], what must not be first or last in a text.

        blank (bool [N]): white space, which does not count at the edges.
        """
        solid = np.flatnonzero(~blank)
        places = np.searchsorted(solid, offsets)
        some = np.flatnonzero(places[:-1] < places[1:])
        # a segment that is here is the first, and has begun no earlier
        bits[np.ix_(solid[places[some]], ~self.first)] = 0
        bits[np.ix_(solid[places[some + 1] - 1], ~self.last)] = 0

    @property
    def edged(self) -> bool:
        """Is there anything that must not be first or last?"""
        return not (self.first.all() and self.last.all())

    def doubtful(self, texts: Texts) -> NDArray[np.int64]:
        """Numbers of those of D texts that could break rules about numbers."""
        tolerance = self.constraints.tolerance
        risks = risks_of(self.counts, texts, tolerance / len(self.counts), closely=False)
        risk = risks.sum(axis=1)
        # P(a rule is broken | all are kept) <= P(one is broken) / P(all are kept)
        return np.flatnonzero(~(risk <= tolerance * (1.0 - risk)))

    def to_remember(self, texts: Texts, *, exactly: bool = False) -> Sets:
        """What each of D texts could break: places in `counts`, and the texts that are to remember just
        these, ascending.

        exactly (bool): as many others as `with_more` adds.
        """
        tolerance, sequences = self.constraints.tolerance, len(texts.survey.log_partition)
        risks = risks_of(self.counts, texts, tolerance / len(self.counts), closely=True)
        # P(a rule is broken | others are kept) <= P(it is broken) / P(the others are kept)
        kept, found = np.ones(sequences), np.zeros(risks.shape, dtype=bool)
        while True:
            with np.errstate(divide="ignore", invalid="ignore"):
                relative = np.where(risks > 0, risks / kept[:, None], 0.0)
            known, found = found, self._riskiest(relative)
            # P(the remembered ones are kept) is 1 - their risks at least
            remembered, others = ((risks * own).sum(axis=1) for own in (found, ~found))
            unclear = others > tolerance * np.maximum(0.0, 1.0 - remembered)
            new = np.flatnonzero(unclear & (found != known).any(axis=1))
            if not len(new):
                return self._shared(with_more(found, risks, self.states) if exactly else found)
            kept[new] = self._chance(texts, new, found)

    def _shared(self, wanted: NDArray[np.bool_]) -> Sets:
        """The same rules or a few more, so that many texts have the same, and known ones.

        wanted (bool [D, n]): rules of each text.
        """
        with self._lock:
            known = list(self._remembering)
        texts = dict[tuple[int, ...], list[NDArray[np.int64]]]()
        for rules, own in sorted(_alike(wanted), key=lambda each: -len(each[0])):
            wider = (each for each in known if set(rules) <= set(each))
            small = [each for each in wider if len(each) <= len(rules) + WIDER]
            shared = min(small, key=len, default=rules) if rules else ()
            texts.setdefault(shared, []).append(own)
            known.append(shared)
        return [(rules, np.sort(np.concatenate(texts[rules]))) for rules in sorted(texts)]

    def _chance(
        self, texts: Texts, numbers: NDArray[np.int64], rules: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """P(a text keeps its rules) of some texts, float64 [n].

        numbers (int64 [n]): of the texts, ascending. rules (bool [D, n]): of each of all texts.
        """
        chances = np.zeros(len(numbers))
        for each, here in _alike(rules[numbers]):
            own = numbers[here]
            left = log_partition(
                texts.potentials, self.remembering(texts.automaton, each)[1], among=own
            )[own]
            total = texts.survey.log_partition[own]
            possible = ~np.isneginf(total)
            left[possible] -= total[possible]
            chances[here] = np.exp(left)
        return chances

    def remembering(
        self, automaton: Automaton, rules: tuple[int, ...]
    ) -> tuple[Memory | None, Automaton]:
        """The memory of some of `counts`, and the automaton that has it."""
        if not rules:
            return None, automaton
        if automaton is not self.automaton:
            memory = counting([self.counts[i] for i in rules], self.scheme.n_labels)
            return memory, remembering(automaton, memory)
        with self._lock:
            found = self._remembering.get(rules)
            if found is None:
                memory = counting([self.counts[i] for i in rules], self.scheme.n_labels)
                found = memory, remembering(automaton, memory)
                while self._remembering and self._kept_states() + len(memory) > KEPT_STATES:
                    self._remembering.pop(next(iter(self._remembering)))
                self._remembering[rules] = found
        return found

    def _kept_states(self) -> int:
        return sum(len(memory) for memory, _ in self._remembering.values())

    def broken(self, spans: Segments, lengths: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which rules do the spans of D texts break? bool [D, n + 1]: each of `counts`, and last a rule
        about successions.

        spans (Segments): with places in the scheme's `labels` for labels; none overlap.
        lengths (int64 [D]): tokens of the texts.
        """
        wrong = np.zeros((len(lengths), len(self.counts) + 1), dtype=bool)
        text = np.repeat(np.arange(len(lengths)), np.diff(spans.offsets))
        for rule, count in enumerate(self.counts):
            label = self.scheme.labels.index(self.constraints.counted[rule])
            found = np.bincount(text[spans.label == label], minlength=len(lengths))
            wrong[:, rule] = found < count.least
            if count.most is not None:
                wrong[:, rule] |= found > count.most
        if not self._allowed.all():
            wrong[:, -1] = ~follows(self._allowed, spans, lengths)
        return wrong

    def broken_by(
        self, spans: Sequence[tuple[int, int, str]], length: int
    ) -> tuple[bool, set[int]]:
        """Do spans of a text of this many tokens, sorted and not overlapping, break a rule about
        successions? And which of `counts` do they break?
        """
        labels = [self.scheme.labels.index(label) for _, _, label in spans]
        start, end = (np.array([span[i] for span in spans], dtype=np.int32) for i in (0, 1))
        found = Segments(np.array([0, len(spans)]), start, end, np.array(labels, dtype=np.int32))
        *counts, succession = self.broken(found, np.array([length]))[0].tolist()
        return succession, {rule for rule, wrong in enumerate(counts) if wrong}

    def _count(self, label: str) -> Count:
        begins = frozenset(Ends(self.scheme).firsts(label))
        least, most = self.constraints.least(label), self.constraints.most(label)
        return Count(begins, least, most, self.scheme.encoding == "io")

    def together(self, rules: Iterable[int], others: Iterable[int]) -> tuple[int, ...]:
        """Some of `counts`, and others. RAISES (ValueError): H219 if that is too much to remember."""
        found = tuple(sorted({*rules, *others}))
        states = self.states(found)
        if states > MOST_STATES:
            raise ValueError(ConstraintErrors.H219.format(found=states, most=MOST_STATES))
        return found

    def states(self, rules: Iterable[int]) -> int:
        """How many states the memory of some of `counts` may have."""
        found = (self.counts[rule] for rule in rules)
        return prod(1 + (count.least if count.most is None else count.most) for count in found)

    def _riskiest(self, risks: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Of each text all rules but those that are together broken with a probability up to the
        tolerance, and no more than a memory may have; bool [D, n].

        risks (float64 [D, n]): of each text and rule.
        """
        order = np.argsort(risks, axis=1, kind="stable")
        sums = np.cumsum(np.take_along_axis(risks, order, axis=1), axis=1)
        found = np.zeros(risks.shape, dtype=bool)
        np.put_along_axis(found, order, sums > self.constraints.tolerance, axis=1)
        if self.states(range(len(self.counts))) > MOST_STATES:
            for i in np.flatnonzero(found.any(axis=1)).tolist():
                rules = [rule for rule in order[i].tolist() if found[i, rule]]
                while self.states(rules) > MOST_STATES:
                    found[i, rules.pop(0)] = False
        return found

    def _forbidden(self, ends: "Ends") -> list[tuple[str, str]]:
        """Pairs of labels, with what a required one leaves out."""
        everything = [*ends.scheme.labels, OUTSIDE, EDGE]
        forbidden = [(a, b) for a, b in self.constraints.forbidden]
        for a, b in self.constraints.required:
            forbidden += [(a, other) for other in everything if other != b and (a or other)]
        return forbidden

    def _successions(self, ends: "Ends") -> set[tuple[int, int]]:
        """Pairs of the engine's labels that must not follow one another; notes what must not be
        first or last.
        """
        pairs = set()
        for a, b in self._forbidden(ends):
            self._allowed[ends.place(a), ends.place(b)] = False
            if a == EDGE:
                self.first[ends.firsts(b)] = False
            elif b == EDGE:
                self.last[ends.lasts(a)] = False
            else:
                pairs |= {(x, y) for x in ends.lasts(a) for y in ends.firsts(b)}
        return {(x, y) for x, y in pairs if not ends.one(x, y)}


def _alike(wanted: NDArray[np.bool_]) -> Sets:
    """Rules, and the texts that want just these. wanted (bool [D, n]): rules of each text."""
    some = wanted.any(axis=1)
    found: Sets = [] if some.all() else [((), np.flatnonzero(~some))]
    texts = np.flatnonzero(some)
    while len(texts):
        rules = wanted[texts[0]]
        same = (wanted[texts] == rules).all(axis=1)
        found.append((tuple(np.flatnonzero(rules).tolist()), texts[same]))
        texts = texts[~same]
    return found


def _is_pair(pair: Any) -> bool:
    """Two labels, of which one at most is the edge of the text."""
    return (
        isinstance(pair, Sequence)
        and not isinstance(pair, str)
        and len(pair) == 2
        and all(isinstance(label, str) for label in pair)
        and any(label != EDGE for label in pair)
    )


def _refuse(name: str, found: Any, expected: str) -> None:
    raise ValueError(ConstraintErrors.H214.format(name=name, found=found, expected=expected))
