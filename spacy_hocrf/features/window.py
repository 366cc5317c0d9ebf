"""The default features as one config block, `spacy-hocrf.Window.v1`: a combination of blocks in config.py.

The default has another name than `spacy-hocrf.Features.v1`, since confection merges a user's `*` blocks
into those of a default of the same name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from spacy_hocrf.errors import Errors
from spacy_hocrf.features.combined import Complete, Wider, make_features, make_label_patterns
from spacy_hocrf.features.config import (
    check_offsets,
    check_order,
    make_char_ngrams,
    make_conjunction,
    make_flags,
    make_segment,
    make_token,
)
from spacy_hocrf.features.errors import FeatureErrors
from spacy_hocrf.features.templates import Template
from spacy_hocrf.features.vectors import Vectors, make_vectors
from spacy_hocrf.types import AUTO

__all__ = ["ATTRS", "BIGRAMS", "make_window", "sides_of"]

OBSERVED = ("attrs", "prefix", "suffix", "bigrams", "flags")
"""Settings of `make_window` for observations of tokens."""
ATTRS = {False: ("NORM", "SHAPE"), True: ("NORM", "SHAPE", "ORTH")}
BIGRAMS = {False: ("FLAGS",), True: ("FLAGS", "SHAPE", "NORM")}


def make_window(
    attrs: Sequence[str] | None = None,
    window: int | Mapping[str, int] | None = None,
    prefix: Sequence[int] = (1, 2, 3, 4),
    suffix: Sequence[int] = (1, 2, 3, 4),
    bigrams: Sequence[str] | None = None,
    flags: Sequence[int] = (0,),
    boundaries: bool | Sequence[str] = True,
    lengths: bool = True,
    order: int | None = None,
    vectors: bool | str = AUTO,
    wide: bool | str = AUTO,
) -> list[Template | Vectors | Wider]:
    """`spacy-hocrf.Window.v1`, the default features: the words around a token, its letters, lengths
    and label patterns.

    attrs (Optional[Sequence[str]]): attributes of the tokens of the window; null for NORM and SHAPE, and ORTH
        if it is wide.
    window (Optional[Union[int, Dict[str, int]]]): number of tokens to either side, for all attributes or by
        attribute, 0 for those that are not named; null for 1 for the first attribute and 2 for the
        others, or, if it is wide, 2 for all but 0 for ORTH.
    prefix, suffix (Sequence[int]): sizes of the letter n-grams of the token itself, for the first of
        `attrs`.
    bigrams (Optional[Sequence[str]]): attributes that are observed at two neighbouring tokens together, at
        (-1, 0) and (0, 1); null for FLAGS, and SHAPE and NORM if it is wide.
    flags (Sequence[int]): offsets of the tokens whose `FLAGS` are observed, 0 for itself.
    boundaries (Union[bool, Sequence[str]]): repeat all of these observations for the first and the last
        token of a segment, or only some, named by their settings. Not useful for a CRF, whose segments have
        one token.
    lengths (bool): observe the segment's length in bins.
    order (Optional[int]): label patterns of up to `order` earlier segments, without observation;
        null: up to model.order.
    vectors (Union[bool, str]): score the word vectors of the vocabulary, as `spacy-hocrf.Vectors.v1`;
        "auto": if it has some when training begins.
    wide (Union[bool, str]): which values null stands for in `attrs`, `window` and `bigrams`; "auto" lets
        held-out texts decide where sigma or the order is chosen by them, and is false elsewhere.
    RETURNS (list[Union[Template, Vectors, Wider]]): the templates, and the score of vectors.
    RAISES (ValueError): H023, H024, H028 to H030, H032, H033, H037, H038, H141, H174 or H244 for
        arguments out of range.
    """
    if vectors not in (True, False, AUTO):
        raise ValueError(Errors.H174.format(found=repr(vectors)))
    if wide not in (True, False, AUTO):
        raise ValueError(FeatureErrors.H244.format(found=repr(wide)))
    at_ends, names = _at_ends(boundaries), set[str]()
    templates: list[Template | Vectors | Wider] = []
    for wider in (False, True) if wide else (False,):
        used = ATTRS[wider] if attrs is None else attrs
        sides = sides_of(used, window, wider)
        pairs = BIGRAMS[wider] if bigrams is None else bigrams
        for part in ("tokens", "start", "end"):
            observed = {
                "attrs": [t for attr in used for t in make_token([attr], sides[attr], [part])],
                "prefix": make_char_ngrams(used[0], prefix=prefix, parts=[part]) if prefix else [],
                "suffix": make_char_ngrams(used[0], suffix=suffix, parts=[part]) if suffix else [],
                "bigrams": _pairs(pairs, part),
                "flags": make_flags(window=flags, parts=[part]) if flags else [],
            }
            repeated = OBSERVED if part == "tokens" else at_ends
            new = [t for name in repeated for t in observed[name] if t.name not in names]
            templates += map(Wider, new) if wider and wide == AUTO else new
        names = {template.name for template in templates}
    if lengths:
        templates += make_segment(["LENGTH"])
    if order is not None:
        check_order(order)
    templates += make_label_patterns(order)
    if vectors:
        templates += [replace(each, optional=vectors == AUTO) for each in make_vectors()]
    return Complete(make_features(templates, basics=False))


def sides_of(
    attrs: Sequence[str], window: int | Mapping[str, int] | None, wide: bool
) -> dict[str, range]:
    """Return offsets by attribute. RAISES (ValueError): H023, H024, H030, H038 or H141."""
    if not attrs:
        raise ValueError(Errors.H030.format(name="attrs"))
    if window is None:
        window = {**dict.fromkeys(attrs, 2), attrs[0]: 2 if wide else 1}
        if wide and "ORTH" in attrs[1:]:
            window["ORTH"] = 0  # redundant given the neighbours' shape and norm
    sizes = window if isinstance(window, Mapping) else dict.fromkeys(attrs, window)
    for attr in sizes:
        if attr not in attrs:
            raise ValueError(Errors.H141.format(found=attr, known=", ".join(attrs)))
    check_offsets(sizes.values() or [0])
    return {attr: range(-sizes.get(attr, 0), sizes.get(attr, 0) + 1) for attr in attrs}


def _at_ends(boundaries: bool | Sequence[str]) -> list[str]:
    """The settings of OBSERVED that are repeated at both ends of a segment. RAISES (ValueError): H037 for
    others.
    """
    if isinstance(boundaries, bool):
        return [*OBSERVED] if boundaries else []
    for name in boundaries:
        if name not in OBSERVED:
            raise ValueError(Errors.H037.format(found=name, known=", ".join(OBSERVED)))
    return [name for name in OBSERVED if name in boundaries]


def _pairs(attrs: Sequence[str], part: str) -> list[Template]:
    """Conjunctions of each attribute of two neighbours."""
    return [
        template
        for attr in attrs
        for first, second in ((-1, 0), (0, 1))
        for template in make_conjunction([f"{attr}[{first}]", f"{attr}[{second}]"], [part])
    ]
