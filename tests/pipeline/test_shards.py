"""How the documents of a corpus are divided among the strands of an objective."""

import math
from itertools import chain

import numpy as np
import pytest
from small_corpus import documents, examples, untrained, words
from spacy.training import Example

from spacy_hocrf.engine.objective import STRANDS
from spacy_hocrf.pipeline.shards import SHARD_TOKENS, make_shards


def test_long_documents_come_after_short_ones_and_incomplete_ones_after_all(monkeypatch):
    nlp = untrained()
    data = examples(nlp, documents(24))
    partial = [
        Example.from_dict(words(nlp, "Emmy", f"slept{i}"), {"entities": ["U-PERSON", "-"]})
        for i in range(3)
    ]
    nlp.initialize(lambda: [*partial, *data])
    learner = nlp.get_pipe("hocrf")._learner
    whole, _ = learner.objective()(np.zeros(len(learner.structure.index)))
    monkeypatch.setattr("spacy_hocrf.pipeline.shards.SHARD_TOKENS", 9)
    assert SHARD_TOKENS > 9
    shards = make_shards(learner.structure, learner.corpus)
    sizes = [[len(document) for document in shard._documents] for shard in shards]
    complete = [[document.complete for document in shard._documents] for shard in shards]
    lengths = list(chain.from_iterable(sizes))[:-3]
    assert lengths == sorted(lengths)
    assert [part for part in complete if not all(part)] == [[False] * 3]
    strands = math.ceil(sum(lengths) / (9 * STRANDS))
    # all strands get shards of one size, not above 9 tokens
    size = math.ceil(sum(lengths) / (strands * STRANDS))
    assert all(sum(part) >= size for part in sizes[:-2]) and all(
        sum(part[:-1]) < size <= 9 for part in sizes[:-1]
    )
    assert len(shards) > 5
    parts, _ = learner.objective()(np.zeros(len(learner.structure.index)))
    assert parts == pytest.approx(whole, rel=1e-12)
