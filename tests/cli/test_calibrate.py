"""`python -m spacy hocrf calibrate`, against loops, exact binomials and simulated texts."""

import json
from math import comb

import commands
import numpy as np
import pytest
import spacy
from numpy.testing import assert_allclose
from small_corpus import bare_docs, examples, teach
from spacy.tokens import DocBin

from spacy_hocrf.annotation.groups import set_group
from spacy_hocrf.cli import calibrate as module
from spacy_hocrf.cli.accept import binomial
from spacy_hocrf.cli.calibrate import (
    MIN_PROBABILITY,
    Calibration,
    calibrate,
    calibration_of,
    threshold_for,
)
from spacy_hocrf.cli.pipelines import group_numbers

TRAINER = {"@misc": "spacy-hocrf.LBFGS.v1", "sigma": 1.0, "threads": 1}


def calibration(probability, right, annotated, text=None):
    m = len(annotated)
    return Calibration(
        np.array(["A", "B"])[np.arange(len(probability)) % 2],
        np.array(probability, dtype=np.float64),
        np.array(right, dtype=bool),
        np.array(["A", "B"])[np.arange(m) % 2],
        np.array(annotated, dtype=np.float64),
        np.arange(m) if text is None else np.array(text),
    )


@pytest.fixture(scope="module")
def nlp():
    nlp = spacy.blank("en")
    nlp.add_pipe("hocrf", config={"trainer": TRAINER, "model": {"order": 1}})
    teach(nlp, steps=2)
    return nlp


@pytest.fixture(scope="module")
def gold(nlp):
    return [example.reference for example in examples(nlp)]


