"""Tagging in CRFsuite's time counts few calls, however long the sequence is."""

import pytest
from calls import calls_of_ours
from labelled_sequences import draw

from spacy_hocrf.pycrfsuite import ItemSequence, Tagger, Trainer
from spacy_hocrf.sklearn import HighOrderCRF

SHORT, LONG = [{"see1": 1.0, "word": "w3"}] * 2, [{"see1": 1.0, "word": "w3"}] * 60


@pytest.fixture(scope="module", params=[1, 2])
def tagger(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model"
    trainer = Trainer(params={"feature.order": request.param}, verbose=False)
    for x, y in zip(*draw(1)):
        trainer.append(x, y)
    trainer.train(path)
    tagger = Tagger()
    tagger.open(path)
    tagger.tag(SHORT)
    return tagger


def test_tag_takes_at_most_10_calls_since_a_kernel_reads_the_items(tagger):
    few, many = (calls_of_ours(lambda x=x: tagger.tag(x)) for x in (SHORT, LONG))
    assert few == many
    assert few.total() <= 10


def test_a_probability_takes_at_most_8_calls_and_no_look_at_the_items(tagger):
    labels = tagger.tag(LONG)
    tagger.probability(labels)
    calls = calls_of_ours(lambda: tagger.probability(labels))
    assert calls.total() <= 8
    assert calls["sequences/model.py", "chain"] == 0


def test_marginals_take_at_most_5_calls_each_since_a_sequence_is_summed_once(tagger):
    tagger.set(ItemSequence(LONG))
    calls = calls_of_ours(lambda: [tagger.marginal("sun", i) for i in range(len(LONG))])
    assert calls.total() <= 5 * len(LONG)


@pytest.mark.parametrize("ask", ["predict", "predict_proba"])
def test_many_sequences_take_at_most_5_calls_each_and_one_chain(ask):
    crf = HighOrderCRF(max_iterations=5).fit(*draw(1))
    ask = getattr(crf, ask)
    ask([SHORT])
    assert calls_of_ours(lambda: ask([LONG] * 10)).total() <= 10 + 10 * 5
