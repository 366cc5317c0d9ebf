"""The component `hocrf_encoder`: its rows against their definition, in whatever company; windows; saving; and
what it says of encoders that cannot be run.
"""

import sys

import numpy as np
import pytest
import spacy
from numpy.testing import assert_allclose, assert_array_equal
from spacy.tokens import Doc

pytest.importorskip("onnxruntime", reason="needs the extra 'encoder'")
pytest.importorskip("onnx", reason="needs the extra 'test'")
from onnx_encoder import model, rows_of, table, write

WORDS = ["Ada", "Rome", "went", "to", "abc", "\n", "d", "hgfedcba", "from", "Bonn"]


def pipeline(folder, **settings):
    nlp = spacy.blank("xx")
    nlp.add_pipe("hocrf_encoder", config={"folder": str(folder), **settings})
    return nlp


def drawn(nlp, number, longest=12):
    draw = np.random.default_rng(0)
    return [
        Doc(nlp.vocab, draw.choice(WORDS, draw.integers(0, longest)).tolist())
        for _ in range(number)
    ]


def tensors(docs):
    return [doc.tensor for doc in docs]


def assert_same(found, expected):
    """To the last bit."""
    assert len(found) == len(expected)
    for one, other in zip(found, expected):
        assert one.dtype == np.float32
        assert_array_equal(one, other)


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("words", [[], ["\n"], ["Ada"], ["Ada", "abc", " ", "hgf", "Rome"]])
def test_a_token_has_the_mean_of_its_pieces_or_the_first(tmp_path, words, first):
    nlp = pipeline(write(tmp_path), pool="first" if first else "mean")
    tensor = nlp(Doc(nlp.vocab, words)).tensor
    assert tensor.dtype == np.float32 and tensor.shape == (len(words), 6)
    assert_allclose(tensor, rows_of(words, first=first), rtol=1e-5, atol=1e-6)


KINDS = {  # model → does it, read together, give other numbers?
    "own": ({"mean": False}, False),
    "mean": ({}, True),  # a sum in another order
    "quantised": ({"mean": False, "quantised": True}, True),  # with one scale for all
}


@pytest.mark.parametrize("kind", KINDS)
def test_rows_do_not_depend_on_company(tmp_path, kind):
    settings, depends = KINDS[kind]
    nlp = pipeline(write(tmp_path, model(**settings)), window=16)
    alone = [nlp(doc.copy()).tensor for doc in drawn(nlp, 60, longest=40)]
    docs = drawn(nlp, 60, longest=40)
    assert_same(tensors(nlp.pipe([doc.copy() for doc in docs])), alone)
    assert_same(tensors(nlp.pipe(docs[::-1], batch_size=7))[::-1], alone)
    assert nlp.get_pipe("hocrf_encoder").encoder._depends_on_company == depends


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_read_together_may_change_rows(tmp_path, monkeypatch, kind):
    """So that the test before sees something."""
    monkeypatch.setattr("spacy_hocrf.encoder.onnx.TRIED", ())
    settings, depends = KINDS[kind]
    nlp = pipeline(write(tmp_path, model(**settings)))
    alone = [nlp(doc.copy()).tensor for doc in drawn(nlp, 60)]
    together = tensors(nlp.pipe(drawn(nlp, 60)))
    changed = any(not np.array_equal(one, other) for one, other in zip(alone, together))
    assert changed == depends


def test_a_word_of_a_long_text_is_read_where_it_is_furthest_from_a_cut(tmp_path):
    """16 pieces at once, of which two are added."""
    nlp = pipeline(write(tmp_path), window=16)
    words = [("Ada", "Rome", "went", "d")[i % 4] for i in range(60)]
    tensor = nlp(Doc(nlp.vocab, words)).tensor
    read = {first: rows_of(words[first : first + 14]) for first in (0, 11, 22, 33, 44, 46)}
    for i, row in enumerate(tensor):
        far = {
            first: min(i - first if first else 60, 13 + first - i if first < 46 else 60)
            for first in read
            if first <= i < first + 14
        }
        best = [read[first][i - first] for first in far if far[first] == max(far.values())]
        assert any(np.allclose(row, expected, rtol=1e-5, atol=1e-6) for expected in best)


