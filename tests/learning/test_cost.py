"""The cost of a span: learnt from documents that the model has not seen, and kept with the model."""

import logging
import pickle
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import spacy
from small_corpus import ambiguous, decoder_of, examples, fit, found, initialize, trained, untrained

from spacy_hocrf.answers.decoders import DEFAULT_COST
from spacy_hocrf.arrays import offsets_of
from spacy_hocrf.learning import cost as costs
from spacy_hocrf.learning import heldout
from spacy_hocrf.learning.cost import Evidence, LearntCost, best_cost
from spacy_hocrf.training.lbfgs import LBFGSRun
from spacy_hocrf.types import Segments

EXPECTED_F = {"@misc": "spacy-hocrf.ExpectedF.v1"}
TRAINER = {"@misc": "spacy-hocrf.LBFGS.v1", "sigma": 1.0, "threads": 1}


def pipeline(count=24, model=None, **decoder):
    nlp = untrained(decoder={**EXPECTED_F, **decoder}, trainer=TRAINER, model=model or {})
    data = initialize(nlp, ambiguous(count))
    return nlp, data


@pytest.mark.parametrize("learnt, held", [([1], [2]), ([1], [3]), ([3], [2])])
def test_a_model_of_the_same_parts_alone_is_taken_again(learnt, held, monkeypatch):
    monkeypatch.setattr(costs, "_trained", lambda *_: "another")
    there = heldout.Trained("there", "trainer", [1], [2])
    learner = SimpleNamespace(folds=[there], trainer="trainer")
    expected = "there" if (learnt, held) == ([1], [2]) else "another"
    assert [*costs.held_out_models(learner, [(learnt, held)])] == [(expected, held)]


