"""Reads and writes model files of CRFsuite: "lCRF", first-order models ("FOMC").

    header    "lCRF", size of the file, "FOMC", VERSION, 0, number of labels, number of attributes,
              offsets of the five chunks that follow
    features  "FEAT", size, number; for each: kind, attribute or label, label, weight
    labels    strings, see quarks.py
    attributes strings
    features by label      "LFRF", size, number; offsets; for each label: number, transitions from it
    features by attribute  "AFRF", the same for each attribute

All numbers are uint32, little-endian, except the weights, float64. The last two chunks are redundant:
they are written, but not read. (Sources: https://www.chokkan.org/software/
crfsuite/manual.html, and the files that python-crfsuite writes.)
"""

import struct
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import offsets_of
from spacy_hocrf.sequences.errors import SequenceErrors
from spacy_hocrf.sequences.model import SequenceModel
from spacy_hocrf.sequences.quarks import read_quarks, write_quarks

__all__ = ["Header", "header_of", "read_crfsuite", "write_crfsuite"]

MAGIC = b"lCRF"
TYPE = b"FOMC"
VERSION = 100
HEADER = struct.Struct("<4sI4s9I")
CHUNK = struct.Struct("<4s2I")
STATE, TRANSITION = 0, 1
FEATURE = np.dtype([("kind", "<u4"), ("source", "<u4"), ("label", "<u4"), ("weight", "<f8")])
UNUSED_LABELS = 2  # entries without transitions, after those of the labels
MAX_LABELS = 2**14
MAX_WEIGHT = 1e100  # weight; sums of larger ones might overflow

FeatureRecords = NDArray[np.void]  # [n] of FEATURE


class Header(NamedTuple):
    """The first bytes of a file."""

    magic: bytes
    size: int
    type: bytes
    version: int
    num_features: int  # 0: the chunk of features has their number
    num_labels: int
    num_attrs: int
    off_features: int
    off_labels: int
    off_attrs: int
    off_labelrefs: int
    off_attrrefs: int


def header_of(data: bytes) -> Header:
    """Parse a header. RAISES (ValueError): with the reason, if it is not the header of such a file."""
    if len(data) < HEADER.size or data[: len(MAGIC)] != MAGIC:
        raise ValueError("it does not begin as a model file of CRFsuite does")
    header = Header(*HEADER.unpack_from(data))
    if header.type != TYPE or header.version != VERSION:
        raise ValueError(f"type {header.type!r} and version {header.version} are not known")
    if header.size > len(data):
        raise ValueError(f"it has {len(data)} bytes, expected {header.size}")
    return header


def read_crfsuite(data: bytes, path: str) -> SequenceModel:
    """Return the model in a file.

    path (str): name of the file, for the error message.
    RAISES (ValueError): H274 for an invalid file.
    """
    try:
        return _read(data, header_of(data))
    except ValueError as error:
        raise ValueError(SequenceErrors.H274.format(path=path, reason=error)) from error


def write_crfsuite(model: SequenceModel) -> bytes:
    """Return the file of a model; features with weight 0, and attributes without features, are left out.

    RAISES (ValueError): H283 for a model with more than features of single labels and pairs of labels.
    """
    if model.order > 1 or (model.feature_pattern >= len(model.labels)).any():
        raise ValueError(SequenceErrors.H283)
    features, attributes = _features_of(model)
    chunks = [
        CHUNK.pack(b"FEAT", CHUNK.size + features.nbytes, len(features)) + features.tobytes(),
        write_quarks(model.labels),
        write_quarks(attributes),
    ]
    states = features["kind"] == STATE
    for magic, chosen, n, unused in (
        (b"LFRF", ~states, len(model.labels), UNUSED_LABELS),
        (b"AFRF", states, len(attributes), 0),
    ):
        chunks[-1] += bytes(-sum(map(len, chunks)) % 4)  # numbers lie at multiples of their size
        start = HEADER.size + sum(map(len, chunks))
        numbers = np.flatnonzero(chosen)
        chunks.append(_references(magic, features["source"][numbers], numbers, n, unused, start))
    *starts, size = (HEADER.size + offsets_of([len(chunk) for chunk in chunks])).tolist()
    sizes = 0, len(model.labels), len(attributes)
    return b"".join([HEADER.pack(MAGIC, size, TYPE, VERSION, *sizes, *starts), *chunks])


