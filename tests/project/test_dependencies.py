"""The project dependencies: logs become windows, windows become grids whose scores are those of
their features.
"""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from project_checks import table_rows

PROJECT = Path(__file__).parents[2] / "project" / "dependencies"
LOADS = ("dependencies",)

pytestmark = pytest.mark.skipif(
    not PROJECT.exists(), reason="project/dependencies is not in this distribution"
)

LOG = """[23:58] <ada> hello
=== max [max@example.org]  has joined #ubuntu
[23:58] <max> anyone here who knows grub?
[23:59] <ada> max: yes, what about grub?
[00:01]  * eve waves
[00:01] <max> it hangs, ada
[00:03] <bo> !paste
"""
LINKS = "0 0 -\n1 1 -\n2 2 -\n2 3 -\n4 4 -\n5 3 -\n5 2 -\n6 1 -\n"


@pytest.fixture(scope="module")
def logs(load):
    return load("logs")


@pytest.fixture(scope="module")
def grid(load):
    return load("grid")


@pytest.fixture(scope="module")
def features(load):
    return load("features")


@pytest.fixture
def windows(logs, tmp_path):
    (tmp_path / "one.ascii.txt").write_text(LOG, encoding="utf8")
    (tmp_path / "one.annotation.txt").write_text(LINKS, encoding="utf8")
    return logs.read_windows(tmp_path, "one", 4)


def test_messages_know_who_wrote_them_and_whom_they_name(logs):
    messages = logs.read_messages(LOG.split("\n"))
    assert [message.line for message in messages] == [0, 2, 3, 4, 5, 6]
    assert [message.author for message in messages] == [0, 1, 0, 2, 1, 3]
    # "ada" is short, and not first
    assert [list(message.mentions) for message in messages] == [[], [], [1], [], [], []]
    assert [message.silence for message in messages] == [10_000, 10_000, 2, 10_000, 3, 10_000]
    kinds = "GREETING QUESTION QUESTION STATEMENT STATEMENT COMMAND"
    assert " ".join(message.kind.name for message in messages) == kinds
    assert "grub" in messages[1].words & messages[2].words and "hello" in messages[0].words
    assert logs.minutes_between(messages[1], messages[4]) == 3, "past midnight"


def test_windows_have_the_links_among_their_messages(windows):
    assert [len(window.messages) for window in windows] == [4, 2]
    first, second = windows
    assert np.argwhere(first.links).tolist() == [[0, 0], [1, 1], [2, 1], [3, 3]]
    assert not second.links.any(), (
        "what they reply to is before the window, or a note of the server"
    )


def test_windows_keep_to_the_annotated_part(logs):
    messages = logs.read_messages(LOG.split("\n"))
    (window,) = logs.cut("", messages, np.array([[3, 2], [5, 3]]), 15)
    assert [message.line for message in window.messages] == [3, 4, 5]
    assert np.argwhere(window.links).tolist() == [[2, 0]], (
        "message 3 replies to one before the annotated part"
    )


@pytest.mark.parametrize("order", [1, 2, 3])
def test_every_value_belongs_to_its_section(features, windows, order):
    layout = features.sections(order)
    assert [section.first for section in layout] == [0, *(section.end for section in layout[:-1])]
    for window in windows:
        observed = features.observe(window, order)
        assert len(observed.values) == len(layout) == order
        factors = (observed.grid.source, *observed.grid.factors)
        for section, values, members in zip(layout, observed.values, factors):
            assert (
                len(values) == len(members)
                and (values >= 0).all()
                and (values < section.n_values).all()
            )
        assert_array_equal(observed.grid.links(observed.gold), window.links)


def test_combinations_tell_all_values_apart(features):
    values, size = features.together(
        (np.array([0, 0, 1, 1]), 2), (np.array([0, 2, 0, 2]), 3), (np.array([1, 1, 1, 0]), 2)
    )
    assert size == 12 and values.tolist() == [1, 5, 7, 10]


def test_latest_is_the_last_message_of_its_author_before_another(features, windows):
    pairs = features.Pairs.of(windows[0])  # ada, max, ada, eve
    assert pairs.latest[3].tolist() == [0, 1, 1, 1]
    assert pairs.latest[2].tolist()[:2] == [1, 1]
    assert pairs.mentions.tolist() == [[0, 0, 0, 0], [0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]]
    assert pairs.named.tolist() == [0, 0, 1, 0]


@pytest.fixture(scope="module")
def models(load):
    return load("models")


@pytest.fixture(scope="module")
def crossvalidate(load):
    return load("crossvalidate")


def every_assignment(n):
    return [np.array(states, dtype=np.int32) for states in product((0, 1), repeat=n)]


@pytest.mark.parametrize("order", [1, 2, 3])
def test_scores_of_assignments_are_those_of_their_features(models, features, windows, order):
    layout = features.sections(order)
    weights = np.random.default_rng(0).normal(size=layout[-1].end)
    task = models.WindowTask(features.observe(windows[0], order), layout, None)
    instance = models.Model(order, weights).instance(task.observed)
    for assignment in every_assignment(10)[::7]:
        numbers, counts = task.counts(assignment)
        assert len(set(numbers.tolist())) == len(numbers)
        assert instance.score(assignment) == pytest.approx(weights[numbers] @ counts, abs=1e-9)


