"""`hocrf annotate --workers ray`, on clusters of this machine that tests start and stop: the same bytes,
whoever is killed, and nothing left.

Ray is in another process each time, since it stays in one that has imported it.
"""

import json
import os
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
from annotating import (
    JOB,
    descendants,
    kill,
    some_texts,
    until_all_have_ended,
    write_deadly,
    write_pipeline,
)

pytestmark = [
    pytest.mark.skipif(find_spec("ray") is None, reason="pip install 'spacy-hocrf[ray]'"),
    pytest.mark.skipif(not Path("/proc").is_dir(), reason="who is left is asked of /proc"),
]

CLUSTER = """
import os
from spacy_hocrf.workers.ray import _kept
if __name__ == "__main__":
    with _kept(2) as address:
        print(address, os.environ["RAY_AUTH_TOKEN"], flush=True)
        input()
"""


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """A pipeline, many texts, and the bytes of what one process writes of them."""
    folder = tmp_path_factory.mktemp("many")
    write_pipeline(folder / "model")
    rows = [{"id": i, "text": text} for i, text in enumerate([*some_texts() * 12, "DEADLY"])]
    (folder / "texts.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (folder / "job.py").write_text(JOB)
    with begin(folder, folder / "whole.jsonl", "1") as done:
        said = done.stdout.read()
    assert done.returncode == 0, said
    return folder


def begin(folder, output, workers, *options, model="model", **environment):
    names = [folder / "job.py", folder / model, folder / "texts.jsonl", output]
    command = [sys.executable, *names, "-w", workers, "--size", "5", *options]
    clean = {key: value for key, value in os.environ.items() if not key.startswith("RAY_")}
    environment = {**clean, "HOME": str(folder), **environment}
    return subprocess.Popen(
        list(map(str, command)),
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,  # actors take a package that lies in the current folder
    )


def command_of(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def watch(running, began):
    """Remember whom a job has begun, and which folders they have."""
    for pid in descendants(running.pid):
        began[pid] = began.get(pid) or command_of(pid)
    return [pid for pid in descendants(running.pid) if command_of(pid).startswith("ray::_Actor")]


def nothing_is_left(began):
    until_all_have_ended(began)
    folders = {
        word.partition("=")[2]
        for command in began.values()
        for word in command.split()
        if word.startswith("--session-dir=")
    }
    assert folders
    assert not any(Path(folder).parent.exists() for folder in folders)


def test_whoever_is_killed_the_bytes_are_the_same_and_nothing_is_left(many, tmp_path):
    output, began = tmp_path / "out.jsonl", dict[int, str]()
    parts = tmp_path / "out.jsonl.parts"
    for victim in ("driver", "actor"):
        before = len(list(parts.glob("part-*")))
        with begin(many, output, "ray:2") as running:
            while running.poll() is None:
                actors = watch(running, began)
                if victim and actors and len(list(parts.glob("part-*"))) > before:
                    running.kill() if victim == "driver" else kill(actors[0])
                    victim = None
                time.sleep(0.1)
            said = running.stdout.read()
        assert victim is None, said
    assert running.returncode == 0, said
    assert output.read_bytes() == (many / "whole.jsonl").read_bytes()
    assert [each.name for each in tmp_path.iterdir()] == ["out.jsonl"]
    assert not (many / ".ray").exists()
    nothing_is_left(began)


@pytest.fixture(scope="module")
def cluster(many):
    """A cluster that is there already, and its process."""
    (many / "cluster.py").write_text(CLUSTER)
    command = [sys.executable, str(many / "cluster.py")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as keeping:
        address, token = keeping.stdout.readline().split()
        began = {}
        watch(keeping, began)
        yield {"RAY_ADDRESS": address, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token}
        assert keeping.poll() is None  # no job has ended it
        keeping.stdin.close()
    nothing_is_left(began)


@pytest.mark.parametrize("deaths", [2, 3])
def test_a_cluster_that_is_there_is_used_and_stays(many, cluster, deaths, tmp_path):
    output = tmp_path / "out.jsonl"
    deadly, code = write_deadly(tmp_path, many / "model", deaths)
    with begin(many, output, "ray", "--code", code, model=deadly, **cluster) as running:
        said = running.stdout.read()
    if deaths < 3:
        assert running.returncode == 0, said
        assert output.read_bytes() == (many / "whole.jsonl").read_bytes()
    else:
        assert running.returncode == 1
        assert "[H349] 3 times a worker died while texts" in said.replace("\n", " ")


def test_a_cluster_that_is_not_there_is_an_error(many, tmp_path):
    with begin(many, tmp_path / "out.jsonl", "ray:2", RAY_ADDRESS="127.0.0.1") as running:
        said = running.stdout.read()
    assert running.returncode == 1
    assert "[H353] There is no cluster of Ray at 127.0.0.1" in said.replace("\n", " ")
