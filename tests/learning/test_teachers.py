"""Soft annotation: what teachers say of training texts, by spans with scores."""

from itertools import combinations, pairwise
from math import prod

import numpy as np
import oracle
import pytest
from component_oracle import scored
from derivatives import assert_gradient
from pytest import approx
from small_corpus import MODELS, examples, found, learner_of, trained, untrained, words
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_hocrf.annotation.annotation import SoftSpan, log_odds

KEY = "teacher"
SOFT = {  # words: what the teacher says, (start, end, label): score
    "Grace Hopper left London": {
        (0, 1, "PERSON"): 0.3,
        (0, 2, "PERSON"): 0.6,
        (3, 4, "PLACE"): 0.9,
        (3, 4, "PERSON"): 0.05,
    },
    "it rains in New York": {(3, 5, "PLACE"): 0.4, (4, 5, "PLACE"): 0.25, (2, 4, "PLACE"): 0.1},
    "Ada Emmy Carl slept": {
        (0, 1, "PERSON"): 0.7,
        (1, 2, "PERSON"): 0.8,
        (0, 3, "PERSON"): 0.05,
        (2, 3, "PERSON"): 1.0,
    },
}
SEGMENTATIONS = [name for name in MODELS if name != "tagger"]


def taught(nlp, text, said, key=KEY, predicted=None, **attrs):
    """An example of which nothing is annotated, and a teacher says something."""
    doc = words(nlp, *text.split())
    doc.spans[key] = [Span(doc, *span) for span in said]
    doc.spans[key].attrs.update({"scores": [*said.values()]} if attrs == {} else attrs)
    return Example(words(nlp, *text.split()) if predicted is None else predicted, doc)


def shown(name, rows=SOFT, **settings):
    """A pipeline that has been shown the small corpus and taught texts, and the learner."""
    factory, model = MODELS[name]
    nlp = untrained(factory, model, teachers=[KEY], **settings)
    every = [*examples(nlp), *(taught(nlp, text, said) for text, said in rows.items())]
    nlp.initialize(lambda: every)
    return nlp, learner_of(nlp.get_pipe("hocrf")), every


def apart(name):
    """Texts whose spans a model can tell apart: in the last one, persons touch."""
    return dict([*SOFT.items()][: 2 if MODELS[name][1].get("encoding") == "io" else 3])


def fitted(said):
    """{spans: probability} of a text: the distribution of largest entropy over spans that do not overlap in
    which each has its probability, by iterative proportional fitting.
    """
    sets = [
        chosen
        for size in range(len(said) + 1)
        for chosen in combinations(sorted(said), size)
        if all(a[1] <= b[0] for a, b in pairwise(chosen))
        and all(span in chosen for span, p in said.items() if p == 1)
    ]
    q = np.full(len(sets), 1 / len(sets))
    for _ in range(2000):
        for span, p in said.items():
            has = np.array([span in chosen for chosen in sets])
            if p < 1 and has.any():
                q *= np.where(has, p / q[has].sum(), (1 - p) / q[~has].sum())
    return dict(zip(sets, q.tolist(), strict=True))


def readings(said, scheme):
    """{spans: probability} of a text: `fitted`, of those that the model can tell apart."""
    mass = {chosen: p for chosen, p in fitted(said).items() if scheme.can_have(chosen)}
    return {spans: p / sum(mass.values()) for spans, p in mass.items()}


def test_spans_that_overlap_have_their_probabilities():
    """As shares of answers: one in which all five have one of two spans has no text without either."""
    for said in [
        *SOFT.values(),
        {(0, 3, "PERSON"): 0.6, (1, 3, "PERSON"): 0.2, (3, 4, "PLACE"): 0.5},
    ]:
        soft = [SoftSpan(*span, p) for span, p in sorted(said.items()) if p < 1]
        weights = dict(zip((span[:3] for span in soft), np.exp(log_odds(soft)), strict=True))
        expected = fitted({span: p for span, p in said.items() if p < 1})
        mass = {chosen: prod(weights[span] for span in chosen) for chosen in expected}
        assert mass == approx({c: p / expected[()] for c, p in expected.items()}, rel=1e-6)


@pytest.mark.parametrize("first, second", [(0.6, 0.4), (0.9, 0.6)])
def test_spans_of_which_one_must_be_there_leave_no_text_without_them(first, second):
    scores = log_odds([SoftSpan(0, 3, "A", first), SoftSpan(1, 3, "B", second)])
    assert np.exp(scores[0] - scores[1]) == approx(first / second, rel=1e-6)
    assert scores.min() > 15


def test_of_no_span_there_are_no_log_odds():
    assert log_odds([]).tolist() == []


