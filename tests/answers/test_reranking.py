"""Readings looked at as wholes: against plain Python, and as a component learns, keeps and shows them."""

import logging
import pickle
from collections import Counter
from itertools import pairwise
from math import log

import numpy as np
import pytest
import spacy
from oracle import segments_of
from random_readings import scored_as_wholes
from small_corpus import (
    MODELS,
    decoder_of,
    examples,
    found,
    learn_from,
    learner_of,
    like_shared,
    one_of_two,
    teach,
    trained,
    untrained,
)

from spacy_hocrf.annotation.acceptance import Acceptance
from spacy_hocrf.answers.alternatives import Alternatives
from spacy_hocrf.answers.decoders import Reranked
from spacy_hocrf.answers.whole_readings import N_FEATURES, ReadingCounts, Reranker, WholeReadings
from spacy_hocrf.arrays import offsets_of
from spacy_hocrf.cli.temper import temper
from spacy_hocrf.features.tokens import EDGE
from spacy_hocrf.learning import reranking
from spacy_hocrf.learning.reranking import best_weights

RERANKED = {"@misc": "spacy-hocrf.Reranked.v1"}
SPANS = [name for name in MODELS if name not in ("tagger", "spans")]
TEXTS = [
    "Ada was born",
    "Emmy  San Jose",
    "Nobody likes New York",
    "Ada  was ",
    "Emmy San Jose",
    "It",
    "",
]


def batch_of(readings, texts):
    """What the code is given: `readings` are pairs of a text's number and spans with numbers of labels."""
    spans = segments_of([spans for _, spans in readings])
    logs = -np.arange(1.0, len(readings) + 1)
    words = np.array([word for text in texts for word in text], dtype=np.uint64)
    bounds = offsets_of([len(text) for text in texts])
    places = np.stack([bounds[:-1], bounds[1:]], axis=1)
    text = np.array([number for number, _ in readings], dtype=np.int64)
    return WholeReadings(spans, text, logs), words, places


def around(text, start, end):
    before = text[start - 1] if start else int(EDGE)
    behind = text[end] if end < len(text) else int(EDGE)
    return text[start], text[end - 1], before, behind


def plain_features(annotated, log_p, text, spans, n_labels):
    """ψ as the module describes it; annotated: pairs of a text and its spans."""
    together, which, amounts = Counter(), Counter(), Counter()
    labels, pairs, words = Counter(), Counter(), Counter()
    for other, rows in annotated:
        there = Counter(label for *_, label in rows)
        together[tuple(sorted(there.elements()))] += 1
        which[frozenset(there)] += 1
        amounts.update((y, min(4, there[y])) for y in range(n_labels))
        labels.update(there)
        for start, end, label in rows:
            for kind, word in enumerate(around(other, start, end)):
                pairs[kind, word, label] += 1
                words[kind, word] += 1
    there = Counter(label for *_, label in spans)
    c = together[tuple(sorted(there.elements()))]
    features = [log_p, log(c + 0.5), float(c == 0), log(which[frozenset(there)] + 0.5)]
    sums = [
        log((amounts[y, min(4, there[y])] + 0.1) / (len(annotated) + 0.5)) for y in range(n_labels)
    ]
    features.append(sum(sums))
    total = labels.total() + n_labels
    gains = [0.0] * 4
    for start, end, label in spans:
        chance = (labels[label] + 1) / total
        for kind, word in enumerate(around(text, start, end)):
            share = (pairs[kind, word, label] + 0.3 * chance) / (words[kind, word] + 0.3)
            gains[kind] += log(share / chance)
    return [*features, *gains, float(len(spans))]


def random_spans(rng, length, n_labels):
    cuts = sorted({0, length, *rng.integers(0, length + 1, 4).tolist()})
    rows = pairwise(cuts)
    return [(i, j, int(rng.integers(n_labels))) for i, j in rows if rng.random() < 0.6]


