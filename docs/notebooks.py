"""What the notebooks print: a kernel runs each when the site is built. They are stored without it; who gets
one from the site gets it with.

EXECUTE_NOTEBOOKS=false leaves it out, to look at other pages.
"""

import re
from pathlib import PurePosixPath

import nbformat
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from nbclient import NotebookClient

OUTPUT = re.compile(r"<!-- what cell (\w+) prints -->")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Have the notebooks as they are after all their cells have run."""
    found = [file for file in files if file.src_uri.endswith(".ipynb")]
    for file in found if config.extra["execute"] else []:
        notebook = nbformat.reads(file.content_string, as_version=4)
        place = {"metadata": {"path": f"{config.docs_dir}/notebooks"}}
        quiet = ["--log-level=ERROR"]
        NotebookClient(notebook, timeout=300, extra_arguments=quiet, resources=place).execute()
        files.remove(file)
        files.append(File.generated(config, file.src_uri, content=nbformat.writes(notebook)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Put what the cells of a notebook print behind them."""
    path = PurePosixPath(page.file.src_uri)
    if path.parent.name != "notebooks":
        return markdown
    notebook = files.get_file_from_path(str(path.with_suffix(".ipynb")))
    printed = outputs(nbformat.reads(notebook.content_string, as_version=4))
    return OUTPUT.sub(lambda found: printed[found[1]], markdown)


def outputs(notebook: nbformat.NotebookNode) -> dict[str, str]:
    """What each cell of code prints, as Markdown, by the cells' ids."""
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
