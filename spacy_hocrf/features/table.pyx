# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Numbers of observations: a hash table from (observer, attribute values…) to 0, 1, 2, …

Open addressing over the rows themselves, which are compared in full: two observations never share a
number by collision, and every number can be named again after reloading.
"""

import numpy as np

from spacy_hocrf.errors import Errors

__all__ = ["ObservationTable"]


cdef class ObservationTable:
    """Numbers for rows of attribute values.

    width (int): most attribute values in a row; shorter rows are padded with 0. Values are uint64
        StringStore hashes.
    """

    def __init__(self, Py_ssize_t width):
        self.width = width
        self.count = 0
        self._rows = np.zeros((64, 1 + width), dtype=np.uint64)
        self._slots = np.full(128, -1, dtype=np.int32)

    def __len__(self):
        return self.count

    def __reduce__(self):
        return ObservationTable.from_rows, (self.rows,)

    @property
    def rows(self):
        """uint64 [M, 1 + width] observer and values of every observation, by number (a copy)."""
        return np.asarray(self._rows)[: self.count].copy()

    @property
    def observers(self):
        """int32 [M] observer (first column) of every row."""
        return np.asarray(self._rows)[: self.count, 0].astype(np.int32)

    def row(self, Py_ssize_t number):
        """Observer and values of one observation, uint64 [1 + width] (a copy)."""
        if not 0 <= number < self.count:
            raise IndexError(number)
        return np.asarray(self._rows)[number].copy()

    @classmethod
    def from_rows(cls, rows):
        """Make a table with these rows, numbered from 0.

        rows (uint64 [M, 1 + width]): as returned by `rows`.
        RAISES (ValueError): H021 if a row occurs twice.
        """
        cdef ObservationTable table = cls(rows.shape[1] - 1)
        numbers = np.zeros(len(rows), dtype=np.int32)
        table._add_rows(np.ascontiguousarray(rows, dtype=np.uint64), numbers)
        if table.count != len(rows):
            raise ValueError(Errors.H021.format(found=len(rows), expected=table.count))
        return table

    def add(self, uint64 observer, const uint64[:, ::1] values not None):
        """Return the numbers of rows of values; new rows are added.

        observer (int): number of the observer.
        values (uint64 [n, A]): A attribute values per row, at most `width`.
        RETURNS (int32 [n]): observation numbers.
        RAISES (ValueError): H022 for more values than `width`.
        """
        self._check_width(values.shape[1])
        rows = np.zeros((values.shape[0], 1 + self.width), dtype=np.uint64)
        rows[:, 0] = observer
        rows[:, 1 : 1 + values.shape[1]] = values
        numbers = np.zeros(values.shape[0], dtype=np.int32)
        self._add_rows(rows, numbers)
        return numbers

    def lookup(self, uint64 observer, const uint64[:, ::1] values not None):
        """Return the numbers of rows of values, without adding any.

        RETURNS (int32 [n]): observation numbers, -1 for unknown rows.
        RAISES (ValueError): H022 for more values than `width`.
        """
        self._check_width(values.shape[1])
        numbers = np.empty(values.shape[0], dtype=np.int32)
        cdef int[::1] out = numbers
        cdef Py_ssize_t i, n = values.shape[1]
        cdef const uint64* first = &values[0, 0] if values.shape[0] and n else NULL
        with nogil:
            for i in range(values.shape[0]):
                out[i] = self._slots[self._find(observer, first + i * n, n)]
        return numbers

    def _check_width(self, Py_ssize_t found):
        if found > self.width:
            raise ValueError(Errors.H022.format(found=found, expected=self.width))

    def _add_rows(self, const uint64[:, ::1] rows, int[::1] numbers):
        cdef Py_ssize_t i, j, slot, n = rows.shape[0]
        self._reserve(self.count + n)
        with nogil:
            for i in range(n):
                slot = self._find(rows[i, 0], &rows[i, 0] + 1, self.width)
                if self._slots[slot] < 0:
                    for j in range(1 + self.width):
                        self._rows[self.count, j] = rows[i, j]
                    self._slots[slot] = <int> self.count
                    self.count += 1
                numbers[i] = self._slots[slot]

    def trim(self):
        """Free reserved memory; it is allocated again if rows are added."""
        self._rows = np.asarray(self._rows)[: self.count].copy()
        slots = 1 << int(2 * max(64, self.count) - 1).bit_length()
        if slots < self._slots.shape[0]:
            self._place(slots)

    def _reserve(self, Py_ssize_t most):
        """Reserve room for `most` rows at a load factor of at most one half."""
        if most > self._rows.shape[0]:
            rows = np.zeros((max(most, 2 * self._rows.shape[0]), 1 + self.width), dtype=np.uint64)
            rows[: self.count] = np.asarray(self._rows)[: self.count]
            self._rows = rows
        if 2 * most > self._slots.shape[0]:
            self._place(1 << int(4 * most).bit_length())

    def _place(self, slots):
        """Rehash all rows into this number of slots, a power of two."""
        cdef Py_ssize_t i, slot
        self._slots = np.full(slots, -1, dtype=np.int32)
        with nogil:
            for i in range(self.count):
                slot = self._find(self._rows[i, 0], &self._rows[i, 0] + 1, self.width)
                self._slots[slot] = <int> i

    cdef Py_ssize_t _find(self, uint64 observer, const uint64* values, Py_ssize_t n) noexcept nogil:
        """Slot of the row, or the free slot where it belongs. Trailing values of 0 make no difference,
        whether given or not.
        """
        cdef uint64 factor = 0x9E3779B97F4A7C15ULL, h = (observer + 1) * factor
        cdef Py_ssize_t j, mask = self._slots.shape[0] - 1, slot
        cdef const uint64* row
        for j in range(n):
            factor *= 0xD1342543DE82EF95ULL
            h += values[j] * factor
        h = (h ^ (h >> 32)) * 0xFF51AFD7ED558CCDULL
        slot = <Py_ssize_t> ((h ^ (h >> 32)) & <uint64> mask)
        while self._slots[slot] >= 0:
            row = &self._rows[self._slots[slot], 0]
            if row[0] == observer:
                for j in range(self.width):
                    if row[1 + j] != (values[j] if j < n else 0):
                        break
                else:
                    return slot
            slot = (slot + 1) & mask
        return slot
