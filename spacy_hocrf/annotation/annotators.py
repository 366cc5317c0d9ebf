"""What other components write before this one learns.

spaCy lets the annotating components of `[training]` run before every update, but not before a component
is initialized. Those that are fixed, since they are frozen or not trainable at all, write the same then as
later, so they run on what is learnt from at once: features, and settings that are "auto", are of what
will be there. From then on `nlp.update` need not run them on these texts again (`OnceAnnotated`).
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from spacy import attrs
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example, validate_examples
from spacy.util import _pipe, minibatch

__all__ = ["OnceAnnotated", "all_have_written", "annotated", "state_of", "validated"]

TOGETHER = 64
"""Texts that a component gets together."""

ATTRS = "ORTH SPACY NORM LEMMA TAG POS MORPH HEAD DEP SENT_START ENT_IOB ENT_TYPE ENT_ID ENT_KB_ID"
STORED = [attrs.IDS[name] for name in ATTRS.split()]
"""All that a Doc stores of a token."""

MOST_KEPT = 200_000
"""Tokens of Docs that are kept from one evaluation to the next, some 500 bytes each."""

BATCHES: Callable[..., Any] = minibatch
Read = Callable[[], Iterable[Example]]


def annotated(
    read: Read, nlp: Language | None, name: str, note: Callable[[Example], None] | None = None
) -> Read:
    """Examples whose predicted Docs have what the fixed annotating components in front of a component
    write.

    read (Callable[[], Iterable[Example]]): the examples, which are not changed.
    nlp (Optional[Language]): the pipeline.
    name (str): of the component.
    note (Optional[Callable[[Example], None]]): is shown every example before they write.
    RETURNS (Callable[[], Iterable[Example]]): others with the same references, or `read` itself if no
        component writes anything.
    """
    pipes = [] if nlp is None else [nlp.get_pipe(other) for other in _fixed(nlp, name)]
    return (lambda: _annotated(read(), pipes, note)) if pipes else read


def all_have_written(nlp: Language, name: str) -> bool:
    """Are all annotating components in front of a component fixed, so that no more is to come in
    training?
    """
    return len(_fixed(nlp, name)) == len(_annotators(nlp, name))


def _annotators(nlp: Language, name: str) -> list[str]:
    """Names of the annotating components in front of a component, in their order."""
    annotating = nlp.config.get("training", {}).get("annotating_components", ())
    return _in_front(nlp.component_names, name, annotating)


def _in_front(names: list[str], name: str, annotating: Iterable[str]) -> list[str]:
    before = names[: names.index(name)] if name in names else []
    return [other for other in before if other in annotating]


def _fixed(nlp: Language, name: str) -> list[str]:
    """Names of those that training does not change."""
    frozen = {*nlp.config.get("training", {}).get("frozen_components", ())}
    return [
        other
        for other in _annotators(nlp, name)
        if other in frozen or not getattr(nlp.get_pipe(other), "is_trainable", False)
    ]


class OnceAnnotated:
    """Training without reading a text again: in `update` components annotate only for those in training that
    may not know the texts yet, in `evaluate` fixed ones only texts that they have not just been given.

    nlp (Language): the pipeline; calls of its two methods of these names come here from now on.
    """

    def __init__(self, nlp: Language) -> None:
        self._nlp = nlp
        # by name: a component that knows texts, and who had written to them
        self._known: dict[str, tuple[Any, list[str]]] = {}
        self._kept: dict[str, _Kept] = {}  # those, for evaluations
        self._updated = False  # since the last of them

    @classmethod
    def begin(cls, nlp: Language, name: str) -> None:
        """From now on, trust `knows(examples)` of a component: it was initialized with these texts, as they
        were before the fixed annotating components in front of it wrote to them.
        """
        writers = _fixed(nlp, name)
        update = vars(nlp).setdefault("update", cls(nlp).update) if writers else None
        once = getattr(update, "__self__", None)
        if isinstance(once, cls):
            vars(nlp).setdefault("evaluate", once.evaluate)
            once._known[name] = nlp.get_pipe(name), writers

    def update(self, examples: Iterable[Example], _: Any = None, **settings: Any) -> Any:
        """The arguments and the result are those of `Language.update`."""
        nlp, examples = self._nlp, list(examples)
        excluded, annotates = settings.get("exclude", ()), {*settings.get("annotates", ())}
        trained = {
            name: pipe
            for name, pipe in nlp.pipeline
            if name not in excluded and hasattr(pipe, "update")
        }
        for name, (_known, writers) in [*self._known.items()]:
            if not trained.keys().isdisjoint(writers):  # not so fixed after all
                del self._known[name]
        fixed = {writer for _known, writers in self._known.values() for writer in writers}
        self._kept = {
            name: self._kept.get(name) or _Kept(nlp, name, pipe)
            for name, pipe in nlp.pipeline
            if name in fixed and not hasattr(pipe, "add_patterns")  # a ruler may be given others
        }
        self._updated = True
        if annotates and all(self._knows(*each, annotates, examples) for each in trained.items()):
            settings["annotates"] = ()
        return type(nlp).update(nlp, examples, _, **settings)

    def evaluate(self, examples: Iterable[Example], **settings: Any) -> Any:
        """The arguments and the result are those of `Language.evaluate`."""
        nlp = self._nlp
        own: list[Any] = nlp._components
        kept = self._kept if self._updated else {}  # nobody may have changed them since
        self._updated = False
        nlp._components = [(name, kept.get(name, pipe)) for name, pipe in own]
        try:
            return type(nlp).evaluate(nlp, examples, **settings)
        finally:
            nlp._components = own

    def _knows(
        self, name: str, pipe: Any, annotates: Iterable[str], examples: list[Example]
    ) -> bool:
        known, writers = self._known.get(name, (None, []))
        same = pipe is known and writers == _in_front(self._nlp.pipe_names, name, annotates)
        return same and bool(pipe.knows(examples))


class _Kept:
    """A component that always writes the same, and keeps what it has written.

    nlp, name, own (Language, str, Any): the component, and where it is.
    """

    def __init__(self, nlp: Language, name: str, own: Any) -> None:
        self._known = nlp, name, own
        self._docs: dict[bytes, Doc] = {}
        self._room = MOST_KEPT

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._known[2], name)

    def pipe(self, stream: Iterable[Doc], **settings: Any) -> Iterator[Doc]:
        """Docs with what it writes to them, in order."""
        nlp, name, own = self._known
        batches: Iterable[list[Doc]] = BATCHES(stream, TOGETHER)
        for docs in batches:
            states = [state_of(doc) for doc in docs]
            kept = [None if state is None else self._docs.get(state) for state in states]
            new = [doc for doc, before in zip(docs, kept) if before is None]
            done = [*_pipe(new, own, name, nlp.default_error_handler, settings)]
            whole = len(done) == len(new)  # the error handler has let none pass
            written = iter(done)
            for state, before in zip(states, kept):
                doc = before.copy() if before is not None else next(written, None)
                if before is None and doc is not None and whole and state is not None:
                    self._keep(state, doc)
                if doc is not None:
                    yield doc

    def _keep(self, state: bytes, doc: Doc) -> None:
        if len(doc) <= self._room:
            self._docs[state] = doc.copy()
            self._room -= len(doc)


def state_of(doc: Doc) -> bytes | None:
    """Equal for Docs to which the same was written; None where that cannot be told."""
    if not (doc.user_data or doc.cats or len(doc.spans) or doc.tensor.size):
        return bytes(doc.to_array(STORED).tobytes())
    try:
        return bytes(doc.to_bytes())
    except Exception:  # an extension attribute that cannot be stored
        return None


def _annotated(
    examples: Iterable[Example], pipes: list[Any], note: Callable[[Example], None] | None
) -> Iterator[Example]:
    batches: Iterable[list[Example]] = BATCHES(examples, TOGETHER)
    for some in batches:
        if note is not None:
            for example in some:
                note(example)
        docs = [example.predicted.copy() for example in some]
        for pipe in pipes:
            docs = list(pipe.pipe(docs)) if hasattr(pipe, "pipe") else [pipe(doc) for doc in docs]
        for doc, example in zip(docs, some):
            yield Example(doc, example.reference)


def validated(examples: Iterable[Example], method: str) -> Iterator[Example]:
    """The examples one by one, so that nobody need hold them all."""
    for example in examples:
        validate_examples([example], method)
        yield example
