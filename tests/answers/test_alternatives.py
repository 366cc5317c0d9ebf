"""Other readings of a text: the best ones and random ones, against enumeration of all segmentations."""

from collections import Counter
from itertools import islice

import numpy as np
import pytest
import spacy
from chi_square import chi_square_is_high
from numpy.testing import assert_allclose
from oracle import so_many
from random_readings import KINDS, Enumerated, enumerated
from small_corpus import documents, teach
from spacy.tokens import Doc, DocBin, Span

from spacy_hocrf.annotation import whitespace
from spacy_hocrf.annotation.spans import named

PROBLEMS = so_many(50)  # of each kind


@pytest.fixture(scope="module")
def of_every_kind():
    found = {kind: enumerated(kind, PROBLEMS) for kind in KINDS}
    assert sum(map(len, found.values())) >= 6 * PROBLEMS
    return found


@pytest.fixture(params=KINDS)
def problems(request, of_every_kind):
    return of_every_kind[request.param]


def readings_of(problem):
    """Probability of each reading, and that of its most probable segmentation."""
    together, best = Counter(), Counter()
    for spans, p in zip(problem.shown(), problem.p):
        together[spans] += p
        best[spans] = max(best[spans], p)
    return together, best


def logs(readings):
    return [each.log_probability for each in readings]


def test_all_readings_come_each_once_with_their_probabilities(problems):
    several = 0
    for problem in problems:
        expected, best = readings_of(problem)
        alternatives = list(problem.reading.alternatives())
        assert len(alternatives) == len(expected)
        assert {frozenset(each.spans) for each in alternatives} == set(expected)
        for each in alternatives:
            assert list(each.spans) == sorted(each.spans)
            assert each.probability == pytest.approx(expected[frozenset(each.spans)], rel=1e-9)
        order = np.array([best[frozenset(each.spans)] for each in alternatives])
        assert (order[1:] <= order[:-1] * (1 + 1e-9)).all()
        several += len(expected) < len(problem.every)
    assert several >= PROBLEMS / 10 or not any(problem.blank.any() for problem in problems)


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 7, 10**4])
def test_the_n_best_are_the_first_n(problems, n):
    for problem in problems:
        every = list(problem.reading.alternatives())
        best = problem.reading.best(n)
        assert [each.spans for each in best] == [each.spans for each in every[:n]]
        assert_allclose(logs(best), logs(every[:n]), atol=1e-9)


@pytest.mark.slow
def test_random_readings_have_their_probabilities(problems):
    for seed, problem in enumerate(problems):
        expected, _ = readings_of(problem)
        drawn = Counter(map(frozenset, problem.reading.sample(500, seed)))
        assert set(drawn) <= set(expected)
        readings = list(expected)
        counts, p = [drawn[each] for each in readings], [expected[each] for each in readings]
        assert not chi_square_is_high(counts, p)


def test_a_seed_determines_the_sample(of_every_kind):
    problem = max(of_every_kind["bio"], key=lambda problem: len(problem.every))
    one = problem.reading.sample(20, seed=3)
    assert problem.reading.sample(20, seed=3) == one
    assert problem.reading.sample(5, seed=3) == one[:5]
    assert problem.reading.sample(20, seed=4) != one


def with_white_space_between(problem):
    """Are there readings with two spans of one label and nothing but white space between them?"""
    blank = problem.blank
    return any(
        a[2] == b[2] and a[1] < b[0] and blank[a[1] : b[0]].all()
        for spans in problem.shown()
        for a in spans
        for b in spans
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["io", "bio", "labelled"])
@pytest.mark.parametrize("blanks", [[1, 3], [1, 2, 4], [0, 2, 4], [1, 3, 4]])
def test_white_space_between_several_spans_of_one_label(kind, blanks):
    for seed in range(3):
        problem = Enumerated(kind, seed, np.isin(np.arange(5), blanks))
        if not problem.every:
            continue
        expected, _ = readings_of(problem)
        if kind != "labelled":
            assert sum(map(with_white_space_between, [problem]))
        for spans, p in expected.items():
            log_probability = problem.reading.log_probability(spans)
            assert np.exp(log_probability) == pytest.approx(p, rel=1e-9, abs=1e-12)


