"""The component `hocrf_links`: its annotation, training, scores, saving and loading."""

import pickle
import warnings

import numpy as np
import pytest
import spacy
from link_documents import (
    FEATURES,
    NLP,
    VALUES,
    conversation,
    document,
    example,
    examples,
    settings_of,
    trained,
    untrained,
)
from spacy.cli.evaluate import evaluate
from spacy.cli.train import train
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.util import load_config, load_model_from_config
from thinc.api import Config

from spacy_hocrf.annotation.groups import set_group
from spacy_hocrf.links.component import LinkPipe
from spacy_hocrf.links.corpus import LinksCorpus
from spacy_hocrf.links.items import SpanItems, Thread
from spacy_hocrf.links.scorer import score_links
from spacy_hocrf.links.templates import observe
from spacy_hocrf.saving.archive import Payload, read_bytes, write_bytes

NEAR = {"@misc": "spacy-hocrf.LinkDistance.v1", "bins": [1]}
OF_DOCS = {"items": {"@misc": "spacy-hocrf.DocItems.v1"}, "group_by": "hocrf_group"}


@pytest.mark.parametrize("one_each", [False, True])
def test_predictions_are_the_most_probable_links_with_their_probabilities(one_each):
    nlp, corpus = untrained(itself=True, one_each=one_each), examples(10)
    nlp.initialize(lambda: corpus)
    pipe = nlp.get_pipe("hocrf_links")
    model = pipe._learner.model
    model.weights[:] = np.random.default_rng(0).normal(size=len(model.weights))
    found = 0
    for seed in range(10):
        messages = conversation(seed, n=4)[0]
        doc = nlp(document(messages))
        thread = Thread([document(messages)], SpanItems())
        pairs = pipe.pairs.find(thread)
        scores = model.scores(observe(pipe.features, thread, pairs)).tolist()
        ends = list(zip(pairs.source.tolist(), pairs.target.tolist()))
        expected = {}
        for pair, score in zip(ends, scores):
            rivals = [x for other, x in zip(ends, scores) if other[0] == pair[0] and one_each]
            rivals = rivals or [score]
            if score > 0 and score == max(rivals):
                expected[pair] = np.exp(score) / (1 + np.exp(rivals).sum())
        assert doc._.hocrf_links == [list(pair) for pair in expected]
        assert doc._.hocrf_links_scores == pytest.approx([*expected.values()])
        assert all(type(each) is float for each in doc._.hocrf_links_scores)
        found += len(expected)
    assert found


@pytest.mark.slow
@pytest.mark.parametrize("one_each", [False, True])
def test_overfits_saves_loads_and_scores(one_each, tmp_path):
    config = {"nlp": {"lang": "xx", "pipeline": ["hocrf_links"]}}
    component = settings_of(one_each=one_each, itself=True, sigma=5.0)
    config["components"] = {"hocrf_links": {"factory": "hocrf_links", **component}}
    Config(config).to_disk(tmp_path / "config.cfg")
    nlp = load_model_from_config(load_config(tmp_path / "config.cfg"), auto_fill=True)
    corpus = examples(30, itself=True)
    nlp.initialize(lambda: corpus)
    losses = [nlp.update(corpus)["hocrf_links"] for _ in range(30)]
    assert losses[-1] < losses[0] / 3
    scores = nlp.evaluate(corpus)
    assert scores["hocrf_links_f"] > 0.85 and scores["hocrf_links_replies_f"] > 0.6
    nlp.to_disk(tmp_path / "model")
    loaded = spacy.load(tmp_path / "model")
    other = trained(n=5, steps=1, one_each=one_each, itself=True)
    other.from_bytes(nlp.to_bytes())
    copied = pickle.loads(pickle.dumps(nlp.get_pipe("hocrf_links")))
    for each in corpus[:10]:
        found = nlp(each.predicted.copy())
        for again in (loaded, other, copied):
            doc = again(each.predicted.copy())
            assert doc._.hocrf_links == found._.hocrf_links
            assert doc._.hocrf_links_scores == found._.hocrf_links_scores


