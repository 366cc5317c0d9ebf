"""A frozen component before ours reads each training text once in the whole of `spacy train`."""

import io
import pickle
from collections import Counter

import numpy as np
import pytest
import spacy
from small_corpus import examples, initialize, learner_of
from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from thinc.api import Model

from spacy_hocrf.annotation.annotators import OnceAnnotated, _CachedComponent, state_of

READ = Counter()  # texts, by how often `test_frozen` has read them


class Frozen(TrainablePipe):
    """Writes a span for every capital, and can be trained to do nothing else."""

    def __init__(self, nlp, name):
        self.vocab, self.name, self.model = nlp.vocab, name, Model("nothing", None)

    def predict(self, docs):
        READ.update(doc.text for doc in docs)
        if any(doc[0].is_space for doc in docs if len(doc)):
            raise ValueError("a line of its own")
        return docs

    def set_annotations(self, docs, scores):
        for doc in docs:
            doc.spans["big"] = [
                doc.char_span(token.idx, token.idx + len(token), "BIG")
                for token in doc
                if token.text[0].isupper()
            ]

    def initialize(self, get_examples, *, nlp=None):
        pass

    def update(self, examples, *, drop=0.0, sgd=None, losses=None):
        return losses

    def finish_update(self, sgd):
        pass

    def to_disk(self, path, *, exclude=()):
        pass


@pytest.fixture(scope="module", autouse=True)
def registered():
    Language.factory("test_frozen")(Frozen)


@pytest.fixture(autouse=True)
def nothing_read():
    READ.clear()


def pipeline(*others, frozen=("frozen",), annotating=("frozen",)):
    """`frozen`, which writes doc.spans["big"], other components, and a `hocrf` that reads these spans."""
    nlp = spacy.blank("xx")
    nlp.add_pipe("test_frozen", name="frozen")
    for name in others:
        nlp.add_pipe("test_frozen", name=name)
    blocks = {
        "window": {"@misc": "spacy-hocrf.Token.v1", "attrs": ["NORM"]},
        "big": {"@misc": "spacy-hocrf.Spans.v1", "source": "spans.big"},
    }
    features = {"@misc": "spacy-hocrf.Features.v1", "*": blocks}
    nlp.add_pipe("hocrf", config={"model": {"features": features}})
    config = nlp.config.copy()
    config["training"].update(
        frozen_components=list(frozen), annotating_components=list(annotating)
    )
    nlp.config = config
    return nlp


def whole_training(folder, streamed, steps=60, **settings):
    """What `spacy train` makes of ten texts and one to score. RETURNS: the pipeline and the ten."""
    nlp = pipeline(**settings)
    data = [example.reference for example in examples(nlp)]
    DocBin(docs=data[:9]).to_disk(folder / "train.spacy")
    DocBin(docs=data[9:]).to_disk(folder / "dev.spacy")
    config = nlp.config.copy()
    config["paths"].update(train=str(folder / "train.spacy"), dev=str(folder / "dev.spacy"))
    batcher = {"@batchers": "spacy.batch_by_sequence.v1", "size": 3, "get_length": None}
    config["training"].update(max_steps=steps, eval_frequency=20, patience=0, batcher=batcher)
    if streamed:
        config["training"]["max_epochs"] = -1
        config["initialize"]["components"]["hocrf"] = {"corpus": "${corpora.train}"}
    nlp = init_nlp(config)
    train(nlp, stdout=io.StringIO(), stderr=io.StringIO())
    return nlp, [doc.text for doc in data[:9]]


@pytest.mark.slow
@pytest.mark.parametrize("streamed", [False, True])
def test_each_training_text_is_read_once_and_the_weights_are_the_same(
    tmp_path, monkeypatch, streamed
):
    nlp, texts = whole_training(tmp_path, streamed)
    pipe = nlp.get_pipe("hocrf")
    assert not pipe.run.running
    assert [READ[text] for text in texts] == [1] * 9
    assert READ["It rains ."] == 1  # in four evaluations
    READ.clear()
    monkeypatch.setattr(OnceAnnotated, "begin", lambda nlp, name: None)
    without, _ = whole_training(tmp_path, streamed)
    assert min(READ[text] for text in texts) > 15  # 61 steps of three of nine
    assert READ["It rains ."] == 4
    other = without.get_pipe("hocrf")
    assert np.array_equal(pipe.model.get_param("W"), other.model.get_param("W"))
    assert pipe.run.status == other.run.status


@pytest.mark.slow
def test_nothing_is_read_after_convergence(tmp_path):
    few, _ = whole_training(tmp_path, streamed=False, steps=60)
    assert not few.get_pipe("hocrf").run.running
    once = READ.copy()
    READ.clear()
    whole_training(tmp_path, streamed=False, steps=200)
    assert READ == once


