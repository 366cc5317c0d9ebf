"""Every block of code of README, of docs/ and of the projects' READMEs runs, or says why it does not.

The commands of docs/start.md are run first. Every other page begins in a copy of the folder that they
leave, and its blocks are run in their order by `page_blocks`. What stands right below a block is what it
prints, but for other last digits. Here no package is installed and no wheel built, and commands of projects
are run dry; `.ci/run` runs the pages that a reader begins with as they are written.
"""

import os
import shutil

import pytest
import spacy
from documentation import ROOT, code_of, pages, with_parents
from page_blocks import START, run_page
from thinc.api import Config

PROJECTS = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("project/*/README.md"))
PAGES = [name for name in (*pages(), "CONTRIBUTING.md", *PROJECTS) if [*code_of(name)]]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        os.name == "nt" or shutil.which("bash") is None or not PROJECTS,
        reason="needs bash with the paths of Python, and the projects",
    ),
]


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    """The folder that the commands of the first page leave, and what its blocks need besides."""
    folder = tmp_path_factory.mktemp("started")
    (folder / "project").symlink_to(ROOT / "project")
    run_page(START, folder)
    return folder


@pytest.mark.parametrize("name", [name for name in PAGES if name != START])
def test_blocks_of_a_page_run(name, started, tmp_path):
    folder = tmp_path / "folder"
    shutil.copytree(started, folder, symlinks=True)
    run_page(name, folder)


def test_blocks_of_the_first_page_run(started):
    model = spacy.load(started / "model" / "model-last")
    assert model.pipe_names == ["hocrf"]
    (package,) = started.glob("packages/*_mine-*/*_mine/*_mine-*")
    assert spacy.load(package)("Ada Lovelace. 1843. Notes.").ents


PARTS = [block for name in PAGES for block in code_of(name) if block.reason.startswith("a part of")]


@pytest.mark.parametrize("block", PARTS, ids=lambda block: block.page)
def test_parts_of_configs_are_in_them(block):
    path = (ROOT / block.page).parent / block.reason.removeprefix("a part of ")
    whole = Config().from_disk(path, interpolate=False)
    part = Config().from_str(with_parents(block.code), interpolate=False)
    assert whole.copy().merge(part) == whole


def test_few_blocks_are_not_run(capsys):
    """They are listed by `pytest -s`, and in any case when there are more; `.ci/run` runs further ones."""
    found = [block for name in PAGES for block in code_of(name)]
    left = [block for block in found if block.reason and not block.reason.startswith("`.ci/run`")]
    reasons = [f"{block.page}:{block.line} {block.language}: {block.reason}" for block in left]
    with capsys.disabled():
        print(f"\n{len(found) - len(reasons)} blocks of code are run, {len(reasons)} are not:")
        print(*sorted(reasons), sep="\n")
    assert len(reasons) <= MAX_LEFT_OUT, "\n".join(reasons)


MAX_LEFT_OUT = 18
