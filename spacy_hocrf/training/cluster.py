"""A cluster of Ray: the one that there is, or one of this machine that ends when this process does.

A cluster of this machine belongs to a process of its own, the keeper, which ends it in order when the pipe to
this process is closed. So nothing of it is left where this process is killed: no process, and no file.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from secrets import token_hex
from threading import Lock
from typing import Any

from spacy_hocrf.training.errors import WorkerErrors
from spacy_hocrf.training.folders import WorkingFolder
from spacy_hocrf.training.spawned import answers, command

__all__ = ["check_ray", "connected", "keep", "shared"]

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
        raise ValueError(WorkerErrors.H352.format())


@contextmanager
def connected(cpus: int | None) -> Iterator[Any]:
    """The module ray, connected to the cluster that RAY_ADDRESS names, or to a new one.

    cpus (Optional[int]): of a new one; None for all that this machine has.
    RAISES (ValueError): H353 if there is no such cluster.
    """
    with ExitStack() as stack:
        given = os.environ.get("RAY_ADDRESS")
        address = given or stack.enter_context(_kept(cpus))
        import ray

        try:
            ray.init(address=address, **QUIET)
        except (ConnectionError, RuntimeError, ValueError) as error:
            text = WorkerErrors.H353.format(found=address, error=error)
            raise ValueError(text) from error
        stack.callback(ray.shutdown)
        yield ray


class _Shared:
    """The connection that all trainings of this process have in common, and how many these are."""

    lock = Lock()
    users = 0
    ray: Any = None
    stack = ExitStack()


@contextmanager
def shared(cpus: int | None) -> Iterator[Any]:
    """As `connected`, for several at a time: Ray has one connection a process."""
    with _Shared.lock:
        if not _Shared.users:
            _Shared.ray = _Shared.stack.enter_context(connected(cpus))
        _Shared.users += 1
    try:
        yield _Shared.ray
    finally:
        with _Shared.lock:
            _Shared.users -= 1
            if not _Shared.users:
                _Shared.stack.close()


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
            text = WorkerErrors.H353.format(
                found="local", error="it could not be started, see above"
            )
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
