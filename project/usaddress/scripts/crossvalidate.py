"""Cross-validation over the training texts: every text is predicted once, by systems that were trained on the
other four fifths.
"""

import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean
from typing import Annotated

import train_crfsuite
import train_ours
import typer
from spacy.tokens import Doc
from spacy.vocab import Vocab

sys.path.append(str(Path(__file__).parents[2]))
from common.measured import Measured, name_of, read, write
from common.training import read_docs, write_docs

FOLDS = 5
FOLDER = Path(__file__).parents[1]
OWNERS = FOLDER / "configs" / "owners.cfg"
BOTH = FOLDER / "configs" / "both.cfg"
WORDS = FOLDER / "scripts" / "words.py"

Train = Callable[[Path, Path, Path], None]
"""From training texts and texts to predict, measures and predictions in a folder."""


def main(
    texts: Annotated[Path, typer.Argument(help="Annotated texts (.spacy)", exists=True)],
    folds: Annotated[Path, typer.Argument(help="Folder for the folds")],
    output: Annotated[
        Path, typer.Argument(help="Folder for predictions and measures of all folds")
    ],
) -> None:
    """Write gold.spacy, which has the texts in the order of the folds, and what the systems make of them."""
    vocab = Vocab()
    parts = divide(read_docs(texts, vocab))
    folders = list[Path]()
    for number, part in enumerate(parts):
        folder = folds / str(number)
        others = [doc for other in parts if other is not part for doc in other]
        write_docs(others, folder / "train.spacy")
        write_docs(part, folder / "test.spacy")
        for train in SYSTEMS:
            train(folder / "train.spacy", folder / "test.spacy", folder / "output")
        folders.append(folder / "output")
    write_docs([doc for part in parts for doc in part], folds / "gold.spacy")
    for systems in zip(*map(read, folders), strict=True):
        files = [folder / f"{name_of(each)}.spacy" for folder, each in zip(folders, systems)]
        docs = [doc for file in files for doc in read_docs(file, vocab)]
        write(output, pooled(systems), docs)


def divide(docs: Sequence[Doc]) -> list[list[Doc]]:
    """Folds of one size, or nearly, at random."""
    shuffled = random.Random(0).sample(docs, len(docs))
    return [shuffled[i::FOLDS] for i in range(FOLDS)]


def pooled(systems: Sequence[Measured]) -> Measured:
    """One system's means over the folds, and all settings that it had."""
    settings = " / ".join(dict.fromkeys(each.settings for each in systems))
    return Measured(
        system=systems[0].system,
        observations=systems[0].observations,
        order=systems[0].order,
        features=round(mean(each.features for each in systems)),
        size=round(mean(each.size for each in systems)),
        seconds=mean(each.seconds for each in systems),
        speed=mean(each.speed for each in systems),
        settings=settings,
    )


def crfsuite_generic(train: Path, test: Path, output: Path) -> None:
    """CRFsuite with what everybody looks at."""
    train_crfsuite.main(train, test, output)


def crfsuite_owners(train: Path, test: Path, output: Path) -> None:
    """CRFsuite with usaddress's features and a prior of its own choice."""
    train_crfsuite.main(train, test, output, config=OWNERS, code=WORDS)


def crfsuite_as_owners(train: Path, test: Path, output: Path) -> None:
    """CRFsuite as usaddress trains it."""
    name = "owner's, trained as usaddress is"
    settings = {"encoding": "io", "c1": 0.1, "c2": 0.01}
    train_crfsuite.main(train, test, output, config=OWNERS, code=WORDS, name=name, **settings)


def ours(train: Path, test: Path, output: Path) -> None:
    """Our default, usaddress's features, and both."""
    train_ours.main(train, test, output)
    train_ours.main(train, test, output, config=OWNERS, code=WORDS, orders="1,2")
    train_ours.main(train, test, output, BOTH, "2", WORDS, "owner's and default")


SYSTEMS: tuple[Train, ...] = (crfsuite_generic, crfsuite_owners, crfsuite_as_owners, ours)


if __name__ == "__main__":
    typer.run(main)
