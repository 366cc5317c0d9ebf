"""Predictions and readings that keep constraints, against enumeration of the readings that do."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from random_constraints import constrained
from random_readings import KINDS, covering, scored_as_wholes

from spacy_hocrf.answers import under_rules
from spacy_hocrf.answers.alternatives import Alternatives
from spacy_hocrf.answers.decoders import ExpectedAccuracy, ExpectedF, Reranked, Viterbi
from spacy_hocrf.answers.explaining import Explainer
from spacy_hocrf.answers.reading import readings_of
from spacy_hocrf.answers.whole_readings import N_FEATURES, ReadingCounts, Reranker, WholeReadings
from spacy_hocrf.engine.automaton import compile_automaton
from spacy_hocrf.model.scheme import make_scheme
from spacy_hocrf.rules import violations as module
from spacy_hocrf.rules.compiled import CompiledRules
from spacy_hocrf.rules.constraints import Constraints
from spacy_hocrf.rules.violations import with_more


@pytest.fixture(scope="module", params=KINDS)
def problems(request):
    return constrained(request.param)


@pytest.mark.slow
def test_some_problems_lose_readings_and_few_lose_all(problems):
    left = [len(problem.kept) for problem in problems]
    assert sum(n > 0 for n in left) > len(left) / 2
    assert sum(n == 0 for n in left) > 3


@pytest.mark.slow
def test_rules_are_broken_as_often_as_the_readings_break_them(problems):
    compared = 0
    for problem in problems:
        if not problem.kept or not problem.settings.rules:
            continue
        reading = problem.reading
        rows = [[price > 0 for price in problem.broken(spans)] for spans in problem.readings()]
        chances = problem.p @ np.array(rows, dtype=float).reshape(len(rows), -1)
        for found, expected, rule in zip(
            reading.expected_breaks().values(), chances, problem.rules.rules, strict=True
        ):
            if rule.price:
                near(found, expected)
                compared += 0.01 < expected < 0.99
    assert compared > 5


@pytest.mark.slow
def test_spans_cover_a_stretch_as_probably_as_they_do_where_the_constraints_are_kept(problems):
    possible = 0
    for seed, problem in enumerate(problems):
        if problem.kept:
            predictor = tolerant(problem, 0.0).predictor(ExpectedF())
            (reading,) = readings_of(predictor, problem.batch())
            for labels, start, end, expected in covering(problem, problem.kept, seed):
                probability = reading.pattern(labels, start, end)
                assert probability == pytest.approx(expected, abs=1e-9)
                possible += 0.01 < expected < 0.99
    assert possible > 50


@pytest.mark.slow
def test_the_reading_that_looks_best_is_one_that_keeps_the_constraints(problems):
    """Of the five most probable ones; what readings look like is by chance."""
    rng, moved, far_off, number = np.random.default_rng(3), 0, 0, 5
    for problem in problems:
        scheme = problem.scheme
        if not problem.kept or not problem.length or scheme.encoding == "tags":
            continue
        chances = Counter()
        for spans, p in zip(problem.readings(), problem.p):
            chances[tuple(sorted(spans))] += p
        best = sorted(chances, key=lambda spans: -chances[spans])[: number + 1]
        if len({round(chances[spans], 9) for spans in best}) < len(best):
            continue  # which of them are looked at is left open
        readings, words, places = as_wholes(problem, best[:number], chances)
        counts = ReadingCounts.of(len(scheme.labels), [as_wholes(problem, best[-1:], chances)])
        weights = rng.normal(size=N_FEATURES)
        scores, far = scored_as_wholes(counts.features(readings, words, places), weights)
        far_off += far.sum()
        decoder = Reranked(n=number).by(Reranker(counts, weights, "NORM", 1))
        predictor = problem.predictor(decoder)
        (found,) = predictor.predict(
            problem.batch(), scores=False, threshold=None, text_probability=True
        )
        chosen = int(scores.argmax())
        assert tuple(map(tuple, found.spans)) == best[chosen]
        share = np.exp(scores[chosen] - np.logaddexp.reduce(scores))
        near(found.text_probability, share * sum(chances[spans] for spans in best[:number]))
        moved += chosen > 0
    assert (moved > 10 and far_off > 10) or problems[0].scheme.encoding == "tags"


def as_wholes(problem, rows, chances):
    """Readings of a problem's text, its words and its place, as reranking takes them."""
    readings = WholeReadings(
        problem.scheme.numbered(rows),
        np.zeros(len(rows), dtype=np.int64),
        np.log([chances[row] for row in rows]),
    )
    return readings, problem.batch().column("NORM"), np.array([[0, problem.length]])