def begun(*others, **settings):
    """An initialized pipeline, its examples and what `nlp.update` is called with."""
    nlp = pipeline(*others, **settings)
    data = initialize(nlp)
    READ.clear()
    return nlp, data, {"exclude": ["frozen"], "annotates": ["frozen"]}


def losses_of(nlp, data, **settings):
    return nlp.update(data, sgd=nlp.create_optimizer(), **settings)


def test_texts_of_initialize_are_paced_by_and_losses_are_those_of_the_corpus():
    nlp, data, settings = begun()
    first = losses_of(nlp, data, **settings)["hocrf"]
    assert first > losses_of(nlp, data[:1], **settings)["hocrf"] > 0
    assert not READ
    unknown = [Example(Doc(nlp.vocab), Doc(nlp.vocab))]
    assert losses_of(nlp, unknown, **settings) == {"hocrf": 0.0}


def test_a_text_without_annotation_changes_no_loss():
    nlp = pipeline()
    none = Example.from_dict(nlp.make_doc("Nobody knows ."), {})
    data = [*examples(nlp), none]
    with pytest.warns(UserWarning, match="W004"):
        nlp.initialize(lambda: data)
    READ.clear()
    settings = {"exclude": ["frozen"], "annotates": ["frozen"]}
    assert losses_of(nlp, [none], **settings) == {"hocrf": 0.0}
    assert not READ


def scores_of(nlp, data):
    scores = nlp.evaluate(data)
    del scores["speed"]
    return scores


def test_texts_to_score_are_kept_from_evaluation_to_evaluation_while_there_are_updates():
    nlp, data, settings = begun()
    data = [*data, *data[:3]]  # and copies
    kept = []

    def score(examples, **_):
        spans = [example.predicted.spans["big"] for example in examples]
        kept.append([sorted((span.start, span.label_) for span in group) for group in spans])
        return {}

    nlp.get_pipe("frozen").scorer = score
    scores, pipes = [], nlp.pipeline
    for _ in range(3):
        losses_of(nlp, data[:10], **settings)
        scores.append(scores_of(nlp, data))
    assert READ == {example.text: 2 if i < 3 else 1 for i, example in enumerate(data[:10])}
    scores.append(scores_of(nlp, data))  # nobody trains any more: it may have changed
    assert READ[data[5].text] == 2
    assert kept == [kept[0]] * 4 and all(kept[0][:9]) and scores[2] == scores[3]
    assert nlp.pipeline == pipes


def test_patterns_that_a_ruler_gets_between_evaluations_are_used():
    nlp = pipeline(annotating=("frozen", "ruler"))
    ruler = nlp.add_pipe("span_ruler", name="ruler", before="hocrf")
    initial = [{"label": "END", "pattern": "nowhere"}]
    nlp.config["initialize"]["components"]["ruler"] = {"patterns": initial}
    data, found = examples(nlp), []
    nlp.initialize(lambda: data)

    def score(examples, **_):
        found.append(sum(len(example.predicted.spans["ruler"]) for example in examples))
        return {}

    ruler.scorer = score
    for pattern in ("nothing", "."):
        ruler.add_patterns([{"label": "END", "pattern": pattern}])
        losses_of(nlp, data, exclude=["frozen"], annotates=["frozen", "ruler"])
        nlp.evaluate(data)
    assert found == [0, sum(example.text.count(" .") for example in data)]


def test_evaluations_keep_so_many_tokens(monkeypatch):
    monkeypatch.setattr("spacy_hocrf.annotation.annotators.MAX_CACHED_TOKENS", 10)
    nlp, data, settings = begun()
    for _ in range(2):
        losses_of(nlp, data, **settings)
        nlp.evaluate(data)
    assert READ == {example.text: 2 if i not in (0, 9) else 1 for i, example in enumerate(data)}


def test_errors_that_are_let_pass_lose_no_other_text():
    nlp, data, _ = begun()
    frozen = nlp.get_pipe("frozen")
    frozen.set_error_handler(lambda name, pipe, docs, error: None)
    kept = _CachedComponent(nlp, "frozen", frozen)
    read = [doc.text for doc in kept.pipe(example.predicted.copy() for example in data)]
    assert read == [example.text for example in data]
    bad = nlp.make_doc("\n Ada")
    docs = [data[0].predicted.copy(), bad, data[1].predicted.copy()]
    assert [doc.text for doc in kept.pipe(docs, batch_size=1)] == [docs[0].text, docs[2].text]


