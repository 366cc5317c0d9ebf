"""Warnings of what is probably not meant: when they come, that they come once, and that they come to
nobody who has done everything right (here every other warning is an error).
"""

import warnings

import numpy as np
import pytest
import spacy
from small_corpus import examples, learner_of
from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.tokens import Token
from spacy.vectors import Vectors
from thinc.api import Model


def pipeline(blocks=None, lang="xx", **model):
    """An untrained `hocrf` with these blocks beside the window, or the default features."""
    nlp = spacy.blank(lang)
    window = {"@misc": "spacy-hocrf.Window.v1", "prefix": [], "suffix": []}
    if blocks is not None:
        blocks = {
            "@misc": "spacy-hocrf.Features.v1",
            "*": {"window": window, **{str(i): block for i, block in enumerate(blocks)}},
        }
        model["features"] = blocks
    trainer = {"@misc": "spacy-hocrf.LBFGS.v1", "sigma": 1.0, "threads": 1}
    nlp.add_pipe("hocrf", config={"model": {"order": 1, **model}, "trainer": trainer})
    return nlp


def learn(nlp, data):
    """An epoch. RETURNS (list[str]): the warnings."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        optimizer = nlp.initialize(lambda: data)
        for example in data:
            nlp.update([example], sgd=optimizer)
        nlp.update(data, sgd=optimizer)
    return [str(each.message) for each in found]


def read(nlp, docs):
    """Docs as they are, a few at a time. RETURNS (list[str]): the warnings."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for _ in nlp.pipe(docs, batch_size=2):
            pass
    return [str(each.message) for each in found]


def token(*attrs):
    return {"@misc": "spacy-hocrf.Token.v1", "attrs": list(attrs)}


def tagged(nlp, data):
    """With a tag for every predicted token."""
    for example in data:
        for word in example.predicted:
            word.tag_ = "NN" if word.text[0].isupper() else "VB"
    return data


def transition(order, *terms):
    return {"@misc": "spacy-hocrf.Transition.v1", "order": order, "terms": list(terms)}


# Orders


@pytest.mark.slow
@pytest.mark.parametrize(
    "order, blocks, parts",
    [
        (1, [transition(2)], ["'LABELS@2'", "of 2 earlier", "order = 1"]),
        (
            0,
            [transition(3), {**token("NORM"), "order": 1}],
            ["'LABELS@3'", "'NORM[0]@1'", "of 1, 3"],
        ),
        (1, [transition(2, "FIRST.NORM")], ["'start:NORM[0]@2'"]),
        (1, [{"@misc": "spacy-hocrf.Window.v1", "order": 2}], ["'LABELS@2'"]),
        ("auto", [transition(3)], ["order = 'auto', which tries 1, 2"]),
    ],
)
def test_templates_above_the_models_order_are_named(order, blocks, parts):
    nlp = pipeline(blocks, order=order)
    (warning,) = learn(nlp, examples(nlp))
    assert warning.startswith("[W011] ")
    for part in [*parts, "[components.*.model]", "[components.*.model.features]"]:
        assert part in warning


@pytest.mark.slow
@pytest.mark.parametrize("order", [0, 1, "auto"])
@pytest.mark.parametrize("blocks", [None, [], [token("NORM")]])
def test_what_nobody_has_asked_for_by_its_order_is_not_missed(order, blocks):
    nlp = pipeline(blocks, order=order)
    assert learn(nlp, examples(nlp)) == []


# Segments


def test_words_alone_are_no_features_of_a_semi_markov_model():
    nlp = pipeline(features=token("NORM"))
    (warning,) = learn(nlp, examples(nlp))
    assert warning.startswith("[W018] The features have neither label patterns nor lengths")
    assert "spacy-hocrf.Features.v1" in warning


@pytest.mark.parametrize(
    "model",
    [
        {"features": {"@misc": "spacy-hocrf.Features.v1", "*": {"words": token("NORM")}}},
        {"features": transition(0)},
        {"encoding": "bio", "features": token("NORM")},
    ],
)
def test_segments_that_the_features_know_of_are_fine(model):
    nlp = pipeline(**model)
    assert learn(nlp, examples(nlp)) == []


