"""The documentation's site, built."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = ("mkdocs", "material", "griffe", "nbclient", "ipykernel")

needs_docs = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in MODULES),
    reason='needs the extra docs: pip install "spacy-hocrf[docs]"',
)


def build(root, folder, execute=True):
    """Make the site of the project in this folder, in the other; with what the notebooks print.

    RETURNS (Tuple[int, str]): exit status and messages.
    """
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(folder)]
    environment = {**os.environ, "EXECUTE_NOTEBOOKS": str(execute), "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr
