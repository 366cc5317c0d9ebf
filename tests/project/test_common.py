"""What the projects share: results as lines, tables, and plots that cost nothing but themselves."""

import ast
import re
import sys

import pytest
import spacy
import srsly
from project_checks import PROJECTS, check_declarations
from spacy.tokens import Doc, Span
from spacy.training import Example

NAMES = sorted(path.parent.name for path in PROJECTS.glob("*/project.yml"))
SCRIPTS = sorted(PROJECTS.glob("*/scripts/*.py"))


@pytest.fixture
def common(load):
    """Imports a module of the shared folder."""
    return lambda name: load(f"common.{name}")


def test_results_are_written_as_they_come_and_read_again(common, tmp_path, capsys):
    report, path = common("report"), tmp_path / "metrics" / "results.jsonl"

    def results():
        yield {"a": 1, "b": "x"}
        assert path.read_text() == '{"a": 1, "b": "x"}\n', "before the next is asked for"
        yield {"a": 2, "b": "x"}

    report.write_lines(path, results(), lambda result: f"a is {result['a']}")
    assert capsys.readouterr().out == "a is 1\na is 2\n"
    read = report.read_lines(path)
    assert report.group(read, "a") == {1: [read[0]], 2: [read[1]]}
    assert report.group(read, "b", "a") == {("x", 1): [read[0]], ("x", 2): [read[1]]}


def test_tables_have_their_numbers_on_the_right(common):
    table = common("report").table([("a", "b", "1")], ("x", "y", "z"), "ll")
    assert table.splitlines() == ["| x | y | z |", "| --- | --- | ---: |", "| a | b | 1 |"]


@pytest.fixture(params=["with matplotlib", "without matplotlib"])
def has_matplotlib(request, monkeypatch):
    """What is drawn is not there without matplotlib."""
    if request.param == "without matplotlib":
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        return False
    pytest.importorskip("matplotlib", reason='needs it: pip install "spacy-hocrf[benchmark]"')
    return True


def test_a_report_has_its_tables_with_and_without_matplotlib(common, check_plot, tmp_path):
    plot = common("plot")

    def draw(heights):
        figure = plot.figure(4, 3)
        panels = figure.subplots(1, 2)
        for axes in panels:
            axes.plot(heights, label="line")
            plot.tidy(axes)
        plot.legend_above(figure, panels)
        (legend,) = figure.legends
        assert [text.get_text() for text in legend.get_texts()] == ["line"], "once"
        return figure

    output = tmp_path / "folder" / "results.md"
    plot.publish([1, 2], output, lambda _, file: f"# Title\n\n{plot.image('A', file)}", draw)
    printed = check_plot(output.with_suffix(".png"))
    text = output.read_text(encoding="utf8")
    assert text in printed and text.startswith("# Title\n\n")
    assert ("![A](results.png)" in text) == output.with_suffix(".png").exists()


def test_a_plot_that_cannot_be_drawn_costs_no_table(common, tmp_path, capsys):
    pytest.importorskip("matplotlib", reason='needs it: pip install "spacy-hocrf[benchmark]"')

    def draw(results):
        raise ValueError("nothing to draw")

    with pytest.raises(ValueError, match="nothing to draw"):
        common("plot").publish([], tmp_path / "results.md", lambda *_: "# Title", draw)
    assert capsys.readouterr().out == (tmp_path / "results.md").read_text() == "# Title\n"


def example(nlp, text, *spans):
    gold = Doc(nlp.vocab, words=text.split())
    gold.set_ents([Span(gold, *span) for span in spans])
    return Example(Doc(nlp.vocab, words=text.split()), gold)


def test_exact_spans_are_counted(common):
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "A", "pattern": "a"}, {"label": "B", "pattern": "b b"}])
    examples = [
        example(nlp, "a b b", (0, 1, "A"), (1, 3, "B")),  # both right
        example(nlp, "a b b", (0, 1, "B"), (1, 2, "B")),  # a wrong label and a wrong end
        example(nlp, "c", (0, 1, "A")),  # missed
    ]
    assert common("training").count_spans(nlp, examples) == (2, 4, 5)


def test_ratios_of_nothing_are_zero(common):
    ratios = common("scores").ratios
    assert ratios(2, 4, 5) == {"p": 0.5, "r": 0.4, "f": pytest.approx(4 / 9)}
    assert ratios(0, 0, 3) == ratios(0, 3, 0) == ratios(0, 0, 0) == {"p": 0.0, "r": 0.0, "f": 0.0}


@pytest.mark.parametrize("values, written", [([], ""), ([2.0], "+2.0"), ([1.0, 3.0], "+2.0 ± 1.4")])
def test_spread_is_mean_and_deviation(common, values, written):
    assert common("scores").spread(values, 1, sign="+") == written


def test_a_sure_gain_is_bold(common):
    gain = common("scores").gain
    assert (gain(1.0, 0.0499), gain(-1.0, 0.05)) == ("**+1.00 (0.0499)**", "-1.00 (0.0500)")


@pytest.mark.parametrize("path", SCRIPTS, ids=[str(path.relative_to(PROJECTS)) for path in SCRIPTS])
def test_no_script_needs_matplotlib_before_it_draws(path):
    imported = [
        name
        for node in ast.parse(path.read_text(encoding="utf8")).body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (getattr(node, "module", None), *(alias.name for alias in node.names))
    ]
    assert not [name for name in imported if name and name.split(".")[0] == "matplotlib"]


@pytest.mark.parametrize("name", NAMES)
def test_project_declares_what_it_uses(name):
    check_declarations(name)


@pytest.mark.parametrize("name", NAMES)
def test_what_pages_run_of_a_project_is_there(name):
    """In sentences as in blocks."""
    project = srsly.read_yaml(PROJECTS / name / "project.yml")
    known = {*project["workflows"], *(command["name"] for command in project["commands"])}
    root = PROJECTS.parent
    pages = [*root.glob("*.md"), *root.glob("docs/*.md"), *PROJECTS.glob("*/*.md")]
    words = " ".join(word for page in pages for word in page.read_text(encoding="utf8").split())
    runs = set(re.findall(rf"project run ([\w-]+) project/{name}\b", words))
    assert (runs or name == "template") and runs <= known
