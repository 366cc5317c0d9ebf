"""The notebooks of the documentation: each runs in a kernel of its own, and prints what its text says."""

import re
from pathlib import Path

import pytest
from built_site import needs_docs

nbformat = pytest.importorskip("nbformat", reason='pip install "spacy-hocrf[docs]"')

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))
CLAIM = re.compile(r"\*\*(.+?)\*\*")

pytestmark = needs_docs


@pytest.fixture
def executed(site):
    """What the notebook of a name is after all its cells have run, which building the site does."""
    return lambda name: nbformat.read(site / "notebooks" / f"{name}.ipynb", as_version=4)


def printed(cell):
    """The text that a cell has printed, and what it shows of its last value."""
    return "".join(
        output.get("text") or output.data.get("text/html") or output.data["text/plain"]
        for output in cell.get("outputs", ())
    )


def cell_with(notebook, text):
    """The cell of code that has this text."""
    (found,) = (c for c in notebook.cells if c.cell_type == "code" and text in c.source)
    return printed(found)


def test_there_are_notebooks():
    assert len(NOTEBOOKS) == 3


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_stored_without_what_it_prints(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert notebook.cells[0].source.startswith("# ")
    for cell in notebook.cells:
        assert cell.cell_type == "markdown" or (cell.outputs, cell.execution_count) == ([], None)
        assert cell.metadata == {}


@pytest.mark.parametrize("name", [path.stem for path in NOTEBOOKS])
def test_what_is_bold_in_its_text_has_been_printed(executed, name):
    notebook, before, claims = executed(name), "", 0
    following = [printed(cell) for cell in notebook.cells[1:]] + [""]
    for cell, after in zip(notebook.cells, following):
        before += printed(cell)
        for claim in CLAIM.findall(cell.source if cell.cell_type == "markdown" else ""):
            claims += 1
            assert claim in before + after, f"{name} says {claim}"
    assert claims > 1


@pytest.mark.parametrize("name", [path.stem for path in NOTEBOOKS])
def test_it_runs_without_a_warning(executed, name):
    streams = [
        output
        for cell in executed(name).cells
        for output in cell.get("outputs", ())
        if output.output_type == "stream"
    ]
    assert streams and all(output.name == "stdout" for output in streams)


def test_a_correction_and_rules_give_the_fields_that_are_annotated(executed):
    notebook = executed("probabilities")
    assert cell_with(notebook, "found: ").count("found: ") == 1
    first, *others = cell_with(notebook, "reading.best(3)").splitlines()
    right = cell_with(notebook, "book.ents)").splitlines()[0]
    assert all(right not in line for line in (first, *others))
    fields = re.findall(r"(.+?) \((\w+)\)(?: · |$)", right)
    assert [label for _, label in fields] == ["author", "title", "publisher", "date"]
    for text in ("pipe.correct(", "strict(book.text)"):
        found = re.findall(r"^\d\.\d+ (\w+) +(.+)$", cell_with(notebook, text), re.M)
        assert [(words, label) for label, words in found] == fields
    scores = [cell_with(notebook, text).split()[-1] for text in ("trained()\n", "rules = {")]
    assert scores[0] == scores[1]


def test_higher_orders_have_fewer_errors_than_crfsuite_has(executed):
    notebook = executed("from_crfsuite")
    wrong = [float(p) for p in re.findall(r"([\d.]+) %", cell_with(notebook, "GridSearchCV("))]
    assert len(wrong) == 4 and wrong == sorted(wrong, reverse=True)
    assert wrong[3] < 0.3
    assert cell_with(notebook, "names.crfsuite").startswith("b'lCRF'")
    spans = re.findall(r"^\S+ (\w+) +(\w+)$", cell_with(notebook, 'add_pipe("hocrf"'), re.M)
    assert spans == [
        ("FAMILY", "Lovelace"),
        ("GIVEN", "Ada"),
        ("FAMILY", "Turing"),
        ("GIVEN", "Alan"),
    ]
