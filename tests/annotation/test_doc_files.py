"""Docs of `.spacy` files, a block at a time: those that spaCy reads, from files of every kind."""

import zlib

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span, SpanGroup
from spacy.training import Corpus
from spacy.util import registry
from srsly import msgpack_dumps, msgpack_loads

from spacy_hocrf.annotation import doc_files
from spacy_hocrf.annotation.doc_files import read_docs
from spacy_hocrf.annotation.readers import ShardedCorpus

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:.*W090")]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(doc_files, "BLOCK", 20)
    monkeypatch.setattr(doc_files, "CHUNK", 50)


def docs_of(nlp, count=40):
    """Texts of several lengths, with everything that a Doc can have; some empty, some of words alone."""
    found = []
    for number in range(count):
        words = [f"word{number * i % 7}" for i in range(number % 9)] + ["last"] * (number % 3)
        spaces = None if number % 4 == 0 else [i % 2 == 0 for i in range(len(words))]
        doc = Doc(nlp.vocab, words=words, spaces=spaces)
        doc.cats = {"even": 1.0} if number % 2 == 0 else {}
        if len(doc) > 2:
            doc.set_ents([Span(doc, 0, 2, label=f"KIND{number % 5}")])
            doc.spans["found"] = SpanGroup(doc, spans=[Span(doc, 1, 3, label="A")], attrs={"x": 1})
            doc[1].is_sent_start = True
            doc.user_data["name"] = f"text {number}"
        found.append(doc)
    return found


def written(folder, docs, **settings):
    path = folder / "corpus.spacy"
    DocBin(docs=docs, **settings).to_disk(path)
    return path


def as_spacy(path):
    """What spaCy reads, with what of a Doc it does not save beside it."""
    docs = DocBin().from_disk(path).get_docs(spacy.blank("xx").vocab)
    return [all_of(doc) for doc in docs if len(doc)]


def all_of(doc):
    return doc.to_bytes(), doc.cats, doc.has_unknown_spaces, doc.user_data


@pytest.mark.parametrize("user_data", [False, True])
@pytest.mark.parametrize("attrs", [("ORTH", "ENT_IOB", "ENT_TYPE"), None])
def test_docs_are_those_that_spacy_reads(tmp_path, user_data, attrs):
    docs = docs_of(spacy.blank("xx"))
    settings = {} if attrs is None else {"attrs": attrs}
    path = written(tmp_path, docs, store_user_data=user_data, **settings)
    found = [all_of(doc) for doc in read_docs(spacy.blank("xx").vocab, [path, path])]
    assert found == [*as_spacy(path), *as_spacy(path)]
    assert len(found) == 2 * sum(len(doc) > 0 for doc in docs)


@pytest.mark.parametrize("count", [0, 1])
def test_files_of_few_docs(tmp_path, count):
    path = written(tmp_path, docs_of(spacy.blank("xx"))[7 : 7 + count])
    assert [all_of(doc) for doc in read_docs(spacy.blank("xx").vocab, [path])] == as_spacy(path)


def test_files_of_older_versions_have_less(tmp_path):
    path = written(tmp_path, docs_of(spacy.blank("xx")))
    import srsly

    content = srsly.msgpack_loads(zlib.decompress(path.read_bytes()))
    del content["span_groups"], content["flags"]
    path.write_bytes(zlib.compress(srsly.msgpack_dumps(content)))
    assert [all_of(doc) for doc in read_docs(spacy.blank("xx").vocab, [path])] == as_spacy(path)


def test_a_block_is_read_only_when_it_is_asked_for(tmp_path, monkeypatch):
    path = written(tmp_path, docs_of(spacy.blank("xx"), 400))
    read = []
    of = DocBin.get_docs
    monkeypatch.setattr(
        DocBin, "get_docs", lambda self, vocab: (read.append(1), of(self, vocab))[1]
    )
    docs = read_docs(spacy.blank("xx").vocab, [path])
    next(docs)
    assert len(read) == 1
    blocks = 1 + sum(1 for _ in docs) // 20
    assert len(read) > blocks


def test_a_file_that_is_written_again_is_read_again(tmp_path):
    nlp = spacy.blank("xx")
    path = written(tmp_path, docs_of(nlp))
    first = as_spacy(path)
    assert [all_of(doc) for doc in read_docs(nlp.vocab, [path])] == first
    written(tmp_path, docs_of(nlp, 17))
    assert [all_of(doc) for doc in read_docs(nlp.vocab, [path])] == as_spacy(path) != first


def test_every_cut_is_noticed_and_what_is_no_file_of_docs(tmp_path):
    path = written(tmp_path, docs_of(spacy.blank("xx")))
    data = path.read_bytes()
    for size in range(0, len(data) - 8, 61):  # what is left out is more than a checksum
        path.write_bytes(data[:size])
        with pytest.raises(ValueError, match="H257"):
            list(read_docs(spacy.blank("xx").vocab, [path]))
    for content in (b"text", zlib.compress(b"text"), zlib.compress(b"\x80")):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"H257.*corpus\.spacy.*write it again"):
            list(read_docs(spacy.blank("xx").vocab, [path]))


NAMES = ("tokens", "spaces", "lengths", "cats", "flags", "span_groups", "user_data")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("cut", [lambda found: found[:-1], lambda found: found[:-8]])
def test_an_array_that_is_cut_inside_a_valid_file_is_noticed(tmp_path, name, cut):
    path = written(tmp_path, docs_of(spacy.blank("xx")), store_user_data=True)
    content = msgpack_loads(zlib.decompress(path.read_bytes()))
    content[name] = cut(content[name])
    path.write_bytes(zlib.compress(msgpack_dumps(content)))
    with pytest.raises(ValueError, match="H257"):
        list(read_docs(spacy.blank("xx").vocab, [path]))


def same(found, expected):
    """Are they equal Examples?"""
    sides = [
        [(each.predicted.to_bytes(), all_of(each.reference)) for each in some]
        for some in (found, expected)
    ]
    return sides[0] == sides[1] and len(sides[0]) > 0


@pytest.mark.parametrize("settings", [{}, {"gold_preproc": True}, {"max_length": 4}])
def test_the_sharded_corpus_has_the_examples_of_spacys(tmp_path, settings):
    docs = docs_of(spacy.blank("xx"))
    for name, part in (("b", docs[:21]), ("a", docs[21:])):
        DocBin(docs=part, store_user_data=True).to_disk(tmp_path / f"{name}.spacy")
    reader = registry.resolve(
        {"it": {"@readers": "spacy-hocrf.ShardedCorpus.v1", "path": str(tmp_path), **settings}}
    )["it"]
    assert isinstance(reader, ShardedCorpus)
    expected = Corpus(tmp_path, **settings)
    assert same(reader(spacy.blank("xx")), expected(spacy.blank("xx")))
    assert same(reader(spacy.blank("xx")), expected(spacy.blank("xx")))  # once more


def test_a_limit_is_one_of_all_files(tmp_path):
    docs = [doc for doc in docs_of(spacy.blank("xx")) if len(doc)]
    for name, part in (("a", docs[:10]), ("b", docs[10:])):
        DocBin(docs=part).to_disk(tmp_path / f"{name}.spacy")
    for limit, found in ((4, 4), (13, 13), (0, len(docs))):
        assert len(list(ShardedCorpus(tmp_path, limit=limit)(spacy.blank("xx")))) == found


def test_settings_of_the_sharded_corpus_are_checked(tmp_path):
    with pytest.raises(ValueError, match="H112"):
        ShardedCorpus(None)
    with pytest.raises(ValueError, match="H110"):
        ShardedCorpus(tmp_path, limit=-1)