def _read(data: bytes, header: Header) -> SequenceModel:
    """Read a model. RAISES (ValueError): with the reason, if the file is invalid."""
    labels = read_quarks(data, header.off_labels)
    names = read_quarks(data, header.off_attrs)
    attributes = {name: i for i, name in enumerate(names)}
    if (len(labels), len(names)) != (header.num_labels, header.num_attrs):
        raise ValueError("it has other numbers of labels and attributes than it says")
    if len(set(labels)) < len(labels) or len(attributes) < len(names) or len(labels) > MAX_LABELS:
        raise ValueError(f"labels or attributes occur twice, or there are more than {MAX_LABELS}")
    features = _read_features(data, header.off_features)
    _check(features, len(labels), len(names))
    states = np.sort(features[features["kind"] == STATE], order=["source", "label"])
    transitions = features[features["kind"] == TRANSITION]
    return SequenceModel(
        labels=tuple(labels),
        attributes=attributes,
        feature_offsets=np.searchsorted(states["source"], np.arange(len(names) + 1)),
        feature_pattern=states["label"].astype(np.int32),
        feature_weight=states["weight"].astype(np.float64),
        patterns=tuple(zip(transitions["source"].tolist(), transitions["label"].tolist())),
        pattern_weight=transitions["weight"].astype(np.float64),
    )


def _read_features(data: bytes, start: int) -> FeatureRecords:
    if start + CHUNK.size > len(data):
        raise ValueError("the features begin behind its end")
    magic, _, n = CHUNK.unpack_from(data, start)
    if magic != b"FEAT" or start + CHUNK.size + n * FEATURE.itemsize > len(data):
        raise ValueError("there are no features where they should be, or they go on behind its end")
    return np.frombuffer(data, FEATURE, n, start + CHUNK.size)


def _check(features: FeatureRecords, n_labels: int, n_attributes: int) -> None:
    """Check features. RAISES (ValueError): with the reason, if one is invalid."""
    state = features["kind"] == STATE
    sources = np.where(state, n_attributes, n_labels)
    if (features["kind"] > TRANSITION).any() or (features["source"] >= sources).any():
        raise ValueError("a feature is neither of an attribute nor of two labels")
    if (features["label"] >= n_labels).any():
        raise ValueError("a feature is of a label that it does not have")
    with np.errstate(invalid="ignore"):  # signalling nan
        if not (np.abs(features["weight"]) <= MAX_WEIGHT).all():
            raise ValueError(f"a weight is not finite, or beyond {MAX_WEIGHT}")
    if len(np.unique(features[["kind", "source", "label"]])) < len(features):
        raise ValueError("a feature occurs twice")


def _features_of(model: SequenceModel) -> tuple[FeatureRecords, list[str]]:
    """Features with non-zero weight, those of attributes first, and the attributes that have features."""
    # features of attributes: these are numbered anew, without those that have none
    attribute = np.repeat(np.arange(len(model.attributes)), np.diff(model.feature_offsets))
    active = np.flatnonzero(model.feature_weight)
    used, source = np.unique(attribute[active], return_inverse=True)
    states = np.zeros(len(active), dtype=FEATURE)
    states["source"], states["label"] = source, model.feature_pattern[active]
    states["weight"] = model.feature_weight[active]
    # transitions, sorted by their labels
    pairs = np.array(model.patterns, dtype=np.int64).reshape(-1, 2)
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    order = order[model.pattern_weight[order] != 0.0]
    transitions = np.zeros(len(order), dtype=FEATURE)
    transitions["kind"], transitions["weight"] = TRANSITION, model.pattern_weight[order]
    transitions["source"], transitions["label"] = pairs[order].T
    names = list(model.attributes)
    return np.concatenate([states, transitions]), [names[i] for i in used.tolist()]


def _references(
    magic: bytes,
    source: NDArray[np.uint32],
    features: NDArray[np.int64],
    n: int,
    unused: int,
    start: int,
) -> bytes:
    """Make a chunk with the features of each of n sources.

    source (uint32 [m]): source of each feature, ascending. features (int64 [m]): their numbers.
    unused (int): number of unused offsets after those of the sources.
    start (int): position of the chunk in the file.
    """
    counts = np.bincount(source, minlength=n)
    firsts = offsets_of(counts)[:-1]
    lists = np.insert(features, firsts, counts).astype("<u4")
    begin = start + CHUNK.size + 4 * (n + unused)
    offsets = np.zeros(n + unused, dtype="<u4")
    offsets[:n] = begin + 4 * (firsts + np.arange(n))
    size = CHUNK.size + offsets.nbytes + lists.nbytes
    return CHUNK.pack(magic, size, n + unused) + offsets.tobytes() + lists.tobytes()
