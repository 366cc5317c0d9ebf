"""Clusters as observations of tokens: by hand, and as the compiled plan finds them."""

import copy
import pickle

import numpy as np
import pytest
import spacy
from numpy.testing import assert_array_equal
from spacy.tokens import Doc

from spacy_hocrf.features.clustering import Clustering
from spacy_hocrf.features.clusters import make_clusters, with_clusterings
from spacy_hocrf.features.config import make_token
from spacy_hocrf.features.index import FeatureIndex
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.types import END, START, TOKEN

TEXTS = ("red night Sun", "", "moon red", "night")
PATHS = "00\tred\t7\n01\tSun\t3\n011\tmoon\t1\n"


@pytest.fixture
def vocab():
    return spacy.blank("en").vocab


@pytest.fixture
def batch(vocab):
    return TokenBatch([Doc(vocab, words=text.split()) for text in TEXTS], learn=True)


@pytest.fixture
def make(tmp_path, vocab):
    """Templates of the file, which know it."""
    path = tmp_path / "brown.txt"
    path.write_text(PATHS)

    def of_file(**settings):
        settings = {"parts": ["tokens"], **settings}
        return with_clusterings(make_clusters(str(path), **settings), vocab)

    return of_file


def found(template, batch):
    """(token, cluster) of each event."""
    events = template.events(batch)
    return [*zip(events.token.tolist(), events.values[:, 0].tolist())]


@pytest.mark.slow
@pytest.mark.parametrize(
    "offset, first, second",
    [
        (0, [(0, 2), (1, 0), (2, 2), (3, 2), (4, 2), (5, 0)], [(0, 4), (2, 5), (3, 5), (4, 4)]),
        (1, [(0, 0), (1, 2), (3, 2)], [(1, 5), (3, 4)]),
        (-1, [(1, 2), (2, 0), (4, 2)], [(1, 4), (4, 5)]),
        (4, [], []),
    ],
)
def test_each_granularity_is_observed_and_no_cluster_at_the_first(
    make, batch, offset, first, second
):
    templates = make(sizes=[1, 2], window=[offset])
    assert [found(template, batch) for template in templates] == [first, second]


def test_of_another_attribute(make, batch):
    (template,) = make(sizes=[2], attr="LOWER")
    assert found(template, batch) == [(0, 4), (1, 0), (2, 0), (3, 5), (4, 4), (5, 0)]
    assert batch.reads == {"LOWER"}


def test_names_tell_templates_apart(make):
    names = [t.name for t in make(sizes=[1, 2], window=[-1, 0], parts=["tokens", "end"])]
    assert names[:3] == ["brown/1:ORTH[-1]", "brown/1:ORTH[0]", "brown/2:ORTH[-1]"]
    assert names[4] == "end:brown/1:ORTH[-1]" and len({*names}) == 8
    parts = [t.part for t in make_clusters(parts=["end", "tokens", "start"])]
    assert parts == [END] * 3 + [TOKEN] * 3 + [START] * 3
    assert [t.name for t in make_clusters(parts=["tokens"], order=1)] == [
        *("vectors/50:ORTH[0]@1", "vectors/200:ORTH[0]@1", "vectors/1000:ORTH[0]@1")
    ]


def test_values_are_described(make, vocab):
    of_file, of_vectors = make(sizes=[2])[0], make_clusters()[0]
    described = [of_file.describe([value], vocab.strings) for value in (0, 0b100, 0b1011)]
    assert described == ["none", "00", "011"]
    assert of_vectors.describe([17], vocab.strings) == "17"


