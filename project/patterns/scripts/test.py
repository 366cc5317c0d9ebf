"""Score trained pipelines on the test parts, which nothing is chosen on."""

import sys
from pathlib import Path
from typing import Annotated

import spacy
import srsly
import typer
from tasks import read

sys.path.append(str(Path(__file__).parents[2]))
from common.tagging import score


def main(
    assets: Annotated[Path, typer.Argument(help="Folder of the corpora", exists=True)],
    task: Annotated[str, typer.Argument(help="Corpus")],
    folder: Annotated[Path, typer.Argument(help="Folder with its pipelines", exists=True)],
    output: Annotated[Path, typer.Argument(help="Accuracy of each (.json)")],
) -> None:
    """Write the accuracies, by name."""
    docs = read(assets, task, "test")
    paths = sorted(path for path in folder.iterdir() if path.is_dir())
    found = {path.name: score(spacy.load(path), docs).accuracy for path in paths}
    srsly.write_json(output, found)
    print(task, found)


if __name__ == "__main__":
    typer.run(main)
