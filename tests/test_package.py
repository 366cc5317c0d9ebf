"""What holds for the package as a whole: kernels, public names, entry points, imports, error codes,
no machine paths.

The sources are read beside this file (checkout or unpacked sdist); what is imported is whatever is
installed.
"""

import ast
import configparser
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import textwrap
from importlib.metadata import distribution
from pathlib import Path

import pytest
import srsly

import spacy_hocrf
from spacy_hocrf.dispatch import PATHS

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "spacy_hocrf"
HEADER = (
    "# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, "
    "initializedcheck=False"
)

KERNELS = sorted(SOURCE.rglob("*.pyx"))
MODULES = sorted(
    path
    for path in SOURCE.rglob("*.py")
    if not path.name.startswith("_") or path.name == "__init__.py"
)


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.skipif(
    os.environ.get("HOCRF_TEST_INSTALLED") != "1", reason="HOCRF_TEST_INSTALLED is not 1"
)
def test_the_installed_package_is_tested():
    places = {Path(sysconfig.get_path(kind)).resolve() for kind in ("purelib", "platlib")}
    folder = Path(spacy_hocrf.__file__).resolve().parent
    assert places & set(folder.parents), folder
    wanted = {path.relative_to(SOURCE) for path in SOURCE.rglob("*") if path.suffix in PACKED}
    assert len(wanted) > 300 and not {path for path in wanted if not (folder / path).is_file()}


@pytest.mark.slow
def test_without_a_compiler_that_is_the_first_thing_said():
    pytest.importorskip("Cython", reason="needs the extra 'dev'")
    done = subprocess.run(
        [sys.executable, "setup.py", "bdist_wheel"],
        cwd=ROOT,
        env={**os.environ, "CC": "/no/such/cc -O2"},
        capture_output=True,
        text=True,
    )
    first, *rest = done.stderr.splitlines()
    assert done.returncode == 1 and first.endswith("Missing here: a C compiler (/no/such/cc).")
    assert len(rest) < 10 and any("apt-get install gcc" in line for line in rest)


PACKED = {".py", ".pyx", ".pxi", ".pyi", ".h", ".html", ".css", ".js", ".typed"}


ENTRIES = {
    "a script": "import spacy_hocrf",
    "a module without kernels": "import spacy_hocrf.types",
    "a kernel": "import spacy_hocrf.features.columns",
    "the drop-in classes": "import spacy_hocrf.pycrfsuite",
    "a pipeline": "import spacy; spacy.blank('en').add_pipe('hocrf')",
    "a command": "import sys; sys.argv[1:] = ['hocrf', '--help']; import spacy.cli; spacy.cli.setup_cli()",
}


@pytest.mark.slow
@pytest.mark.parametrize("entry", ENTRIES)
def test_sources_without_kernels_say_what_to_do(entry, tmp_path):
    """A clone, in which Python takes the folder of sources for the package that is installed."""
    compiled = {".so", ".pyd", ".c"}
    shutil.copytree(
        SOURCE,
        tmp_path / "spacy_hocrf",
        ignore=lambda _, names: {name for name in names if Path(name).suffix in compiled},
    )
    done = subprocess.run(
        [sys.executable, "-c", ENTRIES[entry]], capture_output=True, encoding="utf8", cwd=tmp_path
    )
    *_, last = done.stderr.strip().splitlines()
    assert done.returncode == 1 and last.startswith("ImportError: [H480]"), done.stderr
    assert str(tmp_path / "spacy_hocrf") in last and "pip install -e ." in last


@pytest.mark.parametrize("path", KERNELS, ids=name_of)
def test_kernel_begins_with_the_canonical_header(path):
    assert path.read_text(encoding="utf8").split("\n", 1)[0] == HEADER


