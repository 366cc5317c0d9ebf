"""Features of links if the config names none: words, labels, lengths, distances."""

from spacy_hocrf.links.templates import LinkFeatures
from spacy_hocrf.links.values import Attribute, Distance, Number, Shared

__all__ = ["DEFAULT_FEATURES"]

DEFAULT_FEATURES = LinkFeatures(
    values={
        "distance": Distance(),
        "words": Shared(),
        "label": Attribute("LABEL"),
        "first": Attribute("LOWER[0]"),
        "last": Attribute("LOWER[-1]"),
        "length": Number("LENGTH", (2, 4, 8, 16)),
    },
    templates=(
        "itself",
        "distance",
        "itself + words",
        "distance + words",
        "itself + first(source)",
        "itself + last(source)",
        "itself + first(target)",
        "itself + last(target)",
        "itself + length(source)",
        "label(source) + label(target) + itself",
        "label(source) + label(target) + distance",
    ),
)
