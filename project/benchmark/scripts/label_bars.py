"""Bar 22: what labels cost at order 1, and what patterns of two labels cost: those that occur have a
weight, all others are possible too.
"""

import models
from compare import Setting, turns
from measure import take_turns
from results import Cost, Outcome, Row
from spacy.language import Language

EWT = "EWT"
MOST_LABELS_LIMIT = 13.0  # µs a token


def bar_22(setting: Setting) -> Outcome:
    """An evaluation by number of labels; with the most labels, by number of label patterns."""
    sentences = {labels: setting.corpora.tags(labels) for labels in setting.labels}
    tokens = {labels: sum(len(words) for words, _ in part) for labels, part in sentences.items()}
    cases = [(labels, 1) for labels in setting.labels]
    cases += [(max(setting.labels), least) for least in setting.pattern_counts if least > 1]
    nlps = {
        (labels, least): models.crf(sentences[labels], 1, min_pattern_count=least)
        for labels, least in cases
    }
    sides = {case: turns(setting, models.Training(nlp)) for case, nlp in nlps.items()}
    seconds = take_turns(sides, setting.rounds)
    costs = [
        Cost(labels, _pairs(nlps[labels, least]), seconds[labels, least] / tokens[labels])
        for labels, least in cases
    ]
    rows = [
        _row(cost, "" if least == 1 else f", seen {least} times and more")
        for cost, (_, least) in zip(costs, cases)
    ]
    rows[len(setting.labels) - 1].must = MOST_LABELS_LIMIT
    return Outcome(rows, costs=costs)


def _row(cost: Cost, which: str) -> Row:
    what = (
        f"evaluation, order 1, {EWT}, {cost.labels} labels, {cost.pairs:,} pairs of labels{which}"
    )
    value = cost.seconds * 1e6
    return Row(f"{what}, a token", f"{value:.2f} µs", "", value, unit="µs")


def _pairs(nlp: Language) -> int:
    return models.count_label_pairs(models.component(nlp))
