"""What a reading says of a text, against enumeration of all segmentations."""

from collections import Counter
from dataclasses import fields
from functools import cache
from itertools import combinations, count, product

import numpy as np
import oracle
import pytest
import spacy
from hypothesis import given
from joint_config import joint
from numpy.testing import assert_allclose, assert_array_equal
from random_constraints import constrained
from random_readings import KINDS, PROBLEMS, Enumerated, covering, enumerated
from small_corpus import documents, entity_scores, examples, fit, learn_from, teach
from spacy.tokens import Doc, Span

from spacy_hocrf.annotation import whitespace
from spacy_hocrf.types import Potentials


@cache
def unconstrained_of(kind):
    problems = enumerated(kind)
    assert len(problems) > PROBLEMS / 2
    return problems


@pytest.fixture(scope="module", params=KINDS)
def unconstrained(request):
    return unconstrained_of(request.param)


@pytest.fixture(
    scope="module",
    params=[
        *[(kind, False) for kind in KINDS],
        *[pytest.param((kind, True), marks=pytest.mark.slow) for kind in KINDS],
    ],
    ids=[*KINDS, *(f"{kind}, constrained" for kind in KINDS)],
)
def problems(request):
    """Texts with constraints, too: their readings are those that keep them."""
    kind, with_constraints = request.param
    if not with_constraints:
        return unconstrained_of(kind)
    return [problem for problem in constrained(kind) if problem.kept]


def test_the_log_partition_is_that_of_all_segmentations(problems):
    for problem in problems:
        problem.close(problem.reading.log_partition, problem.log_z)


def test_every_span_has_its_probability_and_the_probable_ones_are_found(problems):
    overlapping = 0
    for problem in problems:
        expected = Counter()
        for spans, p in zip(problem.shown(), problem.p):
            for span in spans:
                expected[span] += p
        every = [
            (start, end, label)
            for start, end in combinations(range(problem.length + 1), 2)
            for label in problem.scheme.labels
            if not problem.trims[[start, end - 1]].any()
        ]
        for span in every:
            problem.close(problem.reading.probability(*span), expected[span])
        together = problem.reading.probabilities(every[::-1])
        assert len(together) == len(every)
        for span, p in zip(every[::-1], together.tolist()):
            problem.close(p, expected[span])
        for least in (0.01, 0.2, 0.6):
            found = {span[:3]: span.probability for span in problem.reading.spans(least)}
            assert set(found) == {span for span, p in expected.items() if p >= least}
            for span, p in found.items():
                problem.close(p, expected[span])
            places = [set(range(start, end)) for start, end, _ in found]
            overlapping += any(a & b for a, b in combinations(places, 2))
    assert overlapping


def test_spans_are_asked_about_as_they_are_shown(unconstrained):
    asked = 0
    for problem in unconstrained:
        blank, label = problem.trims, problem.scheme.labels[0]
        for start, end in combinations(range(problem.length + 1), 2):
            solid = np.flatnonzero(~blank[start:end]) + start
            if not blank[[start, end - 1]].any():
                continue
            asked += 1
            span, shown = (start, end, label), None
            if len(solid):
                shown = (int(solid[0]), int(solid[-1]) + 1, label)
            reading = problem.reading
            problem.close(reading.probability(*span), reading.probability(*shown) if shown else 0.0)
            for complete in (False, True):
                chance = np.exp(reading.log_probability([span], complete=complete))
                same = shown and reading.log_probability([shown], complete=complete)
                problem.close(chance, np.exp(same) if shown else 0.0)
    assert asked or unconstrained[0].scheme.encoding == "tags"


@pytest.mark.slow
def test_whole_and_partial_readings_have_their_probabilities(problems):
    for number, problem in enumerate(problems):
        together = Counter()
        for spans, p in zip(problem.shown(), problem.p):
            together[spans] += p
        for spans, p in together.items():
            problem.close(np.exp(problem.reading.log_probability(spans)), p)
            some = sorted(spans)[number % 2 :: 2]
            expected = sum(q for others, q in together.items() if others.issuperset(some))
            found = problem.reading.log_probability(some, complete=False)
            problem.close(np.exp(found), expected)
        assert problem.reading.log_probability([], complete=False) == pytest.approx(0.0, abs=1e-9)


