"""Decisions on disk: none that was called saved is lost, and a folder of something else is refused."""

import os

import pytest

from spacy_hocrf.cli.label.store import Decision, DecisionStore

TEXTS = ["Ada lives in Paris", "Ærøskøbing 🙂 Max", ""]
LABELS = ["PER", "LOC"]
ADA = Decision(0, ((0, 3, "PER"), (13, 18, "LOC")))
MAX = Decision(1, ((13, 16, "PER"),), ((0, 10),), facts={"random": True})
DECISIONS = [ADA, Decision(2), MAX, Decision(1, undone=True), Decision(2, undone=True)]


def stored(folder, texts=TEXTS, labels=LABELS):
    store = DecisionStore(folder, texts, labels)
    store.close()
    return store


@pytest.fixture
def folder(tmp_path):
    """A folder with decisions."""
    store = DecisionStore(tmp_path / "mine", TEXTS, LABELS)
    for decision in DECISIONS:
        store.append(decision)
    store.close()
    return tmp_path / "mine"


def test_what_was_decided_is_there_again(folder):
    store = stored(folder)
    assert store.decisions == DECISIONS and store.cut == 0


def test_a_line_that_was_cut_off_is_taken_away(folder):
    log = folder / "annotations.jsonl"
    content = log.read_bytes()
    last = content[:-1].rfind(b"\n") + 1
    for size in range(last, len(content)):
        log.write_bytes(content[:size])
        store = DecisionStore(folder, TEXTS, LABELS)
        assert store.decisions == DECISIONS[:-1] and store.cut == size - last
        store.append(DECISIONS[-1])
        store.close()
        assert log.read_bytes() == content


def test_a_decision_is_synchronized_before_append_returns(folder, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(os.fstat(file).st_size))
    store = DecisionStore(folder, TEXTS, LABELS)
    synced.clear()
    store.append(ADA)
    assert synced == [(folder / "annotations.jsonl").stat().st_size]
    store.close()


def test_a_decision_that_cannot_be_written_leaves_the_file_as_it_was(folder, monkeypatch):
    store, before = (
        DecisionStore(folder, TEXTS, LABELS),
        (folder / "annotations.jsonl").read_bytes(),
    )

    def full(_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(ValueError, match=r"H544.*No space left"):
            store.append(ADA)
    assert (folder / "annotations.jsonl").read_bytes() == before
    assert store.decisions == DECISIONS
    store.append(ADA)
    store.close()
    assert stored(folder).decisions == [*DECISIONS, ADA]


def test_texts_may_be_added_at_the_end_alone(folder):
    more = [*TEXTS, "Kim slept"]
    assert stored(folder, more).decisions == DECISIONS
    for others in (TEXTS, ["Kim slept", *more[1:]], []):
        with pytest.raises(ValueError, match="H541"):
            stored(folder, others)
    assert stored(folder, more).decisions == DECISIONS


def test_labels_may_be_added_and_those_that_are_used_must_stay(folder):
    stored(folder, labels=["DATE", *LABELS])
    with pytest.raises(ValueError, match=r"H542.*LOC"):
        stored(folder, labels=["PER"])


@pytest.mark.parametrize(
    "name, content",
    [
        ("notes.txt", b"mine"),
        ("label.json", b"{}"),
        ("label.json", b"\xff"),
        ("label.json", b'{"version":2,"texts":0,"digest":"","labels":[]}'),
    ],
)
def test_a_folder_of_something_else_is_refused_and_left_alone(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match="H540"):
        stored(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_bytes() == content


@pytest.mark.parametrize(
    "line",
    [
        b"not JSON",
        b'{"text":3,"spans":[]}',
        b'{"text":-1,"spans":[]}',
        b'{"text":0,"spans":[[0,19,"PER"]]}',
        b'{"text":0,"spans":[[3,3,"PER"]]}',
        b'{"text":0,"spans":[[0,3,"PER"]],"unknown":[[2,5]]}',
        b'{"text":0,"spans":[[0,3]]}',
        b'{"text":0,"spam":[]}',
        b'{"text":1,"undone":true}',
        b"",
    ],
)
def test_a_damaged_line_is_named(folder, line):
    log = folder / "annotations.jsonl"
    content = log.read_bytes()
    log.write_bytes(content + line + b"\n")
    with pytest.raises(ValueError, match=r"H543.*line 6"):
        stored(folder)
    assert log.read_bytes() == content + line + b"\n"
