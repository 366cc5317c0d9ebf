"""What Viterbi shows is the most probable reading where white space is no part of spans: one segmentation is
shown as one reading then.
"""

import numpy as np
import pytest
from pytest import approx
from small_corpus import MODELS, trained

VITERBI = {"@misc": "spacy-hocrf.Viterbi.v1"}
TEXTS = (
    "Ada \n Paris",
    "\n Ada \n\n met",
    "In \n Paris \n",
    "Ada \n\n \t Max \n",
    "Grace \n Hopper slept",
    "Nobody",
)
SEEDS = 56


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["semi-CRF, outside tokens", "semi-CRF, outside runs", "spans"])
def test_no_reading_is_more_probable(kind):
    """1,008 texts, with random weights, beside all of their readings."""
    factory, model = MODELS[kind]
    nlp = trained(factory, model, decoder=VITERBI, steps=2)
    pipe = nlp.get_pipe("hocrf")
    key, size = getattr(pipe.target, "spans_key", None), pipe.model.get_param("W").shape
    for seed in range(SEEDS):
        weights = np.random.default_rng(seed).normal(0, 0.4, size)
        pipe.model.set_param("W", weights.astype(np.float32))
        docs = nlp.pipe(TEXTS)
        for doc, reading in zip(docs, pipe.readings([nlp.make_doc(text) for text in TEXTS])):
            every = list(reading.alternatives())
            assert sum(each.probability for each in every) == approx(1.0)
            spans = doc.ents if key is None else doc.spans[key]
            shown = reading.log_probability([(s.start, s.end, s.label_) for s in spans])
            assert np.exp(shown) == approx(max(each.probability for each in every), rel=1e-9)
