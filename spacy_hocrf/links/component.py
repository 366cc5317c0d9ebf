"""The trainable component that links items: spans, sentences or Docs of a group.

`initialize` collects the features of the templates, and keeps the training pairs; `update` registers
texts that are new, and `finish_update` takes one L-BFGS iteration on all of them, so that batches only
set the pace of the loop.
"""

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.pipeline import Pipe
from spacy.tokens import Doc
from spacy.training import Example, validate_examples
from spacy.vocab import Vocab
from thinc.api import noop

from spacy_hocrf.annotation.annotators import annotated, validated
from spacy_hocrf.annotation.groups import check_group_by, group_in
from spacy_hocrf.errors import Errors
from spacy_hocrf.joint.batches import group_batches, groups_apart, numbered
from spacy_hocrf.links.annotation import contents, gold_shares, linked
from spacy_hocrf.links.errors import LinkErrors
from spacy_hocrf.links.extensions import register_links, set_links
from spacy_hocrf.links.items import ItemFinder, Thread, refuse_link, registered
from spacy_hocrf.links.learning import LinkLearner, Text
from spacy_hocrf.links.model import (
    Choices,
    Keys,
    LinkModel,
    best_pairs,
    known_keys,
    normalized,
)
from spacy_hocrf.links.pairs import LinkPairs
from spacy_hocrf.links.saving import read_links, write_links
from spacy_hocrf.links.scorer import threads_of
from spacy_hocrf.links.templates import LinkFeatures, observe
from spacy_hocrf.pipeline import saved_settings
from spacy_hocrf.saving.archive import Payload
from spacy_hocrf.saving.storage import StoredPipe
from spacy_hocrf.types import SIGMA_RANGE, Vector, is_sigma
from spacy_hocrf.warnings import Warnings

__all__ = ["FoundLinks", "LinkPipe"]

FoundLinks = list[tuple[int, int, float]]
"""Item, target and probability of each link of a Doc, numbered as in `extensions`."""


class _Seen(NamedTuple):
    """The pairs of a training thread with their features and annotation."""

    keys: Keys  # [P, K]
    choices: Choices
    shares: Vector  # [P]
    contents: tuple[bytes, ...]
    links: int  # number of annotated links
    lost: int  # number of links that are not among the pairs
    said: tuple[int, ...]  # for each attribute that is read, the number of items with a value

    def text(self, model: LinkModel) -> Text:
        """Return the thread in the form that the model learns from."""
        return Text(model.rows(self.keys), self.choices, self.shares)


