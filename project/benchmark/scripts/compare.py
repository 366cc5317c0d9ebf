"""Our models beside CRFsuite on the same corpus, once they are known to have the same objective."""

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import models
import numpy as np
import peers
from checks import NotTheSame, agree_with_crfsuite
from corpora import Corpora, Sentence
from measure import ROUNDS, Work, take_turns, turn_length
from results import Outcome, Point, Row, milliseconds
from spacy.language import Language
from spacy.tokens import Doc

CONLL, CORA = "CoNLL-2000", "Cora"
Limits = tuple[float, float] | None  # must and aim


@dataclass(frozen=True)
class Setting:
    """The corpora, and how much work is enough."""

    corpora: Corpora
    rounds: int = ROUNDS
    most_iterations: int = 15  # of one turn; CRFsuite stops on Cora after some 110
    peer_iterations: int = 30  # of the models that only predict
    memory_iterations: int = 31  # L-BFGS remembers thirty steps
    whole_iterations: int = 1_000
    ner_steps: int = 20
    long_document: int = 2_000
    default_iterations: int = 30
    texts: int = 500
    cut: int | None = None  # texts to so many words, where there are no short sentences
    long_documents: tuple[int, int] = (10_000, 100_000)
    some_sentences: int = 1_000
    steps: int = 120  # of `spacy train`, as in docs/start.md
    ner_passes: tuple[int, ...] = (1, 3)  # over the corpus, after which F1 is measured


FULL = Setting
SMALL = partial(
    Setting,
    rounds=2,
    most_iterations=2,
    peer_iterations=10,
    memory_iterations=3,
    whole_iterations=100,
    ner_steps=1,
    long_document=400,
    default_iterations=3,
    texts=20,
    cut=20,
    long_documents=(400, 800),
    some_sentences=10,
    steps=20,
    ner_passes=(1, 2),
)


class Peer:
    """CRFsuite with a corpus: the strings of our own observations, and a model to compare with.

    nlp (Language): a CRF of order 1 or more, whose observations these are.
    """

    def __init__(self, sentences: Sequence[Sentence], nlp: Language, iterations: int = 3) -> None:
        self._observed = models.observation_strings(
            models.component(nlp), fresh_docs(nlp, sentences)
        )
        self._labels = [labels for _, labels in sentences]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            self.model = peers.train_crfsuite(self._observed, self._labels, iterations, path)
            self.tagger = peers.open_tagger(path)
        self.check = agree_with_crfsuite(nlp, self.model)

    def training(self) -> peers.CRFsuiteTraining:
        """A new training."""
        return peers.CRFsuiteTraining(self._observed, self._labels)

    def weights(self, nlp: Language) -> np.ndarray:
        """The model's weights as those of one of ours."""
        return models.weights_from(
            models.component(nlp), nlp.vocab, self.model.observed, self.model.transitions
        )


def crf_bar(
    setting: Setting, corpus: str, sentences: Sequence[Sentence], limits: Mapping[int, Limits]
) -> Outcome:
    """Time of an evaluation of CRFs beside CRFsuite's; all must have CRFsuite's objective first.

    limits (Mapping[int, Limits]): must and aim of each order that is measured.
    """
    nlps = {order: models.crf(sentences, order) for order in limits}
    peer = Peer(sentences, nlps[min(nlps)])
    checks = [
        f"{corpus}, order {order}: {agree_with_crfsuite(nlp, peer.model)}"
        for order, nlp in nlps.items()
    ]
    outcome = beside_crfsuite(setting, corpus, nlps, peer, limits, "CRF")
    return Outcome(outcome.rows, outcome.points, checks)


def beside_crfsuite(
    setting: Setting,
    corpus: str,
    nlps: Mapping[int, Language],
    peer: Peer,
    limits: Mapping[int, Limits],
    what: str,
) -> Outcome:
    """Time of an evaluation of our models, by order, and of CRFsuite's order 1."""
    crfsuite = peer.training()
    sides = {"CRFsuite": turns(setting, crfsuite)}
    sides |= {str(order): turns(setting, models.Training(nlp)) for order, nlp in nlps.items()}
    seconds = take_turns(sides, setting.rounds)
    crfsuite.close()
    theirs = seconds["CRFsuite"]
    rows, points = [], [Point(corpus, "CRFsuite", 1, theirs)]
    for order in nlps:
        ours = seconds[str(order)]
        must, aim = limits[order] or (None, None)
        rows.append(
            Row(
                f"{what}, order {order}, {corpus}",
                milliseconds(ours),
                milliseconds(theirs),
                ours / theirs,
                must=must,
                aim=aim,
            )
        )
        points.append(Point(corpus, what.split(",")[0], order, ours))
    return Outcome(rows, points)


def turns(
    setting: Setting, training: models.Training | peers.CRFsuiteTraining
) -> Callable[[], Work]:
    """A training's turns, after two iterations to warm up; their length depends on how long the
    second takes.
    """
    training.step(1)
    begun = time.process_time()
    training.step(1)
    iterations = turn_length(time.process_time() - begun, setting.most_iterations)
    return lambda: partial(training.step, iterations)


@dataclass
class Course:
    """Evaluations, CPU time and loss after each iteration of a training."""

    steps: list[tuple[int, float, float]] = field(default_factory=list)

    def follow(self, step: Callable[[int], int], loss: Callable[[], float]) -> None:
        """One more iteration; none, and no time, once it has stopped."""
        evaluations, seconds, _ = self.steps[-1] if self.steps else (0, 0.0, 0.0)
        begun = time.process_time()
        done = step(1)
        spent = time.process_time() - begun
        if done:
            self.steps.append((evaluations + done, seconds + spent, loss()))

    def reached(self, target: float) -> tuple[int, float]:
        """Evaluations and CPU seconds until the loss was at most `target`. RAISES (NotTheSame): if
        it never was.
        """
        for evaluations, seconds, loss in self.steps:
            if loss <= target:
                return evaluations, seconds
        raise NotTheSame(
            f"the loss never came down to {target}; its last value is {self.steps[-1][2]}"
        )


def fresh_docs(nlp: Language, sentences: Sequence[Sentence]) -> list[Doc]:
    """Docs without annotation."""
    return [Doc(nlp.vocab, words=words) for words, _ in sentences]
