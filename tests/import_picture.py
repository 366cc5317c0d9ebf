"""What imports what in a package, read from its sources; nothing is imported, nothing need be built.

    python tests/import_picture.py [FOLDER]     by default that of this checkout's spacy_hocrf

prints a table with a line for each room, which is a folder or a single file of the package, and one
for the house, whose modules are the rooms:

floors    modules on the longest path of imports in the room: how many stairs a reader climbs
arrows    pairs of modules in the room of which one imports the other
circles   groups of modules in the room that import each other in a ring
upward    imports of a room that stands higher in ROOMS
files     modules and textual includes; without stubs (.pyi) and __init__.py
lines     of all files together, and of the longest
trainers  calls of `isinstance` that ask for the class of a trainer, a run or an objective

What a function imports counts as well, and what TYPE_CHECKING hides. Behind the table stand counts of
the whole checkout, among them public classes that share their name with another, docstrings that
cannot be read alone by their first words, and abstract classes that exactly one class inherits from.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from configparser import ConfigParser
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

ROOMS = (
    "arrays", "errors", "warnings", "dispatch", "locks", "types", "",
    "encoder", "engine", "graph", "features", "model", "rules", "training",
    "saving", "annotation", "answers", "learning", "joint", "pipeline", "links",
    "sequences", "pycrfsuite", "sklearn", "cli", "api",
)  # fmt: skip
"""From the lowest to the highest: a room imports rooms before it alone; "" is the package itself."""
SOURCES = {".py", ".pyi", ".pyx", ".pxd"}
COUNTED = {".py", ".pyx", ".pxd", ".pxi", ".h"}
CLASS_OF_TRAINER = re.compile(r"(Trainer|Run|Objective)$")
CYTHON_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<module>[.\w]+)[ \t]+c?import[ \t]*(?P<names>\([^)]*\)|[^\n#]*)"
    r"|c?import[ \t]+(?P<modules>[^\n#]*))",
    flags=re.MULTILINE,
)

Arrows = Mapping[str, Collection[str]]  # module → modules that it imports


class Import(NamedTuple):
    """One module of the package imports another."""

    source: str  # as in pipeline.component
    target: str
    place: str  # file and line


class Picture:
    """The modules of a package and the imports between them.

    folder (Path): the package's own, whose name is the package's.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.package = self.folder.name
        self.files = sorted(path for path in self.folder.rglob("*") if path.suffix in SOURCES)

    @cached_property
    def modules(self) -> list[str]:
        """Names below the package, `__init__` included; "" is the package's own."""
        return sorted({self.module_of(path) for path in self.files})

    @cached_property
    def imports(self) -> list[Import]:
        """Each import of one module by another of the package."""
        found = []
        for path in self.files:
            relative = path.relative_to(self.folder.parent)
            for name, line in imports_of(path.read_text(encoding="utf8"), relative.as_posix()):
                target = self.resolve(name)
                if target not in (None, self.module_of(path)):
                    found.append(Import(self.module_of(path), target, f"{relative}:{line}"))
        return found

    def module_of(self, path: Path) -> str:
        """A file's module, which a stub shares with what it describes."""
        parts = path.relative_to(self.folder).with_suffix("").parts
        return ".".join(part for part in parts if part != "__init__")

    def resolve(self, name: str) -> str | None:
        """The module that an imported name is or is in; None outside the package."""
        top, _, rest = name.partition(".")
        if top != self.package:
            return None
        while rest and rest not in self.modules:
            rest = rest.rpartition(".")[0]
        return rest

    def arrows(self, room: str) -> dict[str, set[str]]:
        """The modules of a room, and which of the others each imports."""
        inside = [name for name in self.modules if room_of(name) == room and name != room]
        found: dict[str, set[str]] = {name: set() for name in inside}
        for each in self.imports:
            if each.source in found and each.target in found:
                found[each.source].add(each.target)
        return found

    def circles(self) -> list[list[str]]:
        """Groups of modules that import each other, anywhere in the package."""
        found: dict[str, set[str]] = {name: set() for name in self.modules}
        for each in self.imports:
            found[each.source].add(each.target)
        return rings(found)

    def upward(self) -> list[Import]:
        """Imports of higher rooms."""
        return [
            each
            for each in self.imports
            if height(room_of(each.target)) > height(room_of(each.source))
        ]

    def rows(self) -> Iterator[tuple[str, ...]]:
        """A line of the table for each room, and one for the house: rooms as if they were files."""
        rooms = sorted({room_of(name) for name in self.modules}, key=height)
        for room in rooms:
            upward = sum(room_of(each.source) == room for each in self.upward())
            name = room or "__init__"
            yield (name, *figures(self.arrows(room)), str(upward), *self.sizes(room))
        house: dict[str, set[str]] = {room: set() for room in rooms}
        for each in self.imports:
            if room_of(each.source) != room_of(each.target):
                house[room_of(each.source)].add(room_of(each.target))
        yield ("**house**", *figures(house), str(len(self.upward())), *self.sizes(None))

    def sizes(self, room: str | None) -> tuple[str, ...]:
        """Files, lines, the longest file and `isinstance` on trainers; of all rooms for None."""
        lines = {
            path: len(path.read_text(encoding="utf8").splitlines())
            for path in self.folder.rglob("*")
            if path.suffix in COUNTED and room in (None, room_of(self.module_of(path)))
        }
        files = sum(path.stem != "__init__" for path in lines)
        longest = max(lines, key=lines.__getitem__)
        sources = [path.read_text(encoding="utf8") for path in lines if path.suffix == ".py"]
        asked = sum(map(asks_for_trainers, sources))
        total = f"{sum(lines.values()):,}"
        return str(files), total, f"{lines[longest]} {longest.name}", str(asked)


