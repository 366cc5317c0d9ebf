"""Programs that import `pycrfsuite`, unchanged, on our module; and python-crfsuite's own tests.

The environment variable HOCRF_PEERS names a folder with `python-crfsuite/tests`, which are not part of its
wheel.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent  # not where sources stand in for the installed package

STAND_IN = """\
import sys
import spacy_hocrf.pycrfsuite
sys.modules["pycrfsuite"] = spacy_hocrf.pycrfsuite
"""
PROGRAMS = {
    "usaddress": [
        "123 Main St. Suite 100 Chicago, IL",
        "1775 Broadway And 57th, Newyork NY",
        "PO Box 10, Springfield, IL 62701-1234",
        "Robie House, 5757 South Woodlawn Avenue, Chicago, IL 60637",
        "#1 abc st",
    ],
    "probablepeople": [
        "Mr George 'Gob' Bluth II",
        "Ada Lovelace and Max Born",
        "Sitwell Housing Inc",
        "Barack Obama, c/o The White House",
    ],
}


def parsed(program, texts, standing_in):
    """What the program prints of some texts, on our module or on python-crfsuite."""
    code = (STAND_IN if standing_in else "") + (
        f"import {program} as program, sys\n"
        f"for text in {texts!r}: print(program.parse(text))\n"
        "print(sys.modules['pycrfsuite'].__name__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf8", cwd=HERE
    )
    assert done.returncode == 0, done.stderr
    *lines, module = done.stdout.splitlines()
    assert module == ("spacy_hocrf.pycrfsuite" if standing_in else "pycrfsuite")
    return lines


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_parse_as_they_do_on_python_crfsuite(program):
    for name in (program, "pycrfsuite"):
        pytest.importorskip(name, reason=f"needs {program}: pip install {program}")
    ours, theirs = (
        parsed(program, PROGRAMS[program], standing_in) for standing_in in (True, False)
    )
    assert ours == theirs and len(ours) == len(PROGRAMS[program])


@pytest.mark.skipif("HOCRF_PEERS" not in os.environ, reason="HOCRF_PEERS is not set")
def test_the_tests_of_python_crfsuite_pass(tmp_path):
    source = Path(os.environ["HOCRF_PEERS"]) / "python-crfsuite" / "tests"
    if not source.exists():
        pytest.skip("HOCRF_PEERS has no python-crfsuite/tests")
    tests = tmp_path / "tests"
    tests.mkdir()
    for path in source.glob("*.py"):
        shutil.copyfile(path, tests / path.name)
    (tmp_path / "pycrfsuite.py").write_text(STAND_IN)
    paths = [str(tmp_path), str(Path(importlib.util.find_spec("spacy_hocrf").origin).parents[1])]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--doctest-modules", "--rootdir", tests, tests],
        capture_output=True,
        encoding="utf8",
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    counts = {name: int(n) for n, name in re.findall(r"(\d+) (\w+)", done.stdout.splitlines()[-1])}
    print(counts)
    assert done.returncode == 0 and not {"failed", "error", "errors"} & set(counts), done.stdout
    assert counts["passed"] >= 40
