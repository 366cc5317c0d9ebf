"""Sets of readings that have the right one in them: by enumeration, and by texts whose truth is drawn."""

from dataclasses import replace
from itertools import islice
from math import ceil, exp, inf

import numpy as np
import pytest
import spacy
from pytest import approx
from small_corpus import MODELS, initialize, trained, untrained
from spacy.tokens import Doc, Span

from spacy_hocrf.annotation.acceptance import MAX_SAMPLE, Acceptance
from spacy_hocrf.api import ReadingSet, WholeTexts
from spacy_hocrf.cli.accept import accept, farthest_behind, whole_texts

TEXTS = (
    "Ada Lovelace was born in Paris .",
    "Ada \n Lovelace \n was in Paris .",
    "Grace slept in New York , London and San Jose .",
    "",
)


def known(*behind, texts=None):
    """An acceptance that has seen texts whose right readings were so far behind."""
    n = len(behind) if texts is None else texts
    return Acceptance(0.5, 0.5, 0.0, n, 0, behind=tuple(map(float, behind)))


def made(kind, weight=0.4, seed=7):
    """A pipeline with random weights."""
    nlp = untrained(*MODELS[kind])
    initialize(nlp)
    pipe = nlp.get_pipe("hocrf")
    weights = np.random.default_rng(seed).normal(0, weight, pipe.model.get_param("W").shape)
    pipe.model.set_param("W", weights.astype(np.float32))
    return nlp


@pytest.mark.slow
@pytest.mark.parametrize("kind", MODELS)
def test_a_set_has_all_readings_that_are_no_farther_behind(kind):
    nlp = made(kind, 2.0)
    pipe = nlp.get_pipe("hocrf")
    docs = [*map(nlp.make_doc, TEXTS)]
    readings = [list(islice(reading.alternatives(), 1000)) for reading in pipe.readings(docs)]
    for far in (0.0, 0.7, 1.5):
        pipe.acceptance = known(*[far] * 20)
        several = 0
        for every, reading in zip(readings, pipe.readings(docs)):
            least = every[0].log_probability - far - 1e-6
            left = 1 - sum(each.probability for each in every)
            assert left < exp(least)  # none of the others is as probable
            expected = {each.spans for each in every if each.log_probability >= least}
            found = reading.set(0.9)
            assert isinstance(found, ReadingSet) and found.complete
            assert {each.spans for each in found} == expected and len(found) == len(expected)
            logs = [each.log_probability for each in found]
            assert logs == sorted(logs, reverse=True)
            several += len(found) > 1
        assert several or not far


@pytest.mark.slow
def test_readings_that_come_too_late_are_found_where_several_segmentations_are_shown_alike():
    """White space at the ends of spans: readings come by their best segmentations."""
    late = 0
    for seed in range(6):
        nlp = made("CRF, io", 0.5, seed)
        pipe = nlp.get_pipe("hocrf")
        for reading in pipe.readings([nlp.make_doc(" \n Ada \n \n Paris \n ")]):
            every = list(reading.alternatives())
            logs = [each.log_probability for each in every]
            for far in (0.5, 1.5, 3.0):
                pipe.acceptance = known(*[far] * 20)
                found = pipe.reading(reading.doc).set(0.9)
                expected = sorted(
                    (log for log in logs if log >= logs[0] - far - 1e-6), reverse=True
                )
                assert [each.log_probability for each in found] == approx(expected, abs=1e-9)
                late += any(log < logs[0] - far for log in logs[: len(found)])
    assert late


def test_a_set_ends_where_it_is_told_to_and_says_so():
    nlp = made("spans")
    pipe = nlp.get_pipe("hocrf")
    pipe.acceptance = known(*[3.0] * 20)
    reading = pipe.reading(nlp.make_doc(TEXTS[0]))
    every = reading.set(0.9)
    n = len(every)
    assert n > 3 and every.complete
    for most in (n, n - 1, 1):
        some = reading.set(0.9, most)
        assert [each.spans for each in some] == [each.spans for each in every[:most]]
        assert some.complete is (most == n)
    with pytest.raises(ValueError, match="H210"):
        reading.set(0.9, most=0)


@pytest.mark.slow
def test_the_right_reading_is_among_them_as_often_as_was_said():
    """Truth is drawn from the model, at twice its temperature, so that the model is too sure."""
    nlp, rng = made("semi-CRF, outside tokens", 1.5), np.random.default_rng(3)
    pipe = nlp.get_pipe("hocrf")
    words = ("Ada", "Lovelace", "Paris", "slept", "in", ",", "New", "York", ".")
    docs = [Doc(nlp.vocab, rng.choice(words, 3).tolist()) for _ in range(900)]
    for doc, reading in zip(docs, list(pipe.readings(docs))):
        every = list(reading.alternatives())
        chances = np.sqrt([each.probability for each in every])
        truth = every[rng.choice(len(every), p=chances / chances.sum())]
        doc.set_ents([Span(doc, *span) for span in truth.spans])
    seen, new = docs[:300], docs[300:]
    pipe.acceptance, _ = accept(whole_texts(nlp, seen), 0.05, 0.8)
    bare = [Doc(nlp.vocab, [token.text for token in doc]) for doc in new]
    readings = list(pipe.readings(bare))
    sizes = []
    for level in (0.5, 0.8, 0.95):
        sets = [reading.set(level) for reading in readings]
        spans = [tuple((e.start, e.end, e.label_) for e in doc.ents) for doc in new]
        covered = np.mean([any(truth == e.spans for e in s) for truth, s in zip(spans, sets)])
        spread = np.sqrt(level * (1 - level) * (1 / 300 + 1 / 600))
        assert abs(covered - level) < 3 * spread
        sizes.append(np.mean([len(each) for each in sets]))
    assert sizes == sorted(sizes) and sizes[0] < sizes[2] / 2


