"""`hocrf calibrate --accept`: the promise, by loops, exact binomials and simulated texts; and the command."""

import json
from functools import partial
from math import comb

import commands
import numpy as np
import pytest
import spacy
from numpy.testing import assert_allclose
from pytest import approx
from small_corpus import ambiguous, examples, teach, trained, untrained
from spacy.tokens import Doc, DocBin, Span

from spacy_hocrf.annotation.acceptance import Acceptance
from spacy_hocrf.annotation.identity import set_identity
from spacy_hocrf.cli.accept import (
    WholeTexts,
    accept,
    calibration_errors,
    correction,
    least_texts,
    step,
    threshold_of,
    whole_texts,
)


def made(probability, right, group=None):
    n = len(probability)
    groups = [""] * n if group is None else group
    return WholeTexts(
        np.array(probability, dtype=float), np.array(right, dtype=bool), np.array(groups)
    )


def drawn(rng, n):
    """Texts whose probability is too high by half of what is missing."""
    p = rng.beta(2, 1, n)
    return made(1 - (1 - p) / 2, rng.random(n) < p)


def at_most(k, n, p):
    return sum(comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k + 1))


@pytest.mark.parametrize("level, confidence", [(0.95, 0.9), (0.8, 0.9), (0.9, 0.5)])
def test_steps_are_the_smallest_samples_in_which_so_many_may_be_wrong(level, confidence):
    for allowed in range(6):
        n = step(allowed, level, confidence)
        assert at_most(allowed, n, 1 - level) <= 1 - confidence + 1e-12
        assert at_most(allowed, n - 1, 1 - level) > 1 - confidence
        assert allowed or n == least_texts(level, confidence)


def test_tests_end_with_the_first_that_does_not_reject():
    sure = np.linspace(0.99, 0.5, 60)
    right = np.ones(60, dtype=bool)
    first, second, third = (step(allowed, 0.8, 0.8) for allowed in range(3))
    assert threshold_of(made(sure, right), 0.8, 0.8) == approx(sure[59], abs=1e-9)
    right[[0, first]] = False
    with pytest.raises(ValueError, match=rf"H502.*{first} surest texts 1 are"):
        threshold_of(made(sure, right), 0.8, 0.8)
    right[:] = True
    right[[first, first + 1]] = False  # two among the second step, where one may be
    assert threshold_of(made(sure, right), 0.8, 0.8) == approx(sure[first - 1], abs=1e-9)
    assert third < 60 and first < second
    shuffled = np.random.default_rng(0).permutation(60)
    assert threshold_of(made(sure[shuffled], right[shuffled]), 0.8, 0.8) == approx(
        sure[first - 1], abs=1e-9
    )


def max_step(n):
    last = 0
    for allowed in range(n):
        if step(allowed, 0.8, 0.8) > n:
            return last
        last = step(allowed, 0.8, 0.8)


def test_the_last_test_is_of_all_texts_with_as_many_wrong_as_in_the_step_before():
    n, sure = 60, np.linspace(0.99, 0.5, 60)
    last = max_step(n)
    allowed = next(c for c in range(n) if step(c, 0.8, 0.8) == last)
    assert last < n and at_most(allowed, n, 0.2) <= 0.2
    right = np.ones(n, dtype=bool)
    right[n - allowed :] = False
    assert threshold_of(made(sure, right), 0.8, 0.8) == approx(sure[n - 1], abs=1e-9)
    right[n - allowed - 1] = False  # one too many of all, not of those before
    assert threshold_of(made(sure, right), 0.8, 0.8) == approx(sure[last - 1], abs=1e-9)
    assert threshold_of(made(sure[:30], right[:30]), 0.9, 0.9) == approx(sure[29], abs=1e-9)


@pytest.mark.parametrize("level, confidence", [(0.9, 0.9), (0.8, 0.7)])
def test_the_promise_is_broken_as_seldom_as_was_said(level, confidence):
    """What is promised is about all texts to come, of which 200,000 are drawn."""
    rng, tries, broken, some = np.random.default_rng(1), 300, 0, 0
    coming = drawn(rng, 200_000)
    for _ in range(tries):
        try:
            threshold = threshold_of(drawn(rng, 300), level, confidence)
        except ValueError:
            continue
        some += 1
        broken += coming.right[coming.probability >= threshold].mean() < level
    expected = (1 - confidence) * tries
    assert some > tries / 2 and broken <= expected + 3 * np.sqrt(expected * confidence)
    assert broken >= expected / 4  # it is no idle promise