# Limits


def test_a_limit_for_no_label_is_named_with_the_labels():
    nlp = pipeline(max_length={"PERSON": 5, "PLCE": 3})
    (warning,) = learn(nlp, examples(nlp))
    assert warning.startswith("[W012] ")
    assert "names PLCE," in warning and "PERSON, PLACE" in warning


# Annotation


@pytest.mark.parametrize(
    "factory, settings, place, found",
    [
        ("hocrf_spans", {"spans_key": "sk"}, "doc.spans['sk']", "doc.ents, doc.spans['sc']"),
        ("hocrf", {}, "doc.ents", "doc.spans['sc']"),
    ],
)
def test_annotation_in_another_place_is_pointed_at(factory, settings, place, found):
    nlp = spacy.blank("xx")
    pipe = nlp.add_pipe(factory, config=settings)
    data = examples(nlp)
    if place == "doc.ents":
        for example in data:
            example.reference.set_ents([], default="missing")
    with pytest.warns(UserWarning, match=r"^\[W017\]") as caught:
        pipe.initialize(lambda: data, nlp=nlp, labels=["PERSON", "PLACE"])
    (text,) = (str(each.message) for each in caught)
    assert f"in {place}, but there is some in {found}." in text


def test_texts_without_any_annotation_are_no_reason_for_a_warning():
    nlp = spacy.blank("xx")
    pipe = nlp.add_pipe("hocrf")
    pipe.add_label("PERSON")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        nlp.initialize()


# What is empty in training


@pytest.fixture
def extension():
    Token.set_extension("doubt_case", default="", force=True)
    Token.set_extension("doubt_flag", default=False, force=True)
    Token.set_extension("doubt_array", default=0.0, force=True)
    yield
    for name in ("case", "flag", "array"):
        Token.remove_extension(f"doubt_{name}")


EMPTY = [
    (token("TAG"), "TAG"),
    (token("MORPH.Case"), "MORPH.Case"),
    (token("_.doubt_case"), "_.doubt_case"),
    (token("_.doubt_flag"), "_.doubt_flag"),
    ({"@misc": "spacy-hocrf.Conjunction.v1", "terms": ["NORM", "POS[1]"]}, "POS"),
    ({"@misc": "spacy-hocrf.CharNgrams.v1", "attr": "LEMMA", "prefix": [1]}, "LEMMA"),
    ({"@misc": "spacy-hocrf.Segment.v1", "what": ["TEXT"], "attrs": ["DEP"]}, "DEP"),
    ({"@misc": "spacy-hocrf.Pieces.v1", "attrs": ["_.doubt_case"]}, "_.doubt_case"),
    (
        {
            "@misc": "spacy-hocrf.Item.v1",
            "toolkit": "wapiti",
            "template": 'u:%x[0,0]%X[-1,1]%t[1,1,"a"]',
            "columns": ["ORTH", "_.doubt_case"],
        },
        "_.doubt_case",
    ),
    ({"@misc": "spacy-hocrf.Real.v1", "source": "_.doubt_array"}, "'_.doubt_array'"),
]


@pytest.mark.slow
@pytest.mark.parametrize("block, source", EMPTY)
def test_what_is_empty_in_all_training_texts_is_named_once(extension, block, source):
    nlp = pipeline([block])
    (warning,) = learn(nlp, examples(nlp))
    assert warning.startswith(f"[W013] {source} is empty in all ")
    assert "annotating_components" in warning and "[components.*.model.features]" in warning


def test_one_token_that_has_it_is_enough(extension):
    nlp = pipeline([token("_.doubt_case", "_.doubt_flag", "TAG")])
    data = examples(nlp)
    word = data[-1].predicted[0]
    word._.doubt_case, word._.doubt_flag, word.tag_ = "x", True, "NN"
    assert learn(nlp, data) == []


class Late(TrainablePipe):
    """Annotates while it is trained, as a tagger does."""

    def __init__(self, nlp, name):
        self.vocab, self.name, self.model = nlp.vocab, name, Model("nothing", None)


