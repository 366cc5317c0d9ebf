"""Tokens of many short texts, without a Doc for each.

spaCy's tokenizer takes what stands between spaces by itself, so a word that many texts have is tokenised
once: all distinct words are one Doc, and a text has the rows of its words. These are the tokens that the
tokenizer gives it; a text with other white space, or in which a special case may go across words, is no plain
text.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import IDX, LENGTH, ORTH
from spacy.language import Language
from spacy.strings import StringStore
from spacy.tokenizer import Tokenizer
from spacy.tokens import Doc

from spacy_hocrf.features.columns import spread_lists
from spacy_hocrf.features.tokens import ATTRIBUTES, TokenBatch, Values, in_docs

__all__ = ["PlainTexts", "TextBatch", "Words"]

NEWLINE = "\n"
OF_WORDS = frozenset(ATTRIBUTES) - {"SPACY", "SENT_START"}
"""Attributes of a token of a new Doc that its word tells."""
SPREAD = np.uint64(0x9E3779B97F4A7C15)
"""An odd number with many bits."""


class PlainTexts(NamedTuple):
    """Some texts, D of them with N tokens."""

    numbers: list[int]  # [D] which of the texts that were given these are
    texts: list[str]  # [D]
    words: "_Distinct"
    rows: NDArray[np.int64]  # [N] of the tokens among those of the distinct words
    start: NDArray[np.int64]  # [N] first character in its text
    spaced: NDArray[np.uint64]  # [N] is there a space behind it?
    offsets: NDArray[np.int64]  # [D + 1] first token of each text

    @property
    def end(self) -> NDArray[np.int64]:
        """One past the last character of each token in its text, int64 [N]."""
        return self.start + self.words.length[self.rows]


class Words:
    """Tokenises words.

    nlp (Language): its tokenizer is one of spaCy's `Tokenizer`, see `can_read`.
    """

    def __init__(self, nlp: Language) -> None:
        self._nlp = nlp
        self._pairs = np.array(sorted(_pairs(nlp.tokenizer)), dtype=np.uint64)

    @staticmethod
    def can_read(nlp: Language) -> bool:
        """Does the tokenizer take words by themselves?"""
        tokenizer: Any = nlp.tokenizer
        return type(tokenizer) is Tokenizer and not any(
            " " in case.strip() for case in tokenizer.rules or ()
        )

    def read(self, texts: Sequence[str]) -> PlainTexts:
        """The tokens of those texts that are plain."""
        split = ((i, text, text.split()) for i, text in enumerate(texts))
        most = self._nlp.max_length
        return self._read(
            [row for row in split if row[2] and " ".join(row[2]) == row[1] and len(row[1]) <= most]
        )

    def _read(self, plain: Sequence[tuple[int, str, list[str]]]) -> PlainTexts:
        known = _Distinct(self._nlp, dict.fromkeys(chain.from_iterable(row[2] for row in plain)))
        codes = np.array(
            [known.codes[word] for _, _, words in plain for word in words], dtype=np.int32
        )
        bounds = np.cumsum([0, *(len(words) for _, _, words in plain)], dtype=np.int64)
        risky = self._risky(known, codes, bounds)
        if risky:
            return self._read([row for i, row in enumerate(plain) if i not in risky])
        word, rows = spread_lists(known.firsts, codes)
        rows = known.tokens[rows]
        # first character of each word, if all texts were one, with a space between any two
        begin = np.cumsum([0, *(known.characters[codes] + 1).tolist()], dtype=np.int64)
        begin = begin[:-1] - np.repeat(begin[bounds[:-1]], np.diff(bounds))
        last = np.zeros(len(codes), dtype=np.uint64)
        last[bounds[1:] - 1] = 1
        ends = np.cumsum([0, *np.diff(known.firsts)[codes].tolist()], dtype=np.int64)
        spaced = np.zeros(len(rows), dtype=np.uint64)
        spaced[ends[1:] - 1] = 1 - last
        return PlainTexts(
            [row[0] for row in plain],
            [row[1] for row in plain],
            known,
            rows,
            begin[word] + known.start[rows],
            spaced,
            ends[bounds],
        )

    def _risky(
        self, known: "_Distinct", codes: NDArray[np.int32], bounds: NDArray[np.int64]
    ) -> set[int]:
        """Texts in which the last token of a word and the first of the next one are neighbours in a special
        case.
        """
        if not len(codes) or not len(self._pairs):
            return set()
        first, last = known.tokens[known.firsts[:-1]], known.tokens[known.firsts[1:] - 1]
        met = _pair(known.orth[last][codes[:-1]], known.orth[first][codes[1:]])
        found = np.isin(met, self._pairs)
        text = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
        return set(text[1:][found & (text[1:] == text[:-1])].tolist())


class _Distinct:
    """The tokens of V distinct words: one Doc, in which there is a new line between any two.

    codes (Dict[str, int]): numbers of the words. tokens (int64 [M]): rows of their tokens in the Doc.
    firsts (int64 [V + 1]): first token of each word. characters (int64 [V]): length of each word.
    orth (uint64 [R]), length (int64 [R]): of all rows. start (int64 [R]): first character in its word.
    """

    def __init__(self, nlp: Language, words: Iterable[str]) -> None:
        names = list(words)
        self.codes = dict(zip(names, range(len(names))))
        self.characters = np.array(list(map(len, names)), dtype=np.int64)
        self._doc: Doc = nlp.tokenizer(NEWLINE.join(names))
        place = self._doc.to_array([ORTH, IDX, LENGTH]).reshape(-1, 3)
        self.orth = place[:, 0].copy()
        self.length = place[:, 2].astype(np.int64)
        between = self.orth == self.strings[NEWLINE]
        self.tokens = np.flatnonzero(~between)
        word = np.cumsum(between)
        first = np.cumsum([0, *(self.characters + 1).tolist()], dtype=np.int64)
        self.start = place[:, 1].astype(np.int64) - first[word]
        counts = np.bincount(word[self.tokens], minlength=len(names))
        self.firsts = np.cumsum([0, *counts.tolist()], dtype=np.int64)
        self._columns = dict[str, Values]()

    @property
    def strings(self) -> StringStore:
        """The store that the values' strings are in."""
        return self._doc.vocab.strings

    def column(self, attribute: str) -> Values:
        """An attribute of all rows, uint64 [R]."""
        if attribute not in self._columns:
            self._columns[attribute] = np.asarray(self._doc.to_array([attribute])).ravel()
        return self._columns[attribute]