def test_texts_as_sure_as_one_another_are_tested_together():
    """In whatever order they are in the file: the threshold accepts all of them or none."""
    right = np.arange(208) < 8
    for order in (right, right[::-1]):
        with pytest.raises(ValueError, match=r"H502.*of the 208 surest texts 200 "):
            threshold_of(made(np.full(208, 0.9), order), 0.8, 0.8)
    sure = np.append(
        np.linspace(0.99, 0.95, 60), np.full(200, 0.9)
    )  # of the latter, half are right
    right = np.arange(260) < 160
    assert 0.95 <= threshold_of(made(sure, right), 0.8, 0.8) < 0.96
    assert threshold_of(made(sure[::-1], right[::-1]), 0.4, 0.8) == approx(0.9)


def test_groups_have_thresholds_of_their_own():
    rng = np.random.default_rng(0)
    good, bad = drawn(rng, 800), made(rng.random(400), np.zeros(400))
    few = made([0.9] * 5, [True] * 5)
    parts = {"good": good, "bad": bad, "few": few}
    together = made(
        np.concatenate([each.probability for each in parts.values()]),
        np.concatenate([each.right for each in parts.values()]),
        np.repeat([*parts], [len(each.right) for each in parts.values()]),
    )
    found, why = accept(together, 0.9, 0.9, "source")
    assert found.groups == {"good": threshold_of(good, 0.9, 0.9)} and found.threshold is None
    assert found.by == "source" and found.texts == 1205
    assert found.accepted == (good.probability >= found.groups["good"]).sum()
    assert why["bad"].startswith("[H502]") and why["few"].startswith("[H501]")
    assert "There are 5 texts" in why["few"] and str(least_texts(0.9, 0.9)) in why["few"]
    assert threshold_of(made([1.0] * 60, [True] * 60), 0.9, 0.9) == 1.0
    with pytest.raises(ValueError, match="H501"):
        accept(few, 0.9, 0.9)
    with pytest.raises(ValueError, match="H501"):
        accept(made([], []), 0.9, 0.9)
    with pytest.raises(ValueError, match="H207"):
        accept(good, 1.0, 0.9)


def test_probabilities_are_corrected_by_the_texts():
    rng = np.random.default_rng(5)
    seen, new = drawn(rng, 2000), drawn(rng, 5000)
    found, _ = accept(seen, 0.8, 0.9)
    honest = np.array([found.calibrated(p) for p in new.probability.tolist()])
    after = made(honest, new.right)
    assert new.errors.ece > 0.12 and after.errors.ece < 0.03
    z = np.log(seen.probability / (1 - seen.probability))

    def loss(slope, intercept):
        chance = 1 / (1 + np.exp(-slope * z - intercept))
        likelihood = np.log(np.where(seen.right, chance, 1 - chance)).sum()
        return -likelihood + (slope - 1) ** 2 / 2 + intercept**2 / 2

    best = loss(found.slope, found.intercept)
    for a, b in ((1e-3, 0), (-1e-3, 0), (0, 1e-3), (0, -1e-3)):
        assert loss(found.slope + a, found.intercept + b) > best
    assert correction(made([], [])) == (1.0, 0.0)
    sure = made(
        np.repeat([1 - 1e-12, 1e-12, 0.9], 60), np.arange(180) % 20 > 0
    )  # Newton's steps diverge
    slope, intercept = correction(sure)
    assert 0 < slope < 1 and abs(intercept) < 5 and sure.corrected().errors.ece < 0.5
    assert correction(made([1.0, 0.0], [True, False]))[0] > 0
    order = np.argsort(new.probability)
    assert (np.diff(honest[order]) >= 0).all()
    assert (found.calibrated(0.0), found.calibrated(1.0)) == (0.0, 1.0)
    assert 0 <= found.calibrated(1e-300) < 1e-9


