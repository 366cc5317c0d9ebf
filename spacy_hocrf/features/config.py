"""The feature templates' config blocks: each function here is registered under an `@misc` name, and
returns templates.

    [components.hocrf.model.features]
    @misc = "spacy-hocrf.Features.v1"

    [components.hocrf.model.features.*.words]
    @misc = "spacy-hocrf.Token.v1"
    attrs = ["NORM", "SHAPE"]
    window = [-1, 0, 1]
    parts = ["tokens", "start", "end"]

`Features.v1` is in combined.py; window.py has the default block, a combination of these.
"""

from collections.abc import Iterable, Sequence

from spacy.tokens import Token

from spacy_hocrf.errors import Errors
from spacy_hocrf.features.errors import FeatureErrors
from spacy_hocrf.features.flags import FLAGS
from spacy_hocrf.features.segments import LengthTemplate, TextTemplate, TransitionTemplate
from spacy_hocrf.features.templates import (
    PARTS,
    AttributeTemplate,
    FlagTemplate,
    NgramTemplate,
    PositionTemplate,
    RealTemplate,
    Template,
    parse_term,
)
from spacy_hocrf.features.tokens import check_attribute
from spacy_hocrf.types import END, MAX_ORDER, START, TOKEN, is_whole

__all__ = [
    "check_offsets",
    "check_order",
    "check_source",
    "checked_parts",
    "make_char_ngrams",
    "make_conjunction",
    "make_flags",
    "make_position",
    "make_real",
    "make_segment",
    "make_token",
    "make_transition",
]

MAX_OFFSET = 100
EVERYWHERE = ("tokens", "start", "end")
PLACES = {"FIRST": (START, 0), "LAST": (END, 0), "BEFORE": (START, -1), "AFTER": (END, 1)}


def make_token(
    attrs: Sequence[str],
    window: Sequence[int] = (0,),
    parts: Sequence[str] = EVERYWHERE,
    order: int = 0,
) -> list[Template]:
    """`spacy-hocrf.Token.v1`: observes each attribute at each offset separately.

    attrs (Sequence[str]): names of `spacy_hocrf.features.tokens.ATTRIBUTES`, "MORPH.Field" or
        "_.name".
    window (Sequence[int]): offsets from the observed token, 0 for itself. One position beyond either end of
        the text is observed as an edge.
    parts (Sequence[str]): any of "tokens" for every token of the segment, "start", "end", and
        "inner" for all but the first.
    order (int): earlier segments whose labels the features see.
    RETURNS (list[Template]): len(parts) · len(attrs) · len(window) templates.
    RAISES (ValueError): H023, H024, H030, H031, H032, H038 or H140.
    """
    _check_attributes(attrs, "attrs")
    check_offsets(window)
    check_order(order)
    return [
        AttributeTemplate(((attr, offset),), part, order)
        for part in checked_parts(parts)
        for attr in attrs
        for offset in window
    ]


def make_conjunction(
    terms: Sequence[str], parts: Sequence[str] = EVERYWHERE, order: int = 0
) -> list[Template]:
    """`spacy-hocrf.Conjunction.v1`: observes several attributes together.

    terms (Sequence[str]): such as ["NORM[-1]", "NORM[0]"]; the offset may be left out.
    parts (Sequence[str]): as in `make_token`.
    order (int): earlier segments whose labels the features see.
    RETURNS (list[Template]): one template per part.
    RAISES (ValueError): H023, H024, H026, H030, H031, H032, H038 or H140.
    """
    if not terms:
        raise ValueError(Errors.H030.format(name="terms"))
    check_order(order)
    parsed = tuple(parse_term(term) for term in terms)
    check_offsets([offset for _, offset in parsed])
    return [AttributeTemplate(parsed, part, order) for part in checked_parts(parts)]


def make_char_ngrams(
    attr: str = "NORM",
    prefix: Sequence[int] = (),
    suffix: Sequence[int] = (),
    inside: Sequence[int] = (),
    parts: Sequence[str] = EVERYWHERE,
    order: int = 0,
) -> list[Template]:
    """`spacy-hocrf.CharNgrams.v1`: observes character n-grams of the token.

    attr (str): string attribute whose letters are read.
    prefix, suffix, inside (Sequence[int]): sizes of the n-grams at the beginning, at the end, and
        anywhere.
    parts (Sequence[str]): as in `make_token`.
    order (int): earlier segments whose labels the features see.
    RETURNS (list[Template]): one template per part, kind and size.
    RAISES (ValueError): H023, H024, H030 to H033, or H140.
    """
    _check_attributes([attr], "attr")
    check_order(order)
    sizes = {"prefix": prefix, "suffix": suffix, "inside": inside}
    if not any(sizes.values()):
        raise ValueError(Errors.H030.format(name="prefix, suffix, inside"))
    if not all(_counts(size) for values in sizes.values() for size in values):
        raise ValueError(Errors.H033.format(found=sizes))
    return [
        NgramTemplate(attr, kind, n, part, order)
        for part in checked_parts(parts)
        for kind, values in sizes.items()
        for n in values
    ]