def test_the_plan_finds_what_the_templates_observe(make, batch):
    """Of all values some are known, those of other granularities among them."""
    templates = [
        *make_token(["ORTH"], [-1, 0]),
        *make(sizes=[1, 2, 3], window=[-1, 0, 2], parts=["tokens", "start"]),
        *make(sizes=[2], attr="LOWER"),
    ]
    index = FeatureIndex(((0,), (1,)), templates)
    assert not index._others  # the plan finds all
    for observer in index.observers:
        first = getattr(observer.template, "granularity", 0) > 0  # which never observes 0
        values = np.arange(first, 7, 1 + observer.number % 2, dtype=np.uint64)
        index.table.add(observer.number, values.reshape(-1, 1))
    rows = index.observe(batch).tokens
    expected = [[] for _ in range(len(batch))]
    for observer in index.observers:
        events = observer.events(batch)
        ids = index.table.lookup(observer.number, events.values)
        for token, number in zip(events.token.tolist(), ids.tolist()):
            if number >= 0:
                expected[token].append(number)
    assert rows.ids.tolist() == [number for numbers in expected for number in numbers]
    assert np.diff(rows.offsets).tolist() == [*map(len, expected)]


def test_a_word_is_looked_up_once_for_all_batches(make, batch, monkeypatch):
    index = FeatureIndex(((0,), (1,)), make(sizes=[1, 2, 3], window=[-1, 0]))
    asked = []
    look_up = Clustering.clusters

    def counted(self, hashes, granularity):
        asked.append(len(hashes))
        return look_up(self, hashes, granularity)

    monkeypatch.setattr(Clustering, "clusters", counted)
    for _ in range(2):
        index.observe(batch)
    assert asked == [4] * 6  # red, night, Sun, moon


def test_an_index_is_copied_with_its_clusters(make, batch):
    index = FeatureIndex(((0,), (1,)), make(sizes=[2]))
    index.table.add(0, np.array([[0], [4]], dtype=np.uint64))
    copied = copy.deepcopy(index).observe(batch)
    assert_array_equal(copied.tokens.ids, index.observe(batch).tokens.ids)


def test_templates_of_one_block_share_a_clustering_and_keep_it(make):
    templates = make(sizes=[1, 2], window=[-1, 0])
    assert len({id(template.clustering) for template in templates}) == 1
    assert copy.deepcopy(templates[0]) is templates[0]
    pickled = pickle.loads(pickle.dumps(templates[0]))
    assert pickled == templates[0] and pickled.clustering is None  # until a model is loaded


def test_words_of_vectors_have_the_clusters_of_the_vocabulary(vocab, batch):
    vocab.vectors = spacy.vectors.Vectors(
        strings=vocab.strings,
        data=np.array([[1, 0], [0, 1], [0, 2]], dtype=np.float32),
        keys=["red", "moon", "Sun"],
    )
    (template,) = with_clusterings(make_clusters(sizes=[2], parts=["end"]), vocab)
    (red, night, sun, moon, again, _) = (cluster for _, cluster in found(template, batch))
    assert red == again != sun == moon and night == 0


def test_events_of_no_token(make, vocab):
    empty = TokenBatch([Doc(vocab)])
    (template,) = make(sizes=[2])
    events = template.events(empty)
    assert_array_equal(events.values, np.zeros((0, 1), dtype=np.uint64))


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"source": ""}, "H030.*source"),
        ({"sizes": []}, "H030.*sizes"),
        ({"sizes": [50, 50]}, r"H194.*\[50, 50\].*1 to 65536"),
        ({"sizes": [200, 50]}, r"H194.*\[200, 50\]"),
        ({"sizes": [0, 50]}, r"H194.*\[0, 50\]"),
        ({"sizes": [50.0]}, r"H194.*\[50.0\]"),
        ({"sizes": [True]}, r"H194.*\[True\]"),
        ({"sizes": [2**16 + 1]}, r"H194.*\[65537\]"),
        ({"source": "brown.txt", "sizes": [4, 31]}, r"H194.*\[4, 31\].*1 to 30"),
        ({"attr": "SHAPPE"}, "H023.*SHAPPE"),
        ({"attr": "_.no_such_word"}, "H024.*no_such_word"),
        ({"window": []}, "H030.*window"),
        ({"window": [101]}, "H038.*101"),
        ({"parts": ["middle"]}, "H031.*middle"),
        ({"parts": ["end", "end"]}, "H140"),
        ({"order": -1}, "H032.*-1"),
    ],
)
def test_settings_out_of_range_are_errors_that_name_them(settings, message):
    with pytest.raises(ValueError, match=message):
        make_clusters(**settings)
