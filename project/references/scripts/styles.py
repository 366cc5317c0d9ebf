"""Citation styles: how one bibliographic record is written, and which field every character belongs
to.

A style is a row of clauses. A clause is text with marks and fields: `[pages]pp. {pages},` opens a
span labelled pages that ends at the next mark or at the end of the clause. So punctuation falls to
the field it closes, and a blank before a mark to none. A clause is left out where the record lacks
one of its fields; of a list of clauses the first that can be filled is taken.
assets/styles.yml has the styles.

The labels are the 13 of the Cora task; the convention is that of assets/paper-references.jsonl.
"""

import random
import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import srsly

LABELS = (
    *("author", "booktitle", "date", "editor", "institution", "journal", "location"),
    *("note", "pages", "publisher", "tech", "title", "volume"),
)
COPIED = "title institution publisher series year tech journal booktitle".split()
"""Fields that every style writes as the record has them."""
Record = dict  # a line of assets/records.jsonl
Span = tuple[int, int, str]  # start and end in characters, end exclusive; label
Clause = str | list[str]


@dataclass(frozen=True)
class Names:
    """How a list of people is written.

    order (str): "given" (Ada B. Lovelace), "family" (Lovelace, Ada B.) or "first" (only the first
        person family first).
    initials (str | None): what stands between two initials, None for given names in full.
    stop (str): what follows an initial.
    comma (str): what stands between family and given name.
    sep, two, last (str): between people, between the only two, before the last of three or more.
    most, shown (int): more people than `most` are cut to the first `shown` and `others`.
    """

    order: str = "given"
    initials: str | None = None
    stop: str = "."
    comma: str = ", "
    sep: str = ", "
    two: str = " and "
    last: str = ", and "
    most: int = 99
    shown: int = 1
    others: str = " et al."


@dataclass(frozen=True)
class Style:
    """A citation style.

    clauses (list): the clauses, in order. Their fields are what `fields` returns.
    authors, editors (Names): how people are written.
    page, dash (list, str): the word before one page and before several; the sign between the first
        and the last.
    months (int): letters of the name of a month, 99 for the name in full.
    end (str): what closes the reference.
    abbreviate (float): share of the references with `Proc.`, `Conf.` … in journal and booktitle.
    choices (dict): further fields, each drawn from a list of texts that name the others.
    """

    clauses: Sequence[Clause]
    authors: Names
    editors: Names
    page: Sequence[str] = ("page", "pages")
    dash: str = "–"
    months: int = 99
    end: str = "."
    abbreviate: float = 0.0
    choices: Mapping[str, Sequence[str]] = field(default_factory=dict)


def render(record: Record, style: Style, rng: random.Random) -> tuple[str, list[Span]]:
    """Write a record in a style.

    rng (random.Random): decides what the style leaves open. The same state gives the same text.
    RETURNS (tuple[str, list[Span]]): the reference, and its spans in text order, which leave out
        only blanks.
    """
    values = fields(record, style, rng)
    parts: list[tuple[str, str, str]] = []  # (blank before, label, text)
    for clause in style.clauses:
        options = (clause,) if isinstance(clause, str) else clause
        filled = next((option for option in options if _names_of(option) <= values.keys()), None)
        if filled is not None:
            parts.extend(_fill(filled, values))
    blank, label, last = parts[-1]
    last = last.rstrip(",;:")
    parts[-1] = (blank, label, last if CLOSED.search(last) else last + style.end)
    text, spans = "", []
    for blank, label, part in parts:
        start = len(text + blank) if text else 0
        text = text + blank + part if text else part
        if spans and spans[-1][2] == label:
            start = spans.pop()[0]
        spans.append((start, len(text), label))
    return text, spans


