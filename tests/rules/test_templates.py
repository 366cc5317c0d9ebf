"""What templates of rules say, against counting; and which rules the segmentations of a model break."""

import math
from itertools import product

import joint_oracle
import numpy as np
import pytest
from entities import entities
from oracle import segments_of
from rules_of_models import TEMPLATES, compiled, kind_of
from small_corpus import MODELS, shared, words

from spacy_hocrf.api import Constraints, Rule
from spacy_hocrf.rules.templates import Apart, AtLeast, AtMost, Precedes, Together, rules_of


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda template: template.name)
def test_a_rule_is_kept_where_it_should_be(template):
    labels = ("A", "B", "C")
    for rule in template.rules(labels):
        for found in (s for n in range(5) for s in product(range(3), repeat=n)):
            expected = joint_oracle.keeps(kind_of(template, rule.name), [labels[y] for y in found])
            assert rule.keeps(found) == expected, (rule.name, found)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_which_rules_segmentations_break_is_read_off_their_spans(name):
    nlp = shared(name)
    pipe = nlp.get_pipe("hocrf")
    scheme = pipe.structure.scheme
    rules = compiled(pipe, rules={str(i): each for i, each in enumerate(TEMPLATES)})
    named = [(t, rule.name) for t in TEMPLATES for rule in t.rules(scheme.labels)]
    every = [segments for segments, _ in joint_oracle.segmentations(pipe, words(nlp, *"abcd"))]
    segments = segments_of(every)
    broken = rules.broken_segments(segments)
    assert broken.shape == (len(every), len(named)) == (len(every), len(rules.rules))
    lengths = np.full(len(every), 4)
    assert (rules.broken(scheme.spans(segments), lengths)[:, :-1] == broken).all()
    for each, row in zip(every, broken.tolist()):
        labels = [label for *_, label in entities(scheme, each)]
        kept = [joint_oracle.keeps(kind_of(*one), labels) for one in named]
        assert [not one for one in kept] == row


def test_rules_have_names_and_prices():
    labels = ("A", "B", "C")
    assert [rule.name for rule in rules_of(AtMost(most=2), labels)][:2] == [
        "AtMost[2], A",
        "AtMost[2], B",
    ]
    (rule,) = rules_of(Precedes(pairs=[["B", "A"]], price="inf"), labels)
    assert (rule.name, rule.price) == ("Precedes[B & A], B & A", np.inf)
    assert len(Precedes().rules(labels)) == len(Together().rules(labels)) == 6
    assert len(Apart().rules(labels)) == 3
    assert {rule.price for rule in rules_of(Apart(), labels)} == {0.0}
    assert {rule.price for rule in rules_of(Apart(price=1.5), labels)} == {1.5}


@pytest.mark.parametrize(
    "kind, settings, what",
    [
        (AtMost, {"most": -1}, "most = -1"),
        (AtLeast, {"least": 0}, "least = 0"),
        (AtMost, {"labels": "PERSON"}, "labels = 'PERSON'"),
        (Precedes, {"pairs": [["PERSON"]]}, "pairs"),
        (Precedes, {"pairs": [["PERSON", "PERSON"]]}, "pairs"),
        (Apart, {"price": "heavy"}, "price = 'heavy'"),
        (Apart, {"price": "-inf"}, "price"),
        (Apart, {"price": -1.0}, "price = -1.0"),
        (Apart, {"price": 1e9}, "price"),
        (Apart, {"price": True}, "price = True"),
    ],
)
def test_bad_settings_are_named(kind, settings, what):
    with pytest.raises(ValueError, match=f"(?s)H214.*{what}"):
        kind(**settings)


def test_a_label_that_the_model_does_not_have():
    for template in (AtMost(labels=["KING"]), Together(pairs=[["PERSON", "KING"]])):
        with pytest.raises(ValueError, match=r"H215.*'KING'.*PERSON"):
            rules_of(template, ("PERSON", "PLACE"))


