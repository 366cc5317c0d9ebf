"""What usaddress looks at in an address, word by word, as the extension attribute `token._.address`.

Its string lists what is true of the word, with "|" between. `spacy-hocrf.Pieces.v1` in the config makes
each of these an observation, of the word itself and of both neighbours, as usaddress does. Which words
stand for kinds of streets, usaddress knows: the extra `benchmark` has it.
"""

import re

from spacy.tokens import Token
from usaddress import STREET_NAMES

SEPARATOR = "|"
DIRECTIONS = {
    *(n + e for n in ("", "n", "s") for e in ("", "e", "w")),
    *(n + e for n in ("", "north", "south") for e in ("", "east", "west")),
} - {""}
SIGNS = {"&", "#", "½"}


def read_word(token: Token) -> str:
    """What is true of a word at its place."""
    observed = facts(token.text)
    if token.i == 0:
        observed.append("address.start")
    if token.i == len(token.doc) - 1:
        observed.append("address.end")
    return SEPARATOR.join(observed)


def facts(text: str) -> list[str]:
    """What is true of a word wherever it stands: how it ends, its letters without periods, how many they
    are, and what kind of word that may be.
    """
    bare = text if text in SIGNS else re.sub(r"^\W+|[^.\w]+$", "", text)
    word = bare.lower().replace(".", "")
    number = word.isdigit()
    observed = [f"digits:{digits(bare)}", f"length:{'d' if number else 'w'}:{len(word)}"]
    if number:
        observed.append(f"trailing.zeros:{word[len(word.rstrip('0')) :]}")
    else:
        observed.append(f"word:{word}")
    if re.match(r".+[^.\w]", text):
        observed.append(f"endsinpunc:{text[-1]}")
    also = {
        "abbrev": bare.endswith("."),
        "directional": word in DIRECTIONS,
        "street_name": word in STREET_NAMES,
        "has.vowels": any(letter in "aeiou" for letter in word[1:]),
    }
    return observed + [name for name, holds in also.items() if holds]


def digits(text: str) -> str:
    """Are its characters digits?"""
    if text.isdigit():
        return "all_digits"
    return "some_digits" if re.search("[0-9]", text) else "no_digits"


if not Token.has_extension("address"):
    Token.set_extension("address", getter=read_word)
