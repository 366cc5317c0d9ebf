"""The English Web Treebank as tagged Docs, document by document."""

import sys
from itertools import chain, islice
from pathlib import Path

import spacy
from spacy.tokens import Doc

sys.path.append(str(Path(__file__).parents[2]))
from common.columns import stream_conllu

NEW_DOCUMENT = "# newdoc id = "


def read_documents(assets: Path) -> list[list[Doc]]:
    """The sentences of each document of EWT's train and dev parts, in order, with their tags."""
    paths = [assets / "ewt" / f"en_ewt-ud-{part}.conllu" for part in ("train", "dev")]
    texts = "".join(path.read_text(encoding="utf8") for path in paths).split(NEW_DOCUMENT)[1:]
    found = [[*stream_conllu(text.splitlines(keepends=True))] for text in texts]
    vocab = spacy.blank("en").vocab  # which knows the shapes of words
    sentences = chain.from_iterable(found)
    docs = iter([Doc(vocab, words=words, tags=labels) for words, labels in sentences])
    return [[*islice(docs, len(sentences))] for sentences in found]
