"""The public face, and that all that a reader is shown imports from it alone."""

import ast
import json
import re
from pathlib import Path

import numpy as np
import pytest
from spacy.util import registry

from spacy_hocrf import api

ROOT = Path(__file__).parents[1]
PUBLIC = {"spacy_hocrf", "spacy_hocrf.api", "spacy_hocrf.pycrfsuite", "spacy_hocrf.sklearn"}
IMPORT = re.compile(
    r"^ *(?:from (spacy_hocrf[\w.]*) import +(.*)|import (spacy_hocrf[\w.]*))", re.M
)
SHOWN = sorted(
    path
    for place in ("README.md", "docs", "examples", "project")
    for path in [ROOT / place, *(ROOT / place).rglob("*")]
    if path.suffix in {".md", ".py", ".ipynb"}
)


def imported(path):
    """Modules of ours, and what is taken from the package itself."""
    text = path.read_text(encoding="utf8")
    if path.suffix == ".ipynb":
        text = "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
    for found in IMPORT.finditer(text):
        module, names = found[1] or found[3], found[2]
        yield module
        if module == "spacy_hocrf":
            yield from (f"{module}.{name.split()[0]}" for name in (names or "").split(","))


def test_every_name_is_there():
    assert dir(api) == api.__all__ == sorted(api.__all__)
    assert all(callable(getattr(api, name)) or name.isupper() for name in api.__all__)
    assert api.Viterbi is __import__("spacy_hocrf.answers.decoders", fromlist=["x"]).Viterbi


def test_another_name_is_none():
    with pytest.raises(AttributeError, match="no attribute 'Viterby'"):
        _ = api.Viterby


def test_names_of_the_stub_stand_once_and_under_their_own_name():
    tree = ast.parse((ROOT / "spacy_hocrf" / "api.pyi").read_text(encoding="utf8"))
    names = [(each.name, each.asname) for node in tree.body for each in node.names]
    assert all(name == known_as for name, known_as in names)
    assert len(names) == len(set(names)) == len(api.__all__)


def test_what_is_shown_imports_from_the_public_face_alone():
    found = {(str(path.relative_to(ROOT)), name) for path in SHOWN for name in imported(path)}
    assert len(found) > 30
    assert {(path, name) for path, name in found if name not in PUBLIC} == set()


def test_an_import_from_elsewhere_is_seen(tmp_path):
    path = tmp_path / "a.py"
    path.write_text(
        "def f():\n    from spacy_hocrf.types import TOKEN\nfrom spacy_hocrf import dispatch\n"
    )
    assert [*imported(path)] == ["spacy_hocrf.types", "spacy_hocrf", "spacy_hocrf.dispatch"]


@pytest.mark.parametrize(
    "place, name, settings",
    [
        ("misc", "SingleLinkage", {"min_overlap": 2, "max_docs": 3}),
        ("misc", "LinkPairs", {"window": 2}),
        ("misc", "AtMost", {"most": 2}),
        ("misc", "IdenticalPhrases", {"min_length": 1, "max_length": 2, "weight": 1}),
        ("misc", "Token", {"attrs": ["NORM"], "window": [1], "order": 1}),
        ("misc", "CharNgrams", {"prefix": [2]}),
        ("batchers", "batch_by_group", {"size": 100}),
    ],
    ids=lambda found: found if isinstance(found, str) else "",
)
def test_a_script_may_count_in_numbers_of_numpy(place, name, settings):
    given = {
        key: [np.int64(x) if isinstance(x, int) else x for x in value]
        if isinstance(value, list)
        else np.int64(value)
        for key, value in settings.items()
    }
    assert registry.get(place, f"spacy-hocrf.{name}.v1")(**given)
