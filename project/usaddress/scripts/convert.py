"""Write addresses, or the references of AnyStyle, as spaCy's Docs: all of the training part, a part of it to
choose settings by, with the rest, and the test part.
"""

import random
import re
import sys
from pathlib import Path
from typing import Annotated

import typer
from spacy.vocab import Vocab

sys.path.append(str(Path(__file__).parents[2]))
sys.path.append(str(Path(__file__).parents[2] / "defaults" / "scripts"))
from common.training import write_docs
from readers import Parts, Text, read_addresses, read_anystyle
from systems import make_doc

HELD_BACK = 5
"""One training text of so many is in the dev part."""


def main(
    name: Annotated[str, typer.Argument(help="usaddress or anystyle")],
    assets: Annotated[Path, typer.Argument(help="Folder with a folder of that name", exists=True)],
    corpus: Annotated[Path, typer.Argument(help="Folder for the Docs")],
) -> None:
    """Write train.spacy, settings.spacy and dev.spacy, which together are train.spacy, and test.spacy."""
    parts = read_addresses(assets) if name == "usaddress" else without_known(read_anystyle(assets))
    write(parts, corpus)


def without_known(parts: Parts) -> Parts:
    """Without test texts that have the letters and digits of a training text, in this order."""
    training = set(map(letters_of, parts["train"]))
    test = [text for text in parts["test"] if letters_of(text) not in training]
    return {"train": parts["train"], "test": test}


def letters_of(text: Text) -> str:
    """What is left of a text without white space, marks and capitals."""
    return re.sub(r"\W", "", "".join(text.words)).lower()


def write(parts: Parts, corpus: Path) -> None:
    """Write the parts "train" and "test", and a division of the former."""
    train = parts["train"]
    dev = set(random.Random(0).sample(range(len(train)), len(train) // HELD_BACK))
    files = {
        "train": train,
        "settings": [text for i, text in enumerate(train) if i not in dev],
        "dev": [text for i, text in enumerate(train) if i in dev],
        "test": parts["test"],
    }
    vocab = Vocab()
    for name, texts in files.items():
        write_docs([make_doc(vocab, text) for text in texts], corpus / f"{name}.spacy")
        print(f"{name}: {len(texts):,} texts, {sum(len(text.words) for text in texts):,} tokens")


if __name__ == "__main__":
    typer.run(main)