@pytest.mark.slow
def test_training_goes_on_from_a_loaded_model():
    nlp, loaded, begun, corpus = trained(), untrained(), untrained(), examples(40)
    loaded.from_bytes(nlp.to_bytes())
    begun.initialize(lambda: corpus)
    assert loaded.update(examples(40))["hocrf_links"] < begun.update(corpus)["hocrf_links"] / 2
    assert loaded.get_pipe("hocrf_links")._learner.loss == pytest.approx(
        nlp.get_pipe("hocrf_links")._learner.loss, rel=0.01
    )


def test_predictions_change_no_state_and_training_no_docs():
    nlp = trained(n=10, steps=2)
    pipe = nlp.get_pipe("hocrf_links")
    before = pipe.to_bytes()
    corpus = examples(5)
    docs = [each.predicted.to_bytes() for each in corpus]
    nlp.evaluate(corpus)
    list(nlp.pipe(each.predicted.copy() for each in corpus))
    assert pipe.to_bytes() == before
    nlp.update(corpus)
    assert docs == [each.predicted.to_bytes() for each in corpus]


@pytest.mark.slow
def test_predictions_are_the_same_in_other_processes_and_survive_a_doc_bin():
    nlp = trained()
    docs = [each.predicted for each in examples(8, first=50)]
    alone = [nlp(doc.copy())._.hocrf_links for doc in docs]
    there = list(nlp.pipe([doc.copy() for doc in docs], n_process=2, batch_size=2))
    assert [as_lists(doc._.hocrf_links) for doc in there] == alone and any(alone)
    bin_of = DocBin(store_user_data=True, docs=there)
    back = list(DocBin().from_bytes(bin_of.to_bytes()).get_docs(nlp.vocab))
    assert [as_lists(doc._.hocrf_links) for doc in back] == alone
    doc = nlp(docs[1].copy())
    assert doc.to_json(underscore=["hocrf_links"])["_"]["hocrf_links"] == alone[1]


def as_lists(links):
    """Pairs as they were before msgpack, which makes tuples of lists."""
    return [list(pair) for pair in links]


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 5, 12])
@pytest.mark.parametrize("first", [0, 7])  # texts that `initialize` sees; the others come later
def test_the_result_does_not_depend_on_batches(size, first):
    whole, parts, begun, corpus = untrained(), untrained(), untrained(), examples(12)
    begun.initialize(lambda: corpus)
    for nlp in (whole, parts):
        nlp.initialize(lambda: corpus[: first or 12])
        nlp.get_pipe("hocrf_links").update(corpus)
    for _ in range(4):
        for start in range(0, 12, size):
            pipe = parts.get_pipe("hocrf_links")
            loss = pipe.update(corpus[start : start + size])["hocrf_links"]
            assert loss == pipe.update(corpus)["hocrf_links"]
        for nlp in (whole, parts):
            nlp.get_pipe("hocrf_links").finish_update(None)
    assert whole.to_bytes() == parts.to_bytes() != begun.to_bytes()


@pytest.mark.slow
def test_every_loop_reaches_the_optimum_and_stays_there():
    """One step of the training loop is one iteration, however many texts are in its batch."""
    corpus, found = examples(12), []
    for size in (12, 5):
        nlp = untrained()
        nlp.initialize(lambda: corpus)
        losses = {}
        for _ in range(30):
            for start in range(0, 12, size):
                nlp.update(corpus[start : start + size], losses=losses)
        before = nlp.to_bytes()
        nlp.update(corpus, losses=losses)
        assert nlp.to_bytes() == before
        found.append((before, losses["hocrf_links"]))
    assert found[0] == found[1]


# Docs of a group


def messages_of(seed, vocab=NLP.vocab):
    """A conversation whose Docs are messages, and its links by Doc."""
    said, links = conversation(seed)
    docs = []
    for i, (text, author, _) in enumerate(said):
        doc = Doc(vocab, words=text.split())
        doc._.author, doc._.hocrf_group = author, f"group {seed}"
        doc._.hocrf_links = [[0, j - i] for k, j in links if k == i]
        docs.append(doc)
    return docs


def grouped(seed):
    """The same as Examples."""
    found = []
    for doc in messages_of(seed):
        predicted = doc.copy()
        predicted._.hocrf_links = None
        found.append(Example(predicted, doc))
    return found


@pytest.fixture(scope="module")
def of_docs():
    """A component that links Docs."""
    nlp = untrained(**OF_DOCS)
    corpus = [each for seed in range(40) for each in grouped(seed)]
    nlp.initialize(lambda: corpus)
    for _ in range(20):
        nlp.update(corpus)
    return nlp


