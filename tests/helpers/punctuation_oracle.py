"""Log Z of the punctuation model SC2 of Nguyen et al. (JMLR 15, 2014), §3.2.2, from its definition.

A second computation, which shares nothing with the package but the names of features: strings, sums
and a recursion over the last two labels. The templates are those of `punctuation.JMLR.v1`; a
feature is a template's value with a label pattern that fires in an annotated text.
"""

import math
from functools import cache

EDGE = "<edge>"  # one before the first word, and one behind the last
WINDOW = range(-4, 5)


def features_of(words, segments):
    """Names of all features that fire in a segmentation, [(start, end, label)], with repetitions."""
    labels = [label for _, _, label in segments]
    for j, (start, end, _) in enumerate(segments):
        yield from segment_features(words, start, end, labels[max(0, j - 2) : j + 1])


def segment_features(words, start, end, history):
    """Names of the features of one segment.

    history (list[str]): its label, and before it those of the one or two segments before it.
    """
    suffixes = [" ".join(history[-n:]) for n in range(1, len(history) + 1)]
    own, pairs = suffixes[0], suffixes[1:2]
    for t in range(start, end):
        for a in WINDOW:
            if -1 <= t + a <= len(words):
                yield f"ORTH[{a}]={word(words, t + a)}", own
            for b in range(a + 1, 5):
                if 0 <= t + a and t + b <= len(words):
                    values = f"{word(words, t + a)}|{word(words, t + b)}"
                    yield f"ORTH[{a}]|ORTH[{b}]={values}", own
        if t > start:
            yield "EB", own
            for terms in contexts(words, t):
                yield f"inner:{terms}", own
        for k, labels in enumerate(suffixes[1:], 1):
            yield named(f"ORTH[0]@{k}", words[t]), labels
    for labels in pairs:
        yield "LABELS@1", labels
        yield "LABELS.1@1", labels
        for terms in contexts(words, start):
            name, _, value = terms.partition("=")
            yield named(f"start:{name}@1", value), labels
    for labels in suffixes[2:]:
        yield "LABELS@2", labels


def contexts(words, t):
    """A word, the one before it, and both."""
    before = word(words, t - 1)
    return f"ORTH[0]={words[t]}", f"ORTH[-1]={before}", f"ORTH[-1]|ORTH[0]={before}|{words[t]}"


def named(template, value):
    return f"{template}={value}"


def word(words, t):
    return words[t] if 0 <= t < len(words) else EDGE


def log_partition(words, weights, limits):
    """Log Z in nats.

    weights (dict): of each feature by its name and labels; what is not there has none.
    limits (dict): longest segment of each label. No two neighbours have the same label.
    """

    @cache
    def rest(start, history):
        if start == len(words):
            return 0.0
        terms = []
        for label, limit in limits.items():
            if history[-1:] == (label,):
                continue
            for end in range(start + 1, min(start + limit, len(words)) + 1):
                fired = segment_features(words, start, end, [*history, label])
                score = math.fsum(weights.get(feature, 0.0) for feature in fired)
                terms.append(score + rest(end, (*history, label)[-2:]))
        most = max(terms, default=-math.inf)
        return most + math.log(math.fsum(math.exp(x - most) for x in terms)) if terms else most

    return rest(0, ())