def test_readings_that_cannot_be_have_no_probability(unconstrained):
    for problem in unconstrained:
        possible = set(problem.shown())
        for start, end in combinations(range(problem.length + 1), 2):
            for label in problem.scheme.labels:
                if not problem.trims[start:end].any():
                    found = problem.reading.log_probability([(start, end, label)])
                    assert (found > -np.inf) == (frozenset({(start, end, label)}) in possible)


def test_tokens_have_the_distribution_of_their_labels(problems):
    for problem in problems:
        labels = problem.scheme.labels
        expected = np.zeros((problem.length, len(labels) + 1))
        expected[:, -1] = 1.0
        for spans, p in zip(problem.decoded(), problem.p):
            for start, end, label in spans:
                expected[start:end, labels.index(label)] += p
                expected[start:end, -1] -= p
        problem.close(problem.reading.tokens(), expected)
        logs = np.log(np.where(expected > 1e-12, expected, 1.0))
        problem.close(problem.reading.token_entropy(), -(expected * logs).sum(axis=1), atol=1e-8)


def test_the_entropy_is_that_of_all_segmentations(problems):
    for problem in problems:
        some = problem.p[problem.p > 0]
        problem.close(problem.reading.entropy(), -(some * np.log(some)).sum(), atol=1e-8)


def test_spans_are_counted_by_label(problems):
    for problem in problems:
        for label in problem.scheme.labels:
            counts = [sum(span[2] == label for span in spans) for spans in problem.decoded()]
            problem.close(problem.reading.expected_count(label), counts @ problem.p)


def test_patterns_are_found_wherever_their_last_segment_begins(problems):
    rng, positive = np.random.default_rng(0), 0
    for problem in problems:
        for length in (1, 1, 2, 2, 3, 4):
            pattern = tuple(rng.integers(0, problem.scheme.n_labels, length).tolist())
            expected = np.zeros(problem.length)
            for segments, p in zip(problem.kept, problem.p):
                labels = tuple(segment.label for segment in segments)
                for i in range(length - 1, len(labels)):
                    if labels[i - length + 1 : i + 1] == pattern:
                        expected[segments[i].start] += p
            names = [problem.scheme.names[y] for y in pattern]
            problem.close(problem.reading.pattern(names), expected)
            positive += expected.max() > 0.01
    assert positive > PROBLEMS / 3


def test_consecutive_spans_cover_a_stretch_as_probably_as_they_do(unconstrained):
    possible, impossible, long = 0, 0, 0
    for seed, problem in enumerate(unconstrained):
        for labels, start, end, expected in covering(problem, problem.every, seed):
            chance = problem.reading.pattern(labels, start, end)
            assert chance == pytest.approx(expected, abs=1e-9)
            possible += 0.01 < expected < 0.99
            impossible += chance == expected == 0.0
            long += len(labels) > 2 and expected > 0
    few = PROBLEMS < 45  # among which hardly any stretch has three labels
    assert few or (min(possible, long) > 5 and impossible)


# Through the component

SEMI = {"order": 2}
CRF = {"encoding": "bio", "order": 1}


def trained(model=SEMI, steps=15):
    nlp = spacy.blank("xx")
    trainer = {"@misc": "spacy-hocrf.LBFGS.v1", "sigma": 1.0, "threads": 1}
    nlp.add_pipe("hocrf", config={"model": model, "trainer": trainer})
    teach(nlp, steps=steps)
    return nlp


@pytest.fixture(scope="module", params=[SEMI, CRF], ids=["semi", "bio"])
def nlp(request):
    return trained(request.param)


