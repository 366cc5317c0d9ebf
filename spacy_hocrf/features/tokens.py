"""The tokens of a batch of Docs as columns of attribute values, which templates read.

A value is a uint64: the StringStore hash of a string attribute, or the small number of a flag or
symbol, as in `Doc.to_array`. Columns are read once per batch and cached, so templates may ask for the
same one repeatedly.
"""

import hashlib
from collections.abc import Callable, Iterable, KeysView, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate, chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import IDS, IDX
from spacy.strings import StringStore
from spacy.tokens import Doc, Span, Token
from thinc.util import to_numpy

from spacy_hocrf.errors import Errors
from spacy_hocrf.features.columns import any_set, distinct, end_to_end, spread_lists
from spacy_hocrf.features.errors import FeatureErrors
from spacy_hocrf.features.flags import SPACY_FLAGS, flags_of
from spacy_hocrf.features.groups import LaidSpans, laid, scores_of
from spacy_hocrf.features.reading import Values, token_columns

__all__ = [
    "ATTRIBUTES",
    "EDGE",
    "NUMBERS",
    "JoinedStores",
    "JoinedStrings",
    "TokenBatch",
    "beginning",
    "check_attribute",
    "in_docs",
    "is_unicode",
    "joined_stores",
    "lengths_of",
]

NO_VALUES: Values = np.zeros(0, dtype=np.uint64)

EDGE = np.uint64(2**64 - 1)
"""Value of every attribute just before the first and just after the last token of a Doc."""

ATTRIBUTES = (
    "ORTH NORM LOWER SHAPE PREFIX SUFFIX LEMMA TAG POS DEP MORPH "
    "ENT_TYPE ENT_IOB ENT_ID ENT_KB_ID LENGTH LANG "
    "SPACY SENT_START IS_ALPHA IS_ASCII IS_DIGIT IS_LOWER IS_PUNCT IS_SPACE IS_TITLE IS_UPPER "
    "IS_STOP IS_BRACKET IS_QUOTE "
    "IS_LEFT_PUNCT IS_RIGHT_PUNCT IS_CURRENCY LIKE_URL LIKE_NUM LIKE_EMAIL"
).split()
"""Token attributes of spaCy that a template may read."""

READABLE = frozenset((*ATTRIBUTES, "FLAGS"))

NUMBERS = frozenset(name for name in ATTRIBUTES if name.startswith(("IS_", "LIKE_"))) | {
    "ENT_IOB",
    "FLAGS",
    "LENGTH",
    "SPACY",
    "SENT_START",
}
"""Attributes whose values are numbers; all others are hashes or symbols, named by the StringStore."""


MAX_FLOAT32 = float(np.finfo(np.float32).max)
"""Largest value of real arrays, which are stored as float32."""

LEGIBLE = 12
"""Number of tokens by which messages name a Doc."""


class JoinedStrings(NamedTuple):
    """V strings, concatenated."""

    text: NDArray[np.uint8]  # [B] UTF-8 bytes
    offsets: NDArray[np.int64]  # [V + 1] first byte of each


class JoinedStores(StringStore):
    """The StringStores of several vocabularies as one; new strings are added to each.

    stores (Sequence[StringStore]): at least one.
    """

    def __init__(self, stores: Sequence[StringStore]) -> None:
        super().__init__()
        self._stores = stores

    def __getitem__(self, key: Any) -> Any:
        """The string of a hash, or the hash of a string. RAISES (KeyError): if no store has it."""
        return next((store for store in self._stores if key in store), self._stores[0])[key]

    def __contains__(self, key: Any) -> bool:
        return any(key in store for store in self._stores)

    def add(self, string: str) -> int:
        """Add a string. RETURNS (int): its hash."""
        return max(int(store.add(string)) for store in self._stores)


def lengths_of(docs: Sequence[Doc]) -> list[int]:
    """Return the number of tokens of each Doc.

    RAISES (ValueError): H461 for an object that is not a Doc.
    """
    for doc in docs:
        if not isinstance(doc, Doc):
            raise ValueError(FeatureErrors.H461.format(found=repr(doc)[:60]))
    return [*map(len, docs)]


