"""Tokens of many short texts, without a Doc for each.

spaCy's tokenizer processes the substrings between spaces independently, so a word that many texts share is
tokenised once: all distinct words are one Doc, and a text has the rows of its words. The result is the
tokenizer's. A text is not plain if it has other white space, or if a special case might apply across its
words.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import ORTH
from spacy.language import Language
from spacy.strings import StringStore
from spacy.tokenizer import Tokenizer
from spacy.tokens import Doc

from spacy_hocrf.arrays import offsets_of
from spacy_hocrf.features.columns import spread_lists
from spacy_hocrf.features.distinct_words import OF_WORDS, DistinctWords
from spacy_hocrf.features.reading import Values
from spacy_hocrf.features.tokens import TokenBatch, in_docs

__all__ = ["NeedsDocs", "PlainTexts", "TextBatch", "WordTokenizer"]

LETTERS = 2**20
"""Most letters of the words that are kept."""
SPREAD = np.uint64(0x9E3779B97F4A7C15)
"""An odd multiplier with many bits set."""
OF_TEXTS = OF_WORDS | {"IDX", "SPACY"}
"""Attributes of a token in a new Doc that are known without the Doc. SENT_START is not: the tokenizer's
special cases change it.
"""


class NeedsDocs(Exception):
    """Raised if something is needed that only a Doc has."""


class PlainTexts(NamedTuple):
    """D plain texts with N tokens."""

    numbers: list[int]  # [D] positions of these texts among those that were given
    texts: list[str]  # [D]
    words: DistinctWords
    rows: NDArray[np.int64]  # [N] token of the distinct words
    start: NDArray[np.int64]  # [N] first character in its text
    spaced: NDArray[np.uint64]  # [N] is the token followed by a space?
    offsets: NDArray[np.int64]  # [D + 1] first token of each text

    @property
    def end(self) -> NDArray[np.int64]:
        """One past the last character of each token in its text, int64 [N]."""
        return self.start + self.words.column("LENGTH").astype(np.int64)[self.rows]


class WordTokenizer:
    """Tokenises words, and keeps them tokenised.

    nlp (Language): has a `Tokenizer` of spaCy, see `can_read`; the tokenizer and the lexemes must not change
        what they say about a word.
    attributes (Iterable[str]): attributes that will be needed; others are added on demand.
    letters (int): most letters of the words that are kept; when there are more, the words are dropped.
    """

    def __init__(
        self, nlp: Language, attributes: Iterable[str] = (), letters: int = LETTERS
    ) -> None:
        self._nlp, self._letters = nlp, letters
        self._pairs = np.array(sorted(_pairs(nlp.tokenizer)), dtype=np.uint64)
        self._words = DistinctWords(
            nlp.tokenizer, (name for name in attributes if name in OF_WORDS)
        )

    @staticmethod
    def can_read(nlp: Language) -> bool:
        """Does the tokenizer process words independently?"""
        tokenizer: Any = nlp.tokenizer
        return type(tokenizer) is Tokenizer and not any(
            " " in case.strip() for case in tokenizer.rules or ()
        )

    def read(self, texts: Sequence[str]) -> PlainTexts:
        """Tokenise those of the texts that are plain."""
        numbers, sizes, words = list[int](), list[int](), list[str]()
        most = self._nlp.max_length
        for i, text in enumerate(texts):
            split = text.split()
            if split and len(text) <= most and " ".join(split) == text:
                numbers.append(i)
                sizes.append(len(split))
                words += split
        if self._words.letters > self._letters:
            self._words = DistinctWords(self._nlp.tokenizer, self._words.attributes)
        codes, counts = self._words.codes(words), np.array(sizes, dtype=np.int64)
        good = self._without_risk(codes, counts)
        if not good.all():
            numbers = [i for i, is_good in zip(numbers, good.tolist()) if is_good]
            codes, counts = codes[np.repeat(good, counts)], counts[good]
        plain = [texts[i] for i in numbers]
        return PlainTexts(numbers, plain, self._words, *self._laid(codes, counts))

    def _without_risk(
        self, codes: NDArray[np.int32], counts: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Which texts have no two adjacent words whose last and first token are adjacent in a special case?
        (bool [D])

        codes (int32 [W]): words of the texts. counts (int64 [D]): number of words of each text.
        """
        good = np.ones(len(counts), dtype=bool)
        if not len(codes) or not len(self._pairs):
            return good
        firsts, orth = self._words.firsts.values, self._words.column("ORTH")
        first, last = orth[firsts[codes[1:]]], orth[firsts[codes[:-1] + 1] - 1]
        text = np.repeat(np.arange(len(counts)), counts)
        met = np.isin(_pair(last, first), self._pairs) & (text[1:] == text[:-1])
        good[text[1:][met]] = False
        return good

    def _laid(
        self, codes: NDArray[np.int32], counts: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint64], NDArray[np.int64]]:
        """Compute rows, start, spaced and offsets of `PlainTexts`."""
        words, bounds = self._words, offsets_of(counts)
        firsts = words.firsts.values
        word, rows = spread_lists(firsts, codes)
        # first character of each word, as if all texts were joined by single spaces
        begin = offsets_of(words.characters.values[codes] + 1)[:-1]
        begin -= np.repeat(begin[bounds[:-1]], counts)
        # tokens before each word and each text; a space follows the last token of a word inside a text
        ends = offsets_of((firsts[1:] - firsts[:-1])[codes])
        offsets = ends[bounds]
        spaced = np.zeros(len(rows), dtype=np.uint64)
        spaced[ends[1:] - 1] = 1
        spaced[offsets[1:] - 1] = 0
        return rows, begin[word] + words.start.values[rows], spaced, offsets


