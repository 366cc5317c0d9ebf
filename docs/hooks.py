"""Pages of the site that are made of other files, so that everything is said once: README by its sections,
the projects' READMEs, the examples, and all errors and warnings. Every heading of README has its page here.
"""

import ast
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
README = "README.md"
PAGES = {  # page → its title, and the headings of README on it; those below that are on no page go with them
    "index.md": ("spacy-hocrf", ["", "Two commands", "Ten lines"]),
    "data.md": (
        "Your data",
        [
            "From annotated texts to a model",
            "Texts of other tools",
            "Is the data what it should be?",
        ],
    ),
    "training.md": (
        "Train, read the log, tune",
        ["How training works", "Which sigma, which order?"],
    ),
    "settings.md": (
        "Settings",
        [
            "The factories",
            "Settings of `[components.hocrf]`",
            "`[components.hocrf.model]`",
            "`[components.hocrf.decoder]`",
            "What the defaults rest on",
        ],
    ),
    "trainers.md": (
        "Trainers, and your own parts",
        ["`[components.hocrf.trainer]`", "Your own trainer, decoder, template or dense score"],
    ),
    "features.md": (
        "Features",
        ["`[components.hocrf.model.features]`", "Choosing what it knows", "What has it learnt?"],
    ),
    "encoder.md": ("Over an encoder", ["Over an encoder"]),
    "scores.md": ("Scores and thresholds", ["What the scores mean"]),
    "readings.md": (
        "Asking about a text",
        ["Asking about a text", "Other readings", "Why this span?"],
    ),
    "constraints.md": ("Constraints and corrections", ["Constraints and corrections"]),
    "page.md": (
        "Looking at it",
        ["A page to look at", "Which annotation is wrong, and what to annotate next?"],
    ),
    "compare.md": ("Which of two models is better?", ["Which of two models is better?"]),
    "documents.md": ("Document-level patterns", ["Groups of documents", "Joint features"]),
    "graphs.md": ("Graphs of your own", ["Graphs of your own"]),
    "toolkits.md": ("Coming from a CRF toolkit", ["Coming from a CRF toolkit"]),
    "speed.md": ("Speed", ["Speed"]),
    "science.md": ("The science", ["The science"]),
    "errors.md": ("Troubleshooting", ["Errors", "Saving safely", "Handing a pipeline on"]),
}
WHOLE = {
    "architecture.md": "ARCHITECTURE.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
}
"""Pages that are one file."""

SHIM, WORKER = "https://unpkg.com/iframe-worker/shim", "javascripts/worker.js"

CODES = ("errors.py", "warnings.py")
IMAGES = (".png", ".svg")
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")


class Section(NamedTuple):
    """A heading of README, its level, and what stands below it up to the next heading of any level."""

    level: int
    title: str
    text: str


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages, and the images that they show."""
    pages = {**readme_pages(), **other_pages()}
    found = Site(pages)
    for page, (source, text) in pages.items():
        files.append(File.generated(config, page, content=found.linked(page, source, text)))
    for path in sorted(found.images):
        files.append(File.generated(config, image(path), abs_src_path=str(ROOT / path)))
    return files


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """List the experiments in the menu."""
    for entry in config.nav or []:
        if "Experiments" in entry:
            entry["Experiments"] = [project_page(path) for path in projects()]
    return config


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Search without the network: the theme's script for pages that are opened as files is not at hand."""
    return output.replace(SHIM, posixpath.relpath(WORKER, posixpath.dirname(page.url) or "."))


def on_post_template(output: str, template_name: str, config: MkDocsConfig) -> str:
    """The same of pages that no file is made into."""
    return output.replace(SHIM, WORKER)


# ------------------------------------------------------------ what pages say


def readme_pages() -> dict[str, tuple[str, str]]:
    """The pages of README: each with the file that it is from, and its text."""
    sections = grouped((ROOT / README).read_text("utf8"))
    named = [title for _, titles in PAGES.values() for title in titles]
    if sorted(named) != sorted(sections):
        differing = set(named) ^ set(sections)
        raise PluginError(f"Headings of README and of docs/hooks.py differ: {sorted(differing)}")
    found = {}
    for page, (title, titles) in PAGES.items():
        text = "\n".join(part for each in titles for part in sections[each])
        text = text.removeprefix(f"## {title}\n")  # it is the page's own
        found[page] = README, f"# {title}\n\n" + re.sub(r"\A\s*# .*\n", "", text)
    found["errors.md"] = README, found["errors.md"][1] + "\n".join(codes())
    return found


def grouped(text: str) -> dict[str, list[str]]:
    """The sections that a page of its own can have, by their titles: each with those below it that none
    has. All of level 2 must have one.
    """
    named = {title for _, titles in PAGES.values() for title in titles}
    found, last = dict[str, list[str]](), ""
    for level, title, body in sections_of(text):
        if title in named or level <= 2:
            last = title
        heading = f"{'#' * (2 if title == last else level)} {title}\n" if title else ""
        found.setdefault(last, []).append(heading + body)
    return found


