"""Predictions of a model for held-out texts: all spans of some probability, from which `ExpectedF` decodes at
any cost, and the best reading of each text by `Reranked`.
"""

from collections import ChainMap, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.language import Language

from spacy_hocrf.annotation.best_readings import ScoredSpan
from spacy_hocrf.annotation.gold import Gold
from spacy_hocrf.answers.decoders import DEFAULT_COST, ExpectedF, Reranked
from spacy_hocrf.arrays import offsets_of, ranges, stretches
from spacy_hocrf.cli.auto.estimates import Numbers, SpanCounts
from spacy_hocrf.cli.auto.texts import AnnotatedTexts, AutoSetup
from spacy_hocrf.cli.doubts import WORTH, ReadText, contradictions
from spacy_hocrf.cli.options import BestAt
from spacy_hocrf.engine.forward_backward import expectations
from spacy_hocrf.engine.probable import best_subset
from spacy_hocrf.learning.choosing import choose_settings
from spacy_hocrf.learning.cost import COSTS, Evidence, learn_cost
from spacy_hocrf.learning.heldout import Fold
from spacy_hocrf.learning.learning import Learner
from spacy_hocrf.learning.reranking import (
    ORDER_OF_MODEL,
    HeldOutReadings,
    held_out_readings,
    ranking_weights,
)
from spacy_hocrf.model.architectures import model_of
from spacy_hocrf.model.structure import BATCH_TOKENS
from spacy_hocrf.rules.constraints import Constraints
from spacy_hocrf.training.lbfgs import LBFGSTrainer
from spacy_hocrf.types import AUTO, Segments

__all__ = ["HeldOutPredictions", "SpanTable", "Subject", "doubted_texts", "joined_held_out"]

MAX_DOUBTED = 25
"""Largest number of doubtful texts."""


@dataclass(frozen=True)
class SpanTable:
    """A table of n spans, sorted by text, start and end."""

    text: Numbers  # [n]
    start: NDArray[np.int32]  # [n]
    end: NDArray[np.int32]  # [n]
    label: NDArray[np.int32]  # [n] place in the labels of the texts
    chance: NDArray[np.float64]  # [n] probability
    right: NDArray[np.bool_]  # [n] annotated?

    def those(self, chosen: NDArray[Any]) -> "SpanTable":
        """Select rows by a mask, bool [n], or by indices, int [m]."""
        return SpanTable(*(column[chosen] for column in vars(self).values()))


@dataclass(frozen=True)
class HeldOutPredictions:
    """Predictions of models for held-out texts."""

    held: NDArray[np.bool_]  # [D] texts that were read
    probable: SpanTable  # all spans of some probability
    best: SpanTable  # spans of each text's best reading; empty unless whole texts should be right
    # P(the token is in no span), [T], by number of the text
    outside: Mapping[int, NDArray[np.float64]]
    gold: Numbers  # [D, L] annotated spans, of all texts
    lengths: Numbers  # [D] tokens, of all texts
    readings: tuple[HeldOutReadings, SpanTable] | None = None  # readings and their spans

    @property
    def evidence(self) -> Evidence:
        """The probable spans, in the form from which the cost of `ExpectedF` is learnt."""
        spans = self.probable
        offsets = offsets_of(np.bincount(spans.text, minlength=len(self.lengths)))
        segments = Segments(offsets, spans.start, spans.end, spans.label)
        annotated = int(self.gold[self.held].sum())
        return Evidence(segments, spans.chance, spans.right, self.lengths, annotated)

    def shown(self, cost: float | None) -> SpanTable:
        """Spans that `ExpectedF` shows at this cost; for None, those of `Reranked`."""
        if cost is None:
            return self.best
        evidence = self.evidence
        chosen = best_subset(evidence.spans, evidence.probability - cost)
        return self.probable.those(chosen)

    def reranked(self, weights: NDArray[np.float64]) -> "HeldOutPredictions":
        """Choose the best readings by the reranker's weights, float64 [LOOKS]."""
        if self.readings is None:
            return self
        held_out, spans = self.readings
        offsets, best = held_out.readings.spans.offsets, held_out.best(weights)
        chosen = spans.those(ranges(offsets[best], np.diff(offsets)[best]))
        return replace(self, best=_joined(chosen))

    def counts(self, cost: float | None) -> SpanCounts:
        """Counts of the texts that were read; those of other texts are 0."""
        spans = self.shown(cost)
        gold = np.where(self.held[:, None], self.gold, 0)
        predicted, right = np.zeros_like(gold), np.zeros_like(gold)
        np.add.at(predicted, (spans.text, spans.label), 1)
        np.add.at(right, (spans.text, spans.label), spans.right)
        return SpanCounts(right, predicted, gold)


