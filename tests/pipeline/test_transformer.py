"""Components over a transformer of spacy-curated-transformers: a tiny one with random parameters, which
reads letters.
"""

import string

import numpy as np
import pytest
import spacy
from small_corpus import examples, found
from small_encoder import LBFGS, SGD, answers, model, train_by_config
from thinc.api import fix_random_seed

for package in ("torch", "spacy_curated_transformers"):
    pytest.importorskip(package, reason=f"{package} is not installed")

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # those of torch are not ours
    pytest.mark.skipif(
        np.lib.NumpyVersion(np.__version__) >= "2.4.0",
        reason="spacy-curated-transformers 0.3 makes floats of arrays, which numpy 2.4 refuses",
    ),
]

WIDTH = 32
PIECES = ("[PAD]", "[CLS]", "[SEP]", "[UNK]", *string.ascii_letters, *string.punctuation)
TRANSFORMER = {
    "@architectures": "spacy-curated-transformers.BertTransformer.v1",
    "vocab_size": len(PIECES),
    "hidden_width": WIDTH,
    "intermediate_width": 2 * WIDTH,
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
    "padding_idx": 0,
    "piece_encoder": {"@architectures": "spacy-curated-transformers.CharEncoder.v1"},
    "with_spans": {"@architectures": "spacy-curated-transformers.WithStridedSpans.v1"},
}
LISTENER = {
    "@architectures": "spacy-curated-transformers.LastTransformerLayerListener.v1",
    "width": WIDTH,
    "upstream": "transformer",
    "pooling": {"@layers": "reduce_mean.v1"},
}


def pipeline(order, trainer=SGD):
    """A transformer that a tagger and ours listen to, untrained."""
    fix_random_seed(0)
    nlp = spacy.blank("xx")
    nlp.add_pipe("curated_transformer", name="transformer", config={"model": TRANSFORMER})
    tagger = {"model": {"@architectures": "spacy.Tagger.v2", "tok2vec": LISTENER}}
    nlp.add_pipe("tagger", config=tagger)
    ours = model(tok2vec=LISTENER, order=order)
    nlp.add_pipe("hocrf", config={"model": ours, "trainer": trainer})
    return nlp


def pieces(folder):
    """What [initialize.components] needs to know the letters."""
    path = folder / "pieces.txt"
    path.write_text("\n".join(PIECES) + "\n", encoding="utf8")
    loader = "spacy-curated-transformers.CharEncoderLoader.v1"
    return {"transformer": {"piecer_loader": {"@model_loaders": loader, "path": str(path)}}}


@pytest.mark.parametrize("order", [1, 2])
def test_a_shared_transformer_in_spacy_train(order, tmp_path):
    nlp = pipeline(order)
    data = [eg.reference for eg in examples(nlp)]
    losses = train_by_config(nlp, data, tmp_path, pieces(tmp_path))
    assert (losses[-1] < 0.5 * losses[1]).all()
    loaded = spacy.load(tmp_path / "model-last")
    assert set(loaded.get_pipe("transformer").listening_components) == {"hocrf", "tagger"}
    assert answers(loaded)[0] == [found(doc) for doc in data]
    sourced = spacy.blank("xx")
    for name in loaded.pipe_names:
        sourced.add_pipe(name, source=loaded)
    assert answers(sourced) == answers(loaded)
    again = spacy.util.load_model_from_config(loaded.config).from_bytes(loaded.to_bytes())
    assert answers(again) == answers(loaded)


def test_lbfgs_finds_the_optimum_over_a_frozen_transformer(tmp_path):
    first = pipeline(1)
    data = [eg.reference for eg in examples(first)]
    train_by_config(first, data, tmp_path, pieces(tmp_path), max_steps=10)
    nlp = spacy.blank("xx")
    nlp.add_pipe("transformer", source=spacy.load(tmp_path / "model-last"))
    nlp.add_pipe("hocrf", config={"model": model(tok2vec=LISTENER), "trainer": LBFGS})
    fixed = {"frozen_components": ["transformer"], "annotating_components": ["transformer"]}
    source = {"sources": {"transformer": tmp_path / "model-last"}}
    losses = train_by_config(nlp, data, tmp_path / "second", max_steps=100, **fixed, **source)
    assert losses[-1] < 0.5 * losses[1]
    loaded = spacy.load(tmp_path / "second" / "model-last")
    assert answers(loaded)[0] == [found(doc) for doc in data]