HEADER = (
    "room", "floors", "arrows", "circles", "upward", "files", "lines", "longest", "trainers",
)  # fmt: skip


def figures(arrows: Arrows) -> tuple[str, str, str]:
    """Floors, arrows and circles of a graph."""
    count = sum(map(len, arrows.values()))
    return str(floors(arrows)), str(count), str(len(rings(arrows)))


def floors(arrows: Arrows) -> int:
    """Nodes of the longest path; a ring is one node."""
    ring_of = {name: ring[0] for ring in rings(arrows) for name in ring}
    longest: dict[str, int] = {}

    def climb(name: str) -> int:
        if name not in longest:
            members = [each for each in arrows if ring_of.get(each, each) == name]
            below = {ring_of.get(each, each) for member in members for each in arrows[member]}
            longest[name] = 1 + max(map(climb, below - {name}), default=0)
        return longest[name]

    return max((climb(ring_of.get(name, name)) for name in arrows), default=0)


def rings(arrows: Arrows) -> list[list[str]]:
    """Groups of more than one node of which each reaches each other."""
    reached = {name: reach(name, arrows) for name in arrows}
    groups = {
        tuple(sorted(other for other in reached[name] if name in reached[other]))
        for name in arrows
        if name in reached[name]
    }
    return [list(group) for group in sorted(groups)]


def reach(start: str, arrows: Arrows) -> set[str]:
    """All nodes at the end of a path of one arrow or more."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        for name in set(arrows[waiting.pop()]) - found:
            found.add(name)
            waiting.append(name)
    return found


def room_of(module: str) -> str:
    """The folder, or the single file, that a module is in."""
    return module.partition(".")[0]


def height(room: str) -> int:
    """A room's place in ROOMS; rooms that are not there stand at the top."""
    return ROOMS.index(room) if room in ROOMS else len(ROOMS)


def asks_for_trainers(source: str) -> int:
    """Calls of `isinstance` whose second argument names a class of trainers, runs or objectives."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return sum(
        isinstance(call.func, ast.Name)
        and call.func.id == "isinstance"
        and any(
            CLASS_OF_TRAINER.search(node.id)
            for node in ast.walk(call.args[1])
            if isinstance(node, ast.Name)
        )
        for call in calls
    )


def imports_of(source: str, path: str) -> Iterator[tuple[str, int]]:
    """Absolute name and line of all that a source imports.

    path (str): of the file, relative to the folder above the package, with slashes.
    """
    package = path.split("/")[:-1]
    read = python_imports if path.endswith((".py", ".pyi")) else cython_imports
    return read(source, package)


def python_imports(source: str, package: list[str]) -> Iterator[tuple[str, int]]:
    """Absolute name and line of all that a .py or .pyi in this package imports."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = absolute("." * node.level + (node.module or ""), package)
            yield from ((f"{base}.{alias.name}", node.lineno) for alias in node.names)


