"""Known segments of a batch, in the form in which the features that fire in them are counted."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import ranges
from spacy_hocrf.types import END, INNER, SPAN, START, TOKEN

if TYPE_CHECKING:
    from spacy_hocrf.features.templates import Events

__all__ = ["GoldSegments"]


@dataclass(frozen=True)
class GoldSegments:
    """The n known segments of a batch of N tokens, in order."""

    start: NDArray[np.int64]  # [n] first token
    end: NDArray[np.int64]  # [n] one past the last token
    # [order + 1, n] number of the pattern of the last 1, 2, … labels, -1 for an unknown one
    pattern: NDArray[np.int32]

    def of_token(self, n_tokens: int) -> NDArray[np.int64]:
        """Return the number of the segment that each token is in, int64 [N], -1 for none."""
        segment = np.full(n_tokens, -1, dtype=np.int64)
        lengths = self.end - self.start
        segment[ranges(self.start, lengths)] = np.repeat(np.arange(len(self.start)), lengths)
        return segment

    def patterns_at(
        self, part: int, order: int, events: "Events", segment: NDArray[np.int64]
    ) -> NDArray[np.int32]:
        """Return the pattern of order + 1 labels that each event fires with, int32 [n], -1 for none.

        segment (int64 [N]): the result of `of_token`.
        """
        if order >= len(self.pattern):
            return np.full(len(events.token), -1, dtype=np.int32)
        padded = np.append(self.pattern[order], np.int32(-1))
        segment = segment[events.token]
        start, end = np.append(self.start, -1)[segment], np.append(self.end, -1)[segment]
        fires = {
            START: events.token == start,
            END: events.token == end - 1,
            TOKEN: segment >= 0,
            INNER: (segment >= 0) & (events.token != start),
            SPAN: (events.token == start) & (end == events.end)
            if events.end is not None
            else segment < -1,
        }[part]
        return np.where(fires, padded[segment], -1).astype(np.int32)
