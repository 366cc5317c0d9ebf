"""How unlike two corpora are: what `hocrf debug` says of random halves of each, and of each and each other.

A corpus is a .spacy file; its Docs keep their tokens.
"""

import random
import re
import subprocess
import sys
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

sys.path.append(str(Path(__file__).parents[2]))
from common.report import show, table
from common.training import read_docs, write_docs

HOCRF = [sys.executable, "-m", "spacy", "hocrf"]
HEADER = (
    "training texts",
    "others",
    "new words",
    "of a training text",
    "new spans",
    "of a training text",
    "warned",
)


def main(
    paths: Annotated[list[Path], typer.Argument(help="Annotated texts (.spacy)", exists=True)],
) -> None:
    """Print shares in per cent, and whether the command warns."""
    rows = []
    with TemporaryDirectory() as name:
        folder = Path(name)
        config = folder / "config.cfg"
        subprocess.run([*HOCRF, "config", str(config)], check=True, capture_output=True)
        for path in paths:
            docs = read_docs(path)
            random.Random(0).shuffle(docs)
            halves = folder / "half.spacy", folder / "other.spacy"
            for half, part in zip(halves, (docs[::2], docs[1::2])):
                write_docs(part, half)
            rows.append((f"half of {path.stem}", "the other half", *told(config, *halves)))
        for pair in permutations(paths, 2):
            rows.append((*(path.stem for path in pair), *told(config, *pair)))
    show(table(rows, HEADER, "llrrrrl"))


def told(config: Path, train: Path, dev: Path) -> tuple[str, ...]:
    """New words and spans, of the others and of a training text each, and "yes" for a warning."""
    command = [*HOCRF, "debug", str(config), "--paths.train", str(train), "--paths.dev", str(dev)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    seen = re.findall(
        r"^(?:words|spans with their label) +([\d.]+) % +([\d.]+) %$", text, re.MULTILINE
    )
    shares = [f"{100 - float(share):.1f}" for pair in seen for share in pair]
    return (*shares, "yes" if "are unlike the training texts" in text else "")


if __name__ == "__main__":
    typer.run(main)
