"""Convert the letters to spaCy's format: a Doc for each word, with images as token attributes and
letters as tags.
"""

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from letters import read_words, to_doc
from spacy.tokens import DocBin
from spacy.vocab import Vocab
from wasabi import msg


def main(
    source: Annotated[Path, typer.Argument(help="letter.data", exists=True)],
    output: Annotated[Path, typer.Argument(help="File to write (.spacy)")],
) -> None:
    """Write all words into one file; their folds are in it."""
    vocab = Vocab()
    words = DocBin(store_user_data=True)
    folds: Counter[int] = Counter()
    letters, spellings = 0, set()
    for word in read_words(source):
        words.add(to_doc(word, vocab))
        folds[word.fold] += 1
        letters += len(word.letters)
        spellings.add(word.letters)
    output.parent.mkdir(parents=True, exist_ok=True)
    words.to_disk(output)
    sizes = ", ".join(str(folds[fold]) for fold in sorted(folds))
    msg.good(
        f"{output}: {len(words):,} words, {letters:,} letters, {len(spellings)} different words; "
        f"folds of {sizes}"
    )


if __name__ == "__main__":
    typer.run(main)
