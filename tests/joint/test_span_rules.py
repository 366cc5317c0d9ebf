"""Rules about all spans of a Doc: what they say, which readings break them, and what they make of a
component that learns, predicts, and is saved.
"""

from itertools import combinations, product

import joint_oracle
import numpy as np
import oracle
import pytest
import spacy
from entities import entities
from joint_config import joint
from numpy.testing import assert_allclose, assert_array_equal
from small_corpus import MODELS, documents, examples, fit, trained, untrained, words
from spacy.training import Example

from spacy_hocrf.arrays import offsets_of
from spacy_hocrf.engine.forward_backward import Buffers
from spacy_hocrf.engine.memory import Memory
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.joint.features import JointFeatures
from spacy_hocrf.joint.remembered import SpanRules
from spacy_hocrf.joint.ruled import RuledSearch
from spacy_hocrf.joint.span_rules import Apart, AtLeast, AtMost, NamedRule, Precedes, Together
from spacy_hocrf.joint.trainers import JointMaxMargin
from spacy_hocrf.types import Segments

TEMPLATES = [AtMost(), AtMost(most=2), AtLeast(), AtLeast(least=2), Precedes(), Together(), Apart()]


def rule(kind, **settings):
    return {"@misc": f"spacy-hocrf.{kind}.v1", **settings}


def together(segmentations):
    """Segmentations of several sequences as arrays."""
    rows = np.array([row for each in segmentations for row in each], dtype=np.int32).reshape(-1, 3)
    return Segments(offsets_of([len(each) for each in segmentations]), *rows.T)


def kind_of(template, label):
    """A rule as the oracle has it."""
    kind = type(template).__name__
    if kind in ("AtMost", "AtLeast"):
        return kind, getattr(template, {"AtMost": "most", "AtLeast": "least"}[kind]), label
    return (kind, *label.split(" & "))


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda template: template.name)
def test_a_memory_ends_where_the_rule_is_kept(template):
    labels = ("A", "B", "C")
    for name, memory in template.rules(labels):
        for found in (s for n in range(5) for s in product(range(3), repeat=n)):
            expected = joint_oracle.keeps(kind_of(template, name), [labels[y] for y in found])
            assert memory.accepts(found) == expected, (name, found)


@pytest.mark.parametrize("name", MODELS)
def test_which_rules_segmentations_break_is_read_off_their_spans(name):
    nlp = trained(*MODELS[name], rows=documents(3))
    pipe = nlp.get_pipe("hocrf")
    scheme = pipe.structure.scheme
    features = JointFeatures(tuple(TEMPLATES), scheme)
    named = [(t, r.name) for t in TEMPLATES for r in t.rules(scheme.labels)]
    every = [segments for segments, _ in joint_oracle.segmentations(pipe, words(nlp, *"abcd"))]
    broken = features.rules.broken(together(every))
    assert broken.shape == (len(every), len(named)) == (len(every), len(features.names))
    for segments, row in zip(every, broken.tolist()):
        labels = [label for *_, label in entities(scheme, segments)]
        kept = [joint_oracle.keeps(kind_of(*each), labels) for each in named]
        assert [not each for each in kept] == row


def test_a_rule_is_one_feature_with_a_name():
    features = [AtMost(most=2), Precedes(pairs=[["B", "A"]]), Apart()]
    scheme = trained(rows=documents(3)).get_pipe("hocrf").structure.scheme
    assert JointFeatures((features[0], features[2]), scheme).names == (
        "AtMost[2], PERSON",
        "AtMost[2], PLACE",
        "Apart, PERSON & PLACE",
    )
    assert features[1].name == "Precedes[B & A]"
    assert [rule.name for rule in features[1].rules(("A", "B"))] == ["B & A"]
    assert len(Precedes().rules("ABC")) == len(Together().rules("ABC")) == 6
    assert AtMost().find(TokenBatch([]), np.zeros(0, dtype=np.int64)).offsets.tolist() == [0]


