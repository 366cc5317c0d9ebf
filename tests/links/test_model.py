"""Probabilities of links against enumeration of all sets of links, the objective against theirs, its
gradient against central differences; which texts are known.
"""

from itertools import product

import numpy as np
import pytest
from derivatives import assert_gradient
from link_documents import conversation, document, thread

from spacy_hocrf.links.annotation import contents, gold_shares
from spacy_hocrf.links.items import SpanItems, Thread
from spacy_hocrf.links.learning import LinkLearner, LinkObjective, Text
from spacy_hocrf.links.model import LinkModel, best_pairs, known_keys, normalized
from spacy_hocrf.links.pairs import LinkPairs

F, K = 5, 3


def pairs_of(one_each, n=3, itself=True, seed=0):
    return LinkPairs(one_each=one_each, itself=itself).find(thread(seed, n=n))


def link_sets(pairs):
    """All sets of pairs that may be links together, as bool [P] each."""
    bounds = list(zip(pairs.choices.tolist(), pairs.choices[1:].tolist()))
    every = (
        np.array(each, dtype=bool) for each in product((False, True), repeat=len(pairs.source))
    )
    return [each for each in every if all(each[a:b].sum() <= 1 for a, b in bounds)]


def some_text(one_each, seed):
    """Pairs with random features, some unknown, and random links."""
    random, pairs = np.random.default_rng(seed), pairs_of(one_each)
    sets = link_sets(pairs)
    gold = sets[random.integers(len(sets))].astype(float)
    rows = random.integers(F + 1, size=(len(gold), K)).astype(np.int32)
    return pairs, Text(rows, pairs.choices, gold)


def score_of(text, weights, links):
    """Sum of the weights of the features of all links, one by one."""
    return sum(weights[f] for row in text.rows[links].tolist() for f in row if f < F)


@pytest.mark.parametrize("one_each", [False, True])
@pytest.mark.parametrize("scale", [1.0, 400.0])  # without an overflow, too
def test_probabilities_and_answers_are_those_of_all_sets_of_links(one_each, scale):
    for seed in range(5):
        pairs, text = some_text(one_each, seed)
        weights = scale * np.random.default_rng(seed).normal(size=F)
        scores = np.array([score_of(text, weights, [p]) for p in range(len(text.rows))])
        sets = link_sets(pairs)
        assert len(sets) == (2 * 3 * 4 if one_each else 2**6)
        totals = np.array([score_of(text, weights, links) for links in sets])
        chances = np.exp(totals - totals.max())
        log_z = totals.max() + np.log(chances.sum())
        chances /= chances.sum()
        total, probabilities = normalized(scores, pairs.choices)
        assert total.sum() == pytest.approx(log_z, rel=1e-10)
        assert probabilities == pytest.approx(chances @ np.array(sets), rel=1e-9, abs=1e-300)
        links = best_pairs(scores, pairs.choices)
        assert scores[links].sum() == pytest.approx(totals.max(), rel=1e-10)
        assert links.tolist() == sorted(links.tolist()) and np.isin(
            np.arange(6), links
        ).tolist() in [s.tolist() for s in sets]


def test_of_equal_pairs_the_first_is_the_best_and_none_beats_a_score_of_0():
    choices = np.array([0, 3, 5])
    assert best_pairs(np.array([1.0, 2.0, 2.0, 0.0, -1.0]), choices).tolist() == [1]


@pytest.mark.parametrize("one_each", [False, True])
def test_no_pairs_have_no_probabilities(one_each):
    pairs = pairs_of(one_each, n=1, itself=False)
    none = np.zeros(0)
    assert [len(each) for each in normalized(none, pairs.choices)] == [0, 0]
    assert len(best_pairs(none, pairs.choices)) == 0
    text = Text(np.zeros((0, K), dtype=np.int32), pairs.choices, none)
    assert LinkObjective([text], 1.0)(np.ones(F))[0] == F / 2


@pytest.mark.parametrize("one_each", [False, True])
def test_the_objective_is_the_likelihood_of_the_annotated_sets(one_each):
    weights, sigma = np.random.default_rng(9).normal(size=F), 0.7
    texts = [some_text(one_each, seed) for seed in range(4)]
    expected = weights @ weights / (2 * sigma**2)
    for pairs, text in texts:
        totals = [score_of(text, weights, links) for links in link_sets(pairs)]
        expected += np.logaddexp.reduce(totals) - score_of(text, weights, text.shares == 1)
    objective = LinkObjective([text for _, text in texts], sigma)
    assert objective(weights)[0] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("one_each", [False, True])