def test_batches_that_cut_groups_change_nothing():
    nlp, corpus = untrained(**OF_DOCS), [each for seed in range(4) for each in grouped(seed)]
    nlp.initialize(lambda: corpus)
    pipe = nlp.get_pipe("hocrf_links")
    whole = pipe.update(corpus)["hocrf_links"]
    assert whole > 0
    for start in range(0, len(corpus), 3):
        assert pipe.update(corpus[start : start + 3])["hocrf_links"] == whole


@pytest.mark.slow
@pytest.mark.parametrize("batch_size", [1, 7, 100])
def test_docs_of_a_group_are_linked_with_those_before_them(of_docs, batch_size):
    """What comes out is what spans of one Doc would have, counted from each Doc."""
    corpus = [each for seed in range(50, 60) for each in grouped(seed)]
    docs = list(of_docs.pipe([e.predicted.copy() for e in corpus], batch_size=batch_size))
    gold = [each.reference._.hocrf_links for each in corpus]
    right = [doc._.hocrf_links == links for doc, links in zip(docs, gold)]
    assert np.mean(right) > 0.9 and any(gold)
    assert any(links and links[0][1] < 0 for links in gold)
    scores = of_docs.evaluate(corpus, batch_size=batch_size)
    assert scores["hocrf_links_f"] > 0.8


@pytest.mark.slow
def test_links_of_docs_are_those_of_spans():
    """The same weights say the same of messages that are Docs, and of spans of one Doc."""
    spans, docs = trained(), untrained(**OF_DOCS)
    docs.get_pipe("hocrf_links").from_bytes(spans.get_pipe("hocrf_links").to_bytes())
    found = 0
    for seed in range(50, 60):
        doc = spans(document(conversation(seed)[0]))
        each = list(docs.pipe(messages_of(seed)))
        listed = [[i, i + j] for i, one in enumerate(each) for _, j in one._.hocrf_links]
        assert doc._.hocrf_links == listed
        found += len(listed)
    assert found


@pytest.mark.slow
def test_a_group_that_comes_back_is_warned_about(of_docs):
    docs = messages_of(3)
    docs[2]._.hocrf_group = "other"
    with pytest.warns(UserWarning, match="W008"):
        list(of_docs.pipe(docs))


# Scores


def scored(predicted, gold, **settings):
    """Scores of one conversation."""
    messages = conversation(1)[0]
    pair = Example(document(messages, predicted), document(messages, gold))
    return score_links([pair], attribute="hocrf_links", items=SpanItems(), **settings)


def test_scores_count_links_and_replies_apart():
    scores = scored([[0, 0], [2, 1], [3, 1]], [[0, 0], [1, 1], [2, 1], [4, 1]])
    assert scores["hocrf_links_p"] == pytest.approx(2 / 3)
    assert scores["hocrf_links_r"] == pytest.approx(2 / 4)
    assert scores["hocrf_links_f"] == pytest.approx(4 / 7)
    assert scores["hocrf_links_replies_p"] == pytest.approx(1 / 2)
    assert scores["hocrf_links_replies_r"] == pytest.approx(1 / 2)
    assert scores["hocrf_links_replies_f"] == pytest.approx(1 / 2)


def test_scores_of_what_is_not_annotated_are_none():
    assert set(scored([[1, 0]], None).values()) == {None}
    assert scored(None, [[1, 0]])["hocrf_links_f"] == 0.0
    assert scored([], [])["hocrf_links_f"] == 0.0


def test_links_of_other_items_are_compared_by_their_characters():
    """The predicted Doc lacks the first item, and begins to count with the second."""
    messages = conversation(1)[0]
    predicted, gold = document(messages, [[1, 0]]), document(messages, [[2, 1], [1, 0]])
    predicted.spans["sc"] = list(predicted.spans["sc"])[1:]
    scores = score_links([Example(predicted, gold)], attribute="hocrf_links", items=SpanItems())
    assert (scores["hocrf_links_p"], scores["hocrf_links_r"]) == (1.0, 0.5)


# Training by config


