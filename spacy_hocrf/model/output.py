"""What an encoder says of a batch of Docs: a row for every token and, with a span filter, spans that it
picks; asked in prediction, or in training, with the way back.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc
from thinc.api import Model

from spacy_hocrf.arrays import offsets_of
from spacy_hocrf.model.filtering import AnnotatedSpans, Inputs, Outputs
from spacy_hocrf.model.picked import Picked

__all__ = ["EncoderOutput", "begin_output", "filter_inputs", "filter_of", "joined", "output_of"]

Matrix = NDArray[np.float64]
Encoder = Model[list[Doc], Matrix]
BackpropOutput = Callable[[Matrix | None, Matrix | None], None]
"""Takes the derivatives by the rows and by those of picked spans, None for zeros."""


class EncoderOutput(NamedTuple):
    """Of a batch with N tokens."""

    rows: Matrix  # [N, K]
    picked: Picked | None = None  # None without a filter

    def split(self, offsets: NDArray[np.int64]) -> "list[EncoderOutput]":
        """Of each Doc.

        offsets (int64 [D + 1]): first token of each.
        """
        parts = [EncoderOutput(self.rows[first:last]) for first, last in pairwise(offsets.tolist())]
        if self.picked is None:
            return parts
        start, end, rows = self.picked
        spans = pairwise(np.searchsorted(start, offsets).tolist())
        return [
            part._replace(picked=Picked(start[a:b] - first, end[a:b] - first, rows[a:b]))
            for part, first, (a, b) in zip(parts, offsets.tolist(), spans)
        ]


def joined(outputs: Sequence[EncoderOutput]) -> EncoderOutput:
    """Of all Docs, one after the other; the inverse of `split`."""
    rows = np.concatenate([output.rows for output in outputs])
    offsets = offsets_of([len(output.rows) for output in outputs])
    picked = [
        Picked(found.start + first, found.end + first, found.rows)
        for first, found in zip(offsets.tolist(), (output.picked for output in outputs))
        if found is not None
    ]
    spans = Picked(*(np.concatenate(column) for column in zip(*picked))) if picked else None
    return EncoderOutput(rows, spans)


def filter_of(encoder: Encoder) -> Model[Inputs, Outputs] | None:
    """The span filter of an encoder, if it has one."""
    return encoder.layers[1] if len(encoder.layers) > 1 else None


def output_of(encoder: Encoder, docs: Iterable[Doc]) -> EncoderOutput:
    """What it says in prediction; without tokens it is not asked, and there are no columns.

    RAISES (ValueError): H176, H177 or H231 for what it should not say.
    """
    docs, layer = list(docs), filter_of(encoder)
    rows = encoder.predict(docs) if any(map(len, docs)) else np.zeros((0, 0))
    if layer is None:
        return EncoderOutput(rows)
    if encoder.attrs["silent"] or not len(rows):
        nowhere = np.zeros(0, dtype=np.int64)
        return EncoderOutput(rows, Picked(nowhere, nowhere, np.zeros((0, layer.get_dim("nO") + 1))))
    return EncoderOutput(rows, layer.predict(filter_inputs(encoder, docs, rows))[0])


def begin_output(
    encoder: Encoder, docs: list[Doc], annotated: AnnotatedSpans | None
) -> tuple[EncoderOutput, float, BackpropOutput]:
    """What it says in training, the local loss of its filter in nats, and the way back.

    annotated (Optional[AnnotatedSpans]): what the filter learns; None for nothing.
    RAISES (ValueError): H176, H177 or H231 for what it should not say.
    """
    rows, backprop_rows = encoder(docs, is_train=True)
    layer = filter_of(encoder)
    if layer is None:
        return EncoderOutput(rows), 0.0, lambda d_rows, d_picked: _nothing(backprop_rows(d_rows))
    (picked, loss), backprop_arrays = layer(
        filter_inputs(encoder, docs, rows, annotated), is_train=True
    )

    def backprop(d_rows: Matrix | None, d_picked: Matrix | None) -> None:
        total = np.zeros(rows.shape) if d_rows is None else d_rows.copy()
        d_arrays = backprop_arrays(np.zeros(picked.rows.shape) if d_picked is None else d_picked)
        total[:, :-1] += d_arrays / encoder.attrs["scale"]
        backprop_rows(total)

    return EncoderOutput(rows, picked), loss, backprop


def filter_inputs(
    encoder: Encoder, docs: Sequence[Doc], rows: Matrix, annotated: AnnotatedSpans | None = None
) -> Inputs:
    """What a filter reads: the arrays as the encoder has given them."""
    return docs, rows[:, :-1] / encoder.attrs["scale"], annotated


def _nothing(given: Any) -> None:
    """Of what a layer gives back."""
