"""The factory `hocrf_links`, with its default config. Every `spacy.blank` imports this file, which
imports nothing of ours before the factory is called.
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

[decoder]
@misc = "spacy-hocrf.LinkDecoder.v1"

[scorer]
@scorers = "spacy-hocrf.links_scorer.v1"
"""
SETTINGS = {
    "attribute": "hocrf_links",
    "group_by": None,
    "features": None,
    "order": 2,
    "bounded": False,
}
WEIGHTS: dict[str, float | None] = {
    "hocrf_links_f": 1.0,
    "hocrf_links_p": 0.0,
    "hocrf_links_r": 0.0,
    "hocrf_links_replies_f": 0.0,
}


@Language.factory(
    "hocrf_links",
    assigns=["doc._.hocrf_links"],
    default_config={**SETTINGS, **Config().from_str(BLOCKS)},
    default_score_weights=WEIGHTS,
)
def make_hocrf_links(
    nlp: Language,
    name: str,
    items: Any,
    pairs: Any,
    features: Any,
    decoder: Any,
    attribute: str,
    group_by: str | None,
    order: int,
    bounded: bool,
    scorer: Callable[..., Any] | None,
) -> "LinkPipe":
    """Links between items as pairs of their numbers in `doc._.hocrf_links`.

    items (Finder): what is linked, such as `spacy-hocrf.SpanItems.v1`.
    pairs (LinkPairs): which of them may be.
    features (Optional[LinkFeatures]): what is seen of them; None for words, labels, lengths and
        distances.
    decoder (LinkDecoder): how links are decided.
    attribute (str): extension attribute of Docs with the links.
    group_by (Optional[str]): neighbours with an equal value of this extension attribute of Docs are
        read together, "hocrf_group" for instance; None for each Doc by itself.
    order (int): 1 for pairs by themselves, 2 for factors over two neighbouring pairs, 3 for those
        over three as well.
    bounded (bool): updates of the perceptron go no further than to where the annotation is ahead by
        the number of wrong pairs.
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
        decoder=decoder,
        attribute=attribute,
        group_by=group_by,
        order=order,
        bounded=bounded,
        scorer=scorer,
    )
