"""A process that is forked while threads are at work."""

import os
from threading import Event, Thread, Timer

import pytest

from spacy_hocrf.locks import CACHES, new_lock

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]


def free_in_child(lock):
    child = os.fork()
    if not child:
        os._exit(0 if lock.acquire(blocking=False) else 1)
    return os.waitpid(child, 0)[1] == 0


def test_a_fork_waits_for_a_thread_that_uses_caches():
    CACHES.acquire()
    Timer(0.05, CACHES.release).start()
    assert free_in_child(CACHES)
    assert not CACHES.locked()


def test_a_lock_that_a_thread_holds_is_free_in_a_forked_child():
    lock, held, done = new_lock(), Event(), Event()

    def hold():
        with lock:
            held.set()
            done.wait()

    thread = Thread(target=hold, daemon=True)  # pytest ends although it waits
    thread.start()
    held.wait()
    assert free_in_child(lock)
    assert not lock.acquire(blocking=False)  # the parent's thread has it still
    done.set()
    thread.join()
