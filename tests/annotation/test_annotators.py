"""Components that annotate before ours: those that are fixed run when it is initialized, too."""

import numpy as np
import pytest
import spacy
from small_corpus import examples, found, initialize, learner_of
from spacy.language import Language
from spacy.pipeline import TrainablePipe
from thinc.api import Model

from spacy_hocrf.annotation.annotators import annotated


@pytest.fixture(scope="module", autouse=True)
def registered():
    @Language.component("test_tensor")
    def tensor(doc):
        """Two numbers of every token: is it a name, is it not."""
        capital = np.array([token.text[0].isupper() for token in doc], dtype=np.float32)
        doc.tensor = np.stack([capital, 1 - capital], axis=1)
        return doc

    class Trained(TrainablePipe):
        def __init__(self, nlp, name):
            self.vocab, self.name, self.model = nlp.vocab, name, Model("nothing", None)

        def predict(self, docs):
            return docs

        def set_annotations(self, docs, scores):
            for doc in docs:
                doc.user_data["trained"] = True

    Language.factory("test_trained")(Trained)


def pipeline(*names, annotating=(), frozen=()):
    """Components before a `hocrf` that scores `doc.tensor`, and nothing else of the words."""
    nlp = spacy.blank("xx")
    for name in names:
        nlp.add_pipe(name)
    vectors = {"@misc": "spacy-hocrf.Vectors.v1", "source": "tensor"}
    bias = {"@misc": "spacy-hocrf.Transition.v1", "order": 0}
    blocks = {"@misc": "spacy-hocrf.Features.v1", "*": {"tensor": vectors, "bias": bias}}
    reads = {"@misc": "spacy-hocrf.ExpectedF.v1", "cost": 0.1}
    nlp.add_pipe("hocrf", config={"model": {"features": blocks}, "decoder": reads})
    config = nlp.config.copy()  # a property, made anew at each look
    config["training"].update(
        annotating_components=list(annotating), frozen_components=list(frozen)
    )
    nlp.config = config
    return nlp


@pytest.mark.slow
def test_features_of_what_a_fixed_component_writes_are_learnt_at_once():
    nlp = pipeline("test_tensor", annotating=["test_tensor"])
    data = initialize(nlp)
    pipe = nlp.get_pipe("hocrf")
    assert pipe.structure.n_dense == 3 * pipe.structure.scheme.n_labels
    assert not any(len(example.predicted.tensor) for example in data)  # they stay as they were
    annotates = ["test_tensor"]
    size = pipe.structure.size
    optimizer = nlp.create_optimizer()
    for _ in range(40):
        nlp.update(data, sgd=optimizer, annotates=annotates)
    assert pipe.structure.size == size and len(learner_of(pipe).corpus) == len(data)
    assert [text for _, _, text in found(nlp("Carl slept ."))]


def test_without_the_annotation_there_is_nothing_to_learn_from():
    nlp = pipeline("test_tensor")
    with pytest.raises(ValueError, match=r"H027.*tensor"):
        nlp.initialize(lambda: examples(nlp))


@pytest.mark.slow
@pytest.mark.parametrize(
    "annotating, frozen, runs",
    [
        (["test_trained"], ["test_trained"], True),
        (["test_trained"], [], False),  # it will be another one when it is trained
        ([], ["test_trained"], False),
        (["after"], ["after"], False),
        (["missing"], ["missing"], False),
    ],
)
def test_only_annotating_components_in_front_that_stay_as_they_are_run(annotating, frozen, runs):
    nlp = pipeline("test_trained", annotating=annotating, frozen=frozen)
    nlp.add_pipe("test_trained", name="after")
    data = examples(nlp)
    read = annotated(lambda: data, nlp, "hocrf")
    assert [bool(example.predicted.user_data.get("trained")) for example in read()] == [runs] * 10
    assert not any(example.predicted.user_data for example in data)
    assert [example.reference for example in read()] == [example.reference for example in data]


def test_without_a_pipeline_the_examples_are_as_they_were():
    data = examples(spacy.blank("xx"))
    assert list(annotated(lambda: data, None, "hocrf")()) == data