def test_features_of_larger_factors_have_smaller_values(models, features, windows):
    task = models.WindowTask(features.observe(windows[0], 3), features.sections(3), None)
    numbers, counts = task.counts(np.ones(10, dtype=np.int32))
    sizes = [len(values) * values.shape[1] for values in task.observed.values]
    for section, size, value in zip(task.sections, sizes, (1.0, 0.3, 0.1)):
        inside = (numbers >= section.first) & (numbers < section.end)
        assert counts[inside].sum() == pytest.approx(value * size)


@pytest.mark.parametrize("kind", ["naive", "two_slave", "hybrid", "ilp"])
@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("loss_weight", [0.0, 1.0])
def test_decoders_keep_their_promises_on_windows(
    models, features, crossvalidate, windows, order, kind, loss_weight
):
    if kind == "ilp":
        pytest.importorskip("scipy", reason='needs SciPy: pip install "spacy-hocrf[ilp]"')
    layout = features.sections(order)
    decoder = crossvalidate.decoder_of(replace(crossvalidate.DECODERS[kind], max_iterations=200))
    task = models.WindowTask(features.observe(windows[0], order), layout, decoder)
    for seed in range(3):
        weights = np.random.default_rng(seed).normal(size=layout[-1].end)
        instance = models.Model(order, weights).instance(task.observed)
        best = max(instance.score(y) + loss_weight * task.loss(y) for y in every_assignment(10))
        output, score, bound = task.decode(weights, loss_weight)
        assert score == pytest.approx(
            instance.score(output) + loss_weight * task.loss(output), abs=1e-9
        )
        assert bound >= best - 1e-6 and score <= best + 1e-9
        if kind == "ilp" or order == 1:
            assert score == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("kind", ["naive", "two_slave", "hybrid"])
@pytest.mark.parametrize("name", ["local", "2D", "3-wise"])
def test_models_learn_the_links_of_their_training_windows(
    models, crossvalidate, windows, name, kind
):
    decoder = crossvalidate.decoder_of(replace(crossvalidate.DECODERS[kind], max_iterations=200))
    history = []
    model = models.train(windows, models.ORDERS[name], decoder, epochs=30, report=history.append)
    outcome = crossvalidate.decode_all(model, windows, decoder)
    assert history[0].errors > 0 and len(history) == 30
    assert (
        outcome.correct.sum(axis=0).tolist()
        == outcome.predicted.sum(axis=0).tolist()
        == outcome.gold.sum(axis=0).tolist()
        == [4, 1]
    )


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("irc")
    for k in range(6):
        (folder / f"{k}.ascii.txt").write_text(LOG + "[00:04] <ada> bye\n" * k, encoding="utf8")
        (folder / f"{k}.annotation.txt").write_text(LINKS, encoding="utf8")
    return folder


def test_samples_have_windows_of_different_logs_and_depend_on_the_seed(crossvalidate, corpus):
    def drawn(seed):
        sample = crossvalidate.draw(corpus, 4, 2, 2, seed)
        return [[(window.log, window.messages[0].line) for window in log] for log in sample]

    sample = drawn(0)
    assert all(len(set(log)) == 2 and len({name for name, _ in log}) == 1 for log in sample)
    assert len({log[0][0] for log in sample}) == 4
    assert drawn(0) == sample != drawn(1)


def test_no_log_is_in_training_and_test(crossvalidate, corpus):
    sample = crossvalidate.draw(corpus, 6, 2, 2, 0)
    tested = []
    for training, test, few in crossvalidate.folds(sample, 1, 2):
        assert len(training) == 4 and len(test) == 4 and len(few) == 2
        assert not {window.log for window in training} & {window.log for window in test}
        assert all(any(window is other for other in test) for window in few)
        tested += [window.log for window in test]
    assert sorted(tested) == sorted(2 * [str(k) for k in range(6)])


def test_one_link_for_each_message_is_the_best_of_its_own(models, grid):
    cells = grid.make_grid(3)  # (0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2)
    observed = type("Grid", (), {"grid": cells})
    found = models.one_each(
        cells.instance(np.array([-1.0, 0.5, 0.25, 0.5, 3.0, 2.5]), ()), observed
    )
    assert found.assignment.tolist() == [0, 1, 0, 0, 1, 0]
    assert (found.primal, found.bound, found.certificate) == (3.5, 6.75, False)
    sure = models.one_each(
        cells.instance(np.array([-1.0, 2.0, -1.0, -0.5, -3.0, 2.5]), ()), observed
    )
    assert sure.assignment.tolist() == [0, 1, 0, 0, 0, 1] and sure.certificate and sure.bound == 4.5


