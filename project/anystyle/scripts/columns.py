"""What AnyStyle looks at in a reference, word by word: its columns, as extension attributes.

Its dictionaries of names, places, publishers and journals are not among them.
"""

import re
import unicodedata
from collections.abc import Callable

from spacy.tokens import Token

DASHES = r"\-\u058a\u05be\u2010-\u2015\ufe58\ufe63\uff0d"  # inside of []
CLOSING = "\"'”„’‚´«‘“`»」』"
TAIL = rf"[,;:.{DASHES}]?$"
TWO_LETTERS = {"Lu", "Ll", "Lm", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Zl", "Zp"}
"""Categories of Unicode that are told apart; of others the first letter is."""

NUMBERS = {
    "volume": r"[0-9][(:;][0-9]",
    "isbn": rf"^97[89](?:[{DASHES}]?[0-9]){{10}}$|^[0-9](?:[{DASHES}]?[0-9]){{9}}$",
    "year": r"\b(?:1[0-9]|20)[0-9]{2}\b",
    "quad": r"^[0-9]{4}$",
    "triple": r"^[0-9]{3}$",
    "double": r"^[0-9]{2}$",
    "single": r"^[0-9]$",
    "all": r"^[0-9]+$",
    "range": rf"^[0-9]+[{DASHES}]+[0-9]+$",
    "idnum": rf"^[A-ZÀ-ÖØ-Þ][A-ZÀ-ÖØ-Þ{DASHES}/]+[0-9]+[,.:]?$",
    "ordinal": r"[0-9][^\W\d_]{1,3}\b",
    "numeric": r"[0-9]",
    "roman": r"^(?:[IVXLDCM]+|[ivx]+)\b",
}
BRACKETS = {
    "none": r"^[^(\[<>)\]]+$",
    "parens": rf"^\(.*\){TAIL}",
    "square": rf"^\[.*\]{TAIL}",
    "angle": rf"^<.*>{TAIL}",
    "closing paren": rf"\){TAIL}",
    "opening paren": r"^\(",
    "closing square": rf"\]{TAIL}",
    "opening square": r"^\[",
    "closing angle": rf">{TAIL}",
    "opening angle": r"^<",
}
TERMINALS = {
    "strong": rf"[.)\]][{CLOSING})\]]?$|,[{CLOSING})\]]|[{CLOSING}],$",
    "moderate": rf"[:{CLOSING}][,;:{DASHES}!?.]?$",
    "weak": rf"[!?,;{DASHES}][{CLOSING}]?$",
}
LOCATORS = {
    "yes": r"\b(?:DOI|doi|ISBN|Url|URL|PMCID|PMID|PMC[0-9]+|PubMed)\b"
    r"|10.[0-9]{4,9}/[-._;()/:A-Za-z0-9]+|[A-Za-z][A-Za-z0-9+.-]*:[^\s:]"
}
"""Kinds of words, each with what a word of that kind has: the first that fits is taken."""

KEYWORDS = {
    "editor": "ed eds edit editor editors edited editeur editeurs hg hrsg herausgeber compilador",
    "translator": "trans transl translated translator translators translation übers übersetz "
    "übersetzt übersetzung trad traduction traducteur traducteurs traduit",
    "thesis": "dissertation thesis",
    "in": "in",
    "volume": "vol vols volume volumes iss issue n no nr number fasc fascicle fascicule suppl "
    "supplement jg jahrgang jahrgg heft",
    "series": "ser serie series reihe coll collection kollektion",
    "patent": "patent",
    "report": "report",
    "edition": "edn edition expanded rev revised reprint reprinted preprint illustrated aufl "
    "auflage ausg ausgabe",
    "date": "nd date spring summer sommer autumn fall winter frühling herbst jan january januar "
    "feb february februar mar march märz marz apr april may mai jun june juni jul july juli aug "
    "august sep september oct october okt oktober nov november dec december dez dezember",
    "accessed": "retrieved retirado accessed abruf abgerufen",
}
"""Words of a kind, in lower case."""
WRITTEN = {
    "and": {"And", "and", "Und", "und", "y", "e", "&"},
    "etal": {"etal", "others"},
    "page": {"p", "pp", "page", "pages", "S", "Seite", "Seiten", "f", "ff"},
}
"""The same, as they are written."""
BEGINNINGS = {
    "proceedings": "proceedings conference meeting transactions communications seminar symposion "
    "symposium",
    "locator": "doi url",
    "pubmed": "pmid pmcid",
    "arxiv": "arxiv",
}
"""How words of a kind begin, in lower case."""
JOURNALS = "Journal Zeitschrift Quarterly Magazin Times Rev Bulletin News Week Gazett"
"""How words in the names of journals begin."""

KINDS = {word: kind for kind, words in KEYWORDS.items() for word in words.split()}
KINDS_WRITTEN = {word: kind for kind, words in WRITTEN.items() for word in words}
OPENINGS = [(word, kind) for kind, words in BEGINNINGS.items() for word in words.split()]


def letters_of(text: str) -> str:
    """Its letters, marks and digits."""
    return "".join(each for each in text if _is_letter(unicodedata.category(each)))


def canonical(text: str) -> str:
    """These in lower case, without accents; BLANK if there are none."""
    plain = "".join(
        each
        for each in unicodedata.normalize("NFKD", letters_of(text))
        if not unicodedata.combining(each)
    )
    return letters_of(plain).lower() or "BLANK"


def category(letter: str) -> str:
    """What kind of a character it is, by Unicode."""
    kind = unicodedata.category(letter)
    return kind if kind in TWO_LETTERS else kind[0]


def caps(text: str) -> str:
    """Which letters are capitals."""
    letters = letters_of(text)
    if letters and all(each.isupper() for each in letters):
        return "single" if len(letters) == 1 else "caps"
    if letters[:1].isupper() and letters[1:2].islower():
        return "initial"
    return "lower" if letters and all(each.islower() for each in letters) else "other"


def keyword(text: str) -> str:
    """What field a word tells of."""
    word = letters_of(text) or text
    lower = word.lower()
    if re.search("編", word):
        return "editor"
    if re.search("[著撰]", word):
        return "author"
    if re.search("譯", word):
        return "translator"
    if word in KINDS_WRITTEN:
        return KINDS_WRITTEN[word]
    if lower in KINDS:
        return KINDS[lower]
    if word.startswith(tuple(JOURNALS.split())):
        return "journal"
    for opening, kind in OPENINGS:
        if lower.startswith(opening):
            return kind
    if re.search("年", word):
        return "date"
    return "roman" if re.fullmatch("[ILXVMCD]{2,}", word) else "none"


def punctuation(text: str) -> str:
    """Which mark it has."""
    if not any(unicodedata.category(each)[0] == "P" for each in text):
        return "none"
    for name, marks in {"colon": ":", "hyphen": DASHES, "period": ".", "amp": "&"}.items():
        if re.search(f"[{marks}]", text):
            return name
    return "other"


def first_of(kinds: dict[str, str], otherwise: str = "none") -> Callable[[str], str]:
    """What says which pattern is the first that a text has."""
    patterns = {name: re.compile(pattern) for name, pattern in kinds.items()}

    def find(text: str) -> str:
        return next((name for name, each in patterns.items() if each.search(text)), otherwise)

    return find


def place(token: Token) -> str:
    """Where it stands in the reference, in tenths."""
    last = len(token.doc) - 1
    if token.i in (0, last):
        return "only" if last == 0 else "first" if token.i == 0 else "last"
    return str(round(10 * token.i / len(token.doc)))


def _is_letter(category: str) -> bool:
    return category != "Lm" and (category[0] in "LM" or category == "Nd")


COLUMNS: dict[str, Callable[[str], str]] = {
    "canonical": canonical,
    "first": lambda text: category(text[0]),
    "last": lambda text: category(text[-1]),
    "prefix1": lambda text: text[:1],
    "prefix2": lambda text: text[:2],
    "suffix1": lambda text: text[-1:],
    "suffix2": lambda text: text[-2:],
    "caps": caps,
    "number": first_of(NUMBERS),
    "keyword": keyword,
    "punctuation": punctuation,
    "brackets": first_of(BRACKETS, "other"),
    "terminal": first_of(TERMINALS),
    "locator": first_of(LOCATORS),
}
"""What is looked at in a word by itself."""

for _name, _column in COLUMNS.items():
    if not Token.has_extension(_name):
        Token.set_extension(_name, getter=lambda token, read=_column: read(token.text))
if not Token.has_extension("place"):
    Token.set_extension("place", getter=place)
