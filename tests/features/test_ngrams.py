"""Letter n-grams by their values, against slices and spaCy's own StringStore."""

import numpy as np
import pytest
from spacy.strings import StringStore
from spacy.symbols import IDS

from spacy_hocrf.features.ngrams import affixes, infixes

ALPHABET = list("abcXYZ09_- éßж中\u0301🦔\U0010ffff\n\0")
SIZES = [1, 2, 3, 4, 7, 8, 9, 16, 17, 40]


def laid_out(words):
    encoded = [word.encode() for word in words]
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), np.cumsum(
        [0, *map(len, encoded)], dtype=np.int64
    )


def random_words():
    rng = np.random.default_rng(0)
    return [
        "",
        *("".join(rng.choice(ALPHABET, length)) for length in range(50) for _ in range(4)),
        "",
    ]


def value(string):
    return StringStore()[string]


@pytest.mark.parametrize("size", SIZES)
def test_affixes_are_the_values_of_slices(size):
    words = random_words()
    long = [len(word) >= size for word in words]
    assert affixes(*laid_out(words), size, False).tolist() == [
        value(w[:size]) if ok else 0 for w, ok in zip(words, long)
    ]
    assert affixes(*laid_out(words), size, True).tolist() == [
        value(w[-size:]) if ok else 0 for w, ok in zip(words, long)
    ]


@pytest.mark.parametrize("size", SIZES)
def test_infixes_are_the_values_of_all_slices(size):
    words = random_words()
    expected = [[value(word[i : i + size]) for i in range(len(word) - size + 1)] for word in words]
    firsts, values = infixes(*laid_out(words), size)
    assert np.diff(firsts).tolist() == [len(found) for found in expected]
    assert values.tolist() == [v for found in expected for v in found]


def test_symbols_have_the_numbers_that_spacy_gives_them():
    for name in filter(None, IDS):
        text, offsets = laid_out([name, f"{name}x"])
        assert affixes(text, offsets, len(name), False).tolist() == [value(name)] * 2
        assert affixes(text, offsets, len(name) + 1, False).tolist() == [0, value(f"{name}x")]
    assert value("DET") < 1000 < value("DETx")


def test_no_words_have_no_ngrams():
    assert affixes(*laid_out([]), 2, True).tolist() == []
    assert [part.tolist() for part in infixes(*laid_out([]), 2)] == [[0], []]
