"""Regular expressions over labels, against Python's over letters; and what models do under them."""

import re
from functools import cache
from itertools import product
from math import exp

import numpy as np
import pytest
from oracle import so_many
from pytest import approx
from small_corpus import trained, untrained

from spacy_hocrf.engine.rules import Rule
from spacy_hocrf.rules import grammar
from spacy_hocrf.rules.grammar import Grammar

LABELS = ("author", "journal", "date", "O-1")
LETTERS = dict(zip(LABELS, "ajdo"))
MAX_LENGTH = 4
SENTENCES = [s for n in range(MAX_LENGTH + 1) for s in product(range(3), repeat=n)]


def drawn(rng, depth=3):
    """A random expression over the first three labels, and the same for Python over letters."""
    kind = rng.integers(0, 5 if depth else 1)
    if kind == 0:
        label = LABELS[rng.integers(3)]
        return (f'"{label}"' if rng.random() < 0.2 else label), LETTERS[label]
    (one, same), (other, too) = drawn(rng, depth - 1), drawn(rng, depth - 1)
    if kind == 1:
        return f"({one} | {other})", f"(?:{same}|{too})"
    if kind in (2, 3):
        return f"{one} {other}", f"{same}{too}"
    sign = "?*+"[rng.integers(3)]
    return f"({one}){sign}", f"(?:{same}){sign}"


def reached(rule):
    """State after each sentence."""
    states = []
    for sentence in SENTENCES:
        state = 0
        for label in sentence:
            state = rule.after[state, label]
        states.append(state)
    return states


@pytest.mark.parametrize("seed", range(so_many(20)))
def test_sentences_are_those_of_the_expression(seed):
    """2,000 random expressions, every sentence of up to four labels."""
    rng = np.random.default_rng(seed)
    for _ in range(100):
        expression, same = drawn(rng)
        (rule,) = Grammar(expression=expression, others="nowhere").rules(LABELS[:3])
        kept = rule.kept[reached(rule)]
        pattern = re.compile(same)
        expected = [
            pattern.fullmatch("".join("ajd"[y] for y in sentence)) is not None
            for sentence in SENTENCES
        ]
        assert kept.tolist() == expected, expression


def test_no_two_states_could_be_one():
    """Each two of them are told apart by some continuation."""
    rng = np.random.default_rng(7)
    for _ in range(100):
        (rule,) = Grammar(expression=drawn(rng)[0]).rules(LABELS[:3])
        n = len(rule)
        if n > 12:
            continue
        apart = rule.kept[:, None] != rule.kept
        for _ in range(n):
            apart |= apart[rule.after[:, None], rule.after[None]].any(axis=2)
        assert (apart | np.eye(n, dtype=bool)).all()
        assert Rule(rule.after, rule.kept).reach[0].all()  # and each is reached
    assert len(Grammar(expression="author+ journal? date?").rules(LABELS[:3])[0]) == 5


def test_labels_that_are_not_named_come_anywhere_or_nowhere():
    (free,) = Grammar(expression="author date").rules(LABELS)
    (strict,) = Grammar(expression="author date", others="nowhere").rules(LABELS)
    author, journal, date, other = range(4)
    for labels, kept in (
        ([author, date], (True, True)),
        ([other, author, journal, date, other], (True, False)),
        ([author], (False, False)),
        ([author, date, author], (False, False)),
    ):
        assert (free.keeps(labels), strict.keeps(labels)) == kept
    assert free.told_by.tolist() == [True, False, True, False]
    (quoted,) = Grammar(expression='"O-1"+', others="nowhere").rules(LABELS)
    assert quoted.keeps([other, other]) and not quoted.keeps([])