@pytest.mark.parametrize("states, readings", [(128, 0), (4, 0), (1, 0), (4, 3000), (1, 3000)])
def test_the_bound_is_reached_by_a_large_memory_or_by_many_readings(monkeypatch, states, readings):
    monkeypatch.setattr("spacy_hocrf.joint.remembered.MOST_STATES", states)
    monkeypatch.setattr("spacy_hocrf.joint.ruled.MOST_READINGS", readings)
    nlp = trained(rows=documents(5))
    pipe = nlp.get_pipe("hocrf")
    pipe.model.set_param("W", 0.2 * pipe.model.get_param("W"))
    structure, automaton = pipe.structure, pipe.automaton
    features = JointFeatures(tuple(TEMPLATES), structure.scheme)
    rng = np.random.default_rng(0)
    reached = 0
    for _ in range(20):
        doc = words(nlp, *(str(word) for word in rng.choice(["Ada", "in", "Paris", "York"], 5)))
        prices = rng.normal(0.5, 1.0, len(features.names))
        rules = list(
            zip(
                (kind_of(t, r.name) for t in TEMPLATES for r in t.rules(structure.scheme.labels)),
                prices,
            )
        )
        optimum, score = joint_oracle.best(pipe, [doc], [], rules)
        potentials = structure.compile(structure.observe([doc]), structure.allowed([doc]))
        potentials = potentials.potentials(pipe._learner.snapshot().placed)
        search = RuledSearch(features.rules, prices, 1)
        for _ in range(2):  # the second search knows what the first one needed
            best = search.best(potentials, automaton, Buffers(automaton))
            [segments] = oracle.listed(best.segments)
            assert best.scores[0] == pytest.approx(score([segments]))
            assert search.bounds[0] >= optimum - 1e-9
            assert best.scores[0] <= optimum + 1e-9
        reached += search.bounds[0] <= best.scores[0] + 1e-9
    assert (reached == 20) == (states == 128 or readings > 0)


# Learning

NAMES = ("Ada", "Max", "Emmy", "Joe", "Ann", "Bob", "Eve", "Tim")