@pytest.mark.slow
def test_all_readings_in_order_are_those_that_keep_the_constraints(problems):
    for problem in problems:
        if not problem.kept:
            continue
        expected = Counter()
        for spans, p in zip(problem.readings(), problem.p):
            expected[spans] += p
        reading = problem.reading
        target = replace(problem.predictor(ExpectedF()).target, **n_best(problem))
        predictor = replace(problem.predictor(ExpectedF()), target=target)
        (written,) = predictor.predict(problem.batch(), scores=False, threshold=None)
        for found in (list(reading.alternatives()), written.alternatives):
            if found is None:
                assert problem.scheme.encoding == "tags"
                continue
            listed = [frozenset(each.spans) for each in found]
            assert len(listed) == len(expected)
            assert set(listed) == set(expected)
            near([each.probability for each in found], [expected[spans] for spans in listed])
        assert {frozenset(spans) for spans in reading.sample(20)} <= set(expected)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_best_readings_keep_rules_that_are_not_followed(kind, monkeypatch):
    """Where rules are too many to follow, and hardly ever broken; `breaks` counts the Docs with readings
    that would be.
    """
    monkeypatch.setattr(module, "READ_STATES", 0)
    breaks = 0
    for problem in constrained(kind, ["numbers"]):
        if not problem.kept or not n_best(problem):
            continue
        predictor = tolerant(problem, 0.99).predictor(ExpectedF())
        predictor = replace(predictor, target=replace(predictor.target, **n_best(problem)))
        (part, _), *_ = predictor.parts(problem.batch())
        alternatives = Alternatives(part, ExpectedF().pool)
        found, _ = alternatives.best_of_all(10_000)
        breaks += len(found.scores) > len(set(problem.readings()))
        (written,) = predictor.predict(problem.batch(), scores=False, threshold=None)
        assert {frozenset(each.spans) for each in written.alternatives} == set(problem.readings())
    assert breaks or kind in ("io", "tags")  # whose rules are always remembered


def n_best(problem):
    """A setting of the target that asks for all readings, where there is such a setting."""
    return {} if problem.scheme.encoding == "tags" else {"n_best": 10_000}


@pytest.mark.slow
def test_the_most_probable_reading_is_that_of_those_that_keep_the_constraints(problems):
    for problem in problems:
        if not problem.kept:
            continue
        found = problem.predicted(Viterbi())
        best = [
            spans
            for spans, score in zip(problem.readings(), problem.scores)
            if score > problem.scores.max() - 1e-9
        ]
        assert frozenset(found.spans) in best
        near(found.scores, [problem.probability(span) for span in found.spans])


@pytest.mark.slow
def test_spans_of_the_largest_expected_f_keep_the_constraints(problems):
    check_expected_f(problems)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tokens", "runs", "labelled"])
def test_spans_of_the_largest_expected_f_keep_all_rules_at_once(kind, monkeypatch):
    monkeypatch.setattr(under_rules, "FEW_STATES", 0)
    check_expected_f(constrained(kind, ["numbers", "rules", "all"]))


def check_expected_f(problems):
    redone = 0
    for problem in problems:
        if not problem.kept or problem.scheme.encoding == "tags":
            continue
        found = problem.predicted(ExpectedF(cost=0.3))
        near(found.scores, [problem.probability(span) for span in found.spans])
        assert problem.keeps(found.spans)
        gain = sum(problem.probability(span) - 0.3 for span in found.spans)
        worth = [
            sum(problem.probability(span) - 0.3 for span in spans) for spans in problem.readings()
        ]
        if problem.scheme.encoding == "segments":
            assert gain > max(worth) - 1e-6
            redone += gain < max(worth) + 1e-6
    assert redone or problems[0].scheme.encoding != "segments"


@pytest.mark.slow
def test_tags_of_the_largest_expected_accuracy_keep_the_constraints(problems):
    for problem in problems:
        if not problem.kept or problem.scheme.encoding != "tags":
            continue
        assert problem.keeps(problem.predicted(ExpectedAccuracy()).spans)


def contrasts(problem):
    """Every span with the best readings with it and without, as they should be and as they are found."""
    predictor, batch = problem.predictor(Viterbi()), problem.batch()
    ((part, _),) = predictor.parts(batch)
    contrast = Explainer(predictor, part).contrast(0)
    pairs = list(zip(problem.readings(), problem.scores))
    for span in sorted({span for spans in problem.readings() for span in spans}):
        best = max(score for spans, score in pairs if span in spans)
        without = max((score for spans, score in pairs if span not in spans), default=-np.inf)
        if without == -np.inf:
            with pytest.raises(ValueError, match="H225"):
                contrast.compare(span, None)
        else:
            yield [best, without], [found.score for found in contrast.compare(span, None)]


