"""Changes one thing of the package at a time, in a copy, and asks the quick tests whether they notice.

    python tests/mutate.py --seed 0 --mutations 40

What is changed is drawn from the Python of `ROOMS`, those of the component: an operator becomes another one,
a number one more, a condition its opposite, or a statement goes. Printed is each change with the test that
noticed it; last, what nobody has noticed, and how many somebody has.
"""

import argparse
import ast
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("engine", "model", "rules", "saving", "annotation", "answers", "learning", "pipeline")
IGNORED = shutil.ignore_patterns(".git", ".venv", "*cache*", "build", "dist", "site")
TESTS = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow", "-p", "no:cacheprovider"]
MAX_SECONDS = 900  # seconds; tests that do not end have noticed
OTHERS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


def mutants(source: str) -> Iterator[tuple[int, int, str]]:
    """First and last line of a statement or of a condition, and what could stand there instead."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.If | ast.While):
            word = source.splitlines()[node.lineno - 1].split()[0]  # or elif
            for test in (ast.UnaryOp(ast.Not(), node.test), *changed(node.test)):
                new = f"{word} {ast.unparse(test)}:"
                yield node.lineno, node.body[0].lineno - 1, " " * node.col_offset + new
        elif isinstance(node, ast.stmt) and not hasattr(node, "body"):
            gone = isinstance(node, ast.AugAssign | ast.Raise)
            gone |= isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
            for other in (*changed(node), *[ast.Pass()] * gone):
                yield node.lineno, node.end_lineno, " " * node.col_offset + ast.unparse(other)


def changed(part: ast.AST) -> Iterator[ast.AST]:
    """Copies in which one operator or number is another one."""
    for number, _ in enumerate(ast.walk(part)):
        copy = deepcopy(part)
        node = [*ast.walk(copy)][number]
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            node.value += 1
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in OTHERS:
            node.ops[0] = OTHERS[type(node.ops[0])]()
        elif type(getattr(node, "op", None)) in OTHERS:
            node.op = OTHERS[type(node.op)]()
        else:
            continue
        yield copy


def noticed(copy: Path) -> str:
    """The test that fails in the copy; "" if none does."""
    try:
        done = subprocess.run(TESTS, cwd=copy, capture_output=True, text=True, timeout=MAX_SECONDS)
    except subprocess.TimeoutExpired:
        return "they do not end"
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return [*failed, done.stderr or "no test has run"][0] if done.returncode else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--mutations", type=int, default=40)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        copy, missed = Path(folder) / "copy", []
        shutil.copytree(ROOT, copy, ignore=IGNORED)
        if failed := noticed(copy):
            sys.exit(f"without any change: {failed}")
        every = (path for room in ROOMS for path in (copy / "spacy_hocrf" / room).rglob("*.py"))
        paths = sorted(path for path in every if any(mutants(path.read_text(encoding="utf8"))))
        for _ in range(options.mutations):
            [path] = chance.choices(paths, [path.stat().st_size for path in paths])
            source = path.read_text(encoding="utf8")
            first, last, new = chance.choice([*mutants(source)])
            lines = source.splitlines()
            old, lines[first - 1 : last] = lines[first - 1 : last], [new]
            path.write_text("\n".join(lines) + "\n", encoding="utf8")
            told = f"{path.relative_to(copy)}:{first}\n-{chr(10).join(old)}\n+{new}"
            found = noticed(copy)
            path.write_text(source, encoding="utf8")
            missed += [told] * (not found)
            print(f"{told}\n{found or 'NOT NOTICED'}\n", flush=True)
    print("\n".join(["Not noticed:", *missed]))
    print(f"Noticed: {options.mutations - len(missed)} of {options.mutations}")


if __name__ == "__main__":
    main()
