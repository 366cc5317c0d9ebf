"""Locks that threads share, and what becomes of them in a forked process, which has the locks but not the
threads that would release them.
"""

import os
from threading import Lock, RLock
from typing import Any
from weakref import WeakSet

__all__ = ["CACHES", "new_lock"]

CACHES = Lock()
"""Held by whoever uses a cache of words that threads share. A fork waits for it, so that the child finds all
of these caches complete.
"""
LOCKS = WeakSet[Any]()  # those of `new_lock`


def new_lock() -> Any:
    """Return an RLock that nobody holds in a forked process."""
    lock = RLock()
    LOCKS.add(lock)
    return lock


def _after_fork() -> None:
    CACHES.release()
    for lock in LOCKS:
        lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=CACHES.acquire, after_in_parent=CACHES.release, after_in_child=_after_fork
    )