def cython_imports(source: str, package: list[str]) -> Iterator[tuple[str, int]]:
    """Absolute name and line of all that a .pyx or .pxd in this package imports or cimports."""
    for found in CYTHON_IMPORT.finditer(source):
        line = source.count("\n", 0, found.start()) + 1
        names = re.sub(r"#[^\n]*|[()\\]", " ", found["names"] or found["modules"]).split(",")
        base = absolute(found["module"], package) + "." if found["module"] else ""
        yield from ((base + name.split()[0], line) for name in names if name.strip())


def absolute(module: str, package: list[str]) -> str:
    """`module` as an absolute name; one dot is `package`, each further dot is one level up."""
    name = module.lstrip(".")
    level = len(module) - len(name)
    if not level:
        return name
    return ".".join([*package[: len(package) - level + 1], *filter(None, [name])])


def totals(root: Path, package: str) -> dict[str, int]:
    """What a checkout has how much of.

    root (Path): with setup.cfg, tests/ and project/. package (str): the package's name.
    """
    sources = [path.read_text(encoding="utf8") for path in (root / package).rglob("*.py")]
    trees = [ast.parse(source) for source in sources]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    names = Counter(node.name for node in classes if node.name[0] != "_")
    documented = (ast.AsyncFunctionDef, ast.FunctionDef, ast.ClassDef, ast.Module)
    docs = [ast.get_docstring(node) or "" for node in nodes if isinstance(node, documented)]
    heirs = Counter(
        base.id for node in classes for base in node.bases if isinstance(base, ast.Name)
    )
    config = ConfigParser()
    config.read(root / "setup.cfg", encoding="utf8")
    entries = config["options.entry_points"] if "options.entry_points" in config else {}
    return {
        "lines of the package": lines_below(root / package),
        "lines of tests": lines_below(root / "tests"),
        "lines of projects": lines_below(root / "project"),
        "files of the package": sum(path.suffix in COUNTED for path in (root / package).rglob("*")),
        "registered names": sum(len(group.strip().splitlines()) for group in entries.values()),
        "commands": sum(
            each.partition("\nCOMMANDS = (")[2].partition(")")[0].count(",") for each in sources
        ),
        "error and warning codes": sum(
            len(re.findall(r"^    [HW]\d{3} = ", each, re.M)) for each in sources
        ),
        "public classes that share a name": sum(count for count in names.values() if count > 1),
        "docstrings that begin with Of, As, Those or The same": sum(
            re.match(r"(Of|As|Those|The same)\b", doc) is not None for doc in docs
        ),
        "assert … is not None": sum(
            len(re.findall(r"\bassert .*is not None", each)) for each in sources
        ),
        "abstract classes with exactly one subclass": sum(
            is_abstract(node) and heirs[node.name] == 1 for node in classes
        ),
    }


def lines_below(folder: Path) -> int:
    """Lines of all sources below a folder; what is generated from another one does not count."""
    paths = [path for path in folder.rglob("*") if path.suffix in COUNTED]
    return sum(len(path.read_text(encoding="utf8").splitlines()) for path in paths)


def is_abstract(node: ast.ClassDef) -> bool:
    """Does a class leave a method to those that inherit from it? A protocol is none."""
    raised = [each.exc for each in ast.walk(node) if isinstance(each, ast.Raise) and each.exc]
    named = [each.id for exc in raised for each in ast.walk(exc) if isinstance(each, ast.Name)]
    marked = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
    return "NotImplementedError" in named or any(
        each.id in {"ABC", "abstractmethod"} for each in marked
    )


def main(folder: Path) -> None:
    """Print the table, every circle and import upward by name, and the counts."""
    picture = Picture(folder)
    for cells in (HEADER, ("---",) + ("---:",) * (len(HEADER) - 1), *picture.rows()):
        print(f"| {' | '.join(cells)} |")
    for circle in picture.circles():
        print(f"circle: {', '.join(circle)}")
    for each in picture.upward():
        print(f"upward: {each.place} imports {each.target}")
    for name, count in totals(picture.folder.parent, picture.package).items():
        print(f"{name}: {count:,}")


if __name__ == "__main__":
    main(Path(*sys.argv[1:2] or [Path(__file__).parents[1] / "spacy_hocrf"]))
