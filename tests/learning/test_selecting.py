"""The greedy selection of label patterns: its gains against enumeration, when it ends, and that its choice
is kept.
"""

import logging
import sys
from functools import partial
from itertools import product

import numpy as np
import pytest
import spacy
from component_oracle import distribution
from small_corpus import documents, examples, fit, found, learner_of, untrained
from spacy.training import Example

from spacy_hocrf.annotation.annotation import known_segments
from spacy_hocrf.learning import selecting
from spacy_hocrf.learning.heldout import Fold, sampled_groups
from spacy_hocrf.learning.selecting import Growth, _best, agreements, select
from spacy_hocrf.training.gains import gains_of
from spacy_hocrf.training.lbfgs import LBFGSTrainer
from spacy_hocrf.training.patterns import longer_patterns, parts_of

LBFGS = {"@misc": "spacy-hocrf.LBFGS.v1", "threads": 1, "sigma": 1.0}
SEMI = {}
BIO = {"encoding": "bio"}
TAGS = {"encoding": "tags"}


def greedy(gain):
    return {"@misc": "spacy-hocrf.GreedyPatterns.v1", "gain": gain}


def short_texts(nlp):
    words = [*product(("Ada", "Emmy", "Paris"), ("met", "left"), ("Ada", "Rome", "him"), "12")][:24]
    rows = []
    for first, verb, last, number in words:
        text, label = f"{first} {verb} {last} {number}", "PLACE" if verb == "left" else "PERSON"
        end = len(first) + len(verb) + 2
        spans = [(0, len(first), "PLACE" if first == "Paris" else "PERSON")]
        rows.append((text, [*spans, *([] if last == "him" else [(end, end + len(last), label)])]))
    return examples(nlp, rows)


def cycles(nlp, count=24):
    """Tags that only the three tags before tell: A B B B, again and again; all words are alike."""
    period, rows = "ABBB", []
    for start in range(count):
        tags = [period[(start + i) % 4] for i in range(6 + start % 5)]
        doc = nlp.make_doc(" ".join("x" for _ in tags))
        rows.append(Example.from_dict(doc, {"tags": tags}))
    return rows


def initialized(make, factory="hocrf", trainer=LBFGS, **model):
    nlp = untrained(factory, model, trainer=trainer)
    data = make(nlp)
    nlp.initialize(lambda: data)
    return nlp, nlp.get_pipe("hocrf")


def longer(pipe):
    return [z for z in pipe.structure.patterns if len(z) > 1]


def growth_of(pipe, sigma=1.0):
    groups = sampled_groups(learner_of(pipe).corpus, sys.maxsize)
    return Growth(learner_of(pipe), groups, LBFGSTrainer(sigma=sigma, threads=1), 2)


def folds_of(growth):
    """Models of halves of the corpus, with what each has learnt and what was held back."""
    return [*zip(growth._models, growth._halves)]


# The gains


def counts_by_enumeration(model, document, found):
    """How often each pattern is in the annotation, and in the mean of all segmentations."""
    gold = tuple(known_segments(model.model.scheme, document.annotation))
    every = distribution_of(model, document).items()
    return np.array([(fires(gold, z), sum(p * fires(s, z) for s, p in every)) for z in found])


def distribution_of(model, document):
    tokens = model.model.corpus.batch([document])
    return distribution(model.model.structure, tokens, model.weights)


def fires(segments, pattern):
    labels = [label for _, _, label in segments]
    n = len(pattern)
    return sum(tuple(labels[i : i + n]) == pattern for i in range(len(labels) - n + 1))


