"""Attributes that are lists in a string: `spacy-hocrf.Pieces.v1`.

An attribute is one value of a token, but its string may list several: the fields of MORPH, or the results
of your own feature function, joined by a separator. Each piece is an observation.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from spacy_hocrf.errors import Errors
from spacy_hocrf.features.config import check_offsets, check_order, checked_parts
from spacy_hocrf.features.dollars import with_dollars
from spacy_hocrf.features.errors import FeatureErrors
from spacy_hocrf.features.templates import Events, Observing, Template, template_name
from spacy_hocrf.features.tokens import NUMBERS, TokenBatch, check_attribute
from spacy_hocrf.types import TOKEN

__all__ = ["PiecesTemplate", "make_pieces"]


@dataclass(frozen=True)
class PiecesTemplate(Observing):
    """The pieces of an attribute's string, at a fixed offset; repeated pieces count once."""

    attribute: str
    separator: str
    offset: int = 0
    part: int = TOKEN
    order: int = 0
    width: int = 1

    @property
    def name(self) -> str:
        return template_name(f"{self.attribute}[{self.offset}]:pieces", self.part, self.order)

    @property
    def attributes(self) -> tuple[str, ...]:
        return (self.attribute,)

    def events(self, batch: TokenBatch) -> Events:
        """Pieces at the offset; none beyond the Doc."""
        source, values = batch.map_strings(self.attribute, self._pieces)
        token = source - self.offset
        inside = (token >= 0) & (token < len(batch))
        inside[inside] = batch.sequence[token[inside]] == batch.sequence[source[inside]]
        return Events(token[inside], values[inside].reshape(-1, 1))

    def _pieces(self, string: str) -> Sequence[str]:
        return [piece for piece in dict.fromkeys(string.split(self.separator)) if piece]


def make_pieces(
    attrs: Sequence[str],
    separator: str = "|",
    window: Sequence[int] = (0,),
    parts: Sequence[str] = ("tokens", "start", "end"),
    order: int = 0,
) -> list[Template]:
    """`spacy-hocrf.Pieces.v1`: observes each of the pieces that an attribute's string lists.

    attrs (Sequence[str]): attributes that are strings, such as "MORPH" or "_.name".
    separator (str): separates pieces; "\\x24" is a dollar sign.
    window (Sequence[int]): offsets from the observed token; nothing is observed beyond the Doc.
    parts (Sequence[str]): where in a segment: "tokens", "start", "end", "inner".
    order (int): earlier segments whose labels the features see.
    RETURNS (list[Template]): len(parts) · len(attrs) · len(window) templates.
    RAISES (ValueError): H023, H024, H030 to H032, H038, H140, H228 or H229.
    """
    if not attrs:
        raise ValueError(Errors.H030.format(name="attrs"))
    for attr in attrs:
        check_attribute(attr)
        if attr in NUMBERS:
            raise ValueError(FeatureErrors.H228.format(found=attr))
    if not separator:
        raise ValueError(FeatureErrors.H229)
    check_offsets(window)
    check_order(order)
    return [
        PiecesTemplate(attr, with_dollars(separator), offset, part, order)
        for part in checked_parts(parts)
        for attr in attrs
        for offset in window
    ]
