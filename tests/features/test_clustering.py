"""Clusterings: what k-means finds where it is plain to see, what a file says, by hand."""

import sys

import numpy as np
import pytest
import spacy
from numpy.testing import assert_array_equal
from spacy.strings import StringStore
from spacy.vectors import Vectors
from threadpoolctl import threadpool_limits

from spacy_hocrf.features.clustering import Clustering, make_clustering, read_paths

STRINGS = StringStore()
DIRECTIONS = {
    "red": (10, 0, 1),
    "pink": (9, 0, 1),
    "blue": (8, 1, 0),
    "green": (30, 4, 0),
    "sun": (0, 1, 10),
    "moon": (0, 0, 2),
    "void": (0, 0, 0),
}
PATHS = "0010\tred\t7\n00111\tpink\t2\n01\tsun\t3\n010000000000000000000001\tmoon\t1\n"


def table(directions=DIRECTIONS):
    data = np.array(list(directions.values()), dtype=np.float32)
    return Vectors(strings=STRINGS, data=data, keys=list(directions))


def clusters(clustering, *words):
    """Clusters of the words, a tuple for each granularity."""
    hashes = np.array([STRINGS.add(word) for word in words], dtype=np.uint64)
    return [tuple(clustering.clusters(hashes, g).tolist()) for g in range(len(clustering.numbers))]


# -------------------- of vectors


@pytest.mark.slow
def test_words_of_one_direction_come_together_whatever_their_lengths():
    coarse, fine = clusters(
        make_clustering(table(), (2, 4), "a"), "red", "pink", "blue", "green", "sun", "moon"
    )
    assert len({*coarse[:4]}) == len({*coarse[4:]}) == 1 and coarse[0] != coarse[4]
    red, pink, blue, green, sun, moon = fine
    assert red == pink and blue == green and len({red, blue, sun, moon}) == 4
    assert {*coarse} == {1, 2} and {*fine} == {1, 2, 3, 4}


def test_words_without_a_direction_and_those_that_are_not_there_are_in_no_cluster():
    assert clusters(make_clustering(table(), (1, 2), "a"), "void", "night", "") == [(0, 0, 0)] * 2


def test_words_that_share_a_vector_share_a_leaf():
    vectors = table()
    vectors.add("crimson", row=0)
    clustering = make_clustering(vectors, (3, 6), "a")
    assert len({*clusters(clustering, "red", "crimson")[1]}) == 1
    assert len(clustering.words) == 7 and clustering.numbers.shape == (2, 7)


@pytest.mark.slow
def test_clusters_are_the_same_on_every_run_and_with_any_number_of_threads():
    data = np.random.default_rng(0).normal(size=(3000, 8)).astype(np.float32)
    vectors = Vectors(strings=STRINGS, data=data, keys=[f"w{i}" for i in range(3000)])
    first = make_clustering(vectors, (20, 300), "a").arrays()
    with threadpool_limits(2):
        second = make_clustering(vectors, (20, 300), "a").arrays()
    assert [*first] == [*second]
    for name, array in first.items():
        assert_array_equal(array, second[name])


@pytest.mark.parametrize(
    "vectors, message",
    [
        (spacy.blank("en").vocab.vectors, r"H170.*'a/7' asks for word vectors"),
        (table(), r"H195.*'a/7' asks for 7 clusters.*6 vectors"),
        (table({"red": (1, np.inf)}), r"H175.*Vector 0.*a/7"),
        (
            Vectors(
                strings=STRINGS, data=np.ones((9, 2), dtype=np.float32), mode="floret", hash_count=1
            ),
            r"H195.*0 vectors.*floret",
        ),
    ],
)
def test_vectors_that_cannot_be_clustered_are_named(vectors, message):
    with pytest.raises(ValueError, match=message):
        make_clustering(vectors, (2, 7), "a/7")


@pytest.mark.parametrize("missing", ["sklearn.cluster", "threadpoolctl"])
def test_without_scikit_learn_it_says_what_to_install(monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ValueError, match=r"H192.*pip install spacy-hocrf\[clusters\]"):
        make_clustering(table(), (2,), "a")


# -------------------- of a file


@pytest.fixture
def written(tmp_path):
    def write(content):
        path = tmp_path / "paths.txt"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return write


