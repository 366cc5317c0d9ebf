"""What is probably not meant: settings without effect, and features of what no training text has.

It works, so it is no error; each is told once, as soon as it is known.
"""

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain, islice

from spacy.language import Language
from spacy.training import Example

from spacy_hocrf.annotation.annotators import all_have_written
from spacy_hocrf.annotation.readers import groups_of
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
    "check_teachers",
    "noting",
]

ENOUGH = 100
"""Texts that show where annotation is."""


def check_settings(settings: Settings, labels: Collection[str], tried: Collection[int]) -> None:
    """Warn of templates that the model's order leaves out, W011; of limits for labels that there are
    not, W012; and of a semi-Markov model that knows nothing of segments but their words, W018.

    labels (Collection[str]): of the component.
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


def noting(examples: Iterable[Example], groups: set[str]) -> Iterator[Example]:
    """Examples as they come; names of the span groups that they have are added to the set."""
    for example in examples:
        groups.update(groups_of(example.reference))
        yield example


def check_teachers(teachers: Iterable[str], groups: Collection[str], name: str) -> None:
    """Warn of teachers that say nothing of any text, W052.

    groups (Collection[str]): names of all span groups that there are. name (str): of the component.
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
    """Warn of texts without annotation, W004; and, W017, where no text has some, of annotation that
    there is elsewhere.

    unannotated (int): texts that are not in the corpus, since they have none.
    name, place (str): of the component, and all places where it looks for annotation.
    read (Callable[[], Iterable[Example]]): all examples.
    """
    if len(corpus):
        if unannotated:
            warnings.warn(Warnings.W004.format(found=unannotated, name=name), stacklevel=3)
        return
    places = (annotated_places(example.reference) for example in islice(read(), ENOUGH))
    others = [*dict.fromkeys(chain.from_iterable(places))]
    if others:
        text = Warnings.W017.format(place=place, found=", ".join(others))
        warnings.warn(text, stacklevel=3)


def check_initial_features(
    structure: Structure, corpus: Corpus, nlp: Language | None, name: str
) -> Watch | None:
    """`check_features` as soon as training begins, unless other components have yet to write, and
    without span groups.

    nlp (Optional[Language]): the pipeline; None if it is not known.
    name (str): of the component.
    """
    if nlp is None or not structure.ready or not all_have_written(nlp, name):
        return None
    counts = observed(structure.index)
    for template in structure.settings.templates:
        if isinstance(template, SpanTemplate):
            counts.pop(f"spans:{template.key}", None)
    return _compared(structure, corpus, counts, None)


def check_features(structure: Structure, corpus: Corpus, before: Watch | None) -> Watch | None:
    """Warn of what templates and dense scores read and no training text has, W013 and W016.

    Components that annotate write after `initialize`, so this is asked late.

    before (Optional[Watch]): of an earlier check, which has warned already.
    RETURNS (Optional[Watch]): for texts to come; None without features.
    RAISES (ValueError): H182 if a span group that a template reads is in no document.
    """
    check_groups(corpus, structure.settings.templates)
    if not structure.ready:
        return None
    return _compared(structure, corpus, observed(structure.index), before)


def _compared(
    structure: Structure, corpus: Corpus, counts: dict[str, int], before: Watch | None
) -> Watch:
    """Warn of sources that say nothing, and of arrays that there are not."""
    for source in [source for source, times in counts.items() if not times]:
        if any(said_in(corpus.batch([document]), source) for document in corpus.documents):
            del counts[source]  # there are no features of it yet, or too rare ones
        elif before is None or source not in before.empty:
            text = Warnings.W013.format(source=in_words(source), found=len(corpus))
            warnings.warn(text, stacklevel=4)
    without = [*_without_arrays(structure, corpus)]
    for name in without:
        if before is None or name not in before.empty:
            warnings.warn(Warnings.W016.format(name=name, found=len(corpus)), stacklevel=4)
    return Watch(counts, len(corpus), without)


def _without_arrays(structure: Structure, corpus: Corpus) -> Iterator[str]:
    """Names of the dense scores whose arrays are zero throughout, or of no word of the corpus."""
    for name, score in structure.settings.dense:
        if not isinstance(score, Vectors):
            continue
        if score.words is not None:
            known = structure.words is None or (structure.words != len(score.words)).any()
        else:
            batches = corpus.batches(corpus.documents)
            known = any(score.inputs(batch)[:, :-1].any() for batch in batches)
        if not known:
            yield name