def one_name_each(seed, count):
    """Texts with three or four names, of which just one is a PERSON: more often one behind "mr"."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        names = rng.choice(NAMES, int(rng.integers(3, 5)), replace=False).tolist()
        person = int(rng.integers(len(names)))
        text, spans = "", []
        for i, name in enumerate(names):
            text += "mr " if rng.random() < (0.95 if i == person else 0.4) else "and "
            spans += [(len(text), len(text) + len(name), "PERSON")] if i == person else []
            text += f"{name} "
        rows.append((text.strip(), spans))
    return rows


def learnt_pipeline(trainer=None, **features):
    features = features or {"most": rule("AtMost"), "least": rule("AtLeast")}
    trainer = {"@misc": "spacy-hocrf.JointMaxMargin.v1", "folds": 3, **(trainer or {})}
    nlp = untrained(joint=joint(features, trainer=trainer))
    data = [Example.from_dict(nlp.make_doc(t), {"entities": s}) for t, s in one_name_each(0, 40)]
    nlp.initialize(lambda: data)
    fit(nlp, data)
    return nlp


def test_learnt_rules_are_kept_saved_and_loaded_and_make_fewer_errors(tmp_path):
    nlp = learnt_pipeline()
    pipe = nlp.get_pipe("hocrf")
    assert (pipe.joint_weights > 0.3).all()
    assert pipe.joint_features.agree.all()
    data = [Example.from_dict(nlp.make_doc(t), {"entities": s}) for t, s in one_name_each(1, 100)]
    together = nlp.evaluate(data)["ents_f"]
    docs = list(nlp.pipe(example.reference.text for example in data))
    assert all(doc._.hocrf_certificate and doc._.hocrf_gap < 1e-6 for doc in docs)
    nlp.to_disk(tmp_path)
    again = spacy.load(tmp_path).get_pipe("hocrf")
    assert_array_equal(again.joint_weights, pipe.joint_weights)
    assert again.joint_feature_names == ("AtMost[1], PERSON", "AtLeast[1], PERSON")
    pipe.joint_weights = [0.0, 0.0]
    assert together > nlp.evaluate(data)["ents_f"] + 0.05


class Spy(JointMaxMargin):
    """Keeps the tasks of the last fit."""

    def fit(self, tasks, agree):
        Spy.tasks, Spy.found = tasks, super().fit(tasks, agree)
        return Spy.found


def test_the_weights_are_those_of_the_smallest_objective_of_all_segmentations():
    nlp = learnt_pipeline(most=rule("AtMost"), pairs=rule("Precedes"), least=rule("AtLeast"))
    pipe = nlp.get_pipe("hocrf")
    trainer = Spy(sigma=0.7, folds=2, tolerance=1e-4)
    trainer.learn(pipe._learner, pipe._joint_model)
    weights, tasks = Spy.found.weights, Spy.tasks[:]
    assert len(tasks) == 40 and (weights >= 0).all() and weights.max() > 0.3
    every = [all_outputs(task, pipe.structure.scheme.forbidden) for task in tasks]

    def objective(w):
        worst = [(loss + features @ w + local).max() for features, local, loss in every]
        right = [w @ gold_features(task, len(w)) + task.gold.counts[-1] for task in tasks]
        return w @ w / (2 * trainer.sigma**2) + sum(worst) - sum(right)

    least = objective(weights)
    rng = np.random.default_rng(0)
    for _ in range(200):
        other = np.maximum(weights + rng.normal(0.0, rng.choice([0.01, 0.1, 1.0]), len(weights)), 0)
        assert objective(other) >= least * (1 - 1e-3)


def all_outputs(task, forbidden):
    """Features, local score and loss of all segmentations of a task's text.

    forbidden: pairs of labels that may not follow each other.
    """
    potentials, automaton = task._potentials, task._automaton
    limits = automaton.limits.tolist()
    every = list(oracle.segmentations(potentials, limits, frozenset(forbidden)))
    local = [oracle.score(potentials, automaton.patterns, each) for each in every]
    labels = np.array([[y for a, b, y in each for _ in range(a, b)] for each in every])
    broken = task._rules.broken(together(every))
    return -broken.astype(float), np.array(local), (labels != task._labels).sum(axis=1)


def gold_features(task, n):
    found = np.zeros(n)
    found[task.gold.features[:-1]] = task.gold.counts[:-1]
    return found


# Infinite weights


def test_a_rule_of_infinite_weight_is_never_broken_and_never_learnt(tmp_path):
    features = {"most": rule("AtMost", weight="inf"), "least": rule("AtLeast", labels=["PERSON"])}
    nlp = learnt_pipeline(**features)
    pipe = nlp.get_pipe("hocrf")
    assert pipe.joint_weights[0] == np.inf and np.isfinite(pipe.joint_weights[1])
    pipe.joint_weights = [0.0, 0.0]
    assert pipe.joint_weights.tolist() == [np.inf, 0.0]
    texts = [text for text, _ in one_name_each(2, 100)]
    counts = [len(doc.ents) for doc in nlp.pipe(texts)]
    assert max(counts) == 1
    nlp.to_disk(tmp_path)
    again = spacy.load(tmp_path)
    assert again.get_pipe("hocrf").joint_weights.tolist() == [np.inf, 0.0]
    assert [len(doc.ents) for doc in again.pipe(texts)] == counts


def test_annotation_that_breaks_a_rule_of_infinite_weight_teaches_no_weight():
    features = {"most": rule("AtMost", most=0, weight="inf"), "least": rule("AtLeast")}
    with pytest.warns(UserWarning, match=r"W033.*40 of 40"):
        nlp = learnt_pipeline(**features)
    assert nlp.get_pipe("hocrf").joint_weights.tolist() == [np.inf, 0.0]
    assert not any(len(doc.ents) for doc in nlp.pipe([t for t, _ in one_name_each(2, 20)]))


def test_a_text_that_must_break_a_rule_is_an_error():
    never = {"least": rule("AtLeast", least=9, weight="inf")}
    nlp = trained(joint=joint(never, learn=False), rows=documents(3))
    with pytest.raises(ValueError, match=r"^\[H310\].*4 tokens"):
        nlp("Ada is in Paris")


# Settings


@pytest.mark.parametrize(
    "features, what",
    [
        (rule("AtMost", most=-1), "most is -1"),
        (rule("AtLeast", least=0), "least is 0"),
        (rule("AtMost", labels="PERSON"), "labels is 'PERSON'"),
        (rule("AtMost", labels=["KING"]), "labels is 'KING'.*PERSON"),
        (rule("Precedes", pairs=[["PERSON"]]), "pairs"),
        (rule("Precedes", pairs=[["PERSON", "PERSON"]]), "pairs"),
        (rule("Together", pairs=[["PERSON", "KING"]]), "labels is 'KING'"),
        (rule("Apart", weight="heavy"), "weight is 'heavy'"),
        (rule("Apart", weight="-inf"), "weight"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*W035")
def test_bad_settings_are_named(features, what):
    with pytest.raises(ValueError, match=f"(?s)H099.*{what}"):
        nlp = untrained(joint=joint({"own": features}))
        nlp.initialize(lambda: examples(nlp, documents(3)))
        nlp("Ada likes New York")


class OwnRules(AtMost):
    """A template of a user's own, whose table is of another number of labels."""

    def rules(self, labels):
        return [NamedRule("own", Memory(np.zeros((1, 5), dtype=np.int32), np.ones(1, dtype=bool)))]