def make_flags(
    flags: Sequence[str] = FLAGS,
    window: Sequence[int] = (0,),
    parts: Sequence[str] = EVERYWHERE,
    order: int = 0,
) -> list[Template]:
    """`spacy-hocrf.Flags.v1`: observes which of some flags are true of the token.

    flags (Sequence[str]): names of `spacy_hocrf.features.tokens.FLAGS`; each flag that is true is one
        observation.
    window (Sequence[int]): offsets from the observed token; no flag is true beyond the text.
    parts (Sequence[str]): as in `make_token`.
    order (int): earlier segments whose labels the features see.
    RETURNS (list[Template]): one template per part and offset.
    RAISES (ValueError): H030, H031, H032, H038, H140 or H142.
    """
    if not flags:
        raise ValueError(Errors.H030.format(name="flags"))
    for flag in flags:
        if flag not in FLAGS:
            raise ValueError(Errors.H142.format(found=flag, known=", ".join(FLAGS)))
    check_offsets(window)
    check_order(order)
    return [
        FlagTemplate(tuple(flags), offset, part, order)
        for part in checked_parts(parts)
        for offset in window
    ]


def make_position(
    bins: int = 10, parts: Sequence[str] = EVERYWHERE, order: int = 0
) -> list[Template]:
    """`spacy-hocrf.Position.v1`: observes in which of `bins` equal parts of the Doc the token is.

    parts (Sequence[str]): as in `make_token`.
    order (int): earlier segments whose labels the features see.
    RETURNS (list[Template]): one template per part.
    RAISES (ValueError): H030 to H033, or H140.
    """
    check_order(order)
    if not _counts(bins):
        raise ValueError(Errors.H033.format(found=bins))
    return [PositionTemplate(bins, part, order) for part in checked_parts(parts)]


def make_real(
    source: str,
    window: Sequence[int] = (0,),
    parts: Sequence[str] = ("tokens",),
    order: int = 0,
) -> list[Template]:
    """`spacy-hocrf.Real.v1`: real-valued observations, one per dimension of an array.

    source (str): "tensor" (doc.tensor), "vector" (token.vector), or "_.name", an extension
        attribute with a number or an array.
    window (Sequence[int]): offsets from the observed token.
    parts (Sequence[str]): as in `make_token`.
    order (int): earlier segments whose labels the features see.
    RETURNS (list[Template]): one template per part and offset.
    RAISES (ValueError): H024, H030, H031, H032, H034, H038 or H140; at training or prediction H025
        or H027 for bad arrays.
    """
    check_source(source)
    check_offsets(window)
    check_order(order)
    return [
        RealTemplate(source, offset, part, order)
        for part in checked_parts(parts)
        for offset in window
    ]


def make_transition(
    order: int | None = 1, terms: Sequence[str] = (), copies: int = 1
) -> list[Template]:
    """`spacy-hocrf.Transition.v1`: patterns of `order` + 1 labels, alone or together with words.

    order (Optional[int]): number of earlier segments; 0 is the label's bias. null: a template for each order
        that the model has, from 1 on.
    terms (Sequence[str]): empty for the pattern alone; "FIRST.NORM" or "LAST.NORM" for the segment's
        first or last token, "BEFORE.NORM" or "AFTER.NORM" for the token before or after the segment
        ("BEFORE" is the previous segment's last word), "TOKENS.NORM" for each of its tokens.
        Several terms are observed together and must be at the same part.
    copies (int): number of identical features of each pattern; more than 1 weakens their prior.
    RETURNS (list[Template]): one template, or `copies` of a pattern alone.
    RAISES (ValueError): H023, H024, H026, H032, H033, H035, H036, H038 or H326.
    """
    if order is not None:
        check_order(order)
    if not _counts(copies):
        raise ValueError(Errors.H033.format(found=copies))
    if not terms:
        first = 1 if order is None else order
        return [TransitionTemplate(first, copy, every=order is None) for copy in range(copies)]
    if order is None:
        raise ValueError(FeatureErrors.H326.format(terms=list(terms)))
    places, parsed = set(), []
    for term in terms:
        place, _, attribute = term.partition(".")
        part, shift = (TOKEN, 0) if place == "TOKENS" else PLACES.get(place, (None, 0))
        if part is None or not attribute:
            raise ValueError(Errors.H035.format(term=term, known=", ".join([*PLACES, "TOKENS"])))
        name, offset = parse_term(attribute)
        places.add(part)
        parsed.append((name, offset + shift))
    if len(places) > 1:
        raise ValueError(Errors.H036.format(terms=list(terms)))
    check_offsets([offset for _, offset in parsed])
    return [AttributeTemplate(tuple(parsed), places.pop(), order)]


