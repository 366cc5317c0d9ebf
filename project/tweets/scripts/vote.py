"""The cheap rival of joint decoding: in each group, a phrase gets the label that most of its places
have.
"""

from collections import Counter
from collections.abc import Sequence

from spacy.tokens import Doc, Span

from spacy_hocrf.api import group_docs, group_of


def vote(docs: Sequence[Doc], *, outside: bool) -> list[list[Span]]:
    """What the Docs' entities become by majority vote.

    docs (Sequence[Doc]): with entities and groups; not changed.
    outside (bool): places that are not labelled vote too, for no label; otherwise one label is
        enough for all places.
    RETURNS (list[list[Span]]): the new entities of each Doc.
    """
    groups: list[list[Doc]] = []
    for doc in group_docs(docs):
        if not groups or group_of(doc) is None or group_of(doc) != group_of(groups[-1][0]):
            groups.append([])
        groups[-1].append(doc)
    labels = {
        id(doc): elected
        for group in groups
        for elected in [_elect(group, outside=outside)]
        for doc in group
    }
    return [_apply(doc, labels[id(doc)]) for doc in docs]


Phrase = tuple[str, ...]


def _elect(group: Sequence[Doc], *, outside: bool) -> dict[Phrase, str]:
    """Labels of the phrases that are an entity somewhere in the group; those of which most places
    are unlabelled are left out.
    """
    votes: dict[Phrase, Counter[str]] = {}
    for doc in group:
        for ent in doc.ents:
            votes.setdefault(_phrase(doc, ent.start, ent.end), Counter())[ent.label_] += 1
    if outside:
        longest = max(map(len, votes), default=0)
        for doc in group:
            free = [not token.ent_type for token in doc]
            for start in range(len(doc)):
                for end in range(start + 1, min(start + longest, len(doc)) + 1):
                    if all(free[start:end]) and (phrase := _phrase(doc, start, end)) in votes:
                        votes[phrase][""] += 1
    winners = {phrase: counts.most_common(1)[0][0] for phrase, counts in votes.items()}
    return {phrase: label for phrase, label in winners.items() if label}


def _apply(doc: Doc, labels: dict[Phrase, str]) -> list[Span]:
    """The phrases of the Doc that have a label, from left to right, the longest at each place."""
    longest = max(map(len, labels), default=0)
    spans, start = [], 0
    while start < len(doc):
        ends = range(min(start + longest, len(doc)), start, -1)
        end = next((end for end in ends if _phrase(doc, start, end) in labels), start)
        if end > start:
            spans.append(Span(doc, start, end, labels[_phrase(doc, start, end)]))
        start = max(end, start + 1)
    return spans


def _phrase(doc: Doc, start: int, end: int) -> Phrase:
    return tuple(token.text.lower() for token in doc[start:end])