def test_the_number_is_the_right_order_statistic():
    for n in (9, 19, 20, 99, 500):
        behind = np.random.default_rng(n).permutation(n).astype(float)
        texts = WholeTexts(np.ones(n), np.ones(n, dtype=bool), np.full(n, ""), behind)
        acceptance = known(*farthest_behind(texts))
        for level in (0.5, 0.8, 0.9, n / (n + 1)):
            k = min(k for k in range(1, n + 1) if k / (n + 1) >= level - 1e-9)
            assert acceptance.farthest(level) == k - 1


def test_of_many_texts_enough_is_kept():
    n = 3 * MAX_SAMPLE + 7
    behind = np.arange(n, dtype=float)
    behind[-2 * n // 10 :] = inf
    texts = WholeTexts(np.ones(n), np.ones(n, dtype=bool), np.full(n, ""), behind)
    kept = farthest_behind(texts.only(np.random.default_rng(0).permutation(n)))
    assert len(kept) <= MAX_SAMPLE
    acceptance = known(*kept, texts=n)
    for level in np.linspace(0.001, 0.795, 200).tolist():
        k = ceil((n + 1) * level)
        assert k - 1 <= acceptance.farthest(level) <= k + 3
    with pytest.raises(ValueError, match=r"H507.*Ask for 0\.79 at most"):
        acceptance.farthest(0.81)
    assert farthest_behind(replace(texts, behind=None)) == ()


def test_right_readings_are_as_far_behind_as_their_probability_says():
    nlp = made("semi-CRF, outside tokens")
    pipe = nlp.get_pipe("hocrf")
    docs = [nlp.make_doc(text) for text in TEXTS]
    spans = ([(0, 2, "PERSON")], [], [(0, 1, "UNKNOWN")], [])
    for doc, rows in zip(docs, spans):
        doc.set_ents([Span(doc, *row) for row in rows])
    whole = whole_texts(nlp, docs)
    for doc, behind in zip(filter(len, docs), whole.behind, strict=True):
        reading = pipe.reading(nlp.make_doc(doc.text))
        if doc is docs[2]:
            assert behind == inf
        else:
            spans = [(ent.start, ent.end, ent.label_) for ent in doc.ents]
            expected = reading.best(1)[0].log_probability - reading.log_probability(spans)
            assert behind == approx(expected, abs=1e-9)
    assert whole.behind[0] > 0 and whole.corrected().behind is whole.behind


def test_it_is_saved_with_the_model(tmp_path):
    nlp = trained("hocrf", {}, steps=3)
    pipe = nlp.get_pipe("hocrf")
    pipe.acceptance = known(*np.linspace(0, 5, 30).tolist())
    expected = [each.spans for each in pipe.reading(nlp.make_doc(TEXTS[0])).set(0.9)]
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    reading = loaded.get_pipe("hocrf").reading(loaded.make_doc(TEXTS[0]))
    assert [each.spans for each in reading.set(0.9)] == expected and len(expected) > 1


def test_what_cannot_be_promised_is_an_error():
    nlp = made("semi-CRF, outside tokens")
    pipe = nlp.get_pipe("hocrf")

    def ask(level=0.9):
        return pipe.reading(nlp.make_doc(TEXTS[0])).set(level)

    for nothing in (None, known(texts=50)):
        pipe.acceptance = nothing
        with pytest.raises(ValueError, match=r"H505.*calibrate MODEL TEXTS --accept"):
            ask()
    pipe.acceptance = known(*[0.0] * 9)
    assert len(ask()) >= 1
    pipe.acceptance = known(*[0.0] * 8)
    with pytest.raises(ValueError, match=r"H506.* 0\.9 .*at least 9 texts.*had 8"):
        ask()
    with pytest.raises(ValueError, match=r"H506.*at least 19 texts"):
        ask(0.95)
    pipe.acceptance = known(*[0.0] * 8, texts=9)
    with pytest.raises(ValueError, match=r"H507.*Ask for 0\.8 at most"):
        ask()
    assert len(ask(0.8)) >= 1
    for level in (0, 1, -0.1, 2, "0.9", None):
        with pytest.raises(ValueError, match="H508"):
            ask(level)
