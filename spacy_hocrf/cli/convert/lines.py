"""JSON of texts with character spans: exports of Prodigy, doccano and Label Studio, displaCy's format, and
the output of models, with scores, or with words instead of offsets.

{"text": "Ada ran", "entities": [{"text": "Ada", "label": "PER", "score": 0.9}]}

Texts that nobody has annotated are unknown: an open or skipped task of Label Studio, an entry without a list
of spans, a text of doccano that is not approved. An empty list means that there are no spans.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any
from unicodedata import category, normalize

from spacy_hocrf.cli.convert.entries import (
    OTHERWISE,
    about_text,
    by_characters,
    counted,
    named_id,
    named_span,
    refuse_span,
    spans_inside,
    whole_number,
)
from spacy_hocrf.cli.convert.records import (
    UNSPACED,
    CharSpan,
    ConvertedText,
    ConvertSettings,
    Report,
    refuse,
)
from spacy_hocrf.types import is_number

__all__ = ["SPAN_KEYS", "TEXT_KEYS", "read_texts"]

TEXT_KEYS = ("text", "data", "sentence", "content", "body")
SPAN_KEYS = ("spans", "label", "labels", "entities", "ents")
PLACED = {"start", "end", "labels"}
SCORE_KEYS = ("score", "confidence", "probability")
KOREAN = "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff\uffa0-\uffdc"
AMID = re.compile(f"[{UNSPACED}{KOREAN}]")
"""Letters next to which a word may begin or end without a blank: in Korean, particles follow a name."""
PART = re.compile("[BI]-")
"""Prefix of labels that a transformers pipeline gives to word pieces."""
APPROVER = "annotation_approver"
"""Key of the user who has approved a text of doccano, null for nobody."""
BINARY = "ner"
"""Prodigy's view id for questions about single spans."""
LEFT_OUT = {
    "relations": "relations between spans: left out",
    "predictions": "predictions of models: left out",
    "drafts": "drafts of annotations: left out",
}
"""Lists of an entry that are not read, and the losses to report."""