@pytest.mark.slow
@pytest.mark.parametrize(
    "model", [SEMI, {**SEMI, "outside": "run"}, BIO], ids=["semi", "run", "bio"]
)
def test_gains_are_those_of_enumeration(model):
    _, pipe = initialized(short_texts, **model, order=2, patterns=greedy(1e9))
    growth = growth_of(pipe, 0.3)
    for _ in range(3):
        growth.loss()
        candidates = longer_patterns(growth.labels(), {*growth.selected}, 2)
        if not candidates:
            break
        gains = growth.gains(candidates)
        counts = sum(
            counts_by_enumeration(fold, document, candidates)
            for fold, (learnt, held) in folds_of(growth)
            for document in held
            if not {*learnt} & {*held}
        )
        agreed = sum(
            np.array([*agreements(fold.model, learner_of(pipe), held, candidates).values()])
            for fold, (_, held) in folds_of(growth)
        )
        expected = gains_of(*counts.T, np.full(len(counts), 0.3**-2.0), agreed)
        assert (agreed <= counts[:, 0]).all() and agreed.max() > 0
        assert [*gains.values()] == pytest.approx(expected.tolist(), rel=1e-6, abs=1e-8)
        assert np.abs(counts[:, 0] - counts[:, 1]).max() > 0.1
        best = sorted(candidates, key=gains.__getitem__)[-4:]
        growth.take([*growth.selected, *best])
    assert len(growth.selected) >= 4


def agreements_by_enumeration(model, document, found):
    """Of each pattern, places of the annotation times the probability that it is there."""
    gold = tuple(known_segments(model.model.scheme, document.annotation))
    every = distribution_of(model, document)
    both = [[segment in one for segment in gold] for one in every]
    totals = np.zeros(len(found))
    for k, z in enumerate(found):
        places = [i for i in range(len(gold)) if tuple(y for *_, y in gold[i : i + len(z)]) == z]
        totals[k] = sum(
            chance * sum(all(same[i : i + len(z)]) for i in places)
            for chance, same in zip(every.values(), both)
        )
    return totals


@pytest.mark.slow
@pytest.mark.parametrize(
    "make, factory, model",
    [(partial(cycles, count=20), "hocrf_tagger", TAGS), (short_texts, "hocrf", SEMI)],
    ids=["tags", "spans"],
)
def test_random_segmentations_agree_as_often_as_all_of_them_do(make, factory, model, monkeypatch):
    _, pipe = initialized(make, factory, **model, order=2, patterns=greedy(1e9))
    growth = growth_of(pipe)
    growth.loss()
    found = [*longer_patterns(growth.labels(), (), 1), (0, 1, 1), (1, 0, 1), (0, 0, 0)]
    (fold, (_, held)), *_ = folds_of(growth)
    held = held[:4]
    monkeypatch.setattr("spacy_hocrf.learning.selecting.DRAWS", 5000)
    agreed = agreements(fold.model, learner_of(pipe), held, found)
    fold = Fold(learner_of(pipe), learner_of(pipe).corpus.documents, (), fold)  # knows these texts
    expected = sum(agreements_by_enumeration(fold, document, found) for document in held)
    # 5,000 draws of four texts: standard errors up to 0.03
    assert [*agreed.values()] == pytest.approx(expected.tolist(), abs=0.12)
    assert expected.max() > 3 and expected.min() == 0


# When it ends


@pytest.mark.slow
@pytest.mark.parametrize("gain", [0.2, 1.0, 5.0])
def test_what_is_left_promises_less(gain):
    _, pipe = initialized(cycles, "hocrf_tagger", **TAGS, order=2, patterns=greedy(gain))
    growth = growth_of(pipe)
    growth.take(longer(pipe))
    growth.loss()
    candidates = longer_patterns(growth.labels(), {*growth.selected}, 2)
    # weights that began elsewhere stop a little apart
    assert all(promised < 1.05 * gain + 0.02 for promised in growth.gains(candidates).values())


