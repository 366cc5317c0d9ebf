"""Every import of the package against the layers: a folder's name is its import permission.

    features → model → pipeline → joint,  engine → training → pipeline,  graph → joint,
    everything → cli

The sources are read, not imported: what a function imports or TYPE_CHECKING hides counts too;
nothing need be built.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = "spacy_hocrf"
SOURCE = Path(__file__).resolve().parents[1] / PACKAGE

SHARED = {"", "arrays", "dispatch", "errors", "types"}  # "" is the package's own __init__
MAY_IMPORT = {  # layer → layers that it may import besides itself
    "arrays": set(),
    "errors": set(),
    "dispatch": {"errors"},
    "types": set(),
    "": {"errors", "types"},
    "engine": SHARED,
    "graph": SHARED,
    "features": SHARED,
    "model": {*SHARED, "features"},
    "training": {*SHARED, "engine"},
    "pipeline": {*SHARED, "engine", "features", "model", "training"},
    "joint": {*SHARED, "engine", "features", "graph", "model", "pipeline", "training"},
    "cli": {*SHARED, "engine", "features", "model", "pipeline", "training"},
}
NOT_YET = {  # modules that still import `joint`, until it hangs on hooks of theirs
    f"{PACKAGE}/pipeline/factories.py"
}
NEVER_HEARD_OF_SPACY = {*SHARED, "engine", "graph"}
SPACY = {"spacy", "thinc"}

FILES = sorted(path for path in SOURCE.rglob("*") if path.suffix in {".py", ".pyi", ".pyx", ".pxd"})
CYTHON_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<module>[.\w]+)[ \t]+c?import[ \t]*(?P<names>\([^)]*\)|[^\n#]*)"
    r"|c?import[ \t]+(?P<modules>[^\n#]*))",
    flags=re.MULTILINE,
)


def test_every_module_keeps_to_its_layer():
    assert FILES, f"No sources in {SOURCE}"
    offences = [
        offence
        for path in FILES
        for offence in violations(
            path.read_text(encoding="utf8"), path.relative_to(SOURCE.parent).as_posix()
        )
    ]
    assert not offences, "\n" + "\n".join(offences)


@pytest.mark.parametrize(
    "path, source, offender",
    [
        ("engine/a.py", "import numpy\nfrom spacy_hocrf.model.b import c", "spacy_hocrf.model.b.c"),
        ("engine/a.py", "from ..features import b", "spacy_hocrf.features.b"),
        ("engine/a.py", "from .. import pipeline", "spacy_hocrf.pipeline"),
        ("engine/a.py", "def f():\n    import spacy.tokens", "spacy.tokens"),
        ("engine/a.pyi", "from thinc.api import Model", "thinc.api.Model"),
        ("engine/a.pyx", "from thinc.backends cimport cblas", "thinc.backends.cblas"),
        (
            "engine/a.pyx",
            "from spacy_hocrf.model cimport (\n    a,  # why\n    b,\n)",
            "spacy_hocrf.model.a",
        ),
        ("engine/a.pyx", "from .. cimport model", "spacy_hocrf.model"),
        ("engine/a.pxd", "cimport cython, spacy_hocrf.features.b as b", "spacy_hocrf.features.b"),
        ("engine/__init__.py", "from ..graph import b", "spacy_hocrf.graph.b"),
        ("graph/a.py", "from ..model.b import c", "spacy_hocrf.model.b.c"),
        ("features/a.py", "from ..engine.b import c", "spacy_hocrf.engine.b.c"),
        ("model/a.py", "from ..engine.b import c", "spacy_hocrf.engine.b.c"),
        ("training/a.py", "from ..features.b import c", "spacy_hocrf.features.b.c"),
        ("pipeline/a.py", "from ..cli import b", "spacy_hocrf.cli.b"),
        ("pipeline/a.py", "from ..joint.b import c", "spacy_hocrf.joint.b.c"),
        ("cli/a.py", "from ..joint.b import c", "spacy_hocrf.joint.b.c"),
        ("graph/a.py", "from ..engine.automaton import b", "spacy_hocrf.engine.automaton.b"),
        ("types.py", "from .errors import Errors", "spacy_hocrf.errors.Errors"),
        ("errors.py", "import spacy_hocrf", "spacy_hocrf"),
        ("__init__.py", "from .pipeline.a import b", "spacy_hocrf.pipeline.a.b"),
    ],
)
def test_forbidden_import_is_named(path, source, offender):
    (offence, *_) = violations(source, f"{PACKAGE}/{path}")
    assert f"imports {offender}:" in offence


@pytest.mark.parametrize(
    "path, source",
    [
        (
            "engine/a.py",
            "import numpy as np\nfrom ..errors import Errors\nfrom .b import c\nfrom . import d",
        ),
        (
            "engine/a.pyx",
            "# from spacy import x\nfrom libc.math cimport exp\ncimport cython\nfrom .b cimport c\n",
        ),
        ("engine/a.pyx", 'cdef extern from "model.h":\n    int f() nogil\n'),
        ("graph/a.py", "from ..arrays import ranges"),
        ("training/a.py", "from ..engine.a import b\nfrom spacy.training import Corpus"),
        ("joint/a.py", "from ..pipeline.a import b\nfrom ..graph.a import b"),
        (
            "model/a.py",
            "from thinc.api import Model\nfrom ..features.a import b\nfrom spacy_hocrf import __version__",
        ),
        ("pipeline/a.py", "import spacy\nfrom ..training.a import b"),
        ("cli/__init__.py", "from ..pipeline import a\nfrom .b import c"),
        ("__init__.py", "from .types import Segment\nfrom .errors import Errors"),
    ],
)
def test_permitted_import_passes(path, source):
    assert violations(source, f"{PACKAGE}/{path}") == []


def test_unknown_layer_is_an_offence():
    assert violations("", f"{PACKAGE}/utils.py") == ["spacy_hocrf/utils.py: 'utils' is no layer"]


def violations(source: str, path: str) -> list[str]:
    """What in this source of the file PATH, relative to the folder above the package, crosses a
    layer.
    """
    *package, module = path.rsplit(".", 1)[0].split("/")
    here = [*package, module][1].replace("__init__", "")
    if here not in MAY_IMPORT:
        return [f"{path}: '{here}' is no layer"]
    read = python_imports if path.endswith((".py", ".pyi")) else cython_imports
    offences = []
    for name, line in read(source, package):
        top, _, rest = name.partition(".")
        there = rest.split(".")[0]
        if top == PACKAGE:
            there = there if there in MAY_IMPORT else ""  # a name of the package's own __init__
            if there == "joint" and path in NOT_YET:
                continue
            if there != here and there not in MAY_IMPORT[here]:
                offences.append(
                    f"{path}:{line} imports {name}: '{here}' may import {sorted(MAY_IMPORT[here])}"
                )
        elif top in SPACY and here in NEVER_HEARD_OF_SPACY:
            offences.append(f"{path}:{line} imports {name}: '{here}' has never heard of spaCy")
    return offences


def python_imports(source: str, package: list[str]) -> Iterator[tuple[str, int]]:
    """Absolute name and line of all that a .py or .pyi in this package imports."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = absolute("." * node.level + (node.module or ""), package)
            yield from ((f"{base}.{alias.name}", node.lineno) for alias in node.names)


def cython_imports(source: str, package: list[str]) -> Iterator[tuple[str, int]]:
    """The same of a .pyx or .pxd, where import may be cimport."""
    for found in CYTHON_IMPORT.finditer(source):
        line = source.count("\n", 0, found.start()) + 1
        names = re.sub(r"#[^\n]*|[()\\]", " ", found["names"] or found["modules"]).split(",")
        base = absolute(found["module"], package) + "." if found["module"] else ""
        yield from ((base + name.split()[0], line) for name in names if name.strip())


def absolute(module: str, package: list[str]) -> str:
    """`module` as an absolute name; one dot is `package`, each further dot is one level up."""
    name = module.lstrip(".")
    level = len(module) - len(name)
    return (
        ".".join([*package[: len(package) - level + 1], *filter(None, [name])]) if level else name
    )
