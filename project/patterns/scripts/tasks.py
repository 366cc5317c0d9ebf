"""The corpora as tagged Docs: part-of-speech tags of English web texts, and chunks of newspapers.

EWT comes in three parts. CoNLL-2000 comes in two; every tenth sentence of its training part is held
back in the place of a dev part.
"""

import sys
from collections.abc import Iterable, Iterator
from itertools import chain, groupby, islice
from pathlib import Path

import spacy
from spacy.tokens import Doc

sys.path.append(str(Path(__file__).parents[2]))
from common.columns import Sentence, read_columns

TASKS = ("ewt", "conll2000")
PARTS = ("train", "dev", "test")
EVERY = 10
NEW_DOCUMENT = "# newdoc id = "


def read(assets: Path, task: str, part: str) -> list[Doc]:
    """Docs with their tags.

    task, part (str): one of TASKS and of PARTS.
    """
    if task == "ewt":
        return tagged(stream_conllu(assets / "ewt" / f"en_ewt-ud-{part}.conllu"))
    if part == "test":
        return tagged(read_columns(assets / "conll2000" / "test.txt"))
    sentences = read_columns(assets / "conll2000" / "train.txt")
    return tagged(s for i, s in enumerate(sentences) if (i % EVERY == 0) == (part == "dev"))


def read_documents(assets: Path) -> list[list[Doc]]:
    """The sentences of each document of EWT's train and dev parts, in order."""
    paths = [assets / "ewt" / f"en_ewt-ud-{part}.conllu" for part in ("train", "dev")]
    texts = "".join(path.read_text(encoding="utf8") for path in paths).split(NEW_DOCUMENT)[1:]
    found = [[*sentences_of(text.splitlines(keepends=True))] for text in texts]
    docs = iter(tagged(chain.from_iterable(found)))
    return [[*islice(docs, len(sentences))] for sentences in found]


def tagged(sentences: Iterable[Sentence]) -> list[Doc]:
    """A Doc of each sentence, its labels as tags."""
    vocab = spacy.blank("en").vocab  # which knows the shapes of words
    return [Doc(vocab, words=words, tags=labels) for words, labels in sentences]


def stream_conllu(path: Path) -> Iterator[Sentence]:
    """Words and their language-specific tags (XPOS) of CoNLL-U; words of several tokens and empty nodes
    are left out.
    """
    with path.open(encoding="utf8") as file:
        yield from sentences_of(file)


def sentences_of(lines: Iterable[str]) -> Iterator[Sentence]:
    """Those of some lines of CoNLL-U."""
    for filled, block in groupby(lines, key=lambda line: bool(line.strip())):
        rows = [row for row in (line.split("\t") for line in block) if row[0].isdigit()]
        if filled and rows:
            yield Sentence([row[1] for row in rows], [row[4] for row in rows])
