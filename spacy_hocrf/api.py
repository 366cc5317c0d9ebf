"""The public API: every name that a program or a notebook imports from this package, in one place.

    from spacy_hocrf.api import Reading, cross_read, trained

The names and their modules are listed in api.pyi beside this file. A name is imported when it is first used,
so importing this module costs nothing; everything else in the package may move. Classes with CRFsuite's
interface are in `spacy_hocrf.pycrfsuite`, those with sklearn-crfsuite's in `spacy_hocrf.sklearn`; objects
that a config names need no import at all.
"""

import ast
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any


@cache
def _places() -> dict[str, str]:
    """Return the module of each public name."""
    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    return {each.name: str(node.module) for node in imports for each in node.names}


def __getattr__(name: str) -> Any:
    """Import a public name, or list all as `__all__`. RAISES (AttributeError): for an unknown name."""
    if name == "__all__":
        return __dir__()
    if name not in _places():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_places()[name]), name)


def __dir__() -> list[str]:
    return sorted(_places())
