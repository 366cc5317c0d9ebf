"""CRFsuite's model files."""

import struct
from dataclasses import replace

import numpy as np
import pytest
from labelled_sequences import draw, learnt

from spacy_hocrf.sequences.crfsuite_file import header_of, read_crfsuite, write_crfsuite
from spacy_hocrf.sequences.features import FeatureSettings

EVERYTHING = FeatureSettings(all_states=True, all_transitions=True)


@pytest.fixture(scope="module")
def model():
    return learnt(*draw(1), EVERYTHING)[0]


def same(one, other):
    return (
        one.labels == other.labels
        and one.state_features() == other.state_features()
        and one.transitions() == other.transitions()
    )


def test_written_models_are_read_back(model):
    data = write_crfsuite(model)
    again = read_crfsuite(data, "file")
    assert same(model, again) and again.attributes == model.attributes
    assert write_crfsuite(again) == data


def test_a_model_of_nothing_is_read_back():
    model, _ = learnt([], [])
    assert same(read_crfsuite(write_crfsuite(model), "file"), model)


def test_weights_of_0_and_attributes_without_features_are_left_out(model):
    weights = model.feature_weight.copy()
    weights[: model.feature_offsets[2]] = 0.0
    transitions = np.where(np.arange(9) == 4, 0.0, model.pattern_weight)
    sparse = replace(model, feature_weight=weights, pattern_weight=transitions)
    found = read_crfsuite(write_crfsuite(sparse), "file")
    assert list(found.attributes) == list(model.attributes)[2:]
    assert found.state_features() == {k: v for k, v in sparse.state_features().items() if v}
    assert found.transitions() == {k: v for k, v in sparse.transitions().items() if v}


@pytest.mark.parametrize(
    "settings", [FeatureSettings(order=2), FeatureSettings(attribute_orders={"": [0, 1]})]
)
def test_longer_patterns_do_not_fit_in(settings):
    model, _ = learnt(*draw(1), settings)
    with pytest.raises(ValueError, match="H283"):
        write_crfsuite(model)


def test_header(model):
    data = write_crfsuite(model)
    header = header_of(data)
    assert (header.size, header.num_labels) == (len(data), 3)
    assert header.num_attrs == len(model.attributes)


def places(data):
    """Where the chunks begin."""
    header = header_of(data)
    return header.off_features, header.off_labels, header.off_attrs


@pytest.mark.parametrize(
    "part, at, value, reason",
    [
        (None, 0, b"xCRF", "does not begin"),
        (None, 8, b"XXXX", "type"),
        (None, 12, b"\x63", "version"),
        (None, 4, b"\xff\xff\xff\x7f", "bytes"),
        (None, 20, b"\x09", "other numbers"),
        (None, 24, b"\x09", "other numbers"),
        (None, 28, b"\xff\xff\xff\x7f", "features begin"),
        (None, 32, b"\xff\xff\xff\x7f", "strings begin"),
        (0, 0, b"LAEF", "no features"),
        (0, 8, b"\xff\xff\xff\x7f", "behind its end"),
        (0, 12, b"\x02", "neither"),
        (0, 16, b"\xff\xff", "neither"),
        (0, 20, b"\x03", "a label"),
        (0, 24, struct.pack("<d", float("nan")), "finite"),
        (0, 24, struct.pack("<d", float("-inf")), "finite"),
        (0, 24, struct.pack("<d", 1e101), "finite"),
        (0, 20, b"\x01", "twice"),
        (1, 0, b"X", "no strings"),
    ],
)
def test_what_is_not_sound_is_named(model, part, at, value, reason):
    data = bytearray(write_crfsuite(model))
    at += 0 if part is None else places(bytes(data))[part]
    data[at : at + len(value)] = value
    with pytest.raises(ValueError, match=f"H274.*'broken'.*{reason}"):
        read_crfsuite(bytes(data), "broken")


def test_labels_that_occur_twice_are_named():
    model, _ = learnt([[["a"], ["b"]]], [["x", "y"]])
    data = write_crfsuite(model)
    with pytest.raises(ValueError, match="twice"):
        read_crfsuite(data.replace(b"y\0", b"x\0"), "broken")


@pytest.mark.parametrize("length", range(0, 4000, 97))
def test_a_part_of_a_file_is_named(model, length):
    with pytest.raises(ValueError, match="H274"):
        read_crfsuite(write_crfsuite(model)[:length], "broken")