@pytest.mark.parametrize("seed", range(20))
def test_what_a_reading_looks_like_is_as_in_plain_python(seed):
    rng = np.random.default_rng(seed)
    n_labels = int(rng.integers(1, 4))
    texts = [rng.integers(0, 6, rng.integers(1, 9)).tolist() for _ in range(12)]
    annotated = [random_spans(rng, len(text), n_labels) for text in texts]
    halves = [list(enumerate(annotated[:7])), list(enumerate(annotated[7:]))]
    batches = [batch_of(halves[0], texts[:7]), batch_of(halves[1], texts[7:])]
    counts = ReadingCounts.of(n_labels, batches)
    readings = [
        (i, random_spans(rng, len(texts[i]), n_labels)) for i in range(12) for _ in range(3)
    ]
    features = counts.features(*batch_of(readings, texts))
    assert features.shape == (36, N_FEATURES)
    known = list(zip(texts, annotated))
    for row, (number, (i, spans)) in zip(features, enumerate(readings)):
        expected = plain_features(known, -(number + 1.0), texts[i], spans, n_labels)
        assert row == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_weights_are_those_of_the_smallest_loss():
    rng = np.random.default_rng(1)
    features, offsets = rng.normal(size=(24, 4)), np.array([0, 5, 6, 14, 24])
    features[:, 3] = 2.0  # says nothing
    right = np.zeros(24, dtype=bool)
    right[[2, 8]] = True  # the other texts have no right reading

    def loss(weights):
        total, apart = 0.0, []
        for first, last, best in ((0, 5, 2), (6, 14, 8)):
            scores = features[first:last] @ weights
            total += np.logaddexp.reduce(scores) - scores[best - first]
            apart.append(features[first:last] - features[first])
        scale = np.concatenate(apart).std(axis=0)
        scale[3] = 1.0
        return total + 0.5 * (((weights - [1, 0, 0, 0]) * scale) ** 2).sum()

    found_weights = best_weights(features, right, offsets, 1.0)
    for step in np.eye(4) * 1e-3:
        assert loss(found_weights) < min(loss(found_weights + step), loss(found_weights - step))
    assert found_weights[3] == pytest.approx(0, abs=1e-9)


def reranked(name, seed=0, n=5, **settings):
    """A component by chance: of its model, and of what it looks for."""
    nlp = like_shared(name, decoder={**RERANKED, "n": n}, **settings)
    pipe = nlp.get_pipe("hocrf")
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=pipe.model.get_param("W").shape)
    pipe.model.set_param("W", (0.5 * weights).astype(np.float32))
    data = examples(nlp)
    number = {label: y for y, label in enumerate(pipe.labels)}
    texts = [[token.norm for token in each.reference] for each in data]
    rows = [
        [(ent.start, ent.end, number[ent.label_]) for ent in each.reference.ents] for each in data
    ]
    counts = ReadingCounts.of(len(pipe.labels), [batch_of(list(enumerate(rows)), texts)])
    decoder_of(pipe).adopt(Reranker(counts, rng.normal(size=N_FEATURES), "NORM", 10))
    return nlp, pipe, list(zip(texts, rows))


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"constraints": {"at_most": {"PERSON": 1}}}])
@pytest.mark.parametrize("name", SPANS)
def test_the_reading_that_is_shown_is_the_best_of_the_most_probable_ones(name, settings):
    if settings:
        settings = {
            "constraints": {"@misc": "spacy-hocrf.Constraints.v1", **settings["constraints"]}
        }
    nlp, pipe, annotated = reranked(name, **settings)
    docs = [nlp.make_doc(text) for text in TEXTS]
    reranker, moved = decoder_of(pipe).learnt, 0
    pipe.acceptance = Acceptance(0.9, 0.9, 0.5, 10, 5)  # asks how probable it is that all is right
    shown = pipe.predict(docs)
    for doc, reading, prediction in zip(docs, pipe.readings(docs), shown):
        best = reading.best(5)
        number = {label: y for y, label in enumerate(pipe.labels)}
        rows = [[(i, j, number[label]) for i, j, label in each.spans] for each in best]
        text = [token.norm for token in doc]
        features = [
            plain_features(annotated, each.log_probability, text, spans, len(pipe.labels))
            for each, spans in zip(best, rows)
        ]
        scores, _ = scored_as_wholes(np.array(features), reranker.weights)
        chances = np.exp(scores - np.logaddexp.reduce(scores)) * sum(e.probability for e in best)
        chosen = int(scores.argmax())
        assert [tuple(span) for span in prediction.spans] == list(best[chosen].spans)
        assert prediction.text_probability == pytest.approx(chances[chosen], rel=1e-9)
        assert prediction.scores == pytest.approx(reading.probabilities(prediction.spans), rel=1e-9)
        moved += chosen > 0
    assert moved


@pytest.mark.parametrize("n", [1, 101, 2.5, True])
def test_another_number_of_readings_is_an_error(n):
    with pytest.raises(ValueError, match="H580"):
        untrained(decoder={**RERANKED, "n": n})


# As a component learns and keeps it


