"""Make Docs of the texts of a file: align spans with tokens, and mark unknown annotation."""

from collections.abc import Iterable, Iterator, Sequence

from spacy.language import Language
from spacy.tokens import Doc, Span, Token
from spacy.util import filter_spans

from spacy_hocrf.annotation.annotation import UNKNOWN, trim
from spacy_hocrf.annotation.identity import set_identity
from spacy_hocrf.cli.convert.records import OF_UNSPACED, ConvertedText, Report

__all__ = ["docs_of"]

Places = Sequence[tuple[int, int]]
"""Parts of a text: first token, and one past the last."""

UNALIGNED = "spans that fit no tokens: unknown, see hocrf convert --lang and --align"
SCORED = "scores of spans: left out, see hocrf convert --into"
OVERLAPPING = "spans that overlap others at least as long: unknown, see hocrf convert --into"
RELABELLED = "further labels of the same words: left out, see hocrf convert --into"


def docs_of(
    records: Iterable[ConvertedText], nlp: Language, *, into: str, align: str
) -> Iterator[Doc]:
    """Make Docs of texts; counts and losses are added to the reports of their sources. Missing annotation is
    unknown: such tokens have no `ent_iob`, no tag, or are listed as `unknown` in the span group's attrs; or
    the Doc has no such group.

    nlp (Language): its tokenizer is used if the file has no tokens.
    into (str): "ents", "tags", or a key of doc.spans.
    align (str): how to align spans that do not fit tokens, as in `Doc.char_span`.
    """
    for record in records:
        report, doc = record.place.source.report, _tokenized(record, nlp)
        if not len(doc):
            record.place.lose("texts without a token: left out")
            continue
        places = dict(record.groups)
        if into == "tags":
            _set_tags(doc, record)
        else:
            named = places.setdefault(into, record.spans) or ()
            report.labels.update(dict.fromkeys((label for *_, label in named), 0))
        for key, spans in places.items():
            _set_spans(doc, record._replace(spans=spans), key, align)
        for name, values in record.attributes.items():
            if not Token.has_extension(name):
                Token.set_extension(name, default="")
            for token, value in zip(doc, values):
                token._.set(name, value)
        set_identity(doc, record.id, record.meta)
        _count(doc, into, report)
        yield doc


def _tokenized(record: ConvertedText, nlp: Language) -> Doc:
    if record.doc is not None:
        return Doc(nlp.vocab).from_bytes(record.doc.to_bytes())
    if record.words is None:
        return nlp.make_doc(record.text)
    spaces = None if record.spaces is None else list(record.spaces)
    if spaces is None and _is_unspaced("".join(record.words)):
        spaces = [False] * len(record.words)
    return Doc(nlp.vocab, words=list(record.words), spaces=spaces)


def _is_unspaced(text: str) -> bool:
    """Are most letters in a script without blanks between words?"""
    if text.isascii():
        return False
    return 2 * len(OF_UNSPACED.findall(text)) > sum(map(str.isalnum, text))


def _set_tags(doc: Doc, record: ConvertedText) -> None:
    if record.tags is None:
        record.place.lose("texts without a label for each token: no tags")
    for token, tag in zip(doc, record.tags or [""] * len(doc)):
        token.tag_ = tag


def _set_spans(doc: Doc, record: ConvertedText, into: str, align: str) -> None:
    if record.spans is None:
        doc.set_ents([], default="missing")
        return
    unknown = [part for stretch in record.unknown for part in _tokens(doc, record, *stretch)]
    spans, scores = _spans(doc, record, align, unknown)
    if into == "ents":
        kept = filter_spans(spans)
        record.place.lose(SCORED, len(scores) - scores.count(None))
        places = {(span.start, span.end) for span in kept}
        same = sum((span.start, span.end) in places for span in spans) - len(kept)
        record.place.lose(RELABELLED, same)
        record.place.lose(OVERLAPPING, len(spans) - len(kept) - same)
        if len(kept) < len(spans):
            unknown += [(span.start, span.end) for span in spans]
        inside = {token.i for span in kept for token in span} if unknown else set()
        missing = {i for start, end in unknown for i in range(start, end)} - inside
        doc.set_ents(kept, missing=[doc[i : i + 1] for i in sorted(missing)], default="outside")
    else:
        doc.spans[into] = spans
        if any(score is not None for score in scores):
            doc.spans[into].attrs["scores"] = [1.0 if p is None else p for p in scores]
        if unknown:
            doc.spans[into].attrs[UNKNOWN] = [list(each) for each in unknown]


def _spans(
    doc: Doc, record: ConvertedText, align: str, unknown: list[tuple[int, int]]
) -> tuple[list[Span], list[float | None]]:
    """Align spans with tokens, without white space at their ends or duplicates; return them and their scores.

    unknown (List[Tuple[int, int]]): the tokens of spans that do not fit are added to it.
    """
    aligned, scores, taken = list[Span](), list[float | None](), set[tuple[int, int, str]]()
    for start, end, label in record.spans or ():
        first, last = (start, end) if not record.text else _stripped(record.text, start, end)
        is_cut = (first, last) != (start, end)
        if record.text:
            fitted = doc.char_span(first, last, label, alignment_mode=align)
            if first < last and (fitted is None or not len(fitted)):
                record.place.lose(UNALIGNED)
                unknown += _tokens(doc, record, first, last)
                continue
            if fitted is not None and (fitted.start_char, fitted.end_char) != (first, last):
                record.place.lose("spans that were fitted to tokens")
            first, last = (0, 0) if fitted is None else (fitted.start, fitted.end)
        at = trim(doc, first, last)
        if at[0] >= at[1]:
            record.place.lose("spans of nothing but white space: left out")
            continue
        if is_cut or at != (first, last):
            record.place.lose("spans with white space at an end: without it")
        if (*at, label) not in taken:
            taken.add((*at, label))
            aligned.append(Span(doc, *at, label))
            scores.append(record.scores.get((start, end, label)))
    return aligned, scores


def _tokens(doc: Doc, record: ConvertedText, start: int, end: int) -> Places:
    """Find the tokens that overlap a stretch, which is in the same units as the record's spans."""
    if not record.text:
        return [(start, end)]
    span = doc.char_span(start, end, alignment_mode="expand")
    return [] if span is None else [(span.start, span.end)]


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    """Strip a stretch of a text of white space at its ends."""
    part = text[start:end]
    start += len(part) - len(part.lstrip())
    return start, start + len(part.strip())


def _count(doc: Doc, into: str, report: Report) -> None:
    report.texts += 1
    report.tokens += len(doc)
    if into == "tags":
        report.labels.update(token.tag_ for token in doc if token.tag_)
    else:
        spans = doc.ents if into == "ents" else doc.spans.get(into, [])
        report.labels.update(span.label_ for span in spans)
        report.bare += not spans and _is_complete(doc, into)


def _is_complete(doc: Doc, into: str) -> bool:
    """Is every token's annotation known, in a span or outside?"""
    if into == "ents":
        return bool(doc.has_annotation("ENT_IOB", require_complete=True))
    return into in doc.spans and not doc.spans[into].attrs.get(UNKNOWN)
