"""Files that `hocrf convert` reads."""

import json

import spacy

from spacy_hocrf.cli.convert.command import convert
from spacy_hocrf.cli.convert.records import Report


def read(path, content=None, lang="xx", **options):
    """The Docs of a file, and the report; the file gets this text, or these bytes, before."""
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        path.write_text(content, encoding="utf8", newline="")
    report = Report()
    return list(convert(path, spacy.blank(lang), report, **options)), report


def lines(*entries):
    """JSON with an entry in each line."""
    return "".join(f"{json.dumps(entry)}\n" for entry in entries)


def named(spans):
    return [(span.text, span.label_) for span in spans]


def iob(doc):
    """Of each token: 3 begins an entity, 1 is inside, 2 is outside, of 0 nothing is known."""
    return [token.ent_iob for token in doc]