def test_what_comes_with_the_updates_is_waited_for():
    Language.factory("test_late", func=Late)
    nlp = pipeline([token("TAG")])
    nlp.add_pipe("test_late", first=True)
    config = nlp.config.copy()
    config["training"]["annotating_components"] = ["test_late"]
    nlp.config = config
    data, pipe = examples(nlp), nlp.get_pipe("hocrf")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pipe.initialize(lambda: data, nlp=nlp)
        tagged(nlp, data)
        pipe.update(data[:1])
        pipe.predict([each.predicted for each in tagged(nlp, examples(nlp))])  # amid the epoch
        pipe.update(data)
        pipe.predict([each.predicted for each in tagged(nlp, examples(nlp))])


@pytest.mark.filterwarnings("ignore:.W035")  # it has not learnt anything yet
def test_what_nothing_will_write_is_missed_at_once_and_not_again():
    nlp = pipeline([token("TAG")])
    data = examples(nlp)
    with pytest.warns(UserWarning, match="W013"):
        nlp.initialize(lambda: data)
    with pytest.warns(UserWarning, match="W014"):
        nlp.get_pipe("hocrf").predict([each.predicted for each in tagged(nlp, examples(nlp))])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nlp.update(data)


def vectors_of(nlp, *words):
    nlp.vocab.vectors = Vectors(shape=(len(words), 4), name="some")
    for i, word in enumerate(words):
        nlp.vocab.set_vector(word, np.eye(4, dtype=np.float32)[i % 4])


@pytest.mark.parametrize("block", [None, [], [{"@misc": "spacy-hocrf.Vectors.v1"}]])
def test_vectors_of_no_word_of_the_training_texts_are_named(block):
    nlp = pipeline(block)
    vectors_of(nlp, "mañana", "ayer")
    (warning,) = learn(nlp, examples(nlp))
    assert warning.startswith("[W016] 'vector[0]' has no array for any token")
    assert "[initialize]" in warning


def test_a_vector_of_one_word_is_enough():
    nlp = pipeline()
    vectors_of(nlp, examples(nlp)[0].predicted[0].text)
    assert learn(nlp, examples(nlp)) == []


def test_arrays_of_zeros_are_named(extension):
    nlp = pipeline([{"@misc": "spacy-hocrf.Vectors.v1", "source": "_.doubt_array"}])
    (warning,) = learn(nlp, examples(nlp))
    assert warning.startswith("[W016] '_.doubt_array[0]'")
    nlp = pipeline([{"@misc": "spacy-hocrf.Vectors.v1", "source": "_.doubt_array"}])
    data = examples(nlp)
    data[-1].predicted[0]._.doubt_array = 1.0
    assert learn(nlp, data) == []


# What is unlike training


def test_what_was_empty_in_training_and_no_longer_is_is_named_once():
    nlp = pipeline([token("TAG")])
    assert len(learn(nlp, examples(nlp))) == 1
    docs = [example.predicted for example in tagged(nlp, examples(nlp))]
    assert read(nlp, [nlp.make_doc("It rains")]) == []
    (warning,) = read(nlp, [*docs, *docs])
    assert warning.startswith("[W014] TAG was empty in all texts that 'hocrf' has learnt from")
    assert docs[0].text[:5] in warning


@pytest.mark.slow
@pytest.mark.parametrize("loaded", [False, True])
def test_what_was_there_in_training_and_is_empty_is_named_once(loaded):
    nlp = pipeline([token("TAG")])
    assert learn(nlp, tagged(nlp, examples(nlp))) == []
    if loaded:
        nlp = pipeline([token("TAG")]).from_bytes(nlp.to_bytes())
    texts = ["Emmy Noether went to Paris in the rain"] * 60
    (warning,) = read(nlp, [nlp.make_doc(text) for text in texts])
    assert warning.startswith("[W015] TAG is empty in the first ")
    assert "in front of 'hocrf'" in warning


