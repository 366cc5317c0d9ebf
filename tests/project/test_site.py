"""The documentation as a site: built without a warning, complete, and searchable without the network."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
from browser import Browser

ROOT = Path(__file__).parents[2]
WAIT = """
new Promise(done => {
  const look = () => {
    const found = [...document.querySelectorAll(".md-search-result__item")].map(e => e.innerText)
    found.length ? done(found) : setTimeout(look, 50)
  }
  look()
})
"""

pytestmark = [
    pytest.mark.skipif(
        not (ROOT / "mkdocs.yml").exists(), reason="docs/ is not in this distribution"
    ),
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in ("mkdocs", "material", "griffe")),
        reason='needs the extra docs: pip install "spacy-hocrf[docs]"',
    ),
]


def loaded(name):
    """A module of docs/."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_is_there_and_nothing_is_fetched(site):
    hooks = loaded("hooks")
    pages = {*hooks.PAGES, *hooks.WHOLE, *map(hooks.project_page, hooks.projects())}
    for page in {*pages, "examples.md", "reference.md"}:
        text = (site / page).with_suffix(".html").read_text(encoding="utf8")
        assert not re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="https?:', text), page


def test_all_codes_and_what_they_say_are_on_the_page(site):
    text = (site / "errors.html").read_text(encoding="utf8")
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


def test_a_heading_without_a_page_is_an_error(monkeypatch, tmp_path):
    hooks = loaded("hooks")
    text = (ROOT / "README.md").read_text(encoding="utf8")
    (tmp_path / "README.md").write_text(text + "\n## Another\n\nx\n", encoding="utf8")
    monkeypatch.setattr(hooks, "ROOT", tmp_path)
    with pytest.raises(hooks.PluginError, match="Another"):
        hooks.readme_pages()


def test_links_go_to_pages():
    hooks = loaded("hooks")
    pages = {**hooks.readme_pages(), **hooks.other_pages()}
    found = hooks.Site(pages)
    home = ("index.md", "README.md")
    assert (
        found.linked(*home, "[a](#which-sigma-which-order)")
        == "[a](training.md#which-sigma-which-order)"
    )
    assert found.linked(*home, "[a](project/answers)") == "[a](projects/answers.md)"
    assert found.linked(*home, "[a](examples/graph.py)") == "[a](examples.md#graphpy)"
    assert found.linked(*home, "`[a](b)` [x](https://a.b)") == "`[a](b)` [x](https://a.b)"
    project = ("projects/answers.md", "project/answers/README.md")
    assert (
        found.linked(*project, "![p](annotate.png)")
        == "![p](../images/project-answers-annotate.png)"
    )
    assert found.images == {"project/answers/annotate.png"}
    assert found.linked(*project, "[d](../defaults)") == "[d](defaults.md)"
    assert found.linked(*project, "[s](scripts/once.py)") == "s (`project/answers/scripts/once.py`)"
    with pytest.raises(hooks.PluginError, match=r"nowhere\.md"):
        found.linked(*home, "[a](nowhere.md)")
    with pytest.raises(hooks.PluginError, match="#nothing"):
        found.linked(*home, "[a](#nothing)")


def test_docstrings_become_lists():
    arguments = "a (int): one,\n    two.\nb, c (Optional[Tuple[int, str]]): more.\n"
    text = f"Does it.\n\n{arguments}RETURNS (bool): yes.\n\nThe end (of it)."
    assert loaded("docstrings").as_markdown(text).splitlines() == [
        "Does it.",
        "",
        "",
        "- **a (int)**: one,",
        "    two.",
        "- **b, c (Optional[Tuple[int, str]])**: more.",
        "- **RETURNS (bool)**: yes.",
        "",
        "",
        "The end (of it).",
    ]
