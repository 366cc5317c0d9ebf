"""Groups to learn the weight of agreement from: `tweets.FoldedLinkage.v1`.

By the paper's rule most tweets are one group. In the training part there would be nothing left to
learn from then, for the scores of a group have to come from a model that has not seen it. So that
part is first cut, by clusters as the corpus itself is, into folds of about the size of what will be
decoded, and the rule is applied in each.
"""

import random
from collections.abc import Sequence

from spacy.tokens import Doc
from spacy.util import registry

from spacy_hocrf.api import Grouper, SingleLinkage

RARE = 20
"""Tweets that a word of a cluster may occur in, or one of a hundred where there are more than
2,000.
"""


def find_clusters(docs: Sequence[Doc]) -> list[int]:
    """Tweets about one event: with three words in common, of those that are rare. The number of
    each one's cluster.

    By the paper's rule, five words of any frequency, most tweets would be one cluster.
    """
    return SingleLinkage(min_overlap=3, max_docs=max(RARE, len(docs) // 100))(docs)


@registry.misc("tweets.FoldedLinkage.v1")
def make_folded_linkage(folds: int = 5, min_overlap: int = 5) -> Grouper:
    """Single linkage in each of some folds.

    folds (int): number of parts; no cluster is in two.
    min_overlap (int): of `spacy-hocrf.SingleLinkage.v1`.
    RETURNS (Grouper): fold and number of each Doc's group.
    """
    linkage = SingleLinkage(min_overlap)

    def group(docs: Sequence[Doc]) -> list[str]:
        clusters = find_clusters(docs)
        choice = random.Random(0)
        fold_of = {cluster: choice.randrange(folds) for cluster in sorted(set(clusters))}
        ids = [""] * len(docs)
        for fold in range(folds):
            members = [
                number for number, cluster in enumerate(clusters) if fold_of[cluster] == fold
            ]
            for number, linked in zip(members, linkage([docs[number] for number in members])):
                ids[number] = f"{fold}-{linked}"
        return ids

    return group
