"""Groups of Docs that are decoded together: which Docs form one, and how a corpus and its batches
keep it whole.

The group of a Doc is its extension attribute `doc._.hocrf_group`, any id; None, the
default, is a group of its own. Tweets are grouped as in Qian and Liu (TACL 2, 2014, §4.1.3): two
that share enough distinct words belong together, and so do all that are connected by such pairs
(single linkage). Group the Docs of each split separately: a group of training and test Docs would let a
model see its test.
"""

import random
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, repeat
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import ORTH
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Corpus, Example
from spacy.training.corpus import walk_corpus

from spacy_hocrf.annotation.groups import GROUP, get_group, register, set_group
from spacy_hocrf.annotation.readers import checked_path, predicted_of
from spacy_hocrf.errors import Errors
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.types import is_whole
from spacy_hocrf.warnings import Warnings

__all__ = [
    "GroupedCorpus",
    "Grouper",
    "SingleLinkage",
    "group_docs",
    "group_of",
    "make_batch_by_group",
]

ATTRIBUTES = ("LOWER", "ORTH")

Grouper = Callable[[Sequence[Doc]], Sequence[Hashable]]
"""An id for each Doc; equal ids are a group."""

Item = TypeVar("Item")


def group_docs(docs: Iterable[Doc], grouper: Grouper | None = None) -> list[Doc]:
    """Sort Docs so that each group is consecutive, as `nlp.pipe` needs them: consecutive Docs with one id
    are decoded together.

    docs (Iterable[Doc]): Docs of one split; each `doc._.hocrf_group` is set to the grouper's id.
    grouper (Grouper | None): None uses the ids that the Docs have.
    RETURNS (list[Doc]): groups in the order of their first Docs, each in the order of `docs`.
    RAISES (ValueError): H111 for too many or too few ids, H461 for an object that is not a Doc.
    """
    docs = TokenBatch(list(docs)).docs
    if grouper is not None:
        ids = list(grouper(docs))
        if len(ids) != len(docs):
            found, expected = f"{len(ids)} ids", f"one for each of {len(docs)} Docs"
            raise ValueError(Errors.H111.format(found=found, expected=expected))
        for doc, group in zip(docs, ids):
            set_group(doc, group)
    return [doc for group in _gather(docs, group_of) for doc in group]


def group_of(doc: Doc) -> Hashable:
    """Return the Doc's group, None for a group of its own."""
    register(GROUP)
    return get_group(doc, GROUP)


@dataclass(frozen=True)
class SingleLinkage:
    """`spacy-hocrf.SingleLinkage.v1`: Docs that share words, directly or through others, are a
    group.

    min_overlap (int): least number of distinct words that two Docs must share. The paper's "greater
        than 4" is 5.
    attr (str): attribute by which words are compared: "LOWER" or "ORTH".
    max_docs (Optional[int]): ignore words that occur in more Docs than this, which is faster on
        very large corpora and loosens the groups; None counts all words.
    RAISES (ValueError): H110 for settings out of range.
    """

    min_overlap: int = 5
    attr: str = "LOWER"
    max_docs: int | None = None

    def __post_init__(self) -> None:
        for name in ("min_overlap", "max_docs"):
            value = getattr(self, name)
            if value is not None and not (is_whole(value) and value >= 1):
                found = repr(value)
                raise ValueError(Errors.H110.format(name=name, found=found, expected="at least 1"))
        if self.attr not in ATTRIBUTES:
            expected = f"one of {', '.join(ATTRIBUTES)}"
            raise ValueError(
                Errors.H110.format(name="attr", found=repr(self.attr), expected=expected)
            )

    def __call__(self, docs: Sequence[Doc]) -> list[int]:
        """Return the group of each Doc, numbered from 0 in the order of their first Docs.

        Each Doc is compared with all earlier ones through the words' lists of Docs: time Σ_w (Docs with
        w)², and memory for one entry per distinct word of a Doc.
        """
        words = _distinct_words(docs, self.attr)
        n_words = 1 + max((int(each.max()) for each in words if len(each)), default=-1)
        frequency = np.bincount(
            np.concatenate([*words, np.zeros(0, dtype=np.int64)]), minlength=n_words
        )
        if self.max_docs is not None:
            words = [each[frequency[each] <= self.max_docs] for each in words]
        # int64 [words + 1], where each word's list of Docs begins
        begin = np.concatenate([[0], np.cumsum(frequency)])
        filled = begin[:-1].copy()
        lists = np.empty(begin[-1], dtype=np.int64)
        group = np.arange(len(docs))  # number of the first Doc in each Doc's group
        for i, doc_words in enumerate(words):
            earlier = [lists[begin[w] : filled[w]] for w in doc_words]
            overlap = (
                np.bincount(np.concatenate(earlier), minlength=i)
                if earlier
                else np.zeros(0, dtype=np.int64)
            )
            joined = np.append(group[:i][overlap >= self.min_overlap], i)
            if len(joined) > 1:
                group[: i + 1][np.isin(group[: i + 1], joined)] = joined.min()
            lists[filled[doc_words]] = i
            filled[doc_words] += 1
        _, numbers = np.unique(group, return_inverse=True)
        return [int(number) for number in numbers.ravel()]


