"""What is read off held-back texts, against components that are trained on the others and nothing else."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import spacy
from pytest import approx
from small_corpus import annotation, documents, examples, learn_from, one_of_two
from spacy.tokens import DocBin, Span
from spacy.training import Example

from spacy_hocrf.cli.auto import reading as module
from spacy_hocrf.cli.auto.command import default_settings
from spacy_hocrf.cli.auto.reading import Subject, doubted_texts, joined_held_out
from spacy_hocrf.cli.auto.texts import AutoSetup, read_annotated
from spacy_hocrf.cli.doubts import doubts_of
from spacy_hocrf.cli.options import BestAt
from spacy_hocrf.cli.shown import ShownText
from spacy_hocrf.training.lbfgs import LBFGSTrainer

SIGMA = 3.0
COST = 0.3


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A setup, its texts and a blank pipeline."""
    nlp = spacy.blank("en")
    rows = documents(30)
    docs = [Example.from_dict(nlp.make_doc(t), annotation(nlp, t, s)).reference for t, s in rows]
    return read_as(AutoSetup, docs, tmp_path_factory.mktemp("reading"))


@pytest.fixture(scope="module")
def covered(tmp_path_factory):
    """The same texts, each word of which is in a span."""
    nlp = spacy.blank("en")
    docs = [
        Example.from_dict(nlp.make_doc(t), annotation(nlp, t, s)).reference
        for t, s in documents(30)
    ]
    for doc in docs:
        free = [Span(doc, token.i, token.i + 1, "WORD") for token in doc if not token.ent_type]
        doc.set_ents([*doc.ents, *free])
    return read_as(AutoSetup, docs, tmp_path_factory.mktemp("covered"))


def read_as(make, docs, folder):
    path = folder / "train.spacy"
    DocBin(docs=docs).to_disk(path)
    setup = make(path)
    nlp = setup.blank()
    return setup, read_annotated(setup, nlp), nlp


def for_texts(corpus):
    """The same corpus, for a model that is best at whole texts."""
    setup, texts, nlp = corpus
    return replace(setup, best_at=BestAt.TEXTS), texts, nlp


def subject(corpus, order=1):
    setup, texts, nlp = corpus
    settings = default_settings(setup, nlp)
    settings["trainer"] = {**settings["trainer"], "sigma": SIGMA}
    settings["model"] = {**settings["model"], "order": order}
    return Subject(settings, setup, texts, nlp)


def read(it, learnt, held):
    fold = it.fold(learnt, held)
    fold.train(it.trainer)
    return it.read(fold, held)


def halves(texts):
    numbers = np.arange(len(texts))
    return numbers[numbers % 2 == 0], numbers[numbers % 2 == 1]


def spans(some, texts):
    names = texts.labels
    columns = (some.text, some.start, some.end, some.label)
    return sorted((i, u, v, names[y]) for i, u, v, y in zip(*(c.tolist() for c in columns)))


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("cost", [None, COST])
def test_a_reading_is_what_a_component_predicts(corpus, order, cost):
    """Before anything says what readings look like: the most probable one."""
    _, texts, _ = corpus
    it = subject(for_texts(corpus) if cost is None else corpus, order)
    learnt, held = halves(texts)
    reading = read(it, learnt, held)
    decoder = {"@misc": "spacy-hocrf.Viterbi.v1"}
    if cost is not None:
        decoder = {"@misc": "spacy-hocrf.ExpectedF.v1", "cost": cost}
    nlp = component(it, texts, learnt, decoder)
    expected, scores = [], []
    for i in held.tolist():
        for ent in nlp(texts.distinct[i].text).ents:
            expected.append((i, ent.start, ent.end, ent.label_))
            scores.append(ent._.hocrf_score)
    shown = reading.shown(cost)
    assert spans(shown, texts) == sorted(expected) and expected
    # probabilities below the least candidate are 0
    assert shown.chance.tolist() == approx([s if s >= 0.02 else 0.0 for s in scores], abs=1e-5)


