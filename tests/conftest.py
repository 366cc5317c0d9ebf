"""What holds for every test: how many examples hypothesis draws, and which rooms run first.

HOCRF_PROFILE names the profile. "local" draws few examples, other ones on every run; "ci" draws
more, the same ones on every run. No profile watches the clock: a busy machine is slow, not wrong.
"""

import os
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

HERE = Path(__file__).parent
ORDER = ["features", "model", "engine", "training", "graph", "pipeline", "joint", "project", "cli"]
"""Quick rooms first, subprocesses last; other rooms and files beside this one come before `project`."""

# so that every test can import the helpers that lie next to this file
sys.path.insert(0, str(HERE))

settings.register_profile(
    "local", max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "ci", settings.get_profile("local"), max_examples=100, derandomize=True, print_blob=True
)
settings.load_profile(os.environ.get("HOCRF_PROFILE", "local"))


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: _place(item.path.relative_to(HERE).parts[0]))


def _place(room):
    return ORDER.index(room) if room in ORDER else ORDER.index("project") - 0.5