class Subject:
    """Settings to be tried, with the corpus as their features read it.

    settings (Mapping[str, Any]): settings of the component; sigma, order and window may be "auto".
    setup (AutoSetup): the user's choices.
    texts (AnnotatedTexts): the corpus.
    nlp (Language): makes components.

    trainer (LBFGSTrainer): trainer of the models of the folds.
    """

    def __init__(
        self, settings: Mapping[str, Any], setup: AutoSetup, texts: AnnotatedTexts, nlp: Language
    ) -> None:
        pipe: Any = nlp.create_pipe(setup.factory, config=dict(settings))
        learner = Learner(
            model_of(pipe.structure.settings),
            Gold(pipe.target, teachers=setup.teachers),
            pipe.trainer,
            constraints=Constraints(),
            group_by=setup.group_by,
        )
        learner.begin(texts.examples, None, partial(choose_settings, name=setup.factory))
        assert len(learner.corpus.documents) == len(texts)
        trainer: Any = learner.trainer  # the default of the factory reaches an optimum
        self._sigma: float = trainer.sigmas[0]
        self.trainer: LBFGSTrainer = replace(trainer.quick(), sigma=self._sigma)
        self._learner, self._setup, self._texts, self._settings = learner, setup, texts, settings
        chosen = learner.structure.settings
        self._order, self._wide = chosen.order, chosen.wide
        self._gold = texts.counts

    def chosen(self, cost: float | None) -> dict[str, Any]:
        """Fill in the chosen settings: sigma, order, width of the window, and the decoder.

        cost (Optional[float]): cost of `ExpectedF`; None for `Reranked`.
        """
        settings = deepcopy(dict(self._settings))
        model = settings["model"]
        model["order"], settings["trainer"]["sigma"] = self._order, self._sigma
        features = model["features"]
        window = features["*"]["window"] if "*" in features else features
        if window["wide"] == AUTO:
            window["wide"] = self._wide
        expected = {"@misc": "spacy-hocrf.ExpectedF.v1", "beta": 1.0, "cost": cost}
        reranked = {"@misc": "spacy-hocrf.Reranked.v1", "n": Reranked().n}
        settings["decoder"] = reranked if cost is None else expected
        return settings

    def spell(self, cost: float | None) -> str:
        """Spell out the chosen settings."""
        decoder = "Reranked" if cost is None else f"ExpectedF at cost {cost:.2g}"
        unseen = ", unseen" * self._settings["model"].get("unseen", False)
        wide = ", wide window" if self._wide else ""
        return f"order {self._order}{unseen}, sigma {self._sigma:g}{wide}, decoder {decoder}"

    def learnt_cost(self) -> float | None:
        """Learn the cost of `ExpectedF` as the component does; None for `Reranked`, if whole texts should be
        right.
        """
        if self._setup.best_at is BestAt.TEXTS:
            return None
        learnt = learn_cost(self._learner, ExpectedF(), self._setup.factory)
        return DEFAULT_COST if learnt is None else learnt.cost

    def fold(self, learnt: Numbers, held: Numbers) -> Fold:
        """Make a fold: a model to train on some texts, and others to score it on.

        learnt, held (int64 [n]): numbers of the training texts and of the held-out ones, all complete.
        """
        documents = self._learner.corpus.documents
        seen, unseen = ([documents[i] for i in texts.tolist()] for texts in (learnt, held))
        return Fold(self._learner, seen, unseen, order=self._order, wide=self._wide)

    def read(self, fold: Fold, held: Numbers) -> HeldOutPredictions:
        """Predict the held-out texts with the fold's model, as it is trained now.

        held (int64 [n]): numbers of the held-out texts.
        """
        model, (seen, unseen) = fold.model, fold.documents
        scheme, automaton = model.scheme, model.automaton
        expected = ExpectedF()
        tables, outside = [], dict[int, NDArray[np.float64]]()
        for first, last in stretches(map(len, unseen), BATCH_TOKENS):
            potentials = model.potentials(model.corpus.batch(unseen[first:last]))
            candidates = expected.candidates(potentials, automaton, scheme, float(COSTS[0]))
            numbers = held[first:last]
            counts = expectations(potentials, automaton).token
            assert counts is not None
            # without a label for tokens outside of spans, all tokens are in one
            no_span = counts[:, scheme.outside] if scheme.outside >= 0 else np.zeros(len(counts))
            outside.update(zip(numbers.tolist(), np.split(no_span, potentials.offsets[1:-1])))
            tables.append(self._spans(candidates.spans, candidates.scores, numbers, scheme.labels))
        probable = _joined(*tables)
        is_held = np.zeros(len(self._texts), dtype=bool)
        is_held[held] = True
        empty = probable.those(np.zeros(0, dtype=np.int64))
        predictions = HeldOutPredictions(
            is_held, probable, empty, outside, self._gold, self._texts.lengths
        )
        if self._setup.best_at is BestAt.FIELDS:
            return predictions
        readings = held_out_readings(model, seen, unseen, Reranked())
        spans = readings.readings.spans
        numbers, unscored = held[readings.readings.text], np.zeros(len(spans.start))
        table = self._spans(spans, unscored, numbers, scheme.labels)
        scored = replace(predictions, readings=(readings, _with_chances(table, probable)))
        return scored.reranked(ORDER_OF_MODEL)

    def _spans(
        self, spans: Segments, chance: NDArray[np.float64], numbers: Numbers, names: Sequence[str]
    ) -> SpanTable:
        """Make a table of the spans of a batch. numbers (int64 [B]): numbers of its texts."""
        text = np.repeat(numbers, np.diff(spans.offsets))
        place = {name: i for i, name in enumerate(self._texts.labels)}
        label = np.array([place[name] for name in names], dtype=np.int32)[spans.label]
        columns = (text.tolist(), spans.start.tolist(), spans.end.tolist(), spans.label.tolist())
        right = [(names[y], u, v) in self._texts.gold[i] for i, u, v, y in zip(*columns)]
        return SpanTable(text, spans.start, spans.end, label, chance, np.array(right, dtype=bool))


