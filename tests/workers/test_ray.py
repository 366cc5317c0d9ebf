"""Actors of Ray that share the work of training, on clusters of this machine that tests start and stop: the
bits of threads, whoever is killed, and nothing left.

Ray is in another process each time, since it stays in one that has imported it. Its script asks for nothing
like `if __name__ == "__main__"`.
"""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from spacy_hocrf.workers.summing import RayWorkers

pytestmark = pytest.mark.slow

with_ray = pytest.mark.skipif(find_spec("ray") is None, reason="pip install 'spacy-hocrf[ray]'")

SCRIPT = """
import sys
import numpy as np
import spacy_hocrf.learning.shards

spacy_hocrf.learning.shards.SHARD_TOKENS = 9
from test_processes import THREADS, evaluated, learner_of
RAY = {"@misc": "spacy-hocrf.Ray.v1", "number": NUMBER, "parts": 8}
expected = evaluated(learner_of(THREADS))
learner = learner_of(RAY)
objective = learner.objective()
weights = np.random.default_rng(0).normal(size=learner.structure.size)
summing = objective._summing
pool = summing.pool
def same():
    loss, gradient = objective(weights)
    return (loss, gradient.tobytes()) == expected
print("parts", [len(kept) for _, kept in sorted(pool.kept.items())])
print("on disk", learner.corpus.documents[0]._text == "")
print("same", same(), same())
EXTRA
sys.stdout.flush()
"""
KILL = """
import ray
killed, _ = pool._actors[0]
ray.kill(killed)
print("after a kill", same(), pool._actors[0][0] is not killed)
send, asked = type(pool)._send, []
def deadly(pool, worker, task):
    send(pool, worker, task)
    asked.append(task)
    if len(asked) in (1, 4):
        ray.kill(pool._actors[worker][0])
type(pool)._send = deadly
print("killed at work", same(), len(asked) > 4)
summing.rest()
print("after a rest", not pool._actors, same())
make = pool._make
summing.rest()
from functools import partial
from spacy_hocrf.workers.summing import _KeptSums, _joined
pool._make = [ray.put(partial(_KeptSums, _joined(summing.common), "a folder that is not there"))]
try:
    objective(weights)
except FileNotFoundError as error:
    print("no folder", "a folder that is not there" in str(error))
pool._make = make
print("after an error", same())
print("more than CPUs", learner_of({**RAY, "number": 64}).objective()._summing.pool.n)
shard = learner.shards()[0].compiled
shard.batch.allowed[:] = 0
from spacy_hocrf.engine.objective import Objective
nothing = np.zeros(len(weights))
try:
    model = [shard], learner.layout, learner.automaton, nothing, nothing
    Objective(*model, workers=learner.trainer.workers)(weights)
except ValueError as error:
    print("invalid", "H007" in str(error))
"""


def run(tmp_path, number, extra=""):
    here = Path(__file__).parent
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.replace("NUMBER", str(number)).replace("EXTRA", extra.strip()))
    clean = {key: value for key, value in os.environ.items() if not key.startswith("RAY_")}
    path = os.pathsep.join(filter(None, [str(here), str(here.parent), *sys.path]))
    done = subprocess.run(
        [sys.executable, script],
        env={**clean, "HOME": str(tmp_path), "PYTHONPATH": path},
        capture_output=True,
        text=True,
        cwd=tmp_path,  # actors take a package that lies in the current folder
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@with_ray
def test_sums_are_those_of_threads_to_the_last_bit_whoever_is_killed(tmp_path):
    said = run(tmp_path, 2, KILL)
    assert said == [
        "parts [4, 4]",
        "on disk True",
        "same True True",
        "after a kill True True",
        "killed at work True True",
        "after a rest True True",
        "no folder True",
        "after an error True",
        "more than CPUs 2",
        "invalid True",
    ]
    assert not (tmp_path / ".ray").exists()


@with_ray
@pytest.mark.parametrize("number, parts", [(1, [8]), (3, [2, 3, 3])])
def test_another_number_of_actors_changes_no_bit(tmp_path, number, parts):
    assert run(tmp_path, number) == [f"parts {parts}", "on disk True", "same True True"]


def test_without_ray_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr("spacy_hocrf.workers.ray.find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"H352.*pip install 'spacy-hocrf\[ray\]'"):
        RayWorkers()


@with_ray
def test_numbers_out_of_range_are_named():
    with pytest.raises(ValueError, match="H048"):
        RayWorkers(-1)
