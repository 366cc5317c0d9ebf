"""`python project/common/tables.py`: tables of READMEs from the documents that commands have written."""

import pytest
import srsly
import typer
from project_checks import PROJECTS

LOADS = ()
README = """# Name

Text.

## First

| k | order 1 | order 2 |
| --- | ---: | ---: |
| 2 | 1.00 | 2.00 |
| 3 | 3.00 | 4.00 |

## Second

| k | order 1 | order 2 |
| --- | ---: | ---: |
| 2 | 5.00 | 6.00 |

## By hand

| k | why |
| --- | --- |
| 2 | so |
"""
DOCUMENT = """# Results

### Second

| k | order 1 | order 2 |
| --- | ---: | ---: |
| 2 | 5.00 | 6.50 |
| 4 | 0.00 | 0.00 |

### First

| k | order 1 | order 2 |
| --- | ---: | ---: |
| 2 | 1.50 | 2.00 |
| 3 | 3.00 | 4.00 |
"""

pytestmark = pytest.mark.skipif(
    not PROJECTS.exists(), reason="project/ is not in this distribution"
)


@pytest.fixture
def module(load, tmp_path, monkeypatch):
    """The script, on one project of a README and a document."""
    folder = tmp_path / "name"
    folder.mkdir()
    (folder / "project.yml").write_text("title: name\n", encoding="utf8")
    (folder / "README.md").write_text(README, encoding="utf8")
    (folder / "results.md").write_text(DOCUMENT, encoding="utf8")
    tables = load("common.tables")
    monkeypatch.setattr(tables, "PROJECTS", tmp_path)
    return tables


def readme(tmp_path):
    return (tmp_path / "name" / "README.md").read_text(encoding="utf8")


def test_cells_that_change_are_printed_and_written(module, tmp_path, capsys):
    module.main()
    printed = capsys.readouterr().out.splitlines()
    assert printed == [
        "name: 2 of 3 tables are in a document",
        "  results.md, First: 2 | order 1: 1.00 → 1.50",
        "  results.md, Second: 2 | order 2: 6.00 → 6.50",
        "2 cells changed",
    ]
    expected = README.replace("1.00", "1.50").replace("6.00", "6.50")
    assert readme(tmp_path) == expected, "and nothing else: no row that the README does not show"
    module.main(["name"])
    assert capsys.readouterr().out.splitlines()[-1] == "0 cells changed"


def test_a_check_fails_and_writes_nothing(module, tmp_path, capsys):
    with pytest.raises(typer.Exit):
        module.main(check=True)
    assert capsys.readouterr().out.endswith("2 cells differ\n")
    assert readme(tmp_path) == README


def test_a_command_is_run_first(module, tmp_path, capsys):
    folder = tmp_path / "name"
    (folder / "metrics").mkdir()
    (folder / "write.py").write_text(
        "open('metrics/new.md', 'w').write('| k | why |\\n| - | - |\\n| 2 | no |\\n')\n",
        encoding="utf8",
    )
    srsly.write_yaml(
        folder / "project.yml", {"commands": [{"name": "why", "script": ["python write.py"]}]}
    )
    module.main(["name"], run="why")
    assert "  new.md, By hand: 2 | why: so → no" in capsys.readouterr().out


def test_rows_are_told_apart_by_as_many_columns_as_it_takes(module):
    text = """| model | order | F1 |
| --- | ---: | ---: |
| CRF | 1 | 5 |
| CRF | 2 | 5 |
"""
    (table,) = module.tables(text)
    assert (table.n_keys, table.line, table.heading) == (2, 2, "")
    assert module.likeness(table, table) == (2, True, 6)