def random_evidence(seed, n_documents=30):
    """Overlapping spans with probabilities that mean something."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 8, n_documents)
    spans = [
        sorted((u, v) for u in range(n) for v in range(u + 1, n + 1) if rng.random() < 0.3)
        for n in lengths
    ]
    table = np.array([span for each in spans for span in each], dtype=np.int32).reshape(-1, 2)
    probability = rng.random(len(table)) ** 2
    right = rng.random(len(table)) < probability
    label = np.zeros(len(table), dtype=np.int32)
    segments = Segments(offsets_of([len(each) for each in spans]), *table.T, label)
    return Evidence(segments, probability, right, lengths, int(right.sum()) + 10)


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_f_score_counts_what_is_chosen(seed, beta):
    evidence = random_evidence(seed)
    for cost in (0.05, 0.3, 0.6):
        chosen = costs.best_subset(evidence.spans, evidence.probability - cost)
        right = evidence.right[chosen].sum()
        precision, recall = right / len(chosen), right / evidence.annotated
        weight = beta**2
        expected = (1 + weight) * precision * recall / (weight * precision + recall)
        assert evidence.f_score(cost, beta) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(3))
def test_more_recall_costs_less(seed):
    evidence = random_evidence(seed, 300)
    found_costs = [best_cost(evidence, beta) for beta in (0.3, 1.0, 3.0)]
    assert found_costs == sorted(found_costs, reverse=True)
    assert found_costs[0] > found_costs[2]


def test_where_probabilities_are_right_the_cost_is_half_of_the_f_score():
    """Dinkelbach's fixed point; the rest of the annotation is in no span's reach."""
    evidence = random_evidence(0, 3000)
    cost = best_cost(evidence, 1.0)
    assert cost == pytest.approx(evidence.f_score(cost, 1.0) / 2, abs=0.05)


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("power", [0.3, 1.0, 3.0])
def test_the_cost_is_half_way_from_the_best_one_to_that_of_right_probabilities(power, beta):
    """Also where a model is too sure of its spans (power < 1), or not sure enough."""
    evidence = random_evidence(1, 300)
    evidence = replace(evidence, probability=evidence.probability**power)
    scores = [evidence.f_score(cost, beta) for cost in costs.COSTS]
    last = len(scores) - 1
    smoothed = [sum(scores[min(max(j, 0), last)] for j in range(i - 2, i + 3)) for i in range(30)]
    tied = [i for i in range(30) if smoothed[i] == pytest.approx(max(smoothed))]
    best = tied[len(tied) // 2]
    expected = (costs.COSTS[best] + scores[best] / (1 + beta**2)) / 2
    assert best_cost(evidence, beta) == pytest.approx(expected, abs=0.00501)


def test_chance_decides_less_than_with_the_best_cost_of_few_texts():
    """Where probabilities are right, the cost of thirty texts is near that of three thousand."""
    right = best_cost(random_evidence(0, 3000), 1.0)
    errors = []
    for seed in range(40):
        evidence = random_evidence(seed, 30)
        scores = [evidence.f_score(cost, 1.0) for cost in costs.COSTS]
        best = costs.COSTS[int(np.argmax(scores))]
        errors.append((abs(best_cost(evidence, 1.0) - right), abs(best - right)))
    learnt, best = np.mean(errors, axis=0)
    assert learnt < 0.6 * best


def test_nothing_to_find_and_nothing_found_is_no_error():
    nothing = np.zeros(0, dtype=np.int32)
    empty = Evidence(
        Segments(np.zeros(3, dtype=np.int64), nothing, nothing, nothing),
        np.zeros(0),
        np.zeros(0, dtype=bool),
        np.array([2, 0]),
        0,
    )
    assert empty.f_score(0.3, 1.0) == 1.0
    assert 0 < best_cost(empty, 1.0) < 1


@pytest.mark.slow
def test_the_evidence_is_that_of_models_that_have_not_seen_the_documents(monkeypatch):
    nlp, data = pipeline()
    seen = []
    original = costs._evidence

    def spy(model, decoder, documents):
        texts = {document.text for document in model.corpus.documents}
        assert not texts & {document.text for document in documents}
        seen.extend(document.text for document in documents)
        assert len(texts) + len(documents) == len(data)
        return original(model, decoder, documents)

    monkeypatch.setattr(costs, "_evidence", spy)
    fit(nlp, data)
    assert len(seen) % len(data) == 0
    assert set(seen) == {example.reference.text for example in data}


@pytest.mark.slow
def test_it_is_learnt_at_the_end_used_logged_and_kept(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(spacy.util.logger, "propagate", True)
    nlp, data = pipeline()
    pipe = nlp.get_pipe("hocrf")
    assert decoder_of(pipe).learnt is None
    assert decoder_of(pipe).current.cost == "auto"  # DEFAULT_COST until then
    with caplog.at_level(logging.INFO, logger="spacy"):
        fit(nlp, data)
    assert "hocrf: cost = " in caplog.text
    learnt = decoder_of(pipe).learnt
    assert learnt.documents == len(data) and 0 < learnt.cost < 1
    assert decoder_of(pipe).current.cost == learnt.cost == pipe.choice.cost
    nlp.to_disk(tmp_path)
    for other in (spacy.load(tmp_path), pickle.loads(pickle.dumps(nlp))):
        assert decoder_of(other.get_pipe("hocrf")).learnt == learnt
        assert other.get_pipe("hocrf").choice == pipe.choice
        assert other.config["components"]["hocrf"]["decoder"]["cost"] == "auto"
        for example in data:
            text = example.reference.text
            assert found(other(text)) == found(nlp(text))


@pytest.mark.slow
def test_the_cost_decides_what_is_shown():
    nlp, data = pipeline()
    fit(nlp, data)
    decoder = decoder_of(nlp.get_pipe("hocrf"))
    shown = []
    for cost in (0.02, 0.3, 0.9):
        decoder.adopt(LearntCost(cost, 24))
        shown.append(sum(len(nlp(example.reference.text).ents) for example in data))
    assert shown[0] > shown[2]


@pytest.mark.slow
def test_a_number_in_the_config_is_used_as_it_is():
    nlp, data = pipeline(cost=0.4)
    fit(nlp, data)
    pipe = nlp.get_pipe("hocrf")
    assert decoder_of(pipe).learnt is None and decoder_of(pipe).current.cost == 0.4


@pytest.mark.slow
@pytest.mark.parametrize("documents", [2, 5, 12])
def test_few_documents_teach_a_cost_each_held_back_once(documents, monkeypatch):
    known = []
    original = costs.best_cost
    monkeypatch.setattr(costs, "best_cost", lambda *given: known.append(given) or original(*given))
    nlp, data = pipeline(documents)
    fit(nlp, data)
    (evidence, beta), cost = known[0], decoder_of(nlp.get_pipe("hocrf")).learnt
    assert len(evidence.lengths) == cost.documents == documents
    assert cost.cost == original(evidence, beta)


def test_with_fewer_documents_the_default_stands(caplog, monkeypatch):
    monkeypatch.setattr(spacy.util.logger, "propagate", True)
    nlp, data = pipeline(12)
    monkeypatch.setattr(costs, "MIN_GROUPS", 13)
    with caplog.at_level(logging.INFO, logger="spacy"):
        fit(nlp, data)
    assert decoder_of(nlp.get_pipe("hocrf")).learnt is None
    assert f"cost = {DEFAULT_COST}, by default" in caplog.text


@pytest.mark.slow
def test_large_corpora_learn_it_from_a_part_of_them(monkeypatch):
    monkeypatch.setattr(heldout, "MAX_DOCUMENTS", 21)
    monkeypatch.setattr(costs, "HELD_OUT_TO_LEARN", 7)
    nlp, data = pipeline(model={"order": 1})  # nothing is chosen, so there are no folds
    fit(nlp, data)
    # of five folds of four or five documents two are enough
    assert decoder_of(nlp.get_pipe("hocrf")).learnt.documents in (8, 9, 10)


@pytest.mark.slow
@pytest.mark.parametrize(("most", "rests"), [(20, 0), (30, 1)])
def test_a_corpus_that_is_much_larger_stays_compiled(most, rests, monkeypatch):
    monkeypatch.setattr(heldout, "MAX_DOCUMENTS", most)
    monkeypatch.setattr(costs, "MAX_SIZE_RATIO", 3)
    calls = []
    release = LBFGSRun.release
    nlp, data = pipeline(72, model={"order": 1})
    monkeypatch.setattr(LBFGSRun, "release", lambda run: (calls.append(run), release(run)))
    fit(nlp, data)
    own = nlp.get_pipe("hocrf").run
    assert sum(run is own for run in calls) == rests


@pytest.mark.slow
def test_training_that_goes_on_learns_it_anew():
    nlp, data = pipeline()
    fit(nlp, data)
    decoder = decoder_of(nlp.get_pipe("hocrf"))
    first = decoder.learnt
    more = examples(nlp, ambiguous(72))
    fit(nlp, more)
    assert decoder.learnt.documents > first.documents


@pytest.mark.slow
def test_the_result_is_the_same_with_more_threads():
    found_costs = []
    for threads in (1, 2):
        nlp = trained(decoder=EXPECTED_F, trainer={**TRAINER, "threads": threads}, rows=ambiguous())
        found_costs.append(decoder_of(nlp.get_pipe("hocrf")).learnt)
    assert found_costs[0] == found_costs[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "header", [{"cost": 1.5, "documents": 3}, {"cost": "0.3", "documents": 3}, {"documents": 3}]
)
def test_a_damaged_cost_is_an_error(header):
    nlp, data = pipeline()
    fit(nlp, data)
    pipe = nlp.get_pipe("hocrf")
    section = decoder_of(pipe).saved()
    assert decoder_of(pipe).checked(section, pipe.structure.scheme) == decoder_of(pipe).learnt
    with pytest.raises(ValueError, match="H134"):
        decoder_of(pipe).checked(section._replace(header=header), pipe.structure.scheme)
    with pytest.raises(ValueError, match=r"H039.*cost\.more"):
        decoder_of(pipe).checked(
            section._replace(arrays={"more": np.zeros(1)}), pipe.structure.scheme
        )
