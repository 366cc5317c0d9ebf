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
from typing import Any, NamedTuple
from unicodedata import category, normalize

from spacy_hocrf.cli.convert.entries import (
    OTHERWISE,
    Entries,
    about_text,
    by_characters,
    counted,
    named_id,
    named_span,
    refuse_span,
    spans_inside,
    whole_number,
)
from spacy_hocrf.cli.convert.records import UNSPACED, CharSpan, ConvertedText, Place, SourceFile
from spacy_hocrf.types import is_number

__all__ = ["SPAN_KEYS", "TEXT_KEYS", "read_texts", "score_of"]

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

TEXT_LABELS = ("labels", "hypertextlabels", "paragraphlabels")
"""Types of Label Studio's results that are spans of a text; rectanglelabels, for example, are of an image."""


def read_texts(source: SourceFile, entries: Entries) -> Iterator[ConvertedText]:
    """Read texts with spans.

    RAISES (ValueError): H290 for entries without a text, or with invalid spans.
    """
    keys = _keys_of(entries)
    for place, entry in entries:
        if not isinstance(entry, Mapping):
            place.refuse(f"a {type(entry).__name__}", "an object with a text")
        if _accepts(entry):
            yield _record(place, entry, keys)
        else:
            what = f"texts that were answered with {entry['answer']!r}"[:80]
            place.lose(f"{what}: left out")


class _Keys(NamedTuple):
    """What the entries of a file together say of each.

    spans (tuple[str, ...]): possible keys of a list of spans.
    data (str): member of tasks' data that is the text, guessed by its spans; "" for none.
    annotated (bool): does an entry have a list of spans under a usual key?
    approved (bool): did anybody approve a text of doccano?
    """

    spans: tuple[str, ...]
    data: str
    annotated: bool
    approved: bool


class _Annotation(NamedTuple):
    """Spans in characters, None for a text that nobody has annotated; unknown parts; scores of spans."""

    spans: list[CharSpan] | None
    unknown: Sequence[tuple[int, int]] = ()
    scores: Mapping[CharSpan, float] = {}


def _keys_of(entries: Entries) -> _Keys:
    objects = [entry for _, entry in entries if isinstance(entry, Mapping)]
    usual = (*SPAN_KEYS, "annotations")
    annotated = any(isinstance(x.get(key), list | Mapping) for x in objects for key in usual)
    controls = () if annotated else _controls(objects)
    approved = any(each.get(APPROVER) for each in objects)
    return _Keys((*SPAN_KEYS, *controls), _key_by_spans(objects), annotated, approved)


def _record(place: Place, entry: Mapping[str, Any], keys: _Keys) -> ConvertedText:
    """Read one entry."""
    key, text = _text(place, entry, keys.data)
    for name, what in LEFT_OUT.items():
        rows = entry.get(name)
        place.lose(what, len(rows) if isinstance(rows, list) else 0)
    name = ""
    if "annotations" in entry and not _are_spans(entry["annotations"]):
        annotation = _of_label_studio(place, entry["annotations"], text)
    elif name := _key_of_spans(entry, keys):
        annotation = _of_list(place, entry, name, text, keys)
    else:
        annotation = _of_nothing(place, entry, keys)
    spans, unknown, scores = annotation
    spans_inside(place, text, [*(spans or ()), *((*each, "") for each in unknown)])
    words, spaces = _words(entry, text, place)
    used = {key, name, "answer", "tokens", "annotations", *LEFT_OUT}
    meta = about_text(_flat(entry, key, keys.data), used)
    if entry.get("_view_id") == BINARY:
        place.lose("answers about one span: the rest of the text is unknown")
        unknown = [*unknown, (0, len(text))]
    return ConvertedText(
        place, words, spaces, text, spans, unknown=unknown, id=named_id(entry), meta=meta,
        scores=scores,
    )  # fmt: skip


def _key_of_spans(entry: Mapping[str, Any], keys: _Keys) -> str:
    """Find the key of an entry's spans: lists before objects, empty ones last; "" for none."""
    possible = (
        key for key in (*keys.spans, "annotations") if isinstance(entry.get(key), list | Mapping)
    )
    return min(
        possible, key=lambda key: (not entry[key], isinstance(entry[key], Mapping)), default=""
    )


