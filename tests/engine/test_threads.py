"""Threads that are kept: order, errors, copies and processes."""

import copy
import gc
import os
import pickle
import threading
import time

import pytest

from spacy_hocrf.engine import threads as threads_module
from spacy_hocrf.engine.threads import Threads


@pytest.fixture(autouse=True)
def enough_processors(monkeypatch):
    monkeypatch.setattr(threads_module, "PROCESSORS", 8)


@pytest.fixture
def without_garbage_collection():
    """What a cycle of references keeps alive stays alive."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("count", [1, 2, 5])
def test_results_come_in_order(count):
    assert list(Threads(count).map(lambda i: i * i, range(20))) == [i * i for i in range(20)]


@pytest.mark.parametrize("count", [1, 3])
def test_an_error_is_raised_and_the_threads_live_on(count):
    threads = Threads(count)
    with pytest.raises(ZeroDivisionError):
        list(threads.map(lambda i: 1 // i, range(3)))
    assert list(threads.map(abs, [-1, 2])) == [1, 2]


@pytest.mark.parametrize("count", [1, 2, 4])
def test_the_error_is_that_of_the_first_item_that_fails(count):
    def fail(i):
        time.sleep(0.02 if i == 2 else 0.0)
        if i >= 2:
            raise ValueError(i)

    for _ in range(5):
        with pytest.raises(ValueError, match=r"^2$"):
            Threads(count).map(fail, range(9))


def test_no_more_threads_than_asked_for_and_always_the_same():
    threads, seen = Threads(3), set()
    for _ in range(20):
        seen.update(threads.map(lambda _: time.sleep(1e-3) or threading.get_ident(), range(6)))
    assert len(seen) == 3
    assert threading.get_ident() in seen


def test_no_more_threads_than_processors(monkeypatch):
    monkeypatch.setattr(threads_module, "PROCESSORS", 2)
    threads = Threads(1000)
    assert threads.count == 2
    assert threads.map(abs, range(-50, 0)) == list(range(50, 0, -1))
    assert len(workers_of(threads)) == 1


def test_one_thread_is_the_callers_own():
    assert set(Threads().map(lambda _: threading.get_ident(), range(3))) == {threading.get_ident()}


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda threads: pickle.loads(pickle.dumps(threads))]
)
def test_a_copy_has_threads_of_its_own(duplicate):
    threads, together = Threads(2), threading.Barrier(2)

    def thread(_):
        together.wait()  # for the other one, however long it takes to begin
        return threading.get_ident()

    first = set(threads.map(thread, range(4)))
    second = set(duplicate(threads).map(thread, range(4)))
    assert first & second == {threading.get_ident()}


def test_they_end_with_their_object():
    threads = Threads(2)
    threads.map(abs, range(8))
    workers = workers_of(threads)
    del threads
    assert all_end(workers)


def test_they_end_with_their_object_after_a_failed_map(without_garbage_collection):
    threads = Threads(3)
    with pytest.raises(ZeroDivisionError):
        threads.map(lambda i: 1 // i, range(8))
    workers = workers_of(threads)
    del threads
    assert all_end(workers)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")
def test_another_process_starts_its_own(monkeypatch):
    threads = Threads(2)
    list(threads.map(abs, range(4)))
    pool = threads._pool
    # as a child would see it; the parent's threads are not there
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert list(threads.map(abs, [-3, 4])) == [3, 4]
    assert threads._pool is not pool


def workers_of(threads):
    return list(threads._pool._threads)


def all_end(workers):
    for worker in workers:
        worker.join(timeout=1)
    return bool(workers) and not any(worker.is_alive() for worker in workers)
