"""The documentation as a site: built without a warning, complete, and searchable without the network."""

import importlib.util
import re
import shutil

import pytest
from browser import Browser
from built_site import ROOT, build, needs_docs

WAIT = """
new Promise(done => {
  const look = () => {
    const found = [...document.querySelectorAll(".md-search-result__item")].map(e => e.innerText)
    found.length ? done(found) : setTimeout(look, 50)
  }
  look()
})
"""

pytestmark = needs_docs


def loaded(name):
    """A module of docs/."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_page_is_there_and_nothing_is_fetched(site):
    hooks = loaded("hooks")
    pages = hooks.all_pages()
    assert {"index.md", "start.md", "architecture.md", "projects/answers.md"} < set(pages)
    for page in pages:
        text = (site / page).with_suffix(".html").read_text(encoding="utf8")
        assert not re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="https?:', text), page


def test_all_codes_and_what_they_say_are_on_the_page(site):
    text = (site / "troubleshooting.html").read_text(encoding="utf8")
    known = {
        code
        for path in (ROOT / "spacy_hocrf").rglob("*.py")
        for code in re.findall(r"^    ([HW]\d{3}) = ", path.read_text(encoding="utf8"), re.M)
    }
    assert len(known) > 150 and {f'id="{code.lower()}"' for code in known} <= set(
        re.findall(r'id="[hw]\d{3}"', text)
    )


def test_the_reference_has_methods_that_are_inherited(site):
    text = (site / "reference.html").read_text(encoding="utf8")
    for name in ("SegmentationPipe.reading", "SegmentationPipe.correct", "Reading.probability"):
        assert f'.{name}"' in text
    assert "<strong>RAISES (ValueError)</strong>" in text


def test_search_works_in_a_page_that_is_opened_as_a_file(site):
    with Browser() as browser:
        browser.open(site / "projects" / "answers.html")
        browser.run('document.querySelector("[data-md-component=search-query]").focus()')
        for letter in "tolerance":
            browser.press(letter, text=letter)
        found = browser.run(WAIT)
        assert any("Constraints and corrections" in each for each in found)
        assert browser.faults == []


def test_notebooks_are_shown_with_what_they_print(site):
    text = (site / "notebooks" / "first_model.html").read_text(encoding="utf8")
    assert text.count("28 fields do not fit: 32(1):") == 1 and "&lt;!-- what cell" not in text
    assert '<div class="output">' in text and '<mark class="entity"' in text
    assert (site / "notebooks" / "first_model.ipynb").exists()
    with Browser() as browser:
        browser.open(site / "notebooks" / "first_model.html")
        frame = "document.querySelector('.output iframe')"
        assert browser.run(f"{frame}.srcdoc.startsWith('<!DOCTYPE html>')")
        style = "getComputedStyle(document.querySelector('.output code'))"
        assert browser.run(f"{style}.whiteSpace") == "pre-wrap"
        assert browser.faults == []


def test_every_page_is_in_the_menu():
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf8").split("\nnav:\n")[1]
    pages = {page for page in loaded("hooks").all_pages() if not page.startswith("projects/")}
    assert set(re.findall(r"[\w/-]+\.md", menu)) == pages


def test_a_link_to_a_heading_that_is_not_there_is_an_error(tmp_path):
    for path in ROOT.iterdir():
        if path.name != "README.md":
            (tmp_path / path.name).symlink_to(path)
    shutil.copy(ROOT / "README.md", tmp_path)
    with (tmp_path / "README.md").open("a", encoding="utf8") as readme:
        readme.write("\n[a](docs/start.md#nothing)\n")
    status, messages = build(tmp_path, tmp_path / "site", execute=False)
    assert status == 1 and "#nothing" in messages and "with 1 warnings" in messages


def test_links_go_to_pages():
    hooks = loaded("hooks")
    site = hooks.Site({source: page for page, (source, _) in hooks.all_pages().items()})
    home, data = ("index.md", "README.md"), ("data.md", "docs/data.md")
    project = ("projects/answers.md", "project/answers/README.md")
    for where, link, expected in (
        (home, "[a](docs/data.md)", "[a](data.md)"),
        (home, "[a](docs/training.md#how-training-works)", "[a](training.md#how-training-works)"),
        (home, "[the `a`](docs/data.md)", "[the `a`](data.md)"),
        (home, "[a](#ten-lines)", "[a](#ten-lines)"),
        (home, "[a](project/answers)", "[a](projects/answers.md)"),
        (home, "[a](examples/graph.py)", "[a](examples.md#graphpy)"),
        (home, "`[a](b)` [x](https://a.b)", "`[a](b)` [x](https://a.b)"),
        (data, "[a](training.md#how)", "[a](training.md#how)"),
        (data, "[a](../README.md#ten-lines)", "[a](index.md#ten-lines)"),
        (data, "[a](../project/answers)", "[a](projects/answers.md)"),
        (project, "![p](annotate.png)", "![p](../images/project-answers-annotate.png)"),
        (project, '<img src="annotate.png">', '<img src="../images/project-answers-annotate.png">'),
        (project, "[d](../defaults)", "[d](defaults.md)"),
        (project, "[s](scripts/once.py)", "s (`project/answers/scripts/once.py`)"),
        (project, "[s](../../docs/data.md#x)", "[s](../data.md#x)"),
    ):
        assert site.linked(*where, link) == expected
    assert site.images == {"project/answers/annotate.png"}
    for gone in ("[a](nowhere.md)", '<img src="nowhere.md">'):
        with pytest.raises(hooks.PluginError, match=r"nowhere\.md"):
            site.linked(*home, gone)


def test_docstrings_become_lists():
    arguments = "a (int): one,\n    two.\nb, c (Optional[Tuple[int, str]]): more.\nd, e: less.\n"
    text = f"What is done: it, of\nall.\n\n{arguments}RETURNS (bool): yes.\n\nThe end (of it)."
    assert loaded("docstrings").as_markdown(text).splitlines() == [
        "What is done: it, of",
        "all.",
        "",
        "",
        "- **a (int)**: one,",
        "    two.",
        "- **b, c (Optional[Tuple[int, str]])**: more.",
        "- **d, e**: less.",
        "- **RETURNS (bool)**: yes.",
        "",
        "",
        "The end (of it).",
    ]


def test_the_reference_lists_fields_with_their_comments(tmp_path):
    (tmp_path / "a.py").write_text(
        '"""A module."""\n\nclass A:\n    """Fields."""\n\n'
        "    first: int  # [N] said behind it\n    # said above,\n    # on two lines\n"
        "    second: str = '#'\n    third: int\n\n"
        'class B(NamedTuple):\n    """Two."""\n\n    one: int\n    other: str  # the other\n'
    )
    griffe = pytest.importorskip("griffe")
    extensions = griffe.load_extensions(loaded("docstrings").Lists())
    module = griffe.load("a", search_paths=[tmp_path], extensions=extensions)
    assert module["A"].docstring.value.split("\n\n") == [
        "Fields.",
        "- **first (int)**: [N] said behind it",
        "- **second (str)**: said above, on two lines",
    ]
    assert module["B"].docstring.value.split("\n\n") == [
        "Two.",
        "- **one (int)**",
        "- **other (str)**: the other",
    ]
