"""Make spaCy's format of the Cora references as HOSemiCRF has them: `word label` a line, a blank
line after each.

The tokens are kept as they come (`-LRB-`, `(4)`). Nothing is known of the spaces between them, so
spaCy's reader does not tokenize them again, by which fields would be lost that do not begin and end
with a token. A maximal run of one label is one entity.
"""

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer
from spacy.tokens import Doc, DocBin, Span
from spacy.vocab import Vocab
from wasabi import msg

DEV = 60  # the last of the training file, for choosing settings


def main(
    train_path: Annotated[Path, typer.Argument(help="ref.train", exists=True)],
    test_path: Annotated[Path, typer.Argument(help="ref.test", exists=True)],
    output_dir: Annotated[
        Path, typer.Argument(help="Where train, settings, dev and test.spacy go")
    ],
) -> None:
    """Write train.spacy (all of ref.train), its parts settings.spacy and dev.spacy, test.spacy."""
    vocab = Vocab()
    train, test = (list(read_docs(path, vocab)) for path in (train_path, test_path))
    parts = {"train": train, "settings": train[:-DEV], "dev": train[-DEV:], "test": test}
    output_dir.mkdir(parents=True, exist_ok=True)
    for part, docs in parts.items():
        DocBin(docs=docs).to_disk(output_dir / f"{part}.spacy")
        msg.good(f"{part}: {len(docs)} references, {sum(len(doc.ents) for doc in docs)} fields")


def read_docs(path: Path, vocab: Vocab) -> Iterable[Doc]:
    """The references of a file. Lines may end in CR LF; several blank lines are as one, the last
    may be missing.
    """
    lines = path.read_text(encoding="utf8").split("\n")
    for filled, block in groupby(lines, key=lambda line: bool(line.strip())):
        if filled:
            words, labels = zip(*(line.split() for line in block), strict=True)
            yield make_doc(vocab, words, labels)


def make_doc(vocab: Vocab, words: Iterable[str], labels: Iterable[str]) -> Doc:
    """A Doc of exactly these tokens, with an entity for each maximal run of a label."""
    doc = Doc(vocab, words=list(words))
    ents, start = [], 0
    for label, run in groupby(labels):
        end = start + len(list(run))
        ents.append(Span(doc, start, end, label))
        start = end
    doc.set_ents(ents)
    return doc


if __name__ == "__main__":
    typer.run(main)
