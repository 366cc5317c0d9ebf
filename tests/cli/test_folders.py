"""Working folders are nobody else's, and gone when their process is, however that ends."""

import os
import signal
import stat
import subprocess
import sys
import time

import pytest

from spacy_hocrf.cli.folders import WorkingFolder

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals to groups are a thing of Unix")

HEARING = """
import signal  # a parent in the background may have let its children ignore some
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
"""
PROGRAM = """
import sys, time
from spacy_hocrf.cli.folders import WorkingFolder
with WorkingFolder("hocrf-", sys.argv[1]) as folder:
    (folder / "file").touch()
    print("there", flush=True)
    time.sleep(60)
"""


def until_empty(folder):
    for _ in range(600):
        if not list(folder.iterdir()):
            return True
        time.sleep(0.1)
    return False


def test_nobody_else_may_look_into_it(tmp_path):
    before = os.umask(0)
    try:
        with WorkingFolder("hocrf-", tmp_path) as folder:
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
            assert folder.parent == tmp_path and folder.name.startswith("hocrf-")
    finally:
        os.umask(before)
    assert not list(tmp_path.iterdir())


def test_without_a_place_it_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        WorkingFolder("hocrf-", tmp_path / "nowhere")


def test_a_name_is_no_command(tmp_path):
    place = tmp_path / "it's $(touch x) `x` -rf"
    place.mkdir()
    (place / "mine").touch()
    with WorkingFolder(" *", place) as folder:
        assert folder.is_dir()
    assert [each.name for each in place.iterdir()] == ["mine"]


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL, signal.SIGHUP])
def test_a_signal_to_the_whole_group_leaves_nothing(tmp_path, sent):
    path = os.pathsep.join(filter(None, sys.path))
    with subprocess.Popen(
        [sys.executable, "-c", HEARING + PROGRAM, tmp_path],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
        cwd=tmp_path.parent,  # where no package lies
    ) as running:
        assert running.stdout.readline() == "there\n"
        assert list(tmp_path.iterdir())
        os.killpg(running.pid, sent)
    assert until_empty(tmp_path)
