"""Corpus readers that copy spans and attributes of tokens, which should come from a model that has not seen
the text, from the reference to the predicted Doc; and a component that moves entities to a span group.
"""

import zlib
from collections.abc import Iterator, Sequence
from itertools import islice, product
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from spacy.attrs import ENT_ID, ENT_IOB, ENT_KB_ID, ENT_TYPE
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span, SpanGroup, Token
from spacy.training import Example
from spacy.training.corpus import walk_corpus
from spacy.vocab import Vocab
from thinc.types import Ints2d

from spacy_hocrf.annotation.errors import CorpusErrors
from spacy_hocrf.annotation.spans import named, on_predicted, same_tokens
from spacy_hocrf.errors import Errors
from spacy_hocrf.features.groups import scores_of
from spacy_hocrf.features.tokens import beginning

__all__ = [
    "DAMAGED",
    "AttributesCorpus",
    "EntsToSpans",
    "GroupSpans",
    "SpansCorpus",
    "bin_in",
    "checked_path",
    "docs_in",
    "given_of",
    "group_keys",
    "has_tokens_of",
    "predicted_of",
    "read_examples",
    "read_group",
    "write_group",
]

ENTITY_ATTRIBUTES = [ENT_IOB, ENT_TYPE, ENT_KB_ID, ENT_ID]
"""Attributes of tokens that hold entities."""
DAMAGED = (ValueError, LookupError, TypeError, AttributeError, zlib.error)
"""Exceptions that spaCy raises for a file that is damaged, or of another format."""


class GroupSpans(NamedTuple):
    """S spans of a Doc, with their scores."""

    spans: tuple[tuple[int, int, str], ...]  # [S] first token, one past the last, label
    scores: tuple[float, ...] | None  # [S] None if there are none

    def only(self, spans: Sequence[tuple[int, Span]]) -> "GroupSpans":
        """Return some of the spans, given by number, at new positions."""
        scores = None if self.scores is None else tuple(self.scores[i] for i, _ in spans)
        return GroupSpans(named([span for _, span in spans]), scores)


class EntsToSpans:
    """The component `hocrf_ents_to_spans`: moves doc.ents to doc.spans[spans_key], where `hocrf` reads them
    as features and sets doc.ents itself.
    """

    def __init__(self, spans_key: str) -> None:
        self.spans_key = spans_key

    def __call__(self, doc: Doc) -> Doc:
        """Move the entities of a Doc, and return it."""
        write_group(doc, self.spans_key, read_group(doc, None))
        if len(doc):  # `set_ents` would keep ENT_KB_ID and ENT_ID
            zeros = np.zeros((len(doc), len(ENTITY_ATTRIBUTES)), dtype=np.uint64)
            doc.from_array(ENTITY_ATTRIBUTES, cast(Ints2d, zeros))
        return doc


class SpansCorpus:
    """`spacy-hocrf.SpansCorpus.v1`: a corpus of .spacy files with the spans of another model, as
    `spacy hocrf cross-fit` writes them; the component sees them as if that model had just predicted them.

    path (Path): a .spacy file or a folder of them.
    spans_keys (Sequence[str]): the span groups to copy; groups that a Doc lacks are not created.
    gold_preproc (bool): keep the tokens of the file, instead of tokenizing the text again; spans
        that do not fit the tokens are dropped. Unlike spaCy's reader, never cuts a Doc into sentences.
    limit (int): read only this many Docs; 0 for all.
    RAISES (ValueError): H112 without a path, H110 for a negative limit.
    """

    def __init__(
        self,
        path: Path | None,
        spans_keys: Sequence[str],
        gold_preproc: bool = False,
        limit: int = 0,
    ) -> None:
        self._path, self._limit = checked_path(path, limit)
        self._keys = spans_keys
        self._gold_preproc = gold_preproc

    def __call__(self, nlp: Language) -> Iterator[Example]:
        """The Examples, in the order of the files.

        nlp (Language): provides the tokenizer and vocab.
        YIELDS (Example): with the groups on both sides.
        RAISES (ValueError): H181 for scores that are not numbers, or not one for each span.
        """
        for example in read_examples(nlp, self._path, self._limit, self._gold_preproc):
            for key in self._keys:
                if key in example.reference.spans:
                    write_group(example.predicted, key, _aligned(example, key))
            yield example


