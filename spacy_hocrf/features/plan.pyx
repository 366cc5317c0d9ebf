# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Looks up the known observations of many observers in one pass over the tokens.

What depends on one attribute value alone is looked up when the value first occurs; after that, tokens only
collect numbers.
"""

from functools import partial

import numpy as np

from spacy_hocrf.features.columns cimport Lexicon
from spacy_hocrf.features.ngrams cimport affix
from spacy_hocrf.features.table cimport ObservationTable
from spacy_hocrf.locks import CACHES

__all__ = ["MAX_COLUMNS", "Plan"]

ctypedef unsigned long long uint64

cpdef enum:  # most attributes that a plan may read, and most values that one of its steps may combine
    MAX_COLUMNS = 64

MAX_VALUES = 2**15
"""Values of an attribute whose observations are cached for later batches."""

cdef enum:
    VALUE, TUPLE, PREFIX, SUFFIX, BITS

KINDS = {"value": VALUE, "tuple": TUPLE, "prefix": PREFIX, "suffix": SUFFIX, "bits": BITS}

cdef struct Column:  # one attribute of a batch
    const uint64* value  # [N]
    const int* code  # [N] row of each value
    const int* known  # [V, width] observation of it in each step that reads it alone, -1 for none
    const int* edge  # [width] the same for the edge
    Py_ssize_t width


cdef class Plan:
    """Steps that look up the observations of several observers together.

    columns (Sequence[str]): the attributes, at most MAX_COLUMNS.
    steps (Sequence[tuple[str, int, Sequence[tuple[int, int]]]]): for each observer the kind, its number,
        and pairs of whole numbers. "value" and "tuple": column and offset of one attribute value, or of
        several that are observed together. "prefix" and "suffix": column and number of letters. "bits":
        column and offset, then bit and value of each flag, which are observed separately.
    """

    cdef readonly tuple columns, steps
    cdef int[::1] _kind, _number, _firsts  # [steps], [steps], [steps + 1] first pair of each
    cdef int[:, ::1] _pairs
    cdef list _alone  # for each column, the steps that look at one of its values alone
    cdef list _spelt  # for each column: does one of these steps look at letters?
    cdef int[::1] _place  # [steps] place of a step among those of its column
    cdef object _known  # a table, its size, its cached values by column, and its flags

    def __init__(self, columns, steps):
        together = [len(pairs) for kind, _, pairs in steps if kind == "tuple"]
        if max(len(columns), max(together, default=0)) > MAX_COLUMNS:
            raise IndexError(f"more than {MAX_COLUMNS} columns, or values observed together")
        self.columns, self.steps = tuple(columns), tuple(steps)
        self._kind = np.array([KINDS[kind] for kind, _, _ in steps], dtype=np.int32)
        self._number = np.array([number for _, number, _ in steps], dtype=np.int32)
        self._firsts = np.cumsum([0, *(len(pairs) for _, _, pairs in steps)], dtype=np.int32)
        pairs = [pair for _, _, some in steps for pair in some]
        self._pairs = np.array(pairs, dtype=np.int32).reshape(-1, 2)
        self._alone = [[] for _ in columns]
        self._place = np.zeros(len(steps), dtype=np.int32)
        for place, (kind, _, pairs) in enumerate(steps):
            if kind not in ("tuple", "bits"):
                alone = self._alone[pairs[0][0]]
                self._place[place] = len(alone)
                alone.append(place)
        self._spelt = [any(steps[place][0] != "value" for place in alone) for alone in self._alone]
        self._known = None, 0, (), None

    def __reduce__(self):
        return Plan, (self.columns, self.steps)

    def find(
        self,
        ObservationTable table not None,
        values,
        texts_of,
        const long long[::1] offsets not None,
        uint64 edge,
    ):
        """Return the known observations of every token, for each token in the order of the steps.

        table (ObservationTable): has the observations of each observer under its number.
        values (Sequence[uint64 [N]]): the attributes of all tokens.
        texts_of (Callable[[uint64 [V]], Texts]): returns the strings of values.
        offsets (int64 [D + 1]): first token of each sequence.
        edge (int): value just before the first and just after the last token of a sequence.
        RETURNS (tuple[int64 [N + 1], int32 [n]]): first observation of each token, and observation numbers.
        """
        cdef Py_ssize_t n_tokens = offsets[offsets.shape[0] - 1], steps = self._kind.shape[0], most = 0, i
        for i in range(steps):
            most += self._firsts[i + 1] - self._firsts[i] - 1 if self._kind[i] == BITS else 1
        row_offsets = np.zeros(n_tokens + 1, dtype=np.int64)
        ids = np.empty(most * n_tokens, dtype=np.int32)
        cdef long long[::1] rows = row_offsets
        cdef int[::1] out = ids
        cdef Column columns[MAX_COLUMNS]
        cdef const int[::1] bits
        if n_tokens and steps:
            known, bits = self._look_up(table, values, texts_of, edge)  # `columns` points into these arrays
            for i in range(len(self.columns)):
                if len(values[i]) != n_tokens:
                    raise IndexError(f"{len(values[i])} values of {n_tokens} tokens")
                codes, numbers, at_edge = known[i]
                columns[i] = _column(values[i], codes, numbers, at_edge)
            with nogil:
                self._collect(table, columns, &bits[0], offsets, edge, &rows[0], &out[0])
        return row_offsets, ids[: row_offsets[n_tokens]].copy()

    def _look_up(self, table, values, texts_of, edge):
        """For each column: the row of each value, int32 [N], the observations of each step that looks at
        it alone, int32 [V, width], and those of the edge, int32 [width]; and those of flags, int32 [pairs].
        """
        with CACHES:
            if self._known[0] is not table or self._known[1] != len(table):
                edges = np.array([edge], dtype=np.uint64)
                kept = [
                    (Lexicon(len(steps), MAX_VALUES), self._numbers(c, table, None, edges)[0])
                    for c, steps in enumerate(self._alone)
                ]
                self._known = table, len(table), kept, self._flags_of(table)
            return [
                (*kept.look_up(column, partial(self._numbers, c, table, texts_of)), at_edge)
                if self._alone[c]
                else (None, None, None)
                for c, (column, (kept, at_edge)) in enumerate(zip(values, self._known[2]))
            ], self._known[3]

    def _numbers(self, Py_ssize_t c, ObservationTable table, texts_of, values):
        """Look up the observations of values in the steps that read column c alone, int32 [V, width].

        texts_of (Optional[Callable]): None for the edge, which has no letters.
        """
        cdef Py_ssize_t i, j, v, n = len(values)
        cdef int kind, size
        cdef uint64 value
        cdef const unsigned char* letters = NULL
        cdef const unsigned char[::1] text
        cdef const long long[::1] firsts
        cdef const uint64[::1] plain = values
        steps = self._alone[c]
        numbers = np.empty((n, len(steps)), dtype=np.int32)
        numbers.fill(-1)
        cdef int[:, ::1] out = numbers
        has_letters = texts_of is not None and self._spelt[c]
        if has_letters:
            text, firsts = texts_of(values)
            letters = &text[0] if text.shape[0] else NULL
        for j, i in enumerate(steps):
            kind, size = self._kind[i], self._pairs[self._firsts[i], 1]
            if kind != VALUE and not has_letters:
                continue
            for v in range(n):
                value = plain[v]
                if kind != VALUE:
                    value = affix(letters, firsts[v], firsts[v + 1], size, kind == SUFFIX)
                out[v, j] = table._slots[table._find(self._number[i], &value, 1)]
        return numbers

    def _flags_of(self, ObservationTable table):
        """The observation of each flag, int32 [pairs]; -1 if it is unknown, or the pair is no flag."""
        cdef Py_ssize_t i, j
        cdef uint64 value
        numbers = np.full(self._pairs.shape[0], -1, dtype=np.int32)
        cdef int[::1] out = numbers
        for i in range(self._kind.shape[0]):
            if self._kind[i] == BITS:
                for j in range(self._firsts[i] + 1, self._firsts[i + 1]):
                    value = self._pairs[j, 1]
                    out[j] = table._slots[table._find(self._number[i], &value, 1)]
        return numbers

    cdef void _collect(
        self,
        ObservationTable table,
        const Column* columns,
        const int* flags,
        const long long[::1] offsets,
        uint64 edge,
        long long* rows,
        int* out,
    ) noexcept nogil:
        """Write the observations of all steps, token by token."""
        cdef Py_ssize_t d, t, i, j, there, begin, end, n = 0
        cdef int kind, observation
        cdef const Column* column
        for d in range(offsets.shape[0] - 1):
            begin, end = offsets[d], offsets[d + 1]
            for t in range(begin, end):
                for i in range(self._kind.shape[0]):
                    kind = self._kind[i]
                    column = &columns[self._pairs[self._firsts[i], 0]]
                    there = t + self._pairs[self._firsts[i], 1] if kind == VALUE or kind == BITS else t
                    if kind == BITS:
                        if begin <= there < end:
                            for j in range(self._firsts[i] + 1, self._firsts[i + 1]):
                                if column.value[there] >> self._pairs[j, 0] & 1 and flags[j] >= 0:
                                    out[n] = flags[j]
                                    n += 1
                        continue
                    if kind == TUPLE:
                        observation = self._tuple_at(table, i, columns, t, begin, end, edge)
                    elif begin <= there < end:
                        observation = column.known[column.code[there] * column.width + self._place[i]]
                    elif there == begin - 1 or there == end:
                        observation = column.edge[self._place[i]]
                    else:
                        observation = -1
                    if observation >= 0:
                        out[n] = observation
                        n += 1
                rows[t + 1] = n

    cdef int _tuple_at(
        self,
        ObservationTable table,
        Py_ssize_t i,
        const Column* columns,
        Py_ssize_t t,
        Py_ssize_t begin,
        Py_ssize_t end,
        uint64 edge,
    ) noexcept nogil:
        """Number of the values that step i observes together at token t, -1 if unknown."""
        cdef uint64 values[MAX_COLUMNS]
        cdef Py_ssize_t j, first = self._firsts[i], n = self._firsts[i + 1] - first, there
        for j in range(n):
            there = t + self._pairs[first + j, 1]
            if begin <= there < end:
                values[j] = columns[self._pairs[first + j, 0]].value[there]
            elif there == begin - 1 or there == end:
                values[j] = edge
            else:
                return -1
        return table._slots[table._find(self._number[i], values, n)]


cdef Column _column(
    const uint64[::1] values, const int[::1] codes, const int[:, ::1] known, const int[::1] edge
):
    """Pointers to the arrays of a column; all but `values` may be None."""
    cdef Column column
    column.value = &values[0]
    column.code = column.known = column.edge = NULL
    column.width = 0
    if codes is not None:
        column.code, column.known, column.edge = &codes[0], &known[0, 0], &edge[0]
        column.width = known.shape[1]
    return column