def make_segment(
    what: Sequence[str] = ("LENGTH", "FIRST", "LAST", "BEFORE", "AFTER"),
    attrs: Sequence[str] = ("NORM",),
    bins: Sequence[int] = (1, 2, 3, 4, 6, 9, 13),
    longest: int = 6,
    order: int = 0,
) -> list[Template]:
    """`spacy-hocrf.Segment.v1`: observes the segment as a whole.

    what (Sequence[str]): any of "LENGTH" (in bins), "FIRST" and "LAST" (its first and last token),
        "BEFORE" and "AFTER" (the tokens around it), "TEXT" (all of its tokens).
    attrs (Sequence[str]): attributes read by all but LENGTH.
    bins (Sequence[int]): smallest length of each bin, ascending from 1.
    longest (int): longest segment that TEXT observes, in tokens.
    order (int): earlier segments whose labels the features see.
    RETURNS (list[Template]): one template per entry of `what` and attribute.
    RAISES (ValueError): H023, H024, H030, H032, H033 or H037.
    """
    _check_attributes(attrs, "attrs")
    check_order(order)
    if not what:
        raise ValueError(Errors.H030.format(name="what"))
    if list(bins) != sorted({*bins}) or not bins or bins[0] != 1 or not _counts(longest):
        raise ValueError(Errors.H033.format(found={"bins": list(bins), "longest": longest}))
    templates: list[Template] = []
    for entry in what:
        if entry == "LENGTH":
            templates.append(LengthTemplate(tuple(bins), order))
        elif entry == "TEXT":
            templates += [TextTemplate(attr, longest, order) for attr in attrs]
        elif entry in PLACES:
            part, offset = PLACES[entry]
            templates += [AttributeTemplate(((attr, offset),), part, order) for attr in attrs]
        else:
            raise ValueError(
                Errors.H037.format(found=entry, known=", ".join(["LENGTH", "TEXT", *PLACES]))
            )
    return templates


def check_source(source: str) -> None:
    """Check the source of an array. RAISES (ValueError): H024 or H034 for one that no token has."""
    if source.startswith("_."):
        if not Token.has_extension(source[2:]):
            raise ValueError(Errors.H024.format(name=source[2:]))
    elif source not in ("tensor", "vector"):
        raise ValueError(Errors.H034.format(found=source))


def checked_parts(parts: Sequence[str]) -> list[int]:
    """Return the numbers of parts. RAISES (ValueError): H030, H031 or H140."""
    if not parts:
        raise ValueError(Errors.H030.format(name="parts"))
    for part in parts:
        if part not in PARTS:
            raise ValueError(Errors.H031.format(found=part, known=", ".join(PARTS)))
    if len({*parts}) < len(parts):
        raise ValueError(Errors.H140.format(found=list(parts)))
    return [PARTS[part] for part in parts]


def _check_attributes(attrs: Sequence[str], name: str) -> None:
    if not attrs:
        raise ValueError(Errors.H030.format(name=name))
    for attr in attrs:
        check_attribute(attr)


def check_offsets(window: Iterable[int]) -> None:
    """Check offsets. RAISES (ValueError): H030 or H038."""
    offsets = list(window)
    if not offsets:
        raise ValueError(Errors.H030.format(name="window"))
    if not all(is_whole(offset) and abs(offset) <= MAX_OFFSET for offset in offsets):
        raise ValueError(Errors.H038.format(found=offsets, most=MAX_OFFSET))


def _counts(value: object) -> bool:
    """Is it a whole number of at least 1? (spaCy accepts "3", too.)"""
    return is_whole(value) and value >= 1


def check_order(order: int) -> None:
    """Check an order. RAISES (ValueError): H032 if it is out of range."""
    if not (is_whole(order) and 0 <= order <= MAX_ORDER):
        raise ValueError(Errors.H032.format(found=repr(order)[:40], most=MAX_ORDER))