def test_calibration_errors_of_whole_texts_are_those_of_bins():
    texts = drawn(np.random.default_rng(3), 500)
    error = 0.0
    for low in range(10):
        mine = (texts.probability * 10).astype(int).clip(max=9) == low
        if mine.any():
            error += mine.mean() * abs(texts.right[mine].mean() - texts.probability[mine].mean())
    assert texts.errors.ece == approx(error)


@pytest.mark.parametrize("n, within", [(20, 0.1), (300, 0.03)])
def test_errors_by_chance_are_those_of_probabilities_without_any_error(n, within):
    rng = np.random.default_rng(n)
    chances = rng.beta(3.0, 1.0, n)
    drawn = [calibration_errors(chances, rng.random(n) < chances) for _ in range(2000)]
    mean = np.mean([errors.ece for errors in drawn])
    assert drawn[0].by_chance == approx(mean, rel=within)
    assert calibration_errors(np.ones(3), np.ones(3, dtype=bool)) == (0.0, 0.0)
    assert calibration_errors(np.zeros(0), np.zeros(0, dtype=bool)) == (0.0, 0.0)


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A pipeline, and texts that it has not seen."""
    folder = tmp_path_factory.mktemp("accept")
    nlp = trained("hocrf", {}, rows=ambiguous(36), steps=20)
    nlp.to_disk(folder / "model")
    if not Doc.has_extension("source"):
        Doc.set_extension("source", default=None)
    gold = [example.reference for example in examples(nlp, ambiguous(72))]
    for i, doc in enumerate(gold):
        doc._.source = "ab"[i % 2]
    DocBin(docs=gold, store_user_data=True).to_disk(folder / "gold.spacy")
    return nlp, gold, folder


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


calibrate = partial(commands.run, "calibrate")


def test_texts_are_read_as_the_pipeline_shows_them(work):
    nlp, gold, _ = work
    whole = whole_texts(nlp, gold)
    docs = [nlp(Doc(nlp.vocab, [token.text for token in doc])) for doc in gold]
    same = [
        {(e.start, e.end, e.label) for e in a.ents} == {(e.start, e.end, e.label) for e in b.ents}
        for a, b in zip(docs, gold)
    ]
    assert whole.right.tolist() == same and 0 < sum(same) < len(same)
    logs = [
        reading.log_probability([(e.start, e.end, e.label_) for e in doc.ents])
        for doc, reading in zip(docs, nlp.get_pipe("hocrf").readings(docs))
    ]
    assert_allclose(whole.probability, np.exp(logs), rtol=1e-9)
    assert nlp.get_pipe("hocrf").acceptance is None
    part = gold[0].copy()
    part.set_ents(list(part.ents), default="missing")
    assert len(whole_texts(nlp, [part, gold[1]]).right) == 1


def test_the_command_keeps_the_threshold_with_the_model(work, tmp_path):
    nlp, gold, folder = work
    nlp.to_disk(tmp_path / "model")
    level = round(float(whole_texts(nlp, gold).right.mean()) - 0.15, 2)
    options = ["--accept", level, "--confidence", 0.8, "--output", tmp_path / "found.json"]
    done = calibrate(tmp_path / "model", folder / "gold.spacy", *options)
    written = json.loads((tmp_path / "found.json").read_text(encoding="utf8"))
    loaded = spacy.load(tmp_path / "model")
    kept = loaded.get_pipe("hocrf").acceptance
    assert kept.threshold == written["accepted"]["threshold"] and kept.level == approx(level)
    accepted = [doc._.hocrf_accepted for doc in loaded.pipe([doc.text for doc in gold])]
    assert sum(accepted) == kept.accepted == written["accepted"]["accepted"] > 0
    truths = [{(e.start, e.end, e.label_) for e in doc.ents} for doc in gold]
    readings = loaded.get_pipe("hocrf").readings(loaded.make_doc(doc.text) for doc in gold)
    sets = [[{*each.spans} for each in reading.set(0.9)] for reading in readings]
    assert sum(truth in each for truth, each in zip(truths, sets)) >= 0.9 * 72
    assert len(kept.behind) == 72 and [*kept.behind] == sorted(kept.behind)
    assert f"{kept.accepted:,}, {100 * kept.accepted / 72:.1f} %" in " ".join(done.split())
    assert "other tokens" not in done
    calibrate(
        tmp_path / "model",
        folder / "gold.spacy",
        *options,
        "--into",
        tmp_path / "new",
        "--by",
        "source",
    )
    kept = spacy.load(tmp_path / "new").get_pipe("hocrf").acceptance
    assert kept.by == "source" and {*kept.groups} <= {"a", "b"} and kept.groups
    assert spacy.load(tmp_path / "model").get_pipe("hocrf").acceptance.by is None


def test_texts_unlike_those_of_the_threshold_are_said_unless_they_give_another(work, tmp_path):
    nlp, _, folder = work
    pipe = nlp.get_pipe("hocrf")
    pipe.acceptance = Acceptance(0.5, 0.5, 0.5, 199, 100, sample=(1e-9,) * 199)
    nlp.to_disk(tmp_path / "model")
    pipe.acceptance = None
    for options, warns in (((), True), (("--accept", 0.2, "--confidence", 0.5), False)):
        done = calibrate(tmp_path / "model", folder / "gold.spacy", *options)
        assert ("The promise may not hold" in " ".join(done.split())) is warns


def test_groups_may_be_fields_that_convert_has_kept(work):
    nlp, gold, _ = work
    docs = [nlp.make_doc(doc.text) for doc in gold]
    for doc, annotated in zip(docs, gold):
        doc.set_ents([Span(doc, e.start, e.end, e.label) for e in annotated.ents])
        set_identity(doc, "", {"where": annotated._.source, "list": [1]})
    assert [*whole_texts(nlp, docs, by="where").group] == [doc._.source for doc in gold]
    assert [*whole_texts(nlp, docs, by="list").group] == ["[1]"] * len(docs)


def test_a_group_that_no_text_has_is_an_error(work):
    _, _, folder = work
    done = calibrate(
        folder / "model", folder / "gold.spacy", "--by", "sourec", "--accept", 0.5, code=1
    )
    assert "H252" in done and "sourec" in done


@pytest.mark.parametrize(
    "options, code",
    [
        (["--accept", "1.0"], "H207"),
        (["--accept", "0.99"], "H501"),
        (["--accept", "0.95", "--confidence", "0.9"], "H502"),
    ],
)
def test_what_cannot_be_promised_is_an_error_and_changes_nothing(work, options, code):
    _, _, folder = work
    before = contents(folder / "model")
    done = calibrate(folder / "model", folder / "gold.spacy", *options, code=1)
    assert code in done
    assert contents(folder / "model") == before


def test_spans_that_overlap_have_no_whole_texts(tmp_path):
    nlp = untrained("hocrf_spans", {}, select="all", threshold=0.3)
    data = teach(nlp, steps=5)
    nlp.to_disk(tmp_path / "model")
    DocBin(docs=[example.reference for example in data]).to_disk(tmp_path / "gold.spacy")
    plain = calibrate(tmp_path / "model", tmp_path / "gold.spacy")
    assert "whole" not in plain
    asked = calibrate(tmp_path / "model", tmp_path / "gold.spacy", "--accept", 0.5, code=1)
    assert "H500" in asked


def test_a_package_needs_a_folder_for_the_threshold(work, monkeypatch):
    nlp, _, folder = work
    monkeypatch.setattr("spacy_hocrf.cli.calibrate.load_model", lambda name: nlp)
    done = calibrate("some_package", folder / "gold.spacy", "--accept", 0.5, code=1)
    assert "H503" in done


def test_tokens_that_the_pipeline_does_not_make_are_said(work, tmp_path):
    nlp, gold, _ = work
    docs = [Doc(nlp.vocab, [*(token.text for token in doc), "a-b!"]) for doc in gold]
    for doc, known in zip(docs, gold):
        doc.set_ents([Span(doc, ent.start, ent.end, ent.label_) for ent in known.ents])
    DocBin(docs=docs).to_disk(tmp_path / "gold.spacy")
    nlp.to_disk(tmp_path / "model")
    done = calibrate(tmp_path / "model", tmp_path / "gold.spacy", "--accept", 0.2)
    assert "72 of 72 texts have other tokens" in " ".join(done.split())
