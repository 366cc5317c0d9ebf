"""The config blocks of document-level patterns: each function here is one `@misc` name, and returns
global templates.

    [components.hocrf.global_features]
    @misc = "spacy-hocrf.GlobalFeatures.v1"

    [components.hocrf.global_features.*.phrases]
    @misc = "spacy-hocrf.IdenticalPhrases.v1"
    max_length = 3

One template alone may also stand for itself.
"""

import math
from collections.abc import Sequence

from spacy_hocrf.errors import Errors
from spacy_hocrf.features.tokens import check_attribute
from spacy_hocrf.joint.templates import (
    GlobalTemplate,
    GroupConsistencyTemplate,
    IdenticalPhrasesTemplate,
    IdenticalWordsTemplate,
)

__all__ = [
    "make_global_features",
    "make_group_consistency",
    "make_identical_phrases",
    "make_identical_words",
]


def make_global_features(*templates: Sequence[GlobalTemplate]) -> list[GlobalTemplate]:
    """`spacy-hocrf.GlobalFeatures.v1`: all global templates of its `*` blocks.

    templates (Sequence[GlobalTemplate]): what the other functions of this module, or yours, return.
    RETURNS (list[GlobalTemplate]): the templates, in the order of the blocks.
    RAISES (ValueError): H096 if there is none, H097 for what is no global template, H098 if two
        have one name.
    """
    flat = [template for block in templates for template in block]
    if not flat:
        raise ValueError(Errors.H096)
    seen: set[str] = set()
    for template in flat:
        if not isinstance(template, GlobalTemplate):
            raise ValueError(Errors.H097.format(found=type(template).__name__))
        if template.name in seen:
            raise ValueError(Errors.H098.format(name=template.name))
        seen.add(template.name)
    return flat


def make_identical_phrases(
    attr: str = "LOWER",
    min_length: int = 1,
    max_length: int = 3,
    max_pairs: int = 20,
    skip_stopwords: bool = True,
    outside: bool = False,
    weight: float = 0.0,
) -> list[GlobalTemplate]:
    """`spacy-hocrf.IdenticalPhrases.v1`: two places with one phrase are both entities of one label.
    One feature a label.

    attr (str): phrases are identical if this token attribute is, token by token.
    min_length, max_length (int): tokens of a phrase.
    max_pairs (int): pairs of each phrase of a group, the nearest first; neighbours are paired in
        any case.
    skip_stopwords (bool): leave out phrases that end with a stop word, or begin or end with
        punctuation.
    outside (bool): a feature more: both places are unlabelled.
    weight (float): of these features until they are learnt or set, nats.
    RETURNS (list[GlobalTemplate]): one template.
    RAISES (ValueError): H023 or H024 for a bad attribute, H099 for a number out of range.
    """
    check_attribute(attr)
    _check_lengths(min_length, max_length)
    _check_least("max_pairs", max_pairs, 1)
    _check_weight(weight)
    return [
        IdenticalPhrasesTemplate(
            attr, min_length, max_length, max_pairs, skip_stopwords, outside, weight
        )
    ]


def make_group_consistency(
    attr: str = "LOWER",
    min_length: int = 1,
    max_length: int = 3,
    max_places: int = 10,
    skip_stopwords: bool = True,
    outside: bool = False,
    weight: float = 0.0,
) -> list[GlobalTemplate]:
    """`spacy-hocrf.GroupConsistency.v1`: all places with one phrase are entities of one label. One
    feature a label.

    max_places (int): where there are more, each stretch of so many neighbours must agree, and
    shares one place with the next. The other arguments are those of `make_identical_phrases`.
    RAISES (ValueError): H023 or H024 for a bad attribute, H099 for a number out of range.
    """
    check_attribute(attr)
    _check_lengths(min_length, max_length)
    _check_least("max_places", max_places, 2)
    _check_weight(weight)
    return [
        GroupConsistencyTemplate(
            attr, min_length, max_length, max_places, skip_stopwords, outside, weight
        )
    ]


def make_identical_words(
    attr: str = "ORTH",
    min_chars: int = 2,
    capitalised: bool = True,
    max_pairs: int = 20,
    skip_stopwords: bool = True,
    outside: bool = False,
    weight: float = 0.0,
) -> list[GlobalTemplate]:
    """`spacy-hocrf.IdenticalWords.v1`: two places with one word have one state, the edges of a
    skip-chain. One feature a state.

    The states of a semi-CRF are the labels, those of an encoded CRF "B-PERSON", "I-PERSON" and so
    on.

    attr (str): words are identical if this token attribute is.
    min_chars (int): shortest word.
    capitalised (bool): only words that begin with a capital letter.
    skip_stopwords (bool): leave out stop words and punctuation.
    outside (bool): a feature more: both places are unlabelled.
    The other arguments are those of `make_identical_phrases`.
    RAISES (ValueError): H023 or H024 for a bad attribute, H099 for a number out of range.
    """
    check_attribute(attr)
    _check_least("min_chars", min_chars, 1)
    _check_least("max_pairs", max_pairs, 1)
    _check_weight(weight)
    return [
        IdenticalWordsTemplate(
            attr, min_chars, capitalised, max_pairs, skip_stopwords, outside, weight
        )
    ]


def _check_lengths(least: int, most: int) -> None:
    _check_least("min_length", least, 1)
    if most < least:
        raise ValueError(
            Errors.H099.format(
                name="max_length", found=most, expected=f"at least min_length = {least}"
            )
        )


def _check_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise ValueError(Errors.H099.format(name=name, found=value, expected=f"at least {least}"))


def _check_weight(weight: float) -> None:
    if not math.isfinite(weight):
        raise ValueError(
            Errors.H099.format(name="weight", found=weight, expected="a finite number")
        )
