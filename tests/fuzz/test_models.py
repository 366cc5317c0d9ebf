"""A few mutations of the fuzzer in `models.py`, which runs as many as it is asked for."""

import numpy as np
import pytest
from fuzz.models import EXPECTED, MODELS, RATIO, SMALL, Fuzzer, framed

from spacy_hocrf.saving import archive

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def fuzzer():
    return Fuzzer(seed=1)


def test_damaged_models_end_in_a_coded_error_or_predict(fuzzer):
    results = [fuzzer.outcome(k) for k in range(300)]
    assert not [found for found, *_ in results if not EXPECTED.fullmatch(found)]
    assert all(peak <= max(RATIO * size, SMALL) for _, _, peak, size in results)
    assert len({found for found, *_ in results}) > 5


def test_a_sound_model_is_none_of_them(fuzzer):
    assert all(
        pipeline.get_pipe("hocrf").from_bytes(data).labels
        for pipeline, data in zip(fuzzer.pipelines, fuzzer.data)
    )


def patterns(*lengths):
    """Label patterns of these lengths behind the single ones, all of the label 0."""

    def change(header, arrays):
        longer = np.array(lengths, dtype=np.int32)
        arrays["pattern_length"] = np.append(arrays["pattern_length"], longer)
        labels = np.zeros(longer.sum(), dtype=np.int32)
        arrays["pattern_label"] = np.append(arrays["pattern_label"], labels)

    return change


def labels(header, arrays):
    """So many labels that the pairs of them that never follow one another are 10⁹."""
    header["labels"] = [f"L{i}" for i in range(10_000)]
    header["learnt"] = {**header["learnt"], "longest": {}}


def depth(header, arrays):
    value = []
    for _ in range(900):
        value = [value]
    header["extra"] = {"deep": {"setting": "", "header": {"value": value}}}


def order(header, arrays):
    """So many templates, one for each order, for a model whose order was chosen."""
    header["settings"] = {**header["settings"], "order": 2**15}


def section(header, arrays):
    header["extra"] = {"scores": {"setting": "", "header": 0}}


HUGE = {
    "a pattern of 200,000 labels": (patterns(200_000), "CRF, bio", "H039"),
    "3,000 patterns of 3,000 labels": (patterns(*[3000] * 3000), "CRF, bio", "H039"),
    "10,000 labels": (labels, "CRF, bio", "H136"),
    "900 lists in one another": (depth, "CRF, bio", "H135"),
    "a section that is a number": (section, "CRF, bio", "H134"),
    "an order that no pattern has": (order, "settings that are chosen", "H039"),
}


@pytest.mark.parametrize("change, name, code", HUGE.values(), ids=HUGE)
def test_what_would_cost_more_than_its_file_is_refused_before_it_is_made(
    fuzzer, change, name, code
):
    which = [*MODELS].index(name)
    payload = archive.read_bytes(fuzzer.data[which])
    header, arrays = dict(payload.header), dict(payload.arrays)
    change(header, arrays)
    data = archive.write_bytes(archive.Payload(header, arrays))
    found, seconds, peak, size = fuzzer.load(which, data)
    assert (found, peak <= max(RATIO * size, SMALL)) == (code, True)
    assert seconds < 2


@pytest.mark.parametrize("shape", [[2**40], [2**40, 0, 2**40], [2**32, 2**32], [-1], [2.0], ["3"]])
def test_an_extent_beyond_the_file_is_refused_before_it_is_allocated(fuzzer, shape):
    table = f'[{{"name":"weights","dtype":"float32","shape":{shape}}}]'.replace("'", '"')
    body = f'{{"format":{archive.FORMAT},"ready":true,"labels":[],"arrays":{table}}}'
    found, _, peak, _ = fuzzer.load(0, framed(body, bytes(1000)))
    assert found in ("H052", "H134")
    assert peak < SMALL
