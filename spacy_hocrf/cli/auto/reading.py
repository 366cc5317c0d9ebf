"""What a candidate makes of texts that it has not seen: every span of some probability, which serves
`ExpectedF` at any cost, and the most probable segmentation (`Viterbi`).
"""

from collections import ChainMap, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.language import Language
from spacy.util import registry

from spacy_hocrf.answers.decoders import DEFAULT_COST, ExpectedF, Viterbi
from spacy_hocrf.answers.reading import ScoredSpan
from spacy_hocrf.arrays import offsets_of, stretches
from spacy_hocrf.cli.auto.candidates import Candidate, window_of, with_changes
from spacy_hocrf.cli.auto.estimates import Numbers, SpanCounts
from spacy_hocrf.cli.auto.texts import AnnotatedTexts, AutoSetup
from spacy_hocrf.cli.doubts import WORTH, ReadText, contradictions
from spacy_hocrf.engine.forward_backward import expectations
from spacy_hocrf.engine.probable import best_subset
from spacy_hocrf.learning.choosing import choose
from spacy_hocrf.learning.cost import COSTS, Evidence, best_cost, learn_cost
from spacy_hocrf.learning.heldout import Fold
from spacy_hocrf.learning.learning import Learner
from spacy_hocrf.model.architectures import model_of
from spacy_hocrf.model.structure import BATCH_TOKENS
from spacy_hocrf.rules.constraints import Constraints
from spacy_hocrf.training.base import AUTO
from spacy_hocrf.training.lbfgs import LBFGSTrainer
from spacy_hocrf.types import Segments

__all__ = ["HeldOutPredictions", "SpanTable", "Subject", "doubted_texts", "joined"]

MOST_DOUBTED = 25
"""Texts."""


@dataclass(frozen=True)
class SpanTable:
    """Spans of texts, by text, start and end; n of them."""

    text: Numbers  # [n]
    start: NDArray[np.int32]  # [n]
    end: NDArray[np.int32]  # [n]
    label: NDArray[np.int32]  # [n] place in the labels of the texts
    chance: NDArray[np.float64]  # [n] probability
    right: NDArray[np.bool_]  # [n] annotated?

    def those(self, chosen: NDArray[Any]) -> "SpanTable":
        """Some of them, bool [n] or int [m]."""
        return SpanTable(*(column[chosen] for column in vars(self).values()))


@dataclass(frozen=True)
class HeldOutPredictions:
    """Predictions of models for texts that they have not seen."""

    held: NDArray[np.bool_]  # [D] texts that were read
    probable: SpanTable  # all spans of some probability
    best: SpanTable  # the most probable segmentations
    # of each text that was read, by its number: P(the token is in no span) [T]
    outside: Mapping[int, NDArray[np.float64]]
    gold: Numbers  # [D, L] annotated spans, of all texts
    lengths: Numbers  # [D] tokens, of all texts

    @property
    def evidence(self) -> Evidence:
        """The probable spans, as the cost of `ExpectedF` is learnt from them."""
        spans = self.probable
        offsets = offsets_of(np.bincount(spans.text, minlength=len(self.lengths)))
        segments = Segments(offsets, spans.start, spans.end, spans.label)
        annotated = int(self.gold[self.held].sum())
        return Evidence(segments, spans.chance, spans.right, self.lengths, annotated)

    @property
    def cost(self) -> float:
        """That of `ExpectedF`, as it is learnt from these texts."""
        return best_cost(self.evidence, 1.0)

    def shown(self, cost: float | None) -> SpanTable:
        """Spans that `ExpectedF` shows at this cost; for None, those of `Viterbi`."""
        if cost is None:
            return self.best
        evidence = self.evidence
        chosen = best_subset(evidence.spans, evidence.probability - cost)
        return self.probable.those(chosen)

    def counts(self, cost: float | None) -> SpanCounts:
        """Counts of the texts that were read; those of others are 0."""
        spans = self.shown(cost)
        gold = np.where(self.held[:, None], self.gold, 0)
        found, right = np.zeros_like(gold), np.zeros_like(gold)
        np.add.at(found, (spans.text, spans.label), 1)
        np.add.at(right, (spans.text, spans.label), spans.right)
        return SpanCounts(right, found, gold)