@pytest.mark.slow
def test_a_span_is_compared_with_the_best_reading_without_it_that_keeps_them(problems):
    compared = 0
    for problem in problems:
        if problem.kept:
            for expected, found in contrasts(problem):
                near(found, expected)
                compared += 1
    assert compared > 100


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_improbable_readings_keep_the_rules_about_numbers_too(monkeypatch, kind):
    monkeypatch.setattr(CompiledRules, "rule_sets", nothing)  # at once; what is broken will be
    compared = 0
    for problem in constrained(kind, ["numbers"]):
        if problem.kept:
            for expected, found in contrasts(problem):
                near(found, expected)
                compared += 1
    assert compared > 20


def nothing(rules, texts, exactly=False, most=None):
    return [((), np.arange(len(texts.survey.log_partition)))], np.zeros(0, dtype=np.int64)


def tolerant(problem, tolerance):
    """A problem with another tolerance."""
    problem.rules = problem.compiled(tolerance=tolerance)
    return problem


@pytest.mark.slow
@pytest.mark.parametrize("tolerance", [0.02, 0.4])
@pytest.mark.parametrize("kind", KINDS)
def test_probabilities_are_wrong_by_the_tolerance_at_most(kind, tolerance):
    worst = 0.0
    for problem in constrained(kind, ["numbers"]):
        if problem.kept:
            found = tolerant(problem, tolerance).predicted(Viterbi())
            wrong = found.scores - [problem.probability(span) for span in found.spans]
            worst = max([worst, *abs(wrong)])
    assert worst <= tolerance
    assert worst > 1e-6 or kind in ("io", "tags")  # whose rules are always remembered


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_readings_are_exact_whatever_the_tolerance(kind):
    for problem in constrained(kind, ["numbers"]):
        if not problem.kept:
            continue
        predictor = tolerant(problem, 0.4).predictor(ExpectedF())
        (reading,) = readings_of(predictor, problem.batch())
        some = problem.p[problem.p > 0]
        near(reading.entropy(), -(some * np.log(some)).sum())
        near(reading.log_partition, problem.log_z)
        for span in {span for spans in problem.readings() for span in spans}:
            near(reading.probability(*span), problem.probability(span))
        near(sum(each.probability for each in reading.alternatives()), 1.0)
        if n_best(problem):
            predictor = replace(predictor, target=replace(predictor.target, **n_best(problem)))
            (written,) = predictor.predict(problem.batch(), scores=False, threshold=None)
            near(sum(each.probability for each in written.alternatives), 1.0)


def test_readings_remember_no_more_than_they_can_hold(monkeypatch):
    """The rules that are probably broken, and all that the tolerance asks for."""
    for problem in constrained("labelled", ["numbers"]):
        if len(problem.rules.rules) < 2:
            continue
        rules = tolerant(problem, 0.4).rules
        wanted, violations = np.zeros((1, len(rules.rules)), dtype=bool), np.full((1, 9), 1e-12)
        violations = violations[:, : len(rules.rules)]
        assert not with_more(wanted, violations, rules.fits).any()
        violations[0, :2] = 1e-6, 1e-3
        assert with_more(wanted, violations, rules.fits)[0].tolist()[:2] == [True, True]
        monkeypatch.setattr(module, "READ_STATES", len(rules.joined((1,))))
        few = with_more(wanted, violations, rules.fits)[0].tolist()
        assert few[1] and few[0] == rules.fits([0, 1], module.READ_STATES)
        monkeypatch.undo()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tokens", "runs", "labelled"])
def test_scores_of_answers_are_wrong_by_the_tolerance_at_most(kind, monkeypatch):
    monkeypatch.setattr(under_rules, "FEW_STATES", 0)
    worst = 0.0
    for problem in constrained(kind, ["numbers"]):
        if problem.kept:
            found = tolerant(problem, 0.1).predicted(ExpectedF(cost=0.2))
            assert problem.keeps(found.spans)
            wrong = found.scores - [problem.probability(span) for span in found.spans]
            worst = max([worst, *abs(wrong)])
    assert 1e-6 < worst <= 0.1


@pytest.mark.slow
def test_constraints_that_leave_no_reading_are_an_error_that_names_the_text(problems):
    for problem in problems:
        if not problem.kept:
            with pytest.raises(ValueError, match=r"H216.*'x"):
                problem.predicted(Viterbi())


def near(found, expected):
    assert_allclose(found, expected, rtol=1e-7, atol=3e-8)


def test_a_gap_in_what_is_shown_is_no_successor_where_all_text_is_in_spans():
    scheme = make_scheme(["A", "B"], encoding="segments", outside=None, limits=[2, 2])
    automaton = compile_automaton(((0,), (1,)), scheme.limits)
    rules = CompiledRules(Constraints(required=[["A", "B"]]), scheme, automaton, frozenset())
    assert rules.broken_of([(0, 1, "A")], 3).tolist() == [True]
    assert rules.broken_of([(0, 1, "A"), (1, 3, "B")], 3).tolist() == [False]
