"""What the notebooks print: a kernel runs each when the site is built. They are stored without it.

EXECUTE_NOTEBOOKS=false leaves it out, to look at other pages.
"""

import re
from pathlib import Path

import nbformat
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page
from nbclient import NotebookClient

FOLDER = Path(__file__).parent / "notebooks"
OUTPUT = re.compile(r"<!-- what cell (\w+) prints -->")


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Put what the cells of a notebook print behind them."""
    path = Path(page.file.src_uri)
    if path.parent.name != "notebooks":
        return markdown
    printed = outputs(FOLDER / f"{path.stem}.ipynb") if config.extra["execute"] else {}
    return OUTPUT.sub(lambda found: printed.get(found[1], ""), markdown)


def outputs(path: Path) -> dict[str, str]:
    """What each cell of code prints, as Markdown, by the cells' ids."""
    notebook = nbformat.read(path, as_version=4)
    quiet = ["--log-level=ERROR"]
    NotebookClient(
        notebook, extra_arguments=quiet, resources={"metadata": {"path": path.parent}}
    ).execute()
    return {
        cell.id: "\n\n".join(shown(output) for output in cell.outputs)
        for cell in notebook.cells
        if cell.cell_type == "code"
    }


def shown(output: nbformat.NotebookNode) -> str:
    """An output: text as it is, HTML as a part of the page."""
    data = {"text/plain": output.text} if output.output_type == "stream" else output.data
    if "text/html" in data:
        return f'<div class="output">\n{data["text/html"]}\n</div>'
    return f"```{{ .text .output }}\n{data['text/plain'].rstrip()}\n```"
