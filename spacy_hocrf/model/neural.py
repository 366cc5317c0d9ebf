"""Use of any spaCy encoder in the exact model: the setting `tok2vec` of `spacy-hocrf.HighOrderCRF.v1`.

An encoder returns an array of K - 1 numbers for every token; multiplied by `scale` and with a 1 appended,
it is the token's row. A *head* scores the row at one part of the segment, for each label: a dense score,
whose weights are stored with all others.

    scores [N, Y] = rows [N, K] · weights [K, Y]        d_rows [N, K] = Σ expectations · weights'

The sum is over heads. The encoder is a layer of the thinc Model, so that spaCy finds listeners in it.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise, zip_longest
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc
from thinc.api import Model, NumpyOps
from thinc.types import Floats2d

from spacy_hocrf.features.config import checked_parts
from spacy_hocrf.features.tokens import beginning
from spacy_hocrf.features.vectors import FETCH, check_scale
from spacy_hocrf.model.errors import EncoderErrors
from spacy_hocrf.model.heads import Head
from spacy_hocrf.types import PARTS, Matrix

__all__ = ["encoder_of", "encoder_with_heads"]

Tok2Vec = Model[list[Doc], list[Floats2d]]


def encoder_with_heads(
    tok2vec: Tok2Vec, parts: Sequence[str], scale: float
) -> tuple[Model[list[Doc], Matrix], list[tuple[str, Head]]]:
    """Make an encoder a layer of the model, and return it with its named heads.

    RAISES (ValueError): H030, H031, H140 or H173 for settings out of range.
    """
    check_scale(scale)
    encoder = encoder_of(tok2vec, scale)
    names = [PARTS[part] for part in checked_parts(parts)]
    return encoder, [(f"tok2vec.{name}", Head(encoder, name)) for name in names]


def encoder_of(tok2vec: Tok2Vec, scale: float = 1.0) -> Model[list[Doc], Matrix]:
    """Make the layer that returns the rows of all tokens of some Docs, float64 [N, K], on the CPU; the
    encoder itself may be on a GPU.
    """
    attrs = {"scale": float(scale)}
    return Model(
        "hocrf_encoder", _forward, init=_init, attrs=attrs, layers=[tok2vec], ops=NumpyOps()
    )


def _init(model: Model[list[Doc], Matrix], X: Any = None, Y: Any = None) -> None:
    model.layers[0].initialize(X=X)


def _forward(
    model: Model[list[Doc], Matrix], docs: Sequence[Doc], is_train: bool
) -> tuple[Matrix, Callable[[Matrix], Any]]:
    """Rows of the Docs; `backprop` takes their derivative.

    RAISES (ValueError): H176 for an array with another number of rows than the Doc has tokens, H177
        for numbers that are not finite.
    """
    tok2vec: Tok2Vec = model.layers[0]
    scale: float = model.attrs["scale"]
    outputs, backprop = tok2vec(list(docs), is_train)
    arrays = [_array(doc, array) for doc, array in zip_longest(docs, outputs)]
    ends = np.cumsum([0, *map(len, docs)]).tolist()
    rows = np.ones((ends[-1], max((array.shape[1] for array in arrays), default=0) + 1))
    for array, (first, last) in zip(arrays, pairwise(ends)):
        rows[first:last, :-1] = scale * array

    def backprop_rows(d_rows: Matrix) -> Any:
        ops = tok2vec.ops
        parts = [scale * d_rows[first:last, :-1] for first, last in pairwise(ends)]
        return backprop([ops.asarray(cast(Any, d.astype(a.dtype))) for d, a in zip(parts, arrays)])

    return rows, backprop_rows


def _array(doc: Doc, output: Any) -> NDArray[Any]:
    """Check the encoder's output for one Doc, [T, K - 1]."""
    array: NDArray[Any] = np.zeros(0) if output is None else FETCH(output)
    if array.ndim != 2 or len(array) != len(doc):
        found, expected = " x ".join(map(str, array.shape)), f"{len(doc)} x its width"
        raise ValueError(
            EncoderErrors.H176.format(found=found, expected=expected, text=beginning(doc))
        )
    if not np.isfinite(array).all():
        raise ValueError(EncoderErrors.H177.format(text=beginning(doc)))
    return array
