"""What other components write before this one learns.

spaCy lets the annotating components of `[training]` run before every update, but not before a component
is initialized. Those that are fixed, since they are frozen or not trainable at all, write the same then as
later, so they run on what is learnt from at once: features, and settings that are "auto", are of what
will be there.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from spacy.language import Language
from spacy.training import Example, validate_examples
from spacy.util import minibatch

__all__ = ["all_have_written", "annotated", "validated"]

TOGETHER = 64
"""Texts that a component gets together."""

BATCHES: Callable[..., Any] = minibatch
Read = Callable[[], Iterable[Example]]


def annotated(read: Read, nlp: Language | None, name: str) -> Read:
    """Examples whose predicted Docs have what the fixed annotating components in front of a component
    write.

    read (Callable[[], Iterable[Example]]): the examples, which are not changed.
    nlp (Optional[Language]): the pipeline.
    name (str): of the component.
    RETURNS (Callable[[], Iterable[Example]]): others with the same references, or `read` itself if no
        component writes anything.
    """
    pipes = [] if nlp is None else _fixed(nlp, name)
    return (lambda: _annotated(read(), pipes)) if pipes else read


def all_have_written(nlp: Language, name: str) -> bool:
    """Are all annotating components in front of a component fixed, so that no more is to come in
    training?
    """
    return len(_fixed(nlp, name)) == len(_annotators(nlp, name))


def _annotators(nlp: Language, name: str) -> list[str]:
    """Names of the annotating components in front of a component, in their order."""
    names = nlp.component_names
    before = names[: names.index(name)] if name in names else []
    annotating = nlp.config.get("training", {}).get("annotating_components", ())
    return [other for other in before if other in annotating]


def _fixed(nlp: Language, name: str) -> list[Any]:
    """Annotating components before this one that training does not change."""
    frozen = {*nlp.config.get("training", {}).get("frozen_components", ())}
    pipes = [(other, nlp.get_pipe(other)) for other in _annotators(nlp, name)]
    return [
        pipe for other, pipe in pipes if other in frozen or not getattr(pipe, "is_trainable", False)
    ]


def _annotated(examples: Iterable[Example], pipes: list[Any]) -> Iterator[Example]:
    batches: Iterable[list[Example]] = BATCHES(examples, TOGETHER)
    for some in batches:
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
