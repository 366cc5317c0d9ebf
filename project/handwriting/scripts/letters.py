"""The handwritten words of Kassel (1995), as Taskar et al. (2004) distribute them, read and made
into Docs.

A line of the file is one letter, tab separated: number, letter, number of the word's next letter or
-1, word, position, fold, and the 128 pixels of a binary image, 16 rows of 8. A Doc is a word, a
token one of its images. The token's text is the same everywhere: all that is known of a letter is
its image, `token._.pixels`, and its tag is the letter.
"""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc, Token
from spacy.vocab import Vocab

from spacy_hocrf.api import set_group

PIXELS = {"pixels": {"@misc": "spacy-hocrf.Real.v1", "source": "_.pixels"}}
"""The template of order 0."""
ROWS, COLUMNS = 16, 8
IMAGE = "#"
"""Text of every token."""
COLUMNS_BEFORE = 6
"""Of a line, in front of its pixels."""


class Word(NamedTuple):
    """A word by one writer. The original's first letter, a capital, is not in the data."""

    letters: str
    pixels: NDArray[np.uint8]  # [T, 128]
    fold: int


def register() -> None:
    """Give tokens the attribute `_.pixels`, an array."""
    if not Token.has_extension("pixels"):
        Token.set_extension("pixels", default=None)


def read_words(path: Path) -> Iterator[Word]:
    """The words of the file, which may be compressed. RAISES (ValueError): for a line that is not
    as described above.
    """
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode("ascii")
    letters, pixels, words, folds = "", [], set(), set()
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.rstrip("\t").split("\t")
        if len(fields) != COLUMNS_BEFORE + ROWS * COLUMNS:
            raise ValueError(
                f"{path}, line {number}: {len(fields)} fields instead of "
                f"{COLUMNS_BEFORE + ROWS * COLUMNS}"
            )
        _, letter, following, word, position, fold = fields[:COLUMNS_BEFORE]
        letters += letter
        pixels.append(np.array(fields[COLUMNS_BEFORE:], dtype=np.uint8))
        words.add(word)
        folds.add(int(fold))
        if int(position) != len(letters) or len(words) > 1 or len(folds) > 1:
            raise ValueError(
                f"{path}, line {number}: position, word or fold do not continue those of the line "
                "before"
            )
        if following == "-1":
            yield Word(letters, np.stack(pixels), folds.pop())
            letters, pixels, words, folds = "", [], set(), set()
    if letters:
        raise ValueError(f"{path}: the last word has no end")


def to_doc(word: Word, vocab: Vocab) -> Doc:
    """A Doc of images with their letters as tags; `doc.user_data["fold"]` is the fold, and the group of a
    Doc, `doc._.hocrf_group`, its spelling.
    """
    register()
    doc = Doc(vocab, words=[IMAGE] * len(word.letters), tags=list(word.letters))
    for token, pixels in zip(doc, word.pixels, strict=True):
        token._.pixels = pixels
    doc.user_data["fold"] = word.fold
    set_group(doc, word.letters)
    return doc


def spelling(doc: Doc) -> str:
    """The letters of a Doc's tags."""
    return "".join(token.tag_ for token in doc)
