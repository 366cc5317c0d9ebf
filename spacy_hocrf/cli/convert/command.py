"""`python -m spacy hocrf convert`: convert annotated texts of other tools to Docs, and report losses."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from spacy.language import Language
from spacy.tokens import Doc
from typer import Argument, Option
from wasabi import msg
from wasabi.tables import table

from spacy_hocrf.annotation.spans import words_of
from spacy_hocrf.cli.convert.docs import docs_of
from spacy_hocrf.cli.convert.formats import FORMATS, check_options, files_of, format_of
from spacy_hocrf.cli.convert.labels import SCHEMES
from spacy_hocrf.cli.convert.records import ConvertSettings, Report, SourceFile, named_attribute
from spacy_hocrf.cli.corpora import train_and_dev
from spacy_hocrf.cli.errors import CommandErrors
from spacy_hocrf.cli.files import write_docs, write_whole
from spacy_hocrf.cli.options import Lang, check_name, names_in
from spacy_hocrf.cli.pipelines import blank

__all__ = ["convert", "convert_cli"]

ALIGNMENTS = ("strict", "contract", "expand")
CHOICES = ("auto", *FORMATS)
MAX_PLACES = 3
"""Number of places that are printed for each kind of loss."""


def convert_cli(
    path: Annotated[
        Path, Argument(help="Annotated texts: a file, or a folder of files", exists=True)
    ],
    output: Annotated[Path, Argument(help="File for the Docs (.spacy)", dir_okay=False)],
    format_: Annotated[
        str, Option("--format", "-f", help=f"One of {', '.join(CHOICES)}; auto goes by the content")
    ] = "auto",
    into: Annotated[
        str, Option("--into", "-i", help="Where labels go: ents, tags, or a key of doc.spans")
    ] = "ents",
    lang: Lang = "en",
    align: Annotated[
        str,
        Option(
            "--align",
            help="Spans that do not fit tokens: strict leaves them unknown, contract or expand changes them",
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
        str | None, Option("--delimiter", help="Column separator; by default a tab, or white space")
    ] = None,
    comment: Annotated[
        str | None,
        Option("--comment", help="Prefix of lines that are left out, and end a text"),
    ] = None,
    scheme: Annotated[
        str, Option("--scheme", help=f"Scheme of token labels: {', '.join(SCHEMES)}")
    ] = "auto",
    word_prefix: Annotated[
        str,
        Option("--word-prefix", help="CRFsuite's data: prefix of the attribute with the token"),
    ] = "w[0]=",
    names: Annotated[
        str, Option("--names", help="Names of numeric labels, in order: O,B-PER,I-PER")
    ] = "",
    record: Annotated[
        str, Option("--record", help="XML: name of the element that is a text; by default guessed")
    ] = "",
    encoding: Annotated[str, Option("--encoding", help="Encoding of the file")] = "utf8",
    dev: Annotated[
        Path | None,
        Option("--dev", help="File for a fifth of the Docs, instead of OUTPUT", dir_okay=False),
    ] = None,
    losses: Annotated[
        Path | None,
        Option("--losses", help="File that lists all losses and changes by place", dir_okay=False),
    ] = None,
) -> None:
    """Convert annotated texts: columns (CoNLL, CRF++, Wapiti), attributes (CRFsuite), JSON (Prodigy,
    doccano, Label Studio, tokens with tags, spaCy, GLiNER, LangExtract), XML (parserator, AnyStyle, TEI),
    CoNLL-U, brat, WebAnno TSV, or tables (CSV). Further columns become extension attributes of tokens.

    DOCS: docs/data.md, "Texts of other tools"
    """
    check_name("OUTPUT", output, "docs")
    check_name("--dev", dev, "docs")
    settings = ConvertSettings(
        word,
        label,
        _attributes(attribute),
        delimiter,
        comment,
        scheme,
        word_prefix,
        encoding,
        names_in(names) if names else (),
        record,
    )
    for name, value, known in (
        ("format", format_, CHOICES),
        ("align", align, ALIGNMENTS),
        ("scheme", scheme, SCHEMES),
    ):
        if value not in known:
            raise ValueError(
                CommandErrors.H292.format(name=name, found=value, known=", ".join(known))
            )
    report = Report()
    nlp = blank(lang)
    docs = list(convert(path, nlp, report, format_, settings, into=into, align=align))
    if not docs:
        lost = "".join(f"; {what}" for what in report.lost)
        raise ValueError(CommandErrors.H293.format(path=path, lost=lost))
    where = str(output)
    if dev is None:
        write_docs(output, docs)
    else:
        train, held = train_and_dev(["".join(words_of(doc)) for doc in docs])
        write_docs(output, [docs[i] for i in train])
        write_docs(dev, [docs[i] for i in held])
        where = f"{output} ({len(train):,} texts), {dev} ({len(held):,})"
    if losses is not None:
        rows = ("\t".join((each.what, each.place, str(each.times))) for each in report.losses)
        write_whole(losses, "".join(f"{row}\n" for row in rows))
    _print(report, into, where)


def convert(
    path: Path,
    nlp: Language,
    report: Report,
    format_: str = "auto",
    settings: ConvertSettings | None = None,
    *,
    into: str = "ents",
    align: str = "strict",
) -> Iterator[Doc]:
    """Convert a file, or all files of a folder, to Docs; counts and losses are added to the report.

    nlp (Language): its tokenizer is used if the file has no tokens.
    format_ (str): a name of FORMATS, or "auto".
    settings (Optional[ConvertSettings]): how files are read.
    into (str): where labels go: "ents", "tags", or a key of doc.spans.
    align (str): alignment mode, as in `Doc.char_span`.
    RAISES (ValueError): H290 or H291 for a file that violates its format, H380 for a file of no known format,
        H581 for a setting that is for other formats.
    """
    settings = settings or ConvertSettings()
    files = files_of(path, format_, settings, report) if path.is_dir() else [path]
    formats = [format_of(file, settings) if format_ == "auto" else format_ for file in files]
    check_options(path, formats, settings)
    for file, name in zip(files, formats):
        inside = file.relative_to(path).as_posix() if path.is_dir() else ""
        records = FORMATS[name].read(SourceFile(file, settings, report, inside))
        yield from docs_of(records, nlp, into=into, align=align)


def _attributes(options: list[str] | None) -> dict[str, int]:
    """Parse the option --attribute. RAISES (ValueError): H294 for anything but NAME=COLUMN."""
    columns = {}
    for option in options or []:
        name, _, column = option.partition("=")
        try:
            columns[named_attribute(name)] = int(column)
        except ValueError:
            raise ValueError(CommandErrors.H294.format(found=option)) from None
    return columns


def _print(report: Report, into: str, where: str) -> None:
    what = "tags" if into == "tags" else "spans"
    total = sum(report.labels.values())
    msg.good(f"{report.texts:,} texts, {report.tokens:,} tokens, {total:,} {what}: {where}")
    if report.labels:
        rows = [(name, f"{times:,}") for name, times in report.labels.most_common()]
        print(table(rows, header=("LABEL", what.upper()), divider=True, aligns=("l", "r")))
    if report.bare:
        msg.info(f"{report.bare:,} texts are said to have no span.")
    if report.losses:
        msg.warn("Not as it is in the file:")
        lost = [(f"{n:,}", why, _first(report, why)) for why, n in report.lost.most_common()]
        header = ("TIMES", "WHAT", "FIRST AT")
        print(table(lost, header=header, divider=True, max_col=80, aligns=("r", "l", "l")))


def _first(report: Report, what: str) -> str:
    """List the first places of a kind of loss."""
    places = dict.fromkeys(loss.place for loss in report.losses if loss.what == what)
    return "; ".join([*places][:MAX_PLACES]) + ("; …" if len(places) > MAX_PLACES else "")
