"""The component of a pipeline that a command is about."""

from collections.abc import Sequence

from spacy.language import Language
from spacy.tokens import Doc

from spacy_hocrf.cli.compare import bare_docs
from spacy_hocrf.cli.counts import EntsScorer, Scorer, SpansScorer, TagsScorer
from spacy_hocrf.cli.errors import CommandErrors
from spacy_hocrf.pipeline.component import SegmentationPipe
from spacy_hocrf.pipeline.targets import SpansTarget, TagsTarget, Target

__all__ = ["component_of", "ready_docs", "scorer_of"]


def component_of(nlp: Language, name: str | None) -> tuple[str, SegmentationPipe]:
    """A component of ours and its name.

    name (Optional[str]): None for the only one.
    RAISES (ValueError): H204 unless there is one of this name, or one at all.
    """
    ours = {each: pipe for each, pipe in nlp.pipeline if isinstance(pipe, SegmentationPipe)}
    if name is None and len(ours) == 1:
        return next(iter(ours.items()))
    if name is None or name not in ours:
        known = ", ".join(ours) or "none"
        raise ValueError(CommandErrors.H204.format(found=name or "none", known=known))
    return name, ours[name]


def ready_docs(nlp: Language, docs: Sequence[Doc], component: str) -> list[Doc]:
    """The tokens of some documents, with what the components before this one say about them."""
    later = nlp.pipe_names[nlp.pipe_names.index(component) :]
    with nlp.select_pipes(disable=later):
        return list(nlp.pipe(bare_docs(nlp.vocab, docs)))


def scorer_of(target: Target) -> Scorer:
    """Where the annotation is that a component learns from."""
    if isinstance(target, SpansTarget):
        return SpansScorer(target.spans_key)
    return TagsScorer() if isinstance(target, TagsTarget) else EntsScorer()