def test_a_cluster_is_the_beginning_of_its_path(written):
    clustering = read_paths(written(PATHS), (2, 4, 20), STRINGS)
    red, pink, sun, moon, night = zip(*clusters(clustering, "red", "pink", "sun", "moon", "night"))
    assert red == (0b100, 0b10010, 0b10010)
    assert pink == (0b100, 0b10011, 0b100111)
    assert sun == (0b101, 0b101, 0b101)
    assert moon == (0b101, 0b10100, 0b101 << 18)
    assert night == (0, 0, 0)


def test_the_first_line_of_a_word_counts(written):
    clustering = read_paths(written("0\ta\t1\n1\ta\t1\n1\tSun's\t12 \n"), (1,), STRINGS)
    assert clusters(clustering, "a", "Sun's") == [(0b10, 0b11)]


def test_only_a_newline_ends_a_line(written):
    clustering = read_paths(written("0\ta\x85b\t1\r\n1\tc\u2028\t1\n"), (1,), STRINGS)
    assert clusters(clustering, "a\x85b", "c\u2028") == [(0b10, 0b11)]


@pytest.mark.parametrize(
    "line", ["red", "0010 red 7", "0021\tred\t7", "01\tred", "01\t\t7", "01\tred\tmany", "", "\t\t"]
)
def test_a_line_that_is_not_browns_is_named(written, line):
    path = written("01\tred\t7\n" + line + "\n01\tsun\t7\n")
    with pytest.raises(ValueError, match=r"H193.*Line 2 of '.*paths\.txt'") as error:
        read_paths(path, (4,), STRINGS)
    assert repr(line) in str(error.value)


@pytest.mark.parametrize("content", [b"", b"01\tr\xe9d\t7\n"])
def test_a_file_that_cannot_be_read_is_named(written, content):
    with pytest.raises(ValueError, match=r"H196.*paths\.txt"):
        read_paths(written(content), (4,), STRINGS)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"H196.*nothing\.txt.*No such file"):
        read_paths(str(tmp_path / "nothing.txt"), (4,), STRINGS)


# -------------------- looked up and saved


def test_words_are_found_as_in_a_dictionary(written):
    rng = np.random.default_rng(1)
    paths = {f"w{i}": f"{rng.integers(2**12):b}" for i in range(500)}
    lines = "".join(f"{path}\t{word}\t1\n" for word, path in paths.items())
    clustering = read_paths(written(lines), (3, 30), STRINGS)
    words = [f"w{i}" for i in rng.integers(1000, size=400)]
    expected = [
        tuple(int("1" + paths[word][:size], 2) if word in paths else 0 for word in words)
        for size in (3, 30)
    ]
    assert clusters(clustering, *words) == expected
    assert clusters(clustering) == [(), ()]


def test_a_clustering_is_restored_from_its_arrays(written):
    clustering = read_paths(written(PATHS), (2, 4, 20), STRINGS)
    arrays = clustering.arrays()
    assert {name: str(array.dtype) for name, array in arrays.items()} == {
        "words": "uint64",
        "leaf": "uint16",
        "numbers": "int32",
    }
    restored = Clustering.from_arrays(arrays, 3)
    words = ("red", "sun", "night")
    assert clusters(restored, *words) == clusters(clustering, *words)


DAMAGE = {
    "descending": ("words", lambda a: a[::-1]),
    "twice the same": ("words", lambda a: a[[0, 1, 1, 2]]),
    "no words": ("words", lambda a: a[:0]),
    "other words": ("words", lambda a: a.astype(np.int64)),
    "too few leaves": ("leaf", lambda a: a[:-1]),
    "a leaf beyond": ("leaf", lambda a: a + np.uint16(1)),
    "the leaf of no word": ("leaf", lambda a: np.full_like(a, 4)),
    "signed leaves": ("leaf", lambda a: a.astype(np.int32)),
    "no granularity": ("numbers", lambda a: a[:1]),
    "a cluster below": ("numbers", lambda a: -a),
    "no leaf": ("numbers", lambda a: a[:, -1:]),
    "no word in a cluster": ("numbers", lambda a: a + np.int32(1)),
    "other numbers": ("numbers", lambda a: a.astype(np.float64)),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_arrays_are_refused(written, damage):
    name, change = DAMAGE[damage]
    arrays = read_paths(written(PATHS), (2, 4), STRINGS).arrays()
    with pytest.raises(ValueError, match=rf"H039.*clusters\.{name}"):
        Clustering.from_arrays({**arrays, name: change(arrays[name])}, 2)
    rest = {key: array for key, array in arrays.items() if key != name}
    with pytest.raises(ValueError, match=rf"H039.*clusters\.{name}"):
        Clustering.from_arrays(rest, 2)
