"""`python -m spacy hocrf label`: annotate texts on a web page, with a model that learns in the background."""

import gc
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from spacy.cli._util import import_code
from spacy.language import Language
from spacy.util import load_model
from typer import Argument, Option
from wasabi import msg

from spacy_hocrf.annotation.targets import SpansTarget, TagsTarget
from spacy_hocrf.answers.pages import tag_of
from spacy_hocrf.cli.annotate.command import locked
from spacy_hocrf.cli.convert.records import Report
from spacy_hocrf.cli.errors import CommandErrors
from spacy_hocrf.cli.label.export import Export
from spacy_hocrf.cli.label.loop import LabelLoop
from spacy_hocrf.cli.label.session import Session, TextToLabel
from spacy_hocrf.cli.label.store import LOCK, DecisionStore, labels_in
from spacy_hocrf.cli.label.texts import texts_to_label
from spacy_hocrf.cli.options import Code, Component, Lang, SpansKey, Vectors, check_path, names_in
from spacy_hocrf.cli.pipelines import blank, component_of, ready_docs
from spacy_hocrf.cli.tasks import FORMATS, check_format
from spacy_hocrf.pipeline.component import SegmentationPipe

__all__ = ["label_cli"]

PORT = 8642
SWITCH = 5e-4
"""Switch interval of threads in seconds: two threads compute while the page's threads must answer."""


def label_cli(
    texts: Annotated[
        Path,
        Argument(help="One text per line (.txt), or what `hocrf convert` reads", exists=True),
    ],
    output: Annotated[
        Path, Option("--output", "-o", help="Folder for the annotation and the model")
    ],
    labels: Annotated[
        str | None,
        Option("--labels", "-L", help="Names of the labels: author,title,date"),
    ] = None,
    model: Annotated[
        str | None, Option("--model", "-m", help="A trained pipeline to start from")
    ] = None,
    component: Component = None,
    lang: Lang = "en",
    vectors: Vectors = None,
    spans_key: SpansKey = None,
    tool: Annotated[
        str | None,
        Option("--format", "-f", help=f"Also write for another tool: {', '.join(FORMATS)}"),
    ] = None,
    port: Annotated[
        int, Option("--port", "-p", min=0, max=65535, help="Port of the page; 0 for any free one")
    ] = PORT,
    address: Annotated[
        str, Option("--address", help="Address to listen on; by default only for this machine")
    ] = "127.0.0.1",
    name: Annotated[
        list[str] | None,
        Option("--name", help="Another host name of the page, for example that of a proxy"),
    ] = None,
    anew: Annotated[
        bool,
        Option("--anew", help="Ignore the annotation in TEXTS, except for its labels"),
    ] = False,
    seed: Annotated[int, Option("--seed", min=0, help="Seed of the random choice of texts")] = 0,
    code: Code = None,
) -> None:
    """Annotate texts on a web page, with a model that learns from every text and pre-annotates the next one.
    Every decision is saved in OUTPUT/annotations.jsonl at once; run the same command again to continue.

    DOCS: docs/label.md
    """
    try:
        from spacy_hocrf.cli.label.server import listen, make_app, serve
    except ImportError:
        raise ValueError(CommandErrors.H560.format()) from None
    import_code(code)
    check_path(output)
    if tool is not None:
        check_format(tool)
    nlp, component_name, pipe = _pipeline(model, component, lang, vectors, spans_key)
    report = Report()
    docs, rows = texts_to_label(texts, nlp, pipe.target, report)
    for problem, times in report.lost.items():
        msg.warn(f"{times:,} {problem}")
    annotated = {*report.labels, *(label for row in rows for *_, label in row.spans or ())}
    names = _labels(labels, labels_in(output), sorted(annotated), pipe.labels, texts)
    if anew:
        rows = [TextToLabel(row.words, row.id) for row in rows]
    key = pipe.target.spans_key if isinstance(pipe.target, SpansTarget) else None
    listening = listen(address, port)
    output.mkdir(parents=True, exist_ok=True)
    with listening, locked(output / LOCK, output):
        store = DecisionStore(output, ["".join(row.words) for row in rows], names)
        ready = ready_docs(nlp, docs, component_name)
        loop = LabelLoop(nlp, ready, names, spans_key=key, seed=seed)
        gc.collect()
        gc.freeze()  # else garbage collection of the texts stops all threads for a while
        sys.setswitchinterval(SWITCH)
        try:
            export = Export(output, ready, lambda: loop.model, nlp, vectors, key, tool)
            session = Session(rows, names, store, loop, export, tag_of(nlp.vocab.lang))
            token = secrets.token_urlsafe(16)
            host = f"[{address}]" if ":" in address else address
            url = f"http://{host}:{listening.getsockname()[1]}/#{token}"
            if store.cut:
                msg.warn(
                    "The last line of the annotation was cut off, and is removed: it was never saved."
                )
            if session.widened:
                msg.warn(
                    f"{session.widened:,} annotated spans are no whole tokens, and are widened to such. Have "
                    "you begun with another --lang, or --model? What you have said is kept as it is."
                )
            msg.info(f"{len(rows):,} texts, {len(names)} labels")
            print(f"Open {url} in a browser. Ctrl+C stops, and writes the model.", flush=True)
            serve(make_app(session, token, name or ()), listening)
            msg.good(session.export_all())
        finally:
            loop.close()
            store.close()


def _pipeline(
    model: str | None,
    component: str | None,
    lang: str,
    vectors: str | None,
    spans_key: str | None,
) -> tuple[Language, str, SegmentationPipe]:
    """Make or load the pipeline that is to learn; return it, and the name of its component and this.

    RAISES (ValueError): H074 for one that writes tags, H159, H187, H188 or H363 for a missing language or
        missing vectors, H204 for an unknown component.
    """
    if model is None:
        nlp = blank(lang, vectors)
        factory = "hocrf" if spans_key is None else "hocrf_spans"
        nlp.add_pipe(factory, config={} if spans_key is None else {"spans_key": spans_key})
    else:
        nlp = load_model(model)
    name, pipe = component_of(nlp, component)
    if isinstance(pipe.target, TagsTarget):
        expected = "a pipeline with hocrf or hocrf_spans, whose component writes spans"
        raise ValueError(
            CommandErrors.H074.format(option="--model", found=model, expected=expected)
        )
    return nlp, name, pipe


def _labels(
    option: str | None,
    stored: Sequence[str],
    annotated: Sequence[str],
    learnt: Sequence[str],
    path: Path,
) -> list[str]:
    """List the labels in order: those of the option, or else of the folder and the texts; then those of the
    model.

    RAISES (ValueError): H549 if there are none, or a duplicate; H542 if the texts have others.
    """
    names = [*dict.fromkeys([*stored, *annotated])] if option is None else names_in(option)
    if option is not None and (not all(names) or len({*names}) < len(names)):
        raise ValueError(CommandErrors.H549.format(found=repr(option)))
    if others := {*annotated} - {*names}:
        raise ValueError(CommandErrors.H542.format(path=path, found=", ".join(sorted(others))))
    names = [*names, *(label for label in learnt if label not in names)]
    if not names:
        raise ValueError(CommandErrors.H549.format(found="not given"))
    return names