def test_windows_cover_every_piece_once():
    from spacy_hocrf.encoder.onnx import _windows

    for most in (1, 2, 3, 6, 14, 254):
        for size in range(3 * most + 5):
            found = [*_windows(size, most)]
            kept = [piece for _, _, begin, end in found for piece in range(begin, end)]
            assert kept == list(range(size))
            for first, last, begin, end in found:
                assert 0 <= first <= begin <= end <= last <= size and last - first == min(
                    size, most
                )


@pytest.mark.slow
def test_a_text_of_100000_tokens_is_read(tmp_path):
    nlp = pipeline(write(tmp_path))
    tensor = nlp(Doc(nlp.vocab, WORDS * 10_000)).tensor
    assert tensor.shape == (100_000, 6)
    assert (np.abs(tensor).sum(axis=1) > 0).tolist() == [word != "\n" for word in WORDS] * 10_000


@pytest.mark.slow
@pytest.mark.parametrize("saved", [True, False])
@pytest.mark.parametrize("threads", [1, 2])
def test_saved_and_loaded_and_in_two_processes_it_says_the_same(tmp_path, saved, threads):
    folder = write(tmp_path / "encoder")
    nlp = pipeline(folder, saved=saved, threads=threads, window=16)
    expected = tensors(nlp.pipe(drawn(nlp, 20, 40)))
    nlp.to_disk(tmp_path / "model")
    data = nlp.to_bytes()
    if saved:
        (folder / "model.onnx").unlink()
    assert (tmp_path / "model" / "hocrf_encoder" / "model.onnx").exists() == saved
    loaded = spacy.load(tmp_path / "model")
    assert_same(tensors(loaded.pipe(drawn(loaded, 20, 40))), expected)
    assert_same(tensors(loaded.pipe(drawn(loaded, 20, 40), n_process=2, batch_size=5)), expected)
    other = pipeline(folder, saved=saved, threads=threads, window=16).from_bytes(data)
    assert_same(tensors(other.pipe(drawn(other, 20, 40))), expected)


def test_every_process_has_an_encoder_and_ends_none_of_another(tmp_path, monkeypatch):
    """To end that of a parent waits for threads that a child has not."""
    pipe = pipeline(write(tmp_path)).get_pipe("hocrf_encoder")
    own = pipe.encoder
    monkeypatch.setattr("os.getpid", lambda: -1)
    assert pipe.encoder is not own
    pipe.from_bytes(pipe.to_bytes())
    monkeypatch.undo()
    assert pipe.encoder is own


def test_loading_replaces_the_encoder(tmp_path):
    nlp = pipeline(write(tmp_path / "a"), saved=True)
    other = pipeline(write(tmp_path / "b", model(width=4)), saved=True)
    assert nlp("Ada").tensor.shape == (1, 6)
    nlp.from_bytes(other.to_bytes())
    assert nlp("Ada").tensor.shape == (1, 4)
    nlp.to_disk(tmp_path / "a_model")
    named = pipeline(tmp_path / "b", saved=False)
    named.to_disk(tmp_path / "a_model")  # over the files of another
    assert spacy.load(tmp_path / "a_model").to_bytes() == named.to_bytes()


def test_a_package_needs_the_extra(tmp_path):
    nlp = pipeline(write(tmp_path / "encoder"))
    nlp.to_disk(tmp_path / "model")
    again = spacy.load(tmp_path / "model")
    assert again.meta["requirements"] == ["spacy-hocrf[encoder]"]


