"""Actors of a Ray cluster as workers: of the cluster that there is, or of one of this machine that ends when
this process does.

A cluster of this machine belongs to a process of its own, the keeper, which ends it in order when the pipe to
this process is closed. So nothing of it is left where this process is killed: no process, and no file.
"""

import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from secrets import token_hex
from threading import Lock
from typing import Any

from spacy_hocrf.errors import Errors
from spacy_hocrf.workers.folders import WorkingFolder
from spacy_hocrf.workers.pool import Pool, answered
from spacy_hocrf.workers.processes import answers, command

__all__ = ["RayPool", "check_ray", "connected", "keep"]

SHORT = "/tmp" if os.name == "posix" else None
"""Where folders with sockets are, whose names have an end: a folder of `tempfile` may be too long."""
PATIENCE = "RAY_gcs_server_port_wait_time_s"
QUIET = {"log_to_driver": False, "logging_level": "ERROR"}
LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""All processes of a cluster listen on loopback alone, so that no other machine reaches them; Ray does so by
itself where it takes firewalls to ask.
"""


def check_ray() -> None:
    """RAISES (ValueError): H352 if Ray is not installed."""
    if find_spec("ray") is None:
        raise ValueError(Errors.H352.format())


class _Connection:
    """The one connection of this process, and how many use it."""

    lock = Lock()
    users = 0
    ray: Any = None
    stack = ExitStack()


@contextmanager
def connected(cpus: int | None) -> Iterator[Any]:
    """The module ray, connected to the cluster that RAY_ADDRESS names, or to a new one.

    cpus (Optional[int]): of a new one; None for all that this machine has. Whoever asks while there is a
        connection shares that.
    RAISES (ValueError): H353 if there is no such cluster.
    """
    with _Connection.lock:
        if not _Connection.users:
            with ExitStack() as stack:
                _Connection.ray = _connect(cpus, stack)
                _Connection.stack = stack.pop_all()
        _Connection.users += 1
    try:
        yield _Connection.ray
    finally:
        with _Connection.lock:
            _Connection.users -= 1
            if not _Connection.users:
                _Connection.stack.close()


def _connect(cpus: int | None, stack: ExitStack) -> Any:
    """The module ray, connected until the stack is closed."""
    given = os.environ.get("RAY_ADDRESS")
    address = given or stack.enter_context(_kept(cpus))
    import ray

    try:
        ray.init(address=address, **QUIET)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise ValueError(Errors.H353.format(found=address, error=error)) from error
    stack.callback(ray.shutdown)
    return ray


class RayPool(Pool):
    """n actors with a CPU each.

    ray (Module): connected.
    make (Callable[[], Callable[[Any], Any]]): called once by each actor; what it returns answers tasks.
    """

    def __init__(self, n: int, ray: Any, make: Callable[[], Callable[[Any], Any]]) -> None:
        super().__init__(n)
        self.ray = ray
        self._make = [ray.put(make)]
        self._new = ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(_Actor).remote
        # by worker: the actor, and references to what it will say of its tasks
        self._actors = dict[int, tuple[Any, deque[Any]]]()

    def _begin(self, worker: int) -> None:
        self._actors[worker] = self._new(self._make), deque()

    def _send(self, worker: int, task: Any) -> None:
        actor, coming = self._actors[worker]
        coming.append(actor.answer.remote(task))

    def _wait(self) -> tuple[int, Any]:
        first = {coming[0]: worker for worker, (_, coming) in self._actors.items() if coming}
        [ready], _ = self.ray.wait(list(first))
        said = self._said(ready)
        if said is not None:
            self._actors[first[ready]][1].popleft()
        return first[ready], said

    def _said(self, reference: Any) -> Any:
        """Wait for an actor's answer; None if it has died."""
        errors = self.ray.exceptions
        try:
            return self.ray.get(reference)
        except errors.RayTaskError:  # of our own code, which would fail again
            raise
        except errors.RayError:
            return None

    def _end(self, worker: int) -> None:
        if worker in self._actors:
            self.ray.kill(self._actors.pop(worker)[0])


class _Actor:
    """Answers tasks.

    make (List[ObjectRef]): where what makes the answers is.
    """

    def __init__(self, make: list[Any]) -> None:
        self._make = make
        self._answer: Callable[[Any], Any] | None = None

    def answer(self, task: Any) -> Any:
        """Answer to a task that the pool's `map` yields, or the error met."""
        return answered(self._answered, task)

    def _answered(self, task: Any) -> Any:
        if self._answer is None:
            import ray

            [make] = ray.get(self._make)
            self._answer = make()
        return self._answer(task)


@contextmanager
def _kept(cpus: int | None) -> Iterator[str]:
    """The address of a new cluster of this machine, which nobody else may use."""
    # Ray reads them when it is imported; without a token it writes one to the home folder
    os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token_hex(32), **LOOPBACK}
    keeper = subprocess.Popen(
        command(keep, str(cpus or 0)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf8",
        start_new_session=True,  # a signal to the group is for this process
    )
    with keeper:  # closes the pipes, and waits
        assert keeper.stdout is not None
        address = keeper.stdout.readline()
        if not address:
            text = Errors.H353.format(found="local", error="it could not be started, see above")
            raise ValueError(text)
        yield address.strip()


def keep(number: str) -> None:
    """Start a cluster, say its address, and end it with the input.

    number (str): of its CPUs; 0 for all that this machine has.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # control-C is for the other end, which closes it
    there = answers()
    with WorkingFolder("hocrf-", SHORT) as path:
        folder = str(path)
        os.environ |= {"TMPDIR": folder, "RAY_USAGE_STATS_ENABLED": "0", PATIENCE: "120"}
        import ray

        cpus = int(number) or None
        address = _started(ray, num_cpus=cpus, include_dashboard=False, _temp_dir=folder)
        try:
            os.write(there, f"{address}\n".encode())
            sys.stdin.read()
        finally:
            ray.shutdown()


def _started(ray: Any, **settings: Any) -> str:
    """The address of a new cluster of this machine. On a crowded one Ray may find that its own processes are
    late, and gives up; they are started again then.
    """
    for last in (False, False, True):
        try:
            cluster = ray.init(address="local", **settings, **QUIET)
            break
        except Exception:
            ray.shutdown()
            if last:
                raise
    address: str = cluster.address_info["gcs_address"]
    return address
