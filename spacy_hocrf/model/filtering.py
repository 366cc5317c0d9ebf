"""The span filter: which spans of a text an encoder takes for segments, and what it says of them.

Every span of at most L tokens is a candidate. An array for its first token, one for its last and one for
its width make M numbers, and these its logit:

    numbers(u, v) = max(0, array(u) · first + array(v - 1) · last + width[v - u])
    logit(u, v) = numbers(u, v) · out + bias

A *local loss* teaches the logits: that of a logistic regression which asks of each candidate whether it
is annotated. The candidates of a text with the highest logits are *picked*. Their numbers, and a 1, are
what the exact model scores them by, for each label (`spacy_hocrf.model.picked`).

After Zaratiana, Tomeh, El Khbir, Holat and Charnois, "Filtered Semi-Markov CRF", Findings of EMNLP 2023,
where a text has no other segments than those that are picked; here the others only lack that score.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc
from thinc.api import Model, NumpyOps, glorot_uniform_init

from spacy_hocrf.arrays import offsets_of
from spacy_hocrf.features.products import multiply, multiply_transposed
from spacy_hocrf.features.tokens import beginning
from spacy_hocrf.model.errors import EncoderErrors
from spacy_hocrf.model.picked import Picked

__all__ = [
    "AnnotatedSpans",
    "SpanFilter",
    "filter_fault",
    "filter_layer",
]

Matrix = NDArray[np.float64]

RESOLUTION = 2.0**-10
"""Logits are compared in units of this: what else is picked in a batch must not depend on how the last
bits of its sums were rounded. All candidates that are as good as the last one picked are picked.
"""
BIAS = -4.0
"""Of an untrained filter: few candidates are spans."""


@dataclass(frozen=True)
class SpanFilter:
    """Settings of a span filter: `spacy-hocrf.SpanFilter.v1`.

    width (int): tokens of the longest candidate L.
    spans (float): candidates that are picked, for each token of a text; 0 for none, so that the local
        loss alone teaches the encoder.
    loss (float): what the local loss is multiplied by.
    hidden (int): numbers of a candidate M.
    RAISES (ValueError): H230 for a setting out of range.
    """

    width: int = 10
    spans: float = 1.0
    loss: float = 1.0
    hidden: int = 64

    def __post_init__(self) -> None:
        # without the loss, to be picked in training is mostly a sign of being annotated
        sound = {
            "width": (_is_count(self.width, 1_000), "a whole number from 1 to 1000"),
            "spans": (0 <= self.spans < np.inf, "at least 0"),
            "loss": (0 < self.loss < np.inf, "above 0"),
            "hidden": (_is_count(self.hidden, 10_000), "a whole number from 1 to 10000"),
        }
        for name, (is_sound, expected) in sound.items():
            if not is_sound:
                found = getattr(self, name)
                raise ValueError(
                    EncoderErrors.H230.format(name=name, found=found, expected=expected)
                )


class AnnotatedSpans(NamedTuple):
    """What is known of a batch with N tokens."""

    start: NDArray[np.int64]  # [n] of each annotated span, counted over the batch
    end: NDArray[np.int64]  # [n]
    unknown: NDArray[np.bool_]  # [N] is nothing known of the token?


Inputs = tuple[Sequence[Doc], Matrix, AnnotatedSpans | None]
"""Docs, the array of each of their tokens, and what is annotated, if that is to be learnt."""
Outputs = tuple[Picked, float]
"""What is picked, and the local loss in nats."""


def filter_layer(settings: SpanFilter) -> Model[Inputs, Outputs]:
    """The layer that picks spans; its `backprop` takes the derivative by their rows, float64 [S, M + 1],
    and gives that by the arrays.
    """
    return Model(
        "hocrf_span_filter",
        partial(_forward, settings),  # no attribute, which a saved model would replace
        init=_init,
        params=dict.fromkeys(("first", "last", "width", "out", "bias")),
        dims={"nO": settings.hidden, "nL": settings.width},
        attrs={"trained": False},
        ops=NumpyOps(),
    )


def filter_fault(layer: Model[Any, Any]) -> str:
    """What is wrong with the parameters of a layer that was loaded; "" for nothing."""
    numbers, longest = layer.get_dim("nO"), layer.get_dim("nL")
    arrays = len(layer.get_param("first")) if layer.has_param("first") else 0
    extents = {
        "first": (arrays, numbers),
        "last": (arrays, numbers),
        "width": (longest, numbers),
        "out": (numbers,),
        "bias": (1,),
    }
    for name, expected in extents.items():
        found = np.asarray(layer.get_param(name)) if layer.has_param(name) else np.zeros(0)
        if found.dtype.kind != "f" or found.shape != expected or not np.isfinite(found).all():
            return f"'{name}' of the span filter is damaged"
    return ""


def _is_count(value: object, most: int) -> bool:
    return type(value) is int and 1 <= value <= most


def _init(model: Model[Inputs, Outputs], X: Any = None, Y: Any = None) -> None:
    """X: the inputs for some Docs."""
    ops, numbers, longest = model.ops, model.get_dim("nO"), model.get_dim("nL")
    arrays = X[1].shape[1]
    for name in ("first", "last"):
        model.set_param(name, glorot_uniform_init(ops, (arrays, numbers)))
    model.set_param("width", ops.alloc2f(longest, numbers))
    model.set_param("out", cast(Any, glorot_uniform_init(ops, (numbers, 1)).ravel()))
    model.set_param("bias", cast(Any, np.full(1, BIAS, dtype=np.float32)))
    model.attrs["trained"] = False


def _forward(
    settings: SpanFilter, model: Model[Inputs, Outputs], inputs: Inputs, is_train: bool
) -> tuple[Outputs, Callable[[Matrix], Matrix]]:
    """RAISES (ValueError): H176 for arrays of another width, H231 for logits that are not finite."""
    docs, arrays, annotated = inputs
    if annotated is None and not settings.spans:
        nowhere, rows = np.zeros(0, dtype=np.int64), np.zeros((0, settings.hidden + 1))
        return (Picked(nowhere, nowhere, rows), 0.0), lambda d_rows: np.zeros(arrays.shape)
    _check_width(arrays, len(model.get_param("first")), docs)
    candidates = _Candidates(model, offsets_of([len(doc) for doc in docs]), arrays)
    logits = candidates.logits()
    finite = np.isfinite(logits) | ~candidates.there
    if not finite.all():
        bad = np.flatnonzero(~finite.all(axis=1))[0]
        doc = docs[int(np.searchsorted(candidates.offsets, bad, side="right")) - 1]
        raise ValueError(EncoderErrors.H231.format(text=beginning(doc)))
    chosen = _best(logits, candidates.offsets, settings.spans)
    loss, slopes = 0.0, None
    if annotated is not None:
        gold = _places(annotated, candidates.there)
        chosen |= gold & (settings.spans > 0)
        loss, slopes = _local_loss(logits, gold, _known(annotated, candidates.there))
        slopes *= settings.loss
        model.attrs["trained"] = True
    token, more = (place.astype(np.int64) for place in chosen.nonzero())
    numbers = candidates.numbers(token, more)
    rows = np.concatenate([numbers, np.ones((len(numbers), 1))], axis=1)

    def backprop(d_rows: Matrix) -> Matrix:
        return candidates.backprop(slopes, token, more, d_rows[:, :-1])

    return (Picked(token, token + more + 1, rows), settings.loss * loss), backprop


def _check_width(arrays: Matrix, expected: int, docs: Sequence[Doc]) -> None:
    if len(arrays) and arrays.shape[1] != expected:
        doc = next(doc for doc in docs if len(doc))
        found, wanted = (f"{len(doc)} x {width}" for width in (arrays.shape[1], expected))
        text = beginning(doc)
        raise ValueError(EncoderErrors.H176.format(found=found, expected=wanted, text=text))


class _Candidates:
    """All candidates of a batch with N tokens: a grid of tokens that they begin with, and of how many
    follow.

    offsets (int64 [D + 1]): first token of each Doc.
    arrays (float64 [N, K]): of the tokens.

    there (bool [N, L]): which of the grid end in the Doc that they begin in.
    """

    def __init__(
        self, model: Model[Inputs, Outputs], offsets: NDArray[np.int64], arrays: Matrix
    ) -> None:
        self.offsets = offsets
        self._model, self._arrays = model, arrays
        self._first, self._last = (
            multiply(arrays, self._param(name)) for name in ("first", "last")
        )
        self._width, self._out = self._param("width"), self._param("out")
        tokens = np.arange(len(arrays))
        room = np.repeat(offsets[1:], np.diff(offsets)) - tokens
        self.there = room[:, None] > np.arange(len(self._width))

    def numbers(self, token: NDArray[np.int64], more: NDArray[np.int64] | int) -> Matrix:
        """Of some candidates, float64 [n, M].

        token (int64 [n]), more (int64 [n] or int): that they begin with; that follow it.
        """
        sums: Matrix = self._first[token] + self._last[token + more] + self._width[more]
        return np.maximum(sums, 0.0, out=sums)

    def logits(self) -> Matrix:
        """float64 [N, L]; -inf for none."""
        bias = self._param("bias")
        found = np.full(self.there.shape, -np.inf)
        for more in range(len(self._width)):
            token = np.flatnonzero(self.there[:, more]).astype(np.int64)
            found[token, more] = (
                multiply(self.numbers(token, more), self._out[:, None])[:, 0] + bias
            )
        return found

    def backprop(
        self,
        slopes: Matrix | None,
        picked: NDArray[np.int64],
        picked_more: NDArray[np.int64],
        d_picked: Matrix,
    ) -> Matrix:
        """Add to the gradients of the parameters.

        slopes (Optional[float64 [N, L]]): derivative by the logits, 0 where there is None.
        picked, picked_more (int64 [S]): candidates with a derivative by their numbers, d_picked, float64
            [S, M].
        RETURNS (float64 [N, K]): the derivative by the arrays.
        """
        d_first, d_last = np.zeros_like(self._first), np.zeros_like(self._last)
        d_width, d_out = np.zeros(self._width.shape), np.zeros(self._out.shape)
        for more in range(len(self._width)):
            token = np.flatnonzero(self.there[:, more]).astype(np.int64)
            numbers = self.numbers(token, more)
            mine = np.flatnonzero(picked_more == more)
            d_numbers = np.zeros_like(numbers)
            d_numbers[np.searchsorted(token, picked[mine])] = d_picked[mine]
            if slopes is not None:
                d_numbers += slopes[token, more][:, None] * self._out
                d_out += multiply(slopes[token, more][None], numbers)[0]
            d_sums = d_numbers * (numbers > 0)
            d_first[token] += d_sums
            d_last[token + more] += d_sums
            d_width[more] = d_sums.sum(axis=0)
        gradients = {
            "first": multiply_transposed(self._arrays, d_first),
            "last": multiply_transposed(self._arrays, d_last),
            "width": d_width,
            "out": d_out,
            "bias": np.zeros(1) if slopes is None else slopes.sum(keepdims=True)[0],
        }
        for name, gradient in gradients.items():
            self._model.inc_grad(name, cast(Any, gradient.astype(self._param(name).dtype)))
        return multiply(d_first, self._param("first").T) + multiply(d_last, self._param("last").T)

    def _param(self, name: str) -> NDArray[Any]:
        return np.asarray(self._model.get_param(name))


def _best(logits: Matrix, offsets: NDArray[np.int64], share: float) -> NDArray[np.bool_]:
    """The candidates with the highest logits of each Doc, `share` of them for each token and all that
    are as good as the last one, bool [N, L].

    logits (float64 [N, L]): -inf for none.
    """
    units = np.floor(logits / RESOLUTION)
    chosen = np.zeros(logits.shape, dtype=bool)
    if not share:
        return chosen
    for first, last in zip(offsets[:-1].tolist(), offsets[1:].tolist()):
        mine = units[first:last]
        some = mine[mine > -np.inf]
        if len(some):
            number = min(ceil(share * (last - first)), len(some))
            chosen[first:last] = mine >= np.partition(some, -number)[-number]
    return chosen


def _places(annotated: AnnotatedSpans, there: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Where annotated spans are in the grid of candidates, bool [N, L]; longer ones are nowhere."""
    more = annotated.end - annotated.start - 1
    short = more < there.shape[1]
    gold = np.zeros(there.shape, dtype=bool)
    gold[annotated.start[short], more[short]] = True
    return gold


def _known(annotated: AnnotatedSpans, there: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The candidates of which it is known whether they are spans: without a token that is unknown, bool
    [N, L].
    """
    before = np.concatenate([[0], np.cumsum(annotated.unknown)])
    tokens = np.arange(len(there))[:, None]
    end = np.minimum(tokens + 1 + np.arange(there.shape[1]), len(there))
    known: NDArray[np.bool_] = there & (before[end] == before[tokens])
    return known


def _local_loss(
    logits: Matrix, gold: NDArray[np.bool_], known: NDArray[np.bool_]
) -> tuple[float, Matrix]:
    """Minus the log-likelihood of the candidates that are known, and its derivative, float64 [N, L]."""
    some = logits[known]
    slopes = np.zeros(logits.shape)
    slopes[known] = 0.5 + 0.5 * np.tanh(0.5 * some) - gold[known]  # exp(-some) may overflow
    return float((np.logaddexp(0.0, some) - gold[known] * some).sum()), slopes
