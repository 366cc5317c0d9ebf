"""Joint features by their definition: slow, obvious, and sharing nothing with the package but its
types.

A place is (Doc, start, end). `phrases` and `words` find the sets of places that should agree,
`best` decodes by enumeration.
"""

from collections import defaultdict
from functools import reduce
from itertools import combinations

import numpy as np
import oracle
from entities import entities

from spacy_hocrf.model.architectures import weights_of


def phrases(docs, groups, lengths, skip_stopwords=True, key=lambda token: token.lower_):
    """Places of each phrase of each group that do not overlap, where there are two or more of them."""

    def usable(span):
        first, last = span[0], span[-1]
        skipped = skip_stopwords and (first.is_punct or last.is_punct or last.is_stop)
        return not (first.is_space or last.is_space or skipped)

    places = defaultdict(list)
    for d, doc in enumerate(docs):
        for length in lengths:
            for start in range(len(doc) - length + 1):
                span = doc[start : start + length]
                found = places[groups[d], tuple(map(key, span))]
                if usable(span) and not (found and found[-1][0] == d and found[-1][2] > start):
                    found.append((d, start, start + length))
    return [found for found in places.values() if len(found) > 1]


def pairs(found, most):
    """All neighbours of each phrase's places, and then the nearest others until there are `most`
    pairs.
    """
    chosen = []
    for places in found:
        by_distance = sorted(
            combinations(range(len(places)), 2), key=lambda pair: (pair[1] - pair[0], pair)
        )
        chosen += [{places[i], places[j]} for i, j in by_distance[: max(most, len(places) - 1)]]
    return chosen


def segmentations(pipe, doc):
    """Every allowed segmentation of a Doc with its score under the local model, [(segments,
    score)].
    """
    structure, automaton = pipe.structure, pipe.automaton
    potentials = structure.compile(structure.observe([doc]), structure.allowed([doc])).potentials(
        weights_of(pipe.model)
    )
    forbidden = frozenset(structure.scheme.forbidden)
    every = oracle.segmentations(potentials, structure.scheme.limits, forbidden)
    return [
        (segments, oracle.score(potentials, automaton.patterns, segments)) for segments in every
    ]


def is_entity(scheme, segments, start, end, label):
    """Is the place an entity of the label, no token more and no token less? A tagger has no
    entities: has every token of the place the label?
    """
    if scheme.encoding == "tags":
        return has_state(scheme, segments, start, end, label)
    return (start, end, label) in entities(scheme, segments)


def has_state(scheme, segments, start, end, state):
    """Do all tokens of the place have this state?"""
    covering = [scheme.names[label] for first, last, label in segments for _ in range(first, last)]
    return set(covering[start:end]) == {state}


def is_stated(scheme, segments, start, end, state):
    """Has the place the state that a pattern names?"""
    label = state.removeprefix("not ")
    if label != state:
        covering = [y for first, last, y in segments for _ in range(first, last)]
        names = {scheme.names[y] for y in covering[start:end]}
        return not names & {label, *(f"{prefix}-{label}" for prefix in "BIES")}
    if state in scheme.labels:
        return is_entity(scheme, segments, start, end, state)
    return has_state(scheme, segments, start, end, state)


def keeps(rule, labels):
    """Is a rule kept by spans with these labels, from left to right?

    rule (tuple): kind, and its number and label, or two labels.
    """
    kind, one, other = rule
    later = list(combinations(labels, 2))
    return {
        "AtMost": lambda: labels.count(other) <= one,
        "AtLeast": lambda: labels.count(other) >= one,
        "Precedes": lambda: (other, one) not in later,
        "Together": lambda: one not in labels or other in labels,
        "Apart": lambda: not {one, other} <= set(labels),
    }[kind]()


def share(scheme, segments, place, predicate, label):
    """How much of a place fires: of an entity as a segment all or nothing, or else the share of its tokens
    that have their state. Not for encodings where an entity asks something of the tokens beside it.
    """
    if predicate is is_entity and scheme.encoding == "segments":
        return float(is_entity(scheme, segments, *place, label))
    if predicate is is_entity and scheme.encoding != "tags":
        names = [scheme.names[y] for *_, y in scheme.encode_span(*place, label)]
    else:
        names = [label] * (place[1] - place[0])
    covering = [scheme.names[y] for first, last, y in segments for _ in range(first, last)]
    return np.mean([a == b for a, b in zip(covering[place[0] : place[1]], names, strict=True)])


def given_others(pipe, docs, patterns, chosen):
    """Every allowed segmentation of each Doc, with its log probability given that each other place is as in
    the chosen segmentations, one for each Doc: [[(segments, float)]].

    patterns (list): (set of places, predicate, label or state, weight).
    """
    scheme, found = pipe.structure.scheme, []
    for d, doc in enumerate(docs):
        every = segmentations(pipe, doc)
        total = np.array([score for _, score in every])
        for places, predicate, label, weight in patterns:
            for here in [place for place in places if place[0] == d]:
                others = [place for place in places if place != here]
                if all(predicate(scheme, chosen[e], *where, label) for e, *where in others):
                    known = here[1:], predicate, label
                    total += [weight * share(scheme, segments, *known) for segments, _ in every]
        total -= np.logaddexp.reduce(total)
        found.append([(segments, value) for (segments, _), value in zip(every, total.tolist())])
    return found


def best(pipe, docs, patterns, rules=()):
    """The highest joint score of all Docs, and a function that gives the joint score of some
    segmentations, one for each Doc.

    patterns (list): (set of places, predicate as above, label or state, weight); a place may have a
        state of its own.
    rules (list): (rule as above, what it costs to break it).
    """
    every = [segmentations(pipe, doc) for doc in docs]
    scheme = pipe.structure.scheme

    def along(d, values):
        return np.reshape(values, [-1 if i == d else 1 for i in range(len(docs))])

    total = reduce(
        np.add, [along(d, [score for _, score in found]) for d, found in enumerate(every)]
    )
    for rule, price in rules:
        for d, found in enumerate(every):
            spans = [[label for *_, label in entities(scheme, one)] for one, _ in found]
            costs = [0.0 if keeps(rule, labels) else -price for labels in spans]
            total = total + along(d, costs)
    for places, predicate, state, weight in patterns:
        fires = 1.0
        for d, start, end, *own in places:
            (its,) = own or [state]
            fires = fires * along(
                d, [predicate(scheme, segments, start, end, its) for segments, _ in every[d]]
            )
        total = total + weight * fires

    def score(chosen):
        numbers = [
            [set(segments) for segments, _ in found].index(set(one))
            for one, found in zip(chosen, every, strict=True)
        ]
        return total[tuple(numbers)]

    return total.max(), score