def test_errors_of_probabilities_are_those_of_bins():
    rng = np.random.default_rng(0)
    p = rng.uniform(MIN_PROBABILITY, 1.0, 500)
    p[:3] = MIN_PROBABILITY, 0.1, 1.0
    right = rng.random(500) < p**2
    found, error = calibration(p, right, []), 0.0
    for low, high in [(MIN_PROBABILITY, 0.1), *((i / 10, (i + 1) / 10) for i in range(1, 10))]:
        mine = (p >= low) & ((p < high) | (high == 1.0))
        error += mine.sum() * abs(right[mine].mean() - p[mine].mean()) / 500
    assert sum(row["spans"] for row in found.bins()) == 500
    reliability = found.reliability()
    assert reliability.ece == pytest.approx(error)
    assert reliability.brier == pytest.approx(((p - right) ** 2).mean())
    assert found.of("A").reliability().spans == 250
    assert calibration([], [], []).reliability() == module.Reliability(0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize("n, p", [(0, 0.5), (1, 0.1), (7, 0.05), (60, 0.3)])
def test_binomials_are_exact(n, p):
    expected = [comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
    assert_allclose(binomial(n, p, n), expected, rtol=1e-12)


@pytest.mark.parametrize("alike", [1, 5])
def test_the_recall_is_reached_in_new_texts_as_often_as_was_said(alike):
    """alike: spans of one text, which have one probability."""
    rng, reached, tries = np.random.default_rng(alike), 0, 300
    for _ in range(tries):
        seen, new = rng.beta(2, 1, (2, 120)).repeat(alike, axis=1)
        text = np.arange(120).repeat(alike)
        threshold = threshold_for(calibration([], [], seen, text), 0.9, 0.8).threshold
        reached += (new >= threshold).mean() >= 0.9
    assert reached >= tries * 0.8 - 3 * np.sqrt(tries * 0.8 * 0.2)


def test_spans_that_are_alike_count_as_fewer():
    p = np.random.default_rng(0).random(60)
    apart = threshold_for(calibration([], [], p.repeat(5)), 0.9, 0.9)
    together = threshold_for(calibration([], [], p.repeat(5), np.arange(60).repeat(5)), 0.9, 0.9)
    assert together.threshold < apart.threshold
    assert together.reached == (p >= together.threshold).mean()


@pytest.mark.parametrize(
    "p, expected",
    [(0.123456, 0.1234), (0.99999, 0.9999), (1.0, 1.0), (3.45678e-7, 3.456e-7), (0.0, 0)],
)
def test_thresholds_are_rounded_down(p, expected):
    assert module._rounded_down(p) == expected


def test_spans_that_the_model_cannot_have_are_in_the_way_of_a_recall():
    p = np.random.default_rng(0).random(200)
    p[:40] = 0.0
    assert threshold_for(calibration([], [], p), 0.7, 0.5).threshold > 0
    with pytest.raises(ValueError, match=r"H209.*0\.9.*200.*40.*max_length"):
        threshold_for(calibration([], [], p), 0.9, 0.5)


def test_spans_are_those_of_readings_right_where_they_are_annotated(nlp, gold):
    found, rows, annotated = calibrate(nlp, gold), [], []
    pipe = nlp.get_pipe("hocrf")
    for number, (doc, bare) in enumerate(zip(gold, bare_docs(nlp, gold))):
        reading = pipe.reading(bare)
        ents = {(ent.start, ent.end, ent.label_) for ent in doc.ents}
        unknown = doc.to_array("ENT_IOB") == 0
        for span in reading.spans(MIN_PROBABILITY):
            if not unknown[span.start : span.end].any():
                rows.append((span.label, span.probability, span[:3] in ents))
        annotated += [(label, reading.probability(a, b, label), number) for a, b, label in ents]
    assert any(right for _, _, right in rows) and not all(right for _, _, right in rows)
    assert list(zip(found.label.tolist(), found.right.tolist())) == [(r[0], r[2]) for r in rows]
    assert_allclose(found.probability, [p for _, p, _ in rows], atol=1e-12)
    found_too = zip(found.annotated_label, found.annotated.round(9), found.text)
    assert sorted(map(str, found_too)) == sorted(
        map(
            str,
            ((np.str_(label), np.float64(p).round(9), np.int64(i)) for label, p, i in annotated),
        )
    )


def test_texts_of_a_group_count_as_one(nlp, gold):
    pipe = nlp.get_pipe("hocrf")
    for i, doc in enumerate(gold):
        set_group(doc, i % 3 if i % 2 else None)
    readings = pipe.readings(bare_docs(nlp, gold))
    found = calibration_of(gold, readings, pipe.target, "hocrf_group")
    numbers = group_numbers(gold, "hocrf_group").tolist()
    assert numbers[:8] == [0, 1, 2, 3, 4, 5, 6, 1]
    assert found.text.max() <= max(numbers) < len(gold) - 1
    assert group_numbers(gold, None).tolist() == [*range(len(gold))]


def test_nothing_is_counted_where_nothing_is_known(nlp, gold):
    doc = next(doc for doc in gold if doc.ents).copy()
    all_of_it = calibrate(nlp, [doc])
    doc.set_ents([doc.ents[0]], default="missing")
    known = calibrate(nlp, [doc])
    assert len(known.annotated) == 1
    assert len(known.right) < len(all_of_it.right)
    assert known.right.sum() <= 1


def test_a_label_that_the_model_has_not_is_never_found(nlp, gold):
    doc = next(doc for doc in gold if doc.ents).copy()
    doc.ents = [spacy.tokens.Span(doc, 0, 1, label="NOBODY")]
    found = calibrate(nlp, [doc])
    assert found.annotated.tolist() == [0.0]
    assert not found.right.any()


def test_the_command_prints_and_writes_all(nlp, gold, tmp_path):
    nlp.to_disk(tmp_path / "model")
    DocBin(docs=gold).to_disk(tmp_path / "gold.spacy")
    output = tmp_path / "found.json"
    arguments = ["calibrate", str(tmp_path / "model"), str(tmp_path / "gold.spacy")]
    done = commands.run(*arguments, "--recall", "0.3", "--confidence", "0.6", "-o", output)
    written = json.loads(output.read_text(encoding="utf8"))
    assert written["labels"]["all"]["annotated"] == sum(len(doc.ents) for doc in gold)
    assert set(written["labels"]) == {"all", *(e.label_ for doc in gold for e in doc.ents)}
    assert f"{written['threshold']['threshold']:.4g}" in done
    assert "30.0 %" in done and "60.0 %" in done
    pipe, threshold = nlp.get_pipe("hocrf"), written["threshold"]["threshold"]
    readings = pipe.readings(bare_docs(nlp, gold))
    assert written["threshold"]["spans"] == sum(len(r.spans(threshold)) for r in readings)
    plain = commands.run(*arguments)
    assert "threshold" not in plain


@pytest.mark.parametrize(
    "options, named",
    [
        (("--confidence", "0.9"), "--confidence"),
        (("--recall", "0.5", "--into", "out"), "--into"),
        (("--by", "kind"), "--by"),
    ],
)
def test_options_without_the_one_that_they_belong_to_are_refused(
    nlp, gold, tmp_path, monkeypatch, options, named
):
    monkeypatch.chdir(tmp_path)
    nlp.to_disk("model")
    DocBin(docs=gold).to_disk("gold.spacy")
    done = commands.run("calibrate", "model", "gold.spacy", *options, code=1)
    assert f"[H576] {named} " in done and "--accept" in done
    assert not (tmp_path / "out").exists()


def test_tags_are_refused():
    nlp = spacy.blank("en")
    nlp.add_pipe("hocrf_tagger")
    with pytest.raises(ValueError, match=r"H206.*token.tag"):
        calibrate(nlp, [])
