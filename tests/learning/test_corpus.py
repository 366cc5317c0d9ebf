"""What a corpus keeps of its documents: enough to learn from them again, and no more."""

from dataclasses import replace

import numpy as np
import pytest
from small_corpus import FEATURES, examples, initialize, learner_of, untrained
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_hocrf.annotation import targets
from spacy_hocrf.annotation.targets import EntsTarget, SpansTarget, TagsTarget
from spacy_hocrf.features.records import Record
from spacy_hocrf.features.templates import AttributeTemplate


def corpus_of(nlp):
    return learner_of(nlp.get_pipe("hocrf")).corpus


def test_documents_are_kept_as_records():
    nlp = untrained()
    nlp.initialize(lambda: examples(nlp))
    assert {type(document.source) for document in corpus_of(nlp).documents} == {Record}


@pytest.mark.filterwarnings("ignore:.*W018")  # words are all that there is
def test_docs_are_kept_for_somebodys_own_template():
    class Own(AttributeTemplate):
        def events(self, batch):
            assert all(isinstance(doc, Doc) for doc in batch.docs) and len(batch.docs)
            return super().events(batch)

    nlp = untrained()
    pipe = nlp.get_pipe("hocrf")
    pipe.structure.settings = replace(pipe.structure.settings, templates=(Own((("ORTH", 0),)),))
    data = initialize(nlp)
    kept = [document.source for document in corpus_of(nlp).documents]
    assert {type(source) for source in kept} == {Doc}
    assert not {id(source) for source in kept} & {id(example.predicted) for example in data}
    pipe.update(data, sgd=nlp.create_optimizer())


def test_texts_without_annotation_are_counted_and_none_without_tokens_or_weight():
    nlp = untrained()
    data = initialize(nlp)
    unknown, empty, light = (Example(doc, doc.copy()) for doc in map(nlp.make_doc, ("a", "", "b")))
    light.reference._.hocrf_weight = 0.0
    corpus = corpus_of(nlp)
    for example in data:
        corpus.note(example)
    some = [*data, empty, light]
    for found in (corpus.compare([*some, unknown]), corpus.recognized(some)):
        assert found.usable == len(data) and found.empty == 2
        assert found.read in (len(some), len(some) + 1)


def test_texts_of_a_memory_zone_cannot_be_kept():
    nlp = untrained()
    optimizer = nlp.create_optimizer()
    with nlp.memory_zone(), pytest.raises(ValueError, match=r"H600.*'Ada "):
        nlp.initialize(lambda: examples(nlp))
    data = initialize(nlp)
    with nlp.memory_zone():
        nlp.update(data, sgd=optimizer)  # none of them is new
        new = examples(nlp, [("Zoltan was in Pecs .", [(0, 6, "PERSON")])])
        with pytest.raises(ValueError, match="H600"):
            nlp.update([*data, *new], sgd=optimizer)
    assert len(corpus_of(nlp)) == len(data)
    nlp.update(data, sgd=optimizer)


def test_examples_are_read_once_and_not_held():
    nlp, again = untrained(), untrained()
    data = initialize(nlp)
    live = []

    class Watched(Example):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            live.append(1)

        def __del__(self):
            live.pop()

    def stream():
        for example in examples(again):
            yield Watched(example.predicted, example.reference)
            assert len(live) <= 2

    again.initialize(stream)
    assert len(corpus_of(again)) == len(data)
    assert again.get_pipe("hocrf").to_bytes() == nlp.get_pipe("hocrf").to_bytes()


def annotated(vocab):
    """Examples with equal tokens on both sides, annotated in every way, some with white space."""
    texts = [
        ["Ada", "Lovelace", "likes", "Paris"],
        ["Emmy", " ", "slept"],
        ["x", "\n", "y", "z"],
        ["It", "rains", "here", "now"],
    ]
    for number in range(24):
        text = texts[number % 4]
        doc, reference = Doc(vocab, words=text), Doc(vocab, words=text)
        random = np.random.default_rng(number)
        cuts = sorted(random.choice(len(text) + 1, 2, replace=False).tolist())
        if number % 5:
            known = [Span(reference, *cuts, label="A")] if number % 3 else []
            rest = [
                Span(reference, i, i + 1)
                for i in range(len(text))
                if not (number % 3 and cuts[0] <= i < cuts[1])
            ]
            chosen = random.integers(0, 3, len(rest))
            sorts = {
                name: [span for span, sort in zip(rest, chosen) if sort == i]
                for i, name in enumerate(("missing", "blocked"))
            }
            reference.set_ents(known, **sorts, default="outside")
            reference.spans["sc"] = [
                Span(reference, *cuts, label="A"),
                Span(reference, 0, 1, label="B"),
            ][: number % 3]
            for token in reference:
                token.tag_ = random.choice(["", "N", "V"])
        yield Example(doc, reference)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*W003")
@pytest.mark.parametrize(
    "target",
    [EntsTarget(None, True), SpansTarget("sc"), TagsTarget(True)],
    ids=lambda t: type(t).__name__,
)
def test_annotation_of_equal_tokens_needs_no_alignment(target, monkeypatch):
    vocab = untrained().vocab
    found = [target.annotation(example) for example in annotated(vocab)]
    fast = [targets.same_tokens(example) for example in annotated(vocab)]
    monkeypatch.setattr(targets, "same_tokens", lambda example: False)
    for example, one, is_fast in zip(annotated(vocab), found, fast, strict=True):
        other = target.annotation(example)
        assert one.spans == other.spans, example
        assert one.unknown.tolist() == other.unknown.tolist(), example
        assert one.unknown.dtype == other.unknown.dtype == bool
        assert is_fast == (not any(token.is_space for token in example.x))
    assert len({one.spans for one in found}) > 3 and any(not one.complete for one in found)


def test_features_of_the_default_config_are_recordable():
    nlp = untrained(model={"features": FEATURES})
    nlp.initialize(lambda: examples(nlp))
    assert corpus_of(nlp).batch(corpus_of(nlp).documents).blank.tolist() == [False] * sum(
        map(len, corpus_of(nlp).documents)
    )