@pytest.mark.slow
@pytest.mark.parametrize("order", [2, None])
@pytest.mark.parametrize("share", [0.2, 0.5, 1.0])
def test_a_share_of_the_patterns_is_kept_at_most(share, order):
    model = {**SEMI, "order": order}
    every = len(initialized(short_texts, **model)[1].structure.patterns)
    chosen = [
        initialized(short_texts, **model, patterns={**greedy(0.0), "share": most})[1]
        for most in (share, None)
    ]
    few, all_that_pay = (len(pipe.structure.patterns) for pipe in chosen)
    labels = chosen[0].structure.scheme.n_labels
    assert few == max(labels, min(int(share * every), all_that_pay))
    assert {*longer(chosen[0])} <= {*longer(chosen[1])}
    assert all(part in longer(chosen[0]) for z in longer(chosen[0]) for part in parts_of(z))


def test_those_that_promise_most_for_what_they_bring_along_come_first():
    gains = {(0, 1): 1.0, (1, 0): 2.5, (1, 1): 0.4, (0, 1, 0): 9.0, (2, 2): 4.0}
    best = [(2, 2), (0, 1), (1, 0), (0, 1, 0)]
    assert _best(gains, {(1, 2)}, 0.5) == best  # 9 is shared by three
    more = {z: gains[z] for z in ((0, 1, 0), (2, 2))}
    assert _best(more, {(0, 1), (1, 0)}, 0.5) == [(0, 1, 0), (2, 2)]


def test_a_round_of_few_patterns_is_not_worth_a_training(monkeypatch, caplog):
    caplog.set_level(logging.INFO, logger="spacy")
    monkeypatch.setattr(selecting, "FEW", 1e9)
    _, pipe = initialized(cycles, "hocrf_tagger", **TAGS, order=2, patterns=greedy(0.0))
    assert len(longer(pipe)) == 2  # the first round, of as many as there are labels
    assert sum("held back" in each for each in caplog.messages) == 2


@pytest.mark.slow
def test_more_is_asked_for_less_is_kept():
    kept = [
        {*longer(initialized(cycles, "hocrf_tagger", **TAGS, order=2, patterns=greedy(gain))[1])}
        for gain in (0.05, 0.5, 1e6)
    ]
    assert kept[0] > kept[1] > kept[2] == set()


@pytest.mark.slow
@pytest.mark.parametrize(
    "factory, model", [("hocrf", SEMI), ("hocrf", BIO), ("hocrf_tagger", TAGS)]
)
def test_the_loss_of_texts_held_back_falls_and_the_patterns_are_closed(factory, model, caplog):
    caplog.set_level(logging.INFO, logger="spacy")
    _, pipe = initialized(
        lambda nlp: examples(nlp, documents(40)),
        factory,
        **model,
        order=None,
        patterns=greedy(0.01),
    )
    losses = [float(each.rsplit(" ", 1)[1]) for each in caplog.messages if "held back" in each]
    *falling, last = losses
    assert len(losses) > 2 and falling == sorted(falling, reverse=True)
    sizes = [
        int(each.split(" label")[0].split()[-1]) for each in caplog.messages if "held back" in each
    ]
    assert len(longer(pipe)) == sizes[-1 if last <= falling[-1] else -2]
    kept = {*longer(pipe)}
    assert kept and all(len(part) == 1 or part in kept for z in kept for part in (z[1:], z[:-1]))


@pytest.mark.slow
def test_patterns_grow_as_long_as_they_pay():
    nlp, pipe = initialized(cycles, "hocrf_tagger", **TAGS, order=None, patterns="greedy")
    longest = max(map(len, longer(pipe)))
    assert 4 <= longest < 8 and pipe.structure.settings.order == longest - 1
    data = cycles(nlp)
    fit(nlp, data)
    tags = [token.tag_ for token in nlp("x x x x x x x x x x x x")]
    assert "".join(tags[3:]) in "ABBB" * 4
    every = initialized(cycles, "hocrf_tagger", **TAGS, order=None)[1]
    assert {*longer(pipe)} < {*longer(every)} and 3 * len(longer(pipe)) < len(longer(every))


# Beside other settings


