"""CoNLL-U, by spaCy's reader: lemmas, tags, heads, and entities in the last column (NE=B-LOC)."""

import re
from collections.abc import Iterator

from spacy.training.converters.conllu_to_docs import conllu_to_docs

from spacy_hocrf.cli.convert.labels import LabelledTokens, spans_by_text
from spacy_hocrf.cli.convert.records import ConvertedText, Place, SourceFile

__all__ = ["read_conllu"]

COLUMNS = 10
NUMBER = re.compile(r"(\d+)(?:([-.])(\d+))?")
"""Number of a word, of a multiword token (1-2), or of an empty node (8.1)."""
ENTITY = re.compile(r"(?:^|\|)(?i:(?:name|ne|ner)=)?([BIESLUM]-[^|]+|O)(?=\||$)")
APART = "SpaceAfter=No"


def read_conllu(source: SourceFile) -> Iterator[ConvertedText]:
    """Read the sentences of a file. A multiword token such as the French "du" (de le) is one token, unless it
    is the concatenation of its words, such as "don't" (do n't): then these are the tokens.

    RAISES (ValueError): H290 for an invalid line, H291 for bytes that the encoding does not have.
    """
    texts = list(_sentences(source))
    labels = [_entities(source, lines, rows) for *_, lines, rows in texts]
    has_entities = any(label for text in labels for label in text.labels)
    annotation = spans_by_text(labels, source.settings.scheme) if has_entities else None
    text = "\n\n".join("\n".join(map("\t".join, rows)) for *_, rows in texts)
    docs = conllu_to_docs(text, n_sents=1, merge_subtokens=True, no_print=True)  # type: ignore[no-untyped-call]
    for i, (name, lines, _) in enumerate(texts):
        place = source.at(f"line {lines[0]}")
        try:
            doc = next(docs)
        except (ValueError, KeyError, IndexError, OverflowError) as error:
            place.refuse(str(error), "a sentence that spaCy's reader of CoNLL-U reads")
        if annotation is None:
            place.lose("texts of a file without entities (NE=…): these are unknown")
        spans, unknown = (None, []) if annotation is None else annotation[i]
        tags = [token.tag_ for token in doc]
        yield ConvertedText(place, spans=spans, tags=tags, unknown=unknown, id=name, doc=doc)


def _sentences(source: SourceFile) -> Iterator[tuple[str, list[int], list[list[str]]]]:
    """Yield each sentence's id, and the line numbers and the columns of its words."""
    rows, lines, inside, name = list[list[str]](), list[int](), 0, ""
    for number, line in enumerate([*source.lines(), ""], start=1):
        place = source.at(f"line {number}")
        if not line.strip():
            if rows and inside > sum("-" not in row[0] for row in rows):
                place.refuse("the end of the sentence", f"word {inside}")
            if rows:
                kept = list(_split(lines, rows))
                what = "tokens of several words (1-2) that do not make them up: one token"
                for each, row in kept:
                    source.at(f"line {each}").lose(what, "-" in row[0])
                yield name, [at for at, _ in kept], [row for _, row in kept]
            rows, lines, inside, name = [], [], 0, ""
            continue
        if line.startswith("#"):
            key, _, value = line[1:].partition("=")
            name = value.strip() if key.strip() == "sent_id" else name
            continue
        row, words = line.split("\t"), sum("-" not in row[0] for row in rows)
        match = NUMBER.fullmatch(row[0])
        if len(row) != COLUMNS or match is None:
            expected = f"a number and {COLUMNS - 1} more columns, with tabs between"
            place.refuse(repr(line)[:80], expected)
        if match[2] == ".":
            place.lose("words that are not in the text (8.1): left out")
            continue
        start, end = int(match[1]), int(match[3] or match[1])
        if start != words + 1 or end < start or (match[2] and start <= inside):
            place.refuse(f"the number {row[0]}", f"word {words + 1}")
        if match[2]:
            inside = end
        lines.append(number)
        rows.append(row)


def _split(lines: list[int], rows: list[list[str]]) -> Iterator[tuple[int, list[str]]]:
    """Yield words with their lines, without multiword tokens that are the concatenation of their words."""
    spaces: dict[str, str] = {}  # APART or "", by number of the word before
    for i, (line, row) in enumerate(zip(lines, rows)):
        start, _, end = row[0].partition("-")
        words = rows[i + 1 : i + 2 + int(end or start) - int(start)]
        if end and "".join(word[1] for word in words) == row[1]:
            spaces |= {word[0]: APART for word in words[:-1]}
            spaces[end] = APART if APART in row[-1] else ""
        elif row[0] in spaces:
            others = [part for part in row[-1].split("|") if part not in (APART, "_")]
            misc = "|".join([*others, *filter(None, [spaces[row[0]]])])
            yield line, [*row[:-1], misc or "_"]
        else:
            yield line, row


def _entities(source: SourceFile, lines: list[int], rows: list[list[str]]) -> LabelledTokens:
    """Find the label of each token, the first label of its words; "" for none."""
    labels, places, last = list[str](), list[Place](), 0
    for line, (number, *_, misc) in zip(lines, rows):
        start, _, end = number.partition("-")
        entity = ENTITY.search(misc)
        if int(start) > last:
            labels.append("")
            places.append(source.at(f"line {line}"))
            last = int(end or start)
        labels[-1] = labels[-1] or (entity[1] if entity else "")
    return LabelledTokens(places, labels)
