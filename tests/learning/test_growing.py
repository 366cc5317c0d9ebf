"""A prediction works on one state of the model, whatever training changes meanwhile."""

import threading

import pytest
from small_corpus import documents, examples, found, initialize, untrained

from spacy_hocrf.learning import training_rules
from spacy_hocrf.pipeline.component import SegmentationPipe

FRESH = [
    ("Grace Hopper likes Ulm", [(0, 12, "PERSON"), (19, 22, "PLACE")]),
    ("Nobody visits Ada Lovelace in Paris", [(14, 26, "PERSON"), (30, 35, "PLACE")]),
]
TEXT = "Ada Lovelace likes Paris"


def trained_a_little():
    nlp = untrained()
    data = initialize(nlp, documents(8))
    for _ in range(5):
        nlp.update(data, sgd=nlp.create_optimizer())
    return nlp


def test_a_prediction_in_the_middle_of_growing_is_that_of_the_model_before(monkeypatch):
    nlp = trained_a_little()
    pipe = nlp.get_pipe("hocrf")
    before, during = found(nlp(TEXT)), []
    compile_automaton = training_rules.compile_automaton

    def interrupted(*arguments, **settings):
        during.append(found(nlp(TEXT)))
        return compile_automaton(*arguments, **settings)

    monkeypatch.setattr(training_rules, "compile_automaton", interrupted)
    features = len(pipe.structure.index)
    for _ in range(2):  # the second brings nothing new, so that the model grows
        pipe.update(examples(nlp, FRESH))
    pipe.add_label("NEW")
    assert len(pipe.structure.index) > features
    assert during == [before] * 2


@pytest.mark.filterwarnings("ignore:.W035")  # the other model has learnt nothing yet
@pytest.mark.parametrize("change", ["initialize", "from_bytes"])
def test_a_prediction_while_another_model_is_adopted_is_that_of_the_model_before(
    monkeypatch, change
):
    nlp, other = trained_a_little(), untrained()
    other.initialize(lambda: examples(other, FRESH))
    pipe, data = nlp.get_pipe("hocrf"), other.get_pipe("hocrf").to_bytes()
    before, during, set_param = found(nlp(TEXT)), [], type(pipe.model).set_param
    seen = threading.Event()

    def predict():
        seen.set()
        during.append(found(nlp(TEXT)))

    def interrupted(model, name, value):
        if model is pipe.model and not during and not thread.is_alive():
            thread.start()
            seen.wait()
            thread.join(0.05)  # it waits until the other model is there as a whole
        set_param(model, name, value)

    thread = threading.Thread(target=predict)
    monkeypatch.setattr(type(pipe.model), "set_param", interrupted)
    if change == "initialize":
        pipe.initialize(lambda: examples(nlp, FRESH))
    else:
        pipe.from_bytes(data)
    thread.join()
    assert during in ([before], [found(nlp(TEXT))])


@pytest.mark.slow
def test_predictions_while_another_thread_trains():
    nlp = trained_a_little()
    pipe, errors, done = nlp.get_pipe("hocrf"), [], threading.Event()
    docs = [nlp.make_doc(TEXT) for _ in range(3)]

    def predict():
        while not done.is_set():
            try:
                pipe.predict(docs)
            except Exception as error:
                errors.append(error)

    threads = [threading.Thread(target=predict) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for i in range(40):
            rows = [(f"{name} {i} likes Ulm", [(0, len(name), "PERSON")]) for name in ("Ada", "Bo")]
            pipe.update(examples(nlp, rows))
            pipe.add_label(f"LABEL {i}")
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert isinstance(pipe, SegmentationPipe) and not errors