CONFIG = """
[nlp]
lang = "xx"
pipeline = ["hocrf_links"]
[components]
[components.hocrf_links]
factory = "hocrf_links"
[corpora]
[corpora.train]
@readers = "spacy-hocrf.LinksCorpus.v1"
path = "{path}"
spans_keys = ["sc"]
attributes = ["author"]
[corpora.dev]
@readers = "spacy-hocrf.LinksCorpus.v1"
path = "{path}"
spans_keys = ["sc"]
attributes = ["author"]
gold_preproc = true
[system]
gpu_allocator = null
seed = 0
[training]
seed = 0
gpu_allocator = null
train_corpus = "corpora.train"
dev_corpus = "corpora.dev"
max_epochs = 5
max_steps = 0
eval_frequency = 3
[training.batcher]
@batchers = "spacy.batch_by_sequence.v1"
size = 8
[training.score_weights]
hocrf_links_f = 1.0
"""


@pytest.mark.slow
def test_trains_by_a_config_file_and_is_loaded(tmp_path):
    path = tmp_path / "corpus.spacy"
    docs = [each.reference for each in examples(30)]
    DocBin(store_user_data=True, docs=docs).to_disk(path)
    config = Config().from_str(CONFIG.format(path=path.as_posix()))
    config["components"]["hocrf_links"] |= settings_of()
    config.to_disk(tmp_path / "config.cfg")
    train(tmp_path / "config.cfg", tmp_path / "model")
    nlp = spacy.load(tmp_path / "model" / "model-last")
    read = LinksCorpus(path, ["sc"], ["author"])
    scores = nlp.evaluate(list(read(nlp)))
    assert scores["hocrf_links_f"] > 0.9
    assert nlp.meta["performance"]["hocrf_links_f"] > 0.9
    # without a reader there are no items, and nothing is found
    assert evaluate(tmp_path / "model" / "model-last", path)["hocrf_links_r"] == 0.0


def test_the_reader_hands_over_spans_and_attributes(tmp_path):
    path = tmp_path / "corpus.spacy"
    doc = document(*conversation(1))
    set_group(doc, "one")
    DocBin(store_user_data=True, docs=[doc]).to_disk(path)
    read = LinksCorpus(path, ["sc", "none"], ["author", "hocrf_group"], gold_preproc=True)
    (found,) = read(NLP)
    said = [span._.author for span in found.predicted.spans["sc"]]
    assert said == [who for _, who, _ in conversation(1)[0]]
    assert found.predicted._.hocrf_group == "one" and found.predicted._.hocrf_links is None
    assert found.predicted.spans["sc"][0]._.minute is None, "is not among the attributes"
    assert len(list(LinksCorpus(path, limit=1)(NLP))) == 1
    for settings, code in (({"path": None}, "H112"), ({"path": path, "limit": -1}, "H110")):
        with pytest.raises(ValueError, match=code):
            LinksCorpus(**settings)


def test_annotating_components_find_the_items_of_training_texts():
    nlp = spacy.blank("xx")
    nlp.add_pipe("sentencizer")
    both = {"@misc": "spacy-hocrf.LinkShared.v1", "bins": [2]}  # full stop and thing
    features = {**FEATURES, "values": {**VALUES, "thing": both}}
    sentences = {"items": {"@misc": "spacy-hocrf.SentenceItems.v1"}}
    nlp.add_pipe("hocrf_links", config=settings_of(features=features, **sentences))
    config = nlp.config.copy()
    config["training"]["annotating_components"] = ["sentencizer"]
    nlp.config = config
    texts = ["Ask tea . Tell tea .", "Ask jam . Ask tea . Tell jam ."]
    corpus = []
    for text, links in zip(texts, ([[1, 0]], [[2, 0]])):
        reference = nlp.get_pipe("sentencizer")(nlp.make_doc(text))
        reference._.hocrf_links = links
        corpus.append(Example(nlp.make_doc(text), reference))
    with pytest.warns(UserWarning, match="W032"):  # nobody is an author
        nlp.initialize(lambda: corpus)
    for _ in range(20):
        nlp.update(corpus, annotates=["sentencizer"])
    assert [nlp(text)._.hocrf_links for text in texts] == [[[1, 0]], [[2, 0]]]


# What goes wrong


def test_an_error_handler_hears_of_the_error_alone():
    pipe = untrained().get_pipe("hocrf_links")
    heard = []
    pipe.set_error_handler(lambda name, proc, docs, error: heard.append(str(error)))
    assert pipe(document(conversation(0)[0])) is None
    assert [each[:6] for each in heard] == ["[H042]"]