@pytest.mark.parametrize("name", SEGMENTATIONS)
def test_the_loss_is_the_cross_entropy_of_the_readings_by_their_spans(name):
    rows = apart(name)
    nlp, learner, every = shown(name, rows, trainer={"@misc": "spacy-hocrf.LBFGS.v1", "sigma": 1.0})
    pipe, scheme = nlp.get_pipe("hocrf"), learner.scheme
    weights = np.random.default_rng(0).normal(size=len(learner.weights))
    only = learner.corpus.only(d for d in learner.corpus.documents if d.soft)
    assert len(only) == len(rows)
    penalty = float(weights @ weights) / 2
    complete = learner.corpus.without(only.documents)
    expected = 0.0
    for example, said in zip(every[-len(rows) :], rows.values()):
        now = scored(learner.structure, [example.predicted], weights)
        q = readings(said, scheme)
        expected += np.logaddexp.reduce([*now.values()])
        spans = {each: tuple(oracle.decoded(scheme, each)) for each in now}
        known = {spans[each]: score for each, score in now.items() if spans[each] in q}
        assert len(known) == len(q)  # one segmentation each
        expected -= sum(p * known[each] for each, p in q.items())
    objective = pipe.objective()
    learner.corpus = complete
    rest = pipe.objective()(weights)[0] - penalty
    loss, _ = objective(weights)
    assert loss == pytest.approx(rest + expected + penalty, rel=1e-9)
    assert_gradient(objective, weights, 3)


def gold(nlp, example, teachers=(KEY,)):
    """What is known of an example."""
    learner = learner_of(untrained(teachers=[*teachers]).get_pipe("hocrf"))
    return learner.gold.annotation(example)


def test_of_several_teachers_the_probability_is_the_mean_and_one_without_scores_is_sure():
    nlp = untrained()
    example = taught(nlp, "Ada left Paris", {(0, 1, "PERSON"): 0.5, (2, 3, "PLACE"): 0.25})
    doc = example.reference
    doc.spans["other"] = [Span(doc, 0, 1, "PERSON"), Span(doc, 2, 3, "PERSON")]
    found = gold(nlp, example, (KEY, "other", "silent"))
    assert found.soft == ((0, 1, "PERSON", 0.75), (2, 3, "PERSON", 0.5), (2, 3, "PLACE", 0.125))
    assert found.spans == ((0, 1, "PERSON"), (2, 3, "PERSON")) and found.complete
    assert gold(nlp, example, ("other",)).spans == ((0, 1, "PERSON"), (2, 3, "PERSON"))
    assert not gold(nlp, example, ("other",)).soft


def test_of_spans_that_overlap_the_most_probable_together_are_learnt_by_others():
    said = {(0, 3, "PERSON"): 0.6, (0, 1, "PERSON"): 0.65, (2, 3, "PLACE"): 0.65}
    found = gold(untrained(), taught(untrained(), "Ada left Paris", said))
    assert found.spans == ((0, 1, "PERSON"), (2, 3, "PLACE"))


def test_annotation_goes_before_teachers():
    nlp = untrained()
    example = taught(nlp, "Ada left Paris", {(0, 1, "PLACE"): 0.5, (2, 3, "PLACE"): 0.75})
    doc = example.reference
    doc.set_ents([Span(doc, 0, 1, "PERSON")], missing=[doc[1:3]])
    found = gold(nlp, example)
    assert found.spans == ((0, 1, "PERSON"), (2, 3, "PLACE"))
    assert found.soft == ((2, 3, "PLACE", 0.75),)
    doc.set_ents([], default="outside")
    assert gold(nlp, example).complete and not gold(nlp, example).spans


def test_where_a_teacher_finds_nothing_there_is_nothing():
    nlp = untrained()
    found = gold(nlp, taught(nlp, "It rains", {}, scores=[]))
    assert found.complete and not found.empty and not found.spans and found.has_outside


def test_what_a_teacher_leaves_unknown_is_unknown_and_nothing_of_the_text_is_soft():
    nlp = untrained()
    said = {(0, 1, "PERSON"): 0.75, (2, 3, "PLACE"): 0.25}
    found = gold(
        nlp, taught(nlp, "Ada left Paris today", said, scores=[0.75, 0.25], unknown=[[3, 4]])
    )
    assert found.spans == ((0, 1, "PERSON"),) and found.soft == ()
    assert found.unknown.tolist() == [False, False, False, True]


def test_a_span_that_fits_no_tokens_is_unknown():
    nlp = untrained()
    said = {(0, 2, "PLACE"): 0.75, (3, 4, "PERSON"): 0.75}
    tokens = Doc(nlp.vocab, ["New", "Yo", "rk-", "based", "Ada"], [True, False, False, True, False])
    doc = Doc(nlp.vocab, ["New", "York", "-based", "Ada"], [True, False, True, False])
    doc.spans[KEY] = [Span(doc, *span) for span in said]
    found = gold(nlp, Example(tokens, doc))
    assert found.spans == ((4, 5, "PERSON"),)
    assert found.unknown.tolist() == [True, True, True, False, False]


