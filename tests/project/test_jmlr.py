"""The JMLR models of project/references against the figures of the released implementation, at fixed weights."""

import importlib
import os
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from spacy_hocrf.engine.forward_backward import log_partition

SCRIPTS = Path(__file__).parents[2] / "project" / "references" / "scripts"
CORA = Path(os.environ.get("HOCRF_DATA", "")) / "hosemicrf" / "ref" / "ref.train"

pytestmark = pytest.mark.skipif(not CORA.is_file(), reason="needs Cora: set HOCRF_DATA to a folder with hosemicrf/ref/ref.train")

# features by order, |Z|, |P|; then at weights 0.01·((rank mod 7) - 3): log Z of the first five references, n·f, and the norms
# |g|_2 and |g|_1 of its gradient
FIGURES = {
    (2, False): (
        [32432, 6388, 167], 267, 101,
        [123.064415522346, 76.965738786888, 74.491135969326, 76.940165833754, 87.182026564381],
        24967.5332481744, 6007.11166410, 175251.002943,
    ),
    (1, True): (
        [37802, 1092], 87, 14,
        [123.503967912238, 77.085660993223, 74.431891192181, 77.069437501845, 87.263773028827],
        24974.2461912565, 5255.39838422, 170109.261150,
    ),
    (2, True): (
        [37802, 1092, 145], 232, 80,
        [123.187255493482, 77.017270391188, 74.386405674668, 77.036993600427, 87.226399528674],
        24795.2266207556, 5233.53252463, 170771.008753,
    ),
    (3, True): (
        [37802, 1092, 145, 167], 399, 183,
        [122.998412822417, 76.938097049927, 74.377330042970, 76.855323788218, 87.302847126874],
        24799.1699928347, 5229.04294514, 171284.801277,
    ),
}  # fmt: skip


@pytest.mark.parametrize("order, semi", FIGURES)
def test_objective_equals_the_released_code(order, semi, monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    jmlr, convert = importlib.import_module("jmlr"), importlib.import_module("convert_cora")
    features, n_patterns, n_states, log_zs, objective, norm, norm1 = FIGURES[order, semi]
    nlp = jmlr.make_pipeline(order, semi)
    examples = [jmlr.Example(gold.copy(), gold) for gold in convert.read_docs(CORA, nlp.vocab)]
    for example in examples:
        example.predicted.ents = []
    nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe("hocrf")
    assert np.bincount(pipe.network.index.feature_order).tolist() == features
    assert len(pipe.network.patterns) == n_patterns
    assert len(pipe.automaton.states) == n_states
    if semi:
        limits = dict(zip(pipe.network.scheme.names, pipe.network.scheme.limits))
        assert (limits["author"], limits["title"], limits["journal"], limits["pages"], limits["date"]) == (40, 21, 20, 6, 7)
    weights = jmlr.canonical_weights(pipe, nlp.vocab.strings)
    value, gradient = pipe.objective()(weights)
    pipe.model.set_param("W", weights.astype(np.float32))
    potentials = pipe.network.compile(
        pipe.network.observe([eg.predicted for eg in examples[:5]]), pipe.network.allowed([eg.predicted for eg in examples[:5]])
    ).potentials(weights)
    assert_allclose(log_partition(potentials, pipe.automaton), log_zs, rtol=1e-9)
    assert_allclose([value, np.linalg.norm(gradient), np.abs(gradient).sum()], [objective, norm, norm1], rtol=1e-9)