def test_a_table_that_does_not_fit_the_labels_is_an_error():
    scheme = trained(rows=documents(3)).get_pipe("hocrf").structure.scheme
    with pytest.raises(ValueError, match=r"^\[H311\].*'OwnRules\[1\]'.*'own'.*2 labels"):
        assert JointFeatures((OwnRules(),), scheme).names is None


def test_rules_of_one_model_keep_few_memories():
    scheme = trained(rows=documents(3)).get_pipe("hocrf")
    rules = JointFeatures(tuple(TEMPLATES), scheme.structure.scheme).rules
    assert isinstance(rules, SpanRules)
    known = rules.remembering(scheme.automaton, (0, 1))
    assert rules.remembering(scheme.automaton, (0, 1)) is known
    assert known.broken.shape == (9, 2)  # none, one or more of two labels each
    assert_allclose(known.automaton.copies, 9)


def test_rules_remembered_together_break_what_each_of_them_breaks():
    scheme = trained(rows=documents(3)).get_pipe("hocrf").structure.scheme
    rules = JointFeatures(tuple(TEMPLATES), scheme).rules
    sequences = [z for n in range(5) for z in product(range(scheme.n_labels), repeat=n)]
    for chosen in combinations(range(min(len(rules), 7)), 3):
        joint = rules._joint(chosen)
        state, states = 0, [0]
        for labels in sequences:
            state, own = 0, [0] * len(rules)
            for y in labels:
                state = joint.after[state, y]
                own = [rules._after[r, own[r], y] for r in range(len(rules))]
            assert joint.broken[state].tolist() == [not rules._ends[r, own[r]] for r in chosen]
            states.append(state)
        # numbered as they are reached, the shortest sequences first; a few need longer ones
        reached = [*dict.fromkeys(states)]
        assert reached == [*range(len(reached))] and len(reached) > 0.8 * len(joint)


def test_rules_that_take_too_many_states_are_not_remembered(monkeypatch):
    scheme = trained(rows=documents(3)).get_pipe("hocrf")
    labels = scheme.structure.scheme
    every = JointFeatures(tuple(TEMPLATES), labels).rules
    sizes = {z: len(every._joint(z)) for z in ((), (0,), (0, 1))}
    monkeypatch.setattr("spacy_hocrf.joint.remembered.MOST_STATES", sizes[0, 1] - 1)
    rules = JointFeatures(tuple(TEMPLATES), labels).rules
    assert [rules.fits(z) for z in sizes] == [True, True, False]
    assert rules.remembering(scheme.automaton, (0, 1)) is None
    assert rules.remembering(scheme.automaton, (0,)).automaton.copies == sizes[0,]
