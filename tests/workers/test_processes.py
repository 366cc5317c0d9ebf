"""Processes that share the work of training: the bits of threads, whatever happens to them."""

import errno
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_corpus import documents, examples, learner_of, untrained, words
from spacy import registry
from spacy.training import Example

from spacy_hocrf.engine.reduction import ThreadWorkers
from spacy_hocrf.workers import processes
from spacy_hocrf.workers.mapped import pieces_of, read_mapped, write_pieces
from spacy_hocrf.workers.summing import ProcessWorkers

pytestmark = pytest.mark.slow

PROCESSES = {"@misc": "spacy-hocrf.Processes.v1", "number": 2, "parts": 8}
THREADS = {"@misc": "tests.Threads.v1", "number": 1, "parts": 8}
registry.misc("tests.Threads.v1", func=ThreadWorkers)


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    monkeypatch.setattr("spacy_hocrf.learning.shards.SHARD_TOKENS", 9)


def corpus(nlp, count=40):
    """Texts, some of them several times, some annotated in part, some with weights."""
    partial = [
        Example.from_dict(words(nlp, "Emmy", f"slept{i}"), {"entities": ["U-PERSON", "-"]})
        for i in range(9)
    ]
    some = examples(nlp, documents(count))
    for example in (*some[3:20:2], *partial[::2]):
        example.reference._.hocrf_weight = 0.1 * len(example.text)
    return [*some, *some[:5], *partial]


def learn(nlp, data):
    nlp.initialize(lambda: data)
    for _ in range(4):
        nlp.update(data)


def learner_with(workers):
    nlp = untrained(trainer={"@misc": "spacy-hocrf.LBFGS.v1", "sigma": 1.0, "workers": workers})
    data = corpus(nlp)
    nlp.initialize(lambda: data)
    return learner_of(nlp.get_pipe("hocrf"))


def evaluated(learner):
    """Loss and gradient at some weights, of the trainer's objective."""
    weights = np.random.default_rng(0).normal(size=learner.structure.size)
    loss, gradient = learner.objective()(weights)
    return loss, gradient.tobytes()


@pytest.fixture
def summing(tmp_path):
    """Two processes, their evaluation, and what threads find."""
    learner = learner_with({**PROCESSES, "folder": str(tmp_path)})
    objective = learner.objective()
    weights = np.random.default_rng(0).normal(size=learner.structure.size)
    expected = replace(learner.trainer, workers=ThreadWorkers(1, 8)).objective(learner)(weights)

    def evaluate():
        loss, gradient = objective(weights)
        return (loss, gradient.tobytes()) == (expected[0], expected[1].tobytes())

    found = objective._summing
    assert found.ranges == [range(4), range(4, 8)]
    found.evaluate = evaluate
    return found


@pytest.mark.parametrize(
    "trainer, numbers, count",
    [("LBFGS", (1, 2, 3), 40), ("OWLQN", (2,), 40)],
)
def test_weights_are_those_of_threads_to_the_last_bit(trainer, numbers, count):
    found = set()
    for workers in (THREADS, *({**PROCESSES, "number": number} for number in numbers)):
        nlp = untrained(
            trainer={"@misc": f"spacy-hocrf.{trainer}.v1", "sigma": 1.0, "workers": workers}
        )
        learn(nlp, corpus(nlp, count))
        found.add(nlp.get_pipe("hocrf").to_bytes())
    assert len(found) == 1


def test_a_ratio_has_the_bits_of_threads():
    found = set()
    for workers in (THREADS, PROCESSES):
        trainer = {"@misc": "spacy-hocrf.LBFGS.v1", "sigma": 1.0, "workers": workers, "ratio": 0.5}
        nlp = untrained(positives_only=True, trainer=trainer)
        learn(nlp, examples(nlp, documents(40)))
        found.add(nlp.get_pipe("hocrf").to_bytes())
    assert len(found) == 1


def test_more_processes_than_parts_are_not_started():
    learner = learner_with({**PROCESSES, "number": 64, "parts": 4})
    assert learner.objective()._summing.pool.n == 4


