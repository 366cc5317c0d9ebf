"""What a loaded model says of texts that are annotated in part, beside all their segmentations."""

from dataclasses import replace

import numpy as np
import oracle
import pytest
from component_oracle import scored
from derivatives import assert_gradient
from numpy.testing import assert_allclose
from small_corpus import MODELS, examples, fit, found, learner_of, trained, untrained, words
from spacy.tokens import Span
from spacy.training import Example

from spacy_hocrf.annotation.annotation import Annotation, TextConstraint
from spacy_hocrf.annotation.weights import set_weight
from spacy_hocrf.learning.corpus import Corpus
from spacy_hocrf.learning.loaded import LoadedModel
from spacy_hocrf.training.lbfgs import LBFGSTrainer
from spacy_hocrf.training.sgd import SGDTrainer

TEXTS = (("Ada came on Monday", [3]), ("Friday is cold", [0]), ("Emmy slept", []))
"""Words, and the numbers of those that are a day."""


def of_days(nlp, texts=TEXTS):
    """Texts in which days alone are annotated."""
    rows = []
    for text, days in texts:
        doc = words(nlp, *text.split())
        spans = [(doc[i].idx, doc[i].idx + len(doc[i]), "DAY") for i in days]
        tags = ["DAY" if i in days else "" for i in range(len(doc))]
        told = {"entities": spans, "spans": {"sc": spans}, "tags": tags}
        rows.append(Example.from_dict(doc, told))
    return rows


def loaded(factory="hocrf", model=None, **settings):
    """A pipeline that has been trained, saved and loaded."""
    before = trained(factory, model)
    return untrained(factory, model, **settings).from_bytes(before.to_bytes())


def adapting(nlp):
    """Its learner, shown the texts."""
    learner = learner_of(nlp.get_pipe("hocrf"))
    learner.add_label("DAY")
    learner.gold = learner.corpus.gold = replace(learner.gold, positives_only=True)
    learner.set_trainer(LBFGSTrainer(sigma=2.0, prior="loaded", adapt_sigma=0.5))
    assert learner.add(of_days(nlp)) == len(TEXTS)
    return learner


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_the_objective_is_the_cross_entropy_of_the_readings_that_keep_the_annotation(name):
    nlp = loaded(*MODELS[name])
    learner = adapting(nlp)
    weights = np.random.default_rng(0).normal(size=len(learner.weights))
    expected = 0.0
    for example, (_, days) in zip(of_days(nlp), TEXTS):
        doc, scheme = example.predicted, learner.scheme
        now = scored(learner.structure, [doc], weights)
        before = scored(learner.structure, [doc], learner.loaded_weights)
        spans = {each: oracle.decoded(scheme, each) for each in now}
        kept = [
            each
            for each in now
            if {(a, b) for a, b, label in spans[each] if label == "DAY"}
            == {(day, day + 1) for day in days}
        ]
        assert 1 <= len(kept) < len(now)
        score = np.array([before[each] for each in kept])
        q = np.exp(score - np.logaddexp.reduce(score))
        total = np.logaddexp.reduce([*now.values()])
        expected += total - q @ np.array([now[each] for each in kept])
    new = learner.new_features
    assert 0 < new.sum() < len(new) and not learner.loaded_weights[new].any()
    sigma, mean = np.where(new, 2.0, 0.5), np.where(new, 0.0, learner.loaded_weights)
    penalty = float((((weights - mean) / sigma) ** 2).sum()) / 2
    objective = learner.objective()
    loss, _ = objective(weights)
    assert loss == pytest.approx(expected + penalty, rel=1e-9)
    assert_gradient(objective, weights, 3)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_one_more_label_is_learnt_and_none_forgotten(name):
    nlp = loaded(*MODELS[name])
    before = answers(nlp)
    assert nlp.get_pipe("hocrf").extend(of_days(nlp)) == ["DAY"]
    assert "DAY" in nlp.get_pipe("hocrf").labels
    assert is_day(nlp, "Grace left on Monday", 3)
    assert answers(nlp) == before == answers(untrained(*MODELS[name]).from_bytes(nlp.to_bytes()))


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_a_known_label_alone_is_learnt_and_none_forgotten(name):
    nlp = loaded(*MODELS[name])
    pipe, before = nlp.get_pipe("hocrf"), answers(nlp)
    pipe.extend(of_days(nlp))
    assert pipe.extend(of_days(nlp, [("Ada read Sunday papers", [2])]), alone=True) == []
    assert is_day(nlp, "Ada read Sunday papers", 2)
    assert answers(nlp) == before


def answers(nlp):
    """What is found in the texts that the loaded model was trained on."""
    return [found(doc) for doc in nlp.pipe([each.predicted.copy() for each in examples(nlp)])]