@pytest.mark.slow
def test_a_reading_gives_the_probabilities_of_predictions_and_changes_no_doc(nlp):
    pipe, texts = nlp.get_pipe("hocrf"), [text for text, _ in documents()]
    texts += ["", " \n ", texts[0].replace(" ", "  ", 2)]
    docs = [nlp.make_doc(text) for text in texts]
    before = [doc.to_bytes() for doc in docs]
    found = list(pipe.readings(docs))
    assert [doc.to_bytes() for doc in docs] == before
    predicted = list(nlp.pipe(texts))
    assert any(len(doc.ents) for doc in predicted)
    for reading, doc in zip(found, predicted, strict=True):
        assert len(reading) == len(doc)
        for ent, p in zip(doc.ents, entity_scores(doc)):
            close = pytest.approx(float(p), abs=1e-6)
            assert reading.probability(ent.start, ent.end, ent.label_) == close
            assert (ent.start, ent.end, ent.label_) in {
                s[:3] for s in reading.spans(float(p) - 1e-6)
            }
        assert reading.log_probability(doc.ents) <= 1e-9
        assert reading.entropy() >= 0
        assert reading.tokens().shape == (len(doc), len(reading.labels) + 1)
        assert_allclose(reading.tokens().sum(axis=1), 1.0, atol=1e-9)
        one = pipe.reading(nlp.make_doc(doc.text))
        assert one.log_partition == pytest.approx(reading.log_partition, rel=1e-12)
        assert_allclose(one.tokens(), reading.tokens(), atol=1e-10)


def test_what_was_set_before_is_certain(nlp):
    text = next(text for text, spans in documents() if spans)
    doc = nlp.make_doc(text)
    label = nlp.get_pipe("hocrf").labels[0]
    doc.set_ents([Span(doc, 0, 1, label=label)], default="missing")
    reading = nlp.get_pipe("hocrf").reading(doc)
    assert reading.probability(0, 1, label) == pytest.approx(1.0)
    assert reading.tokens()[0].max() == pytest.approx(1.0)


def test_a_reading_stays_as_it_was_when_the_model_trains_on():
    nlp = trained(steps=2)
    pipe, doc = nlp.get_pipe("hocrf"), nlp.make_doc(documents()[0][0])
    old, before = pipe.reading(doc), pipe.reading(doc).tokens()
    fit(nlp, examples(nlp), 30)
    assert_allclose(old.tokens(), before)
    assert not np.allclose(pipe.reading(doc).tokens(), before, atol=1e-3)


WORDS, TAGS = ["the", "dog", "saw", "the", "cat"], ["D", "N", "V", "D", "N"]


def tagger(scores=True, **settings):
    nlp = spacy.blank("xx")
    nlp.add_pipe("hocrf_tagger", config={"scores": scores, **settings})
    data = [
        spacy.training.Example.from_dict(Doc(nlp.vocab, words=WORDS), {"tags": TAGS})
        for _ in range(3)
    ]
    nlp.initialize(lambda: data)
    for _ in range(20):
        nlp.update(data, sgd=nlp.create_optimizer())
    return nlp


ACCURACY = {"@misc": "spacy-hocrf.ExpectedAccuracy.v1"}


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"decoder": ACCURACY}], ids=["viterbi", "accuracy"])
def test_every_tag_has_its_probability(settings):
    nlp = tagger(**settings)
    texts = [WORDS, ["the", "the", "cat"], [], ["saw"]]
    for words, doc in zip(texts, nlp.pipe(Doc(nlp.vocab, words=words) for words in texts)):
        reading = nlp.get_pipe("hocrf_tagger").reading(Doc(nlp.vocab, words=words))
        expected = [p[reading.labels.index(token.tag_)] for token, p in zip(doc, reading.tokens())]
        assert [token._.hocrf_score for token in doc] == pytest.approx(expected, abs=1e-6)
        again = Doc(nlp.vocab).from_bytes(doc.to_bytes())
        assert [token._.hocrf_score for token in again] == [t._.hocrf_score for t in doc]


@pytest.mark.slow
def test_tags_of_others_have_no_probability_and_scores_can_be_left_out():
    nlp = tagger()
    doc = Doc(nlp.vocab, words=WORDS, tags=["D", "", "", "", ""])
    assert nlp(doc)[0]._.hocrf_score is None
    assert all(token._.hocrf_score is not None for token in doc[1:])
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[0:2])
    known = [token._.hocrf_score is not None for token in doc]
    assert known == [False, True, True, True]  # the merged token has a tag of spaCy's choice
    plain = tagger(scores=False)(Doc(nlp.vocab, words=WORDS))
    assert [token.tag_ for token in plain] == TAGS
    assert [token._.hocrf_score for token in plain] == [None] * 5


