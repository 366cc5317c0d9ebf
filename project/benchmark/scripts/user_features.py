"""What our default features observe of a token, as a user of python-crfsuite would write it: a plain
loop over the words that makes strings.

Words in lower case at -1 to 1, shapes at -2 to 2, prefixes and suffixes of up to four letters, flags
of how the word is written, and those of both neighbours together with its own. Just outside the
text there is an edge, and nothing beyond it.
"""

from collections.abc import Sequence

EDGE = "<edge>"


def features(words: Sequence[str]) -> list[list[str]]:
    """Strings of each word, as `Trainer.append` and `Tagger.tag` take them."""
    last = len(words)
    lowers = [EDGE, *(word.lower() for word in words), EDGE]
    shapes = [EDGE, *(shape(word) for word in words), EDGE]
    flags = [flags_of(word) for word in words]
    joined = [EDGE, *(",".join(names) for names in flags), EDGE]
    rows = []
    for i in range(1, last + 1):  # of what has an edge before it
        word = lowers[i]
        row = ["bias", "w0=" + word, "w-1=" + lowers[i - 1], "w+1=" + lowers[i + 1]]
        row += ["s0=" + shapes[i], "s-1=" + shapes[i - 1], "s+1=" + shapes[i + 1]]
        if i > 1:
            row.append("s-2=" + shapes[i - 2])
        if i < last:
            row.append("s+2=" + shapes[i + 2])
        for size in range(1, min(4, len(word)) + 1):
            row.append(f"p{size}=" + word[:size])
            row.append(f"e{size}=" + word[-size:])
        row += ["f=" + flag for flag in flags[i - 1]]
        row.append("f-1=" + joined[i - 1] + "|" + joined[i])
        row.append("f+1=" + joined[i] + "|" + joined[i + 1])
        rows.append(row)
    return rows


def few_features(words: Sequence[str]) -> list[dict[str, str | bool]]:
    """Twelve attributes of each word as dicts, as in sklearn-crfsuite's tutorial."""
    rows = []
    for i, word in enumerate(words):
        row: dict[str, str | bool] = {
            "lower": word.lower(),
            "end3": word[-3:],
            "end2": word[-2:],
            "upper": word.isupper(),
            "title": word.istitle(),
            "digit": word.isdigit(),
        }
        for offset in (-1, 1):
            there = i + offset
            if 0 <= there < len(words):
                other = words[there]
                row[f"{offset:+}:lower"] = other.lower()
                row[f"{offset:+}:upper"] = other.isupper()
                row[f"{offset:+}:title"] = other.istitle()
            else:
                row[f"{offset:+}:edge"] = True
        rows.append(row)
    return rows


def shape(word: str) -> str:
    """X, x and d for capitals, other letters and digits; at most four of one kind in a row."""
    kinds: list[str] = []
    last, run = "", 0
    for letter in word:
        kind = (
            ("X" if letter.isupper() else "x")
            if letter.isalpha()
            else "d"
            if letter.isdigit()
            else letter
        )
        run = run + 1 if kind == last else 1
        last = kind
        if run <= 4:
            kinds.append(kind)
    return "".join(kinds)


def flags_of(word: str) -> list[str]:
    """How a word is written."""
    flags = []
    if word.isupper():
        flags.append("upper")
    if word.istitle():
        flags.append("title")
    if word.isdigit():
        flags.append("digits")
    if not any(letter.isalnum() for letter in word):
        flags.append("punctuation")
    if word.replace(",", "").replace(".", "").isdigit():
        flags.append("number")
    if any(letter.isdigit() for letter in word):
        flags.append("a_digit")
    if any(letter.isupper() for letter in word[1:]):
        flags.append("a_capital")
    if "-" in word:
        flags.append("hyphen")
    if "." in word:
        flags.append("period")
    if any(not letter.isalnum() and letter not in "-." for letter in word):
        flags.append("mark")
    return flags