@pytest.mark.slow
def test_too_much_white_space_to_sum_over_ends_the_readings(monkeypatch, of_every_kind):
    problem = next(filter(with_white_space_between, of_every_kind["labelled"]))
    every = list(problem.reading.alternatives())
    monkeypatch.setattr(whitespace, "MAX_VARIANTS", 1)
    with pytest.raises(ValueError, match="H201"):
        list(problem.reading.alternatives())
    with pytest.raises(ValueError, match="H201"):
        problem.reading.best(len(every))
    alternatives = problem.reading._batch.alternatives
    # as predictions do, which must not fail
    found = alternatives.best(0, len(every), problem.reading.log_partition)
    assert logs(found) == logs(every[: len(found)])
    assert len(found) < len(every)


@pytest.mark.parametrize("n", [0, -1, 2.0, None, True])
def test_how_many_readings_must_be_a_number(n, of_every_kind):
    reading = of_every_kind["tokens"][0].reading
    with pytest.raises(ValueError, match=r"H210.*n = "):
        reading.best(n)
    with pytest.raises(ValueError, match=r"H210.*n = "):
        reading.sample(n)


def test_readings_are_found_when_they_are_asked_for(of_every_kind):
    problem = max(of_every_kind["tokens"], key=lambda problem: len(problem.every))
    alternatives = problem.reading.alternatives()
    first = list(islice(alternatives, 2))
    assert [each.spans for each in first] == [each.spans for each in problem.reading.best(2)]
    assert next(alternatives).spans == problem.reading.best(3)[2].spans


# Through the component

SEMI = {"order": 2}
CRF = {"encoding": "bio", "order": 1}


def trained(factory="hocrf", model=SEMI, steps=8, **settings):
    nlp = spacy.blank("xx")
    trainer = {"@misc": "spacy-hocrf.LBFGS.v1", "sigma": 0.5, "threads": 1}
    nlp.add_pipe(factory, "hocrf", config={"model": model, "trainer": trainer, **settings})
    teach(nlp, steps=steps)
    return nlp


@pytest.fixture(scope="module", params=[SEMI, CRF], ids=["semi", "bio"])
def nlp(request):
    return trained(model=request.param, n_best=4)


def groups(doc, key="hocrf"):
    """[(spans, probability)] of the readings that were written."""
    names = [f"{key}_{rank}" for rank in range(1, 100) if f"{key}_{rank}" in doc.spans]
    return [(named(doc.spans[name]), doc.spans[name].attrs["probability"]) for name in names]


def assert_same(found, expected):
    assert [spans for spans, _ in found] == [spans for spans, _ in expected]
    assert_allclose([p for _, p in found], [p for _, p in expected], rtol=1e-9)


TEXTS = [text for text, _ in documents()] + ["", "It rains .", "\n\n Ada \n\n Emmy \n slept", "  "]


@pytest.mark.slow
def test_the_best_readings_are_written_to_span_groups(nlp):
    pipe = nlp.get_pipe(nlp.pipe_names[0])
    fewer = 0
    for doc, reading in zip(nlp.pipe(TEXTS), pipe.readings(map(nlp.make_doc, TEXTS))):
        best = reading.best(4)
        assert_same(groups(doc), [(each.spans, each.probability) for each in best])
        for rank, each in enumerate(best, 1):
            attrs = doc.spans[f"hocrf_{rank}"].attrs
            assert attrs["log_probability"] == pytest.approx(each.log_probability, abs=1e-9)
            log_p = reading.log_probability(doc.spans[f"hocrf_{rank}"])
            assert log_p == pytest.approx(each.log_probability, abs=1e-9)
        fewer += len(best) < 4
    assert fewer  # the empty text has one reading