def _of_nothing(place: Place, entry: Mapping[str, Any], keys: _Keys) -> _Annotation:
    """Report a text without a list of spans. RAISES (ValueError): H290 if it has a label as a whole."""
    label = next((entry[key] for key in SPAN_KEYS if isinstance(entry.get(key), str)), None)
    if label is not None and not keys.annotated:
        expected = 'a list of spans, such as [[0, 3, "PER"]]'
        place.refuse(f"a label {label!r} of the whole text"[:100], expected)
    place.lose(f"texts without a list of spans ({', '.join(SPAN_KEYS)}): unknown")
    return _Annotation(None)


def _of_list(
    place: Place, entry: Mapping[str, Any], name: str, text: str, keys: _Keys
) -> _Annotation:
    """Read the spans under a key."""
    if APPROVER in entry and not entry[APPROVER] and (keys.approved or not entry[name]):
        place.lose("texts that nobody has approved: unknown")
        return _Annotation(None)
    rows = list(map(named_span, _rows(entry[name])))
    placed, unplaced = _placed(rows, text, place)
    spans, rejected, scores = list[CharSpan](), list[tuple[int, int]](), dict[CharSpan, float]()
    for row in placed:
        its_spans = list(_span(place, row))
        if (score := score_of(place, row)) is not None:
            scores |= {span: max(score, scores.get(span, 0.0)) for span in its_spans}
        if _accepts(row):
            spans += its_spans
        else:
            rejected += [span[:2] for span in its_spans]
    place.lose("spans that were not accepted: unknown", len(rejected))
    return _Annotation(spans, rejected + unplaced, scores)


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
        for label, spans in value.items()
        for each in (spans if isinstance(spans, list) else [spans])
        if each not in (None, "")
    ]  # fmt: skip


def _accepts(entry: Any) -> bool:
    """Is an entry, or a span, not rejected?"""
    return not isinstance(entry, Mapping) or entry.get("answer", "accept") == "accept"


