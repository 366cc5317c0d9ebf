"""What a config has a component observe of single words, in the strings that CRFsuite takes: its users
would write a loop like this one.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from spacy.tokens import Doc

from spacy_hocrf.api import TOKEN, AttributeTemplate, PiecesTemplate, Template

EDGE = "<edge>"


def word_templates(templates: Sequence[Any]) -> list[Template]:
    """Those that look at the words of a segment, for single labels.

    RAISES (ValueError): if one of them is of a kind that has no strings here.
    """
    chosen = [each for each in templates if each.part == TOKEN and each.order == 0]
    for each in chosen:
        if not isinstance(each, AttributeTemplate | PiecesTemplate):
            raise ValueError(f"'{each.name}' has no strings here")
    return chosen


def strings_of(doc: Doc, templates: Sequence[Template]) -> list[list[str]]:
    """The observations of each word: a template's name, an equals sign, and what is observed."""
    names = {name for template in templates for name in template.attributes}
    columns = {name: [attribute(token, name) for token in doc] for name in names}
    return [[*observed(columns, templates, i)] for i in range(len(doc))]


def observed(columns: dict[str, list[str]], templates: Sequence[Template], i: int) -> Iterator[str]:
    """Those of word i. There is an edge before the first word and after the last, and nothing beyond."""
    for template in templates:
        if isinstance(template, PiecesTemplate):
            column, at = columns[template.attribute], i + template.offset
            pieces = column[at].split(template.separator) if 0 <= at < len(column) else []
            yield from (f"{template.name}={piece}" for piece in dict.fromkeys(pieces) if piece)
            continue
        parts = []
        for name, offset in template.terms:
            column, at = columns[name], i + offset
            if not -1 <= at <= len(column):
                break
            parts.append(column[at] if 0 <= at < len(column) else EDGE)
        else:
            yield f"{template.name}={'|'.join(parts)}"


def attribute(token: Any, name: str) -> str:
    """A string attribute of a token, or an extension attribute."""
    return (
        str(token._.get(name[2:])) if name.startswith("_.") else getattr(token, f"{name.lower()}_")
    )
