"""The windows of the logs as .spacy files for `hocrf_links`: a Doc is a window, its messages are the
spans of `doc.spans["messages"]`, and what is known of each is in extension attributes of the span.

Logs of the corpus's training part are drawn, and put into three folds; the development part has all
windows of the corpus's own development logs.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from logs import Window, log_names, read_windows
from spacy.lang.en import English
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span
from wasabi import msg

KEY = "messages"
ATTRIBUTES = ("author", "mentions", "kind", "words", "silence")
"""Of each span; `configs/links.cfg` reads them."""
FOLDS = 3


def main(
    corpus: Annotated[
        Path, typer.Argument(help="Folder with the parts train and dev", exists=True)
    ],
    output: Annotated[Path, typer.Argument(help="Folder for the .spacy files")],
    logs: Annotated[int, typer.Option(help="Logs, drawn at random")] = 75,
    windows: Annotated[int, typer.Option(help="Windows of each log in train.spacy")] = 2,
    test_windows: Annotated[int, typer.Option(help="In more.spacy, and in test.spacy")] = 6,
    size: Annotated[int, typer.Option(help="Messages of a window, at most")] = 15,
    seed: Annotated[int, typer.Option(help="Of the sample and the folds")] = 0,
) -> None:
    """Write train.spacy, more.spacy and test.spacy of each fold, and dev.spacy."""
    nlp = English()
    register()
    sample = draw(corpus / "train", logs, max(windows, test_windows), size, seed)
    for fold, (training, test) in enumerate(folds(sample)):
        for name, part, some in (
            ("train", training, windows),
            ("more", training, test_windows),
            ("test", test, test_windows),
        ):
            chosen = [window for log in part for window in log[:some]]
            write(nlp, corpus / "train", chosen, output / str(fold) / f"{name}.spacy")
    every = (read_windows(corpus / "dev", name, size) for name in log_names(corpus / "dev"))
    dev = [window for log in every for window in log]
    write(nlp, corpus / "dev", dev, output / "dev.spacy")


def draw(corpus: Path, logs: int, windows: int, size: int, seed: int) -> list[list[Window]]:
    """Some windows of some logs, both in random order."""
    random = np.random.default_rng(seed)
    chosen = []
    for name in random.permutation(log_names(corpus))[:logs].tolist():
        every = read_windows(corpus, name, size)
        chosen.append([every[k] for k in random.permutation(len(every))[:windows].tolist()])
    return chosen


def folds(sample: Sequence[list[Window]]) -> Iterator[tuple[list[list[Window]], ...]]:
    """The windows of the logs for training, and those of the other logs."""
    for fold in range(FOLDS):
        yield [log for k, log in enumerate(sample) if k % FOLDS != fold], [*sample[fold::FOLDS]]


def register() -> None:
    """Let spans and Docs have what the files say of them."""
    for name in ATTRIBUTES:
        if not Span.has_extension(name):
            Span.set_extension(name, default=None)
    for name in ("hocrf_links", "log"):
        if not Doc.has_extension(name):
            Doc.set_extension(name, default=None)


def write(nlp: Language, folder: Path, windows: Iterable[Window], path: Path) -> None:
    """Windows as one file."""
    texts: dict[str, list[str]] = {}
    docs = DocBin(store_user_data=True)
    for window in windows:
        if window.log not in texts:
            log = folder / f"{window.log}.ascii.txt"
            texts[window.log] = log.read_text(encoding="utf8").split("\n")
        docs.add(document(nlp, window, texts[window.log]))
    path.parent.mkdir(parents=True, exist_ok=True)
    docs.to_disk(path)
    msg.good(f"{path}: {len(docs)} windows")


def document(nlp: Language, window: Window, lines: list[str]) -> Doc:
    """A window; link [i, j] says that message i replies to message j, or begins a conversation,
    j = i.
    """
    texts = [lines[message.line] for message in window.messages]
    doc = nlp.make_doc("\n".join(texts))
    spans, first = [], 0
    for text, message in zip(texts, window.messages):
        span = doc.char_span(first, first + len(text), label="MESSAGE", alignment_mode="expand")
        span._.author = str(message.author)
        span._.mentions = sorted(map(str, message.mentions))
        span._.kind = message.kind.name
        span._.words = sorted(message.words)
        span._.silence = message.silence
        spans.append(span)
        first += len(text) + 1
    doc.spans[KEY] = spans
    doc._.log = window.log
    doc._.hocrf_links = np.argwhere(window.links).tolist()
    return doc


if __name__ == "__main__":
    typer.run(main)