class LinkPipe(StoredPipe, Pipe):
    """`hocrf_links`; see the factory for its settings.

    RAISES (ValueError): H295 for items, pairs or features of the wrong type, H298 for an invalid sigma,
        H101 for a group_by that is not registered.
    """

    model: Any = noop()  # spaCy calls `finish_update` only of components with a model

    def __init__(
        self,
        vocab: Vocab,
        name: str,
        *,
        items: ItemFinder,
        pairs: LinkPairs,
        features: LinkFeatures,
        attribute: str,
        group_by: str | None = None,
        sigma: float = 1.0,
        scorer: Callable[..., Any] | None = None,
    ) -> None:
        for setting, value, kind, maker in (
            ("items", items, ItemFinder, "spacy-hocrf.SpanItems.v1"),
            ("pairs", pairs, LinkPairs, "spacy-hocrf.LinkPairs.v1"),
            ("features", features, LinkFeatures, "spacy-hocrf.LinkFeatures.v1"),
        ):
            if not isinstance(value, kind):
                found, expected = type(value).__name__, f"what {maker} makes"
                text = LinkErrors.H295.format(
                    setting=setting, name=name, found=found, expected=expected
                )
                raise ValueError(text)
        if not is_sigma(sigma):
            refuse_link("sigma", repr(sigma), SIGMA_RANGE, f"[components.{name}]")
        self.vocab = vocab
        self.name = name
        self.items, self.pairs, self.features = items, pairs, features
        self.attribute = attribute
        self.group_by = group_by
        self.sigma = sigma
        self.scorer = scorer
        self.cfg = {"attribute": attribute, "items": items, "group_by": group_by}
        self._learner: LinkLearner | None = None
        register_links(attribute)
        for attr in features.reads:
            if attr.startswith("_."):
                registered(attr[2:])
        check_group_by(group_by, name)

    @property
    def is_trainable(self) -> bool:
        """Return True: `spacy train` trains it."""
        return True

    # Training

    def initialize(self, get_examples: Callable[[], Iterable[Example]], *, nlp: Any = None) -> None:
        """Collect the features of the training corpus, and keep its pairs; the weights start at 0.

        get_examples (Callable[[], Iterable[Example]]): the training corpus.
        nlp (Optional[Language]): the pipeline; its annotating components run first, if they are
            fixed.
        RAISES (ValueError): H303 if there are no items with annotation, H299 for damaged
            annotation, H267 or H268 for a setting.
        """
        saved_settings.check_saved(nlp, self.name)
        read = annotated(get_examples, nlp, self.name)
        observed: list[_Seen] = []
        texts = 0
        for thread in threads_of(validated(read(), "LinkPipe.initialize"), self.group_by):
            texts += len(thread)
            seen = self._see(thread)
            if seen is not None:
                observed.append(seen)
        if not observed:
            raise ValueError(
                LinkErrors.H303.format(
                    found=texts, attribute=self.attribute, items=self.items.place, name=self.name
                )
            )
        lost, links = sum(seen.lost for seen in observed), sum(seen.links for seen in observed)
        if lost:
            text = Warnings.W031.format(found=lost, all=links, name=self.name)
            warnings.warn(text, stacklevel=2)
        for k, name in enumerate(self.features.reads):
            if not any(seen.said[k] for seen in observed):
                warnings.warn(Warnings.W032.format(found=name, name=self.name), stacklevel=2)
        keys = known_keys([seen.keys for seen in observed], self.features.min_count)
        learner = LinkLearner(LinkModel(keys, np.zeros(len(keys))), self.sigma)
        for seen in observed:
            learner.add(seen.contents, seen.text(learner.model), initial=True)
        self._learner = learner

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Any = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Register texts that are new and report the objective; the step is taken in
        `finish_update`.

        examples (Iterable[Example]): consecutive examples of one group are one text.
        drop (float): not used.
        sgd (Optional[Optimizer]): if given, calls `finish_update` at once.
        losses (Optional[Dict[str, float]]): updated with the objective of the whole corpus, in nats.
        RAISES (ValueError): H042 before `initialize`, H299 for damaged annotation.
        """
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        validate_examples(examples, "LinkPipe.update")
        learner = self._trained()
        for thread in threads_of(examples, self.group_by):
            seen = self._see(thread, learner)
            if seen is not None:
                learner.add(seen.contents, seen.text(learner.model))
        losses[self.name] = learner.loss
        if sgd is not None and sgd is not False:
            self.finish_update(sgd)
        return losses

    def finish_update(self, sgd: Any) -> None:
        """Take one iteration on the whole corpus; do nothing after convergence.

        sgd (Any): not used.
        RAISES (ValueError): H042 before `initialize`.
        """
        self._trained().step()

    def _see(self, thread: Sequence[Example], learner: LinkLearner | None = None) -> "_Seen | None":
        """Return what there is to learn from a thread; None if its links are unknown, or if it has no items
        or is part of a known one.
        """
        reference = Thread([example.reference for example in thread], self.items)
        group = group_in(thread[0], self.group_by)
        annotated_docs = contents(reference, self.attribute, group)
        if learner is not None and learner.is_part(annotated_docs):
            return None
        items = Thread([example.predicted for example in thread], self.items)
        links = linked(reference, self.attribute)
        if links is None or not len(items):
            return None
        pairs = self.pairs.find(items)
        shares, lost = gold_shares(items, pairs, links)
        keys = observe(self.features, items, pairs)
        said = tuple(map(items.says, self.features.reads))
        return _Seen(keys, pairs.choices, shares, annotated_docs, len(links), lost, said)

    # Prediction

    def __call__(self, doc: Doc) -> Doc | None:  # type: ignore[override]
        """Predict and annotate one Doc.

        RETURNS (Optional[Doc]): the same Doc; None after an error that the error handler ignores.
        """
        return next(self.pipe([doc]), None)

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Predict and annotate a stream of Docs.

        batch_size (int): least number of Docs per batch; with `group_by`, the last group is completed.
        """
        for docs, groups in group_batches(self._numbered(stream), batch_size):
            yield from self._annotated(docs, groups)

    def _annotated(self, docs: list[Doc], groups: NDArray[np.int64]) -> list[Doc]:
        """Link the Docs of some groups, and return them without the groups in which an error was handled."""
        try:
            self.set_annotations(docs, self._predict(docs, groups.tolist()))
            return docs
        except Exception as error:
            if groups[0] == groups[-1]:
                self.get_error_handler()(self.name, self, docs, error)
                return []
        return [doc for group in groups_apart(docs, groups) for doc in self._annotated(*group)]

    def predict(self, docs: Iterable[Doc]) -> list[FoundLinks]:
        """Return the most probable links of each Doc; the Docs are not changed.

        docs (Iterable[Doc]): consecutive Docs of one group are read together.
        RAISES (ValueError): H042 before training.
        """
        numbers = list(self._numbered(docs))
        return self._predict([doc for _, doc in numbers], [number for number, _ in numbers])

    def set_annotations(self, docs: Iterable[Doc], scores: Sequence[FoundLinks]) -> None:
        """Write links and their probabilities to their Docs."""
        for doc, links in zip(docs, scores):
            set_links(doc, self.attribute, links)

    def _numbered(self, docs: Iterable[Doc]) -> Iterator[tuple[int, Doc]]:
        return numbered(docs, self.group_by, most=sys.maxsize, name=self.name)

    def _predict(self, docs: Sequence[Doc], groups: Sequence[int]) -> list[FoundLinks]:
        model = self._trained().model
        links_of: list[FoundLinks] = [[] for _ in docs]
        first = 0  # number of the thread's first Doc
        for _, members in groupby(zip(groups, docs), key=lambda pair: pair[0]):
            thread = Thread([doc for _, doc in members], self.items)
            pairs = self.pairs.find(thread)
            scores = model.scores(observe(self.features, thread, pairs))
            best = best_pairs(scores, pairs.choices)
            probabilities = normalized(scores, pairs.choices)[1][best].tolist()
            source, target = pairs.source[best], pairs.target[best]
            number = np.searchsorted(thread.firsts, source, side="right") - 1
            counted = (column - thread.firsts[number] for column in (source, target))
            places = zip(number.tolist(), *(column.tolist() for column in counted))
            for (doc, i, j), probability in zip(places, probabilities):
                links_of[first + doc].append((i, j, probability))
            first += len(thread.docs)
        return links_of

    def _trained(self) -> LinkLearner:
        """The learner. RAISES (ValueError): H042 before initialization."""
        if self._learner is None:
            raise ValueError(Errors.H042)
        return self._learner

    # Persistence

    def _payload(self) -> Payload:
        model = None if self._learner is None else self._learner.model
        return write_links(model, self.features, self.pairs)

    def _become(self, payload: Payload) -> None:
        model = read_links(payload, self.features, self.pairs, self.name)
        self._learner = None if model is None else LinkLearner(model, self.sigma)

    def _untrained(self) -> Callable[[], "LinkPipe"]:
        names = ("items", "pairs", "features", "attribute", "group_by", "sigma", "scorer")
        settings = {name: getattr(self, name) for name in names}
        return partial(type(self), self.vocab, self.name, **settings)
