"""The public face: whatever a program or a notebook imports of this package, in one place.

    from spacy_hocrf.api import Reading, cross_read, trained

Which names there are, and from where, stands in api.pyi beside this file. A name is imported when it
is asked for, so that this module costs nothing; everything else in the package may move. Classes with
the interface of CRFsuite are in `spacy_hocrf.pycrfsuite`, those with that of sklearn-crfsuite in
`spacy_hocrf.sklearn`; what a config names needs no import at all.
"""

import ast
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any


@cache
def _places() -> dict[str, str]:
    """The module of each public name."""
    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    return {each.name: str(node.module) for node in imports for each in node.names}


def __getattr__(name: str) -> Any:
    """Import a public name, or the list of all, `__all__`. RAISES (AttributeError): for another one."""
    if name == "__all__":
        return __dir__()
    if name not in _places():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_places()[name]), name)


def __dir__() -> list[str]:
    return sorted(_places())
