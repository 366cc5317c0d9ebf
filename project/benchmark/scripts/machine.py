"""What a measurement was made on."""

import os
import platform
import subprocess
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import models

PACKAGES = ("spacy-hocrf", "spacy", "thinc", "numpy", "python-crfsuite", "scipy", "cython")


def describe_machine() -> dict[str, str]:
    """Processor, instruction set, load and versions."""
    builds = models.instruction_sets()
    return {
        "measured": f"{date.today()}, commit {_commit()}",
        "CPU": _cpu(),
        "cores": str(os.cpu_count()),
        "instruction set": models.instruction_set()
        + (f" (of {', '.join(builds)})" if builds else ""),
        "system": f"{platform.system()} {platform.machine()}",
        "load average": f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown",
        "Python": platform.python_version(),
        **{package: _version(package) for package in PACKAGES},
    }


def _cpu() -> str:
    path = Path("/proc/cpuinfo")
    for line in path.read_text().splitlines() if path.exists() else ():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"


def _commit() -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    try:
        done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True)
    except OSError:
        return "unknown"
    return done.stdout.strip() or "unknown"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