def read_texts(
    path: Path, entries: Sequence[tuple[str, Any]], settings: ConvertSettings, report: Report
) -> Iterator[ConvertedText]:
    """Read texts with spans.

    entries (Sequence[tuple[str, Any]]): JSON values, each with its place.
    RAISES (ValueError): H290 for entries without a text, or with invalid spans.
    """
    annotated = any(
        isinstance(each.get(key), list | Mapping)
        for _, each in entries
        if isinstance(each, Mapping)
        for key in (*SPAN_KEYS, "annotations")
    )
    span_keys = SPAN_KEYS if annotated else _span_keys(entries)
    approves = any(isinstance(each, Mapping) and each.get(APPROVER) for _, each in entries)
    named = _key_by_spans(entries)
    for place, entry in entries:
        if not isinstance(entry, Mapping):
            refuse(path, place, f"a {type(entry).__name__}", "an object with a text")
        if not _accepts(entry):
            what = f"texts that were answered with {entry['answer']!r}"[:80]
            report.lose(f"{what}: left out", place)
            continue
        key, text = _text(path, place, entry, named)
        used = {key, "answer", "tokens", "annotations", *LEFT_OUT}
        for name, what in LEFT_OUT.items():
            rows = entry.get(name)
            report.lose(what, place, len(rows) if isinstance(rows, list) else 0)
        is_studio = "annotations" in entry and not _are_spans(entry["annotations"])
        if is_studio and not isinstance(entry["annotations"], (list, type(None))):
            refuse(path, place, "annotations that are no list", "a list of annotations")
        spans, unknown = None, list[tuple[int, int]]()
        scores = dict[CharSpan, float]()
        if is_studio:
            spans, unknown = _of_label_studio(path, place, entry["annotations"] or [], text, report)
        else:
            keys = (
                key
                for key in (*span_keys, "annotations")
                if isinstance(entry.get(key), list | Mapping)
            )
            name = min(
                keys, key=lambda key: (not entry[key], isinstance(entry[key], Mapping)), default=""
            )
            used.add(name)
            if not name:
                said = next(
                    (entry[key] for key in SPAN_KEYS if isinstance(entry.get(key), str)), None
                )
                if said is not None and not annotated:
                    expected = 'a list of spans, such as [[0, 3, "PER"]]'
                    refuse(path, place, f"a label {said!r} of the whole text"[:100], expected)
                report.lose(
                    f"texts without a list of spans ({', '.join(SPAN_KEYS)}): unknown", place
                )
            elif APPROVER in entry and not entry[APPROVER] and (approves or not entry[name]):
                report.lose("texts that nobody has approved: unknown", place)
            else:
                rows = list(map(named_span, _rows(entry[name])))
                placed, unplaced = _placed(rows, text, place, report)
                read = [(_accepts(each), list(_span(path, place, each))) for each in placed]
                for each, (_, found) in zip(placed, read):
                    if (score := _score(path, place, each)) is not None:
                        scores |= {span: max(score, scores.get(span, 0.0)) for span in found}
                spans = [span for accepted, found in read if accepted for span in found]
                unknown = [span[:2] for accepted, found in read if not accepted for span in found]
                report.lose("spans that were not accepted: unknown", place, len(unknown))
                unknown += unplaced
        spans_inside(path, place, text, [*(spans or ()), *((*each, "") for each in unknown)])
        words, spaces = _words(entry, text, place, report)
        meta = about_text(_flat(entry, key, named), used)
        is_binary = entry.get("_view_id") == BINARY
        report.lose("answers about one span: the rest of the text is unknown", place, is_binary)
        unknown += [(0, len(text))] * is_binary
        yield ConvertedText(
            place, words, spaces, text, spans, unknown=unknown, id=named_id(entry), meta=meta,
            scores=scores,
        )  # fmt: skip


def _are_spans(annotations: Any) -> bool:
    """Is the list under "annotations" one of spans, rather than of Label Studio's annotations?"""
    rows = map(named_span, annotations if isinstance(annotations, list) else ())
    return any(isinstance(row, Mapping) and "label" in row and "result" not in row for row in rows)


def _rows(value: Any) -> list[Any]:
    """List the spans; in an object, names are labels and values are spans."""
    if not isinstance(value, Mapping):
        return list(value)
    return [
        {**each, "label": label} if isinstance(each, Mapping)
        else [*each, label] if isinstance(each, list)
        else {"text": str(each), "label": label}
        for label, said in value.items()
        for each in (said if isinstance(said, list) else [said])
        if each not in (None, "")
    ]  # fmt: skip


def _accepts(entry: Any) -> bool:
    """Is an entry, or a span, not rejected?"""
    return not isinstance(entry, Mapping) or entry.get("answer", "accept") == "accept"


def _span_keys(entries: Sequence[tuple[str, Any]]) -> tuple[str, ...]:
    """Find the keys of lists of spans: in Label Studio's JSON-MIN, these are names of controls."""
    return (
        *SPAN_KEYS,
        *dict.fromkeys(
            key
            for _, entry in entries
            if isinstance(entry, Mapping)
            for key, rows in entry.items()
            if isinstance(rows, list)
            and any(isinstance(row, Mapping) and PLACED <= row.keys() for row in rows)
        ),
    )


def _key_by_spans(entries: Sequence[tuple[str, Any]]) -> str:
    """Find the member of tasks' data that has the words of most spans at their offsets; "" for none."""
    times = Counter[str]()
    for _, entry in entries:
        data = entry.get("data") if isinstance(entry, Mapping) else None
        if isinstance(data, Mapping) and not _text_key(data, ""):
            for value in _values(entry.get("annotations")):
                start, end = (whole_number(value.get(each)) for each in ("start", "end"))
                if type(start) is type(end) is int and value.get("text"):
                    times.update(
                        key
                        for key, text in data.items()
                        if isinstance(text, str) and text[start:end] == value["text"]
                    )
    return next((key for key, _ in times.most_common(1)), "")