def test_what_is_no_template_or_comes_twice():
    with pytest.raises(ValueError, match=r"H214.*rules.own = dict"):
        Constraints(rules={"own": {}})
    with pytest.raises(ValueError, match=r"H214.*rules.b = AtMost\[1\]"):
        Constraints(rules={"a": AtMost(), "b": AtMost(price=2.0)})


class OwnRules(AtMost):
    """A template of a user's own, whose table is of another number of labels."""

    def rules(self, labels):
        return [Rule(np.zeros((1, 5), dtype=np.int32), np.ones(1, dtype=bool), name="own")]


def test_a_table_that_does_not_fit_the_labels_is_an_error():
    with pytest.raises(ValueError, match=r"^\[H311\].*'OwnRules\[1\]'.*'own'.*2 labels"):
        rules_of(OwnRules(), ("PERSON", "PLACE"))


def own_rules(returned):
    """A template of a user's own that returns something."""
    return type("Own", (AtMost,), {"rules": lambda self, labels: returned})()


EVEN = [[1, 0], [0, 1]]


def test_a_table_may_be_of_lists_and_of_any_whole_numbers():
    for after in (EVEN, np.array(EVEN, dtype=np.uint8)):
        (rule,) = rules_of(own_rules([Rule(after, [1, 0], name="even")]), ("A", "B"))
        assert (rule.after.dtype, rule.kept.dtype) == (np.int32, bool)
        assert rule.keeps([0, 1, 0]) and not rule.keeps([0, 1])


@pytest.mark.parametrize(
    "after, kept",
    [
        (np.array(EVEN) / 2, [True, False]),
        (np.full((2, 2), math.nan), [True, False]),
        (EVEN, [[True], [False]]),
        (EVEN, [0.5, 0.5]),
        (EVEN, ["a", ""]),
        (EVEN, [True]),
        ([], []),
        (None, None),
    ],
)
def test_a_table_of_other_than_whole_numbers_is_an_error(after, kept):
    with pytest.raises(ValueError, match=r"H311.*'even'.*a bool for each state"):
        rules_of(own_rules([Rule(after, kept, name="even")]), ("A", "B"))


@pytest.mark.parametrize(
    "returned, told",
    [
        (None, "None"),
        ("rule", "'rule'"),
        ([1], r"\[1\]"),
        ([Rule(EVEN, [1, 0], name="a")] * 2, "'a', 'a'"),
    ],
)
def test_what_are_no_rules_with_names_of_their_own_is_an_error(returned, told):
    with pytest.raises(ValueError, match=f"H591.*'Own.*{told}"):
        rules_of(own_rules(returned), ("A", "B"))


@pytest.mark.parametrize("name", ["", None, 3])
def test_a_template_without_a_name_is_an_error(name):
    template = type("Own", (AtMost,), {"name": name})()
    with pytest.raises(ValueError, match=r"H214.*rules.a = .*a name"):
        Constraints(rules={"a": template})


@pytest.mark.parametrize("price", [-1.0, math.nan, "much", None, True, 10**400])
def test_a_price_of_a_template_of_ones_own_is_checked_too(price):
    template = OwnRules()
    object.__setattr__(template, "price", price)
    with pytest.raises(ValueError, match=f"H214.*price = {price!r}"):
        rules_of(template, ("A", "B", "C", "D", "E"))


def test_rules_of_one_model_keep_few_products(monkeypatch):
    pipe = shared("semi-CRF, outside tokens").get_pipe("hocrf")
    rules = compiled(pipe, rules={"a": AtMost(price=1.0), "b": AtLeast(price=1.0)})
    joined, product = rules.joined((0, 1)), rules.product(rules.automaton, (0, 1))
    assert rules.product(rules.automaton, (0, 1)) is product
    assert joined.broken.shape == (9, 2)  # none, one or more of two labels each
    assert product.copies == 9
    assert rules.fits((0, 1), 9) and not rules.fits((0, 1), 8)
    monkeypatch.setattr("spacy_hocrf.rules.compiled.MAX_JOINT_STATES", 8)
    with pytest.raises(ValueError, match="H219"):
        rules.together((0,), (1,))