@pytest.mark.parametrize("path", [path for path in KERNELS if path.stem not in PATHS], ids=name_of)
def test_stub_declares_what_the_kernel_defines(path):
    source = path.read_text(encoding="utf8")
    included = re.findall(r'^include "([^"]+)"', source, flags=re.MULTILINE)
    source += "".join((path.parent / name).read_text(encoding="utf8") for name in included)
    defined = re.findall(
        r"^(?:cdef )?class (\w+)|^def (\w+)|^cpdef\s[^(\n]*?(\w+)\s*\(", source, flags=re.MULTILINE
    )
    stub = ast.parse(path.with_suffix(".pyi").read_text(encoding="utf8"))
    public = {name for names in defined for name in names if name and not name.startswith("_")}
    assert public == public_definitions(stub)


@pytest.mark.slow
@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_all_is_complete_and_sorted(path):
    tree = ast.parse(path.read_text(encoding="utf8"))
    names = declared_all(tree)
    assert names == sorted(names, key=isort_key)
    assert set(names) <= bound_names(tree)
    assert public_definitions(tree) <= set(names)


def test_entry_points_are_those_of_setup_cfg():
    config = configparser.ConfigParser(delimiters=("=",), interpolation=None)
    config.read(ROOT / "setup.cfg", encoding="utf8")
    declared = {
        (group, *(part.strip() for part in line.split("=", 1)))
        for group, lines in config["options.entry_points"].items()
        for line in lines.strip().splitlines()
    }
    assert declared == {
        (entry.group, entry.name, entry.value) for entry in distribution("spacy-hocrf").entry_points
    }