class TextBatch(TokenBatch):
    """Some neighbours of plain texts as a batch. Docs are made of them where somebody asks for these.

    first, last (int): the first of the texts, and one past the last. nlp (Language): makes Docs.
    """

    def __init__(self, plain: PlainTexts, first: int, last: int, nlp: Language) -> None:
        lengths = np.diff(plain.offsets[first : last + 1]).tolist()
        super().__init__(_Docs(nlp, plain.texts[first:last]), lengths=lengths)
        self._plain = plain
        self._tokens = slice(*plain.offsets[[first, last]].tolist())

    @property
    def strings(self) -> StringStore:
        return self._plain.words.strings

    def with_group(self, key: str) -> list[int]:
        """None: a Doc that is new has no spans."""
        return []

    def prefetch(self, attributes: Iterable[str]) -> None:
        names = in_docs(tuple(attributes))
        for name in names:
            if name in self._columns:
                continue
            if name == "SPACY":
                self._columns[name] = self._plain.spaced[self._tokens]
            elif name in OF_WORDS:
                rows = self._plain.rows[self._tokens]
                self._columns[name] = self._plain.words.column(name)[rows]
        super().prefetch(names)


class _Docs(Sequence[Doc]):
    """Texts as Docs, made anew each time."""

    def __init__(self, nlp: Language, texts: Sequence[str]) -> None:
        self._nlp, self._texts = nlp, texts

    def __len__(self) -> int:
        return len(self._texts)

    @overload
    def __getitem__(self, i: int) -> Doc: ...
    @overload
    def __getitem__(self, i: slice) -> "_Docs": ...
    def __getitem__(self, i: int | slice) -> "Doc | _Docs":
        if isinstance(i, slice):
            return _Docs(self._nlp, self._texts[i])
        return self._nlp.make_doc(self._texts[i])


def _pairs(tokenizer: Tokenizer) -> set[int]:
    """Neighbours in special cases of several tokens, which the tokenizer looks for across words."""
    plain = Tokenizer(
        tokenizer.vocab,
        prefix_search=tokenizer.prefix_search,
        suffix_search=tokenizer.suffix_search,
        infix_finditer=tokenizer.infix_finditer,
        token_match=tokenizer.token_match,
        url_match=tokenizer.url_match,
    )
    cases = (np.asarray(plain(case).to_array([ORTH])).ravel() for case in tokenizer.rules or ())
    return {each for case in cases for each in _pair(case[:-1], case[1:]).tolist()}


def _pair(first: Values, second: Values) -> Values:
    """One number for two values; others may have the same."""
    pair: Values = first * SPREAD ^ second
    return pair
