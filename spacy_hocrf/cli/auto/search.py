"""Successive halving: many candidates on a part of the texts, the better half of them on more, few on
all (Jamieson and Talwalkar, AISTATS 2016).

Candidates are compared by the loss of texts that are held back, minus their exact log-likelihood, which
varies much less by chance than F1 does. The default is trained first on all texts: it tells how long
training takes, and it stays to the end. Another candidate takes its place only if there its loss is
lower by GAIN and its F1 no lower. Of the sigmas with a loss that `sigma = "auto"` would accept, it
has the one with the highest F1. For whole texts, the share of those that are right takes the place of F1.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from spacy.language import Language
from tqdm import tqdm

from spacy_hocrf.cli.auto.candidates import DEFAULT, Candidate, candidates
from spacy_hocrf.cli.auto.estimates import Numbers, SpanCounts, paired_error
from spacy_hocrf.cli.auto.reading import HeldOutPredictions, Subject, joined
from spacy_hocrf.cli.auto.texts import AnnotatedTexts, AutoSetup
from spacy_hocrf.cli.options import BestAt
from spacy_hocrf.learning.choosing import TOLERANCE
from spacy_hocrf.learning.heldout import FOLDS, MOST, Fold
from spacy_hocrf.training.base import AUTO
from spacy_hocrf.training.lbfgs import LBFGSTrainer

__all__ = [
    "GAIN",
    "CandidateTrial",
    "Clock",
    "Division",
    "Rung",
    "Search",
    "SearchResults",
    "rungs_for",
]

STEPS = ((400, 120, 0.5), (1_000, 400, 0.8), (MOST, 1_000, 1.0))
"""Of each rung: texts, at most; held back, at least; share of the time that may be spent at its end."""
MANY = 4
"""Folds: if a rung needs so many, it has all of them, and the next one may be left out."""
LAST = 3
"""Candidates of the last rung, besides the default."""
GAIN = 0.02
"""Of the default's loss. On dev parts of project/defaults, with 0.02 no candidate that was chosen was
worse than the default; with 0.01, three of 46, one by a point of F1.
"""
LARGE = 2_000_000
"""Tokens times labels. With more, `unseen` would need too much memory: a weight for each label with each
observation.
"""
LATER = 4
"""Times as long as reading the default takes what comes after the search, about."""
ARC = 3e-9
"""Seconds that an arc takes at a token, in one evaluation."""
MADE = 4e-5
"""Seconds to make a fold, a token."""
SURE = 1.0
"""Standard errors of the difference in F1: so much better must a decoder be that is not the usual one."""
STRONG = 1.0
"""No stronger prior than this, unless the default has it: with few texts it may have the higher F1 on
those held back, but seldom on new ones.
"""


@dataclass(frozen=True)
class Rung:
    """A part of the texts, and how many of the five folds are tried on it."""

    texts: int
    folds: int
    share: float  # of the time, that may be spent at its end

    @property
    def last(self) -> bool:
        """Is there no other after it?"""
        return self.share == 1.0


@dataclass(frozen=True)
class CandidateTrial:
    """A candidate on a rung."""

    candidate: Candidate
    sigma: float
    loss: float  # of the texts held back, the lowest of all sigmas
    reading: HeldOutPredictions | None = None  # of these texts
    cost: float | None = None  # of ExpectedF; None for Viterbi

    def __str__(self) -> str:
        """Its settings in words."""
        how = "Viterbi" if self.cost is None else f"ExpectedF at cost {self.cost:g}"
        name = self.candidate.name
        if name == DEFAULT:
            name += f", order {self.settings['model']['order']}"
        return f"{name}, sigma {self.sigma:g}, decoder {how}"

    @property
    def known(self) -> HeldOutPredictions:
        """The reading, where there is one."""
        assert self.reading is not None
        return self.reading

    @property
    def counts(self) -> SpanCounts:
        """Counts of the texts that were held back, where there is a reading."""
        return self.known.counts(self.cost).only(self.known.held)

    @property
    def settings(self) -> dict[str, Any]:
        """All settings of the component."""
        expected = {"@misc": "spacy-hocrf.ExpectedF.v1", "beta": 1.0, "cost": self.cost}
        viterbi = {"@misc": "spacy-hocrf.Viterbi.v1"}
        settings = self.candidate.settings
        return {
            **settings,
            "trainer": {**settings["trainer"], "sigma": self.sigma},
            "decoder": viterbi if self.cost is None else expected,
        }


@dataclass
class Clock:
    """A limit of work, by the time that it takes about on a machine with nothing else to do.

    Work is counted, not timed, so that a busy machine comes to the same model.
    """

    seconds: float
    spent: float = 0.0

    def count(self, fold: Fold, before: float) -> None:
        """Note what a fold was trained. before (float): its work until then; 0 if it is new."""
        new = 0.0 if before else MADE * fold.tokens
        self.spent += new + ARC * (fold.work - before)


@dataclass(frozen=True)
class Division:
    """Texts in FOLDS parts, of which some are held back."""

    sample: Numbers  # [n] numbers of complete texts, at random
    groups: Numbers  # [n] of each: a group is in one part
    others: Numbers  # of texts that are annotated in part: all models learn from them
    folds: int

    def __iter__(self) -> Iterator[tuple[Numbers, Numbers]]:
        """For each fold, the texts to learn from and those held back."""
        _, first, number = np.unique(self.groups, return_index=True, return_inverse=True)
        part = np.argsort(np.argsort(first))[number] % FOLDS  # groups as they appear
        for k in range(self.folds):
            yield np.concatenate([self.sample[part != k], self.others]), self.sample[part == k]


@dataclass(frozen=True)
class SearchResults:
    """Results of a search."""

    rungs: tuple[tuple[Rung, tuple[CandidateTrial, ...]], ...]  # lowest loss first
    unfinished: tuple[tuple[str, ...], ...]  # of each rung: candidates for which there was no time
    default: CandidateTrial
    chosen: CandidateTrial
    subject: Subject  # of the chosen candidate
    division: Division  # of the last rung


def rungs_for(texts: int) -> list[Rung]:
    """The rungs for a number of completely annotated texts; two are never the same."""
    found: dict[tuple[int, int], Rung] = {}
    for most, held, share in STEPS:
        size = min(texts, most)
        folds = -(-held * FOLDS // size)
        folds = FOLDS if folds >= MANY else folds
        found[size, folds] = Rung(size, folds, share)
    return list(found.values())


class Search:
    """Chooses settings.

    setup (AutoSetup): what the user decides. texts (AnnotatedTexts): the corpus.
    nlp (Language): makes components.
    clock (Clock): when to end. seed (int): of the division into folds. bar (tqdm): shows trials.
    """

    def __init__(
        self,
        setup: AutoSetup,
        texts: AnnotatedTexts,
        nlp: Language,
        clock: Clock,
        seed: int,
        bar: tqdm,
    ) -> None:
        self._setup, self._texts, self._nlp = setup, texts, nlp
        self._clock, self._bar = clock, bar
        shuffled = np.random.default_rng(seed).permutation(len(texts))
        self._complete = shuffled[texts.complete[shuffled]]
        self._others = np.flatnonzero(~texts.complete)
        self._subjects: dict[str, Subject] = {}

    def run(self, default: Candidate) -> SearchResults:
        """Choose.

        default (Candidate): the default settings.
        """
        rungs = rungs_for(len(self._complete))
        subject = self._subject(default)
        auto = default.settings["trainer"]["sigma"] == AUTO
        default = Candidate(default.name, subject.settings)
        begun = self._clock.spent
        own = self._trial(default, rungs[-1], [subject.sigma], math.inf)
        assert own is not None
        if subject.decodes_best or self._setup.best_at is BestAt.TEXTS:
            own = replace(own, cost=None)
        # after the search: the learning curve, and the model itself
        budget = self._clock.seconds - LATER * (self._clock.spent - begun)
        found, unfinished = self._halve(rungs, default, _near(subject.sigma), budget)
        _, last = found[-1]
        goal = self._setup.best_at
        measure = next((trial for trial in last if trial.candidate.name == DEFAULT), own)
        chosen = _decoded(_chosen(last, measure, own if auto else measure, goal), goal)
        if chosen.reading is own.reading and chosen.cost is not None:
            chosen = replace(chosen, cost=subject.learnt_cost())
        taken = self._subject(chosen.candidate)
        division = self._division(rungs[-1])
        return SearchResults(tuple(found), tuple(unfinished), own, chosen, taken, division)

    def _halve(
        self, rungs: Sequence[Rung], default: Candidate, sigmas: Sequence[float], budget: float
    ) -> tuple[list[tuple[Rung, tuple[CandidateTrial, ...]]], list[tuple[str, ...]]]:
        """All candidates on the first rung, the better half on the next, LAST on the last.

        budget (float): seconds from the beginning to the end of it.
        RETURNS (tuple[list, list]): of each rung the trials, and the names for which there was no time.
        """
        contenders = [each for each in candidates(default.settings) if self._fits(each)]
        found, unfinished = list[tuple[Rung, tuple[CandidateTrial, ...]]](), list[tuple[str, ...]]()
        for rung in rungs:
            self._bar.reset(total=len(contenders))
            trials = self._trials(contenders, rung, sigmas, budget)
            found.append((rung, tuple(trials)))
            there = {trial.candidate.name for trial in trials}
            unfinished.append(tuple(each.name for each in contenders if each.name not in there))
            others = [trial.candidate for trial in trials if trial.candidate.name != DEFAULT]
            half = -(-len(others) // 2) if len(found) + 1 < len(rungs) else LAST
            contenders = [default, *others[: max(LAST, half)]]
        return found, unfinished

    def _fits(self, candidate: Candidate) -> bool:
        """Is the corpus small enough for it?"""
        size = int(self._texts.lengths.sum()) * len(self._texts.labels)
        large = candidate.settings["model"].get("unseen", False)
        return candidate.name == DEFAULT or not large or size <= LARGE

    def _subject(self, candidate: Candidate) -> Subject:
        if candidate.name not in self._subjects:
            subject = Subject(candidate, self._setup, self._texts, self._nlp)
            self._subjects[candidate.name] = subject
        return self._subjects[candidate.name]

    def _division(self, rung: Rung) -> Division:
        sample = self._complete[: rung.texts]
        return Division(sample, self._texts.groups[sample], self._others, rung.folds)

    def _trials(
        self, contenders: Sequence[Candidate], rung: Rung, sigmas: Sequence[float], budget: float
    ) -> list[CandidateTrial]:
        """Candidates by their loss, without those for which there was no time. One besides the default
        may take what there is for all rungs.
        """
        trials = list[CandidateTrial]()
        for candidate in contenders:
            self._bar.set_postfix_str(f"{candidate.name}, {rung.texts} texts")
            others = any(trial.candidate.name != DEFAULT for trial in trials)
            limit = budget * rung.share if others else budget
            trial = self._trial(candidate, rung, sigmas, limit)
            trials += [] if trial is None else [trial]
            self._bar.update()
        return sorted(trials, key=lambda trial: trial.loss)

    def _trial(
        self, candidate: Candidate, rung: Rung, sigmas: Sequence[float], limit: float
    ) -> CandidateTrial | None:
        """The lowest loss of all sigmas; of those near it the weakest prior or, on the last rung, the
        one with the highest F1. None if there was no time for any.
        """
        path = list(self._path(self._subject(candidate), rung, sigmas, limit))
        if not path:
            return None
        lowest = min(loss for _, loss, _ in path)
        good = [(sigma, parts) for sigma, loss, parts in path if loss <= (1 + TOLERANCE) * lowest]
        trial = CandidateTrial(candidate, good[-1][0], lowest)
        if not rung.last:
            return trial
        goal = self._setup.best_at
        readings = [(sigma, joined(parts)) for sigma, parts in good]
        read = [replace(trial, sigma=s, reading=some, cost=some.cost) for s, some in readings]
        if goal is BestAt.TEXTS:
            read = [replace(one, cost=None) for one in read]
        return max(read, key=partial(_score, goal=goal))

    def _path(
        self, subject: Subject, rung: Rung, sigmas: Sequence[float], limit: float
    ) -> Iterator[tuple[float, float, list[HeldOutPredictions]]]:
        """From strong to weak priors, as long as the loss is near the lowest; training for each begins
        at the weights of the one before.

        limit (float): nothing begins after so many seconds.
        YIELDS (tuple[float, float, list[HeldOutPredictions]]): sigma, the loss of all folds, and on
            the last rung predictions for the texts held back.
        """
        folds, lowest = list[Fold](), math.inf
        for sigma in sigmas:
            loss, readings = 0.0, []
            for k, (learnt, held) in enumerate(self._division(rung)):
                if self._clock.spent > limit:
                    return
                if len(folds) == k:
                    folds.append(subject.fold(learnt, held))
                before = folds[k].work
                loss += folds[k].loss(subject.trainer(sigma))
                self._clock.count(folds[k], before)
                if rung.last:
                    readings.append(subject.read(folds[k], held))
            yield sigma, loss, readings
            lowest = min(lowest, loss)
            if loss > (1 + TOLERANCE) * lowest:
                return


def _near(sigma: float) -> list[float]:
    """A sigma and its neighbours among those that "auto" chooses from, STRONG and above."""
    known = {other for other in LBFGSTrainer.candidates if other >= STRONG}
    places = sorted({*known, sigma})
    i = places.index(sigma)
    return places[max(0, i - 1) : i + 2]


def _score(trial: CandidateTrial, goal: BestAt) -> float:
    """F1, or the share of texts that are right as a whole."""
    counts = trial.counts
    return counts.f if goal is BestAt.FIELDS else float(counts.whole.mean())


def _chosen(
    trials: Sequence[CandidateTrial], measure: CandidateTrial, default: CandidateTrial, goal: BestAt
) -> CandidateTrial:
    """The lowest loss, if it is low enough.

    trials (Sequence[CandidateTrial]): lowest loss first.
    measure (CandidateTrial): the default among them.
    default (CandidateTrial): what is taken if no other candidate is.
    """
    for trial in trials:
        low = trial.loss <= (1 - GAIN) * measure.loss
        if low and _score(trial, goal) >= _score(default, goal):
            return trial
    return default


def _decoded(trial: CandidateTrial, goal: BestAt) -> CandidateTrial:
    """With the other decoder, if that is better by more than chance; for whole texts with that of the most
    probable segmentation.
    """
    if goal is BestAt.TEXTS:
        return replace(trial, cost=None)
    other = replace(trial, cost=trial.known.cost if trial.cost is None else None)
    error = paired_error(other.counts, trial.counts)
    return other if other.counts.f - trial.counts.f > SURE * error else trial