class GroupedCorpus:
    """`spacy-hocrf.GroupedCorpus.v1`: a corpus of .spacy files whose groups stay together.

    path (Path): a .spacy file or a folder of them.
    grouper (Optional[Grouper]): decides which Docs are a group; None uses the ids in the file, which
        `DocBin(store_user_data=True)` writes if `doc._.hocrf_group` was set.
    gold_preproc (bool): keep the tokens of the file, instead of tokenizing the text again. Unlike
        spaCy's reader, never cuts a Doc into sentences.
    shuffle (bool): shuffle the groups each time, by the seed of [training].
    limit (int): read only this many Docs, before they are grouped; 0 for all.
    RAISES (ValueError): H112 without a path, H110 for a negative limit.
    """

    def __init__(
        self,
        path: Path | None,
        grouper: Grouper | None = None,
        gold_preproc: bool = False,
        shuffle: bool = False,
        limit: int = 0,
    ) -> None:
        self._path, self._limit = checked_path(path, limit)
        self._grouper = grouper
        self._gold_preproc = gold_preproc
        self._shuffle = shuffle

    def __call__(self, nlp: Language) -> Iterator[Example]:
        """Yield the Examples, group by group, in a new order each time if they are shuffled.

        nlp (Language): provides the tokenizer and vocab.
        YIELDS (Example): with the group on both sides.
        """
        docs = Corpus(self._path).read_docbin(nlp.vocab, walk_corpus(self._path, ".spacy"))
        references = group_docs(islice(docs, self._limit or None), self._grouper)
        groups = _gather(references, group_of)
        if (
            references
            and self._grouper is None
            and all(group_of(doc) is None for doc in references)
        ):
            warnings.warn(Warnings.W010.format(path=self._path))
        if self._shuffle:
            random.shuffle(groups)
        for reference in (doc for group in groups for doc in group):
            predicted = predicted_of(nlp, reference, self._gold_preproc)
            set_group(predicted, group_of(reference))
            yield Example(predicted, reference)


def make_batch_by_group(
    size: int | Iterable[int],
) -> Callable[[Iterable[Any]], Iterator[list[Any]]]:
    """`spacy-hocrf.batch_by_group.v1`: batches of whole groups.

    spaCy's training loop shuffles the Examples of an epoch one by one, so the batcher reads the
    whole epoch and puts its groups together again, in the order of their first Examples.

    size (int | Iterable[int]): tokens in a batch, or a schedule of them; exceeded only by a single group
        that is larger.
    RETURNS (Callable): function from Examples, or Docs, to batches of them.
    RAISES (ValueError): H110 for a size below 1.
    """
    if isinstance(size, str | bool) or (is_whole(size) and size < 1):
        raise ValueError(Errors.H110.format(name="size", found=repr(size), expected="at least 1"))

    def batches(items: Iterable[Any]) -> Iterator[list[Any]]:
        sizes = repeat(size) if isinstance(size, int | np.integer) else iter(size)
        room = next(sizes)
        batch: list[Any] = []
        for group in _gather(
            items, lambda item: group_of(item.predicted if isinstance(item, Example) else item)
        ):
            tokens = sum(map(len, group))
            if batch and tokens > room:
                yield batch
                batch, room = [], next(sizes)
            batch += group
            room -= tokens
        if batch:
            yield batch

    return batches


def _gather(items: Iterable[Item], key: Callable[[Item], Hashable]) -> list[list[Item]]:
    """Collect the items of each key, in the order of their first ones; None equals no other key."""
    groups: dict[Hashable, list[Item]] = {}
    for item in items:
        group = key(item)
        groups.setdefault((group,) if group is not None else object(), []).append(item)
    return list(groups.values())


def _distinct_words(docs: Sequence[Doc], attr: str) -> list[NDArray[np.int64]]:
    """The distinct words of each Doc without white space, numbered from 0 across all Docs.

    Letters are lowercased here, not by the vocab: one that was made without a language does not have
    LOWER.
    """
    numbers: dict[str, int] = {}
    by_hash: dict[int, int] = {}  # hash of a token's text → number of its word, -1 for white space
    words = []
    for doc in docs:
        hashes = np.unique(doc.to_array(ORTH)).tolist()
        for orth in hashes:
            if orth not in by_hash:
                text = doc.vocab.strings[orth]
                word = text.lower() if attr == "LOWER" else text
                by_hash[orth] = -1 if text.isspace() else numbers.setdefault(word, len(numbers))
        words.append(np.array(sorted({by_hash[orth] for orth in hashes} - {-1}), dtype=np.int64))
    return words