def test_the_long_description_has_no_links_to_files_beside_it():
    metadata = distribution("spacy-hocrf").metadata
    text = metadata["Description"] or str(metadata.get_payload())
    assert metadata["Description-Content-Type"] == "text/markdown" and "# spacy-hocrf" in text
    links = re.findall(r"\]\(([^)\s]*)\)", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    assert links and all(link.startswith(("#", "http")) for link in links)


def test_the_version_is_everywhere_the_same():
    config = configparser.ConfigParser(interpolation=None)
    config.read(ROOT / "setup.cfg", encoding="utf8")
    cited = srsly.read_yaml(ROOT / "CITATION.cff")
    assert cited["version"] == config["metadata"]["version"] == spacy_hocrf.__version__
    readme = (ROOT / "README.md").read_text(encoding="utf8")
    assert f"version = {{{spacy_hocrf.__version__}}}" in readme
    assert all(each["title"] and each["authors"] and each["year"] for each in cited["references"])
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        spacy_hocrf.nothing  # noqa: B018


@pytest.mark.slow
def test_a_pipeline_that_lacks_the_package_names_it():
    """A plain folder, not installed as a package that requires this one."""
    code = """
    import sys
    from catalogue import Registry
    Registry.get_entry_points = lambda self: {}  # none of any package
    Registry.get_entry_point = lambda self, name, default=None: default
    from spacy.util import load_model_from_config
    from thinc.api import Config
    for text in sys.argv[1:]:
        try:
            load_model_from_config(Config().from_str(text), auto_fill=True)
        except Exception as error:
            print(repr(error))
    """
    text = '[nlp]\nlang = "en"\npipeline = ["hocrf"]\n[components]\n[components.hocrf]\nfactory = "hocrf"\n'
    command = [sys.executable, "-c", textwrap.dedent(code)]
    named = '[nlp.before_creation]\n@callbacks = "spacy-hocrf.Required.v1"\n'
    done = subprocess.run(
        [*command, text, text + named], capture_output=True, text=True, check=True
    )
    without, with_name = done.stdout.splitlines()
    assert "E002" in without and "spacy-hocrf.Required.v1" not in without
    assert "E893" in with_name and "spacy-hocrf.Required.v1" in with_name


@pytest.mark.parametrize(
    "entry", distribution("spacy-hocrf").entry_points, ids=lambda entry: entry.name
)
def test_entry_point_resolves(entry):
    assert entry.load() is not None
    # factories and commands have names that users type; what a config names after an @ has a
    # version
    if entry.group not in {"spacy_factories", "spacy_cli", "console_scripts"}:
        assert re.fullmatch(r"spacy-hocrf\.\w+\.v\d+", entry.name)


@pytest.mark.slow
def test_importing_the_package_asks_for_no_optional_dependency():
    found = ask_for_optional("importlib.import_module(module.name)")
    assert found["modules"] > 0
    assert found["asked"] == []


@pytest.mark.slow
def test_an_import_of_an_optional_dependency_is_noticed():
    code = "try:\n        import scipy.optimize\n    except ImportError:\n        pass"
    assert ask_for_optional(code)["asked"] == ["scipy"]


CODED = {
    "Errors": "errors.py",
    "EncoderErrors": "model/errors.py",
    "ModelErrors": "model/errors.py",
    "FeatureErrors": "features/errors.py",
    "AnnotationErrors": "annotation/errors.py",
    "ConstraintErrors": "rules/errors.py",
    "ReadingErrors": "annotation/errors.py",
    "TemperatureErrors": "annotation/errors.py",
    "LinkErrors": "links/errors.py",
    "CommandErrors": "cli/errors.py",
    "SequenceErrors": "sequences/errors.py",
    "Warnings": "warnings.py",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CODED)
def test_codes_ascend_and_are_used(name):
    codes = codes_of(name)
    assert codes and codes == sorted(set(codes)), "not ascending, or one is given twice"
    others = [
        path
        for path in SOURCE.rglob("*.p*")
        if path.suffix in {".py", ".pyx", ".pxi"} and path != SOURCE / CODED[name]
    ]
    text = "\n".join(path.read_text(encoding="utf8") for path in others)
    used = set(re.findall(rf"\b{name}\.([A-Z]\d+)\b", text))
    assert not set(codes) - used, "never raised"
    assert not used - set(codes), "raised and not defined"


def test_no_code_is_given_in_two_files():
    codes = [code for name in CODED for code in codes_of(name)]
    assert len(codes) == len(set(codes))


def codes_of(name: str) -> list[str]:
    """The codes of a class, in their order."""
    (owner,) = (
        node
        for node in ast.parse((SOURCE / CODED[name]).read_text(encoding="utf8")).body
        if isinstance(node, ast.ClassDef) and node.name == name
    )
    return [
        target.id for node in owner.body if isinstance(node, ast.Assign) for target in node.targets
    ]


# Written so that this file does not contain what it looks for.
MACHINE_PATH = re.compile(r"(?<![\w.}])/(?:home|root|Users|work)/[\w.]|\b[A-Z]:\\+Users\b")


@pytest.mark.slow
def test_no_file_names_a_path_of_a_machine():
    found = []
    for path in delivered_files():
        try:
            text = path.read_text(encoding="utf8")
        except UnicodeDecodeError:
            continue
        found += [f"{name_of(path)}: {match.group()}" for match in MACHINE_PATH.finditer(text)]
    assert found == []


def delivered_files() -> list[Path]:
    """Files that git tracks; in an unpacked sdist, those that it lists."""
    listing = SOURCE.with_suffix(".egg-info") / "SOURCES.txt"
    if (ROOT / ".git").exists():
        try:
            command = ["git", "-C", str(ROOT), "ls-files", "-z"]
            names = subprocess.run(
                command, capture_output=True, check=True, encoding="utf8"
            ).stdout.split("\0")
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"git does not list the files: {error}")
    elif (ROOT / "PKG-INFO").exists() and listing.exists():
        names = listing.read_text(encoding="utf8").splitlines()
    else:
        pytest.skip("neither a git checkout nor an unpacked sdist")
    return [ROOT / name for name in names if (ROOT / name).is_file()]


