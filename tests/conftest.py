"""What holds for every test: how many examples hypothesis draws, which folders run first, what is slow
besides what is marked, and where tests are named that are skipped.

HOCRF_PROFILE names the profile. "local" draws few examples, other ones on every run; "ci" draws more, the
same ones on every run; "quick", that of `-m "not slow"`, draws fewest. No profile watches the clock: a busy
machine is slow, not wrong.
"""

import os
from importlib.metadata import EntryPoints, entry_points
from pathlib import Path

import catalogue
import pytest
from hypothesis import HealthCheck, settings

HERE = Path(__file__).parent
ORDER = [
    "features", "model", "engine", "rules", "training", "graph", "saving", "annotation", "answers",
    "learning", "pipeline", "joint", "project", "cli",
]  # fmt: skip
"""Quick folders first, subprocesses last; other folders and files beside this one come before `project`."""

SLOW = {"cli", "project"}
"""Rooms of commands and of projects, which are slow as wholes."""

SKIPPED = os.environ.get("HOCRF_SKIPPED")
"""A file that tests which are skipped, and files of them, are written to: pytest @FILE runs these."""

settings.register_profile(
    "local", max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "ci", settings.get_profile("local"), max_examples=100, derandomize=True, print_blob=True
)
settings.register_profile("quick", settings.get_profile("ci"), max_examples=10)


def pytest_configure(config):
    profile = "quick" if _is_quick(config) else "local"
    settings.load_profile(os.environ.get("HOCRF_PROFILE", profile))
    # each name that spaCy looks up is compared with every entry point of the environment
    every = entry_points()
    groups = [
        every.select(group=name) for name in every.groups if name.startswith(("spacy", "thinc"))
    ]
    catalogue.AVAILABLE_ENTRY_POINTS = EntryPoints(point for group in groups for point in group)


def pytest_ignore_collect(collection_path, config):
    """What is slow as a whole is not even imported where it would not run."""
    slow = collection_path.parent == HERE and collection_path.name in SLOW
    return True if slow and _is_quick(config) else None


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.relative_to(HERE).parts[0] in SLOW:
            item.add_marker("slow")
    items.sort(key=lambda item: _place(item.path.relative_to(HERE).parts[0]))


def pytest_runtest_logreport(report):
    if SKIPPED and report.skipped:
        with open(SKIPPED, "a", encoding="utf8") as file:
            file.write(f"{report.nodeid}\n")


pytest_collectreport = pytest_runtest_logreport


def _is_quick(config):
    return config.option.markexpr == "not slow"


def _place(room):
    return ORDER.index(room) if room in ORDER else ORDER.index("project") - 0.5