class TextBatch(TokenBatch):
    """A range of plain texts as a batch without Docs: reading what only a Doc has raises `NeedsDocs`.

    first, last (int): first text, and one past the last.
    """

    def __init__(self, plain: PlainTexts, first: int, last: int) -> None:
        lengths = np.diff(plain.offsets[first : last + 1]).tolist()
        super().__init__(_NoDocs(last - first), lengths=lengths)
        self._plain = plain
        self._tokens = slice(*plain.offsets[[first, last]].tolist())

    @staticmethod
    def can_read(attributes: Iterable[str]) -> bool:
        """Are these attributes known without Docs?"""
        return OF_TEXTS.issuperset(attributes)

    @property
    def strings(self) -> StringStore:
        return self._plain.words.strings

    def with_group(self, key: str) -> list[int]:
        """Return an empty list: a new Doc has no spans."""
        return []

    def prefetch(self, attributes: Iterable[str]) -> None:
        for name in attributes:
            if name not in self._columns and (name in OF_TEXTS or in_docs((name,))):
                self._columns[name] = self._known(name)

    def _flags(self) -> Values:
        return self._known("FLAGS")

    def _known(self, name: str) -> Values:
        """Return an attribute of every token. RAISES (NeedsDocs): if it is not in OF_TEXTS."""
        plain = self._plain
        if name == "SPACY":
            return plain.spaced[self._tokens]
        if name == "IDX":
            return plain.start[self._tokens].astype(np.uint64)
        if name in OF_WORDS:
            return plain.words.column(name)[plain.rows[self._tokens]]
        raise NeedsDocs(name)


class _NoDocs(Sequence[Doc]):
    """Stands for n Docs that do not exist."""

    def __init__(self, n: int) -> None:
        self._n = n

    def __len__(self) -> int:
        return self._n

    @overload
    def __getitem__(self, i: int) -> Doc: ...
    @overload
    def __getitem__(self, i: slice) -> Sequence[Doc]: ...
    def __getitem__(self, i: int | slice) -> Doc | Sequence[Doc]:
        raise NeedsDocs(i)


def _pairs(tokenizer: Tokenizer) -> set[int]:
    """Pairs of adjacent tokens in special cases, which the tokenizer looks for across words."""
    plain = Tokenizer(
        tokenizer.vocab,
        prefix_search=tokenizer.prefix_search,
        suffix_search=tokenizer.suffix_search,
        infix_finditer=tokenizer.infix_finditer,
        token_match=tokenizer.token_match,
        url_match=tokenizer.url_match,
    )
    cases = (np.asarray(plain(case).to_array([ORTH])).ravel() for case in tokenizer.rules or ())
    return {pair for case in cases for pair in _pair(case[:-1], case[1:]).tolist()}


def _pair(first: Values, second: Values) -> Values:
    """Hash of two values, not collision-free."""
    pair: Values = first * SPREAD ^ second
    return pair