def is_day(nlp, text, i):
    """Is token i of a text a DAY, as its last span or as a tag?"""
    answer = found(nlp(words(nlp, *text.split())))
    return answer[i] == "DAY" if isinstance(answer[0], str) else answer[-1] == (i, i + 1, "DAY")


@pytest.mark.slow
def test_texts_that_say_where_a_label_is_not_are_learnt_from():
    """One text has no day: without it, the model would be surer of days."""
    nlp = loaded()
    few = nlp.get_pipe("hocrf").structure.size
    nlp.get_pipe("hocrf").extend(of_days(nlp)[:2])
    every = loaded()
    every.get_pipe("hocrf").extend(of_days(every))
    assert nlp.get_pipe("hocrf").structure.size > few
    doc = words(nlp, "Emmy", "slept", "cold")
    sure, careful = (
        each.get_pipe("hocrf").reading(doc.copy()).expected_count("DAY") for each in (nlp, every)
    )
    assert 0 < careful < sure


@pytest.fixture
def taken_in(monkeypatch):
    """The documents that corpora take in, those of each time."""
    times, add = [], Corpus.add

    def noted(*given):
        times.append(add(*given))
        return times[-1]

    monkeypatch.setattr(Corpus, "add", noted)
    return times


@pytest.mark.slow
def test_where_all_is_annotated_nothing_is_filled_in(taken_in):
    nlp = loaded()
    doc = words(nlp, "Ada", "came", "on", "Monday")
    tags = ["U-PERSON", "O", "O", "U-DAY"]
    nlp.get_pipe("hocrf").extend([Example.from_dict(doc, {"entities": tags})])
    assert [document.complete for document in taken_in[-1]] == [True]
    assert not learner_of(nlp.get_pipe("hocrf")).gold.positives_only


@pytest.mark.slow
@pytest.mark.parametrize("positives_only", [False, True])
def test_a_component_that_has_seen_positives_only_takes_new_texts_so(positives_only, taken_in):
    nlp = untrained(positives_only=positives_only).from_bytes(trained().to_bytes())
    doc = words(nlp, "Ada", "left", "Paris", "on", "Monday")
    tags = ["U-PERSON", "O", "O", "O", "U-DAY"]
    nlp.get_pipe("hocrf").extend([Example.from_dict(doc, {"entities": tags})])
    assert [document.complete for document in taken_in[-1]] == [not positives_only]


@pytest.mark.slow
def test_what_is_learnt_after_a_label_is_what_a_loaded_model_learns():
    """The texts of the label are in no corpus, so they do not outweigh those of the old labels."""
    nlp, rows = loaded(), examples(loaded())[:2]
    nlp.get_pipe("hocrf").extend(of_days(nlp))
    again = untrained().from_bytes(nlp.to_bytes())
    for each in (nlp, again):
        fit(each, rows)
    assert len(learner_of(nlp.get_pipe("hocrf")).corpus) == len(rows)
    assert nlp.to_bytes() == again.to_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("scores", [None, [0.9]])
def test_where_teachers_say_a_new_label_alone_nothing_is_forgotten(scores):
    nlp = untrained(teachers=["llm"]).from_bytes(trained().to_bytes())
    rows = []
    for example in of_days(nlp):
        doc = example.reference.copy()
        days = list(doc.ents)
        doc.set_ents([], default="missing")
        doc.spans["llm"] = days
        doc.spans["llm"].attrs.update({} if scores is None else {"scores": scores * len(days)})
        rows.append(Example(example.predicted, doc))
    assert nlp.get_pipe("hocrf").extend(rows) == ["DAY"]
    assert found(nlp(rows[0].predicted.copy())) == [(0, 1, "PERSON"), (3, 4, "DAY")]


@pytest.mark.slow
def test_annotation_in_part_is_filled_in_by_a_model_that_goes_on_to_be_trained():
    """Without `extend`: what stands in a text is as the loaded model says, given what is known."""
    nlp = loaded()
    doc = words(nlp, "Ada", "Lovelace", "was", "born", "in", "Rome")
    partial = Example.from_dict(doc, {"entities": ["-", "-", "-", "-", "-", "U-PLACE"]})
    fit(nlp, [partial])
    assert found(nlp(doc.copy())) == [(0, 2, "PERSON"), (5, 6, "PLACE")]
    [shard] = learner_of(nlp.get_pipe("hocrf")).shards()
    assert shard.compiled.observed.scores is not None


@pytest.mark.slow
def test_texts_without_a_new_label_are_learnt_as_training_that_goes_on_does():
    nlp, other = loaded(), loaded()
    pipe = nlp.get_pipe("hocrf")
    assert pipe.extend(examples(nlp)) == []
    fit(other, examples(other))
    weights = [each.get_pipe("hocrf").model.get_param("W") for each in (nlp, other)]
    assert_allclose(*weights, atol=1e-5)
    assert learner_of(pipe).trainer == learner_of(other.get_pipe("hocrf")).trainer


