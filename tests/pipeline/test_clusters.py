"""Components that read clusters of words: config file, training, saving, and loading without what the
clusters were made of.
"""

import pickle
import sys
from copy import deepcopy

import numpy as np
import pytest
import small_corpus
import spacy
from small_corpus import documents, entity_scores, examples, fit, found
from spacy.util import load_model_from_config
from spacy.vectors import Vectors

from spacy_hocrf.saving.archive import Payload, read_bytes, write_bytes

pytestmark = pytest.mark.slow

FEATURES = {
    "@misc": "spacy-hocrf.Features.v1",
    "basics": False,
    "*": {
        "labels": {"@misc": "spacy-hocrf.Transition.v1"},
        "shapes": {"@misc": "spacy-hocrf.Token.v1", "attrs": ["SHAPE"]},
        "brown": {
            "@misc": "spacy-hocrf.Clusters.v1",
            "attr": "LOWER",
            "sizes": [2, 6],
            "window": [-1, 0],
            "parts": ["tokens", "start"],
        },
        "clusters": {"@misc": "spacy-hocrf.Clusters.v1", "sizes": [2, 5], "order": 1},
    },
}
TRAINER = {"@misc": "spacy-hocrf.LBFGS.v1", "sigma": 10.0, "threads": 1}
VITERBI = {"@misc": "spacy-hocrf.Viterbi.v1"}
SEMI, CRF = "segments", "bio"
PEOPLE = "ada alan grace emmy carl lovelace turing hopper friedrich gauss edsger dijkstra"
PLACES = "london new york paris san jose rome"


@pytest.fixture
def paths(tmp_path):
    path = tmp_path / "brown.txt"
    lines = [f"0010\t{word}\t1" for word in PEOPLE.split()]
    lines += [f"0111\t{word}\t1" for word in PLACES.split()]
    path.write_text("\n".join(lines) + "\n")
    return path


def untrained(paths, encoding=SEMI, vectors=True):
    features = deepcopy(FEATURES)
    features["*"]["brown"]["source"] = str(paths)
    model = {"features": features, "encoding": encoding, "order": 1}
    nlp = small_corpus.untrained(model=model, trainer=TRAINER, decoder=VITERBI)
    if vectors:
        words = (PEOPLE + " " + PLACES).title().split()
        table = np.random.default_rng(0).normal(size=(len(words), 4)).astype(np.float32)
        nlp.vocab.vectors = Vectors(strings=nlp.vocab.strings, data=table, keys=words)
    return nlp


def trained(paths, encoding=SEMI):
    nlp = untrained(paths, encoding)
    data = examples(nlp)
    nlp.initialize(lambda: data)
    fit(nlp, data)
    return nlp


def spans_of(nlp):
    texts = [*(text for text, _ in documents()), "Edsger Dijkstra slept in Rome"]
    return [(found(doc), entity_scores(doc).tolist()) for doc in nlp.pipe(texts)]


@pytest.mark.parametrize("encoding", [SEMI, CRF])
def test_a_loaded_model_needs_nothing_that_its_clusters_were_made_of(
    paths, tmp_path, encoding, monkeypatch
):
    nlp = trained(paths, encoding)
    expected = spans_of(nlp)
    assert expected[-1][0] == [(0, 2, "PERSON"), (4, 5, "PLACE")]  # words of no training text
    nlp.to_disk(tmp_path / "model")
    paths.unlink()
    for name in ("sklearn", "sklearn.cluster", "threadpoolctl"):
        monkeypatch.setitem(sys.modules, name, None)
    assert spans_of(spacy.load(tmp_path / "model")) == expected
    pipe = nlp.get_pipe("hocrf")
    bare = untrained(paths, encoding, vectors=False)
    bare.get_pipe("hocrf").from_bytes(pipe.to_bytes())
    assert spans_of(bare) == expected
    assert bare.get_pipe("hocrf").to_bytes() == pipe.to_bytes()
    copied = pickle.loads(pickle.dumps(pipe))
    assert found(copied(bare.make_doc("Edsger Dijkstra slept in Rome"))) == expected[-1][0]


