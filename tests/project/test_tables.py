"""`python project/common/tables.py`: tables of READMEs from the documents that commands have written."""

import pytest
import srsly
import typer
from project_checks import PROJECTS

LOADS = ()
README = """# Name

Order 2 has 6.00, not 16.00.

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
        "  line 3 says 6.00, too: Order 2 has 6.00, not 16.00.",
        "2 cells changed",
    ]
    expected = README.replace("| 1.00", "| 1.50").replace("| 6.00", "| 6.50")
    assert readme(tmp_path) == expected, "and nothing else: no row that the README does not show"
    module.main(["name"])
    assert capsys.readouterr().out.splitlines()[-1] == "0 cells changed"


def test_a_check_fails_and_writes_nothing(module, tmp_path, capsys):
    with pytest.raises(typer.Exit):
        module.main(check=True)
    assert capsys.readouterr().out.endswith("2 cells differ\n")
    assert readme(tmp_path) == README


@pytest.fixture
def run_again(module, tmp_path):
    """Compares with what a command prints that has `| 2 | 5.00 | 6.00 |` of the table "Second".

    printed (str): the row that it prints.
    origin (Any): what tables.yml says of that table.
    """

    def compare(printed, origin, **options):
        script = f"print('| k | order 1 | order 2 |\\n| - | - | - |\\n{printed}')"
        folder = tmp_path / "name"
        (folder / "write.py").write_text(
            f"{script}\nopen('results.md', 'w').write('anew')\n", encoding="utf8"
        )
        commands = [{"name": "why", "script": ["python write.py"]}]
        srsly.write_yaml(folder / "project.yml", {"commands": commands})
        said = {"name": {"runs": {"why": 1}, "tables": {"Second: k": origin}}}
        srsly.write_yaml(tmp_path / "tables.yml", said)
        module.main(["name"], **options)
        return (folder / "results.md").read_text(encoding="utf8")

    return compare


def test_what_a_command_prints_in_a_copy_is_compared_and_written(run_again, tmp_path, capfd):
    with pytest.raises(typer.Exit):
        run_again("| 2 | 5.00 | 6.70 |", "why", run="why", check=True)
    assert "  printed.md, Second: 2 | order 2: 6.00 → 6.70\n" in capfd.readouterr().out
    assert readme(tmp_path) == README
    assert run_again("| 2 | 5.00 | 6.70 |", "why", cheap=1) == "anew"
    assert readme(tmp_path) == README.replace("| 6.00", "| 6.70")


@pytest.mark.parametrize(
    "printed, origin",
    [
        ("| 2 | 5.00 | 6.30 |", {"run": "why", "within": 0.3}),
        ("| 2 | 5.00 | 6.30 |", {"run": "why", "columns": {"order 2": 0.3}}),
        ("| 2 | 5.40 | 6.30 |", {"run": "why", "spans": 500}),
        ("| 2 | 4.00 | 7.00 |", {"run": "why", "within": "p"}),
    ],
)
def test_a_figure_may_differ_by_so_much_and_no_more(run_again, tmp_path, printed, origin, capfd):
    assert run_again(printed, origin, cheap=1, check=True) == DOCUMENT
    less = {key: value if key == "run" else 0.2 for key, value in origin.items()}
    less |= {"spans": 1500} if "spans" in origin else {"within": 0.1, "columns": {}}
    with pytest.raises(typer.Exit):
        run_again(printed, less, cheap=1, check=True)
    with pytest.raises(typer.Exit):
        run_again("| 3 | 5.00 | 6.00 |", origin, cheap=1, check=True)
    assert "Second: k | order 1 | order 2: `why` does not print it" in capfd.readouterr().out
    assert readme(tmp_path) == README


@pytest.mark.parametrize(
    "column, old, new, same",
    [
        ("CPU s", "7.2", "99", True),
        ("evaluations", "190", "200", True),
        ("patterns", "190", "191", False),
        ("adds (p)", "+0.14 (0.7792)", "**+0.15 (0.6000)**", True),
        ("adds (p)", "+0.14 (0.7792)", "+0.14 (0.1000)", False),
        ("F1", "86.38", "86.38 (86.20)", False),
        ("F1", "86.38 <", "86.38 >", False),
    ],
)
def test_times_may_differ_and_counts_and_words_may_not(module, column, old, new, same):
    change = module.Change(("C1", new), column, old, new, {column: new})
    assert module.tolerated(change, {"within": 0.01}) is same


def test_rows_are_told_apart_by_as_many_columns_as_it_takes(module):
    text = """| model | order | F1 |
| --- | ---: | ---: |
| CRF | 1 | 5 |
| CRF | 2 | 5 |
"""
    (table,) = module.tables(text)
    assert (table.n_keys, table.line, table.heading) == (2, 2, "")
    assert module.likeness(table, table) == (True, 2, True, 6)
