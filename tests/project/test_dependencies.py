"""The project dependencies: logs become windows, windows become Docs, links are counted."""

import json
from pathlib import Path

import numpy as np
import pytest
import spacy
from project_checks import table_rows
from spacy.lang.en import English
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from spacy.util import load_config

PROJECT = Path(__file__).parents[2] / "project" / "dependencies"
LOADS = ("dependencies",)


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
def convert(load):
    return load("windows")


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


def test_docs_have_the_messages_links_and_attributes_of_their_window(convert, windows):
    convert.register()
    docs = [convert.document(English(), window, LOG.split("\n")) for window in windows]
    spans = [span for doc in docs for span in doc.spans["messages"]]
    messages = [message for window in windows for message in window.messages]
    assert [span.text for span in spans] == [LOG.split("\n")[each.line] for each in messages]
    for span, message in zip(spans, messages):
        assert span._.author == str(message.author) and span._.kind == message.kind.name
        assert span._.mentions == [str(author) for author in sorted(message.mentions)]
        assert span._.words == sorted(message.words)
        assert span._.silence == message.silence
    assert docs[0]._.hocrf_links == [[0, 0], [1, 1], [2, 1], [3, 3]] and docs[1]._.hocrf_links == []
    assert {doc._.log for doc in docs} == {"one"}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("irc")
    for part, logs in (("train", 6), ("dev", 1)):
        (folder / part).mkdir()
        for k in range(logs):
            text = LOG + "[00:04] <ada> bye\n" * k
            (folder / part / f"{k}.ascii.txt").write_text(text, encoding="utf8")
            (folder / part / f"{k}.annotation.txt").write_text(LINKS, encoding="utf8")
    return folder


def test_samples_have_windows_of_different_logs_and_depend_on_the_seed(convert, corpus):
    def drawn(seed):
        sample = convert.draw(corpus / "train", 4, 2, 2, seed)
        return [[(window.log, window.messages[0].line) for window in log] for log in sample]

    sample = drawn(0)
    assert all(len(set(log)) == 2 and len({name for name, _ in log}) == 1 for log in sample)
    assert len({log[0][0] for log in sample}) == 4
    assert drawn(0) == sample != drawn(1)


def test_no_log_is_in_training_and_test(convert, corpus):
    tested = []
    for training, test in convert.folds(convert.draw(corpus / "train", 6, 2, 2, 0)):
        names, others = ({log[0].log for log in part} for part in (training, test))
        assert len(training) == 4 and len(test) == 2 and not names & others
        tested += others
    assert sorted(tested) == [str(k) for k in range(6)]


def test_links_are_counted_by_log(load, convert, windows):
    convert.register()
    gold = convert.document(English(), windows[0], LOG.split("\n"))
    counted = load("crossvalidate").counted
    found = counted(
        [Example(gold, gold)] * 2,
        [[(0, 0), (2, 1), (3, 1)], [(3, 2)]],
        [[0.9, 0.8, 0.51236], [0.5]],
    )
    assert found["logs"] == ["one"] and found["gold"] == ([8, 2],)
    assert found["predicted"] == ([4, 3],) and found["correct"] == ([2, 1],)
    assert found["scores"] == [0.9, 0.8, 0.5124, 0.5] and found["right"] == [
        True,
        True,
        False,
        False,
    ]


@pytest.fixture(scope="module")
def results(load, corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("dependencies")
    load("windows").main(corpus, folder / "corpus", logs=6, windows=1, test_windows=2, size=4)
    path = folder / "results.jsonl"
    load("crossvalidate").main(folder / "corpus", PROJECT / "configs" / "links.cfg", path, steps=5)
    return path


def test_every_system_is_tested_on_every_log_once(results):
    lines = [json.loads(line) for line in results.read_text(encoding="utf8").splitlines()]
    systems = {(line["system"], line["windows"]) for line in lines}
    assert systems == {("the message before", 0)} | {
        (name, n) for name in ("each pair alone", "one each") for n in (4, 8)
    }
    for system in systems:
        folds = [line for line in lines if (line["system"], line["windows"]) == system]
        assert [fold["fold"] for fold in folds] == [0, 1, 2]
        assert sorted(log for fold in folds for log in fold["logs"]) == [str(k) for k in range(6)]
        assert sum(count[0] for fold in folds for count in fold["gold"]) == 6 * 4
        for fold in folds:
            links = sum(count for count, _ in fold["predicted"])
            assert len(fold["scores"]) == (links if system[1] else 0)
            assert sum(fold["right"]) == (sum(c for c, _ in fold["correct"]) if system[1] else 0)


def test_report_has_a_row_for_each_system_and_for_each_bin(load, results, tmp_path):
    load("report").main(results, tmp_path / "results.md")
    rows = table_rows((tmp_path / "results.md").read_text(encoding="utf8"))
    lines = [json.loads(line) for line in results.read_text(encoding="utf8").splitlines()]
    folds = [line for line in lines if line["system"] == "one each" and line["windows"] == 8]
    correct, predicted, gold = (
        sum(count for fold in folds for count, _ in fold[name])
        for name in ("correct", "predicted", "gold")
    )
    (found,) = (row for row in rows if row[:2] == ["one each", "8"])
    expected = correct / predicted, correct / gold, 2 * correct / (predicted + gold)
    assert found[2:5] == [f"{score:.3f}" for score in expected]
    (pair,) = (row for row in rows if row[:2] == ["each pair alone (8)", "one each (8)"])
    assert pair[3] == found[4] and len(pair) == 7
    bins = [row for row in rows if row[0] == "one each (8)" and " to " in row[1]]
    assert sum(int(row[2]) for row in bins) == predicted
    assert sum(int(row[2]) * float(row[4]) for row in bins) == pytest.approx(correct, abs=0.1)


def test_the_config_trains_by_spacy(load, convert, corpus, tmp_path):
    """And sees every attribute that the files have."""
    convert.main(corpus, tmp_path, logs=6, windows=1, test_windows=2, size=4)
    paths = {"paths.train": f"{tmp_path}/0/train.spacy", "paths.dev": f"{tmp_path}/dev.spacy"}
    changes = {**paths, "training.max_steps": 3, "training.eval_frequency": 1}
    nlp = init_nlp(load_config(PROJECT / "configs" / "links.cfg", overrides=changes))
    assert {*nlp.get_pipe("hocrf_links").features.reads} == {
        f"_.{each}" for each in convert.ATTRIBUTES
    }
    (tmp_path / "model").mkdir()
    train(nlp, tmp_path / "model")
    assert spacy.load(tmp_path / "model" / "model-last").meta["performance"]["hocrf_links_f"] > 0
