"""What the site has beside the pages in docs/, so that everything is said once: README as its first page,
ARCHITECTURE and its like, the projects' READMEs, the examples, the notebooks, and all errors and warnings.
Links are to files of the repository, as GitHub shows them; here they become links between pages.
"""

import ast
import json
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
WHOLE = {
    "index.md": "README.md",
    "architecture.md": "ARCHITECTURE.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
}
"""Pages that are a file which stands elsewhere."""

TROUBLES = "troubleshooting.md"
"""The page that ends with all errors and warnings."""

SHIM, WORKER = "https://unpkg.com/iframe-worker/shim", "javascripts/worker.js"

OUTPUT = "<!-- what cell {} prints -->"
"""Stands where docs/notebooks.py puts that."""

LANGUAGES = {".py": "python", "": "dockerfile"}
"""Of examples, by the ends of their names."""

CODES = ("errors.py", "warnings.py")
IMAGES = (".png", ".svg")
LINK = r"(?P<mark>!?)\[(?P<shown>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^()\s]+)\)"
SHOWN = r'(?P<attribute>src|srcset)="(?P<file>[^":]+)"'
CODE = r"^ *```.*?^ *```$|`[^`\n]+`"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Have all pages with links that go to pages, and the images that they show."""
    pages = all_pages()
    site = Site({source: page for page, (source, _) in pages.items()})
    for page, (source, text) in pages.items():
        written = files.get_file_from_path(page)
        if written is not None:
            files.remove(written)
        files.append(File.generated(config, page, content=site.linked(page, source, text)))
    for path in sorted(site.images):
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


def all_pages() -> dict[str, tuple[str, str]]:
    """Every page: the file or folder that it is from, and its text."""
    found = {path.name: f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md"))}
    found |= WHOLE
    found |= {project_page(path): f"{path}/README.md" for path in projects()}
    pages = {page: (source, (ROOT / source).read_text("utf8")) for page, source in found.items()}
    source, text = pages[TROUBLES]
    pages[TROUBLES] = source, text + "\n".join(codes())
    shown = [
        f"## {path.name}\n\n```{LANGUAGES[path.suffix]}\n{path.read_text('utf8')}```\n"
        for path in sorted((ROOT / "examples").iterdir())
        if path.is_file()
    ]
    for path in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        pages[f"notebooks/{path.stem}.md"] = f"docs/notebooks/{path.name}", as_markdown(path)
    return pages | {"examples.md": ("examples", "# Examples\n\n" + "\n".join(shown))}


def as_markdown(path: Path) -> str:
    """The cells of a notebook, and from where to get it."""
    parts = []
    for cell in json.loads(path.read_text("utf8"))["cells"]:
        text = "".join(cell["source"])
        code = f"```python\n{text}\n```\n\n{OUTPUT.format(cell['id'])}"
        parts.append(code if cell["cell_type"] == "code" else text)
    title, *rest = parts[0].split("\n", 1)
    get = f'<a href="{path.name}" download>Get this page as a notebook</a>, for a clone of the repository'
    return "\n\n".join([title, get, *rest, *parts[1:]]) + "\n"


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
    """Where what files link to is on the site.

    pages (dict[str, str]): the page that each file is.
    images (set[str]): that are shown, as paths from the root.
    """

    def __init__(self, pages: dict[str, str]) -> None:
        self.images = set[str]()
        self._pages = pages | {
            posixpath.dirname(source): page
            for source, page in pages.items()
            if source.startswith("project/")
        }

    def linked(self, page: str, source: str, text: str) -> str:
        """A page's text with links to other pages instead of other files."""

        def changed(found: re.Match[str]) -> str:
            if found["file"]:
                shown = self._image(page, posixpath.join(posixpath.dirname(source), found["file"]))
                return f'{found["attribute"]}="{shown}"'
            return self._link(page, source, found) if found["target"] else found[0]

        return re.sub(f"{CODE}|{LINK}|{SHOWN}", changed, text, flags=re.MULTILINE | re.DOTALL)

    def _image(self, page: str, path: str) -> str:
        """Where a page finds an image of the repository."""
        path = posixpath.normpath(path)
        if not (ROOT / path).exists():
            raise PluginError(f"{page} shows {path}, which is not there")
        self.images.add(path)
        return posixpath.relpath(image(path), posixpath.dirname(page) or ".")

    def _link(self, page: str, source: str, match: re.Match[str]) -> str:
        mark, shown, target = match["mark"], match["shown"], match["target"]
        path, _, anchor = target.partition("#")
        if not path or re.match(r"[a-z]+:", target):
            return match[0]
        here = posixpath.dirname(page) or "."
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        if path.endswith(IMAGES):
            return f"{mark}[{shown}]({self._image(page, path)})"
        if path.startswith("examples/"):
            path, anchor = "examples", slug(posixpath.basename(path))
        if path in self._pages:
            to = posixpath.relpath(self._pages[path], here)
            return f"[{shown}]({to}{'#' * bool(anchor)}{anchor})"
        if not (ROOT / path).exists():
            raise PluginError(f"{source} links to {target}, which is not there")
        return f"{shown} (`{path}`)"


def slug(title: str) -> str:
    """The anchor of a heading."""
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower())


def project_page(path: str) -> str:
    return f"projects/{posixpath.basename(path)}.md"


def image(path: str) -> str:
    return f"images/{path.replace('/', '-')}"