def test_processes_import_from_where_this_one_does(tmp_path, monkeypatch):
    for name in ("spacy_hocrf", "numpy"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('another package')")
    expected = evaluated(learner_with(THREADS))
    monkeypatch.chdir(tmp_path)
    assert evaluated(learner_with(PROCESSES)) == expected


def test_a_worker_is_without_spacy(summing):
    """Which takes longer to import than a small corpus to sum, and memory in every worker."""
    assert summing.evaluate()
    code = """
import sys
from pathlib import Path
folder, sys.path[:] = sys.argv[1], sys.argv[2:]
from spacy_hocrf.workers.summing import _FileSums
[whole] = _FileSums(Path(folder))(range(8))
print(whole.size, whole.counts, {"spacy", "thinc"} & set(sys.modules))
"""
    command = [sys.executable, "-c", code, str(summing.folder), *sys.path]
    assert subprocess.run(command, capture_output=True, text=True).stdout == "8 counts-0-0 set()\n"


@pytest.mark.parametrize("workers, on_disk", [(PROCESSES, True), (THREADS, False), (None, False)])
def test_records_of_texts_are_on_disk_where_files_are_anyway(workers, on_disk, tmp_path):
    workers = {**workers, "folder": str(tmp_path)} if on_disk else workers
    corpus = learner_with(workers).corpus
    assert {isinstance(document._source, int) for document in corpus.documents} == {on_disk}
    assert {document._text == "" for document in corpus.documents} == {on_disk}
    assert not list(tmp_path.iterdir())  # it has no name


def test_nothing_is_left_when_an_objective_is_gone(summing, tmp_path):
    assert summing.evaluate()
    running = list(summing.pool._running.values())
    assert all(each.poll() is None for each in running)
    summing.close()
    assert [each.poll() for each in running] == [0, 0]
    assert not list(tmp_path.iterdir())


def test_after_a_rest_other_processes_go_on(summing):
    assert summing.evaluate()
    before = {each.pid for each in summing.pool._running.values()}
    summing.rest()
    assert not summing.pool._running
    assert summing.evaluate()
    assert not before & {each.pid for each in summing.pool._running.values()}


def test_a_process_that_is_killed_is_replaced(summing, monkeypatch):
    """At every second range, before it can answer."""
    send, asked = processes.ProcessPool._send, []

    def killed(pool, worker, task):
        asked.append(task)
        if len(asked) % 2:
            pool._running[worker].kill()
        send(pool, worker, task)

    monkeypatch.setattr(processes.ProcessPool, "_send", killed)
    for _ in range(4):
        assert summing.evaluate()
    assert len(asked) >= 4 * 2 + 4


def test_processes_that_die_again_and_again_are_an_error(summing, monkeypatch):
    monkeypatch.setattr(processes, "serve", len)  # which just ends
    with pytest.raises(ValueError, match=r"H253.*3 times.*parts \d to \d.*smaller number"):
        summing.evaluate()
    monkeypatch.undo()
    assert summing.evaluate()


def test_a_worker_that_nobody_hears_ends_and_removes_the_files(summing):
    assert summing.evaluate()
    running = summing.pool._running.pop(0)
    running.stdin.close()
    assert running.wait(60) == 0
    assert not summing.folder.exists()


@pytest.mark.parametrize("damage", [b"", b"hocrf working 1\n" + bytes(30), None])
def test_a_damaged_file_is_written_again(summing, damage):
    assert summing.evaluate()
    summing.rest()
    path = summing.folder / "part-3"
    whole = path.read_bytes()
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage)
    assert summing.evaluate()
    assert path.read_bytes() == whole


def test_all_parts_that_somebody_has_deleted_are_written_again(summing):
    for path in summing.folder.glob("part-*"):
        path.unlink()
    assert summing.evaluate()


def test_a_full_disk_is_an_error_and_nothing_is_left(monkeypatch, tmp_path):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", full)
    learner = learner_with({**PROCESSES, "folder": str(tmp_path)})
    with pytest.raises(OSError, match="No space left"):
        learner.objective()
    assert not list(tmp_path.iterdir())


