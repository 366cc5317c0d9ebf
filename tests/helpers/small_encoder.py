"""Small encoders, pipelines over them, and how they are trained: for the tests of training over an
encoder.
"""

import io

import numpy as np
import spacy
from small_corpus import documents, entity_scores, found, untrained
from spacy.tokens import DocBin
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from spacy.util import load_config
from thinc.api import Config, fix_random_seed

CNN = {
    "@architectures": "spacy.HashEmbedCNN.v2",
    "width": 16,
    "depth": 1,
    "embed_size": 200,
    "window_size": 1,
    "maxout_pieces": 2,
    "subword_features": True,
    "pretrained_vectors": None,
}
LISTENER = {"@architectures": "spacy.Tok2VecListener.v1", "width": 16, "upstream": "*"}
NO_FEATURES = {"@misc": "spacy-hocrf.Transition.v1", "order": 1}
SGD = {"@misc": "spacy-hocrf.SGD.v1", "sigma": 3.0}
LBFGS = {"@misc": "spacy-hocrf.LBFGS.v1", "sigma": 3.0}
FACTORIES = {"hocrf": "segments", "hocrf_spans": "bio", "hocrf_tagger": "tags"}


def model(factory="hocrf", tok2vec=CNN, order=1):
    """Config of a model over an encoder, with transitions for features."""
    return {
        "encoding": FACTORIES[factory],
        "order": order,
        "tok2vec": tok2vec,
        "features": NO_FEATURES,
        "scale": 1.0,
    }


def alone(factory="hocrf", trainer=SGD, tok2vec=CNN, **settings):
    """A pipeline of one component with an encoder, untrained."""
    fix_random_seed(0)
    return untrained(factory, model(factory, tok2vec, **settings), trainer=trainer)


def shared(trainer=SGD, order=1, last="hocrf"):
    """An encoder that a tagger and ours listen to; `last` steps it."""
    fix_random_seed(0)
    nlp = spacy.blank("xx")
    nlp.add_pipe("tok2vec", config={"model": CNN})
    tagger = {"model": {"@architectures": "spacy.Tagger.v2", "tok2vec": LISTENER}}
    ours = {"model": model(tok2vec=LISTENER, order=order), "trainer": trainer}
    pipes = [("tagger", tagger), ("hocrf", ours)]
    for name, settings in pipes if last == "hocrf" else reversed(pipes):
        nlp.add_pipe(name, config=settings)
    return nlp


def learn(nlp, data, steps=30, drop=0.1, **settings):
    """Losses of each step."""
    optimizer = nlp.create_optimizer()
    optimizer.learn_rate = 0.01
    steps = [nlp.update(data, sgd=optimizer, drop=drop, **settings) for _ in range(steps)]
    return [dict(losses) for losses in steps]


def train_by_config(nlp, data, folder, initialize=None, sources=None, **training):
    """Train a pipeline as `spacy train` does, print its table, and leave the models in a folder.

    initialize: what is added to [initialize.components].
    sources: components that are taken from pipelines in these folders.
    RETURNS: losses of the components, a row for each evaluation.
    """
    folder.mkdir(exist_ok=True)
    DocBin(docs=data).to_disk(folder / "train.spacy")
    config = Config().from_str(nlp.config.to_str(), interpolate=False)
    reader = {"@readers": "spacy.Corpus.v1", "path": str(folder / "train.spacy")}
    config["corpora"] = {"train": reader, "dev": reader}
    config["initialize"]["components"] = initialize or {}
    for name, path in (sources or {}).items():
        config["components"][name] = {"source": str(path)}
    config["training"].update(max_steps=40, eval_frequency=10, patience=0, dropout=0.1)
    config["training"].update(training)
    config["training"]["optimizer"]["learn_rate"] = 0.01
    config.to_disk(folder / "config.cfg")
    log = io.StringIO()
    with_shapes = init_nlp(load_config(folder / "config.cfg", interpolate=False))
    train(with_shapes, folder, stdout=log, stderr=log)
    print(log.getvalue())
    rows = [line.split() for line in log.getvalue().splitlines() if line[:1] == " "]
    last = 2 + log.getvalue().count("LOSS")
    return np.array([[float(value) for value in row[2:last]] for row in rows])


def answers(nlp):
    """Of the texts, and what the probabilities are."""
    docs = [nlp(text) for text, _ in documents()]
    scores = [entity_scores(doc) for doc in docs if doc.ents]
    return [found(doc) for doc in docs], [list(map(float, some)) for some in scores]