@pytest.mark.slow
def test_what_says_nothing_of_labels_is_no_news_to_a_model_without_its_features():
    """Its weights are 0, and are not saved."""
    nlp = pipeline([token("TAG")])
    data = tagged(nlp, examples(nlp))
    assert learn(nlp, data) == []
    pipe = nlp.get_pipe("hocrf")
    names = [template.name for template in pipe.structure.index.templates]
    of_tags = np.array(["TAG" in names[i] for i in pipe.structure.index.feature_template])
    weights = np.where(of_tags, 0.0, pipe.model.get_param("W")).astype(np.float32)
    pipe.model.set_param("W", weights)
    for _ in range(2):  # saved once more
        nlp = pipeline([token("TAG")]).from_bytes(nlp.to_bytes())
        assert nlp.get_pipe("hocrf").structure.size == (~of_tags).sum() < len(of_tags)
        docs = [example.predicted for example in tagged(nlp, examples(nlp))]
        assert read(nlp, docs) == []


@pytest.mark.slow
def test_what_was_too_rare_for_a_feature_was_not_empty():
    nlp = pipeline([token("TAG")], min_count=2)
    data = examples(nlp)
    data[0].predicted[0].tag_ = "NN"
    assert learn(nlp, data) == []
    for reader in (nlp, pipeline([token("TAG")], min_count=2).from_bytes(nlp.to_bytes())):
        assert read(reader, [each.predicted for each in tagged(nlp, examples(nlp))]) == []


def test_a_span_group_that_is_gone_is_named():
    block = {"@misc": "spacy-hocrf.Spans.v1", "source": "spans.ruler"}
    nlp = pipeline([block])
    data = examples(nlp)
    for example in data:
        example.predicted.spans["ruler"] = [example.predicted[:1]]
    assert learn(nlp, data) == []
    docs = [nlp.make_doc("Emmy slept") for _ in range(70)]
    (warning,) = read(nlp, docs)
    assert warning.startswith("[W015] doc.spans['ruler'] is empty in the first ")


def test_texts_that_are_as_in_training_are_fine():
    nlp = pipeline([token("TAG")])
    learn(nlp, tagged(nlp, examples(nlp)))
    docs = [example.predicted for example in tagged(nlp, examples(nlp))]
    assert read(nlp, [*docs, *[nlp.make_doc("It rains")] * 100]) == []


def test_what_is_rare_in_training_may_be_missing_for_long():
    nlp = pipeline([token("LEMMA")])
    data = examples(nlp)
    data[0].predicted[0].lemma_ = "ada"
    assert learn(nlp, data) == []
    assert read(nlp, [nlp.make_doc("It rains")] * (20 * len(data))) == []
    (warning,) = read(nlp, [nlp.make_doc("It rains")] * (20 * len(data)))
    assert warning.startswith("[W015] LEMMA")


def test_how_often_something_is_there_is_counted_as_a_loop_over_the_texts_counts_it(extension):
    tag = {**token("TAG"), "window": [-1, 0, 1], "parts": ["start", "tokens"]}
    lists = {"@misc": "spacy-hocrf.Spans.v1", "source": "spans.ruler"}
    nlp = pipeline([tag, token("_.doubt_case"), lists])
    data = examples(nlp)
    for i, example in enumerate(data):
        for word in example.predicted[: 2 * i]:
            word.tag_, word._.doubt_case = "NN", "x" if word.text[0].isupper() else ""
        example.predicted.spans["ruler"] = [example.predicted[: i % 3]] if i % 3 else []
    assert learn(nlp, data) == []
    docs = [example.predicted for example in data]
    expected = {
        "TAG": sum(bool(word.tag_) for doc in docs for word in doc),
        "_.doubt_case": sum(bool(word._.doubt_case) for doc in docs for word in doc),
        "spans:ruler": sum(len(span) for doc in docs for span in doc.spans["ruler"]),
    }
    rates = learner_of(nlp.get_pipe("hocrf")).watch._rates
    assert rates == {source: times / len(docs) for source, times in expected.items()}


def test_the_default_features_have_nothing_to_compare():
    nlp = pipeline()
    learn(nlp, examples(nlp))
    assert learner_of(nlp.get_pipe("hocrf")).watch._rates == {}