@pytest.mark.parametrize(
    "expression, what",
    [
        ("author (date", "this parenthesis is not closed: character 8, before '(date'"),
        ("author )", "')' is not expected: character 8"),
        ("| author", "'|' has no label or group before it: character 1"),
        ("author |", "a label or a group is missing at the end: character 9, the end"),
        ("", "a label or a group is missing at the end: character 1, the end"),
        ("author ()", "')' has no label or group before it: character 9"),
        ("*", "'*' has no label"),
        ('author "date', "a double quote is not closed, or has nothing in it: character 7"),
        ('""', "a double quote is not closed, or has nothing in it: character 1"),
    ],
)
def test_errors_point_at_their_place(expression, what):
    with pytest.raises(ValueError) as error:
        Grammar(expression=expression)
    assert "[H312]" in str(error.value) and what in str(error.value)


def test_bad_settings_are_named(monkeypatch):
    with pytest.raises(ValueError, match=r"H214.*others = 'here'"):
        Grammar(expression="author", others="here")
    with pytest.raises(ValueError, match=r"H214.*expression = 3"):
        Grammar(expression=3)
    with pytest.raises(ValueError, match=r"H214.*price"):
        Grammar(expression="author", price=-1)
    with pytest.raises(ValueError, match=r"H215.*editor"):
        Grammar(expression="author editor").rules(LABELS)
    monkeypatch.setattr(grammar, "MAX_STATES", 8)
    with pytest.raises(ValueError, match=r"H312.*more than 8 states"):
        Grammar(expression="(author|date)* author (author|date) (author|date) (author|date)").rules(
            LABELS
        )


TEXTS = ("Ada met Paris", "In London Emmy slept", "Paris , Ada , London", "It rains")
VITERBI = {"@misc": "spacy-hocrf.Viterbi.v1"}


@cache
def hardly_trained(order):
    """A pipeline without rules that is sure of nothing; no test changes it."""
    nlp = trained("hocrf", {"order": order}, decoder=VITERBI, steps=2)
    return nlp


@pytest.mark.parametrize("order", [0, 1, 2, 3])
@pytest.mark.parametrize("price", ["inf", 1.5, 0.0])
def test_readings_under_a_grammar_are_those_that_keep_it_or_pay(order, price):
    """Probabilities, the best readings and what is shown, beside all readings without the rule."""
    expression = "PERSON PLACE?"
    rule = {"@misc": "spacy-hocrf.Grammar.v1", "expression": expression, "price": price}
    constraints = {
        "@misc": "spacy-hocrf.Constraints.v1",
        "rules": {"form": rule},
        "training": "none",
    }
    (law,) = Grammar(expression=expression).rules(("PERSON", "PLACE"))
    plain = hardly_trained(order)
    ruled = untrained("hocrf", {"order": order}, decoder=VITERBI, constraints=constraints)
    ruled.from_bytes(plain.to_bytes())
    labels = ruled.get_pipe("hocrf").labels
    assert set(labels) == {"PERSON", "PLACE"}
    for text in TEXTS:
        free = plain.get_pipe("hocrf").reading(plain.make_doc(text))
        weights = {}
        for each in free.alternatives():
            kept = law.keeps([("PERSON", "PLACE").index(label) for *_, label in each.spans])
            weights[each.spans] = each.probability * (1.0 if kept else exp(-float(price)))
        total = sum(weights.values())
        under = ruled.get_pipe("hocrf").reading(ruled.make_doc(text))
        best = under.best(5)
        wanted = sorted((p / total for p in weights.values() if p > 0), reverse=True)[:5]
        assert [each.probability for each in best] == approx(wanted, rel=1e-6)
        for each in best:
            assert each.probability == approx(weights[each.spans] / total, rel=1e-6)
        shown = tuple((ent.start, ent.end, ent.label_) for ent in ruled(text).ents)
        assert weights[shown] / total == approx(wanted[0], rel=1e-9)
        for span in under.spans(0.05):
            mine = sum(p for spans, p in weights.items() if tuple(span[:3]) in spans)
            assert span.probability == approx(mine / total, rel=1e-5)
