"""The factory `hocrf_links`, with its default config. Every `spacy.blank` imports this file, which
imports no other module of this package before the factory is called.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from spacy.language import Language
from thinc.api import Config

if TYPE_CHECKING:
    from spacy_hocrf.links.component import LinkPipe

__all__ = ["make_hocrf_links"]

BLOCKS = """
[items]
@misc = "spacy-hocrf.SpanItems.v1"
spans_key = "sc"

[pairs]
@misc = "spacy-hocrf.LinkPairs.v1"
direction = "backward"
window = 20
itself = false
one_each = false
sources = null
targets = null

[scorer]
@scorers = "spacy-hocrf.links_scorer.v1"
"""
SETTINGS = {
    "attribute": "hocrf_links",
    "group_by": None,
    "features": None,
    "sigma": 1.0,
}
WEIGHTS: dict[str, float | None] = {
    "hocrf_links_f": 1.0,
    "hocrf_links_p": 0.0,
    "hocrf_links_r": 0.0,
    "hocrf_links_replies_f": 0.0,
}


@Language.factory(
    "hocrf_links",
    assigns=["doc._.hocrf_links", "doc._.hocrf_links_scores"],
    default_config={**SETTINGS, **Config().from_str(BLOCKS)},
    default_score_weights=WEIGHTS,
)
def make_hocrf_links(
    nlp: Language,
    name: str,
    items: Any,
    pairs: Any,
    features: Any,
    attribute: str,
    group_by: str | None,
    sigma: float,
    scorer: Callable[..., Any] | None,
) -> "LinkPipe":
    """Links between items as pairs of their numbers in `doc._.hocrf_links`, with their probabilities in
    `doc._.hocrf_links_scores`.

    items (Finder): finds what is linked, such as `spacy-hocrf.SpanItems.v1`.
    pairs (LinkPairs): which pairs of items may be linked.
    features (Optional[LinkFeatures]): features of pairs; None for words, labels, lengths and distances.
    attribute (str): extension attribute of Docs with the links.
    group_by (Optional[str]): consecutive Docs with an equal value of this extension attribute are
        read together, "hocrf_group" for instance; None for each Doc alone.
    sigma (float): standard deviation of the Gaussian prior of the weights.
    scorer (Optional[Callable]): scoring method.
    """
    from spacy_hocrf.links.component import LinkPipe
    from spacy_hocrf.links.defaults import DEFAULT_FEATURES

    return LinkPipe(
        nlp.vocab,
        name,
        items=items,
        pairs=pairs,
        features=DEFAULT_FEATURES if features is None else features,
        attribute=attribute,
        group_by=group_by,
        sigma=sigma,
        scorer=scorer,
    )
