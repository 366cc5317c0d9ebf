"""Who reads and who writes Docs: every access in the package, against the files that may have it.

The sources are read, not run. What carries Docs is known by its type, since every parameter has one
(mypy is strict), and by what it is made of: what one loops over, indexes, zips, lists or assigns.
Who needs only the length, the vocab or a copy of a Doc reads nothing of it. `probabilities` and
`written_spans` know where predictions are when tokens have been merged, so they ask the Doc.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from spacy.tokens import Doc, Span, Token
from spacy.training import Example

SOURCE = Path(__file__).resolve().parents[1] / "spacy_hocrf"

READERS = {  # besides `features/` and `annotation/`
    "encoder/component.py",
    "joint/extensions.py",
    "joint/groups.py",
    "links/corpus.py",
    "links/extensions.py",
    "links/items.py",
    "cli/annotate/rows.py",
    "cli/auto/texts.py",
    "cli/checking.py",
    "cli/convert/docs.py",
    "cli/counts.py",
}
WRITERS = {  # besides `annotation/`
    "encoder/component.py",
    "joint/extensions.py",
    "links/corpus.py",
    "links/extensions.py",
    "cli/convert/docs.py",
}

CLASSES = (Doc, Span, Token, Example)
CARRIERS = {"SpanGroup", *(each.__name__ for each in CLASSES)}
STEPS = {"doc", "docs", "predicted", "reference", "x", "y"}  # from what carries Docs to a Doc
HARMLESS = {*STEPS, "vocab", "copy", "has_extension", "set_extension", "get_extension"}
MEMBERS = {
    name for each in CLASSES for name in dir(each) if not name.startswith("__")
} - HARMLESS  # fmt: skip
WRITING = {"set_ents", "set_doc", "from_array", "from_bytes", "from_dict", "from_disk", "from_json"}
WRITING |= {"retokenize", "set_vector"}
CHANGING = {"append", "clear", "extend", "pop", "remove", "set", "setdefault", "update"}
THROUGH = {"list", "tuple", "sorted", "reversed", "iter", "next", "islice", "filter", "chain"}


@pytest.mark.slow
def test_docs_are_read_and_written_where_the_rule_says():
    offences = []
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        offences += offences_of(name, path.read_text(encoding="utf8"))
    assert not offences, "\n" + "\n".join(offences)


@pytest.mark.parametrize("name", sorted(READERS))
def test_who_may_read_does(name):
    kinds = {kind for kind, _, _ in accesses((SOURCE / name).read_text(encoding="utf8"))}
    assert "reads" in kinds
    assert ("writes" in kinds) == (name in WRITERS)


@pytest.mark.parametrize(
    "body, found",
    [
        ("doc.ents = []", "writes ents"),
        ("doc.ents, a = [], 1", "writes ents"),
        ("doc.set_ents([])", "writes set_ents"),
        ("doc.from_array([80], a)", "writes from_array"),
        ("doc.spans['sc'] = []", "writes spans"),
        ("doc.spans['sc'].append(a)", "writes append"),
        ("del doc.spans['sc']", "writes spans"),
        ("doc.user_data['a'] = 1", "writes user_data"),
        ("doc[0].tag_ = 'NN'", "writes tag_"),
        ("doc._.x = 1", "writes x"),
        ("doc._.set('x', 1)", "writes set"),
        ("for token in doc:\n        token.tag += 1", "writes tag"),
        ("for i, (each, a) in enumerate(zip(docs, docs)):\n        a.tensor = i", "writes tensor"),
        ("doc.to_array(['ORTH'])", "reads to_array"),
        ("return doc[:3].text", "reads text"),
        ("return [t.is_space for t in doc]", "reads is_space"),
        ("return {t.lower_: 1 for each in docs for t in each}", "reads lower_"),
        ("return sorted(docs, key=lambda each: each.text)", "reads text"),
        ("each = list(docs)[0]\n    return each.ents", "reads ents"),
        ("return batch.docs[0].text", "reads text"),
        ("return [e.predicted.ents for e in examples]", "reads ents"),
        ("return example.reference.spans", "reads spans"),
        ("return example.get_aligned('TAG')", "reads get_aligned"),
        ("return doc._.get('x')", "reads _"),
        ("def g(quoted: 'Doc'):\n        return quoted.text", "reads text"),
    ],
)
def test_an_access_is_found(body, found):
    kind, member = found.split()
    assert (kind, member) in {(kind, member) for kind, member, _ in accesses(function(body))}
    for name in ("learning/corpus.py", "model/a.py", "joint/component.py"):
        assert any(f"{kind} {member}" in each for each in offences_of(name, function(body)))


@pytest.mark.parametrize(
    "body",
    [
        "return len(doc) + sum(map(len, docs))",
        "return doc.vocab.strings",
        "return doc.copy()",
        "batch = []\n    batch.append(doc)\n    batch += docs",
        "return [a.spans for each, a in zip(docs, annotations)]",
        "return [a.text for i, (a, each) in enumerate(zip(annotations, docs))]",
        "return annotations.spans, annotations.text, annotations.tag_",
        "return batch.column('ORTH')",
    ],
)
def test_what_reads_nothing_is_no_access(body):
    assert list(accesses(function(body))) == []


def function(body):
    """A function of a Doc, Docs, an Example, Examples, a batch and annotations, with this body."""
    return (
        "def f(doc: Doc, docs: Sequence[Doc], example: Example, examples: Iterable[Example],\n"
        f"      batch: TokenBatch, annotations: Any, a: int):\n    {body}\n"
    )


def offences_of(name: str, source: str) -> list[str]:
    """What in this source of the file NAME, relative to the package, the rule forbids."""
    allowed = {
        "reads": name in READERS or name.startswith(("annotation/", "features/")),
        "writes": name in WRITERS or name.startswith("annotation/"),
    }
    return [
        f"{name}:{line} {kind} {member} of a Doc"
        for kind, member, line in accesses(source)
        if not allowed[kind]
    ]


def accesses(source: str) -> Iterator[tuple[str, str, int]]:
    """Each access to the content of a Doc: "reads" or "writes", the member, and the line."""
    tree = ast.parse(source)
    known = carriers(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in MEMBERS and carries(node.value, known):
            yield ("writes" if stored(node) else "reads"), node.attr, node.lineno
        elif stored(node) and is_content(node.value, known):
            yield "writes", member_of(node), node.lineno
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            method, value = node.func.attr, node.func.value
            wrote = method in WRITING and carries(value, known)
            if wrote or (method in CHANGING and is_content(value, known)):
                yield "writes", method, node.lineno


def carriers(tree: ast.AST) -> set[tuple[ast.AST, str]]:
    """Functions, and names in them that stand for Docs, or for what Docs are in."""
    known: set[tuple[ast.AST, str]] = set()
    mark_scopes(tree, tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.arg | ast.AnnAssign) and is_of_docs(node.annotation):
            name = node.arg if isinstance(node, ast.arg) else node.target
            known |= {(node.scope, name)} if isinstance(name, str) else names_in(name)
    before = -1
    while before < len(known):
        before = len(known)
        for node in ast.walk(tree):
            if isinstance(node, ast.For | ast.comprehension):
                known |= bound(node.target, node.iter, known)
            elif isinstance(node, ast.Assign):
                known |= {each for name in node.targets for each in bound(name, node.value, known)}
            elif isinstance(node, ast.Call) and any(carries(each, known) for each in node.args):
                keys = [each.value for each in node.keywords if isinstance(each.value, ast.Lambda)]
                known |= {(key, arg.arg) for key in keys for arg in key.args.args}
    return known


def mark_scopes(node: ast.AST, scope: ast.AST) -> None:
    """Give every node the innermost function that it is in."""
    for child in ast.iter_child_nodes(node):
        child.scope = scope  # type: ignore[attr-defined]
        is_function = isinstance(child, ast.FunctionDef | ast.Lambda)
        mark_scopes(child, child if is_function else scope)
        if is_function:
            child.outer = scope  # type: ignore[attr-defined]


def is_of_docs(annotation: ast.AST | None) -> bool:
    """Does a type name Docs, other than as what something takes?"""
    words = set() if annotation is None else set(re.findall(r"\w+", ast.unparse(annotation)))
    return bool(words & CARRIERS) and not words & {"Callable", "Model"}


def bound(target: ast.AST, value: ast.AST, known: set) -> set[tuple[ast.AST, str]]:
    """Names in a target that stand for Docs when it is bound to a value, or to what is in it."""
    called = (
        value.func.id if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) else ""
    )
    if isinstance(target, ast.Tuple) and called == "enumerate":
        return bound(target.elts[1], value.args[0], known)
    parts = value.args if called == "zip" else getattr(value, "elts", None)
    if isinstance(target, ast.Tuple) and parts is not None and len(parts) == len(target.elts):
        return {each for pair in zip(target.elts, parts) for each in bound(*pair, known)}
    return names_in(target) if carries(value, known) else set()


def names_in(target: ast.AST) -> set[tuple[ast.AST, str]]:
    """The names that a target binds; attributes and items have none."""
    parts = getattr(target, "elts", [target])
    return {(part.scope, part.id) for part in parts if isinstance(part, ast.Name)}


def carries(node: ast.AST, known: set) -> bool:
    """Does an expression stand for Docs, or for what Docs are in?"""
    match node:
        case ast.Name():
            scope = node.scope
            while scope is not None:
                if (scope, node.id) in known:
                    return True
                scope = getattr(scope, "outer", None)
            return False
        case ast.Attribute():
            return node.attr in {"docs", "predicted", "reference"} or (
                node.attr in {*STEPS, *MEMBERS} and carries(node.value, known)
            )
        case ast.Subscript() | ast.Starred() | ast.NamedExpr():
            return carries(node.value, known)
        case ast.Call(func=ast.Name(id=name)) if name in THROUGH:
            return any(carries(each, known) for each in node.args)
        case ast.Call(func=ast.Attribute(attr="copy" | "values" | "items", value=value)):
            return carries(value, known)
        case ast.IfExp():
            return carries(node.body, known) or carries(node.orelse, known)
        case ast.List() | ast.Tuple():
            return any(carries(each, known) for each in node.elts)
        case ast.ListComp() | ast.GeneratorExp() | ast.SetComp():
            return carries(node.elt, known)
    return False


def is_content(node: ast.AST, known: set) -> bool:
    """Is it, or is it in, a member of a Doc?"""
    while isinstance(node, ast.Attribute | ast.Subscript):
        if isinstance(node, ast.Attribute) and node.attr in MEMBERS and carries(node.value, known):
            return True
        node = node.value
    return False


def stored(node: ast.AST) -> bool:
    """Is it assigned to, or deleted?"""
    target = isinstance(node, ast.Attribute | ast.Subscript)
    return target and isinstance(node.ctx, ast.Store | ast.Del)


def member_of(node: ast.AST) -> str:
    """The last name in an expression such as doc.spans["sc"]."""
    while not isinstance(node, ast.Attribute):
        node = node.value
    return node.attr
