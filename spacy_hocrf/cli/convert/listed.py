"""JSON of tokenized texts, with a label for each token, or with token spans.

{"tokens": ["Ada", "ran"], "ner_tags": ["B-PER", "O"]}              as data sets for Hugging Face have it
{"tokenized_text": ["Ada", "ran"], "ner": [[0, 0, "person"]]}       GLiNER; both ends of a span are in it,
                                                                    a score may follow the label
"""

from collections.abc import Iterator, Sequence
from typing import Any

from spacy_hocrf.cli.convert.entries import WHOLE, Entries, about_text, first_key, named_id, span_of
from spacy_hocrf.cli.convert.labels import LabelledTokens, spans_by_text
from spacy_hocrf.cli.convert.lines import score_of
from spacy_hocrf.cli.convert.records import (
    CharSpan,
    ConvertedText,
    Place,
    SourceFile,
    named_attribute,
)

__all__ = ["TAGS", "WORDS", "read_gliner", "read_tags"]

WORDS = ("tokens", "words")
TAGS = ("ner_tags", "ner", "tags", "labels", "ner_labels", "label", "iob_tags", "bio_tags")
"""Keys of the tokens of a text, and of their labels; the first one that exists counts."""
NOTHING = (None, -100)
"""Labels of tokens with unknown annotation; the second one is from Hugging Face's libraries."""


def read_tags(source: SourceFile, entries: Entries) -> Iterator[ConvertedText]:
    """Read tokens with labels. Numeric labels are indices into the list of `--names`; further lists of the
    same length become token attributes.
    """
    records, tagged = list[ConvertedText](), list[LabelledTokens]()
    for place, entry in entries:
        words_key, key = (first_key(entry, keys, list) for keys in (WORDS, TAGS))
        words = entry[words_key]
        if not key:
            place.lose("texts without a label for each token: these are unknown")
        elif len(entry[key]) != len(words):
            found, expected = f"{len(entry[key])} {key}", f"one for each of {len(words)} tokens"
            place.refuse(found, expected)
        values = entry[key] if key else []
        labels = [_named(place, key, each, source.settings.names) for each in values]
        others = {
            name: values
            for name, values in entry.items()
            if name not in (words_key, key) and isinstance(values, list) and len(values) == len(words)
            and words and all(isinstance(value, str | float) or (type(value) is int and abs(value) < WHOLE)
                              for value in values)
        }  # fmt: skip
        if not all(words):
            place.lose("empty tokens: left out", words.count(""))
            kept = [i for i, word in enumerate(words) if word]
            labels = [labels[i] for i in kept] if key else []
            others = {name: [values[i] for i in kept] for name, values in others.items()}
            words = [word for word in words if word]
        unknown = [(i, i + 1) for i, each in enumerate(labels) if each is None]
        place.lose("tokens without a label: these are unknown", len(unknown))
        record = ConvertedText(
            place,
            words,
            spans=None,
            tags=["" if each is None else each for each in labels] if key else None,
            attributes={named_attribute(name): values for name, values in others.items()},
            unknown=unknown,
            id=named_id(entry),
            meta=about_text(entry, {words_key, key, *others}),
        )
        records.append(record)
        if key:
            tags = ["O" if each is None else each for each in labels]
            tagged.append(LabelledTokens([place] * len(tags), tags))
    if records and not tagged:
        place, expected = entries[0][0], f"a label for each token under {', '.join(TAGS)}"
        place.refuse(f"the keys {', '.join(entries[0][1])}"[:200], expected)
    read = iter(spans_by_text(tagged, source.settings.scheme))
    for record in records:
        if record.tags is not None:
            spans, unknown = next(read)
            record = record._replace(spans=spans, unknown=[*record.unknown, *unknown])
        yield record


def _named(place: Place, key: str, label: Any, names: Sequence[str]) -> str | None:
    """Return the name of a label; None for unknown annotation. RAISES (ValueError): H290 for others."""
    if label in NOTHING:
        return None
    if isinstance(label, str):
        return label
    if type(label) is not int:
        place.refuse(f"{label!r} in {key}"[:100], "names of labels, or their numbers")
    if not 0 <= label < len(names):
        expected = f"those in order, such as --names {','.join(names) or 'O,B-PER,I-PER'}"
        place.refuse(f"the number {label} in {key} without a name", expected)
    return names[label]


def read_gliner(source: SourceFile, entries: Entries) -> Iterator[ConvertedText]:
    """Read GLiNER's data: tokens, and token spans with inclusive ends."""
    for place, entry in entries:
        words, spans = entry["tokenized_text"], entry.get("ner")
        if not isinstance(words, list) or not all(isinstance(each, str) and each for each in words):
            expected = "a list of tokens, none of them empty"
            place.refuse("tokenized_text of another kind", expected)
        meta = about_text(entry, {"tokenized_text", "ner"})
        if spans is None:
            place.lose("texts without spans: these are unknown")
            yield ConvertedText(place, words, spans=None, id=named_id(entry), meta=meta)
            continue
        read, scores = list[CharSpan](), dict[CharSpan, float]()
        for each in spans if isinstance(spans, list) else [spans]:
            start, end, label = span_of(place, each)
            if not 0 <= start <= end < len(words):
                expected = f"some of its {len(words)}, counted from 0"
                place.refuse(f"a span of the tokens {start} to {end}", expected)
            read.append((start, end + 1, label))
            if (score := score_of(place, each)) is not None:
                scores[read[-1]] = max(score, scores.get(read[-1], 0.0))
        yield ConvertedText(place, words, spans=read, scores=scores, id=named_id(entry), meta=meta)