class TokenBatch:
    """A batch of Docs, with their tokens concatenated.

    docs (Sequence[Doc]): D Docs with N tokens in all.
    learn (bool): add strings that templates make up, such as letter n-grams, to the Docs'
        StringStore, so that features can be named after reloading. Off when predicting.
    lengths (Optional[Iterable[int]]): lengths of the Docs in tokens, if known without reading them.
    RAISES (ValueError): H461 for an object that is not a Doc.
    """

    def __init__(
        self, docs: Sequence[Doc], *, learn: bool = False, lengths: Iterable[int] | None = None
    ) -> None:
        self.docs = docs
        self.learn = learn
        lengths = lengths_of(docs) if lengths is None else lengths
        self.offsets: NDArray[np.int64] = np.array([0, *accumulate(lengths)], dtype=np.int64)
        self._columns: dict[str, Values] = {}
        self._distinct: dict[str, tuple[Values, NDArray[np.int32]]] = {}
        self._texts: dict[str, JoinedStrings] = {}
        self._laid: dict[str, LaidSpans] = {}
        self._scores: dict[str, NDArray[np.float64]] = {}
        self._extension_strings: dict[int, str] = {}  # a store may lack these
        self.reads: set[str] = set()

    def __len__(self) -> int:
        return int(self.offsets[-1])

    @cached_property
    def strings(self) -> StringStore:
        """The store with the values' strings."""
        stores = {id(doc.vocab): doc.vocab.strings for doc in self.docs}
        return joined_stores(list(stores.values()))

    @cached_property
    def sequence(self) -> NDArray[np.int64]:
        """Number of the Doc of each token, int64 [N]."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    @cached_property
    def blank(self) -> NDArray[np.bool_]:
        """Is the token white space? (bool [N])"""
        return np.not_equal(self._blank, 0)

    @property
    def _blank(self) -> Values:
        """The column IS_SPACE, read without recording it in `reads`, since it is not observed."""
        if "IS_SPACE" not in self._columns:
            self.prefetch(("IS_SPACE",))
        return self._columns["IS_SPACE"]

    @cached_property
    def has_blank(self) -> bool:
        """Is any token white space?"""
        return any_set(self._blank)

    def prefetch(self, attributes: Iterable[str]) -> None:
        """Read several attributes of every Doc at once; after that, reading any of them costs
        nothing.
        """
        named = in_docs(tuple(attributes))
        if named <= self._columns.keys():
            return
        missing = [name for name in named if name not in self._columns]
        if self.offsets[-1]:
            self._columns.update(token_columns(self.docs, missing))
        else:
            self._columns.update((name, NO_VALUES) for name in missing)

    def column(self, attribute: str) -> Values:
        """Return one attribute of every token, uint64 [N].

        attribute (str): one of ATTRIBUTES, "FLAGS", "MORPH.Field", or "_.name" for a custom
            extension attribute.
        RAISES (ValueError): H023 for an unknown attribute.
        """
        self.reads.add(attribute)
        if attribute not in self._columns:
            self._columns[attribute] = self._read(attribute)
        return self._columns[attribute]

    def distinct(self, attribute: str) -> tuple[Values, NDArray[np.int32]]:
        """Return the distinct values of an attribute, and for each token the number of its value.

        RETURNS (tuple[uint64 [V], int32 [N]]): as from `columns.distinct`.
        """
        column = self.column(attribute)
        if attribute not in self._distinct:
            self._distinct[attribute] = distinct(column)
        return self._distinct[attribute]

    def texts(self, attribute: str) -> JoinedStrings:
        """Return the strings of the distinct values of an attribute."""
        if attribute not in self._texts:
            self._texts[attribute] = self.texts_of(self.distinct(attribute)[0])
        return self._texts[attribute]

    def texts_of(self, values: Values) -> JoinedStrings:
        """Return the strings of these values."""
        return JoinedStrings(*end_to_end(self._spelt(values)))

    def shifted(self, attribute: str, offset: int) -> tuple[Values, NDArray[np.bool_]]:
        """Return the attribute `offset` tokens to the right (left if negative), within the same Doc.

        RETURNS (tuple[uint64 [N], bool [N]]): values, and where there is one: EDGE one position beyond
            either end, and none further out.
        """
        tokens = np.arange(len(self))
        target = tokens + offset
        first, last = self.offsets[:-1][self.sequence], self.offsets[1:][self.sequence]
        values = np.full(len(self), EDGE, dtype=np.uint64)
        inside = (target >= first) & (target < last)
        values[inside] = self.column(attribute)[target[inside]]
        return values, (target >= first - 1) & (target <= last)

    def map_strings(
        self, attribute: str, derive: Callable[[str], Sequence[str]]
    ) -> tuple[NDArray[np.int64], Values]:
        """Derive strings, such as letter n-grams, from each token's string, computed once per distinct
        value.

        RETURNS (tuple[int64 [n], uint64 [n]]): token and value of each derived string.
        """
        values, codes = self.distinct(attribute)
        derived = [[self.intern(string) for string in derive(text)] for text in self._spelt(values)]
        firsts = np.cumsum([0, *map(len, derived)], dtype=np.int64)
        tokens, places = spread_lists(firsts, codes)
        return tokens, np.array([*chain(*derived)], dtype=np.uint64)[places]

    def span_groups(self, key: str) -> list[list[Span]]:
        """Return the spans of `doc.spans[key]` for every Doc; an empty list where the key is missing."""
        self.reads.add(f"spans:{key}")
        return [list(doc.spans[key]) if key in doc.spans else [] for doc in self.docs]

    def has_group(self, key: str) -> bool:
        """Does any Doc have `doc.spans[key]`?"""
        return bool(self.with_group(key))

    def with_group(self, key: str) -> list[int]:
        """Numbers of the Docs that have `doc.spans[key]`."""
        return [i for i, doc in enumerate(self.docs) if key in doc.spans]

    def laid_spans(self, key: str) -> LaidSpans:
        """Return the spans of `span_groups`, Doc after Doc, as arrays."""
        if key not in self._laid:
            self._laid[key] = laid(self.span_groups(key), self.offsets)
        return self._laid[key]

    def span_scores(self, key: str) -> list[NDArray[np.float64]]:
        """Return the scores of the spans of `doc.spans[key]`, float64 [S] for every Doc.

        RAISES (ValueError): H181 for a group without scores, or with other scores than finite numbers.
        """
        self.reads.add(f"scores:{key}")
        return [scores_of(doc, key, beginning) for doc in self.docs]

    def laid_scores(self, key: str) -> NDArray[np.float64]:
        """Return the scores of `span_scores`, Doc after Doc, float64 [S]."""
        if key not in self._scores:
            self._scores[key] = np.concatenate([np.zeros(0), *self.span_scores(key)])
        return self._scores[key]

    def real(self, source: str) -> list[NDArray[np.float64]]:
        """Return an array for every token of each Doc, float64 [T, A].

        source (str): "tensor", "vector" or "_.name".
        RAISES (ValueError): H025 for values that are not finite as float32, H027 for arrays of
            unequal extents, H137 for values that are not real numbers.
        """
        self.reads.add(f"real:{source}")
        return [_real_rows(doc, source) if len(doc) else np.zeros((0, 0)) for doc in self.docs]

    def fingerprint(self, reads: Sequence[str]) -> bytes:
        """Return a hash that is equal for batches in which everything that `reads` names is equal.

        reads (Sequence[str]): what to compare, such as the `reads` of a batch.
        """
        digest = hashlib.blake2b(digest_size=16)
        for name in sorted(reads):
            kind, _, key = name.partition(":")
            if kind == "spans":
                groups = self.span_groups(key)
                triples = [[(s.start, s.end, s.label) for s in spans] for spans in groups]
                digest.update(repr((self.has_group(key), triples)).encode())
            elif kind in ("real", "scores"):
                for rows in self.real(key) if kind == "real" else self.span_scores(key):
                    digest.update(rows.tobytes())
            else:
                digest.update(self.column(name).tobytes())
        return digest.digest()

    def intern(self, string: str) -> int:
        """Return the value of a string. RAISES (ValueError): H132 if it is not valid Unicode."""
        if not is_unicode(string):
            raise ValueError(Errors.H132.format(what="attribute value", found=ascii(string)[:60]))
        return int(self.strings.add(string)) if self.learn else int(self.strings[string])

    def _read(self, attribute: str) -> Values:
        if attribute == "FLAGS":
            return self._flags()
        check_attribute(attribute)
        if attribute.startswith("_."):
            return self._extension(attribute[2:])
        if attribute.startswith("MORPH."):
            field = attribute[6:]
            tokens = chain.from_iterable(self.docs)
            return self._interned(["|".join(token.morph.get(field, [])) for token in tokens])
        self.prefetch([attribute])
        return self._columns[attribute]

    def _flags(self) -> Values:
        """Bit i of each token says whether FLAGS[i] is true of it, uint64 [N]."""
        self.prefetch(["FLAGS"])
        flags = [self._columns[flag] for flag in SPACY_FLAGS]
        return flags_of(flags, self._columns["ORTH"], self.strings)

    def _extension(self, name: str) -> Values:
        default, method, getter, _ = Token.get_extension(name)
        if method is not None or getter is not None:
            tokens = chain.from_iterable(self.docs)
            return self._interned([str(token._.get(name)) for token in tokens])
        strings = list[str]()
        for doc in self.docs:  # read from user_data, since token._ is slow
            stored: Mapping[Any, object] = doc.user_data
            places = doc.to_array([IDX]).tolist()
            strings += [str(stored.get(("._.", name, start, None), default)) for start in places]
        return self._interned(strings)

    def _interned(self, strings: list[str]) -> Values:
        hashes = {string: self.intern(string) for string in dict.fromkeys(strings)}
        self._extension_strings.update((value, string) for string, value in hashes.items())
        return np.array([hashes[string] for string in strings], dtype=np.uint64)

    def _spelt(self, values: Values) -> list[str]:
        """The strings that values stand for."""
        own, strings = self._extension_strings, self.strings
        if not own:
            return [strings[value] for value in values.tolist()]
        return [own[value] if value in own else strings[value] for value in values.tolist()]


@lru_cache
def in_docs(attributes: tuple[str, ...]) -> KeysView[str]:
    """Attributes that `Doc.to_array` has, including those that FLAGS is made of."""
    named = dict.fromkeys(attributes)
    if "FLAGS" in named:
        named |= dict.fromkeys((*SPACY_FLAGS, "ORTH"))
    return {name: None for name in named if name in IDS}.keys()


def _real_rows(doc: Doc, source: str) -> NDArray[np.float64]:
    """Rows of one array, moved from the GPU if spaCy keeps tensors and vectors there."""
    try:
        rows = _unchecked_rows(doc, source)
    except (TypeError, ValueError) as error:
        found = str(error)[:60]
        text = Errors.H137.format(source=source, found=found, text=beginning(doc))
        raise ValueError(text) from error
    extents = sorted({row.shape for row in rows})
    if len(extents) != 1:
        raise ValueError(
            Errors.H027.format(source=source, found=extents or "none", text=beginning(doc))
        )
    array = np.stack(rows)
    if not (np.abs(array) <= MAX_FLOAT32).all():
        raise ValueError(Errors.H025.format(source=source, text=beginning(doc)))
    return array


def _unchecked_rows(doc: Doc, source: str) -> list[NDArray[np.float64]]:
    """Fetch rows. RAISES (TypeError, ValueError): if they are not arrays of real numbers."""
    fetch: Callable[[object], object] = to_numpy
    if source == "tensor":
        return list(_as_reals(fetch(doc.tensor))) if len(doc.tensor) == len(doc) else []
    if source == "vector":
        return [_as_reals(fetch(token.vector)) for token in doc]
    return [np.atleast_1d(_as_reals(token._.get(source[2:]))).ravel() for token in doc]


def _as_reals(values: object) -> NDArray[np.float64]:
    array: NDArray[Any] = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise TypeError(ascii(values))
    return array.astype(np.float64, copy=False)


def beginning(doc: Doc) -> str:
    """Return the beginning of a Doc's text, by which messages name it."""
    return doc[:LEGIBLE].text[:60]


def is_unicode(string: str) -> bool:
    """Can the string be encoded as UTF-8? Not with lone surrogates, as from `errors="surrogateescape"`."""
    return string.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in string)


def joined_stores(stores: Sequence[StringStore]) -> StringStore:
    """Return one store with the strings of all stores."""
    if len(stores) > 1:
        return JoinedStores(stores)
    return stores[0] if stores else StringStore()


def check_attribute(attribute: str) -> None:
    """Check an attribute. RAISES (ValueError): H023 if there is no such token attribute, H024 for an
    extension that is not registered.
    """
    if attribute.startswith("_."):
        if not Token.has_extension(attribute[2:]):
            raise ValueError(Errors.H024.format(name=attribute[2:]))
    elif not (attribute in READABLE or (attribute.startswith("MORPH.") and len(attribute) > 6)):
        valid = ", ".join((*ATTRIBUTES, "FLAGS"))
        hint = " (a position, a head or the like is no category)" if attribute in IDS else ""
        raise ValueError(Errors.H023.format(name=attribute, hint=hint, known=valid))
