"""The engine's labels at the ends of users' spans: what a succession of two labels means for them."""

from typing import NamedTuple

from spacy_hocrf.model.scheme import OUTSIDE, LabelScheme

__all__ = ["EDGE", "Ends"]

EDGE = ""
"""Stands for the beginning and for the end of a text."""


class Ends(NamedTuple):
    """The engine's labels at the ends of spans."""

    scheme: LabelScheme

    def place(self, label: str) -> int:
        """Of a label in the table of what may follow what."""
        labels = self.scheme.labels
        return labels.index(label) if label in labels else len(labels) + (label == EDGE)

    def firsts(self, label: str) -> list[int]:
        """Of a span's first segment."""
        return self._each(label, 0)

    def lasts(self, label: str) -> list[int]:
        """Of a span's last segment."""
        return self._each(label, -1)

    def one(self, before: int, behind: int) -> bool:
        """Would these two neighbours be in one span, or in one stretch without spans?"""
        return before == behind and (self.scheme.encoding == "io" or before == self.scheme.outside)

    def _each(self, label: str, place: int) -> list[int]:
        if label == OUTSIDE and label not in self.scheme.labels:
            return [self.scheme.outside] if self.scheme.outside >= 0 else []
        lengths = (1,) if self.scheme.encoding in ("segments", "tags") else (1, 2, 3)
        return sorted({self.scheme.encode_span(0, n, label)[place].label for n in lengths})