def test_gradient_matches_central_differences(one_each):
    objective = LinkObjective([some_text(one_each, seed)[1] for seed in range(4)], 0.7)
    weights = np.random.default_rng(3).normal(size=F)
    assert_gradient(objective, weights, np.eye(F), rtol=1e-6, atol=1e-7)


def test_several_annotated_links_of_one_choice_share_its_probability():
    items = thread(n=3)
    links = {(items.ends[i], items.ends[j]) for i, j in [(2, 0), (2, 1), (1, 1)]}
    for one_each, share in ((False, 1.0), (True, 0.5)):
        pairs = LinkPairs(one_each=one_each).find(items)
        shares, lost = gold_shares(items, pairs, links)
        assert shares.tolist() == [0.0, share, share] and lost == 1


def test_features_are_the_numbers_that_were_seen_often_enough():
    seen = [np.array([[3, 9], [9, 7]], dtype=np.uint64), np.array([[7, 9]], dtype=np.uint64)]
    assert known_keys(seen, 1).tolist() == [3, 7, 9] and known_keys([], 1).tolist() == []
    keys = known_keys(seen, 2)
    assert keys.tolist() == [7, 9]
    model = LinkModel(keys, np.array([1.0, 10.0]))
    assert model.rows(seen[0]).tolist() == [[2, 1], [1, 0]]
    assert model.scores(seen[0]).tolist() == [10.0, 11.0]
    none = LinkModel(keys[:0], np.zeros(0))
    assert none.scores(seen[0]).tolist() == [0.0, 0.0]


# Which texts are known


def counted(learner):
    """How often each text is in the corpus, by its contents."""
    return {key: [copies for _, copies in texts] for key, texts in learner._texts.items()}


def test_a_known_text_is_not_taken_in_again_and_a_changed_one_takes_its_place():
    learner = LinkLearner(LinkModel(np.arange(F, dtype=np.uint64), np.zeros(F)), 1.0)
    one, other, third = (some_text(False, seed)[1] for seed in range(3))
    for text in (one, other, one):
        learner.add((b"a",), text, initial=True)
    assert counted(learner) == {(b"a",): [1, 2]}, "copies"
    objective = learner._run()[0]
    learner.add((b"a",), one)
    assert learner._run()[0] is objective, "nothing is new"
    learner.add((b"a",), third)
    assert counted(learner) == {(b"a",): [2, 1]} and learner._run()[0] is not objective
    assert learner._texts[b"a",][1][0] is third
    learner.add((b"b",), one)
    assert counted(learner) == {(b"a",): [2, 1], (b"b",): [1]}


def test_parts_of_a_known_group_are_known():
    learner = LinkLearner(LinkModel(np.arange(F, dtype=np.uint64), np.zeros(F)), 1.0)
    learner.add((b"a", b"b"), some_text(False, 0)[1], initial=True)
    assert learner.is_part((b"b",)) and learner.is_part((b"a",))
    assert not learner.is_part((b"a", b"b")) and not learner.is_part((b"b", b"c"))


def test_contents_tell_words_links_and_groups_apart():
    def found(seed, links, group=None):
        return contents(
            Thread([document(conversation(seed)[0], links)], SpanItems()), "hocrf_links", group
        )

    known = [found(0, [[1, 0]]), found(1, [[1, 0]]), found(0, []), found(0, [[1, 0]], "a")]
    assert len({*known}) == 4 and found(0, [[1, 0]]) == known[0]


def test_training_takes_one_iteration_at_a_time_and_ends_at_the_optimum():
    learner = LinkLearner(LinkModel(np.arange(F, dtype=np.uint64), np.zeros(F)), 1.0)
    learner.step()
    assert learner.loss == 0.0 and not learner.model.weights.any(), "there is no text"
    texts = [some_text(True, seed)[1] for seed in range(4)]
    for text in texts:
        learner.add((bytes(text.rows),), text)
    losses = [learner.loss]
    for _ in range(30):
        learner.step()
        losses.append(learner.loss)
    assert sorted(losses, reverse=True) == losses and losses[-1] == losses[-2] < losses[0]
    objective, optimiser = learner._run()
    assert optimiser.iterations == len({*losses}) - 1 < 30, "nothing runs after convergence"
    assert np.abs(objective(learner.model.weights)[1]).max() < 1e-3