@pytest.fixture(scope="module")
def small_results(crossvalidate, corpus, tmp_path_factory):
    pytest.importorskip("scipy", reason='needs SciPy: pip install "spacy-hocrf[ilp]"')
    path = tmp_path_factory.mktemp("metrics") / "results.jsonl"
    sizes = {"logs": 6, "windows": 2, "test_windows": 2, "size": 4}
    crossvalidate.main(corpus, path, epochs=2, iterations=20, time_limit=10.0, seed=0, **sizes)
    return path


def test_every_system_is_tested_on_every_log_once(crossvalidate, small_results):
    results = [json.loads(line) for line in small_results.read_text(encoding="utf8").splitlines()]
    for name, kind, trained in crossvalidate.SYSTEMS:
        folds = [
            r for r in results if r["what"] == "system" and (r["model"], r["kind"]) == (name, kind)
        ]
        assert [fold["fold"] for fold in folds] == [0, 1, 2]
        assert sorted(log for fold in folds for log in fold["logs"]) == [str(k) for k in range(6)]
        assert all(("training_seconds" in fold) == trained for fold in folds)
        assert sum(count[0] for fold in folds for count in fold["gold"]) == 6 * 4
    for result in results:
        for bound, primal in zip(result["bounds"], result["primals"]):
            assert bound >= primal - 1e-6
    optimum = {
        r["fold"]: r["primals"]
        for r in results
        if r["what"] == "system" and (r["model"], r["kind"]) == ("3-wise", "ilp")
    }
    for result in results:
        if result["what"] == "progress" and result["model"] == "3-wise":
            assert (np.array(result["bounds"]) >= np.array(optimum[result["fold"]]) - 1e-6).all()
            assert (np.array(result["primals"]) <= np.array(optimum[result["fold"]]) + 1e-6).all()


def test_report_has_a_row_for_each_system_and_draws_a_plot(
    load, small_results, tmp_path, check_plot
):
    report = load("report")
    report.main(small_results, tmp_path / "results.md")
    text = (tmp_path / "results.md").read_text(encoding="utf8")
    assert text in check_plot(tmp_path / "results.png")
    rows = table_rows(text)
    systems = report.collect(
        [json.loads(line) for line in small_results.read_text(encoding="utf8").splitlines()],
        "system",
    )
    (found,) = (row for row in rows if row[:2] == ["3-wise", "two_slave"])
    folds = systems["3-wise", "two_slave"]
    correct, predicted, gold = (
        sum(c[0] for fold in folds for c in fold[name]) for name in ("correct", "predicted", "gold")
    )
    assert found[2:5] == [
        f"{correct / max(1, predicted):.3f}",
        f"{correct / gold:.3f}",
        f"{2 * correct / (predicted + gold):.3f}",
    ]
    assert found[-2:] == ["0.584", "17.33"], "the paper's"
    (beside,) = (row for row in rows if row[0] == "F, 3-wise, two_slave")
    assert beside[1:3] == ["0.584", found[4]]
    (beside,) = (row for row in rows if row[0] == "3-wise two_slave less 3-wise naive (p)")
    (other,) = (row for row in rows if row[0] == "3-wise" and row[1] == "naive")
    assert beside[1] == "+0.012", "0.584 less 0.572"
    assert float(beside[2].split()[0]) == pytest.approx(
        float(found[4]) - float(other[4]), abs=0.0011
    )
    (pair,) = (row for row in rows if row[:2] == ["local each vertex", "2D hybrid"])
    scores = [row[4] for row in rows if row[:2] in (["local", "each vertex"], ["2D", "hybrid"])]
    assert (
        pair[2:4] == scores
        and pair[4] == f"{float(scores[1]) - float(scores[0]):+.3f}"
        and pair[4] != "+0.000"
    )


def test_the_config_sees_what_the_scripts_see(load, features, windows):
    """The templates of configs/links.cfg tell apart what those of features.py do, and no more."""
    import spacy
    from spacy.tokens import Doc
    from spacy.util import load_config, load_model_from_config

    from spacy_hocrf.links.items import Thread
    from spacy_hocrf.links.templates import observe

    convert = load("convert")
    convert.register()
    config = load_config(PROJECT / "configs" / "links.cfg")
    pipe = load_model_from_config(config, auto_fill=True).get_pipe("hocrf_links")
    nlp, seen = spacy.blank("en"), []
    for window in windows:
        doc = convert.document(nlp, window, LOG.split("\n"))
        assert isinstance(doc, Doc) and len(doc.spans["messages"]) == len(window.messages)
        assert doc._.hocrf_links == np.argwhere(window.links).tolist()
        thread = Thread([doc], pipe.items)
        pairs, observed = pipe.pairs.find(thread), features.observe(window, 1)
        assert_array_equal(pairs.source, observed.grid.source)
        assert_array_equal(pairs.target, observed.grid.target)
        seen.append((observe(pipe.features, thread, pairs), observed.values[0]))
    keys, values = (np.concatenate(each) for each in zip(*seen))
    for one, other in zip(keys.T, values.T, strict=True):
        pairs = set(zip(one.tolist(), other.tolist()))
        assert len(pairs) == len(np.unique(one)) == len(np.unique(other))