def test_an_error_concerns_its_doc_only():
    names = {"@misc": "spacy-hocrf.LinkShared.v1", "attr": "_.wrong_names"}
    features = {
        "@misc": "spacy-hocrf.LinkFeatures.v1",
        "values": {"names": names},
        "templates": ["names"],
    }
    nlp = untrained(features=features)
    with pytest.warns(UserWarning, match="W032"):
        nlp.initialize(lambda: examples(2))
    failed = []
    nlp.set_error_handler(lambda name, proc, docs, error: failed.append(docs))
    docs = [document(conversation(k)[0]) for k in range(3)]
    docs[1].spans["sc"][0]._.wrong_names = 3
    assert list(nlp.pipe(docs)) == [docs[0], docs[2]]
    assert failed == [[docs[1]]]


@pytest.mark.slow
def test_what_is_not_trained_says_so():
    nlp = untrained()
    pipe = nlp.get_pipe("hocrf_links")
    for act in (lambda: nlp(document(conversation(0)[0])), lambda: pipe.update(examples(1))):
        with pytest.raises(ValueError, match="H042"):
            act()
    assert untrained().from_bytes(nlp.to_bytes()).get_pipe("hocrf_links")._learner is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings, code, told",
    [
        ({"sigma": 0.0}, "H298", "sigma is 0.0, but must be above 0"),
        ({"sigma": "1"}, "H298", "sigma is '1', but must be above 0"),
        ({"sigma": 1e200}, "H298", "sigma is 1e+200, but must be above 0, from 1e-09"),
        ({"sigma": 1e-200}, "H298", "sigma is 1e-200"),
        ({"group_by": "nobody"}, "H101", "_.nobody"),
        ({"items": {"@misc": "spacy-hocrf.LinkPairs.v1"}}, "H295", "LinkPairs"),
        ({"features": {"@misc": "spacy-hocrf.LinkPairs.v1"}}, "H295", "LinkFeatures"),
    ],
)
def test_bad_settings_are_named(settings, code, told):
    with pytest.raises(ValueError, match=code) as caught:
        untrained(**settings)
    assert told in str(caught.value)


def test_bad_pairs_are_named():
    with pytest.raises(ValueError, match=r"\[H295\] pairs of .* is 'SpanItems'"):
        spacy.blank("xx").add_pipe(
            "hocrf_links", config={"pairs": {"@misc": "spacy-hocrf.SpanItems.v1"}}
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    "links", ["ab", [[0]], [[0, 1, 2]], [[5, 0]], [[0, 5]], [[1, -1]], [[True, 0]], [[1.0, 0]], [3], 7]
)  # fmt: skip
def test_damaged_annotation_is_named(links):
    messages = conversation(1)[0]
    nlp, corpus = untrained(), examples(3)
    nlp.initialize(lambda: corpus)
    bad = Example(document(messages), document(messages, links))
    for act in (lambda: nlp.update([bad]), lambda: nlp.initialize(lambda: [bad])):
        with pytest.raises(ValueError, match=r"\[H299\] doc\._\.hocrf_links of the text .* 0 to 4"):
            act()


def test_links_of_a_text_without_items_say_so():
    bad = Example(document([]), document([], [[1, 0]]))
    with pytest.raises(ValueError, match=r"\[H299\].* but the text has no items\..*see items"):
        untrained().initialize(lambda: [bad])


def test_texts_that_teach_nothing():
    messages = conversation(1)[0]
    unknown = Example(document(messages), document(messages, None))
    without = Example(Doc(NLP.vocab, words=["a"]), document([("a", "x", 1)], []))
    nlp = untrained()
    with pytest.raises(ValueError, match=r"\[H303\] None of the 2 .*doc\.spans\['sc'\]"):
        nlp.initialize(lambda: [unknown, without])
    nlp.initialize(lambda: [unknown, example(1)])
    pipe = nlp.get_pipe("hocrf_links")
    assert pipe.update([unknown]) == pipe.update([example(1)])


