"""Every import of the package against the layers: a folder's name is its import permission.

    features → model → rules → annotation → answers → learning → joint → pipeline,
    engine → rules, training, model → saving → learning,  graph → joint,
    engine, joint, pipeline → links,  everything but joint, links → cli,
    engine, model, saving → sequences → pycrfsuite, sklearn

The sources are read, not imported: what a function imports or TYPE_CHECKING hides counts too;
nothing need be built.
"""

from pathlib import Path

import pytest
from import_picture import ROOMS, Picture, height, imports_of, main

PACKAGE = "spacy_hocrf"
SOURCE = Path(__file__).resolve().parents[1] / PACKAGE

SHARED = {
    "",
    "arrays",
    "dispatch",
    "errors",
    "locks",
    "types",
    "warnings",
}  # "" is the package's own __init__
BELOW_PIPELINE = {
    *SHARED, "annotation", "answers", "engine", "features", "model", "rules", "saving", "training"
}  # fmt: skip
MAY_IMPORT = {  # layer → layers that it may import besides itself
    "arrays": set(),
    "errors": set(),
    "warnings": {"errors"},
    "dispatch": {"errors"},
    "locks": set(),
    "types": set(),
    "": {"errors", "types"},
    "encoder": SHARED,
    "engine": SHARED,
    "graph": SHARED,
    "features": SHARED,
    "model": {*SHARED, "features"},
    "rules": {*SHARED, "engine", "features", "model"},
    "training": {*SHARED, "engine"},
    "saving": {*SHARED, "features", "model"},
    "annotation": {*SHARED, "engine", "features", "model", "rules", "training"},
    "answers": {*SHARED, "annotation", "engine", "features", "model", "rules"},
    "learning": {*BELOW_PIPELINE},
    "joint": {*BELOW_PIPELINE, "graph", "learning"},
    "pipeline": {*BELOW_PIPELINE, "joint", "learning"},
    "links": {*SHARED, "annotation", "engine", "features", "joint", "pipeline", "saving"},
    "sequences": {*SHARED, "engine", "features", "model", "saving"},
    "pycrfsuite": {*SHARED, "sequences"},
    "sklearn": {*SHARED, "sequences"},
    "cli": {*BELOW_PIPELINE, "learning", "pipeline", "sequences"} - {"saving"},
    "api": {*ROOMS} - {"api"},
}
NEVER_HEARD_OF_SPACY = {*SHARED, "engine", "graph"}
SPACY = {"spacy", "thinc"}

PICTURE = Picture(SOURCE)


@pytest.mark.slow
def test_every_module_keeps_to_its_layer():
    assert PICTURE.files, f"No sources in {SOURCE}"
    offences = [
        offence
        for path in PICTURE.files
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
        ("joint/a.py", "from ..pipeline.b import c", "spacy_hocrf.pipeline.b.c"),
        ("cli/a.py", "from ..joint.b import c", "spacy_hocrf.joint.b.c"),
        ("joint/a.py", "from ..links.b import c", "spacy_hocrf.links.b.c"),
        ("graph/a.py", "from ..engine.automaton import b", "spacy_hocrf.engine.automaton.b"),
        ("pycrfsuite/a.py", "from ..engine.a import b", "spacy_hocrf.engine.a.b"),
        ("sklearn.py", "from .pycrfsuite.b import c", "spacy_hocrf.pycrfsuite.b.c"),
        ("pipeline/a.py", "from ..sequences.b import c", "spacy_hocrf.sequences.b.c"),
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
        ("joint/a.py", "from ..learning.a import b\nfrom ..graph.a import b"),
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


def test_layers_may_import_lower_ones_alone():
    assert set(MAY_IMPORT) == set(ROOMS)
    for here, allowed in MAY_IMPORT.items():
        assert all(height(there) < height(here) for there in allowed), here


@pytest.mark.slow
def test_no_modules_import_each_other_in_a_ring():
    assert PICTURE.circles() == []


@pytest.fixture
def house(tmp_path):
    """A package whose picture is known: two circles, one import upward."""
    sources = {
        "__init__.py": "from .types import T\n",
        "types.py": "T = 1\n",
        "engine/__init__.py": "",
        "engine/a.py": "from . import b\nfrom .kernels.c import f\nfrom ..types import T\n",
        "engine/b.py": "def f():\n    from .a import g\n",
        "engine/d.py": "from .b import f\nfrom .kernels import c\nfrom ..pipeline import e\n",
        "engine/kernels/__init__.py": "",
        "engine/kernels/c.pyx": "from ...types cimport T\ninclude 'c.pxi'\n",
        "engine/kernels/c.pyi": "from ...types import T\n",
        "engine/kernels/c.pxi": "pass\n" * 4,
        "pipeline/__init__.py": "",
        "pipeline/e.py": "from ..engine.d import f\nisinstance(x, A | BTrainer)\nisinstance(x, A)\n",
    }
    for name, source in sources.items():
        path = tmp_path / "house" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    return Picture(tmp_path / "house")


def test_picture_of_a_package(house, capsys):
    assert house.circles() == [["engine.a", "engine.b"], ["engine.d", "pipeline.e"]]
    (upward,) = house.upward()
    assert upward == ("engine.d", "pipeline.e", "house/engine/d.py:3")
    assert house.arrows("engine")["engine.a"] == {"engine.b", "engine.kernels.c"}
    # floors: d, then the circle of a and b, then kernels.c
    main(house.folder)
    printed = capsys.readouterr().out
    assert "| types | 0 | 0 | 0 | 0 | 1 | 1 | 1 types.py | 0 |" in printed
    assert "| engine | 3 | 5 | 1 | 1 | 5 | 14 | 4 c.pxi | 0 |" in printed
    assert "| pipeline | 1 | 0 | 0 | 0 | 1 | 3 | 3 e.py | 1 |" in printed
    assert "| **house** | 2 | 4 | 1 | 1 | 7 | 19 | 4 c.pxi | 1 |" in printed
    assert "circle: engine.d, pipeline.e" in printed
    assert "upward: house/engine/d.py:3 imports pipeline.e" in printed


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
    offences = []
    for name, line in imports_of(source, path):
        top, _, rest = name.partition(".")
        there = rest.split(".")[0]
        if top == PACKAGE:
            there = there if there in MAY_IMPORT else ""  # a name of the package's own __init__
            if there != here and there not in MAY_IMPORT[here]:
                offences.append(
                    f"{path}:{line} imports {name}: '{here}' may import {sorted(MAY_IMPORT[here])}"
                )
        elif top in SPACY and here in NEVER_HEARD_OF_SPACY:
            offences.append(f"{path}:{line} imports {name}: '{here}' has never heard of spaCy")
    return offences
