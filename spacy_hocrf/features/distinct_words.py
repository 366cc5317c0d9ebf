"""Tokenises each distinct word once, and keeps the attributes of its tokens.

spaCy's tokenizer spends most of its time on creating lexemes, mostly on attributes that no template reads.
So these words have a vocabulary of their own, whose lexemes compute no other attributes.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import IDS, IDX
from spacy.strings import StringStore
from spacy.tokenizer import Tokenizer
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_hocrf.arrays import offsets_of
from spacy_hocrf.features.flags import SPACY_FLAGS, flags_of
from spacy_hocrf.features.reading import Values
from spacy_hocrf.features.tokens import ATTRIBUTES, NUMBERS, in_docs

__all__ = ["OF_WORDS", "DistinctWords", "Growing"]

NEWLINE = "\n"
OF_WORDS = (frozenset(ATTRIBUTES) | {"FLAGS"}) - {"SPACY", "SENT_START"}
"""Token attributes that, in a new Doc, depend on the word alone."""
ALWAYS = ("ORTH", "LENGTH")

Number = TypeVar("Number", np.uint64, np.int64)


class Growing(Generic[Number]):
    """An array of numbers that grows with amortised reallocation."""

    def __init__(self, kind: type[Number]) -> None:
        self._room: NDArray[Number] = np.zeros(64, dtype=kind)
        self._size = 0

    @property
    def values(self) -> NDArray[Number]:
        """The numbers so far, as a view."""
        return self._room[: self._size]

    def extend(self, more: NDArray[Number]) -> None:
        """Append numbers to the array."""
        size = self._size + len(more)
        if size > len(self._room):
            room: NDArray[Number] = np.zeros(2 * size, dtype=self._room.dtype)
            room[: self._size] = self.values
            self._room = room
        self._room[self._size : size], self._size = more, size


class DistinctWords:
    """The tokens of V distinct words, R in all.

    letters (int): number of letters of all words. characters (int64 [V]): length of each word.
    firsts (int64 [V + 1]): first token of each word. start (int64 [R]): first character of each token in
        its word.
    """

    def __init__(self, tokenizer: Tokenizer, attributes: Iterable[str]) -> None:
        """
        tokenizer (Tokenizer): tokenizer of the texts. attributes (Iterable[str]): some of OF_WORDS.
        """
        self.attributes = list(dict.fromkeys((*ALWAYS, *attributes)))
        self._full = tokenizer
        self._begin()

    def _begin(self) -> None:
        """Start without any known word."""
        self.letters, self._codes = 0, dict[str, int]()
        self._tokenizer = _reduced(self._full, self.attributes)
        self.characters, self.start = Growing(np.int64), Growing(np.int64)
        self.firsts = Growing(np.int64)
        self.firsts.extend(np.zeros(1, dtype=np.int64))
        self._columns = {name: Growing(np.uint64) for name in self.attributes}

    @property
    def strings(self) -> StringStore:
        """The store that the values' strings are in."""
        strings: StringStore = self._tokenizer.vocab.strings
        return strings

    def codes(self, words: Sequence[str]) -> NDArray[np.int32]:
        """Return the number of each word, int32 [n]; new words are tokenised."""
        codes = list(map(self._codes.get, words))
        if None in codes:
            new = dict.fromkeys(word for word, code in zip(words, codes) if code is None)
            self._add(list(new))
            codes = list(map(self._codes.get, words))
        return np.array(codes, dtype=np.int32)

    def column(self, attribute: str) -> Values:
        """Return an attribute of all tokens, uint64 [R]."""
        if attribute not in self._columns:
            words, self.attributes = list(self._codes), sorted(OF_WORDS)
            self._begin()
            self._add(words)
        return self._columns[attribute].values

    def _add(self, words: Sequence[str]) -> None:
        """Tokenise words as one Doc, separated by newlines."""
        doc = self._tokenizer(NEWLINE.join(words))
        columns = _columns_of(doc, self.attributes)
        # the word of every token of the Doc, the tokens of words, and the place of each in its word
        between = columns["ORTH"] == self.strings[NEWLINE]
        word, token = np.cumsum(between), np.flatnonzero(~between)
        characters = np.array(list(map(len, words)), dtype=np.int64)
        place = doc.to_array([IDX]).astype(np.int64) - offsets_of(characters + 1)[word]
        counts = np.bincount(word[token], minlength=len(words))
        self.start.extend(place[token])
        self.firsts.extend(self.firsts.values[-1] + np.cumsum(counts))
        self.characters.extend(characters)
        for name, values in columns.items():
            self._columns[name].extend(values[token])
        self._codes.update(zip(words, range(len(self._codes), len(self._codes) + len(words))))
        self.letters += int(characters.sum())


def _columns_of(doc: Doc, attributes: Sequence[str]) -> Mapping[str, Values]:
    """Attributes of all tokens, uint64 [T] each."""
    names = in_docs(tuple(attributes))
    table = np.asarray(doc.to_array([IDS[name] for name in names])).reshape(-1, len(names))
    columns = dict(zip(names, table.T.copy()))
    if "FLAGS" in attributes:
        flags = [columns[name] for name in SPACY_FLAGS]
        columns["FLAGS"] = flags_of(flags, columns["ORTH"], doc.vocab.strings)
    return {name: columns[name] for name in attributes}


def _reduced(tokenizer: Tokenizer, attributes: Sequence[str]) -> Tokenizer:
    """Make a tokenizer that finds the same tokens, but whose lexemes have only these attributes."""
    names = [*in_docs(tuple(attributes))]
    vocab, numbers = tokenizer.vocab, [IDS[name] for name in names]
    getters = vocab.lex_attr_getters
    reduced = Vocab(lex_attr_getters={n: getters[n] for n in numbers if n in getters})
    # a lexeme may have been given attributes that its word does not imply
    words = [lexeme.orth_ for lexeme in vocab]
    given, implied = (Doc(each, words=words).to_array(numbers) for each in (vocab, reduced))
    for i, j in np.argwhere(given != implied).tolist():
        value = int(given[i, j])
        named = value if names[j] in NUMBERS else vocab.strings[value]
        reduced[words[i]].set_attrs(**{names[j]: named})
    return Tokenizer(
        reduced,
        rules=tokenizer.rules,
        prefix_search=tokenizer.prefix_search,
        suffix_search=tokenizer.suffix_search,
        infix_finditer=tokenizer.infix_finditer,
        token_match=tokenizer.token_match,
        url_match=tokenizer.url_match,
        faster_heuristics=tokenizer.faster_heuristics,
    )
