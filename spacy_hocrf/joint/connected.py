"""The documents of a corpus that global patterns connect."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from spacy_hocrf.joint.features import GlobalFeatures
from spacy_hocrf.joint.problems import JointProblem
from spacy_hocrf.model.structure import BATCH_TOKENS
from spacy_hocrf.pipeline.corpus import Corpus, Document

__all__ = ["Connected", "connected_documents"]


class Connected(NamedTuple):
    """Documents of one group that must be decoded together."""

    documents: list[Document]
    problem: JointProblem


def connected_documents(
    corpus: Corpus, features: GlobalFeatures, *, most: int
) -> tuple[list[list[Connected]], list[Document]]:
    """What must be decoded together of the completely annotated documents, group by group, and the
    documents that need not be.

    features (GlobalFeatures): what connects them.
    most (int): tokens of a group; larger ones are split.
    """
    groups: list[list[Connected]] = []
    alone: list[Document] = []
    for part in _parts(corpus.groups(most=most)):
        documents = [document for group in part for document in group]
        numbers = np.repeat(np.arange(len(part)), [len(group) for group in part])
        single = np.ones(len(documents), dtype=bool)
        connected: dict[int, list[Connected]] = defaultdict(list)
        for problem in features.problems(corpus.batch(documents), numbers):
            number = int(numbers[problem.sequences[0]])
            connected[number].append(
                Connected([documents[i] for i in problem.sequences.tolist()], problem)
            )
            single[problem.sequences] = False
        groups += connected.values()
        alone += [documents[i] for i in np.flatnonzero(single).tolist()]
    return groups, alone


def _parts(groups: Sequence[Sequence[Document]]) -> Iterator[Sequence[Sequence[Document]]]:
    """Consecutive groups with about BATCH_TOKENS tokens together."""
    first = tokens = 0
    for i, group in enumerate(groups):
        tokens += sum(map(len, group))
        if tokens >= BATCH_TOKENS or i + 1 == len(groups):
            yield groups[first : i + 1]
            first, tokens = i + 1, 0
