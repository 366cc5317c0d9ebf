"""A training that is ended goes on from its checkpoint, to the same last bit."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_corpus import documents, examples, untrained

pytestmark = pytest.mark.slow

TRAINERS = {
    "LBFGS": {"@misc": "spacy-hocrf.LBFGS.v1", "sigma": 1.0, "memory": 3},
    "OWLQN": {"@misc": "spacy-hocrf.OWLQN.v1", "c1": 0.05, "sigma": 1.0, "memory": 3},
}


def begun(path, trainer="LBFGS", every=2, count=20):
    """The run of a training that keeps a checkpoint, if there is a path."""
    kept = {} if path is None else {"checkpoint": str(path), "checkpoint_every": every}
    nlp = untrained(trainer={**TRAINERS[trainer], **kept})
    data = examples(nlp, documents(count))
    nlp.initialize(lambda: data)
    return nlp.get_pipe("hocrf").run


def finished(run):
    while run.running:
        run.step()
    return run.weights.tobytes(), run.iterations, run.evaluations


@pytest.mark.parametrize("trainer", TRAINERS)
@pytest.mark.parametrize("steps", [1, 2, 5, 9])
def test_it_goes_on_to_the_same_bits(tmp_path, trainer, steps):
    path = tmp_path / "checkpoint"
    expected = finished(begun(None, trainer))
    run = begun(path, trainer)
    for _ in range(steps):
        run.step()
    assert path.exists() == (steps > 1)
    again = begun(path, trainer)
    assert again.iterations == steps // 2 * 2
    assert finished(again) == expected
    assert not list(tmp_path.iterdir())  # there is nothing left to go on with


def test_it_is_written_so_often(tmp_path):
    path = tmp_path / "checkpoint"
    run = begun(path, every=3)
    reached = []
    for _ in range(7):
        run.step()
        reached.append(int(np.load(path)["numbers"][1]) if path.exists() else 0)
    assert reached == [0, 0, 3, 3, 3, 6, 6]


@pytest.mark.parametrize("other", ["texts", "settings"])
def test_what_another_training_came_to_is_not_taken(tmp_path, caplog, other):
    path = tmp_path / "checkpoint"
    run = begun(path, count=12 if other == "texts" else 20)
    for _ in range(4):
        run.step()
    if other == "settings":
        TRAINERS["tighter"] = {**TRAINERS["LBFGS"], "gradient_tolerance": 1e-6}
    again = begun(path, "tighter" if other == "settings" else "LBFGS")
    assert again.iterations == 0
    assert finished(again) == finished(begun(None, "tighter" if other == "settings" else "LBFGS"))


def test_another_corpus_with_the_same_features_is_noticed(tmp_path):
    """By the gradient: the file says that it is of this training."""
    path = tmp_path / "checkpoint"
    run = begun(path)
    for _ in range(4):
        run.step()
    with np.load(path) as file:
        state = dict(file)
    np.savez(tmp_path / "changed.npz", **{**state, "best_x": state["best_x"] + 1e-9})
    (tmp_path / "changed.npz").replace(path)
    assert begun(path).iterations == 0


@pytest.mark.parametrize("damage", [b"", b"PK", None])
def test_a_damaged_one_is_an_error(tmp_path, damage):
    path = tmp_path / "checkpoint"
    run = begun(path)
    for _ in range(4):
        run.step()
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2] if damage is None else damage)
    with pytest.raises(ValueError, match=r"H256.*checkpoint.*Delete it"):
        begun(path)


def test_its_folder_is_made(tmp_path):
    path = tmp_path / "new" / "checkpoint"
    run = begun(path)
    for _ in range(3):
        run.step()
    assert path.exists()


def test_a_place_that_cannot_be_written_is_said_before_the_training(tmp_path):
    (tmp_path / "file").touch()
    place = str(tmp_path / "file" / "checkpoint")
    nlp = untrained(trainer={**TRAINERS["LBFGS"], "checkpoint": place})
    read = []
    with pytest.raises(ValueError, match=r"H401.*cannot be written.*see checkpoint in"):
        nlp.initialize(lambda: read.append(1) or examples(nlp, documents(20)))
    assert not read


def test_settings_that_change_no_weight_are_no_other_training(tmp_path):
    run = begun(None)
    trainer = untrained(trainer=TRAINERS["LBFGS"]).get_pipe("hocrf").trainer
    assert trainer.plain == replace(trainer, threads=3, iterations=5, checkpoint="x").plain
    assert trainer.plain != replace(trainer, memory=4).plain
    assert run.running


DRIVER = """
import os, sys
sys.path[:0] = {path!r}
from test_checkpoints import begun, finished
run = begun({file!r})
for _ in range({steps}):
    if run.running:
        run.step()
if {killed}:
    os.kill(os.getpid(), 9)
print(finished(run)[0].hex())
"""


def test_a_process_that_is_killed_twice_comes_to_the_same_weights(tmp_path):
    path = [str(Path(__file__).parent), str(Path(__file__).parents[1]), *sys.path]
    weights = []
    for steps, killed in ((5, True), (4, True), (0, False)):
        code = DRIVER.format(path=path, file=str(tmp_path / "file"), steps=steps, killed=killed)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.returncode == (-9 if killed else 0), done.stderr
        weights.append(done.stdout.strip())
    assert weights == ["", "", finished(begun(None))[0].hex()]
