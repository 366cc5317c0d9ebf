"""The trainable component that links items: spans, sentences or Docs of a group.

`initialize` learns which numbers the templates give; `update` goes through the threads of a batch,
each decoded and, if it is wrong, followed by an update of the averaged perceptron. Nothing is kept of
the corpus. Predictions are made with the average of all weights that there have been.
"""

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
from spacy.pipeline import Pipe
from spacy.tokens import Doc
from spacy.training import Example, validate_examples
from spacy.vocab import Vocab

from spacy_hocrf.annotation.annotators import annotated, validated
from spacy_hocrf.annotation.groups import GROUP, register
from spacy_hocrf.errors import Errors
from spacy_hocrf.graph.perceptron import GraphPerceptron
from spacy_hocrf.joint.batches import group_batches, numbered
from spacy_hocrf.links.annotation import gold_states, linked
from spacy_hocrf.links.decoding import FoundLinks, LinkDecoder, links_by_doc
from spacy_hocrf.links.errors import LinkErrors
from spacy_hocrf.links.extensions import register_links, set_links, set_proof
from spacy_hocrf.links.items import ItemFinder, Thread, registered
from spacy_hocrf.links.model import LinkModel, ObservedThread, known_keys
from spacy_hocrf.links.one_each import thinned
from spacy_hocrf.links.pairs import LinkPairs
from spacy_hocrf.links.saving import read_links, to_payload
from spacy_hocrf.links.scorer import threads_of
from spacy_hocrf.links.tasks import LinkTask
from spacy_hocrf.links.templates import LinkFeatures, observe
from spacy_hocrf.pipeline import saved_settings
from spacy_hocrf.saving.archive import Payload
from spacy_hocrf.saving.storage import StoredPipe
from spacy_hocrf.warnings import Warnings

__all__ = ["LinkPipe"]


