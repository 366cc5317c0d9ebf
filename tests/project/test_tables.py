"""`python project/common/tables.py`: tables of READMEs from the documents that commands have written."""

import pytest
import srsly
import typer

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


@pytest.mark.slow
def test_what_a_command_prints_in_a_copy_is_compared_and_written(module, tmp_path, capfd):
    """A row of the table "Second", which has 6.00; and it writes a document of its own."""
    folder = tmp_path / "name"
    srsly.write_yaml(
        folder / "project.yml", {"commands": [{"name": "why", "script": ["python write.py"]}]}
    )
    origins = {"Second: k": {"run": "why", "within": 0.3}, "First: ": "words"}
    said = {"name": {"runs": {"why": 1, "how": "hours"}, "tables": origins}}
    srsly.write_yaml(tmp_path / "tables.yml", said)

    def print_row(row):
        head = "| k | order 1 | order 2 |\\n| - | - | - |\\n"
        text = f"print('{head}{row}')\nopen('results.md', 'w').write('anew')\n"
        (folder / "write.py").write_text(text, encoding="utf8")

    print_row("| 2 | 5.00 | 6.30 |")
    module.main(["name"], cheap=1, check=True)
    print_row("| 2 | 5.00 | 6.70 |")
    with pytest.raises(typer.Exit):
        module.main(["name"], run="why", check=True)
    assert "  printed.md, Second: 2 | order 2: 6.00 → 6.70\n" in capfd.readouterr().out
    assert readme(tmp_path) == README and (folder / "results.md").read_text() == DOCUMENT
    module.main(["name"], cheap=1)
    assert readme(tmp_path) == README.replace("| 6.00", "| 6.70")
    assert (folder / "results.md").read_text() == "anew"
    print_row("| 3 | 5.00 | 6.70 |")
    with pytest.raises(typer.Exit):
        module.main(["name"], cheap=1, check=True)
    assert "Second: k | order 1 | order 2: `why` does not print it" in capfd.readouterr().out
    print_row("no such name', no_such_name, '")
    with pytest.raises(typer.Exit):
        module.main(["name"], cheap=1)
    module.main(["name"], cheap=0, check=True)


@pytest.mark.parametrize(
    "column, old, new, origin, same",
    [
        ("CPU s", "7.2", "99", {}, True),
        ("evaluations", "190", "200", {}, True),
        ("patterns", "190", "191", {"within": 9}, False),
        ("ours", "190 pairs", "191 pairs", {"columns": {"ours": 1}}, True),
        ("F1", "86.38", "86.38 (86.20)", {"within": 9}, False),
        ("p", "0.638 <", "0.638 >", {"within": "p"}, False),
        ("p", "0.638 <", "0.501 <", {"within": "p"}, True),
        ("adds (p)", "+0.14 (0.7792)", "**+0.15 (0.6000)**", {"within": 0.01}, True),
        ("adds (p)", "+0.14 (0.7792)", "+0.14 (0.1000)", {"within": 0.01}, False),
        ("F1", "86.38", "86.39", {}, False),
        ("F1", "86.38", "86.68", {"within": 0.3}, True),
        ("F1", "86.38", "86.70", {"within": 0.3}, False),
        ("F1", "86.38", "86.57", {"spans": 1103}, True),
        ("F1", "86.38", "86.58", {"spans": 1103}, False),
        ("F1", "86.38", "88.38", {"spans": "gold"}, True),
        ("F1", "86.38", "88.40", {"spans": "gold"}, False),
        ("n·f", "86.38", "86.90", {"spans": "gold", "columns": {"n·f": 0.5}}, False),
    ],
)
def test_a_figure_may_differ_by_so_much_and_no_more(module, column, old, new, origin, same):
    change = module.Change(("C1", new), column, old, new, {column: new, "gold": "100"})
    assert module.tolerated(change, origin) is same


def test_rows_are_told_apart_by_as_many_columns_as_it_takes(module):
    text = """| model | order | F1 |
| --- | ---: | ---: |
| CRF | 1 | 5 |
| CRF | 2 | 5 |
"""
    (table,) = module.tables(text)
    assert (table.n_keys, table.line, table.heading) == (2, 2, "")
    assert module.likeness(table, table) == (True, 2, True, 6)