def declared_all(tree: ast.Module) -> list[str]:
    """The list `__all__`; empty where there is none."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == [
            "__all__"
        ]:
            return ast.literal_eval(node.value)
    return []


def public_definitions(tree: ast.Module) -> set[str]:
    """Public functions and classes that this module defines itself."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {
        node.name for node in tree.body if isinstance(node, kinds) and not node.name.startswith("_")
    }


def bound_names(tree: ast.Module) -> set[str]:
    """Every name that the module's own statements bind, wherever they stand."""
    stored = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    imported = {alias.asname or alias.name for node in imports for alias in node.names}
    return stored | public_definitions(tree) | imported


def isort_key(name: str) -> tuple:
    """Constants, then classes, then the rest, each in natural order: ruff's RUF022."""
    rank = 0 if len(name) > 1 and name.isupper() else 1 if name[:1].isupper() else 2
    return rank, [
        (part.isdigit(), int(part) if part.isdigit() else part) for part in re.split(r"(\d+)", name)
    ]


def ask_for_optional(statement: str) -> dict:
    """Run `statement` for every `module` of the package in a fresh interpreter: what optional does
    it look for?

    spaCy and thinc come first, what they try to import is not ours. A finder in front of all others
    sees every attempt, whether or not the dependency is installed and whether or not the failure is
    caught.
    """
    script = f"""\
import importlib, json, pkgutil, sys
import spacy, thinc.api

OPTIONAL = ("matplotlib", "scipy", "sklearn", "threadpoolctl")
asked = set()

class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.split(".")[0] in OPTIONAL:
            asked.add(name.split(".")[0])

for name in [name for name in sys.modules if name.split(".")[0] in OPTIONAL]:
    del sys.modules[name]
sys.meta_path.insert(0, Finder)
import spacy_hocrf
from spacy_hocrf.dispatch import PATHS, instruction_sets
found = pkgutil.walk_packages(spacy_hocrf.__path__, "spacy_hocrf.")
left_out = "__main__", ".sklearn"  # the latter is what an extra is for
# a processor may be unable even to import what is built for others
left_out += tuple(f".kernels.{{path}}" for path in {{*PATHS}} - {{*instruction_sets()}})
modules = [m for m in found if not m.name.endswith(left_out)]
for module in modules:
    {statement}
print(json.dumps({{"modules": len(modules), "asked": sorted(asked)}}))
"""
    # not in ROOT, whose sources would stand in for the installed package
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, encoding="utf8", cwd=ROOT / "tests"
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "docs/science.md"])
def test_the_files_that_are_named_exist(name):
    text = (ROOT / name).read_text(encoding="utf8")
    named = set(re.findall(r"[\w/]*\w+/\w+\.(?:pyx|pxi|py)", text))
    named |= {f"engine/kernels/{name}" for name in re.findall(r"`(\w+\.pxi)`", text)}
    assert len(named) > 20
    assert not [name for name in named if not {*ROOT.glob(name), *SOURCE.glob(name)}]


def test_names_in_the_architecture_lie_where_a_reader_looks():
    """A name without a folder in the folder of the name before it; a dotted name is in its module."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf8")
    arrows = "".join(re.findall(r"```\n(.*?)```", text, re.DOTALL))
    looked, missing = 0, []
    for line in arrows.splitlines():
        folder = ""
        for name in re.findall(r"[\w/]+\.pyx?\b|\w+(?:/\w+)*/(?=[:,\s]|$)", line):
            parts = name.rpartition("/")
            folder = parts[0] or folder
            looked += 1
            missing += [line] * (not (SOURCE / folder / parts[2]).exists())
    dotted = re.findall(r"`([a-z_]+(?:\.[a-z_]+)+)\.([A-Z]\w+)`", text)
    for module, name in dotted:
        path = SOURCE / f"{module.replace('.', '/')}.py"
        defined = path.exists() and f"class {name}" in path.read_text(encoding="utf8")
        missing += [f"{module}.{name}"] * (not defined)
    assert looked > 80 and len(dotted) > 3
    assert not missing