def joined_held_out(parts: Sequence[HeldOutPredictions]) -> HeldOutPredictions:
    """Join the predictions of at least two models for different texts. The reranker's weights for the texts
    of one part are learnt from the others.
    """
    best = list[SpanTable]()
    for k, part in enumerate(parts):
        others = [other.readings[0] for other in (*parts[:k], *parts[k + 1 :]) if other.readings]
        best.append(part.reranked(ranking_weights(others)).best if others else part.best)
    return HeldOutPredictions(
        np.logical_or.reduce([part.held for part in parts]),
        _joined(*(part.probable for part in parts)),
        _joined(*best),
        dict(ChainMap(*(dict(part.outside) for part in parts))),
        parts[0].gold,
        parts[0].lengths,
    )


def doubted_texts(
    texts: AnnotatedTexts, reading: HeldOutPredictions, cost: float | None
) -> list[ReadText]:
    """Find the texts with the largest doubts, as `hocrf doubt` does, the worst first.

    cost (Optional[float]): cost of `ExpectedF`; None for `Reranked`.
    """
    probable = _by_text(reading.probable, texts)
    shown = _by_text(reading.shown(cost), texts)
    read = []
    for text, outside in reading.outside.items():
        chances = {span[:3]: span.probability for span in probable[text]}
        annotated = [
            ScoredSpan(start, end, label, chances.get((start, end, label), 0.0))
            for label, start, end in sorted(texts.gold[text], key=lambda item: item[1:])
        ]
        doubts = contradictions(text, annotated, probable[text], outside)
        ordered = tuple(sorted(doubts, key=lambda doubt: -doubt.degree))
        words = tuple(texts.words(text))
        read.append(ReadText(text, words, tuple(annotated), tuple(shown[text]), ordered))
    doubted = [text for text in read if text.worst() >= WORTH]
    return sorted(doubted, key=lambda text: (-text.worst(), text.number))[:MAX_DOUBTED]


def _by_text(spans: SpanTable, texts: AnnotatedTexts) -> dict[int, list[ScoredSpan]]:
    by_text = defaultdict[int, list[ScoredSpan]](list)
    for (text, start, end, label), chance in zip(_keys(spans), spans.chance.tolist()):
        by_text[text].append(ScoredSpan(start, end, texts.labels[label], chance))
    return by_text


def _joined(*parts: SpanTable) -> SpanTable:
    """Join tables of the spans of different texts, sorted by text."""
    columns = zip(*(vars(part).values() for part in parts))
    everything = SpanTable(*(np.concatenate(column) for column in columns))
    return everything.those(np.argsort(everything.text, kind="stable"))


def _with_chances(spans: SpanTable, probable: SpanTable) -> SpanTable:
    """Look up the probabilities of spans; 0 for those that are not among the probable ones."""
    chances = dict(zip(_keys(probable), probable.chance.tolist()))
    chance = [chances.get(key, 0.0) for key in _keys(spans)]
    return replace(spans, chance=np.array(chance, dtype=np.float64))


def _keys(spans: SpanTable) -> Iterator[tuple[int, ...]]:
    """Text, start, end and label of each span."""
    columns = (spans.text, spans.start, spans.end, spans.label)
    return zip(*(column.tolist() for column in columns))