class AttributesCorpus:
    """`spacy-hocrf.AttributesCorpus.v1`: a corpus of .spacy files whose tokens have extension attributes, as
    `spacy hocrf convert` writes them; templates read them as if they had been set before.

    path (Path): a .spacy file or a folder of them, written with `store_user_data`.
    attributes (Sequence[str]): names of the extension attributes; they are registered, with the default "".
    gold_preproc, limit: as in `SpansCorpus`. If the text is tokenized again, a token takes the value of the
        first token in the file that it shares characters with.
    RAISES (ValueError): H112 without a path, H110 for a negative limit.
    """

    def __init__(
        self,
        path: Path | None,
        attributes: Sequence[str],
        gold_preproc: bool = False,
        limit: int = 0,
    ) -> None:
        self._path, self._limit = checked_path(path, limit)
        self._attributes = attributes
        self._gold_preproc = gold_preproc
        for name in attributes:
            if not Token.has_extension(name):
                Token.set_extension(name, default="")

    def __call__(self, nlp: Language) -> Iterator[Example]:
        """The Examples, in the order of the files.

        nlp (Language): provides the tokenizer and vocab.
        YIELDS (Example): with the attributes on both sides.
        """
        for example in read_examples(nlp, self._path, self._limit, self._gold_preproc):
            reference = example.reference
            values: dict[Any, Any] = reference.user_data
            copied: dict[Any, Any] = example.predicted.user_data
            for token, indices in zip(example.predicted, example.alignment.x2y):
                starts = [reference[int(i)].idx for i in indices[:1]]
                for start, name in product(starts, self._attributes):
                    if (key := ("._.", name, start, None)) in values:
                        copied["._.", name, token.idx, None] = values[key]
            yield example


def checked_path(path: Path | None, limit: int) -> tuple[Path, int]:
    """Return the path of a corpus and its limit after checking them.

    RAISES (ValueError): H112 without a path, H110 for a negative limit.
    """
    if path is None:
        raise ValueError(Errors.H112)
    if limit < 0:
        raise ValueError(Errors.H110.format(name="limit", found=limit, expected="at least 0"))
    return Path(path), limit


def bin_in(path: Path) -> DocBin:
    """Read a file without making its Docs. RAISES (ValueError): H257 if it is not a .spacy file."""
    try:
        return DocBin().from_disk(path)
    except DAMAGED as error:
        raise ValueError(CorpusErrors.H257.format(path=path, reason=error)) from error


def docs_in(path: Path, vocab: Vocab) -> Iterator[Doc]:
    """Yield the Docs of a file. RAISES (ValueError): H257 if it is not a .spacy file."""
    doc_bin = bin_in(path)
    try:
        yield from doc_bin.get_docs(vocab)
    except DAMAGED as error:
        raise ValueError(CorpusErrors.H257.format(path=path, reason=error)) from error


def read_examples(nlp: Language, path: Path, limit: int, gold_preproc: bool) -> Iterator[Example]:
    """Yield Examples of the first Docs of the files, of all for a limit of 0."""
    files = walk_corpus(path, ".spacy")
    docs = (doc for file in files for doc in docs_in(Path(file), nlp.vocab) if len(doc))
    for reference in islice(docs, limit or None):
        yield Example(predicted_of(nlp, reference, gold_preproc), reference)


def predicted_of(nlp: Language, reference: Doc, gold_preproc: bool) -> Doc:
    """Make the predicted Doc of an Example with this reference.

    gold_preproc (bool): keep the reference's tokens, instead of tokenizing its text again.
    """
    if gold_preproc or reference.has_unknown_spaces:
        spaces = [bool(token.whitespace_) for token in reference]
        return Doc(nlp.vocab, words=[token.text for token in reference], spaces=spaces)
    return nlp.make_doc(reference.text)


def given_of(nlp: Language, reference: Doc) -> Doc:
    """Make a Doc for a command to predict: the reference's tokens, with their extension attributes."""
    doc = predicted_of(nlp, reference, gold_preproc=True)
    for key, value in reference.user_data.items():
        start, end = key[2:] if isinstance(key, tuple) and key[:1] == ("._.",) else (None, None)
        if start is not None and end is None:  # a token's, not the Doc's or a span's
            doc.user_data[key] = value
    return doc


def has_tokens_of(nlp: Language, reference: Doc) -> bool:
    """Does the pipeline's tokenizer produce the tokens of this Doc?"""
    words = [token.text for token in nlp.make_doc(reference.text)]
    return words == [token.text for token in reference]


def read_group(doc: Doc, key: str | None) -> GroupSpans:
    """Return the spans of doc.spans[key] with their scores, or the entities.

    key (Optional[str]): None for doc.ents.
    RAISES (ValueError): H181 for scores that are not numbers, or not one for each span.
    """
    if key is None:
        return GroupSpans(named(doc.ents), None)
    if key not in doc.spans:
        return GroupSpans((), None)
    group = doc.spans[key]
    scores = tuple(scores_of(doc, key, beginning).tolist()) if "scores" in group.attrs else None
    return GroupSpans(named(group), scores)


def group_keys(doc: Doc) -> list[str]:
    """Keys of the span groups that a Doc has."""
    return list(doc.spans)


def write_group(doc: Doc, key: str, group: GroupSpans) -> None:
    """Write spans, of a Doc with the same tokens, to doc.spans[key]."""
    spans = [Span(doc, start, end, label=label) for start, end, label in group.spans]
    attrs = {} if group.scores is None else {"scores": list(group.scores)}
    doc.spans[key] = SpanGroup(doc, name=key, spans=spans, attrs=attrs)


def _aligned(example: Example, key: str) -> GroupSpans:
    """The spans of a reference's group on the predicted Doc's tokens, without those that do not fit."""
    group = read_group(example.reference, key)
    if same_tokens(example):
        return group
    spans = enumerate(example.reference.spans[key])
    return group.only(
        [(i, aligned) for i, span in spans for aligned in on_predicted(example, [span])]
    )
