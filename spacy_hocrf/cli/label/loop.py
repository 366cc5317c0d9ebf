"""The model in the annotation loop: it is trained in the background, and answers at once.

All requests are answered by the newest model. One thread trains: after each decision a new model, starting
from the weights of the last one (`models`); then it sorts the other texts by how much the model would learn
from them (`hocrf doubt`). A second thread works while nothing is to be trained: it chooses settings again
when the number of texts has doubled, and estimates how good the model is (`estimates`). A decision waits for
neither.

One text in SHARE is chosen at random, so that F1 is unbiased. These texts are drawn at the beginning and have
an order of their own: once the uncertain texts are annotated, the rest of the others is no longer a random
sample. As long as there is no model, all texts are chosen at random.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from threading import Condition, Thread
from typing import Any, NamedTuple

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import logger

from spacy_hocrf.cli.convert.docs import docs_of
from spacy_hocrf.cli.convert.records import ConvertedText, SourceFile
from spacy_hocrf.cli.doubt import in_order
from spacy_hocrf.cli.label.estimates import Decided, Estimate, estimates
from spacy_hocrf.cli.label.models import Blocks, Models
from spacy_hocrf.cli.label.readings import PlacedText, Readings, Stretch, read_text
from spacy_hocrf.cli.label.store import Chars
from spacy_hocrf.cli.pipelines import ready_docs
from spacy_hocrf.learning.heldout import MIN_GROUPS
from spacy_hocrf.pipeline.component import SegmentationPipe

__all__ = [
    "SHARE",
    "LabelLoop",
    "LoopModel",
    "LoopProgress",
    "TextChoice",
]

SHARE = 4
"""One text in SHARE is chosen at random."""
LOOKED_AT = 2_000
"""Largest number of texts among which the most uncertain is chosen; if there are more, a random sample."""
LINGER = 2.0
"""Seconds to wait for the threads at the end."""
NEWS = 0.1
"""Estimates are renewed when the number of texts has grown by this share."""


class TextChoice(NamedTuple):
    """The next text, None if none is left, and how it was chosen: "doubt" or "random"."""

    text: int | None
    why: str


class LoopProgress(NamedTuple):
    """How good the model is, and what it does.

    version: number of the model, 0 before the first. learning: is a newer one being trained?
    error: message if the last training failed.
    random: share of texts that are chosen at random.
    """

    estimate: Estimate
    version: int
    learning: bool
    error: str | None
    random: float


class LoopModel(NamedTuple):
    """A trained model, which does not change any more."""

    pipe: SegmentationPipe
    settings: Blocks
    version: int


class LabelLoop:
    """A model that learns from each decision of a person, and chooses the next text. Its methods may be
    called from several threads.

    nlp (Language): a pipeline with one component of ours, trained or not; those before it are trained. The
        loop owns it from now on.
    docs (Sequence[Doc]): the texts; only their tokens are used.
    labels (Sequence[str]): labels of spans.
    spans_key (Optional[str]): key of doc.spans that the component predicts; None for doc.ents.
    seed (int): seed of the random choice of texts.
    RAISES (ValueError): H204 unless there is one component of ours.
    """

    def __init__(
        self,
        nlp: Language,
        docs: Sequence[Doc],
        labels: Sequence[str],
        *,
        spans_key: str | None = None,
        seed: int = 0,
    ) -> None:
        self._models = Models(nlp, labels)
        self._nlp, self._into = nlp, "ents" if spans_key is None else spans_key
        self._texts = [PlacedText(doc) for doc in ready_docs(nlp, docs, self._models.name)]
        self._seed, self._chance = seed, np.random.default_rng(seed)
        shuffled: list[int] = self._chance.permutation(len(docs)).tolist()
        self._drawn = shuffled[: -(-len(docs) // SHARE)]
        self._set_apart = {*self._drawn}

        self._changed = Condition()  # guards all below
        self._decided = dict[int, Decided]()
        self._done = set[int]()  # texts that need not be chosen
        given = self._models.given()
        self._model = None if given is None else LoopModel(given, {}, 1)
        self._order: Sequence[int] = ()
        self._settings = self._models.first
        self._estimate = Estimate()
        self._error: str | None = None
        # number of changes of decisions or settings; that which the model has learnt; that at which it failed
        self._edits, self._learnt, self._failed = 0, 0, -1
        self._versions = 0 if given is None else 1  # number of models so far
        self._ordered = 0  # version of the model that has sorted the texts
        self._chosen_by = self._estimated_by = 0  # number of texts at the last choice, and estimate
        self._idle = self._closed = False
        self._workers = [
            Thread(target=work, name=name, daemon=True)
            for work, name in ((self._learn, "hocrf-learn"), (self._evaluate, "hocrf-find-out"))
        ]
        for worker in self._workers:
            worker.start()

    # Actions of the person

    def decide(
        self,
        text: int,
        spans: Sequence[Chars],
        unknown: Sequence[Stretch] = (),
        facts: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Learn a person's annotation of a text, which replaces an earlier one.

        spans (Sequence[Chars]): all spans, none overlapping; they are widened to whole tokens.
        unknown (Sequence[Tuple[int, int]]): stretches that are not annotated.
        facts (Optional[Mapping[str, Any]]): the value returned before for the same decision; or
            {"given": True} for annotation from the file; such a text is still chosen if a part is unknown.
        RETURNS (Dict[str, Any]): "random": may F1 be measured on the text? JSON values.
        """
        placed = self._texts[text]
        record = ConvertedText(
            SourceFile().at(), text=placed.text, spans=spans, unknown=unknown, doc=placed.doc
        )
        docs = docs_of([record], self._nlp, into=self._into, align="expand")
        reference = next(docs, placed.doc)  # no Doc is made of a text without tokens
        facts = {"random": text in self._set_apart, **(facts or {})}
        random = bool(facts["random"] and not facts.get("given"))
        unknown_tokens = {i for stretch in unknown for i in range(*placed.tokens(*stretch))}
        teaches = bool(spans) or len(unknown_tokens) < len(placed.words)
        decided = Decided(Example(placed.doc, reference), random, placed.words, teaches)
        with self._changed:
            self._decided.pop(text, None)
            self._decided[text] = decided
            if not (facts.get("given") and unknown):
                self._done.add(text)
            self._edit()
        return {"random": random}

    def withdraw(self, text: int) -> None:
        """Forget the annotation of a text."""
        with self._changed:
            self._done.discard(text)
            if self._decided.pop(text, None) is not None:
                self._edit()

    def next(self, exclude: Collection[int] = ()) -> TextChoice:
        """Choose the text to annotate next, of those without a decision.

        exclude (Collection[int]): further texts not to choose.
        """
        with self._changed:
            excluded = {*exclude, *self._done}
            drawn, doubted = _first(self._drawn, excluded), _first(self._order, excluded)
            if drawn is None and doubted is None:  # the other texts are not sorted yet
                doubted = _first(range(len(self._texts)), excluded)
            due = SHARE * len(excluded & self._set_apart) <= len(excluded)
            if drawn is not None and (due or doubted is None):
                return TextChoice(drawn, "random")
            return TextChoice(doubted, "doubt")

    # Answers of the model

    def readings(
        self,
        text: int,
        fixed: Sequence[Chars] = (),
        outside: Sequence[Stretch] = (),
        n: int = 10,
    ) -> Readings:
        """The n best readings of a text by the newest model that agree with the person's annotation.

        fixed (Sequence[Chars]): annotated spans. outside (Sequence[Tuple[int, int]]): stretches without a
            span. If the model cannot have them, they replace its predictions there.
        """
        with self._changed:
            model = self._model
        if model is None:
            return Readings([], [], 0)
        return read_text(model.pipe, self._texts[text], fixed, outside, n, model.version)

    def progress(self) -> LoopProgress:
        """Return the current estimates and the state of the training."""
        with self._changed:
            version = 0 if self._model is None else self._model.version
            learning = self._learnt < self._edits
            return LoopProgress(self._estimate, version, learning, self._error, 1 / SHARE)

    @property
    def model(self) -> Language | None:
        """The pipeline with a model of all decisions, once it is trained; None without any.

        RAISES (RuntimeError): if training failed.
        """
        self.wait()
        with self._changed:
            model = self._model
            return None if model is None else self._models.pipeline(model.pipe, model.settings)

    def wait(self, timeout: float | None = None, *, idle: bool = False) -> bool:
        """Wait until all decisions are learnt and the other texts are sorted.

        timeout (Optional[float]): most seconds to wait.
        idle (bool): also wait for settings and estimates.
        RETURNS (bool): False if the time ran out.
        RAISES (RuntimeError): if training failed.
        """
        with self._changed:
            done = self._changed.wait_for(
                lambda: self._closed or (self._idle if idle else not self._is_due()), timeout
            )
            if self._failed == self._edits:
                raise RuntimeError(self._error)
            return done

    def close(self) -> None:
        """End the threads; a training that is running is waited for LINGER seconds at most."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for worker in self._workers:
            worker.join(LINGER / len(self._workers))

    # The training thread

    def _edit(self) -> None:
        self._edits, self._idle = self._edits + 1, False
        self._changed.notify_all()

    def _is_due(self) -> bool:
        """Are there decisions to learn, or texts to sort?"""
        return self._learnt < self._edits or self._ordered < self._versions

    def _learn(self) -> None:
        """Main function of the training thread: learn decisions, then sort texts, until closed."""
        while self._wait_until(self._is_due):
            edits = self._edits
            try:
                if self._learnt < edits:
                    self._learn_decided()
                else:
                    self._sort_texts()
            except Exception as error:
                with self._changed:
                    self._failed = edits if self._learnt < edits else self._failed
                    self._learnt, self._ordered = edits, self._versions
                    self._report_error(error)

    def _wait_until(self, condition: Callable[[], bool]) -> bool:
        """Wait for a condition. RETURNS: False if the loop was closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or condition())
            return not self._closed

    def _report_error(self, error: Exception) -> None:
        coded = str(error).startswith("[")
        self._error = str(error) if coded else f"{type(error).__name__}: {error}"
        logger.error(
            "The model could not be learnt: %s", self._error, exc_info=None if coded else error
        )
        self._changed.notify_all()

    def _learn_decided(self) -> None:
        """Train a model on all decisions, with the current settings."""
        with self._changed:
            edits, decided, before = self._edits, [*self._decided.values()], self._model
            settings = self._settings
        examples = [text.example for text in decided if text.teaches]
        pipe: SegmentationPipe | None
        if examples:
            pipe = self._models.train(examples, settings, None if before is None else before.pipe)
        else:
            pipe = self._models.given()
        with self._changed:
            self._set_model(pipe, settings)
            self._learnt = edits

    def _set_model(self, pipe: SegmentationPipe | None, settings: Blocks) -> None:
        """Make a component the current model."""
        self._versions += 1
        self._model = None if pipe is None else LoopModel(pipe, settings, self._versions)
        self._error = None
        self._changed.notify_all()

    def _sort_texts(self) -> None:
        """Sort the texts that are not set apart by how much the model would learn from them."""
        model, order = self._model, list[int]()
        if model is not None:
            others = [i for i in range(len(self._texts)) if i not in self._set_apart]
            texts = self._undecided(others)
            readings = model.pipe.readings(self._texts[i].doc for i in texts)
            entropies = [reading.token_entropy() for reading in readings]
            words = [self._texts[i].words for i in texts]
            order = [texts[i] for i, _ in in_order(entropies, words)]
        with self._changed:
            self._order, self._ordered = order, self._versions
            self._changed.notify_all()

    def _undecided(self, texts: Sequence[int]) -> list[int]:
        """Select texts without a decision; of more than LOOKED_AT, a random sample."""
        with self._changed:
            undecided = [text for text in texts if text not in self._done]
            if len(undecided) > LOOKED_AT:
                undecided = self._chance.choice(undecided, LOOKED_AT, replace=False).tolist()
            return undecided

    # The estimating thread

    def _evaluate(self) -> None:
        """Main function of the estimating thread: choose settings, estimate F1, until closed."""
        steps: Iterator[Estimate | None] | None = None
        while self._wait_until(lambda: not self._idle and not self._is_due()):
            with self._changed:
                edits, decided = self._edits, [*self._decided.values()]
                model, settings = self._model, self._settings
            try:
                if self._is_choice_due(len(decided)):
                    self._chosen_by = len(decided)
                    self._choose(decided, edits)
                elif steps is not None:
                    steps = self._continue(steps)
                elif model is not None and self._is_outdated(len(decided)):
                    self._estimated_by = len(decided)
                    left = [self._texts[i].doc for i in self._undecided(range(len(self._texts)))]
                    train = partial(self._models.train, settings=settings)
                    steps = estimates(train, model.pipe, decided, left, self._seed)
                else:
                    with self._changed:
                        self._idle = self._edits == edits
                        self._changed.notify_all()
            except Exception as error:
                steps = None
                with self._changed:
                    self._report_error(error)

    def _choose(self, decided: Sequence[Decided], edits: int) -> None:
        """Choose settings by the decisions. edits (int): number of changes at which they were taken."""
        examples = [text.example for text in decided if text.teaches]
        if not examples:
            return
        pipe, settings = self._models.choose(examples)
        with self._changed:
            self._settings = settings
            if self._learnt == self._edits == edits:
                self._set_model(pipe, settings)
            else:  # there are new decisions
                self._edit()

    def _continue(self, steps: Iterator[Estimate | None]) -> Iterator[Estimate | None] | None:
        """Do the next step of the estimate. RETURNS: None at the end."""
        estimate = next(steps)
        if estimate is None:
            return steps
        with self._changed:
            self._estimate = estimate
        return None

    def _is_choice_due(self, texts: int) -> bool:
        """Are there enough texts to choose settings by, and twice as many as last time?"""
        return not self._models.adapts and texts >= max(MIN_GROUPS, 2 * self._chosen_by)

    def _is_outdated(self, texts: int) -> bool:
        """Is the last estimate too old?"""
        grown = texts - self._estimated_by
        return grown < 0 or grown > NEWS * self._estimated_by


def _first(texts: Sequence[int], excluded: Collection[int]) -> int | None:
    return next((text for text in texts if text not in excluded), None)
