"""Models of sequences as bytes of our own."""

from dataclasses import replace

import numpy as np
import pytest
from labelled_sequences import draw, learnt

from spacy_hocrf.saving.archive import FORMAT, Payload, read_bytes, write_bytes
from spacy_hocrf.sequences.features import FeatureSettings
from spacy_hocrf.sequences.saving import is_ours, model_from_bytes, model_to_bytes


@pytest.fixture(scope="module")
def model():
    return learnt(*draw(1), FeatureSettings(order=2, attribute_orders={"see": [0, 2]}))[0]


def test_models_are_read_back(model):
    data = model_to_bytes(model)
    again = model_from_bytes(data, "file")
    assert is_ours(data) and not is_ours(b"lCRF")
    assert (again.labels, again.patterns) == (model.labels, model.patterns)
    assert again.attributes == model.attributes
    assert again.state_features() == model.state_features()
    assert again.transitions() == model.transitions()
    assert model_to_bytes(again) == data


def test_a_model_of_nothing_is_read_back():
    model, _ = learnt([], [])
    assert model_from_bytes(model_to_bytes(model), "file").labels == ()


def test_altered_bytes_are_named(model):
    data = bytearray(model_to_bytes(model))
    data[-1] ^= 1
    with pytest.raises(ValueError, match="H052"):
        model_from_bytes(bytes(data), "file")


def test_a_model_of_another_kind_is_named():
    data = write_bytes(Payload({"format": FORMAT}, {}))
    with pytest.raises(ValueError, match=r"H274.*'file'.*kind"):
        model_from_bytes(data, "file")


@pytest.mark.parametrize(
    "name, change",
    [
        ("labels", lambda x: x.astype(np.int32)),
        ("labels", lambda x: x[:-1]),
        ("labels", lambda x: np.full_like(x, 0xFF)),
        ("labels", lambda x: np.full_like(x, 65)),
        ("label_ends", lambda x: x[::-1]),
        ("label_ends", lambda x: x[:-1]),
        ("attribute_ends", lambda x: np.append(-1, x[1:])),
        ("attributes", lambda x: np.full_like(x, 65)),
        ("feature_offsets", lambda x: x[1:]),
        ("feature_offsets", lambda x: x + 1),
        ("feature_offsets", lambda x: np.append(x[:1], x[-2::-1])),
        ("feature_offsets", lambda x: np.concatenate([x[:1], x[-1:], x[2:]])),
        ("feature_pattern", lambda x: x - 1),
        ("feature_pattern", lambda x: x + 100),
        ("feature_pattern", lambda x: x[1:]),
        ("feature_weight", lambda x: x * np.inf),
        ("feature_weight", lambda x: x[:, None]),
        ("pattern_weight", lambda x: x[1:]),
        ("pattern_ends", lambda x: x - 1),
        ("pattern_labels", lambda x: np.zeros_like(x)),
        ("pattern_labels", lambda x: x + 3),
        ("pattern_labels", lambda x: x[1:]),
    ],
)
def test_what_does_not_fit_is_named(model, name, change):
    payload = read_bytes(model_to_bytes(replace(model)))
    payload.arrays[name] = change(payload.arrays[name])
    with pytest.raises(ValueError, match="H274"):
        model_from_bytes(write_bytes(payload), "file")


def test_a_missing_array_is_named(model):
    payload = read_bytes(model_to_bytes(model))
    del payload.arrays["labels"]
    with pytest.raises(ValueError, match=r"H274.*labels"):
        model_from_bytes(write_bytes(payload), "file")
