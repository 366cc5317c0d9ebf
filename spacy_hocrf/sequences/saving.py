"""Saves models of sequences of any order as bytes: a header and named arrays, never a pickle."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import offsets_of
from spacy_hocrf.saving.archive import FORMAT, MAGIC, Payload, read_bytes, write_bytes
from spacy_hocrf.sequences.crfsuite_file import MAX_LABELS, MAX_WEIGHT
from spacy_hocrf.sequences.errors import SequenceErrors
from spacy_hocrf.sequences.model import SequenceModel

__all__ = ["is_ours", "model_from_bytes", "model_to_bytes"]

KIND = "sequences"
"""Distinguishes these bytes from those of a component."""
INTEGERS = ("attribute_ends", "label_ends", "feature_offsets", "pattern_ends")  # int64
NUMBERS = ("feature_pattern", "pattern_labels")  # int32
WEIGHTS = ("feature_weight", "pattern_weight")  # float64
TEXTS = ("attributes", "labels")  # uint8
TYPES = {
    **dict.fromkeys(INTEGERS, "int64"),
    **dict.fromkeys(NUMBERS, "int32"),
    **dict.fromkeys(WEIGHTS, "float64"),
    **dict.fromkeys(TEXTS, "uint8"),
}

Arrays = dict[str, NDArray[Any]]


def is_ours(data: bytes) -> bool:
    """Do the bytes begin like those of `model_to_bytes`?"""
    return data.startswith(MAGIC)


def model_to_bytes(model: SequenceModel) -> bytes:
    """Convert a model of any order to bytes."""
    lengths = [len(pattern) for pattern in model.patterns]
    labels = [y for pattern in model.patterns for y in pattern]
    arrays = {
        **_texts("attribute", list(model.attributes)),
        **_texts("label", list(model.labels)),
        "feature_offsets": model.feature_offsets,
        "feature_pattern": model.feature_pattern,
        "feature_weight": model.feature_weight,
        "pattern_ends": offsets_of(lengths)[1:],
        "pattern_labels": np.array(labels, dtype=np.int32),
        "pattern_weight": model.pattern_weight,
    }
    return write_bytes(Payload({"format": FORMAT, "kind": KIND}, arrays))


def model_from_bytes(data: bytes, path: str) -> SequenceModel:
    """Return the model in bytes from `model_to_bytes`.

    path (str): name of the file, for the error message.
    RAISES (ValueError): H052, H053, H134, H136 or H274 for other bytes.
    """
    payload = read_bytes(data)
    try:
        if payload.header.get("kind") != KIND:
            raise ValueError("it is a model of another kind")
        return _model_of(payload.arrays)
    except ValueError as error:
        raise ValueError(SequenceErrors.H274.format(path=path, reason=error)) from error


def _model_of(arrays: Arrays) -> SequenceModel:
    """Make a model. RAISES (ValueError): with the reason, for arrays that do not fit each other."""
    for name, kind in TYPES.items():
        array = arrays.get(name)
        if array is None or array.dtype != kind or array.ndim != 1:
            raise ValueError(f"'{name}' is missing or of another type")
    labels, names = _strings(arrays, "label"), _strings(arrays, "attribute")
    attributes = {name: i for i, name in enumerate(names)}
    if len(attributes) < len(names) or len(set(labels)) < len(labels) or len(labels) > MAX_LABELS:
        raise ValueError(f"labels or attributes occur twice, or there are more than {MAX_LABELS}")
    offsets, feature_pattern = arrays["feature_offsets"], arrays["feature_pattern"]
    ends = arrays["pattern_ends"]
    sound = (
        len(offsets) == len(names) + 1
        and offsets[0] == 0
        and (np.diff(offsets) >= 0).all()
        and offsets[-1] == len(feature_pattern) == len(arrays["feature_weight"])
        and len(ends) == len(arrays["pattern_weight"])
        and (np.diff(ends, prepend=0) >= 2).all()
        and (ends[-1] if len(ends) else 0) == len(arrays["pattern_labels"])
    )
    if not sound:
        raise ValueError("its features do not fit each other")
    most = len(labels) + len(ends), len(labels)
    if any((arrays[name] < 0).any() or (arrays[name] >= n).any() for name, n in zip(NUMBERS, most)):
        raise ValueError("a feature is of a label, or of a pattern, that it does not have")
    if any(not (np.abs(arrays[name]) <= MAX_WEIGHT).all() for name in WEIGHTS):
        raise ValueError(f"a weight is not finite, or beyond {MAX_WEIGHT}")
    patterns = _patterns(arrays["pattern_labels"].tolist(), ends.tolist())
    if len(set(patterns)) < len(patterns):
        raise ValueError("a label pattern occurs twice")
    return SequenceModel(
        labels=tuple(labels),
        attributes=attributes,
        feature_offsets=offsets,
        feature_pattern=feature_pattern,
        feature_weight=arrays["feature_weight"],
        patterns=patterns,
        pattern_weight=arrays["pattern_weight"],
    )


def _patterns(labels: list[int], ends: list[int]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(labels[first:last]) for first, last in zip([0, *ends], ends))


def _texts(name: str, strings: list[str]) -> Arrays:
    """Concatenate strings as UTF-8; return bytes, and where each string ends."""
    encoded = [string.encode("utf8", "surrogatepass") for string in strings]
    return {
        f"{name}s": np.frombuffer(b"".join(encoded), dtype=np.uint8),
        f"{name}_ends": offsets_of([len(string) for string in encoded])[1:],
    }


def _strings(arrays: Arrays, name: str) -> list[str]:
    """Split into strings. RAISES (ValueError): if they are not UTF-8, or their ends are invalid."""
    text, ends = arrays[f"{name}s"].tobytes(), arrays[f"{name}_ends"].tolist()
    if ends != sorted(ends) or (ends[-1] if ends else 0) != len(text) or (ends and ends[0] < 0):
        raise ValueError(f"the names of its {name}s do not fit together")
    return [text[a:b].decode("utf8", "surrogatepass") for a, b in zip([0, *ends], ends)]