ONLY = {"@misc": "spacy-hocrf.Grammar.v1", "expression": "(PERSON | PLACE)*", "price": "inf"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"rules": {"only": {**ONLY, "others": "nowhere"}}}, "the rule 'Grammar"),
        ({"at_most": {"DAY": 0}, "training": "none"}, "the rule 'AtMost"),
        ({"forbidden": [[x, "DAY"] for x in ("O", "", "PERSON", "PLACE")]}, "forbidden"),
        ({"required": [["DAY", "DAY"]]}, "required"),
    ],
)
def test_a_new_label_that_rules_exclude_from_every_text_is_refused(settings, named):
    nlp = loaded(constraints={"@misc": "spacy-hocrf.Constraints.v1", **settings})
    pipe = nlp.get_pipe("hocrf")
    before = pipe.to_bytes()
    with pytest.raises(ValueError, match=f"H582.*'DAY'.*{named}"):
        pipe.extend(of_days(nlp))
    assert pipe.to_bytes() == before


@pytest.mark.slow
def test_a_new_label_that_some_texts_may_have_is_learnt():
    allowed = {"rules": {"only": ONLY}, "forbidden": [["O", "DAY"], ["DAY", "DAY"]]}
    nlp = loaded(constraints={"@misc": "spacy-hocrf.Constraints.v1", **allowed})
    assert nlp.get_pipe("hocrf").extend(of_days(nlp)) == ["DAY"]


@pytest.mark.slow
def test_a_trainer_without_a_prior_and_texts_without_a_span_are_refused():
    nlp = loaded()
    pipe = nlp.get_pipe("hocrf")
    before = pipe.to_bytes()
    with pytest.raises(ValueError, match=r"H511.*None of the 1 texts.*doc\.ents"):
        pipe.extend([Example.from_dict(words(nlp, "Emmy", "slept"), {"entities": []})])
    left_out = of_days(nlp)
    for example in left_out:
        set_weight(example.reference, 0)
    with pytest.raises(ValueError, match=r"H255.*All \d+ training texts have the weight 0"):
        pipe.extend(left_out)
    pipe.set_trainer(SGDTrainer())
    with pytest.raises(ValueError, match=r"H510.*SGDTrainer"):
        pipe.extend(of_days(nlp))
    assert pipe.to_bytes() == before
    with pytest.raises(ValueError, match="H042"):
        untrained().get_pipe("hocrf").extend(of_days(nlp))


def constrained(example, kind):
    """The text with constraints in the place of its spans."""
    doc = example.reference.copy()
    spans = [Span(doc, ent.start, ent.end, ent.label_, span_id=kind) for ent in doc.ents]
    doc.set_ents([], default="missing")
    doc.spans["hocrf_constraints"] = spans
    return Example(example.predicted, doc)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["span", "inside", "only"])
def test_constraints_teach_a_new_label(kind):
    nlp = loaded()
    nlp.get_pipe("hocrf").extend([constrained(each, kind) for each in of_days(nlp)])
    assert found(nlp(words(nlp, "Grace", "left", "on", "Monday")))[-1] == (3, 4, "DAY")


@pytest.mark.slow
def test_constraints_leave_open_where_a_span_of_a_known_label_ends():
    nlp = loaded()
    doc = words(nlp, "Ada", "Lovelace", "was", "born", "in", "Rome")
    before = found(nlp(doc.copy()))
    reference = doc.copy()
    reference.spans["hocrf_constraints"] = [Span(reference, 0, 1, "PERSON", span_id="inside")]
    assert nlp.get_pipe("hocrf").extend([Example(doc.copy(), reference)], alone=True) == []
    assert before[0] == (0, 2, "PERSON") and found(nlp(doc.copy())) == before


def test_labels_that_occur_only_where_they_are_annotated_are_forbidden_to_the_loaded_model():
    bits = np.full((2, 3), 7, dtype=np.uint8)
    offsets, unknown = np.array([0, 2]), np.ones(2, dtype=bool)
    free = Annotation((), unknown)
    assert LoadedModel(np.zeros(1), []).allowed(bits, offsets, [free]) is bits
    of_one = LoadedModel(np.zeros(1), [1])
    assert of_one.allowed(bits, offsets, [free]).tolist() == [[7, 0, 7]] * 2
    told = Annotation((), unknown, (TextConstraint(1, 2, "DAY", "inside"),))
    assert of_one.allowed(bits, offsets, [told]).tolist() == [[7, 0, 7], [7, 7, 7]]
    assert bits.all()