def _values(annotations: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the values of valid results in Label Studio's annotations."""
    for each in annotations if isinstance(annotations, list) else ():
        results = each.get("result") if isinstance(each, Mapping) else None
        for result in results if isinstance(results, list) else ():
            if isinstance(result, Mapping) and isinstance(result.get("value"), Mapping):
                yield result["value"]


def _text(path: Path, place: str, entry: Mapping[str, Any], named: str) -> tuple[str, str]:
    """Find the text of an entry; return its key and the text."""
    for key in TEXT_KEYS:
        value = entry.get(key)
        if isinstance(value, Mapping):  # Label Studio: the task's data
            texts = [name for name, each in value.items() if isinstance(each, str)]
            value = value.get(_text_key(value, named))
            if value is None and texts:
                found = f"data with the texts {', '.join(map(str, texts))}"[:200]
                refuse(path, place, found, "the annotated one of them under 'text'")
        if isinstance(value, str):
            return key, value
    refuse(path, place, f"the keys {', '.join(map(str, entry))}"[:200], "a text under 'text'")


def _text_key(data: Mapping[str, Any], named: str) -> str:
    """Find the member of a task's data that is its text; "" if unclear. named (str): the guess by spans."""
    texts = [name for name, value in data.items() if isinstance(value, str)]
    named = "text" if "text" in texts else named
    return named if named in texts else texts[0] if len(texts) == 1 else ""


def _flat(entry: Mapping[str, Any], key: str, named: str) -> Mapping[str, Any]:
    """Merge the task's data, if the text is in it, with the other members of an entry."""
    data = entry[key]
    if not isinstance(data, Mapping):
        return entry
    others = {name: value for name, value in data.items() if name != _text_key(data, named)}
    return {**others, **entry}


def _of_label_studio(
    path: Path, place: str, annotations: Sequence[Any], text: str, report: Report
) -> tuple[list[CharSpan] | None, list[tuple[int, int]]]:
    """Read the spans of the first annotation that was not cancelled, None if there is none; and the unknown
    parts: the rest of the text, if some spans cannot be read.
    """
    for each in annotations:
        if not isinstance(each, Mapping):
            refuse(path, place, f"the annotation {each!r}"[:100], "an object with a 'result'")
        if not isinstance(each.get("result"), (list, type(None))):
            refuse(path, place, f"the result {each['result']!r}"[:100], "a list")
    report.lose("tasks that nobody has annotated: unknown", place, not annotations)
    done = [each for each in annotations if not each.get("was_cancelled")]
    report.lose("tasks that were skipped: unknown", place, bool(annotations) and not done)
    said = [each["result"] for each in done if each.get("result") is not None]
    report.lose("annotations without a result: unknown", place, len(done) - len(said))
    report.lose("further annotations of a text: left out", place, max(0, len(said) - 1))
    if not said:
        return None, []
    found, unread = list[CharSpan](), 0
    for each in said[0]:
        if not isinstance(each, Mapping):
            refuse(path, place, f"the result {each!r}"[:100], "an object with a 'value'")
        value = each.get("value")
        if each.get("type") == "relation":
            report.lose(LEFT_OUT["relations"], place)
        elif isinstance(value, Mapping) and "start" in value and value.get("labels"):
            found += _span(path, place, by_characters(value, text, place, report))
        elif str(each.get("type")).endswith("labels"):
            unread += 1
        else:
            report.lose("results that are no labelled spans: left out", place)
    what = "spans without a label or a place in the text: it is unknown but for others"
    report.lose(what, place, unread)
    return found, [(0, len(text))] if unread and text else []


def _score(path: Path, place: str, entry: Any) -> float | None:
    """Return a span's score; None if it has none. RAISES (ValueError): H290 if it is no probability."""
    known = (entry.get(key) for key in SCORE_KEYS) if isinstance(entry, Mapping) else ()
    score = next((score for score in known if score is not None), None)
    if score is None or (is_number(score) and 0.0 <= score <= 1.0):
        return None if score is None else float(score)
    refuse(path, place, f"the score {score!r}"[:100], "a probability from 0 to 1")


def _placed(
    rows: Sequence[Any], text: str, place: str, report: Report
) -> tuple[list[Any], list[tuple[int, int]]]:
    """Find the offsets of spans that are given only by their words. The first such span gets the first
    occurrence of its words in the text, the next one the second, and so on, from the start again if there are
    none left. Occurrences inside of other spans' words count only if there are no others. Occurrences that no
    span gets are unknown. Words that are not in the text are searched ignoring case; if they are not found
    either, the whole text is unknown except for the spans.

    RETURNS (tuple[list[Any], list[tuple[int, int]]]): spans, and unknown parts.
    """
    placed, unknown = list[Any](), list[tuple[int, int]]()
    rows = _where_words_are(rows, text, place, report)
    said = dict.fromkeys(filter(None, map(_words_alone, rows)))
    places = _places_of(said, text)
    absent = {words.casefold() for words, each in places.items() if not each}
    folded = {words: words.casefold() for words in said if words.casefold() in absent}
    exact = {words for words, each in places.items() if each}
    places = {words: each for words, each in places.items() if words not in folded}
    places |= _places_of(absent, text, str.casefold)
    inside, mentions = _inside(at for each in places.values() for at in each), Counter[str]()
    places = {
        words: [at for at in each if at not in inside] or each for words, each in places.items()
    }
    for row in rows:
        words = _words_alone(row)
        if not words:
            placed.append(row)
            continue
        is_exact, words = words in exact, folded.get(words, words)
        what = "spans whose words the text has in other capitals: taken"
        report.lose(what, place, bool(places[words]) and not is_exact)
        if not places[words]:
            report.lose(
                "spans whose words are not in the text: it is unknown but for others", place
            )
            unknown.append((0, len(text)))
        else:
            rounds, which = divmod(mentions[words], len(places[words]))
            report.lose(
                "words of spans that the text has less often: at the same places again",
                place,
                rounds > 0,
            )
            start, end = places[words][which]
            placed.append({**row, "start": start, "end": end})
            mentions[words] += 1
    again = [at for words, each in places.items() for at in each[mentions[words] :]]
    report.lose("words of spans that the text has more often: unknown there", place, len(again))
    return placed, unknown + again


def _where_words_are(rows: Sequence[Any], text: str, place: str, report: Report) -> list[Any]:
    """Convert spans to characters; remove offsets that are wrong, if the text has the words elsewhere."""
    read = [counted(x, text, place, report) if isinstance(x, Mapping) else x for x in rows]
    pairs = zip(rows, read)
    named = [{**x, "start": None} if isinstance(x, Mapping) and y is None else {} for x, y in pairs]
    places = _places_of(dict.fromkeys(filter(None, map(_words_alone, named))), text)
    for i, each in enumerate(named):
        if each:
            is_there = bool(places.get(_words_alone(each)))
            read[i] = each if is_there else rows[i]
            what = "spans at places that do not have their words: where the words are"
            report.lose(what if is_there else OTHERWISE, place)
    return read


def _inside(places: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
    """Find the places that are inside another one."""
    found, last = set[tuple[int, int]](), 0
    for start, end in sorted({*places}, key=lambda at: (at[0], -at[1])):
        if end <= last:
            found.add((start, end))
        last = max(last, end)
    return found


def _places_of(
    words: Collection[str], text: str, fold: Callable[[str], str] = str
) -> dict[str, list[tuple[int, int]]]:
    """Find all occurrences of phrases in a text, as whole words, in one pass: a trie of the phrases' pieces
    is followed from each piece of the text.

    fold (Callable[[str], str]): normalizes pieces before they are compared.
    """
    places = {each: list[tuple[int, int]]() for each in words}
    if not places:
        return places
    trie: dict[str, Any] = {}
    for each in places:
        node = trie
        for piece in _cut(each)[0]:
            node = node.setdefault(fold(piece), {})
        node[""] = places[each]
    pieces, bounds = _cut(text)
    pieces = list(map(fold, pieces))
    for first, start in enumerate(bounds[:-1]):
        node, last = trie, first
        while last < len(pieces) and (following := node.get(pieces[last])):
            node, last = following, last + 1
            found = node.get("")
            if found is not None and (not found or found[-1][1] <= start):
                found.append((start, bounds[last]))
    return places


def _cut(text: str) -> tuple[list[str], list[int]]:
    """Split a text into words, punctuation and white space; return the pieces, and their bounds. White space
    is normalized to one blank, and letters with accents to NFC.
    """
    inner = (
        at
        for at in range(1, len(text))
        if not _goes_on(text, at) and not text[at - 1 : at + 1].isspace()
    )
    bounds = [0, *inner, len(text)]
    parts = [text[start:end] for start, end in pairwise(bounds)]
    return [" " if part.isspace() else normalize("NFC", part) for part in parts], bounds


def _goes_on(text: str, at: int) -> bool:
    """Are the characters before and at a position in one word, or a letter with its accent?"""
    before, after = text[at - 1], text[at]
    are_letters = all(sign.isalnum() or sign == "_" or _is_mark(sign) for sign in (before, after))
    return _is_mark(after) or (are_letters and not AMID.search(before + after))


def _is_mark(sign: str) -> bool:
    """Is a character an accent, a vowel sign or the like, which combines with the letter before it?"""
    return category(sign).startswith("M")


def _words_alone(row: Any) -> str:
    """Return the words of a span without offsets, with normalized white space and accents; "" for others."""
    if not isinstance(row, Mapping) or row.get("start") is not None:
        return ""
    words = row.get("text")
    return normalize("NFC", " ".join(words.split())) if isinstance(words, str) else ""


def _span(path: Path, place: str, entry: Any) -> Iterator[CharSpan]:
    """Parse a list of start, end and label, or an object with them; several labels make several spans."""
    if isinstance(entry, list) and len(entry) == 3:
        start, end, labels = entry
    elif isinstance(entry, Mapping):
        start, end, labels = (named_span(entry).get(key) for key in ("start", "end", "label"))
    else:
        start = end = labels = None
    start, end = whole_number(start), whole_number(end)
    if isinstance(entry, Mapping) and PART.match(str(entry.get("entity"))):
        expected = "spans as a whole: aggregation_strategy='simple' in transformers"
        refuse(path, place, f"the part of a span {entry!r}"[:150], expected)
    names = labels if isinstance(labels, list) else [labels]
    are_names = names and all(isinstance(name, str) and name.strip() for name in names)
    if type(start) is not int or type(end) is not int or not are_names:
        refuse_span(path, place, entry, labels)
    for name in names:
        yield start, end, name.strip()


def _words(
    entry: Mapping[str, Any], text: str, place: str, report: Report
) -> tuple[list[str] | None, list[bool] | None]:
    """Read Prodigy's tokens, and whether a space follows each; None without them."""
    tokens = entry.get("tokens")
    if not isinstance(tokens, list) or not all(
        isinstance(each, Mapping) and each.get("text") and isinstance(each["text"], str)
        for each in tokens
    ):
        return None, None
    words = [each["text"] for each in tokens]
    spaces = [bool(each.get("ws")) for each in tokens]
    if "".join(word + " " * space for word, space in zip(words, spaces)) != text:
        report.lose("tokens that do not make up their text: tokenized anew", place)
        return None, None
    return words, spaces
