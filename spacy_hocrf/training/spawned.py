"""Other processes of Python that import from where this one does, and run nothing of its main script.

Those of `multiprocessing` run that script again, unless it begins with `if __name__ == "__main__"`, and
`python -m` takes packages of the current folder first, which may be others.
"""

import os
import sys
from collections.abc import Callable
from typing import Any

__all__ = ["answers", "command"]

CALL = """
import sys
from importlib import import_module
end = 2 + int(sys.argv[1])
(module, function, *arguments), sys.path[:] = sys.argv[2:end], sys.argv[end:]
getattr(import_module(module), function)(*arguments)
"""


def command(function: Callable[..., Any], *arguments: str) -> list[str]:
    """What starts a process that calls a function of a module with some arguments."""
    call = [function.__module__, function.__name__, *arguments]
    return [sys.executable, "-c", CALL, str(len(call)), *call, *sys.path]


def answers() -> int:
    """Where such a process writes what the other one reads; what anybody prints goes to the console.

    RETURNS (int): a file descriptor.
    """
    found = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return found
