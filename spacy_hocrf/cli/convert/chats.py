"""Logs of chats and who replies to whom: NAME.ascii.txt beside NAME.annotation.txt, as Kummerfeld et al. (ACL
2019) publish them.

A line of a log is a message, `[03:18] <ann> hi` or `[03:18]  * ann waves`, or anything else, a note. A
line `1003 1007 -` of the annotation says that line 1007 replies to line 1003, counted from 0; a line that
is linked to itself begins something. The lines from the first that replies to the last are annotated.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from spacy_hocrf.cli.convert.records import CharSpan, Record, Report, Settings, lines_of, refuse

__all__ = ["LINKS", "LOG", "read_chats"]

LOG, LINKS = ".ascii.txt", ".annotation.txt"
MESSAGE = re.compile(r"\[(\d\d):(\d\d)\] (?:<([^>]*)>| \* (\S+))")
KEY = "hocrf_links"
"""The extension attribute of Docs that `hocrf_links` learns from."""


def read_chats(path: Path, settings: Settings, report: Report) -> Iterator[Record]:
    """The annotated part of a log: a span for each line, with its number as its id, and the extension
    attributes `author` and `minute` (of the day; None of notes).

    RAISES (ValueError): H290 for a log without its annotation, or a line of that which is none; H291 for
        bytes that the encoding does not have.
    """
    name = path.name.removesuffix(LOG)
    annotation = path.with_name(f"{name}{LINKS}")
    if name == path.name or not annotation.is_file():
        refuse(path, "it", "a log without annotation", f"NAME{LOG}, and NAME{LINKS} beside it")
    lines = lines_of(path, settings.encoding)
    links = list(_links(annotation, settings.encoding, len(lines)))
    if links:
        yield _chat(name, lines, links, report)
    else:
        report.lose("logs of which nothing is annotated: left out", name)


def _links(path: Path, encoding: str, n: int) -> Iterator[tuple[int, int]]:
    """The earlier and the later of n lines of each pair."""
    for number, line in enumerate(lines_of(path, encoding), start=1):
        fields = line.split()
        ends = sorted(int(each) for each in fields[:2] if each.isdecimal())
        if fields and len(ends) < 2:
            refuse(path, f"line {number}", repr(line)[:80], "numbers of two lines of the log")
        if fields and ends[1] >= n:
            expected = f"a line of the log, which has {n}, counted from 0"
            refuse(path, f"line {number}", f"line {ends[1]}", expected)
        if fields:
            yield ends[0], ends[1]


def _chat(name: str, lines: list[str], links: list[tuple[int, int]], report: Report) -> Record:
    """What is annotated of a log."""
    first, last = (choose(later for _, later in links) for choose in (min, max))
    spans, numbers, parts = list[CharSpan](), list[int](), list[str]()
    begin = 0
    for number, line in enumerate(lines[first : last + 1], start=first):
        text = line.strip()  # since white space is a token of its own, or none
        if text:
            start = begin + line.index(text)
            found = MESSAGE.match(line)
            kind = "note" if found is None else "action" if found[4] else "message"
            spans.append((start, start + len(text), kind))
            numbers.append(number)
        parts.append(line)
        begin += len(line) + 1
    known = [MESSAGE.match(lines[number]) for number in numbers]
    item = {number: i for i, number in enumerate(numbers)}
    pairs = [
        [item[later], item[earlier]] for earlier, later in links if {earlier, later} <= item.keys()
    ]
    what = "links to lines before the annotated part, or to empty ones: left out"
    report.lose(what, f"{name}, line {first + 1}", len(links) - len(pairs))
    return Record(
        name,
        text="\n".join(parts),
        spans=spans,
        span_ids=[str(number) for number in numbers],
        span_attributes={
            "author": [each and (each[3] or each[4]) for each in known],
            "minute": [each and 60 * int(each[1]) + int(each[2]) for each in known],
        },
        about={"log": name, KEY: pairs},
    )
