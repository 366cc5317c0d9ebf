"""Checks of what a template declares and returns, where it enters: once per batch, so that the kernels may
rely on it.

Anybody may write a template. Its tokens become indices in loops without bounds checks, its values
keys of a hash table, its weights factors of scores.
"""

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.errors import Errors
from spacy_hocrf.features.templates import Events, Template
from spacy_hocrf.features.tokens import TokenBatch, is_unicode
from spacy_hocrf.types import CONST, SPAN, START, is_whole

__all__ = ["checked_events", "checked_template"]

WIDEST = 2**12
"""Most attribute values in an observation: the table of observations has a column for each."""
MAX_ORDER = 2**16
"""Most earlier labels that a template may see; no text has a history of so many segments."""


def checked_template(template: Any) -> Template:
    """Check a template, and return it. RAISES (ValueError): H131 for a missing or impossible member."""
    name = getattr(template, "name", None)
    if not isinstance(name, str) or not name or not is_unicode(name):
        _refuse_member(ascii(template), "name", ascii(name), "a string that is not empty")
    for member, lowest, highest in (
        ("part", START, CONST),
        ("order", 0, MAX_ORDER),
        ("width", 0, WIDEST),
    ):
        value = getattr(template, member, None)
        if not is_whole(value) or not lowest <= value <= highest:
            _refuse_member(name, member, value, f"a whole number from {lowest} to {highest}")
    if not callable(getattr(template, "events", None)):
        _refuse_member(name, "events", None, "a method")
    checked: Template = template
    return checked


def checked_events(template: Template, batch: TokenBatch) -> Events:
    """Return a template's events as contiguous arrays of the types of `Events`.

    batch (TokenBatch): N tokens.
    RETURNS (Events): tokens in 0..N-1, values [n, A] with A at most the template's width, finite
        weights; for a template on whole segments, ends in the same Doc, after the start.
    RAISES (ValueError): H130 for anything else, with the template's name.
    """
    returned = template.events(batch)
    if not isinstance(returned, tuple) or len(returned) != len(Events._fields):
        _refuse(template, "events", type(returned).__name__, "Events")
    events = Events(*returned)
    token = _places(template, "token", events.token, len(batch))
    values = _values(template, events.values, len(token))
    weight = None if events.weight is None else _weights(template, events.weight, len(token))
    if template.part != SPAN:
        return Events(token, values, weight)
    if events.end is None:
        _refuse(template, "end", "None", "one past the last token of each segment")
    last = _places(template, "end", events.end, len(batch) + 1) - 1
    if last.shape != token.shape:
        _refuse(template, "end", f"an array of the extents {last.shape}", f"({len(token)},)")
    inside = (token <= last) & (batch.sequence[token] == batch.sequence[np.maximum(last, 0)])
    if not inside.all():
        at = int(np.argmin(inside))
        segment = f"the segment [{token[at]}, {last[at] + 1})"
        _refuse(template, "end", segment, "segments of one token or more inside one Doc")
    return Events(token, values, weight, last + 1)


def _whole(template: Template, name: str, numbers: Any) -> NDArray[np.integer]:
    """A vector of whole numbers of any type and length."""
    array: NDArray[Any] = np.asarray(numbers)
    if array.ndim != 1 or not (array.dtype.kind in "iu" or array.size == 0):
        _refuse(template, name, _in_words(array), "a vector of whole numbers")
    return array


def _places(template: Template, name: str, numbers: Any, n: int) -> NDArray[np.int64]:
    """A vector of numbers from 0 to n - 1."""
    array = _whole(template, name, numbers)
    if len(array) and not 0 <= array.min() <= array.max() < n:
        bounds = f"numbers from {array.min()} to {array.max()}"
        _refuse(template, name, bounds, f"0 to {n - 1}: tokens of the batch")
    return _cast(array, np.int64)


def _values(template: Template, returned: Any, n: int) -> NDArray[np.uint64]:
    array: NDArray[Any] = np.asarray(returned)
    if array.ndim != 2 or array.shape[0] != n or array.shape[1] > template.width:
        expected = f"({n}, {template.width}), the template's width being {template.width}"
        _refuse(template, "values", f"an array of the extents {array.shape}", expected)
    if not (array.dtype.kind in "bu" or array.size == 0):
        if array.dtype.kind != "i" or array.min() < 0:
            _refuse(template, "values", _in_words(array), "whole numbers of at least 0, as uint64")
    return _cast(array, np.uint64)


def _weights(template: Template, returned: Any, n: int) -> NDArray[np.float32]:
    array: NDArray[Any] = np.asarray(returned)
    if array.shape != (n,) or not (array.dtype.kind in "biuf" or array.size == 0):
        _refuse(template, "weight", _in_words(array), f"a vector of {n} real numbers")
    with np.errstate(over="ignore"):
        weights = _cast(array, np.float32)
    if not np.isfinite(weights).all():
        at = int(np.argmin(np.isfinite(weights)))
        _refuse(template, "weight", f"{array[at]} at {at}", "finite numbers of float32")
    return weights


def _cast(array: NDArray[Any], dtype: type) -> NDArray[Any]:
    """Make an array contiguous and of a type; an empty one may have had any type, such as complex or text."""
    return np.ascontiguousarray(array, dtype) if array.size else np.zeros(array.shape, dtype)


def _in_words(array: NDArray[Any]) -> str:
    least = f", the least of them {array.min()}" if array.dtype.kind in "if" and array.size else ""
    return f"an array of {array.dtype} with the extents {array.shape}{least}"


def _refuse(template: Template, name: str, found: str, expected: str) -> NoReturn:
    text = Errors.H130.format(template=template.name, name=name, found=found, expected=expected)
    raise ValueError(text)


def _refuse_member(template: str, name: str, found: Any, expected: str) -> NoReturn:
    text = Errors.H131.format(template=template, name=name, found=found, expected=expected)
    raise ValueError(text)