@pytest.mark.parametrize(
    "attrs, label, code",
    [
        ({"scores": [1.5]}, "PERSON", "H535"),
        ({"scores": [float("nan")]}, "PERSON", "H535"),
        ({"scores": [-0.1]}, "PERSON", "H535"),
        ({"scores": [0.5, 0.5]}, "PERSON", "H535"),
        ({"scores": [0.5]}, "", "H535"),
        ({"scores": ["high"]}, "PERSON", "H535"),
        ({"scores": None}, "PERSON", "H535"),
        ({"scores": [[0.5], 0.5]}, "PERSON", "H535"),
        ({"unknown": [1]}, "PERSON", "H538"),
    ],
)
def test_what_is_no_probability_of_a_span_is_refused(attrs, label, code):
    nlp = untrained(teachers=[KEY])
    example = taught(nlp, "Ada slept", {(0, 1, label): 0.5}, **attrs)
    with pytest.raises(ValueError, match=code):
        nlp.initialize(lambda: [example])


def test_two_certain_spans_that_overlap_are_refused():
    nlp = untrained(teachers=[KEY])
    example = taught(nlp, "Grace Hopper slept", {(0, 2, "PERSON"): 1.0, (1, 2, "PLACE"): 1.0})
    with pytest.raises(ValueError, match=r"H536.*'Grace Hopper' \(PERSON\) and 'Hopper' \(PLACE\)"):
        nlp.initialize(lambda: [example])


@pytest.mark.parametrize("teachers", [[""], ["sc"], ["a", "a"]])
def test_names_of_no_teachers_are_refused(teachers):
    with pytest.raises(ValueError, match="H537"):
        untrained("hocrf_spans", teachers=teachers)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SEGMENTATIONS if "hocrf" in MODELS[name][0]])
def test_what_teachers_say_is_learnt_saved_and_loaded(name, tmp_path):
    nlp, _, every = shown(name, apart(name))
    optimizer = nlp.initialize(lambda: every[-2:])
    while nlp.get_pipe("hocrf").run.running:
        nlp.update(every[-2:], sgd=optimizer)
    nlp.to_disk(tmp_path)
    again = untrained(*MODELS[name], teachers=[KEY]).from_disk(tmp_path)
    for example in every[-2:]:
        assert found(again(example.predicted.copy())) == found(nlp(example.predicted.copy()))
    chances = nlp.get_pipe("hocrf").reading(words(nlp, "it", "rains", "in", "New", "York"))
    assert 0.2 < chances.probability(3, 5, "PLACE") < 0.4  # 0.34 of all readings


def test_a_teacher_of_whom_no_text_has_anything_is_said():
    nlp = untrained(teachers=["other", "techer"])
    taught_texts = [taught(nlp, text, said) for text, said in SOFT.items()]
    with pytest.warns(UserWarning, match="W004|W052") as caught:
        nlp.initialize(lambda: [*examples(nlp), *taught_texts])
    said = [str(each.message) for each in caught if "W052" in str(each.message)]
    assert [text.split("'")[1] for text in said] == ["other", "techer"]
    assert all("there are: sc, teacher." in text for text in said)
    nlp = untrained(teachers=["other", "techer"])
    with pytest.raises(ValueError, match=r"H050.*in doc.ents or doc.spans\['other'\] or doc.spans"):
        nlp.initialize(lambda: taught_texts)


def test_batches_of_sgd_take_the_most_probable_reading():
    trainer = {"@misc": "spacy-hocrf.SGD.v1"}
    nlp, _, every = shown("semi-CRF, outside tokens", trainer=trainer)
    pipe, soft = nlp.get_pipe("hocrf"), every[-len(SOFT)]
    hard = soft.reference.copy()
    hard.set_ents([Span(hard, 0, 2, "PERSON"), Span(hard, 3, 4, "PLACE")])
    predicted = pipe.model.predict([soft.predicted])
    losses = [pipe.get_loss([Example(soft.predicted, y)], predicted)[0] for y in (soft.y, hard)]
    assert losses[0] == losses[1] > 0.0


@pytest.mark.slow
def test_a_loaded_model_is_adapted_to_what_teachers_say():
    _, _, every = shown("semi-CRF, outside tokens")
    trainer = {"@misc": "spacy-hocrf.LBFGS.v1", "prior": "loaded"}
    again = untrained(teachers=[KEY], trainer=trainer).from_bytes(trained().to_bytes())
    optimizer = again.resume_training()
    rows = every[-len(SOFT) :]
    for _ in range(3):
        again.update(rows, sgd=optimizer)
    learner = learner_of(again.get_pipe("hocrf"))
    assert sum(bool(document.soft) for document in learner.corpus.documents) == len(SOFT)