@pytest.mark.slow
def test_they_are_the_same_saved_loaded_and_in_two_processes(nlp, tmp_path):
    expected = [groups(doc) for doc in nlp.pipe(TEXTS)]
    nlp.to_disk(tmp_path)
    again = spacy.load(tmp_path)
    for docs in (again.pipe(TEXTS), nlp.pipe(TEXTS, n_process=2, batch_size=5)):
        for doc, readings in zip(docs, expected, strict=True):
            assert_same(groups(doc), readings)


@pytest.mark.slow
def test_they_survive_a_doc_bin(nlp):
    docs = list(nlp.pipe(TEXTS))
    found = DocBin(docs=docs).to_bytes()
    for doc, before in zip(DocBin().from_bytes(found).get_docs(nlp.vocab), docs, strict=True):
        assert groups(doc) == groups(before)


@pytest.mark.slow
def test_a_thousand_docs_have_what_each_has_alone(nlp):
    texts = [TEXTS[i % len(TEXTS)] for i in range(1000)]
    alone = {text: groups(nlp(text)) for text in TEXTS}
    for text, doc in zip(texts, nlp.pipe(texts), strict=True):
        assert_same(groups(doc), alone[text])


def test_what_an_earlier_prediction_has_written_goes(nlp):
    doc = nlp("It rains .")
    doc.spans["hocrf_1"].attrs["probability"] = 7.0
    one = Doc(nlp.vocab)
    for key in ("hocrf_3", "hocrf_4", "others"):
        one.spans[key] = []
    nlp.get_pipe("hocrf").set_annotations([one], nlp.get_pipe("hocrf").predict([one]))
    assert set(one.spans) == {"hocrf_1", "others"}
    again = nlp.get_pipe("hocrf")(doc)
    assert again.spans["hocrf_1"].attrs["probability"] <= 1


def test_every_reading_has_what_was_set_before(nlp):
    text = next(text for text, spans in documents() if spans)
    doc = nlp.make_doc(text)
    label = nlp.get_pipe("hocrf").labels[0]
    doc.set_ents([Span(doc, 0, 1, label=label)], default="missing")
    found = groups(nlp(doc))
    assert len(found) == 4
    assert all((0, 1, label) in spans for spans, _ in found)


def test_span_groups_have_their_readings_beside_them():
    nlp = trained("hocrf_spans", n_best=2, scores=False)
    for doc in nlp.pipe(TEXTS):
        (_, p), *_ = found = groups(doc, "sc")
        assert 0 < p <= 1
        assert len(found) <= 2
    assert nlp.get_pipe("hocrf").target.answers == {"spans:sc", "spans:sc_1", "spans:sc_2"}


def test_nothing_is_written_without_a_number():
    doc = trained(steps=1)(TEXTS[0])
    assert not doc.spans


@pytest.mark.slow
@pytest.mark.parametrize(
    "factory, settings, code",
    [
        ("hocrf", {"n_best": "2"}, "H211.*n_best = '2'"),
        ("hocrf", {"n_best": -1}, "H211.*n_best = -1.*hocrf"),
        ("hocrf_spans", {"n_best": -3}, "H211.*n_best = -3.*hocrf_spans"),
        ("hocrf", {"n_best": 2, "scores_key": None}, "H212.*n_best = 2.*scores_key"),
        ("hocrf", {"spans": True, "scores_key": None}, "H212.*spans = true.*scores_key"),
    ],
)
def test_settings_that_cannot_be_are_errors(factory, settings, code):
    with pytest.raises(ValueError, match=code):
        spacy.blank("xx").add_pipe(factory, config=settings)


def test_no_template_may_read_the_readings():
    template = {"@misc": "spacy-hocrf.Spans.v1", "source": "spans.hocrf_2"}
    features = {"@misc": "spacy-hocrf.Features.v1", "*": {"spans": template}}
    with pytest.raises(ValueError, match="H051"):
        trained(model={**SEMI, "features": features}, n_best=2)
