"""What annotating components write before this one learns.

spaCy runs the annotating components of `[training]` before every update, but not before a component is
initialized. A fixed component (frozen, or not trainable) writes the same then as later, so fixed ones run
on the initialization texts at once: features, and settings that are "auto", see the annotation that
training will see. After that, `nlp.update` need not run them on these texts again (`OnceAnnotated`).
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from spacy import attrs
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example, validate_examples
from spacy.util import _pipe, minibatch

__all__ = ["OnceAnnotated", "all_have_written", "annotated", "state_of", "validated"]

BATCH_SIZE = 64
"""Texts in a batch that components get."""

NAMES = "ORTH SPACY NORM LEMMA TAG POS MORPH HEAD DEP SENT_START ENT_IOB ENT_TYPE ENT_ID ENT_KB_ID"
STORED_ATTRIBUTES = [attrs.IDS[name] for name in NAMES.split()]
"""Attributes of tokens that a Doc stores."""

MAX_CACHED_TOKENS = 200_000
"""Most tokens of the Docs that are kept from one evaluation to the next, about 700 bytes each."""

BATCHES: Callable[..., Any] = minibatch
Read = Callable[[], Iterable[Example]]


def annotated(
    read: Read, nlp: Language | None, name: str, note: Callable[[Example], None] | None = None
) -> Read:
    """Return a reader of examples whose predicted Docs have the annotation of the fixed annotating components
    in front of a component.

    read (Callable[[], Iterable[Example]]): the examples, which are not changed.
    nlp (Optional[Language]): the pipeline.
    name (str): name of the component.
    note (Optional[Callable[[Example], None]]): called with each example before the components run.
    RETURNS (Callable[[], Iterable[Example]]): copies with the same references, or `read` itself if no
        component writes anything.
    """
    pipes = [] if nlp is None else [nlp.get_pipe(other) for other in _fixed(nlp, name)]
    return (lambda: _annotated(read(), pipes, note)) if pipes else read


def all_have_written(nlp: Language, name: str) -> bool:
    """Are all annotating components in front of a component fixed, so that training will not change what
    they write?
    """
    return len(_fixed(nlp, name)) == len(_annotating(nlp, name))


class OnceAnnotated:
    """Avoids annotating texts again during training: `update` runs annotating components only if a trained
    component may not know the texts yet, `evaluate` runs fixed ones only on texts that are new to them.

    nlp (Language): the pipeline; its `update` and `evaluate` are replaced by the methods of this object.
    """

    def __init__(self, nlp: Language) -> None:
        self._nlp = nlp
        # by name: a component that knows its texts, and the names of the components that had written to them
        self._trained: dict[str, tuple[Any, list[str]]] = {}
        self._cached: dict[str, _CachedComponent] = {}  # fixed ones, with results for `evaluate`
        self._updated = False  # has `update` been called since the last evaluation?

    @classmethod
    def begin(cls, nlp: Language, name: str) -> None:
        """From now on, trust the component's `knows(examples)`: it was initialized with these texts, as they
        were before the fixed annotating components in front of it wrote to them.
        """
        writers = _fixed(nlp, name)
        update = vars(nlp).setdefault("update", cls(nlp).update) if writers else None
        once = getattr(update, "__self__", None)
        if isinstance(once, cls):
            vars(nlp).setdefault("evaluate", once.evaluate)
            once._trained[name] = nlp.get_pipe(name), writers

    def update(self, examples: Iterable[Example], _: Any = None, **settings: Any) -> Any:
        """Like `Language.update`, with the same arguments and result."""
        nlp, examples = self._nlp, list(examples)
        excluded, annotates = settings.get("exclude", ()), {*settings.get("annotates", ())}
        trained = {
            name: pipe
            for name, pipe in nlp.pipeline
            if name not in excluded and hasattr(pipe, "update")
        }
        for name, (_component, writers) in [*self._trained.items()]:
            if not trained.keys().isdisjoint(writers):  # they are trained after all
                del self._trained[name]
        fixed = {writer for _component, writers in self._trained.values() for writer in writers}
        self._cached = {
            name: self._cached.get(name) or _CachedComponent(nlp, name, pipe)
            for name, pipe in nlp.pipeline
            if name in fixed and not hasattr(pipe, "add_patterns")  # a ruler may get new patterns
        }
        self._updated = True
        if annotates and all(self._knows(*item, annotates, examples) for item in trained.items()):
            settings["annotates"] = ()
        return type(nlp).update(nlp, examples, _, **settings)

    def evaluate(self, examples: Iterable[Example], **settings: Any) -> Any:
        """Like `Language.evaluate`, with the same arguments and result."""
        nlp = self._nlp
        components: list[Any] = nlp._components
        cached = self._cached if self._updated else {}  # else components may have been changed
        self._updated = False
        nlp._components = [(name, cached.get(name, pipe)) for name, pipe in components]
        try:
            return type(nlp).evaluate(nlp, examples, **settings)
        finally:
            nlp._components = components

    def _knows(
        self, name: str, pipe: Any, annotates: Iterable[str], examples: list[Example]
    ) -> bool:
        component, writers = self._trained.get(name, (None, []))
        same = pipe is component and writers == _in_front(self._nlp.pipe_names, name, annotates)
        return same and bool(pipe.knows(examples))


class _CachedComponent:
    """A component that always writes the same annotation, and remembers what it has written.

    nlp, name, component (Language, str, Any): the pipeline, the component's name, and the component.
    """

    def __init__(self, nlp: Language, name: str, component: Any) -> None:
        self._nlp, self._name, self._component = nlp, name, component
        self._docs: dict[bytes, Doc] = {}
        self._free_tokens = MAX_CACHED_TOKENS

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._component, name)

    def pipe(self, stream: Iterable[Doc], **settings: Any) -> Iterator[Doc]:
        """Yield the Docs in order, with the component's annotation."""
        handler = self._nlp.default_error_handler
        batches: Iterable[list[Doc]] = BATCHES(stream, BATCH_SIZE)
        for docs in batches:
            states = [state_of(doc) for doc in docs]
            cached = [None if state is None else self._docs.get(state) for state in states]
            new = [doc for doc, before in zip(docs, cached) if before is None]
            annotated_docs = [*_pipe(new, self._component, self._name, handler, settings)]
            complete = len(annotated_docs) == len(new)  # the error handler has dropped none
            remaining = iter(annotated_docs)
            for state, before in zip(states, cached):
                doc = before.copy() if before is not None else next(remaining, None)
                if before is None and doc is not None and complete and state is not None:
                    self._cache(state, doc)
                if doc is not None:
                    yield doc

    def _cache(self, state: bytes, doc: Doc) -> None:
        if len(doc) <= self._free_tokens:
            self._docs[state] = doc.copy()
            self._free_tokens -= len(doc)


