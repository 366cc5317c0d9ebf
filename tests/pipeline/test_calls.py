"""What is fast counts few calls: of one text, of batches, of loading."""

import pytest
import spacy
from calls import calls_of_ours, depth_of_ours
from small_corpus import documents, initialize, trained, untrained

KERNELS = {
    ("features/index.py", "observe"),
    ("model/compiled.py", "_scores"),
    ("engine/probable.py", "run"),
    ("engine/probable.py", "best_subset"),
}
"""Functions that call one kernel each."""


@pytest.fixture(scope="module")
def nlp():
    return trained()


@pytest.fixture(scope="module")
def texts():
    return [text for text, _ in documents(30)]


def test_one_text_takes_at_most_135_calls_since_each_costs_a_short_one_half_a_microsecond(
    nlp, texts
):
    nlp(texts[0])
    assert 50 < calls_of_ours(lambda: nlp(texts[1])).total() <= 135


def test_one_text_takes_at_most_100_functions_since_a_reader_meets_each(nlp, texts):
    nlp(texts[0])
    calls = calls_of_ours(lambda: nlp(texts[1]))
    named = {(file, name) for file, name in calls if not name.startswith("<")}
    assert 50 < len(named) <= 100


@pytest.mark.parametrize("decoder", ["ExpectedF", "Viterbi"])
def test_one_text_takes_no_call_for_each_token_since_a_kernel_has_the_loop_over_them(decoder):
    nlp = trained(decoder={"@misc": f"spacy-hocrf.{decoder}.v1"})
    short = " ".join(["In London , Ada slept ."])
    long = " ".join([short] * 20)
    for text in (short, long):
        nlp(text)
    few, many = (calls_of_ours(lambda text=text: nlp(text)) for text in (short, long))
    per_entity = {("annotation/probabilities.py", "<genexpr>")}
    assert {key: n for key, n in many.items() if key not in per_entity} == {
        key: n for key, n in few.items() if key not in per_entity
    }


def test_new_words_take_no_call_for_each_letter_since_a_kernel_reads_them(nlp):
    texts = ["Xqa saw Zyb-1 .", "Qxaaaaaaaaaaaaaaaaaa saw Yzbbbbbbbbbbbbbbbbbb-2222222222222 ."]
    few, many = (calls_of_ours(lambda text=text: nlp(text)) for text in texts)
    assert few == many
    assert few.total() <= 140  # a few more than for known words


def test_viterbi_takes_at_most_two_searches_and_twice_the_calls(texts):
    nlp = trained(decoder={"@misc": "spacy-hocrf.Viterbi.v1"})
    nlp(texts[0])
    calls = calls_of_ours(lambda: nlp(texts[1]))
    assert calls["engine/problem.py", "constants_of"] == 0  # they are those of the model
    assert calls["engine/viterbi.py", "_best"] == calls["engine/probable.py", "run"] == 1
    assert calls.total() <= 210


def test_a_law_that_a_text_keeps_takes_no_pass_besides(texts):
    law = {"@misc": "spacy-hocrf.Constraints.v1", "at_most": {"PERSON": 5}}
    nlp = trained(decoder={"@misc": "spacy-hocrf.Viterbi.v1"}, constraints=law)
    nlp(texts[0])
    calls = calls_of_ours(lambda: nlp(texts[1]))
    assert calls["rules/violations.py", "starts_for"] == 1  # what it could break is looked at
    assert calls["engine/viterbi.py", "_best"] == calls["engine/probable.py", "run"] == 1


@pytest.mark.slow
def test_a_second_look_takes_one_more_problem_and_no_constants(texts):
    nlp = trained(decoder={"@misc": "spacy-hocrf.Reranked.v1"}, rows=documents(40))
    nlp(texts[0])
    calls = calls_of_ours(lambda: nlp(texts[1]))
    assert calls["engine/problem.py", "constants_of"] == 0
    assert calls["engine/problem.py", "__post_init__"] == 2 and calls.total() <= 250


def test_a_batch_takes_one_call_of_each_kernel_since_they_have_many_sequences(nlp, texts):
    pipe = nlp.get_pipe("hocrf")
    list(pipe.pipe([nlp.make_doc(text) for text in texts]))
    docs = [nlp.make_doc(text) for text in texts]
    calls = calls_of_ours(lambda: list(pipe.pipe(docs)))
    assert {key: calls[key] for key in KERNELS} == dict.fromkeys(KERNELS, 1)
    assert calls.total() <= 135 + 6 * len(docs)  # and what writes each Doc


@pytest.mark.slow
def test_loading_takes_no_call_for_each_feature_since_a_model_is_arrays(tmp_path):
    calls = []
    for count in (4, 40):
        nlp = trained(rows=documents(count))
        nlp.to_disk(tmp_path / str(count))
        size = len(nlp.get_pipe("hocrf").structure.index)
        spacy.load(tmp_path / str(count))
        calls.append((size, calls_of_ours(lambda n=count: spacy.load(tmp_path / str(n))).total()))
    (few, least), (many, most) = calls
    assert many > 1.5 * few
    assert most < least + (many - few) / 2


@pytest.mark.slow
def test_a_step_of_training_is_at_most_18_calls_deep_so_that_a_traceback_can_be_read():
    nlp = untrained(trainer={"@misc": "spacy-hocrf.LBFGS.v1", "sigma": 1.0, "threads": 1})
    data = initialize(nlp, documents(30))
    optimizer = nlp.create_optimizer()
    nlp.update(data, sgd=optimizer)
    assert 12 < depth_of_ours(lambda: nlp.update(data, sgd=optimizer)) <= 18
