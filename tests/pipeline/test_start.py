"""What the first `add_pipe` of a program imports: nothing that only learning, predicting, saving or
loading needs. No clock is read.
"""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

LATER = """
joint graph cli training.sgd
engine.automaton engine.forward_backward engine.kernels engine.lbfgs engine.marginals engine.objective
engine.probable engine.problem engine.threads engine.viterbi
features.index features.records features.rows features.saved
model.compiled model.histories model.neural model.placement model.scheme model.scores model.kernels
saving.archive saving.persistence saving.schema annotation.whitespace answers.predictor answers.reading
learning.choice learning.choosing learning.corpus learning.cost learning.encoder
learning.heldout learning.learning learning.likelihood learning.prices learning.scores learning.shards
learning.survey rules.compiled rules.violations
""".split()
"""Modules, or whole folders, that must wait."""


@pytest.mark.slow
@pytest.mark.parametrize("factory", ["hocrf", "hocrf_spans", "hocrf_tagger"])
def test_add_pipe_imports_nothing_that_can_wait(factory):
    imported = modules_after(f"nlp.add_pipe({factory!r})")
    assert "pipeline.component" in imported
    assert [name for name in imported if waits(name)] == []


@pytest.mark.parametrize("name", LATER)
def test_what_can_wait_is_a_module(name):
    assert find_spec(f"spacy_hocrf.{name}") is not None


def modules_after(statement: str) -> list[str]:
    """Our modules, by their names below ours, that a fresh interpreter has imported by then."""
    script = f"""\
import json, sys, spacy
nlp = spacy.blank("xx")
{statement}
print(json.dumps([name for name in sys.modules if name.startswith("spacy_hocrf.")]))
"""
    # not in the root, whose sources would stand in for the installed package
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        encoding="utf8",
        cwd=Path(__file__).parent,
    )
    assert done.returncode == 0, done.stderr
    return [name.removeprefix("spacy_hocrf.") for name in json.loads(done.stdout)]


def waits(name: str) -> bool:
    """Is it one of LATER?"""
    return any(within(name, later) for later in LATER)


def within(name: str, folder: str) -> bool:
    """Is it that module, or one below it?"""
    return f"{name}.".startswith(f"{folder}.")