def learnt(rows=None, **settings):
    nlp = untrained(decoder=RERANKED, model={"order": 1}, **settings)
    data = teach(nlp, rows or one_of_two())
    return nlp, data


@pytest.mark.slow
def test_it_learns_that_a_text_has_one_person():
    nlp, _ = learnt()
    pipe = nlp.get_pipe("hocrf")
    new = [text for text, _ in one_of_two(60, seed=4)]
    reranker = decoder_of(pipe).learnt
    assert reranker.attribute == "NORM" and reranker.texts == 48
    with_it = [len(doc.ents) for doc in nlp.pipe(new)]
    decoder_of(pipe).adopt(None)
    without = [len(doc.ents) for doc in nlp.pipe(new)]
    assert with_it.count(1) == 60 > without.count(1)


@pytest.mark.slow
def test_it_is_kept_with_the_model_and_said_in_the_log(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(spacy.util.logger, "propagate", True)
    with caplog.at_level(logging.INFO, logger="spacy"):
        nlp, data = learnt()
    assert "reranker learnt from 48 held-out texts" in caplog.text
    nlp.to_disk(tmp_path)
    for other in (spacy.load(tmp_path), pickle.loads(pickle.dumps(nlp))):
        mine, theirs = (decoder_of(each.get_pipe("hocrf")).learnt for each in (nlp, other))
        assert theirs.weights.tolist() == mine.weights.tolist()
        for example in data:
            text = example.reference.text
            assert found(other(text)) == found(nlp(text))


@pytest.mark.slow
def test_what_was_learnt_for_another_decoder_is_left_aside(tmp_path):
    nlp, _ = learnt()
    nlp.to_disk(tmp_path)
    decoder = {"@misc": "spacy-hocrf.Viterbi.v1"}
    other = spacy.load(tmp_path, config={"components": {"hocrf": {"decoder": decoder}}})
    assert found(other("April then Will 1")) is not None


@pytest.mark.slow
def test_a_label_that_is_added_later_is_not_looked_at():
    nlp, _ = learnt()
    pipe = nlp.get_pipe("hocrf")
    pipe.add_label("PLACE")
    texts = [text for text, _ in one_of_two(20, seed=4)]
    best = [reading.best(1)[0].spans for reading in pipe.readings(map(nlp.make_doc, texts))]
    shown = [tuple((e.start, e.end, e.label_) for e in doc.ents) for doc in nlp.pipe(texts)]
    assert shown == best


@pytest.mark.slow
def test_who_teaches_a_new_label_is_told_that_nothing_is_reranked():
    nlp, data = learnt()
    pipe = nlp.get_pipe("hocrf")
    pipe.extend(data[:5])
    more = examples(nlp, [("Ada in April", [(0, 3, "PERSON"), (7, 12, "MONTH")])])
    with pytest.warns(UserWarning, match="W055.*'hocrf'.*MONTH"):
        pipe.extend(more)


@pytest.mark.slow
def test_texts_are_looked_at_by_models_and_counts_of_others(monkeypatch):
    counted, looked = [], []
    annotated, probable = reranking._annotated, reranking.held_out_readings

    def count(model, documents, attribute):
        counted.append({document.text for document in documents})
        return annotated(model, documents, attribute)

    def look(model, learnt, held, decoder):
        texts = {document.text for document in held}
        assert not texts & {document.text for document in model.corpus.documents}
        looked.append(texts)
        readings = probable(model, learnt, held, decoder)
        assert counted[-1] and not texts & counted[-1]
        return readings

    monkeypatch.setattr(reranking, "_annotated", count)
    monkeypatch.setattr(reranking, "held_out_readings", look)
    learnt()
    everything = {text for text, _ in one_of_two()}
    assert set.union(*looked) == everything == counted[-1] and sum(map(len, looked)) == 48


@pytest.mark.slow
def test_texts_are_looked_at_alike_in_batches_of_any_size(monkeypatch):
    nlp, _ = learnt()
    learner = learner_of(nlp.get_pipe("hocrf"))
    documents = learner.corpus.documents
    parts = learner, documents[:24], documents[24:], Reranked()
    whole = reranking.held_out_readings(*parts)
    monkeypatch.setattr("spacy_hocrf.learning.corpus.BATCH_TOKENS", 9)
    cut = reranking.held_out_readings(*parts)
    assert whole.right.any() and len(whole.offsets) == 25
    for one, other in zip((*whole[1:], *whole[0][1:]), (*cut[1:], *cut[0][1:])):
        assert np.array_equal(one, other)
    assert all(map(np.array_equal, whole.readings.spans, cut.readings.spans))


@pytest.mark.slow
def test_texts_that_are_annotated_in_part_are_not_counted(monkeypatch):
    counted, annotated = [], reranking._annotated

    def count(model, documents, attribute):
        counted.append([document.text for document in documents])
        return annotated(model, documents, attribute)

    nlp = untrained(decoder=RERANKED, model={"order": 1})
    data = examples(nlp, one_of_two())
    partly = data[0].reference
    partly.set_ents([*partly.ents], missing=[partly[-1:]])
    learn_from(nlp, data)
    learner = learner_of(nlp.get_pipe("hocrf"))
    documents = learner.corpus.documents
    monkeypatch.setattr(reranking, "_annotated", count)
    reranking.held_out_readings(learner, documents[:24], documents[24:], Reranked())
    assert counted == [[example.reference.text for example in data[1:24]]]


@pytest.mark.slow
def test_another_temperature_leaves_the_choice_as_it_is():
    nlp, _ = learnt()
    pipe = nlp.get_pipe("hocrf")
    texts = [text for text, _ in one_of_two(40, seed=4)]
    before, weights = [found(doc) for doc in nlp.pipe(texts)], decoder_of(pipe).learnt.weights
    temperature = pipe.temper(examples(nlp, one_of_two(30, seed=5)))
    assert decoder_of(pipe).learnt.weights.tolist() == [temperature * weights[0], *weights[1:]]
    assert [found(doc) for doc in nlp.pipe(texts)] == before


@pytest.mark.slow
def test_the_command_changes_the_temperature_once():
    nlp, _ = learnt()
    pipe, gold = nlp.get_pipe("hocrf"), [each.reference for each in examples(nlp, one_of_two(30))]
    weights = decoder_of(pipe).learnt.weights
    temperature = temper(nlp, gold).temperature
    assert temperature == pipe.choice.temperature and temperature != 1
    assert decoder_of(pipe).learnt.weights.tolist() == [temperature * weights[0], *weights[1:]]


@pytest.mark.slow
def test_segmentations_are_looked_at_where_no_reading_has_a_known_probability(monkeypatch):
    """As with so much white space that there are too many segmentations to sum over (H201)."""
    nlp, _ = learnt()
    texts = [text for text, _ in one_of_two(20, seed=4)]
    before = [found(doc) for doc in nlp.pipe(texts)]
    monkeypatch.setattr(Alternatives, "best", lambda *_: ())
    assert [found(doc) for doc in nlp.pipe(texts)] == before


@pytest.mark.slow
def test_too_few_texts_teach_nothing(caplog, monkeypatch):
    monkeypatch.setattr(spacy.util.logger, "propagate", True)
    with caplog.at_level(logging.INFO, logger="spacy"):
        nlp, _ = learnt(one_of_two(8))
    assert decoder_of(nlp.get_pipe("hocrf")).learnt is None
    assert "readings are not reranked, since too few texts" in caplog.text


@pytest.mark.slow
def test_features_that_read_no_words_will_do():
    shape = {"@misc": "spacy-hocrf.Token.v1", "attrs": ["SHAPE"]}
    features = {"@misc": "spacy-hocrf.Features.v1", "*": {"shape": shape}}
    nlp = trained(decoder=RERANKED, model={"order": 1, "features": features}, rows=one_of_two())
    assert decoder_of(nlp.get_pipe("hocrf")).learnt.attribute == "SHAPE"


@pytest.fixture(scope="module")
def nlp():
    return learnt()[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("weights", np.zeros(3)),
        ("weights", np.full(N_FEATURES, np.nan)),
        ("labels", np.zeros(1)),
        ("keys", np.zeros(2, dtype=np.uint64)),
        ("numbers", np.zeros(1, dtype=np.int64)),
    ],
)
def test_a_damaged_section_is_an_error(nlp, name, value):
    decoder, scheme = decoder_of(nlp.get_pipe("hocrf")), nlp.get_pipe("hocrf").structure.scheme
    section = decoder.saved()
    kept = decoder.checked(section, scheme)
    assert kept.weights.tolist() == decoder.learnt.weights.tolist()
    with pytest.raises(ValueError, match=f"H039.*{name}"):
        decoder.checked(section._replace(arrays={**section.arrays, name: value}), scheme)
    with pytest.raises(ValueError, match="H134"):
        decoder.checked(section._replace(header={**section.header, "texts": "x"}), scheme)