def fields(record: Record, style: Style, rng: random.Random) -> dict[str, str]:
    """The fields of a record as a style writes them.

    One list of clauses serves every kind of work, because what is written differently is named
    differently: `volume`, `number` and `pages` are of a journal, `part_volume` and `part_pages` of
    a book or proceedings; `campus` is the place of an institution and `place` that of a publisher
    or conference. `date` is month and year, `late` the same but absent from an article, `p` the
    word for pages.
    """
    values = {name: record[name] for name in COPIED if name in record}
    short = rng.random() < style.abbreviate
    for name in ("journal", "booktitle"):
        if name in values and short:
            values[name] = _abbreviate(values[name])
    part = "" if "journal" in record else "part_"
    for name in ("volume", "number", "pages"):
        if name in record:
            values[part + name] = (
                record[name].replace("–", style.dash) if name == "pages" else record[name]
            )
    values["p"] = style.page["–" in record.get("pages", "")]
    if "location" in record:
        values["campus" if "tech" in record else "place"] = record["location"]
    if "month" in record:
        month = record["month"]
        values["month"] = (
            month if len(month) <= max(style.months, 4) else month[: style.months] + "."
        )
    values["date"] = " ".join(values[name] for name in ("month", "year") if name in values)
    if "journal" not in record:
        values["late"] = values["date"]
    values["authors"] = people(record["authors"], style.authors)
    if "editors" in record:
        values["editors"] = people(record["editors"], style.editors)
    for name, options in style.choices.items():
        values[name] = rng.choice(options).format(**values)
    return values


def people(persons: list[dict[str, str]], names: Names) -> str:
    """A list of people, each {"given", "family"}, {"family"} or {"literal"} (a body)."""
    first = {"given": 0, "first": 1, "family": len(persons)}[names.order]
    written = [_person(person, names, family_first=i < first) for i, person in enumerate(persons)]
    if len(written) > names.most:
        return names.sep.join(written[: names.shown]) + names.others
    if len(written) > 2:
        return names.sep.join(written[:-1]) + names.last + written[-1]
    return names.two.join(written)


def _person(person: dict[str, str], names: Names, family_first: bool) -> str:
    if "literal" in person:
        return person["literal"]
    given = person.get("given", "")
    if names.initials is not None:
        given = _initials(given, names.initials, names.stop)
    if not given:
        return person["family"]
    return (
        f"{person['family']}{names.comma}{given}" if family_first else f"{given} {person['family']}"
    )


def _initials(given: str, between: str, stop: str) -> str:
    """`Fernando C.N.` to `F. C. N.`, `Chin-Yew` to `C.-Y.`: one for each part, hyphens kept."""
    initials = ""
    for dash, letter in re.findall(r"(-?)(\w)[\w']*", given):
        joint = "-" if dash and stop else between
        initials += (joint if initials else "") + letter.upper() + stop
    return initials


def _abbreviate(name: str) -> str:
    for long, short in ABBREVIATIONS:
        name = re.sub(long, short, name)
    return name


def _names_of(clause: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(clause) if name}


def _fill(clause: str, values: dict[str, str]) -> list[tuple[str, str, str]]:
    before, *marked = MARK.split(clause)
    assert not before, f"a clause begins with a mark: {clause}"
    parts, blank = [], " "
    for label, text in zip(marked[::2], marked[1::2], strict=True):
        written = text.strip().format(**values)
        # One mark closes a field: `graphs?.` and `Inc..` are never written.
        written = re.sub(r"\.\.+", ".", re.sub(r"([?!])[.,]", r"\1", written))
        parts.append((blank, label, written))
        blank = " " if text.endswith(" ") else ""
    return parts


MARK = re.compile(rf"\[({'|'.join(LABELS)})\]")
CLOSED = re.compile(r"[.?!][\"'’”]*$")
ABBREVIATIONS = (
    (r"^Proceedings of( the)?\b", "Proc."),
    (r"\bInternational\b", "Int."),
    (r"\b[Cc]onference\b", "Conf."),
    (r"\bSymposium\b", "Symp."),
    (r"\bAdvances in Neural Information Processing Systems\b", "Adv. Neural Inf. Process. Syst."),
    (r"\bJournal\b", "J."),
    (r"\bAnnual Meeting of the Association\b", "Annu. Meet. Assoc."),
    (r"\bMachine Learning$", "Mach. Learn."),
)


def read_styles(path: Path) -> dict[str, Style]:
    """The styles of a file, by name."""
    styles = {}
    for name, block in srsly.read_yaml(path).items():
        people = {key: Names(**block.pop(key)) for key in ("authors", "editors")}
        styles[name] = Style(**block, **people)
    return styles


STYLES = read_styles(Path(__file__).parents[1] / "assets" / "styles.yml")