ALL = {"select": "all", "threshold": 0.05}


def as_spans(example):
    example.reference.spans["sc"] = list(example.reference.ents)
    return example


@pytest.mark.slow
@pytest.mark.parametrize("model", [SEMI, CRF], ids=["semi", "bio"])
def test_all_probable_spans_are_written_with_their_scores(model, tmp_path):
    nlp = spacy.blank("xx")
    trainer = {"@misc": "spacy-hocrf.LBFGS.v1", "sigma": 1.0, "threads": 1}
    nlp.add_pipe("hocrf_spans", name="hocrf", config={"model": model, "trainer": trainer, **ALL})
    data = [as_spans(example) for example in examples(nlp)]
    learn_from(nlp, data, 4)
    texts = [text for text, _ in documents()] + ["", " \n ", documents()[0][0].replace(" ", "  ")]
    nlp.to_disk(tmp_path / "model")
    loaded = spacy.load(tmp_path / "model")
    overlapping = 0
    for doc, again in zip(nlp.pipe(texts), loaded.pipe(texts), strict=True):
        written = [
            (span.start, span.end, span.label_, float(p))
            for span, p in zip(doc.spans["sc"], doc.spans["sc"].attrs["scores"])
        ]
        asked = nlp.get_pipe("hocrf").reading(nlp.make_doc(doc.text)).spans(at_least=0.05)
        assert [span[:3] for span in written] == [span[:3] for span in asked]
        assert_allclose([s[3] for s in written], [s.probability for s in asked], atol=1e-6)
        assert [span._.hocrf_score for span in doc.spans["sc"]] == [span[3] for span in written]
        assert list(again.spans["sc"].attrs["scores"]) == list(doc.spans["sc"].attrs["scores"])
        ends = [end for _, end, _, _ in written]
        overlapping += any(end > start for end, (start, *_) in zip(ends, written[1:]))
    assert overlapping
    # as `spacy find-threshold` tries it
    every = spacy.load(tmp_path / "model", config={"components.hocrf.threshold": 0.0})
    assert len(every(texts[0]).spans["sc"]) > len(loaded(texts[0]).spans["sc"])


@pytest.mark.parametrize(
    "settings, code",
    [
        ({"select": "some"}, "H202.*'some'.*hocrf_spans"),
        ({"select": "all"}, "H203.*threshold = null"),
        ({"select": "all", "threshold": -0.5}, "H203.*threshold = -0.5"),
        ({**ALL, "scores": False}, "H203.*scores = false"),
        ({**ALL, "joint": joint()}, "H203.*together"),
    ],
)
def test_settings_that_do_not_go_with_all_spans_are_errors(settings, code):
    with pytest.raises(ValueError, match=code):
        spacy.blank("xx").add_pipe("hocrf_spans", config=settings)


