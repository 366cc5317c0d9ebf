"""Precision, recall and F of links: the scorer of `hocrf_links`."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from spacy.training import Example

from spacy_hocrf.annotation.groups import group_in
from spacy_hocrf.links.annotation import Link, linked
from spacy_hocrf.links.items import ItemFinder, Thread

__all__ = ["make_links_scorer", "score_links", "threads_of"]


def make_links_scorer() -> Callable[..., dict[str, Any]]:
    """Make the scorer that is registered as `spacy-hocrf.links_scorer.v1`."""
    return score_links


def score_links(
    examples: Iterable[Example],
    *,
    attribute: str,
    items: ItemFinder,
    group_by: str | None = None,
    **cfg: Any,
) -> dict[str, float | None]:
    """Score predicted links.

    attribute (str): extension attribute with the links; also the prefix of the scores' names.
    items (ItemFinder): finds the items. A link is right if the characters of both ends are those of an
        annotated link.
    group_by (Optional[str]): as in the component.
    RETURNS (Dict[str, Optional[float]]): `_p`, `_r` and `_f` of all links; `_replies_p` and so on
        without links of items to themselves. None if no text is annotated.
    """
    counts = {"": [0, 0, 0], "_replies": [0, 0, 0]}
    annotated = False
    for thread in threads_of(examples, group_by):
        predicted, gold = (
            linked(Thread(docs, items), attribute)
            for docs in ([e.predicted for e in thread], [e.reference for e in thread])
        )
        if gold is None:
            continue
        annotated = True
        for name, (predicted_links, gold_links) in {
            "": (predicted or set(), gold),
            "_replies": (_replies(predicted or set()), _replies(gold)),
        }.items():
            for k, links in enumerate((predicted_links & gold_links, predicted_links, gold_links)):
                counts[name][k] += len(links)
    return {
        f"{attribute}{name}_{measure}": score if annotated else None
        for name, numbers in counts.items()
        for measure, score in zip("prf", _measures(*numbers))
    }


def threads_of(examples: Iterable[Example], group_by: str | None) -> Iterator[list[Example]]:
    """Yield consecutive examples of one group together; the group is that of the predicted Doc, or else
    of the reference.
    """
    thread: list[Example] = []
    before = None
    for example in examples:
        group = group_in(example, group_by)
        if thread and (group is None or group != before):
            yield thread
            thread = []
        thread.append(example)
        before = group
    if thread:
        yield thread


def _replies(links: set[Link]) -> set[Link]:
    return {(i, j) for i, j in links if i != j}


def _measures(right: int, found: int, gold: int) -> tuple[float, float, float]:
    """Precision, recall and F; 0 if the denominator is 0."""
    total = found + gold
    return right / max(1, found), right / max(1, gold), 2 * right / max(1, total)