@pytest.mark.slow
def test_links_that_cannot_be_are_warned_about():
    messages = conversation(1)[0]
    far = Example(document(messages), document(messages, [[4, 0], [1, 1], [1, 0]]))
    with pytest.warns(UserWarning, match=r"\[W031\] 1 of 3 annotated links"):
        untrained(itself=True, window=3).initialize(lambda: [far])
    with pytest.warns(UserWarning, match=r"\[W031\] 1 of 3 annotated links"):
        untrained().initialize(lambda: [far])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        untrained(itself=True).initialize(lambda: [far])


@pytest.fixture(scope="module")
def pipe():
    """A trained component that tests leave as it is."""
    return trained(n=5, steps=1).get_pipe("hocrf_links")


def payload(pipe, **changes):
    """What a component saves, altered."""
    saved = read_bytes(pipe.to_bytes())
    header, arrays = dict(saved.header), dict(saved.arrays)
    header.pop("arrays", None)
    for name, value in changes.items():
        target = header if name in header else arrays
        target[name] = value
    return Payload(header, {k: v for k, v in arrays.items() if v is not None})


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes, code",
    [
        ({"kind": "segments"}, "H307"),
        ({"ready": 1}, "H134"),
        ({"ready": False}, "H134"),
        ({"settings": []}, "H134"),
        ({"settings": {}}, "H301"),
        ({"keys": None}, "H302"),
        ({"keys": np.arange(3, dtype=np.uint64)}, "H302"),
        ({"keys": np.zeros((2, 2), dtype=np.uint64)}, "H302"),
        ({"keys": np.zeros(2)}, "H302"),
        ({"weights": np.zeros(3)}, "H302"),
        ({"weights": None}, "H302"),
        ({"other": np.zeros(3)}, "H302"),
    ],
)
def test_damaged_models_are_refused(pipe, changes, code):
    before = pipe.to_bytes()
    with pytest.raises(ValueError, match=code):
        pipe.from_bytes(write_bytes(payload(pipe, **changes)))
    assert pipe.to_bytes() == before


@pytest.mark.slow
def test_weights_that_are_not_finite_and_numbers_in_another_order_are_refused(pipe):
    arrays = payload(pipe).arrays
    weights = arrays["weights"].copy()
    weights[0] = np.nan
    for changes in ({"weights": weights}, {"keys": arrays["keys"][::-1].copy()}):
        with pytest.raises(ValueError, match="H302"):
            pipe.from_bytes(write_bytes(payload(pipe, **changes)))


@pytest.mark.slow
def test_truncated_models_and_those_of_other_components_are_refused(pipe, tmp_path):
    data = pipe.to_bytes()
    for damaged in (data[:-3], b"", data[:40]):
        with pytest.raises(ValueError, match="H052"):
            pipe.from_bytes(damaged)
    with pytest.raises(ValueError, match="H052"):
        pipe.from_disk(tmp_path / "nothing")
    segments = spacy.blank("xx").add_pipe("hocrf")
    with pytest.raises(ValueError, match="H307"):
        pipe.from_bytes(segments.to_bytes())
    with pytest.raises(ValueError, match="H134"):
        segments.from_bytes(data)


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes, told",
    [
        ({"one_each": True}, "one_each was False and is True"),
        ({"features": {**FEATURES, "templates": ["itself"]}}, "templates was"),
        ({"features": {**FEATURES, "values": {**VALUES, "distance": NEAR}}}, "values.distance was"),
    ],
)
def test_models_of_other_settings_are_refused(pipe, changes, told):
    with pytest.raises(ValueError, match="H301") as caught:
        untrained(**changes).get_pipe("hocrf_links").from_bytes(pipe.to_bytes())
    assert told in str(caught.value)


def test_what_is_not_what_the_links_mean_may_differ(pipe):
    other = untrained(sigma=3.0, window=3, itself=True, attribute="others")
    loaded = other.get_pipe("hocrf_links").from_bytes(pipe.to_bytes())
    doc = loaded(document(conversation(1)[0]))
    assert doc._.others is not None and doc._.hocrf_links is None


@pytest.mark.slow
def test_default_features_learn_too():
    nlp = spacy.blank("xx")
    nlp.add_pipe("hocrf_links")
    corpus = examples(60)
    nlp.initialize(lambda: corpus)
    losses = [nlp.update(corpus)["hocrf_links"] for _ in range(30)]
    assert losses[-1] < losses[0] / 4
    assert isinstance(nlp.get_pipe("hocrf_links"), LinkPipe)