def test_few_texts_keep_the_patterns_that_are_seen():
    with pytest.warns(UserWarning, match=r"W034.* 10 completely annotated.* with 20 and more"):
        _, pipe = initialized(examples, **SEMI, order=2, patterns="greedy", min_pattern_count=2)
    assert longer(pipe) == longer(initialized(examples, **SEMI, order=2, min_pattern_count=2)[1])


@pytest.mark.slow
@pytest.mark.parametrize("order, longest", [("auto", 3), (1, 2), (0, 1)])
def test_the_order_limits_the_patterns(order, longest):
    _, pipe = initialized(cycles, "hocrf_tagger", **TAGS, order=order, patterns=greedy(0.1))
    assert max(map(len, pipe.structure.patterns)) == longest


@pytest.mark.slow
def test_sigma_is_chosen_before():
    trainer = {"@misc": "spacy-hocrf.LBFGS.v1", "sigma": "auto", "threads": 1}
    _, pipe = initialized(cycles, "hocrf_tagger", trainer, **TAGS, patterns=greedy(0.5))
    assert (pipe.choice.sigma,) == learner_of(pipe).trainer.sigma and pipe.choice.order == 2
    trainer["sigma"] = pipe.choice.sigma
    same = initialized(cycles, "hocrf_tagger", trainer, **TAGS, patterns=greedy(0.5))[1]
    assert longer(pipe) == longer(same)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["AveragedPerceptron", "SGD", "OWLQN"])
def test_every_trainer_takes_the_patterns(kind):
    trainer = {"@misc": f"spacy-hocrf.{kind}.v1"}
    nlp, pipe = initialized(cycles, "hocrf_tagger", trainer, **TAGS, patterns=greedy(0.5))
    before = longer(pipe)
    nlp.update(cycles(nlp), sgd=nlp.create_optimizer())
    assert longer(pipe) == before and before


def test_pairs_that_are_there_anyway_are_kept():
    _, pipe = initialized(
        cycles, "hocrf_tagger", **TAGS, order=2, patterns=greedy(1e6), unseen_transitions=True
    )
    assert longer(pipe) == [*product(range(2), repeat=2)]


@pytest.mark.slow
def test_threads_change_nothing():
    kept = [
        longer(
            initialized(
                short_texts, trainer={**LBFGS, "threads": n}, **SEMI, patterns=greedy(0.01)
            )[1]
        )
        for n in (1, 2)
    ]
    assert kept[0] == kept[1] and kept[0]


@pytest.mark.slow
def test_the_learner_is_left_as_it_is():
    _, pipe = initialized(cycles, "hocrf_tagger", **TAGS, order=2, patterns=greedy(0.5))
    weights, patterns = learner_of(pipe).weights, pipe.structure.patterns
    chosen = select(learner_of(pipe), pipe.trainer, 2, "hocrf")
    assert [*chosen] == longer(pipe)
    assert pipe.structure.patterns is patterns and (learner_of(pipe).weights == weights).all()


# Kept


@pytest.mark.slow
def test_a_loaded_component_has_its_patterns_and_keeps_them(tmp_path):
    nlp, pipe = initialized(cycles, "hocrf_tagger", **TAGS, order=None, patterns=greedy(0.5))
    data = cycles(nlp)
    fit(nlp, data)
    nlp.to_disk(tmp_path)
    other = spacy.load(tmp_path)
    loaded = other.get_pipe("hocrf")
    assert loaded.structure.settings == pipe.structure.settings
    assert longer(loaded) == longer(pipe)
    assert found(other("x x x x x")) == found(nlp("x x x x x"))
    more = cycles(other, 40)  # longer texts, with patterns that were not selected
    fit(other, more)
    assert longer(loaded) == longer(pipe)


@pytest.mark.slow
def test_a_new_label_takes_its_place_before_the_patterns():
    _, pipe = initialized(cycles, "hocrf_tagger", **TAGS, order=2, patterns=greedy(0.5))
    before = longer(pipe)
    pipe.add_label("C")
    assert longer(pipe) == before and (2,) in pipe.structure.patterns
