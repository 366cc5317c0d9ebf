"""Predicting many Docs together is predicting each alone, whatever is in them."""

import numpy as np
import pytest
from small_corpus import MODELS, found, like_shared, with_entities
from spacy.tokens import Doc

from spacy_hocrf.model import structure

pytestmark = pytest.mark.slow

WORDS = [*"Ada Lovelace was born in New York . Emmy likes Paris".split(), " ", "\n"]


def random_docs(nlp, seed):
    """Docs of 0 to 15 words; some with white space at the ends, with entities, blocked tokens or
    tags.
    """
    rng = np.random.default_rng(seed)
    docs = []
    for i, length in enumerate([0, 1, *rng.integers(0, 16, 12)]):
        words = [str(word) for word in rng.choice(WORDS, length)]
        doc = Doc(nlp.vocab, words=[" ", *words, "\n"] if i % 5 == 2 else words)
        if i % 3 == 2 and len(doc) > 2:
            with_entities(doc, (1, 2, "PERSON"), blocked=[(2, 3)])
            doc[0].tag_ = "NAME"
        docs.append(doc)
    return docs


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("threshold", [None, 0.6])
def test_documents_together_and_alone(name, threshold, monkeypatch):
    factory, _ = MODELS[name]
    settings = {} if factory == "hocrf_tagger" or threshold is None else {"threshold": threshold}
    nlp = like_shared(name, **settings)
    pipe = nlp.get_pipe("hocrf")
    alone = [prediction for doc in random_docs(nlp, 0) for prediction in pipe.predict([doc])]
    together = pipe.predict(random_docs(nlp, 0))
    monkeypatch.setattr(structure, "BATCH_TOKENS", 20)
    in_batches = pipe.predict(random_docs(nlp, 0))
    assert sum(len(prediction.spans) for prediction in alone) > 5
    for one, other, third in zip(alone, together, in_batches, strict=True):
        assert one.spans == other.spans == third.spans
        assert (one.scores is None) == (other.scores is None) == (factory == "hocrf_tagger")
        if one.scores is not None:
            # summed in other orders
            np.testing.assert_allclose(other.scores, one.scores, rtol=1e-9)
    docs = random_docs(nlp, 0)
    pipe.set_annotations(docs, together)
    assert [found(doc) for doc in docs] == [found(pipe(doc)) for doc in random_docs(nlp, 0)]