def _controls(entries: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Find the keys of lists of spans in Label Studio's JSON-MIN, which are names of controls."""
    keys = (
        key
        for entry in entries
        for key, rows in entry.items()
        if isinstance(rows, list)
        and any(isinstance(row, Mapping) and PLACED <= row.keys() for row in rows)
    )
    return tuple(dict.fromkeys(keys))


def _key_by_spans(entries: Sequence[Mapping[str, Any]]) -> str:
    """Find the member of tasks' data that has the words of most spans at their offsets; "" for none."""
    times = Counter[str]()
    for entry in entries:
        data = entry.get("data")
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


def _text(place: Place, entry: Mapping[str, Any], named: str) -> tuple[str, str]:
    """Find the text of an entry; return its key and the text."""
    for key in TEXT_KEYS:
        value = entry.get(key)
        if isinstance(value, Mapping):  # Label Studio: the task's data
            texts = [name for name, each in value.items() if isinstance(each, str)]
            value = value.get(_text_key(value, named))
            if value is None and texts:
                found = f"data with the texts {', '.join(map(str, texts))}"[:200]
                place.refuse(found, "the annotated one of them under 'text'")
        if isinstance(value, str):
            return key, value
    place.refuse(f"the keys {', '.join(map(str, entry))}"[:200], "a text under 'text'")


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


def _of_label_studio(place: Place, annotations: Any, text: str) -> _Annotation:
    """Read the spans of the first annotation that was not cancelled. If some cannot be read, the rest of the
    text is unknown.
    """
    if not isinstance(annotations, (list, type(None))):
        place.refuse("annotations that are no list", "a list of annotations")
    for each in annotations or []:
        if not isinstance(each, Mapping):
            place.refuse(f"the annotation {each!r}"[:100], "an object with a 'result'")
        if not isinstance(each.get("result"), (list, type(None))):
            place.refuse(f"the result {each['result']!r}"[:100], "a list")
    place.lose("tasks that nobody has annotated: unknown", not annotations)
    done = [each for each in annotations or [] if not each.get("was_cancelled")]
    place.lose("tasks that were skipped: unknown", bool(annotations) and not done)
    results = [each["result"] for each in done if each.get("result") is not None]
    place.lose("annotations without a result: unknown", len(done) - len(results))
    place.lose("further annotations of a text: left out", max(0, len(results) - 1))
    if not results:
        return _Annotation(None)
    spans, unread = list[CharSpan](), 0
    for each in results[0]:
        if not isinstance(each, Mapping):
            place.refuse(f"the result {each!r}"[:100], "an object with a 'value'")
        value = each.get("value")
        if each.get("type") == "relation":
            place.lose(LEFT_OUT["relations"])
        elif isinstance(value, Mapping) and "start" in value and value.get("labels"):
            spans += _span(place, by_characters(value, text, place))
        elif each.get("type") in TEXT_LABELS:
            unread += 1
        else:
            place.lose("results that are no labelled spans: left out")
    place.lose("spans without a label or a place in the text: it is unknown but for others", unread)
    return _Annotation(spans, [(0, len(text))] if unread and text else [])


def score_of(place: Place, entry: Any) -> float | None:
    """Return a span's score; None if it has none. RAISES (ValueError): H290 if it is no probability."""
    is_named = isinstance(entry, Mapping)
    scores = [entry.get(key) for key in SCORE_KEYS] if is_named else entry[3:4]
    score = next((score for score in scores if score is not None), None)
    if score is None or (is_number(score) and 0.0 <= score <= 1.0):
        return None if score is None else float(score)
    place.refuse(f"the score {score!r}"[:100], "a probability from 0 to 1")


def _placed(
    rows: Sequence[Any], text: str, place: Place
) -> tuple[list[Any], list[tuple[int, int]]]:
    """Find the offsets of spans that are given only by their words. The first such span gets the first
    occurrence of its words in the text, the next one the second, and so on, from the start again if there are
    none left. Occurrences inside of other spans' words count only if there are no others. Occurrences that no
    span gets are unknown. Words that are not in the text are searched ignoring case; if they are not found
    either, the whole text is unknown except for the spans.

    RETURNS (tuple[list[Any], list[tuple[int, int]]]): spans, and unknown parts.
    """
    placed, unknown = list[Any](), list[tuple[int, int]]()
    rows = _where_words_are(rows, text, place)
    phrases = dict.fromkeys(filter(None, map(_words_alone, rows)))
    places = _places_of(phrases, text)
    absent = {words.casefold() for words, each in places.items() if not each}
    folded = {words: words.casefold() for words in phrases if words.casefold() in absent}
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
        is_folded = bool(places[words]) and not is_exact
        place.lose("spans whose words the text has in other capitals: taken", is_folded)
        if not places[words]:
            place.lose("spans whose words are not in the text: it is unknown but for others")
            unknown.append((0, len(text)))
        else:
            rounds, which = divmod(mentions[words], len(places[words]))
            what = "words of spans that the text has less often: at the same places again"
            place.lose(what, rounds > 0)
            start, end = places[words][which]
            placed.append({**row, "start": start, "end": end})
            mentions[words] += 1
    again = [at for words, each in places.items() for at in each[mentions[words] :]]
    place.lose("words of spans that the text has more often: unknown there", len(again))
    return placed, unknown + again


def _where_words_are(rows: Sequence[Any], text: str, place: Place) -> list[Any]:
    """Convert spans to characters; remove offsets that are wrong, if the text has the words elsewhere."""
    read = [counted(x, text, place) if isinstance(x, Mapping) else x for x in rows]
    pairs = zip(rows, read)
    named = [{**x, "start": None} if isinstance(x, Mapping) and y is None else {} for x, y in pairs]
    places = _places_of(dict.fromkeys(filter(None, map(_words_alone, named))), text)
    for i, each in enumerate(named):
        if each:
            is_there = bool(places.get(_words_alone(each)))
            read[i] = each if is_there else rows[i]
            what = "spans at places that do not have their words: where the words are"
            place.lose(what if is_there else OTHERWISE)
    return read


def _inside(places: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
    """Find the places that are inside another one."""
    inside, last = set[tuple[int, int]](), 0
    for start, end in sorted({*places}, key=lambda at: (at[0], -at[1])):
        if end <= last:
            inside.add((start, end))
        last = max(last, end)
    return inside


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
            occurrences = node.get("")
            if occurrences is not None and (not occurrences or occurrences[-1][1] <= start):
                occurrences.append((start, bounds[last]))
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


def _span(place: Place, entry: Any) -> Iterator[CharSpan]:
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
        place.refuse(f"the part of a span {entry!r}"[:150], expected)
    names = labels if isinstance(labels, list) else [labels]
    are_names = names and all(isinstance(name, str) and name.strip() for name in names)
    if type(start) is not int or type(end) is not int or not are_names:
        refuse_span(place, entry, labels)
    for name in names:
        yield start, end, name.strip()


def _words(
    entry: Mapping[str, Any], text: str, place: Place
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
        place.lose("tokens that do not make up their text: tokenized anew")
        return None, None
    return words, spaces
