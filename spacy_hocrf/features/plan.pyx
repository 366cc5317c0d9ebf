# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Known observations of many observers in one pass over the tokens.

What depends on one attribute value alone is looked up once for each distinct value of a batch, and
the tokens then only collect numbers.
"""

import numpy as np

from spacy_hocrf.features.ngrams cimport affix
from spacy_hocrf.features.table cimport ObservationTable

__all__ = ["MOST_COLUMNS", "Plan"]

ctypedef unsigned long long uint64

cdef enum:
    MOST = 64

MOST_COLUMNS = MOST
"""Attributes that a plan may read, and values that one of its steps may observe together."""

cdef enum:
    VALUE, TUPLE, PREFIX, SUFFIX, BITS

KINDS = {"value": VALUE, "tuple": TUPLE, "prefix": PREFIX, "suffix": SUFFIX, "bits": BITS}

cdef struct Column:  # one attribute of a batch
    Py_ssize_t distinct  # V
    const uint64* value  # [V]
    const int* code  # [N]
    const unsigned char* text  # of the values, end to end, and [V + 1] first byte of each
    const long long* letters


cdef class Plan:
    """What some observers look at.

    columns (Sequence[str]): the attributes, at most MOST_COLUMNS.
    steps (Sequence[tuple[str, int, Sequence[tuple[int, int]]]]): of each observer the kind, its number,
        and pairs of whole numbers. "value" and "tuple": column and offset of one attribute value or of
        several, observed together. "prefix" and "suffix": column and letters. "bits": column and offset,
        then bit and value of each flag that is observed by itself.
    """

    cdef readonly tuple columns, steps
    cdef readonly frozenset spelt  # columns of which letters are looked at
    cdef int[::1] _kind, _number, _firsts  # [steps], [steps], [steps + 1] first pair of each
    cdef int[:, ::1] _pairs

    def __init__(self, columns, steps):
        assert len(columns) <= MOST
        assert all(len(pairs) <= MOST for kind, _, pairs in steps if kind == "tuple")
        self.columns, self.steps = tuple(columns), tuple(steps)
        self.spelt = frozenset(
            self.columns[pairs[0][0]] for kind, _, pairs in steps if kind in ("prefix", "suffix")
        )
        self._kind = np.array([KINDS[kind] for kind, _, _ in steps], dtype=np.int32)
        self._number = np.array([number for _, number, _ in steps], dtype=np.int32)
        self._firsts = np.cumsum([0, *(len(pairs) for _, _, pairs in steps)], dtype=np.int32)
        pairs = [pair for _, _, some in steps for pair in some]
        self._pairs = np.array(pairs, dtype=np.int32).reshape(-1, 2)

    def __reduce__(self):
        return Plan, (self.columns, self.steps)

    def find(
        self,
        ObservationTable table not None,
        values,
        codes,
        texts,
        const long long[::1] offsets not None,
        uint64 edge,
    ):
        """The known observations of every token, those of one token in the order of the steps.

        table (ObservationTable): holds the observations of each observer under its number.
        values (Sequence[uint64 [V]]), codes (Sequence[int32 [N]]): distinct values of each column, and
            the number of each token's.
        texts (Sequence[Optional[Texts]]): the strings of the values of each column of which letters
            are looked at.
        offsets (int64 [D + 1]): first token of each sequence.
        edge (int): value just before the first and just after the last token of a sequence.
        RETURNS (tuple[int64 [N + 1], int32 [n]]): first observation of each token, and their numbers.
        """
        cdef Column columns[MOST]
        cdef Py_ssize_t c, i, steps = self._kind.shape[0], most = 0
        cdef Py_ssize_t n_tokens = offsets[offsets.shape[0] - 1]
        cdef const uint64[::1] value
        cdef const int[::1] code
        cdef const unsigned char[::1] text
        cdef const long long[::1] letters
        for c in range(len(self.columns)):
            value, code = values[c], codes[c]
            assert code.shape[0] == n_tokens
            columns[c].distinct = value.shape[0]
            columns[c].value = &value[0] if n_tokens else NULL
            columns[c].code = &code[0] if n_tokens else NULL
            if texts[c] is not None and n_tokens:
                text, letters = texts[c]
                columns[c].text = &text[0] if text.shape[0] else NULL
                columns[c].letters = &letters[0]
        # numbers of what each step observes of every distinct value, or of every flag; last, of the edge
        cdef int[::1] firsts = np.zeros(steps + 1, dtype=np.int32)
        for i in range(steps):
            c = self._pairs[self._firsts[i], 0]
            firsts[i + 1] = firsts[i]
            if self._kind[i] == BITS:
                firsts[i + 1] += self._firsts[i + 1] - self._firsts[i]
                most += self._firsts[i + 1] - self._firsts[i]
            elif self._kind[i] != TUPLE:
                firsts[i + 1] += <int> columns[c].distinct + 1
            most += 1
        cdef int[::1] known = np.empty(max(1, firsts[steps]), dtype=np.int32)
        row_offsets = np.zeros(n_tokens + 1, dtype=np.int64)
        ids = np.empty(most * n_tokens, dtype=np.int32)
        cdef long long[::1] rows = row_offsets
        cdef int[::1] out = ids
        if n_tokens:
            with nogil:
                for i in range(steps):
                    self._look_up(table, i, &known[firsts[i]], columns, edge)
                self._collect(table, &known[0], &firsts[0], columns, offsets, edge, &rows[0], &out[0])
        return row_offsets, ids[: row_offsets[n_tokens]].copy()

    cdef void _look_up(
        self, ObservationTable table, Py_ssize_t i, int* known, Column* columns, uint64 edge
    ) noexcept nogil:
        """Numbers of what step i observes of every distinct value, or of every flag."""
        cdef int kind = self._kind[i], first = self._firsts[i], size = self._pairs[first, 1]
        cdef Column* column = &columns[self._pairs[first, 0]]
        cdef uint64 number = self._number[i], value
        cdef Py_ssize_t v
        if kind == BITS:
            for v in range(first + 1, self._firsts[i + 1]):
                value = self._pairs[v, 1]
                known[v - first] = table._slots[table._find(number, &value, 1)]
        elif kind != TUPLE:
            for v in range(column.distinct):
                if kind == VALUE:
                    value = column.value[v]
                else:
                    value = affix(
                        column.text, column.letters[v], column.letters[v + 1], size, kind == SUFFIX
                    )
                known[v] = table._slots[table._find(number, &value, 1)]
            known[column.distinct] = table._slots[table._find(number, &edge, 1)]

    cdef void _collect(
        self,
        ObservationTable table,
        const int* known,
        const int* firsts,
        Column* columns,
        const long long[::1] offsets,
        uint64 edge,
        long long* rows,
        int* out,
    ) noexcept nogil:
        """Token by token, what each step has found."""
        cdef Py_ssize_t d, t, i, v, there, begin, end, n = 0, steps = self._kind.shape[0]
        cdef int kind, found
        cdef const int* mine
        cdef const Column* column
        cdef uint64 bits
        for d in range(offsets.shape[0] - 1):
            begin, end = offsets[d], offsets[d + 1]
            for t in range(begin, end):
                for i in range(steps):
                    kind = self._kind[i]
                    if kind == TUPLE:
                        found = self._tuple_at(table, i, columns, t, begin, end, edge)
                    else:
                        v = self._firsts[i]
                        column, mine = &columns[self._pairs[v, 0]], known + firsts[i]
                        there = t if kind == PREFIX or kind == SUFFIX else t + self._pairs[v, 1]
                        if kind == BITS:
                            if begin <= there < end:
                                bits = column.value[column.code[there]]
                                for v in range(1, self._firsts[i + 1] - self._firsts[i]):
                                    found = mine[v]
                                    if bits >> self._pairs[self._firsts[i] + v, 0] & 1 and found >= 0:
                                        out[n] = found
                                        n += 1
                            continue
                        if begin <= there < end:
                            found = mine[column.code[there]]
                        elif there == begin - 1 or there == end:
                            found = mine[column.distinct]
                        else:
                            found = -1
                    if found >= 0:
                        out[n] = found
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
        """Number of the values that step i observes together at token t, -1 for none."""
        cdef uint64 values[MOST]
        cdef Py_ssize_t j, first = self._firsts[i], n = self._firsts[i + 1] - first, there
        for j in range(n):
            there = t + self._pairs[first + j, 1]
            if begin <= there < end:
                values[j] = columns[self._pairs[first + j, 0]].value[
                    columns[self._pairs[first + j, 0]].code[there]
                ]
            elif there == begin - 1 or there == end:
                values[j] = edge
            else:
                return -1
        return table._slots[table._find(self._number[i], values, n)]
