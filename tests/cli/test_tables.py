"""Tables as files: LaTeX that prints what stands in a cell, CSV, and JSON."""

import csv
import json

import pytest

from spacy_hocrf.cli.tables import write_results

HEADER = ("", "F", "B-A")
ROWS = [("a_b & 100% {x}", "93.00", "-0.52"), ('say "no", ±', "90.10", "+1.00")]


def test_latex_has_the_rules_of_booktabs_and_prints_every_letter(tmp_path):
    path = tmp_path / "new" / "table.tex"
    write_results(path, {}, HEADER, ROWS)
    lines = path.read_text(encoding="utf8").splitlines()
    assert lines == [
        r"% \usepackage{booktabs}",
        r"\begin{tabular}{lrr}",
        r"\toprule",
        r" & F & B-A \\",
        r"\midrule",
        r"a\_b \& 100\% \{x\} & 93.00 & $-$0.52 \\",
        r'say "no", $\pm$ & 90.10 & +1.00 \\',
        r"\bottomrule",
        r"\end{tabular}",
    ]


@pytest.mark.parametrize(
    "cell, printed",
    [
        ("-", "-"),
        ("-x", "-x"),
        ("-.5", "$-$.5"),
        (r"C:\new", r"C:\textbackslash{}new"),
        ("#1 $2 ~3^4", r"\#1 \$2 \textasciitilde{}3\textasciicircum{}4"),
        ("<i>", r"\textless{}i\textgreater{}"),
    ],
)
def test_what_tex_takes_for_something_else(tmp_path, cell, printed):
    write_results(tmp_path / "t.tex", {}, HEADER, [(cell, "", "")])
    assert f"{printed} &  &  \\\\" in (tmp_path / "t.tex").read_text(encoding="utf8").splitlines()


def test_csv_is_read_as_it_was_written(tmp_path):
    write_results(tmp_path / "table.CSV", {}, HEADER, ROWS)
    with (tmp_path / "table.CSV").open(encoding="utf8", newline="") as file:
        assert [tuple(row) for row in csv.reader(file)] == [HEADER, *ROWS]


def test_any_other_name_is_for_all_numbers(tmp_path):
    write_results(tmp_path / "results.txt", {"f": 0.9301}, HEADER, ROWS)
    assert json.loads((tmp_path / "results.txt").read_text(encoding="utf8")) == {"f": 0.9301}