def test_every_flipped_byte_is_noticed(tmp_path):
    path = tmp_path / "file"
    write_pieces(path, pieces_of([np.arange(5), "text"], {}))
    data = path.read_bytes()
    for at in range(len(data)):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises(ValueError, match="H252"):
            read_mapped(path, {})


def test_arrays_are_read_where_they_lie_and_what_is_known_is_not_written(tmp_path):
    path, known = tmp_path / "file", object()
    arrays = [np.arange(7, dtype=np.uint8), np.zeros((0, 3)), np.ones((2, 3), dtype=np.float32)]
    write_pieces(path, pieces_of({"arrays": arrays, "known": known}, {id(known): "it"}))
    read = read_mapped(path, {"it": 41})
    assert read["known"] == 41
    for array, expected in zip(read["arrays"], arrays):
        np.testing.assert_array_equal(array, expected, strict=True)
        assert array.ctypes.data % 64 == 0 and not array.flags.owndata
    read["arrays"][0][0] = 5  # is nobody else's
    np.testing.assert_array_equal(read_mapped(path, {"it": 0})["arrays"][0], arrays[0])


def test_a_text_without_a_segmentation_is_named():
    learner = learner_with(PROCESSES)
    shard = learner.shards()[0].compiled
    shard.batch.allowed[:] = 0
    from spacy_hocrf.engine.objective import Objective

    nothing = np.zeros(learner.structure.size)
    model = [shard], learner.layout, learner.automaton, nothing, nothing
    with pytest.raises(ValueError, match="H007"):
        Objective(*model, workers=ProcessWorkers(1))(nothing)


def test_what_cannot_be_handed_on_is_named(monkeypatch):
    learner = learner_with(PROCESSES)
    monkeypatch.setattr(learner.layout, "shared", (lambda: None,))
    with pytest.raises(ValueError, match=r"H255.*'function'.*Take the block out"):
        learner.objective()


def test_a_part_whose_file_is_damaged_again_and_again_is_an_error(summing, monkeypatch):
    monkeypatch.setattr(summing, "_write", lambda number: None)
    (summing.folder / "part-3").write_bytes(b"")
    with pytest.raises(ValueError, match=r"H252.*part-3"):
        summing.evaluate()


def test_what_a_process_has_met_is_raised_with_its_traceback(summing):
    assert summing.evaluate()
    summing.rest()
    (summing.folder / "common").write_bytes(b"")
    with pytest.raises(ValueError, match="H252") as raised:
        summing.evaluate()
    assert "read_mapped" in str(raised.value.__cause__)


@pytest.mark.parametrize("number, parts", [(-1, None), (1.5, None), (1, 3), (1, 12), (1, 0)])
def test_numbers_out_of_range_are_named(number, parts):
    with pytest.raises(ValueError, match="H048"):
        ProcessWorkers(number, parts)


DRIVER = """
import sys
sys.path[:0] = {path!r}
import spacy_hocrf.learning.shards
spacy_hocrf.learning.shards.SHARD_TOKENS = 9
from test_processes import evaluated, learner_with, PROCESSES
learner = learner_with({{**PROCESSES, "folder": {folder!r}}})
objective = learner.objective()
weights = learner.weights
for _ in range(3):
    objective(weights)
print(*(each.pid for each in objective._summing.pool._running.values()), flush=True)
while True:
    objective(weights)
"""


@pytest.mark.parametrize("workers_too", [False, True])
def test_nothing_is_left_of_a_training_that_is_killed(tmp_path, workers_too):
    here = Path(__file__).parent
    path = [str(here), str(here.parent), *sys.path]
    code = DRIVER.format(path=path, folder=str(tmp_path))
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as driver:
        pids = [int(pid) for pid in driver.stdout.readline().split()]
        assert len(pids) == 2 and len(list(tmp_path.iterdir())) == 1
        driver.kill()
        if workers_too:
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 60
    while any(map(running, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(running, pids))
    while list(tmp_path.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not list(tmp_path.iterdir())


def running(pid):
    """Is it there, and not a zombie that nobody waits for?"""
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
