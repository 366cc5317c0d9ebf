"""JSON of libraries: spaCy's Docs, training data of spaCy 2, and the output of LangExtract.

["Ada ran", {"entities": [[0, 3, "PER"]]}]                              spaCy 2
{"text": "Ada ran", "ents": [{"start": 0, "end": 3, "label": "PER"}], "tokens": []}     Doc.to_json
{"text": "Ada ran", "extractions": [{"extraction_class": "PER", "char_interval": {}}]}  LangExtract
"""

from collections.abc import Iterator, Mapping
from typing import Any

from spacy_hocrf.cli.convert.entries import Entries, about_text, named_id, span_of, spans_inside
from spacy_hocrf.cli.convert.lines import read_texts, score_of
from spacy_hocrf.cli.convert.records import CharSpan, ConvertedText, SourceFile, tokens_at

__all__ = ["read_doc", "read_extractions", "read_pairs"]


def read_pairs(source: SourceFile, entries: Entries) -> Iterator[ConvertedText]:
    """Read training data of spaCy 2: pairs of a text and an object with its entities."""
    for place, (_, about) in entries:
        others = [key for key in about if key != "entities"]
        place.lose("what is said about a text besides its entities: left out", len(others))
    texts = [(at, {"text": text, "spans": x.get("entities")}) for at, (text, x) in entries]
    yield from read_texts(source, texts)


def read_doc(source: SourceFile, entries: Entries) -> Iterator[ConvertedText]:
    """Read what Doc.to_json wrote: entities, span groups, tokens and their tags."""
    for place, entry in entries:
        text, tokens = entry["text"], entry.get("tokens") or []
        at = 0
        for token in tokens:
            if not at <= token["start"] < token["end"] <= len(text):
                found = f"a token of the characters {token['start']} to {token['end']}"
                place.refuse(found, "tokens inside the text, in order")
            at = token["end"]
        placed = tokens_at(text, [(token["start"], token["end"]) for token in tokens])
        tags = [tokens[i].get("tag", "") if i >= 0 else "" for i in placed.numbers]
        if not all(isinstance(tag, str) for tag in tags):
            place.refuse("a tag that is no text", "a text")
        groups = entry.get("spans", {})
        if not isinstance(groups, Mapping) or not all(isinstance(g, list) for g in groups.values()):
            place.refuse("spans that are no lists by name", '{"sc": [{"start": 0, …}]}')
        ents = entry.get("ents")
        if ents is None:
            place.lose("texts without entities: these are unknown")
        elif not isinstance(ents, list):
            place.refuse(f"ents that are a {type(ents).__name__}", "a list of them")
        groups = {**groups, **({} if ents is None else {"ents": ents})}
        spans = dict[str, list[CharSpan]]()
        for name, group in groups.items():
            named = [each for each in group if not _is_unlabelled(each)]
            place.lose("spans without a label: left out", len(group) - len(named))
            placed_spans = [span_of(place, each) for each in named]
            spans[str(name)] = spans_inside(place, text, placed_spans)
        yield ConvertedText(
            place,
            placed.words if tokens else None,
            placed.spaces if tokens else None,
            text,
            spans.get("ents"),
            tags=tags if any(tags) else None,
            groups=spans,
            id=named_id(entry),
            meta=about_text(entry, {"text", "tokens", "ents", "spans"}),
        )


def _is_unlabelled(span: Any) -> bool:
    """Is an object a span without a label, as Doc.to_json writes it?"""
    return isinstance(span, Mapping) and span.get("label") == ""


def read_extractions(source: SourceFile, entries: Entries) -> Iterator[ConvertedText]:
    """Read LangExtract's output. If an extraction has no place in the text, all other words are unknown."""
    for place, entry in entries:
        text, extractions = entry["text"], entry["extractions"]
        id_ = str(entry.get("document_id") or "")
        meta = about_text(entry, {"text", "extractions", "document_id"})
        if extractions is None:
            place.lose("texts without extractions: these are unknown")
            yield ConvertedText(place, text=text, spans=None, id=id_, meta=meta)
            continue
        spans, lost, scores = list[CharSpan](), 0, dict[CharSpan, float]()
        for each in extractions if isinstance(extractions, list) else [extractions]:
            label = each.get("extraction_class") if isinstance(each, Mapping) else None
            at = each.get("char_interval") if isinstance(each, Mapping) else None
            if not isinstance(label, str) or not isinstance(at, Mapping | None):
                expected = "an extraction_class, and a char_interval with start_pos and end_pos"
                place.refuse(f"the extraction {each!r}"[:100], expected)
            start, end = (at or {}).get("start_pos"), (at or {}).get("end_pos")
            place.lose("attributes of extractions: left out", bool(each.get("attributes")))
            if start is None or end is None:
                lost += 1
                continue
            spans.append(span := span_of(place, [start, end, label]))
            if (score := score_of(place, each)) is not None:
                scores[span] = max(score, scores.get(span, 0.0))
            if each.get("alignment_status", "match_exact") != "match_exact":
                place.lose("extractions whose words are not exactly in the text")
        place.lose(
            "extractions without a place: left out, and what is in no other is unknown", lost
        )
        spans = spans_inside(place, text, spans)
        unknown = [(0, len(text))] if lost and text else []
        yield ConvertedText(
            place, text=text, spans=spans, unknown=unknown, scores=scores, id=id_, meta=meta
        )