@pytest.mark.parametrize("words", ["corpus", "covered"])
def test_doubts_are_those_of_the_command_doubt(words, request, monkeypatch):
    corpus = request.getfixturevalue(words)
    _, texts, _ = corpus
    it = subject(for_texts(corpus))
    learnt, held = halves(texts)
    reading = read(it, learnt, held)
    nlp = component(it, texts, learnt, {"@misc": "spacy-hocrf.Viterbi.v1"})
    monkeypatch.setattr(module, "WORTH", 0.0)
    monkeypatch.setattr(module, "MAX_DOUBTED", len(texts))
    mine = doubted_texts(texts, reading, None)
    for text in mine:
        example, gold = texts.distinct[text.number], texts.gold[text.number]
        (known,) = nlp.get_pipe("hocrf").readings([nlp.make_doc(example.text)])
        shown = ShownText(known, nlp.get_pipe("hocrf").target)
        expected = doubts_of(text.number, shown, gold, None)
        assert len(text.doubts) == len(expected)
        # probabilities below the least candidate are 0
        degrees = sorted((doubt.degree for doubt in expected), reverse=True)
        assert [doubt.degree for doubt in text.doubts] == approx(degrees, abs=0.03)
    assert {text.number for text in mine} == {*held.tolist()}


def test_counts_are_those_of_the_scorer(corpus):
    _, texts, _ = corpus
    learnt, held = halves(texts)
    reading = read(subject(corpus), learnt, held)
    counts = reading.counts(COST)
    found = spans(reading.shown(COST), texts)
    for i in range(len(texts)):
        for y, label in enumerate(texts.labels):
            here = {(label, u, v) for text, u, v, name in found if (text, name) == (i, label)}
            gold = {item for item in texts.gold[i] if item[0] == label} if i in held else set()
            numbers = counts.right[i, y], counts.predicted[i, y], counts.gold[i, y]
            assert numbers == (len(here & gold), len(here), len(gold))
    assert counts.f == approx(reading.evidence.f_score(COST, 1.0))


def test_readings_are_joined_text_by_text(corpus):
    _, texts, _ = corpus
    it = subject(corpus)
    odd, even = halves(texts)
    parts = [read(it, odd, even), read(it, even, odd)]
    both = joined_held_out(parts)
    assert both.held.all() and (np.diff(both.probable.text) >= 0).all()
    together = sorted(span for part in parts for span in spans(part.shown(COST), texts))
    assert spans(both.shown(COST), texts) == together


def test_what_looks_best_is_what_the_other_folds_say(tmp_path, monkeypatch):
    nlp, asked = spacy.blank("en"), []
    docs = [example.reference for example in examples(nlp, one_of_two(60))]
    corpus = read_as(partial(AutoSetup, best_at=BestAt.TEXTS), docs, tmp_path)
    _, texts, _ = corpus
    thirds = [np.arange(len(texts))[k::3] for k in range(3)]
    it = subject(corpus)
    parts = [
        read(it, np.concatenate([*thirds[:k], *thirds[k + 1 :]]), held)
        for k, held in enumerate(thirds)
    ]

    def weights_of(others):
        asked.append([part is readings for readings in others for part, _ in known].count(True))
        assert all(parts[len(asked) - 1].readings[0] is not readings for readings in others)
        return learnt_weights(others)

    known, learnt_weights = [part.readings for part in parts], module.ranking_weights
    monkeypatch.setattr(module, "ranking_weights", weights_of)
    both = joined_held_out(parts)
    assert asked == [2, 2, 2] and (np.diff(both.best.text) >= 0).all()
    probable = np.concatenate([part.best.text for part in parts])
    with_it, without = (np.bincount(text, minlength=60) for text in (both.best.text, probable))
    assert (with_it == 1).sum() == 60 > (without == 1).sum()
    assert both.counts(None).predicted.sum() == 60


def component(it, texts, learnt, decoder):
    """A pipeline that is trained on some texts as models that are read are."""
    quick = LBFGSTrainer().quick()
    ending = {
        name: getattr(quick, name) for name in ("improvement_tolerance", "improvement_period")
    }
    settings = it.chosen(None)
    trainer = {**settings["trainer"], **ending}
    nlp = spacy.blank("en")
    settings = {**settings, "trainer": trainer, "decoder": decoder}
    nlp.add_pipe("hocrf", config={k: v for k, v in settings.items() if k != "factory"})
    data = [
        Example(nlp.make_doc(eg.text), eg.reference) for eg in (texts.distinct[i] for i in learnt)
    ]
    learn_from(nlp, data)
    return nlp
