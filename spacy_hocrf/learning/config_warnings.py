"""Warnings about probable mistakes: settings without effect, and features of things that no training text
has.

None of them is an error; each warning is given once, as soon as it is known.
"""

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain, islice

from spacy.language import Language
from spacy.training import Example

from spacy_hocrf.annotation.annotators import all_have_written
from spacy_hocrf.annotation.readers import group_keys
from spacy_hocrf.annotation.spans import annotated_places
from spacy_hocrf.features.presence import Watch, in_words, observed, said_in
from spacy_hocrf.features.spans import SpanTemplate
from spacy_hocrf.features.vectors import Vectors
from spacy_hocrf.learning.corpus import Corpus, check_groups
from spacy_hocrf.model.structure import Settings, Structure
from spacy_hocrf.types import CONST, LENGTH
from spacy_hocrf.warnings import Warnings

__all__ = [
    "check_annotation",
    "check_features",
    "check_initial_features",
    "check_settings",
    "check_teacher_groups",
    "noting_groups",
]

MAX_SEARCHED_TEXTS = 100
"""Number of texts that are searched for annotation in other places."""


def check_settings(settings: Settings, labels: Collection[str], tried: Collection[int]) -> None:
    """Warn of templates above the model's order, W011; of limits for unknown labels, W012; and of a
    semi-Markov model that has no features of segments but their words, W018.

    labels (Collection[str]): labels of the component.
    tried (Collection[int]): orders that "auto" may choose.
    """
    highest = max(tried) if settings.auto_order else settings.order
    left_out = [template for template in settings.templates if template.order > highest]
    if left_out:
        names = ", ".join(f"'{template.name}'" for template in left_out[:5])
        orders = ", ".join(map(str, sorted({template.order for template in left_out})))
        auto = f"'auto', which tries {', '.join(map(str, tried))}"
        found = auto if settings.auto_order else settings.order
        text = Warnings.W011.format(names=names, orders=orders, found=found)
        warnings.warn(text, stacklevel=3)
    limits = settings.max_length if isinstance(settings.max_length, Mapping) else {}
    if settings.encoding == "segments" and not any(
        template.part in (CONST, LENGTH) for template in settings.templates
    ):
        warnings.warn(Warnings.W018, stacklevel=3)
    unknown = [label for label in limits if label not in labels]
    if unknown:
        known = ", ".join(labels)
        text = Warnings.W012.format(found=", ".join(unknown), known=known)
        warnings.warn(text, stacklevel=3)


def noting_groups(examples: Iterable[Example], groups: set[str]) -> Iterator[Example]:
    """Pass examples through, adding the names of their span groups to the set."""
    for example in examples:
        groups.update(group_keys(example.reference))
        yield example


def check_teacher_groups(teachers: Iterable[str], groups: Collection[str], name: str) -> None:
    """Warn of teachers that no text has, W052.

    groups (Collection[str]): names of all existing span groups. name (str): name of the component.
    """
    for key in teachers:
        if key not in groups:
            known = ", ".join(sorted(groups)) or "none"
            text = Warnings.W052.format(key=key, name=name, known=known)
            warnings.warn(text, stacklevel=3)


def check_annotation(
    corpus: Corpus,
    unannotated: int,
    name: str,
    place: str,
    read: Callable[[], Iterable[Example]],
) -> None:
    """Warn of texts without annotation, W004; and if no text has any, of annotation in other places, W017.

    unannotated (int): number of texts that are not in the corpus because they have no annotation.
    name, place (str): name of the component, and the places where it looks for annotation.
    read (Callable[[], Iterable[Example]]): reads all examples.
    """
    if len(corpus):
        if unannotated:
            warnings.warn(Warnings.W004.format(found=unannotated, name=name), stacklevel=3)
        return
    places = (annotated_places(example.reference) for example in islice(read(), MAX_SEARCHED_TEXTS))
    others = [*dict.fromkeys(chain.from_iterable(places))]
    if others:
        text = Warnings.W017.format(place=place, found=", ".join(others))
        warnings.warn(text, stacklevel=3)


def check_initial_features(
    structure: Structure, corpus: Corpus, nlp: Language | None, name: str
) -> Watch | None:
    """Run `check_features` without span groups as soon as training begins, unless other components have yet
    to write.

    nlp (Optional[Language]): the pipeline; None if it is not known.
    name (str): name of the component.
    """
    if nlp is None or not structure.ready or not all_have_written(nlp, name):
        return None
    counts = observed(structure.index)
    for template in structure.settings.templates:
        if isinstance(template, SpanTemplate):
            counts.pop(f"spans:{template.key}", None)
    return _checked_sources(structure, corpus, counts, None)


def check_features(structure: Structure, corpus: Corpus, before: Watch | None) -> Watch | None:
    """Warn of templates and dense scores that read something that no training text has, W013 and W016.

    It is called late, since annotating components write after `initialize`.

    before (Optional[Watch]): result of an earlier check, whose warnings are not repeated.
    RETURNS (Optional[Watch]): to check new texts against; None without features.
    RAISES (ValueError): H182 if a span group that a template reads is in no document.
    """
    check_groups(corpus, structure.settings.templates)
    if not structure.ready:
        return None
    return _checked_sources(structure, corpus, observed(structure.index), before)


def _checked_sources(
    structure: Structure, corpus: Corpus, counts: dict[str, int], before: Watch | None
) -> Watch:
    """Warn of sources without observations, and of missing arrays."""
    for source in [source for source, times in counts.items() if not times]:
        if any(said_in(corpus.batch([document]), source) for document in corpus.documents):
            del counts[source]  # it has no features yet, or only too rare ones
        elif before is None or source not in before.empty:
            text = Warnings.W013.format(source=in_words(source), found=len(corpus))
            warnings.warn(text, stacklevel=4)
    without = [*_without_arrays(structure, corpus)]
    for name in without:
        if before is None or name not in before.empty:
            warnings.warn(Warnings.W016.format(name=name, found=len(corpus)), stacklevel=4)
    return Watch(counts, len(corpus), without)


def _without_arrays(structure: Structure, corpus: Corpus) -> Iterator[str]:
    """Yield the names of dense scores whose arrays are all zero, or have no word of the corpus."""
    for name, score in structure.settings.dense:
        if not isinstance(score, Vectors):
            continue
        if score.words is not None:
            has_values = structure.words is None or (structure.words != len(score.words)).any()
        else:
            batches = corpus.batches(corpus.documents, learn=True)
            has_values = any(score.inputs(batch)[:, :-1].any() for _, batch in batches)
        if not has_values:
            yield name