def test_byte_level_words_begin_as_behind_a_blank(tmp_path):
    from tokenizers import Tokenizer, models, pre_tokenizers

    made = Tokenizer(models.WordLevel({"[UNK]": 0, "ĠAda": 5}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    write(tmp_path)
    made.save(str(tmp_path / "tokenizer.json"))
    nlp = pipeline(tmp_path)
    tensor = nlp(Doc(nlp.vocab, ["Ada"])).tensor
    weights = np.random.default_rng(1).normal(size=(6, 6)).astype(np.float32)
    assert_allclose(tensor[0], 2 * table(6)[5] @ weights, rtol=1e-5)


# -------------------- encoders that cannot be run


@pytest.mark.parametrize(
    "settings, what",
    [
        ({"pool": "last"}, "pool = 'last' .* 'mean' or 'first'"),
        ({"window": 7}, "window = 7 .* 8 or more"),
        ({"threads": 0}, "threads = 0 .* 1 or more"),
        ({"window": "256"}, "window = .256. .* 8 or more"),
        ({"threads": "1"}, "threads = .1. .* 1 or more"),
        ({"folder": ""}, "folder = '' .* the folder of an encoder"),
    ],
)
def test_bad_settings_are_named(settings, what):
    with pytest.raises(ValueError, match=rf"H498.*{what}"):
        pipeline(**{"folder": "here", **settings})


@pytest.mark.parametrize(
    "code, data",
    [
        ("H493.*model of", b"no model"),
        ("H494.*position_ids", {"inputs": ("input_ids", "position_ids")}),
        ("H494.*ids tensor", {"inputs": ("ids",)}),
        ("H494.*16", {"size": 16}),
        ("H495.*mean", {"rank": 2}),
    ],
)
def test_what_is_wrong_with_a_model_is_named(tmp_path, code, data):
    write(tmp_path, data if isinstance(data, bytes) else model(**data))
    with pytest.raises(ValueError, match=code):
        pipeline(tmp_path)("Ada")


@pytest.mark.slow
def test_what_is_wrong_with_a_folder_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"H491.*no folder"):
        pipeline(tmp_path / "none")("Ada")
    (tmp_path / "model.onnx").write_bytes(model())
    with pytest.raises(ValueError, match=r"H491.*without tokenizer\.json"):
        pipeline(tmp_path)("Ada")
    write(tmp_path, name="onnx/small.onnx")
    with pytest.raises(ValueError, match=r"H492.*model\.onnx, onnx/small\.onnx"):
        pipeline(tmp_path)("Ada")
    with pytest.raises(ValueError, match=r"H492.*'large\.onnx'"):
        pipeline(tmp_path, file="large.onnx")("Ada")
    assert pipeline(tmp_path, file="onnx/small.onnx")("Ada").tensor.shape == (1, 6)
    for path in tmp_path.rglob("*.onnx"):
        path.unlink()
    with pytest.raises(ValueError, match=r"H492.*none; expected was one"):
        pipeline(tmp_path)("Ada")
    write(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ValueError, match=r"H493.*tokenizer of"):
        pipeline(tmp_path)("Ada")


def test_pieces_that_the_model_does_not_know_are_an_error(tmp_path):
    """As positions beyond its last are."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    write(tmp_path)
    made = Tokenizer(models.WordLevel({"[UNK]": 0, "Ada": 99}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(ValueError, match=r"H496.*1 pieces.*Set window"):
        pipeline(tmp_path)("Ada")


@pytest.mark.parametrize("package", ["onnxruntime", "tokenizers"])
def test_without_a_package_its_extra_is_named(tmp_path, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    nlp = pipeline(write(tmp_path))
    with pytest.raises(ValueError, match=rf"H490.*{package}.*spacy-hocrf\[encoder\]"):
        nlp("Ada")


def test_another_encoder_than_the_saved_one_is_refused(tmp_path):
    nlp = pipeline(write(tmp_path / "encoder"), saved=False)
    nlp.to_disk(tmp_path / "model")
    write(tmp_path / "encoder", model(width=4))
    with pytest.raises(ValueError, match=r"H497.*arrays of 4; expected .*, and 6"):
        spacy.load(tmp_path / "model")("Ada")


def test_files_that_are_missing_in_a_saved_pipeline_are_named(tmp_path):
    nlp = pipeline(write(tmp_path / "encoder"))
    nlp.to_disk(tmp_path / "model")
    (tmp_path / "model" / "hocrf_encoder" / "tokenizer.json").unlink()
    with pytest.raises(ValueError, match=r"H499.*there is model\.onnx in"):
        spacy.load(tmp_path / "model")
