"""Proposed grammars: right ones of texts that a known grammar has made, and the promise for any texts."""

from itertools import product
from math import log2
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_hocrf.rules.grammar import Grammar
from spacy_hocrf.rules.proposals import propose_grammar

SENTENCES = st.lists(st.lists(st.sampled_from("abcd"), max_size=5).map(tuple), min_size=1)


def split(*texts):
    return [tuple(text.split()) for text in texts]


def rule_of(expression, labels):
    return Grammar(expression=expression).rules(labels)[0]


@pytest.mark.parametrize(
    "texts, expression",
    [
        (["a b c", "a b c"], "a b c"),
        (["a b c c d d", "b c b", "c c d d d", "a c c b b"], "a? (b | c)+ d*"),
        (["a t j", "a t k"], "a t (j | k)"),  # no text has both
        (["a t j", "a t k", "a t"], "a t (j | k)?"),
        (["a t j", "a t k k"], "a t j? k*"),
        (["a", "a a", "a b"], "a+ b?"),
        (["b a x", "b y", "a y", "x"], "b? a? (x | y)"),
        (["a b", "b c", "c a"], "b? c?"),  # all three would be one factor, with two spans or more
    ],
)
def test_texts_of_a_known_grammar_give_it(texts, expression):
    found = propose_grammar(split(*texts), 1.0)
    assert found.expression == expression
    assert found.kept == 1.0 and found.broken == ()


def test_labels_with_signs_are_quoted_and_those_that_cannot_be_are_not_named():
    sentences = [("of (two)", "a|b", "x", 'a "b"', ""), ("of (two)", "x", 'a "b"')]
    assert propose_grammar(sentences, 1.0).expression == '"of (two)" "a|b"? x'


@pytest.mark.parametrize(
    "share, expression, n_broken",
    [(0.96, "a b c", 3), (0.98, "a b? c+", 1), (0.99, "(a | b)+ c", 1), (1.0, "a c+", 0)],
)
def test_the_rarest_are_left_out_orders_first(share, expression, n_broken):
    sentences = split(*["a b c"] * 96, *["b a c"] * 2, "a b c c", "a c")
    found = propose_grammar(sentences, share)
    assert (found.expression, found.kept) == (expression, share)
    rare = (("b", "a", "c"), 2), (("a", "b", "c", "c"), 1), (("a", "c"), 1)
    assert found.broken == (rare[1:2] if share == 0.99 else rare[:n_broken])


def test_a_label_of_texts_that_are_left_out_is_not_named():
    sentences = split(*["a b c d"] * 98, "r a r b r c r d r", "d r c b a")
    assert propose_grammar(sentences, 0.98).expression == "a b c d"


def test_a_label_that_comes_anywhere_is_not_named():
    """It would make one factor of all."""
    rng = Random(0)
    sentences = []
    for _ in range(200):
        labels = ["author", "title", rng.choice(["journal", "booktitle"]), "pages"]
        for _ in range(2):
            labels.insert(rng.randrange(5), "note")
        sentences.append(tuple(labels))
    found = propose_grammar(sentences)
    assert found.expression == "author title (booktitle | journal) pages"
    assert found.kept == 1.0


def test_a_label_that_adds_hardly_anything_is_not_named():
    assert propose_grammar(split(*["a b"] * 9, "a b r"), 1.0).expression == "a b r?"
    assert propose_grammar(split(*["a b"] * 999, "a b r"), 1.0).expression == "a b"


def test_labels_in_any_order_and_number_have_no_grammar():
    rng = Random(0)
    sentences = [tuple(rng.choices("abc", k=rng.randrange(9))) for _ in range(500)]
    assert propose_grammar(sentences).expression == ""
    assert propose_grammar([(), ()]).expression == ""
    assert propose_grammar([('a"b', "")] * 3).expression == ""  # labels that cannot be written


def test_bits_are_those_of_all_texts_of_a_length():
    sentences = split("a b", "a b", "b", "a b c")
    found = propose_grammar(sentences, 1.0)
    labels, share = ("a", "b", "c"), (3 / 8, 4 / 8, 1 / 8)
    rule, bits = rule_of(found.expression, labels), 0.0
    for n in map(len, sentences):
        p = 0.0
        for drawn in product(range(3), repeat=n):
            one = 1.0
            for y in drawn:
                one *= share[y]
            p += one * rule.keeps(drawn)
        bits -= log2(p) / len(sentences)
    assert found.bits == pytest.approx(bits)


@given(SENTENCES, st.sampled_from([0.5, 0.8, 0.99, 1.0]), st.randoms(use_true_random=False))
def test_the_share_of_texts_keeps_it_in_whatever_order_they_come(sentences, share, rng):
    found = propose_grammar(sentences, share)
    assert found.kept >= share
    if found.expression:
        labels = sorted({label for sentence in sentences for label in sentence})
        rule = rule_of(found.expression, labels)
        outside = [s for s in sentences if not rule.keeps(map(labels.index, s))]
        assert found.kept == (len(sentences) - len(outside)) / len(sentences)
        assert dict(found.broken) == {each: outside.count(each) for each in outside}
    again = list(sentences)
    rng.shuffle(again)
    assert propose_grammar(again, share).expression == found.expression
