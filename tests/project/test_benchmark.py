"""The benchmark project in its small setting: is what it compares the same, is every bar in its
table? No time is asserted.
"""

import importlib
import importlib.util
import math
import subprocess
import sys
from itertools import pairwise, product
from pathlib import Path

import pytest
import srsly
from project_checks import table_rows

PROJECT = Path(__file__).parents[2] / "project" / "benchmark"
SCRIPTS = PROJECT / "scripts"
LOADS = ("benchmark",)
PEERS = ("pycrfsuite", "scipy")
PLOTS = ("systems", "results")

pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in PEERS),
    reason='needs its peers: pip install "spacy-hocrf[benchmark]"',
)


@pytest.fixture(scope="module")
def corpora(load):
    return load("corpora").Corpora(Path("nowhere"), small=True)


@pytest.fixture(scope="module")
def peer(load, corpora, tmp_path_factory):
    """CRFsuite after three iterations on the small corpus, with our observations and sigma 1."""
    models, compare = load("models"), load("compare")
    sentences = corpora.chunks()
    nlp = models.crf(sentences, 1)
    observed = models.observation_strings(models.component(nlp), compare.fresh_docs(nlp, sentences))
    labels = [labels for _, labels in sentences]
    return load("peers").train_crfsuite(
        observed, labels, 3, tmp_path_factory.mktemp("crfsuite") / "model"
    )


@pytest.mark.parametrize("order", [1, 2, 3])
def test_objective_is_crfsuites_at_its_weights(load, corpora, peer, order):
    nlp = load("models").crf(corpora.chunks(), order)
    assert "parameters on both sides" in load("checks").agree_with_crfsuite(nlp, peer)


@pytest.mark.parametrize("sigma", [0.999, 1.001])
def test_another_sigma_is_another_objective(load, corpora, peer, sigma):
    nlp = load("models").crf(corpora.chunks(), 1, sigma=sigma)
    with pytest.raises(load("checks").NotTheSame, match="loss"):
        load("checks").agree_with_crfsuite(nlp, peer)


def test_other_features_are_not_the_same_problem(load, corpora, peer):
    nlp = load("models").crf(corpora.chunks(), 1, unseen=True)
    with pytest.raises(load("checks").NotTheSame, match="features"):
        load("checks").agree_with_crfsuite(nlp, peer)


def test_another_length_has_another_number_of_segmentations(load, corpora):
    sentences = corpora.references()
    lengths = [len(words) for words, _ in sentences]
    nlp = load("models").semi_crf(sentences, 2)
    assert "slope" in load("checks").agree_with_count(nlp, lengths)
    with pytest.raises(load("checks").NotTheSame, match="segmentations"):
        load("checks").agree_with_count(nlp, [*lengths[:-1], lengths[-1] + 1])


@pytest.mark.parametrize(
    "limits, forbidden",
    [((1, 1), ()), ((2, 0), ()), ((3, 1), ((0, 0), (1, 1))), ((0, 2), ((1, 0),))],
)
def test_count_of_segmentations_is_that_of_enumeration(load, limits, forbidden):
    length = 5
    found = load("checks").log_segmentations([length], limits, forbidden)
    assert math.exp(found[0]) == pytest.approx(count_by_enumeration(length, limits, forbidden))


def count_by_enumeration(length, limits, forbidden):
    count = 0
    for cuts in product([False, True], repeat=length - 1):
        ends = [i + 1 for i, cut in enumerate(cuts) if cut] + [length]
        sizes = [end - start for start, end in zip([0, *ends], ends)]
        for labels in product(range(len(limits)), repeat=len(sizes)):
            fits = all(size <= (limits[y] or length) for size, y in zip(sizes, labels))
            count += fits and not any(pair in forbidden for pair in pairwise(labels))
    return count


