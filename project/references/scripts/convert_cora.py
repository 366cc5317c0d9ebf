"""Make spaCy's format of the Cora references as HOSemiCRF has them: `word label` a line, a blank
line after each.

The tokens are kept as they come (`-LRB-`, `(4)`). Nothing is known of the spaces between them, so
spaCy's reader does not tokenize them again, by which fields would be lost that do not begin and end
with a token. A maximal run of one label is one entity.
"""

import sys
from pathlib import Path
from typing import Annotated

import typer
from spacy.tokens import Doc
from spacy.vocab import Vocab
from wasabi import msg

sys.path.append(str(Path(__file__).parents[2]))
from common.columns import read_columns, runs
from common.training import annotated, write_docs

DEV = 60  # the last of the training file, for choosing settings


def main(
    train_path: Annotated[Path, typer.Argument(help="ref.train", exists=True)],
    test_path: Annotated[Path, typer.Argument(help="ref.test", exists=True)],
    output_dir: Annotated[Path, typer.Argument(help="Where the four .spacy files go")],
) -> None:
    """Write train.spacy (all of ref.train), its parts settings.spacy and dev.spacy, test.spacy."""
    vocab = Vocab()
    train, test = (read_docs(path, vocab) for path in (train_path, test_path))
    parts = {"train": train, "settings": train[:-DEV], "dev": train[-DEV:], "test": test}
    for part, docs in parts.items():
        write_docs(docs, output_dir / f"{part}.spacy")
        msg.good(f"{part}: {len(docs)} references, {sum(len(doc.ents) for doc in docs)} fields")


def read_docs(path: Path, vocab: Vocab) -> list[Doc]:
    """The references of a file. Lines may end in CR LF; several blank lines are as one, the last
    may be missing.
    """
    return [annotated(vocab, words, runs(labels)) for words, labels in read_columns(path)]


if __name__ == "__main__":
    typer.run(main)