class LinkPipe(StoredPipe, Pipe):
    """`hocrf_links`; see the factory for its settings.

    RAISES (ValueError): H295 for items, pairs, features or a decoder of another kind, H298 for an
        order that cannot be, H306 for a group_by that no Doc has.
    """

    model = None  # no layer of thinc: `update` takes the steps itself

    def __init__(
        self,
        vocab: Vocab,
        name: str,
        *,
        items: ItemFinder,
        pairs: LinkPairs,
        features: LinkFeatures,
        decoder: LinkDecoder,
        attribute: str,
        group_by: str | None = None,
        order: int = 2,
        bounded: bool = False,
        scorer: Callable[..., Any] | None = None,
    ) -> None:
        for setting, value, kind, known in (
            ("items", items, ItemFinder, "spacy-hocrf.SpanItems.v1"),
            ("pairs", pairs, LinkPairs, "spacy-hocrf.LinkPairs.v1"),
            ("features", features, LinkFeatures, "spacy-hocrf.LinkFeatures.v1"),
            ("decoder", decoder, LinkDecoder, "spacy-hocrf.LinkDecoder.v1"),
        ):
            if not isinstance(value, kind):
                found, expected = type(value).__name__, f"what {known} makes"
                text = LinkErrors.H295.format(
                    setting=setting, name=name, found=found, expected=expected
                )
                raise ValueError(text)
        if order not in (1, 2, 3):
            block = f"[components.{name}]"
            text = LinkErrors.H298.format(
                name="order", found=order, expected="1, 2 or 3", block=block
            )
            raise ValueError(text)
        self.vocab = vocab
        self.name = name
        self.items, self.pairs, self.features, self.decoder = items, pairs, features, decoder
        self.attribute = attribute
        self.group_by = group_by
        self.order = order
        self.bounded = bounded
        self.scorer = scorer
        self.cfg = {"attribute": attribute, "items": items, "group_by": group_by}
        self._perceptron: GraphPerceptron | None = None
        self._learnt: LinkModel | None = None  # its weights are those of predictions
        self._averaged = True  # are they the average of the perceptron as it is now?
        self._register()

    def _register(self) -> None:
        register_links(self.attribute)
        for name in self.features.reads:
            if name.startswith("_."):
                registered(name[2:])
        if self.group_by == GROUP:
            register(GROUP)
        elif self.group_by is not None and not Doc.has_extension(self.group_by):
            raise ValueError(LinkErrors.H306.format(found=self.group_by, name=self.name))

    @property
    def is_trainable(self) -> bool:
        """Return True: `spacy train` trains it."""
        return True

    # Training

    def initialize(self, get_examples: Callable[[], Iterable[Example]], *, nlp: Any = None) -> None:
        """Learn which numbers the templates give; the weights start at 0.

        get_examples (Callable[[], Iterable[Example]]): the training corpus.
        nlp (Optional[Language]): the pipeline; its annotating components run first, if they are
            fixed.
        RAISES (ValueError): H303 if there are no items with annotation, H299 for damaged
            annotation, H267 or H268 for a setting.
        """
        saved_settings.check(nlp, self.name)
        read = annotated(get_examples, nlp, self.name)
        seen: list[list[Any]] = [[] for _ in range(self.order)]
        texts = lost = links = 0
        said = dict.fromkeys(self.features.reads, 0)
        for thread in threads_of(validated(read(), "LinkPipe.initialize"), self.group_by):
            texts += len(thread)
            items, wanted = self._annotated(thread)
            if wanted is None or not len(items):
                continue
            grid = self.pairs.grid(items)
            lost += gold_states(items, grid, wanted)[1]
            links += len(wanted)
            for keys, more in zip(seen, observe(self.features, items, grid, self.order)[0]):
                keys.append(more)
            for name in said:
                said[name] += items.says(name)
        if not any(map(len, seen)):
            raise ValueError(
                LinkErrors.H303.format(
                    found=texts, attribute=self.attribute, items=self.items.place, name=self.name
                )
            )
        if lost:
            text = Warnings.W031.format(found=lost, all=links, name=self.name)
            warnings.warn(text, stacklevel=2)
        for name, times in said.items():
            if not times:
                warnings.warn(Warnings.W032.format(found=name, name=self.name), stacklevel=2)
        known = tuple(known_keys(each, self.features.min_count) for each in seen)
        empty = LinkModel(known, tuple(self.features.scales[: self.order]), np.zeros(0))
        self._adopt(replace(empty, weights=np.zeros(int(empty.ends[-1]))))

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Any = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Go through the threads of a batch: neighbours of one group, or each Doc by itself.

        drop (float), sgd (Any): not used.
        losses (Optional[Dict[str, float]]): takes the number of wrong pairs.
        RAISES (ValueError): H042 before `initialize`, H299 for damaged annotation.
        """
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        validate_examples(examples, "LinkPipe.update")
        if self._perceptron is None or self._learnt is None:
            raise ValueError(Errors.H042)
        tasks = []
        for thread in threads_of(examples, self.group_by):
            items, wanted = self._annotated(thread)
            if wanted is not None and len(items):
                observed = self._observed(self._learnt, items)
                gold = gold_states(items, observed.grid, wanted)[0]
                one_each = self.pairs.one_each
                gold = thinned(observed.grid, gold) if one_each else gold
                tasks.append(LinkTask(self._learnt, observed, gold, self.decoder, one_each))
        losses[self.name] += self._perceptron.learn(tasks).loss
        self._averaged = False
        return losses

    def finish_update(self, sgd: Any) -> None:
        """Nothing: `update` has taken the step."""

    def _annotated(self, thread: Sequence[Example]) -> tuple[Thread, Any]:
        """The items of the predicted Docs, and the annotated links; None for unknown ones."""
        items = Thread([example.predicted for example in thread], self.items)
        reference = Thread([example.reference for example in thread], self.items)
        return items, linked(reference, self.attribute)

    # Prediction

    def __call__(self, doc: Doc) -> Doc | None:  # type: ignore[override]
        """Predict and annotate one Doc.

        RETURNS (Optional[Doc]): the same; None after an error that the error handler lets pass.
        """
        return next(self.pipe([doc]), None)

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Predict and annotate a stream of Docs.

        batch_size (int): Docs at a time; with `group_by`, as many more as complete a group.
        """
        handle_error = self.get_error_handler()
        for docs, groups in group_batches(self._numbered(stream), batch_size):
            try:
                self.set_annotations(docs, self._predict(docs, groups.tolist()))
                yield from docs
            except Exception as error:
                handle_error(self.name, self, docs, error)

    def predict(self, docs: Iterable[Doc]) -> list[FoundLinks]:
        """The links of each Doc; the Docs are not changed.

        docs (Iterable[Doc]): neighbours of one group are decoded together.
        RAISES (ValueError): H042 before training.
        """
        numbers = list(self._numbered(docs))
        return self._predict([doc for _, doc in numbers], [number for number, _ in numbers])

    def set_annotations(self, docs: Iterable[Doc], scores: Sequence[FoundLinks]) -> None:
        """Write links to their Docs, and what is proved of them."""
        for doc, found in zip(docs, scores):
            set_links(doc, self.attribute, found.links)
            set_proof(doc, self.attribute, found.gap, found.certificate, found.trace)

    def _numbered(self, docs: Iterable[Doc]) -> Iterator[tuple[int, Doc]]:
        return numbered(docs, self.group_by, most=sys.maxsize, name=self.name)

    def _predict(self, docs: Sequence[Doc], groups: Sequence[int]) -> list[FoundLinks]:
        model = self._trained()
        found: list[FoundLinks] = []
        for _, members in groupby(zip(groups, docs), key=lambda pair: pair[0]):
            thread = Thread([doc for _, doc in members], self.items)
            observed = self._observed(model, thread)
            grid = observed.grid
            tables = model.tables(observed, model.weights)
            decoding = self.decoder.decode(grid, tables, self.pairs.one_each)
            on = decoding.assignment == 1
            trace = decoding.trace if self.decoder.trace else None
            found += (
                FoundLinks(links, decoding.gap, decoding.certificate, trace)
                for links in links_by_doc(grid.source[on], grid.target[on], thread.firsts)
            )
        return found

    def _observed(self, model: LinkModel, thread: Thread) -> ObservedThread:
        grid = self.pairs.grid(thread)
        seen, sections = observe(self.features, thread, grid, self.order)
        return model.observed(grid, sections, seen)

    def _trained(self) -> LinkModel:
        """The model with the weights of predictions. RAISES (ValueError): H042."""
        if self._learnt is None or self._perceptron is None:
            raise ValueError(Errors.H042)
        if not self._averaged:
            self._learnt = replace(self._learnt, weights=self._perceptron.average)
            self._averaged = True
        return self._learnt

    # Persistence

    def _payload(self) -> Payload:
        model = None if self._learnt is None else self._trained()
        return to_payload(model, self.features, self.order)

    def _become(self, payload: Payload) -> None:
        self._adopt(read_links(payload, self.features, self.order, self.name))

    def _adopt(self, model: LinkModel | None) -> None:
        self._learnt = model
        self._perceptron = (
            None if model is None else GraphPerceptron([], model.weights, bounded=self.bounded)
        )
        self._averaged = True

    def _untrained(self) -> Callable[[], "LinkPipe"]:
        names = ("items", "pairs", "features", "decoder", "attribute", "group_by", "order")
        settings = {name: getattr(self, name) for name in (*names, "bounded", "scorer")}
        return partial(type(self), self.vocab, self.name, **settings)
