"""The handwriting project on a made-up alphabet: reading, features, the comparison with CRFsuite,
the table.
"""

import importlib
import importlib.util
from pathlib import Path

import numpy as np
import pytest
import spacy
from project_checks import table_rows
from spacy.tokens import DocBin, Token
from spacy.training.initialize import init_nlp
from spacy.vocab import Vocab

from spacy_hocrf.types import TOKEN

PROJECT = Path(__file__).parents[2] / "project" / "handwriting"
LOADS = ("handwriting",)
needs_peers = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("pycrfsuite", "scipy")),
    reason='needs its peers: pip install "spacy-hocrf[benchmark]"',
)


@pytest.fixture(scope="module")
def load(load):
    """The same; the scripts' extension attribute goes with them."""
    had_pixels = Token.has_extension("pixels")
    yield load
    if not had_pixels and Token.has_extension("pixels"):
        Token.remove_extension("pixels")


SPELLINGS = ["cab", "abba", "bad", "cab", "dab", "add", "abba", "cad"]
FOLDS = [0, 1, 0, 1, 0, 1, 0, 0]
IN_FOLD = [
    [spelling for spelling, fold in zip(SPELLINGS, FOLDS) if fold == number] for number in (0, 1)
]


def make_letters(path):
    """A file of letters: the image of a letter is a line at its place, and a pixel or two at
    random.
    """
    random = np.random.default_rng(0)
    lines, number = [], 0
    for word, (spelling, fold) in enumerate(zip(SPELLINGS, FOLDS)):
        for position, letter in enumerate(spelling, 1):
            number += 1
            pixels = np.zeros((16, 8), dtype=int)
            pixels[3 * "abcd".index(letter)] = 1
            pixels[random.integers(16, size=2), random.integers(8, size=2)] = 1
            following = -1 if position == len(spelling) else number + 1
            lines.append(
                "\t".join(
                    map(str, [number, letter, following, word, position, fold, *pixels.ravel()])
                )
                + "\t"
            )
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def docs(load, tmp_path):
    """The made-up words as the project's scripts have them, through a file."""
    load("convert").main(
        make_letters(tmp_path / "letter.data"), tmp_path / "corpus" / "words.spacy"
    )
    return list(DocBin().from_disk(tmp_path / "corpus" / "words.spacy").get_docs(Vocab()))


def test_words_keep_letters_images_and_folds(load, docs):
    letters = load("letters")
    assert [letters.spelling(doc) for doc in docs] == SPELLINGS
    assert [doc.user_data["fold"] for doc in docs] == FOLDS
    for doc in docs:
        for token in doc:
            image = np.asarray(token._.pixels).reshape(letters.ROWS, letters.COLUMNS)
            assert image[3 * "abcd".index(token.tag_)].all() and image.sum() <= 10
    assert {token.text for doc in docs for token in doc} == {letters.IMAGE}, (
        "a text that tells the letter"
    )


@pytest.mark.parametrize(
    "spoil",
    [
        lambda lines: [lines[0].rstrip("\t") + "\t1", *lines[1:]],
        lambda lines: lines[:2],
        lambda lines: [lines[0], *lines[2:]],
        lambda lines: [lines[0], lines[1].replace("\t0\t2\t0\t", "\t9\t2\t0\t"), *lines[2:]],
        lambda lines: [lines[0], lines[1].replace("\t0\t2\t0\t", "\t0\t2\t1\t"), *lines[2:]],
    ],
    ids=["another pixel", "no end", "a letter missing", "another word", "another fold"],
)
def test_a_file_of_another_kind_is_not_read(load, tmp_path, spoil):
    path = make_letters(tmp_path / "letter.data")
    lines = path.read_text().splitlines()
    spoilt = spoil(lines)
    assert spoilt != lines
    path.write_text("\n".join(spoilt))
    with pytest.raises(ValueError, match=r"line \d+|no end"):
        list(load("letters").read_words(path))


@needs_peers
@pytest.mark.parametrize("order", [0, 1, 2, "unbounded"])
def test_features_are_the_pixels_that_are_on_and_the_patterns_that_are_seen(load, docs, order):
    letters, tagging, folds = load("letters"), load("common.tagging"), load("folds")
    nlp = tagging.make_tagger(docs[0].vocab, folds.PIXELS, folds.orders_of(str(order)), sigma=1.0)
    training = tagging.train(nlp, docs)
    pixels = {
        (token.tag_, i)
        for doc in docs
        for token in doc
        for i in np.flatnonzero(token._.pixels).tolist()
    }
    spelt = [letters.spelling(doc) for doc in docs]
    longer = {
        word[i : i + n]
        for word in spelt
        for n in range(2, len(word) + 1 if order == "unbounded" else order + 2)
        for i in range(len(word) - n + 1)
    }
    assert training.features == len(pixels) + len(longer)
    assert training.patterns == 4 + len(longer)
    assert training.evaluations > training.iterations > 5 and training.seconds > 0
    pipe = nlp.get_pipe("hocrf_tagger")
    assert not pipe.run.running
    assert pipe.structure.settings.order == (3 if order == "unbounded" else order)
    assert max(map(len, spelt)) == 4


