"""Scripts of the projects as modules, plots, and the documentation's site."""

import importlib.util
import os
import sys
from pathlib import Path

import pytest
from built_site import ROOT, build
from project_checks import PROJECTS


@pytest.fixture(scope="module")
def load(request):
    """Imports a script of the projects that the test module names in LOADS, first come, first
    found, or a module of what they share, such as `common.report`.

    Projects have scripts of the same names: the modules that there are of them, and the folders of
    other projects that are looked in, are put aside meanwhile, and the new ones forgotten.
    """
    names = {path.stem for path in PROJECTS.glob("*/scripts/*.py")}
    others, path = (
        {name: sys.modules.pop(name) for name in names & set(sys.modules)},
        list(sys.path),
    )
    ours = [str(PROJECTS / name / "scripts") for name in getattr(request.module, "LOADS", ())]
    sys.path[:] = [*ours, *(p for p in path if PROJECTS not in Path(p).parents), str(PROJECTS)]
    yield importlib.import_module
    sys.path[:] = path
    for name in names & set(sys.modules):
        del sys.modules[name]
    sys.modules.update(others)


@pytest.fixture
def has_matplotlib():
    """Is matplotlib installed? Without it nothing is drawn; `test_common.py` has both cases."""
    return importlib.util.find_spec("matplotlib") is not None


@pytest.fixture
def check_plot(has_matplotlib, capsys):
    """Checks that there is a plot with matplotlib, and a warning in what is printed without."""

    def check(path):
        printed = capsys.readouterr().out
        assert path.exists() == has_matplotlib
        if has_matplotlib:
            assert path.read_bytes().startswith(b"\x89PNG\r\n") and path.stat().st_size > 5000
        assert ('pip install "spacy-hocrf[benchmark]"' in printed) != has_matplotlib
        return printed

    return check


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The folder of the documentation's site; HOCRF_SITE names one that is built already."""
    if "HOCRF_SITE" in os.environ:
        return Path(os.environ["HOCRF_SITE"])
    folder = tmp_path_factory.mktemp("site")
    status, messages = build(ROOT, folder)
    assert status == 0, messages
    return folder
