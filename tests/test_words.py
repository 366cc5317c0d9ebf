"""Words: docstrings that can be read alone, names that mean one thing, files that exist.

What an editor shows of a function is its docstring, without the class or the function before it.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "spacy_hocrf"

LEANS = re.compile(r"(All of it|All of them|As|Itself|Nobody|Of|The same|Those)\b")
"""First words that lean on what stands above."""
MIN_WORDS = 3

SHARED_NAMES = {
    "BaseTrainer": "python-crfsuite's name, which its drop-in must have",
    "Trainer": "python-crfsuite's name, which its drop-in must have",
}
"""Names of public classes that are defined more than once, and why."""

OF_OTHERS = {
    "setup.py": "beside the package",
    "strings.pyx": "spaCy's",
}
"""Names of files in sources that are no files of the package."""

SOURCES = {
    name: path.read_text(encoding="utf8")
    for path in sorted(SOURCE.rglob("*.py*"))
    if path.suffix in {".py", ".pyi"}
    for name in [path.relative_to(SOURCE).as_posix()]
}


@pytest.mark.slow
def test_docstrings_can_be_read_alone():
    docs = [
        (name, doc) for name, source in SOURCES.items() for doc in docstrings(ast.parse(source))
    ]
    assert len(docs) > 1000
    assert not [each for each in docs if LEANS.match(each[1]) or len(each[1].split()) < MIN_WORDS]


@pytest.mark.slow
def test_a_public_class_shares_its_name_with_no_other():
    defined = defaultdict(list)
    for name in filter(re.compile(r".*\.py$").match, SOURCES):
        for node in ast.walk(ast.parse(SOURCES[name])):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                defined[node.name].append(name)
    shared = {name: files for name, files in defined.items() if len(files) > 1}
    assert {name: shared[name] for name in shared.keys() - SHARED_NAMES.keys()} == {}
    assert shared.keys() >= SHARED_NAMES.keys()


def test_files_that_a_source_names_exist():
    known = [f"/{path.relative_to(SOURCE).as_posix()}" for path in SOURCE.rglob("*.*")]
    named = [
        (path.relative_to(SOURCE).as_posix(), name)
        for path in sorted(SOURCE.rglob("*.p*"))
        if path.suffix in {".py", ".pyi", ".pyx", ".pxi"}
        for name in re.findall(r"[\w/]+\.(?:pyx|pxi|py)\b", path.read_text(encoding="utf8"))
    ]
    assert len(named) > 100
    assert not [
        (source, name)
        for source, name in named
        if name not in OF_OTHERS and not any(path.endswith(f"/{name}") for path in known)
    ]


def test_parts_that_a_folder_lists_exist():
    """As `texts       the annotated texts` in the docstring of a package."""
    listed = [
        (name, part)
        for name, source in SOURCES.items()
        if name.endswith("__init__.py")
        for line in re.findall(r"^(\w+(?:, \w+)*)  ", next(docstrings(ast.parse(source)), ""), re.M)
        for part in line.split(", ")
    ]
    assert len(listed) > 5
    assert not [
        (name, part)
        for name, part in listed
        if not [*(SOURCE / name).parent.glob(f"{part}.py*"), *(SOURCE / name).parent.glob(part)]
    ]


def docstrings(tree: ast.AST) -> Iterator[str]:
    """The docstring of each module, class and function that has one."""
    documented = (ast.AsyncFunctionDef, ast.ClassDef, ast.FunctionDef, ast.Module)
    found = (ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, documented))
    return filter(None, found)
