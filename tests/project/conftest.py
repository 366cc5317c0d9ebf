"""Scripts of the projects as modules."""

import importlib
import sys
from pathlib import Path

import pytest

PROJECTS = Path(__file__).parents[2] / "project"


@pytest.fixture(scope="module")
def load(request):
    """Imports a script of the projects that the test module names in LOADS, first come, first
    found.

    Projects have scripts of the same names: the modules that there are of them are put aside
    meanwhile, and the new ones forgotten.
    """
    names = {path.stem for path in PROJECTS.glob("*/scripts/*.py")}
    others, path = (
        {name: sys.modules.pop(name) for name in names & set(sys.modules)},
        list(sys.path),
    )
    sys.path[:0] = [str(PROJECTS / name / "scripts") for name in request.module.LOADS]
    yield importlib.import_module
    sys.path[:] = path
    for name in names & set(sys.modules):
        del sys.modules[name]
    sys.modules.update(others)
