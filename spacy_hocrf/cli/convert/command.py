"""`python -m spacy hocrf convert`: annotated texts of other tools as Docs, and what was lost on the way."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span, Token
from spacy.training.converters.conllu_to_docs import conllu_to_docs
from spacy.util import filter_spans
from typer import Argument, Option
from wasabi import msg
from wasabi.tables import table

from spacy_hocrf.cli.convert.attributes import read_attributes
from spacy_hocrf.cli.convert.chats import LOG, read_chats
from spacy_hocrf.cli.convert.columns import Columns, read_columns
from spacy_hocrf.cli.convert.labels import SCHEMES
from spacy_hocrf.cli.convert.letters import read_letters
from spacy_hocrf.cli.convert.lines import read_json
from spacy_hocrf.cli.convert.markup import read_markup
from spacy_hocrf.cli.convert.phrases import read_phrases
from spacy_hocrf.cli.convert.records import Record, Report, lines_of, named_attribute, refuse
from spacy_hocrf.cli.errors import CommandErrors
from spacy_hocrf.cli.messages import coded_errors

__all__ = ["FORMATS", "convert", "convert_cli", "docs_of", "records_of"]

FORMATS = ("auto", "columns", "crfsuite", "json", "xml", "conllu", "phrases", "letters", "chat")
ALIGNMENTS = ("strict", "contract", "expand")
BY_SUFFIX = {
    ".xml": "xml",
    ".json": "json",
    ".jsonl": "json",
    ".conllu": "conllu",
    ".crfsuite": "crfsuite",
}
INTO = {"letters": "tags", "chat": "sc"}
"""Where labels go by default, by format; elsewhere into doc.ents."""


def convert_cli(
    path: Annotated[
        Path, Argument(help="Annotated texts, or a folder with logs of chats", exists=True)
    ],
    output: Annotated[Path, Argument(help="File for the Docs (.spacy)", dir_okay=False)],
    format_: Annotated[
        str, Option("--format", "-f", help=f"One of {', '.join(FORMATS)}; auto goes by the suffix")
    ] = "auto",
    into: Annotated[
        str | None,
        Option(
            "--into",
            "-i",
            help="Where labels go: ents, tags, or a key of doc.spans; by default ents, of letters tags, of "
            "chats sc",
        ),
    ] = None,
    lang: Annotated[str, Option("--lang", "-l", help="Language whose tokenizer is used")] = "xx",
    align: Annotated[
        str,
        Option(
            "--align", help="Spans that fit no tokens: strict loses, contract or expand fits them"
        ),
    ] = "strict",
    word: Annotated[int, Option("--word", "-w", help="Column of the token")] = 0,
    label: Annotated[int, Option("--label", help="Column of the label; -1 is the last")] = -1,
    attribute: Annotated[
        list[str] | None,
        Option(
            "--attribute", "-a", help="NAME=COLUMN: a further column; by default all, as c1, c2, …"
        ),
    ] = None,
    delimiter: Annotated[
        str | None, Option("--delimiter", help="Between columns; by default a tab, or white space")
    ] = None,
    comment: Annotated[
        str | None,
        Option("--comment", help="What lines begin with that are left out, and end a text"),
    ] = None,
    scheme: Annotated[
        str, Option("--scheme", help=f"What labels of tokens are: {', '.join(SCHEMES)}")
    ] = "auto",
    word_prefix: Annotated[
        str,
        Option("--word-prefix", help="CRFsuite's data: how the attribute with the token begins"),
    ] = "w[0]=",
    encoding: Annotated[str, Option("--encoding", help="Of the file")] = "utf8",
) -> None:
    """Read annotated texts: columns (CoNLL, CRF++, Wapiti), attributes (CRFsuite), JSON (Prodigy,
    doccano, Label Studio), XML (parserator, AnyStyle), CoNLL-U, lists of phrases beside texts (MSM2013),
    images of letters, or chats with links. Further columns become extension attributes of tokens.

    DOCS: docs/data.md, "Texts of other tools"
    """
    with coded_errors():
        columns = Columns(word, label, _attributes(attribute), delimiter, comment, scheme)
        for name, value, known in (
            ("format", format_, FORMATS),
            ("align", align, ALIGNMENTS),
            ("scheme", scheme, SCHEMES),
        ):
            if value not in known:
                raise ValueError(
                    CommandErrors.H292.format(name=name, found=value, known=", ".join(known))
                )
        report = Report()
        nlp = spacy.blank(lang)
        format_ = _format_of(path) if format_ == "auto" else format_
        into = into or INTO.get(format_, "ents")
        settings = {"into": into, "align": align, "word_prefix": word_prefix, "encoding": encoding}
        docs = list(convert(path, nlp, report, format_, columns, **settings))
        if not docs:
            raise ValueError(CommandErrors.H293.format(path=path))
        _write(docs, output)
    _print(report, path, output, into)


def convert(
    path: Path,
    nlp: Language,
    report: Report,
    format_: str = "auto",
    columns: Columns | None = None,
    *,
    into: str | None = None,
    align: str = "strict",
    word_prefix: str = "w[0]=",
    encoding: str = "utf8",
) -> Iterator[Doc]:
    """The Docs of a file; what is read and lost is added to the report.

    nlp (Language): whose tokenizer is used where the file has no tokens.
    columns (Optional[Columns]): of columns. word_prefix (str): of CRFsuite's data.
    into (Optional[str]): "ents", "tags", or a key of doc.spans; None for what INTO has of the format, or
        else "ents". align (str): as in `Doc.char_span`.
    RAISES (ValueError): H290 or H291 for what the format does not have.
    """
    format_ = _format_of(path) if format_ == "auto" else format_
    into = into or INTO.get(format_, "ents")
    if path.is_dir() and format_ != "chat":
        refuse(path, "it", "a folder", "a file; folders are of logs of chats")
    if format_ == "conllu":
        text = "\n".join(lines_of(path, encoding))
        for doc in conllu_to_docs(text, n_sents=1, no_print=True):  # type: ignore[no-untyped-call]
            moved = Doc(nlp.vocab).from_bytes(doc.to_bytes())
            _count(moved, into, report)
            yield moved
        return
    records = records_of(path, format_, columns or Columns(), word_prefix, encoding, report)
    yield from docs_of(records, nlp, report, into=into, align=align)


def _format_of(path: Path) -> str:
    """What a file is by its name."""
    if path.is_dir() or path.name.endswith(LOG):
        return "chat"
    name = path.with_suffix("") if path.suffix == ".gz" else path
    return BY_SUFFIX.get(name.suffix.lower(), "columns")


def records_of(
    path: Path, format_: str, columns: Columns, word_prefix: str, encoding: str, report: Report
) -> Iterator[Record]:
    """The texts of a file in one of FORMATS but "auto" and "conllu"."""
    if format_ == "columns":
        return read_columns(path, encoding, columns, report)
    if format_ == "phrases":
        return read_phrases(path, encoding, report)
    if format_ == "letters":
        return read_letters(path, encoding)
    if format_ == "chat":
        return read_chats(path, encoding, report)
    if format_ == "crfsuite":
        return read_attributes(path, encoding, word_prefix, columns.scheme, report)
    return read_json(path, report) if format_ == "json" else read_markup(path)


def docs_of(
    records: Iterator[Record], nlp: Language, report: Report, *, into: str, align: str
) -> Iterator[Doc]:
    """The texts as Docs."""
    for record in records:
        doc = _tokenized(record, nlp)
        if not len(doc):
            report.lose("texts without a token: left out", record.place)
            continue
        if into == "tags":
            _set_tags(doc, record, report)
        else:
            _set_spans(doc, record, report, into, align)
        for name, values in record.attributes.items():
            if not Token.has_extension(name):
                Token.set_extension(name, default="")
            for token, value in zip(doc, values):
                token._.set(name, value)
        for name, value in record.about.items():
            if not Doc.has_extension(name):
                Doc.set_extension(name, default=None)
            doc._.set(name, value)
        _count(doc, into, report)
        yield doc


def _tokenized(record: Record, nlp: Language) -> Doc:
    if record.words is None:
        return nlp.make_doc(record.text)
    return Doc(
        nlp.vocab,
        words=list(record.words),
        spaces=None if record.spaces is None else list(record.spaces),
    )


def _set_tags(doc: Doc, record: Record, report: Report) -> None:
    if record.tags is None:
        report.lose("texts without a label for each token: no tags", record.place)
        return
    for token, tag in zip(doc, record.tags):
        token.tag_ = tag


def _set_spans(doc: Doc, record: Record, report: Report, into: str, align: str) -> None:
    found = list[Span]()
    ids = record.span_ids or [""] * len(record.spans)
    align = "expand" if record.span_ids else align  # links count the spans: none may be lost
    for i, ((start, end, label), id_) in enumerate(zip(record.spans, ids)):
        if not record.text:
            found.append(Span(doc, start, end, label))
            continue
        span = doc.char_span(start, end, label, alignment_mode=align, span_id=id_)
        if span is None or not len(span):
            report.lose("spans that fit no tokens: see --align", record.place)
            continue
        if (span.start_char, span.end_char) != (start, end):
            report.lose("spans that were fitted to tokens", record.place)
        for name, values in record.span_attributes.items():
            if not Span.has_extension(name):
                Span.set_extension(name, default=None)
            span._.set(name, values[i])
        found.append(span)
    if into != "ents":
        doc.spans[into] = found
        return
    kept = filter_spans(found)
    report.lose("spans that overlap longer ones: see --into", record.place, len(found) - len(kept))
    doc.set_ents(kept, default="outside")


def _count(doc: Doc, into: str, report: Report) -> None:
    report.texts += 1
    report.tokens += len(doc)
    if into == "tags":
        report.labels.update(token.tag_ for token in doc if token.tag_)
    else:
        spans = doc.ents if into == "ents" else doc.spans.get(into, [])
        report.labels.update(span.label_ for span in spans)


def _attributes(options: list[str] | None) -> dict[str, int]:
    """RAISES (ValueError): H294 for anything but NAME=COLUMN."""
    found = {}
    for option in options or []:
        name, _, column = option.partition("=")
        try:
            found[named_attribute(name)] = int(column)
        except ValueError:
            raise ValueError(CommandErrors.H294.format(found=option)) from None
    return found


def _write(docs: list[Doc], output: Path) -> None:
    """All of them or nothing."""
    output.parent.mkdir(parents=True, exist_ok=True)
    part = output.with_name(f"{output.name}.part")
    try:
        part.write_bytes(DocBin(docs=docs, store_user_data=True).to_bytes())
        os.replace(part, output)
    finally:
        part.unlink(missing_ok=True)


def _print(report: Report, path: Path, output: Path, into: str) -> None:
    what = "tags" if into == "tags" else "spans"
    total = sum(report.labels.values())
    msg.good(f"{report.texts:,} texts, {report.tokens:,} tokens, {total:,} {what}: {output}")
    if report.labels:
        rows = [(name, f"{times:,}") for name, times in report.labels.most_common()]
        print(table(rows, header=("LABEL", what.upper()), divider=True, aligns=("l", "r")))
    if report.lost:
        msg.warn("Not as it is in the file:")
        losses = [(f"{n:,}", why, report.places[why]) for why, n in report.lost.most_common()]
        print(
            table(
                losses,
                header=("TIMES", "WHAT", "FIRST AT"),
                divider=True,
                max_col=80,
                aligns=("r", "l", "l"),
            )
        )