def test_other_texts_are_read_and_learnt_from():
    nlp, data, settings = begun()
    new = examples(nlp, [("Emmy left Rome .", [(0, 4, "PERSON")])])
    losses_of(nlp, [*data[:1], *new], **settings)
    assert READ == {data[0].text: 1, "Emmy left Rome .": 1}
    assert len(learner_of(nlp.get_pipe("hocrf")).corpus) == 11


def test_a_text_that_comes_with_something_else_written_to_it_is_read():
    nlp, data, settings = begun()
    other = Example(data[0].predicted.copy(), data[0].reference)
    other.predicted.spans["big"] = []
    losses_of(nlp, [other], **settings)
    assert READ == {other.text: 1}
    other = Example(data[0].predicted.copy(), data[0].reference)
    other.predicted[0].tag_ = "X"
    losses_of(nlp, [other], **settings)
    assert READ == {other.text: 2}


def test_texts_with_what_cannot_be_stored_are_read_each_time():
    nlp = pipeline()
    data = examples(nlp)
    data[0].predicted.user_data["x"] = object()
    nlp.initialize(lambda: data)
    READ.clear()
    for some in (data[:1], data[1:]):
        losses_of(nlp, some, exclude=["frozen"], annotates=["frozen"])
    assert READ == {data[0].text: 1}


def test_once_a_text_has_changed_all_are_read():
    nlp, data, settings = begun()
    words = [token.lower_ for token in data[0].reference]
    other = Doc(nlp.vocab, words=words)  # other features, with the same reference
    losses_of(nlp, [Example(other, data[0].reference)], **settings)
    READ.clear()
    losses_of(nlp, data[1:2], **settings)
    assert READ == {data[1].text: 1}


@pytest.mark.parametrize(
    "others, settings, exclude",
    [
        (["trained"], {}, ["frozen"]),  # it may read what is written
        (["trained"], {"annotating": ("frozen", "trained")}, ["frozen"]),
        (["trained"], {"frozen": ("frozen", "trained")}, ["frozen"]),
        ([], {"frozen": ()}, []),  # not frozen
        ([], {}, []),  # frozen by the config, and trained after all
    ],
)
def test_the_component_annotates_for_others_and_while_it_is_trained(others, settings, exclude):
    nlp, data, _ = begun(*others, **settings)
    annotates = [*settings.get("annotating", ("frozen",))]
    for _ in range(2):
        nlp.update(data, sgd=False, exclude=exclude, annotates=annotates)
    assert READ[data[0].text] == 2 * len(annotates)


def test_one_that_was_trained_after_all_is_asked_from_then_on():
    nlp, data, settings = begun()
    nlp.update(data, sgd=False)
    losses_of(nlp, data, **settings)
    assert READ[data[0].text] == 1


def test_other_annotators_than_those_of_initialize_are_asked():
    nlp, data, _ = begun("more")
    nlp.update(data, sgd=False, exclude=["frozen", "more"], annotates=["frozen", "more"])
    assert READ[data[0].text] == 2


def test_another_component_of_the_same_name_knows_nothing():
    nlp, data, settings = begun()
    nlp.replace_pipe("hocrf", "hocrf")
    nlp.get_pipe("hocrf").add_label("PERSON")
    nlp.get_pipe("hocrf").add_label("PLACE")
    with pytest.raises(ValueError, match="H042"):
        nlp.update(data, sgd=False, **settings)
    assert READ[data[0].text] == 1


def test_a_pipeline_of_this_kind_can_be_pickled():
    nlp, _, _ = begun()
    copy = pickle.loads(pickle.dumps(nlp))
    data = examples(copy)
    losses_of(copy, data, exclude=["frozen"], annotates=["frozen"])
    assert not copy.get_pipe("hocrf").knows(data)  # which is as if it had been saved and loaded
    assert READ[data[0].text] == 1


def test_the_state_of_a_doc_is_all_that_is_written_to_it():
    nlp = spacy.blank("xx")
    docs = [nlp.make_doc("Ada met Emmy") for _ in range(7)]
    docs[1].ents = [docs[1].char_span(0, 3, "PERSON")]
    docs[2].spans["sc"] = [docs[2][0:1]]
    docs[3].tensor = np.ones((3, 2), dtype=np.float32)
    docs[4].user_data["x"] = 1
    docs[5].cats["y"] = 1.0
    docs[6][1].norm_ = "meet"
    states = [state_of(doc) for doc in docs]
    assert len({*states}) == 7 and states[0] == state_of(nlp.make_doc("Ada met Emmy"))
    docs[4].user_data["x"] = object()
    assert state_of(docs[4]) is None