def state_of(doc: Doc) -> bytes | None:
    """Return bytes that are equal for Docs with equal annotation; None if the Doc cannot be serialised."""
    if not (doc.user_data or doc.cats or len(doc.spans) or doc.tensor.size):
        return bytes(doc.to_array(STORED_ATTRIBUTES).tobytes())
    try:
        return bytes(doc.to_bytes())
    except Exception:  # an extension attribute that cannot be stored
        return None


def validated(examples: Iterable[Example], method: str) -> Iterator[Example]:
    """Validate the examples one by one, so that they need not all be in memory."""
    for example in examples:
        validate_examples([example], method)
        yield example


def _annotating(nlp: Language, name: str) -> list[str]:
    """Names of the annotating components in front of a component, in their order."""
    annotating = nlp.config.get("training", {}).get("annotating_components", ())
    return _in_front(nlp.component_names, name, annotating)


def _in_front(names: list[str], name: str, annotating: Iterable[str]) -> list[str]:
    before = names[: names.index(name)] if name in names else []
    return [other for other in before if other in annotating]


def _fixed(nlp: Language, name: str) -> list[str]:
    """Names of the annotating components in front of a component that training does not change."""
    frozen = {*nlp.config.get("training", {}).get("frozen_components", ())}
    return [
        other
        for other in _annotating(nlp, name)
        if other in frozen or not getattr(nlp.get_pipe(other), "is_trainable", False)
    ]


def _annotated(
    examples: Iterable[Example], pipes: list[Any], note: Callable[[Example], None] | None
) -> Iterator[Example]:
    batches: Iterable[list[Example]] = BATCHES(examples, BATCH_SIZE)
    for batch in batches:
        if note is not None:
            for example in batch:
                note(example)
        docs = [example.predicted.copy() for example in batch]
        for pipe in pipes:
            docs = list(pipe.pipe(docs)) if hasattr(pipe, "pipe") else [pipe(doc) for doc in docs]
        for doc, example in zip(docs, batch):
            yield Example(doc, example.reference)