class Subject:
    """A candidate with the corpus as its features read it.

    candidate (Candidate): its settings.
    setup (AutoSetup): what the user decides.
    texts (AnnotatedTexts): the corpus.
    nlp (Language): makes components.

    sigma (float): that of its settings, or what has been chosen for "auto".
    """

    def __init__(
        self, candidate: Candidate, setup: AutoSetup, texts: AnnotatedTexts, nlp: Language
    ) -> None:
        pipe: Any = nlp.create_pipe(setup.factory, config=dict(candidate.settings))
        known = pipe.target, pipe.trainer
        learner = Learner(model_of(pipe.structure.settings), *known, constraints=Constraints())
        learner.begin(texts.examples, None, partial(choose, name=setup.factory))
        assert len(learner.corpus.documents) == len(texts)
        trainer: Any = learner.trainer  # the default of the factory reaches an optimum
        self.candidate = candidate
        self.sigma = trainer.sigmas[0]
        self._learner, self._texts = learner, texts
        self._trainer = trainer.quick()
        block = {"decoder": candidate.settings["decoder"]}
        self._decoder = registry.resolve(block)["decoder"]
        chosen = learner.structure.settings
        self._order, self._wide = chosen.order, chosen.wide
        self._gold = texts.counts

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of the candidate, with what has been chosen: sigma, the order and how wide it is."""
        settings = self.candidate.settings
        model = with_changes(settings["model"], {"order": self._order})
        if window_of(model)["wide"] == AUTO:
            model = with_changes(model, {"features": {"wide": self._wide}})
        return {
            **settings,
            "model": model,
            "trainer": {**settings["trainer"], "sigma": self.sigma},
        }

    @property
    def decodes_best(self) -> bool:
        """Does its own decoder show the most probable segmentation?"""
        return not isinstance(self._decoder, ExpectedF)

    def learnt_cost(self) -> float:
        """That of its own decoder, learnt as the component does."""
        learnt = learn_cost(self._learner, ExpectedF(), self.candidate.name)
        return DEFAULT_COST if learnt is None else learnt.cost

    def fold(self, learnt: Numbers, held: Numbers) -> Fold:
        """A model that is to learn from some texts, with others to be scored on.

        learnt, held (int64 [n]): numbers of texts; those that are held back are complete.
        """
        documents = self._learner.corpus.documents
        seen, unseen = ([documents[i] for i in some.tolist()] for some in (learnt, held))
        return Fold(self._learner, seen, unseen, order=self._order, wide=self._wide)

    def trainer(self, sigma: float) -> LBFGSTrainer:
        """Trainer of models that are compared, or only read."""
        trainer: LBFGSTrainer = replace(self._trainer, sigma=sigma)
        return trainer

    def read(self, fold: Fold, held: Numbers) -> HeldOutPredictions:
        """Reading of the texts held back, by the fold's model as it is trained now.

        held (int64 [n]): their numbers.
        """
        model, documents = fold.model, self._learner.corpus.documents
        unseen = [documents[i] for i in held.tolist()]
        weights, scheme, automaton = model.snapshot().placed, model.scheme, model.automaton
        expected, viterbi = ExpectedF(), Viterbi()
        probable, best, outside = [], [], dict[int, NDArray[np.float64]]()
        for first, last in stretches(map(len, unseen), BATCH_TOKENS):
            tokens = model.corpus.batch(unseen[first:last])
            observed = model.structure.observe(tokens)
            compiled = model.structure.compile(observed, model.allowed(tokens))
            potentials = compiled.potentials(weights)
            found = expected.candidates(potentials, automaton, scheme, float(COSTS[0]))
            answer = viterbi.answer(potentials, automaton, scheme)
            here = held[first:last]
            counts = expectations(potentials, automaton).token
            assert counts is not None
            silent = np.split(counts[:, scheme.outside], potentials.offsets[1:-1])
            outside.update(zip(here.tolist(), silent))
            probable.append(self._spans(found.spans, found.scores, here, scheme.labels))
            nothing = np.zeros(len(answer.spans.start))
            best.append(self._spans(answer.spans, nothing, here, scheme.labels))
        everything = _joined(*probable)
        shown = _with_chances(_joined(*best), everything)
        which = np.zeros(len(self._texts), dtype=bool)
        which[held] = True
        return HeldOutPredictions(
            which, everything, shown, outside, self._gold, self._texts.lengths
        )

    def _spans(
        self, spans: Segments, chance: NDArray[np.float64], numbers: Numbers, names: Sequence[str]
    ) -> SpanTable:
        """Spans of a batch, with the numbers of its texts."""
        text = np.repeat(numbers, np.diff(spans.offsets))
        place = {name: i for i, name in enumerate(self._texts.labels)}
        label = np.array([place[name] for name in names], dtype=np.int32)[spans.label]
        columns = (text.tolist(), spans.start.tolist(), spans.end.tolist(), spans.label.tolist())
        right = [(names[y], u, v) in self._texts.gold[i] for i, u, v, y in zip(*columns)]
        return SpanTable(text, spans.start, spans.end, label, chance, np.array(right, dtype=bool))


def joined(parts: Sequence[HeldOutPredictions]) -> HeldOutPredictions:
    """Readings put together; no text is in two of them."""
    return HeldOutPredictions(
        np.logical_or.reduce([part.held for part in parts]),
        _joined(*(part.probable for part in parts)),
        _joined(*(part.best for part in parts)),
        dict(ChainMap(*(dict(part.outside) for part in parts))),
        parts[0].gold,
        parts[0].lengths,
    )


def doubted_texts(
    texts: AnnotatedTexts, reading: HeldOutPredictions, cost: float | None
) -> list[ReadText]:
    """The texts with the largest doubts, those first, as `hocrf doubt` has them.

    cost (Optional[float]): of `ExpectedF`; None for `Viterbi`.
    """
    probable = _by_text(reading.probable, texts)
    shown = _by_text(reading.shown(cost), texts)
    found = []
    for text, outside in reading.outside.items():
        chances = {span[:3]: span.probability for span in probable[text]}
        annotated = [
            ScoredSpan(start, end, label, chances.get((start, end, label), 0.0))
            for label, start, end in sorted(texts.gold[text], key=lambda item: item[1:])
        ]
        doubts = contradictions(text, annotated, probable[text], outside)
        ordered = tuple(sorted(doubts, key=lambda doubt: -doubt.degree))
        words = tuple(texts.words(text))
        found.append(ReadText(text, words, tuple(annotated), tuple(shown[text]), ordered))
    doubted = [text for text in found if text.worst() >= WORTH]
    return sorted(doubted, key=lambda text: (-text.worst(), text.number))[:MOST_DOUBTED]


def _by_text(spans: SpanTable, texts: AnnotatedTexts) -> dict[int, list[ScoredSpan]]:
    found = defaultdict[int, list[ScoredSpan]](list)
    columns = (spans.text, spans.start, spans.end, spans.label, spans.chance)
    for text, start, end, label, chance in zip(*(column.tolist() for column in columns)):
        found[text].append(ScoredSpan(start, end, texts.labels[label], chance))
    return found


def _joined(*parts: SpanTable) -> SpanTable:
    """Spans put together text by text; no text is in two parts."""
    columns = zip(*(vars(part).values() for part in parts))
    everything = SpanTable(*(np.concatenate(column) for column in columns))
    return everything.those(np.argsort(everything.text, kind="stable"))


def _with_chances(spans: SpanTable, probable: SpanTable) -> SpanTable:
    """The spans with their probabilities, 0 for one that is not among the probable ones."""
    known = dict(zip(_keys(probable), probable.chance.tolist()))
    chance = [known.get(key, 0.0) for key in _keys(spans)]
    return replace(spans, chance=np.array(chance, dtype=np.float64))


def _keys(spans: SpanTable) -> Iterator[tuple[int, ...]]:
    columns = (spans.text, spans.start, spans.end, spans.label)
    return zip(*(column.tolist() for column in columns))