@pytest.mark.parametrize(
    "ask, code",
    [
        (lambda r: r.probability(2, 2, r.labels[0]), "H197"),
        (lambda r: r.probability(0, 99, r.labels[0]), "H197"),
        (lambda r: r.log_probability([(0, 2, r.labels[0]), (1, 3, r.labels[0])]), "H197.*overlaps"),
        (lambda r: r.probability(0, 1, "nobody"), "H198.*nobody"),
        (lambda r: r.probabilities([(0, 1, r.labels[0]), (0, 1, "nobody")]), "H198.*nobody"),
        (lambda r: r.expected_count("nobody"), "H198"),
        (lambda r: r.pattern(["nobody"]), "H199.*nobody"),
        (lambda r: r.pattern([]), "H199.*nothing"),
        (lambda r: r.pattern(["nobody"], 0, 1), "H199.*nobody"),
        (lambda r: r.pattern([], 0, 1), "H199.*nothing"),
        (lambda r: r.pattern([r.labels[0]], 2, 2), "H197.*tokens 2 to 2"),
        (lambda r: r.pattern([r.labels[0]], -1, 2), "H197"),
        (lambda r: r.pattern([r.labels[0]], 0, 99), "H197"),
        (lambda r: r.pattern([r.labels[0]], 0.5, 2), "H197.*tokens 0.5 to 2"),
        (lambda r: r.pattern([r.labels[0]], 0, "2"), "H197"),
        (lambda r: r.pattern([r.labels[0]], 1), "H197.*tokens 1 to None"),
        (lambda r: r.spans(0.0), "H200"),
        (lambda r: r.spans(1.5), "H200.*1.5"),
        (lambda r: r.spans("a"), "H200.*'a'"),
        (lambda r: r.spans(None), "H200.*None"),
        (lambda r: r.spans(True), "H200.*True"),
        (lambda r: r.to_html([0.5]), "H200"),
    ],
)
def test_questions_that_have_no_answer_are_errors(nlp, ask, code):
    reading = nlp.get_pipe("hocrf").reading(nlp.make_doc(documents()[0][0]))
    with pytest.raises(ValueError, match=code):
        ask(reading)


def test_too_much_white_space_to_sum_over_is_an_error(monkeypatch):
    drawn = (Enumerated("bio", seed) for seed in count())
    problem = next(each for each in drawn if each.blank.any() and each.length == 4 and each.every)
    monkeypatch.setattr(whitespace, "MAX_VARIANTS", 0)
    with pytest.raises(ValueError, match="H201"):
        problem.reading.log_probability([], complete=False)


def test_an_untrained_component_has_nothing_to_say():
    nlp = spacy.blank("xx")
    pipe = nlp.add_pipe("hocrf")
    with pytest.raises(ValueError, match="H042"):
        pipe.reading(nlp.make_doc("x"))


@given(oracle.batches(min_size=1))
def test_the_potentials_of_one_sequence_are_cut_out_of_a_batch(problems):
    joined = oracle.batch([problem.potentials for problem in problems])
    for i, problem in enumerate(problems):
        one = joined.only(i)
        for field in fields(Potentials):
            assert_array_equal(getattr(one, field.name), getattr(problem.potentials, field.name))


@pytest.mark.slow
@given(oracle.batches(min_size=1))
def test_potentials_are_repeated_as_a_batch_of_copies(problems):
    joined = oracle.batch([problem.potentials for problem in problems])
    expected = oracle.batch([problem.potentials for problem in problems * 3])
    repeated = joined.repeated(3)
    for field in fields(Potentials):
        assert_array_equal(getattr(repeated, field.name), getattr(expected, field.name))


def test_the_product_of_all_labels_is_what_is_enumerated():
    """The enumeration itself: as many segmentations of a tagger as there are products of tags."""
    problem = Enumerated("tags", 1)
    every = {tuple(segment.label for segment in each) for each in problem.every}
    assert every == set(product(range(3), repeat=problem.length))


def test_a_doc_with_predictions_is_asked_about_like_one_without():
    """Its entities are what the model thinks, and not certain; those of others are."""
    nlp = spacy.blank("xx")
    nlp.add_pipe("hocrf", config={"model": {"order": 1}})
    teach(nlp, steps=3)
    pipe, text = nlp.get_pipe("hocrf"), documents()[0][0]
    bare, done = nlp.make_doc(text), nlp(text)
    assert done.ents
    for span, p in zip(done.ents, entity_scores(done)):
        for doc in (bare, done):
            chance = pipe.reading(doc).probability(span.start, span.end, span.label_)
            assert chance == pytest.approx(p, rel=1e-6) and chance < 1
        assert pipe.explain(done, span).log_odds == pipe.explain(bare, span).log_odds
    taken = {t for span in done.ents for t in range(span.start, span.end)}
    (free, *_) = [t for t in range(len(done)) if t not in taken]
    done.ents = [*done.ents, Span(done, free, free + 1, "EVENT")]
    reading = pipe.reading(done)
    assert reading.tokens()[free, -1] == pytest.approx(1.0)
    assert reading.probability(*(lambda e: (e.start, e.end, e.label_))(done.ents[0])) < 1