def test_crfsuite_stops_after_each_iteration_and_counts_its_evaluations(load, corpora):
    models, compare, peers = load("models"), load("compare"), load("peers")
    sentences = corpora.chunks()
    nlp = models.crf(sentences, 1)
    observed = models.observation_strings(models.component(nlp), compare.fresh_docs(nlp, sentences))
    training = peers.CRFsuiteTraining(observed, [labels for _, labels in sentences])
    assert (training.evaluations, training.losses) == (0, [])
    assert training.step(1) >= 2  # one at the start
    assert training.step(4) >= 4
    assert len(training.losses) == 5
    assert training.losses == sorted(training.losses, reverse=True)
    training.close()
    assert training.step(1) == 0


def test_a_users_features_are_as_many_as_our_observations(load, corpora):
    models, bars = load("models"), load("default_bars")
    sentences = corpora.chunks()
    nlp = models.default(sentences, 0)
    assert "observations a token" in bars.agree_in_observations(nlp, sentences)
    fewer = models.default(
        sentences, 0, model={"features": {"@misc": "spacy-hocrf.Window.v1", "bigrams": []}}
    )
    with pytest.raises(load("checks").NotTheSame, match="observations a token"):
        bars.agree_in_observations(fewer, sentences)


def test_punctuation_labels_are_those_of_the_released_code(load):
    labels = "O O . . O , O O ? O".split()
    assert load("corpora").mark_first_words(labels) == "O-. O . .-. O-, , O-? O ? O".split()


def test_f1_counts_spans_with_their_labels(load):
    gold = [(["a", "b", "c"], ["B-x", "I-x", "B-y"]), (["d"], ["O"])]
    found = [[(0, 2, "x"), (2, 3, "x")], [(0, 1, "y")]]
    assert load("quality_bars").f1(found, gold) == pytest.approx(100 * 2 / 5)


@pytest.fixture(scope="module")
def small_run(tmp_path_factory):
    """Everything once, as `spacy project run small` does."""
    work = tmp_path_factory.mktemp("small")
    run(["run.py", "--small", "--work", str(work)])
    run(["report.py", str(work), str(work / "results.md")])
    return work


def run(arguments):
    done = subprocess.run(
        [sys.executable, str(SCRIPTS / arguments[0]), *arguments[1:]],
        capture_output=True,
        text=True,
        encoding="utf8",
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_small_run_has_every_bar_in_its_table_and_draws_its_plots(small_run):
    text = (small_run / "results.md").read_text(encoding="utf8")
    rows = table_rows(text)
    bars = [row for row in rows if row[0].isdigit()]
    assert {row[0] for row in bars} == {str(number) for number in range(1, 17)}
    assert not any("failed" in row[1] for row in bars)
    # all that must be something have been measured, or say why not
    measured = [row[4] for row in bars if row[5]]
    assert all(cell.startswith("not measured:") or float(cell.split()[0]) > 0 for cell in measured)
    assert (
        "Small setting" in text
        and all(f"({name}.png)" in text for name in PLOTS)
        and "CPU" in dict(row for row in rows if len(row) == 2)
    )
    for name in PLOTS:
        assert (small_run / f"{name}.png").read_bytes().startswith(b"\x89PNG\r\n")


def test_small_run_has_checked_every_comparison_with_crfsuite(small_run):
    for bar in (1, 2, 3, 4, 5, 6, 9):
        # one for each instruction set where a bar asks for them
        paths = list(small_run.glob(f"bar-{bar}[.-]*"))
        assert paths, bar
        for path in paths:
            assert any(
                "parameters on both sides" in check for check in srsly.read_json(path)["checks"]
            ), path.name


def test_a_bar_that_fails_is_in_the_table(load, tmp_path, check_plot):
    report = load("report")
    result = {"bar": "3", "small": True, "error": "NotTheSame: the loss is another"}
    (tmp_path / "bar-3.json").write_text(srsly.json_dumps(result))
    with pytest.raises(SystemExit):
        report.main(tmp_path, tmp_path / "results.md")
    check_plot(tmp_path / "results.png")
    assert "| 3 | failed: NotTheSame: the loss is another |" in (tmp_path / "results.md").read_text(
        encoding="utf8"
    )