def sections_of(text: str) -> Iterator[Section]:
    """All sections, the first of which has no title."""
    level, title, lines, in_code = 1, "", list[str](), False
    for line in text.splitlines():
        in_code ^= line.startswith("```")
        heading = re.match(r"(##+) (.+)", line)
        if heading and not in_code:
            yield Section(level, title, "\n".join(lines))
            level, title, lines = len(heading[1]), heading[2], []
        else:
            lines.append(line)
    yield Section(level, title, "\n".join(lines))


def other_pages() -> dict[str, tuple[str, str]]:
    """Pages of whole files, of the projects, of the examples; the reference."""
    found = {page: (name, (ROOT / name).read_text("utf8")) for page, name in WHOLE.items()}
    for path in projects():
        found[project_page(path)] = f"{path}/README.md", (ROOT / path / README).read_text("utf8")
    scripts = sorted((ROOT / "examples").glob("*.py"))
    shown = [f"## {path.name}\n\n```python\n{path.read_text('utf8')}```\n" for path in scripts]
    found["examples.md"] = "examples/", "# Examples\n\n" + "\n".join(shown)
    return found


def codes() -> Iterator[str]:
    """Every error and warning, in the order of its number."""
    messages = {}
    for path in sorted((ROOT / "spacy_hocrf").rglob("*.py")):
        if path.name in CODES:
            messages.update(messages_of(path))
    yield "\n## All errors and warnings\n\nWhat stands in braces is filled in.\n"
    for code in sorted(messages):
        text = re.sub(r"([<>&*_`\[\]|])", r"\\\1", messages[code])
        yield f"### {code}\n\n{text}\n"


def messages_of(path: Path) -> dict[str, str]:
    """The codes of a file with what they say."""
    return {
        target.id: ast.literal_eval(node.value)
        for owner in ast.parse(path.read_text("utf8")).body
        if isinstance(owner, ast.ClassDef)
        for node in owner.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def projects() -> list[str]:
    """Folders of the projects that have a README."""
    return sorted(f"project/{path.parent.name}" for path in (ROOT / "project").glob("*/README.md"))


# ------------------------------------------------------------ where links go


class Site:
    """All pages, and where what other files link to is on them.

    pages (dict[str, tuple[str, str]]): the file that each is from, and its text.
    images (set[str]): that are shown, as paths from the root.
    """

    def __init__(self, pages: dict[str, tuple[str, str]]) -> None:
        self.images = set[str]()
        self._anchors = {
            slug(title): page
            for page, (source, text) in pages.items()
            if source == README
            for _, title, _ in sections_of(text)
            if title
        }
        self._anchors |= {slug(title): page for page, (title, own) in PAGES.items() if title in own}
        self._files = {source: page for page, (source, _) in pages.items() if source != README}
        self._files |= {path: project_page(path) for path in projects()}
        self._files[README] = "index.md"

    def linked(self, page: str, source: str, text: str) -> str:
        """A page's text with links to other pages instead of other files."""
        folder = posixpath.dirname(source)
        parts = re.split(r"(^```.*?^```|`[^`\n]+`(?!\]))", text, flags=re.M | re.S)
        parts[::2] = [
            LINK.sub(lambda match: self._link(page, source, folder, match), part)
            for part in parts[::2]
        ]
        return "".join(parts)

    def _link(self, page: str, source: str, folder: str, match: re.Match[str]) -> str:
        mark, shown, target = match.groups()
        if re.match(r"[a-z]+:", target):
            return match[0]
        path, _, anchor = target.partition("#")
        here = posixpath.dirname(page)
        if not path and source != README:
            return match[0]
        if not path or (posixpath.normpath(posixpath.join(folder, path)) == README and anchor):
            to = self._anchors.get(anchor)
            if to is None:
                raise PluginError(f"{source} links to #{anchor}, which is no heading of README")
            return f"{mark}[{shown}]({posixpath.relpath(to, here or '.')}#{anchor})"
        path = posixpath.normpath(posixpath.join(folder, path))
        if path.endswith(IMAGES):
            self.images.add(path)
            return f"{mark}[{shown}]({posixpath.relpath(image(path), here or '.')})"
        if path.startswith("examples/"):
            anchor, to = slug(posixpath.basename(path)), "examples.md"
        elif path in self._files or f"{path}/README.md" in self._files:
            to = self._files.get(path) or self._files[f"{path}/README.md"]
        elif (ROOT / path).exists():
            return f"{shown} (`{path}`)"
        else:
            raise PluginError(f"{source} links to {target}, which is not there")
        return f"[{shown}]({posixpath.relpath(to, here or '.')}{'#' * bool(anchor)}{anchor})"


def slug(title: str) -> str:
    """The anchor of a heading."""
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower())


def project_page(path: str) -> str:
    return f"projects/{posixpath.basename(path)}.md"


def image(path: str) -> str:
    return f"images/{path.replace('/', '-')}"