def test_score_counts_letters_and_whole_words(load):
    found = load("common.tagging").compare(["abc", "de", "f"], ["abd", "de", "g"])
    assert (found.tokens, found.right_tokens, found.docs, found.right_docs) == (6, 4, 3, 1)
    assert found.accuracy == pytest.approx(66.67, abs=0.01) and found.doc_accuracy == pytest.approx(
        33.33, abs=0.01
    )
    with pytest.raises(ValueError):
        load("common.tagging").compare(["abc"], ["ab"])


def test_an_encoder_stands_beside_the_label_patterns(load, docs, tmp_path):
    path = tmp_path / "encoder.md"
    corpus = tmp_path / "corpus" / "words.spacy"
    load("encoder").main(corpus, epochs=60, orders="0,1", output=path)
    rows = table_rows(path.read_text(encoding="utf8"))[2:]
    assert [row[0] for row in rows] == ["0", "1"]
    assert all(50 < float(cell) <= 100 for row in rows for cell in row[1::2])


def test_words_are_tested_that_are_spelt_like_none_in_training(load, docs, tmp_path, monkeypatch):
    script = load("spellings")
    monkeypatch.setattr(script, "GROUPS", 2)  # of six spellings: no letter is unseen
    learnt, tested = [], []
    train, score = script.train, script.score
    monkeypatch.setattr(script, "train", lambda nlp, some: learnt.append(some) or train(nlp, some))
    monkeypatch.setattr(script, "score", lambda nlp, some: tested.append(some) or score(nlp, some))
    corpus = tmp_path / "corpus" / "words.spacy"
    how, said, *_, seen, _ = script.line("x", PROJECT / "configs" / "hocrf.cfg", corpus, order=3)
    assert (how, said) == ("x", "1, 3")
    spelt = [[{script.spelling(d) for d in some} for some in sides] for sides in (learnt, tested)]
    assert [a & b for a, b in zip(*spelt)][:2] == [set(), set()]
    assert [len(some) for some in learnt][2:] == [5] and [len(some) for some in tested][2:] == [3]
    assert sum(map(len, tested[:2])) == 3 and float(seen) > 50
    assert {d._.hocrf_group for d in docs} == {*SPELLINGS}


@needs_peers
def test_a_fold_is_trained_on_and_the_others_are_tested(load, docs):
    folds = load("folds")
    results = list(folds.run_fold(docs, 1, ["0", "1", "unbounded"], 1.0))
    assert [(result["model"], result["order"]) for result in results] == [
        ("0", 0),
        ("1", 1),
        ("CRFsuite", 1),
        ("unbounded", 3),
    ]
    # abba cab add
    assert all(
        (result["fold"], result["words"], result["letters"]) == (1, 3, 10) for result in results
    )
    assert results[0]["known"] == 40.0  # cab and abba, but not bad, dab and cad
    pixels = {
        (t.tag_, i)
        for doc in docs
        if doc.user_data["fold"] == 1
        for t in doc
        for i in np.flatnonzero(t._.pixels).tolist()
    }
    assert results[0]["features"] == len(pixels)  # no bias, no pattern
    ours, theirs = results[1:3]
    assert ours["features"] == theirs["features"]
    assert (
        theirs["objective"] == pytest.approx(ours["objective"], rel=1e-4)
        and theirs["objective"] > ours["objective"] - 1e-6
    )
    assert theirs["accuracy"] == ours["accuracy"]


def test_config_trains_on_images(load, docs, tmp_path):
    load("reader")
    DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / "words.spacy")
    config = spacy.util.load_config(
        PROJECT / "configs" / "hocrf.cfg", overrides={"paths.words": str(tmp_path / "words.spacy")}
    )
    nlp = init_nlp(config)
    (read,) = spacy.util.resolve_dot_names(nlp.config.interpolate(), ["corpora.train"])
    examples = list(read(nlp))
    assert [load("letters").spelling(example.reference) for example in examples] == IN_FOLD[0]
    for _ in range(30):
        nlp.update(examples)
    assert nlp.evaluate(list(read(nlp)))["tag_acc"] == 1.0
    (name,) = [
        found.name
        for found in nlp.get_pipe("hocrf_tagger").structure.index.templates
        if found.part == TOKEN
    ]
    assert name == "_.pixels[0]"
