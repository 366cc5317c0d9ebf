"""Letters as images of black and white pixels: the handwritten words of Kassel (1995), as Taskar, Guestrin
and Koller (NIPS 2003) use them.

A line is a letter, with tabs between: its number, the letter, the number of the word's next one or -1, the
word's number, the place in the word from 1 on, the fold, and the pixels, row by row.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.cli.convert.records import Record, Report, Settings, lines_of, refuse

__all__ = ["read_letters"]

IMAGE = "#"
"""What stands for an image in a text: nothing but its pixels is known of it."""
BEFORE = 6
"""Columns in front of the pixels."""


def read_letters(path: Path, settings: Settings, report: Report) -> Iterator[Record]:
    """The words of a file: a token for each image, with its letter as the label, its pixels (float32) as the
    extension attribute `pixels`, and word and fold as those of the Doc.

    RAISES (ValueError): H290 for a line that is no letter, or does not go on with the word; H291 for bytes
        that the encoding does not have.
    """
    letters, images, first, width = list[str](), list[NDArray[np.float32]](), 1, 0
    word, last = ("", ""), 0
    for number, line in enumerate(lines_of(path, settings.encoding), start=1):
        fields = line.rstrip().split("\t")
        if not line.strip():
            continue
        place = f"line {number}"
        width = width or len(fields)
        if len(fields) != width or width <= BEFORE:
            expected = f"{width} columns, as in the lines before" if width > BEFORE else ""
            expected = (
                expected or "number, letter, next, word, place, fold and pixels, with tabs between"
            )
            refuse(path, place, f"{len(fields)} columns", expected)
        _, letter, after, *of_word = fields[:BEFORE]
        if not letters:
            first, word = number, (of_word[0], of_word[2])
        if of_word != [word[0], str(len(letters) + 1), word[1]]:
            expected = f"letter {len(letters) + 1} of word {word[0]}, in fold {word[1]}"
            found = "letter {1} of word {0}, in fold {2}".format(*of_word)
            refuse(path, place, found, expected)
        if not set(fields[BEFORE:]) <= {"0", "1"}:
            refuse(path, place, "pixels that are neither", "0 or 1")
        letters.append(letter)
        images.append(np.array(fields[BEFORE:], dtype=np.float32))
        last = number
        if after == "-1":
            yield Record(
                f"line {first}",
                [IMAGE] * len(letters),
                spans=[(i, i + 1, each) for i, each in enumerate(letters)],
                tags=letters,
                attributes={"pixels": images},
                about={"word": word[0], "fold": word[1]},
            )
            letters, images = [], []
    if letters:
        refuse(
            path, f"line {last}", "the end of the file", "a next letter of -1, which ends a word"
        )
