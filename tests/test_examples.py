"""Every script in examples/ runs as it stands, without a warning, and prints something."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


def test_there_are_examples():
    assert EXAMPLES


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(script, tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_ten_lines_of_the_readme_run(tmp_path):
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf8")
    code = readme.split("```python\n")[1].split("```")[0]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "PERSON" in done.stdout
    assert "CITY" in done.stdout


def test_graph_of_the_readme_prints_what_the_readme_says(tmp_path):
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf8")
    code, rest = readme.split("## Graphs of your own")[1].split("```python\n")[1].split("```", 1)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == rest.split("```\n")[1]