def test_a_crf_observes_every_cluster_once(paths):
    templates = untrained(paths, CRF).get_pipe("hocrf").structure.settings.templates
    assert sum("brown" in template.name for template in templates) == 4


def test_a_loaded_model_learns_on_with_its_clusters(paths):
    saved = trained(paths).get_pipe("hocrf").to_bytes()
    paths.unlink()
    nlp = untrained(paths, vectors=False)
    nlp.get_pipe("hocrf").from_bytes(saved)
    assert nlp.get_pipe("hocrf").structure.settings.templates[-1].clustering is not None
    fit(nlp, examples(nlp, documents(4)), 5)
    assert spans_of(nlp)[-1][0] == [(0, 2, "PERSON"), (4, 5, "PLACE")]


def test_clusters_that_cannot_be_made_leave_the_component_as_it_was(paths, monkeypatch):
    nlp = trained(paths)
    before = spans_of(nlp)
    data = examples(nlp)
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "sklearn.cluster", None)
        with pytest.raises(ValueError, match=r"H192.*spacy-hocrf\[clusters\]"):
            nlp.initialize(lambda: data)
    paths.write_text("no path\n")
    with pytest.raises(ValueError, match=r"H193.*brown\.txt"):
        nlp.initialize(lambda: data)
    assert spans_of(nlp) == before


def test_a_vocabulary_without_vectors_is_an_error_that_says_what_to_do(paths):
    nlp = untrained(paths, vectors=False)
    with pytest.raises(ValueError, match=r"H170.*vectors/2:ORTH\[0\].*\[initialize\] vectors"):
        nlp.initialize(lambda: examples(nlp))


def test_another_initialization_makes_other_clusters(paths):
    nlp = trained(paths)
    paths.write_text("0\tada\t1\n")
    data = examples(nlp)
    nlp.initialize(lambda: data)
    templates = nlp.get_pipe("hocrf").structure.settings.templates
    (clustering,) = {t.clustering for t in templates if t.name.startswith("brown/2")}
    assert len(clustering.words) == 1


def test_other_sizes_than_the_saved_ones_are_refused(paths):
    saved = trained(paths).get_pipe("hocrf").to_bytes()
    nlp = untrained(paths)
    config = nlp.config.copy()
    config["components"]["hocrf"]["model"]["features"]["*"]["brown"]["sizes"] = [2, 7]
    other = load_model_from_config(config)
    with pytest.raises(ValueError, match=r"H054.*brown/6"):
        other.get_pipe("hocrf").from_bytes(saved)


def without_clusterings(header, arrays):
    header["extra"]["clusters"]["header"] = {}


def other_clusterings(header, arrays):
    header["extra"]["clusters"]["header"] = {"clusterings": [["vectors", 7], 3]}


def without_section(header, arrays):
    del header["extra"]["clusters"]
    for name in [name for name in arrays if name.startswith("clusters.")]:
        del arrays[name]


def without_words(header, arrays):
    del arrays["clusters.1.words"]


def other_leaves(header, arrays):
    arrays["clusters.0.leaf"] += np.uint16(50)


@pytest.mark.parametrize(
    "damage", [without_clusterings, other_clusterings, without_section, without_words, other_leaves]
)
def test_a_model_with_damaged_clusters_is_refused(paths, damage):
    nlp = trained(paths)
    payload = read_bytes(nlp.get_pipe("hocrf").to_bytes())
    damage(payload.header, payload.arrays)
    before = spans_of(nlp)
    with pytest.raises(ValueError, match=r"H039.*clusters"):
        nlp.get_pipe("hocrf").from_bytes(write_bytes(Payload(payload.header, payload.arrays)))
    assert spans_of(nlp) == before
