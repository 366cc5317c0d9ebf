"""The projects with other programs' features: what they observe is what those programs do, CRFsuite gets the
same strings, and the tables of the READMEs are those that the commands have written.
"""

import importlib
import importlib.util
import os
import sys
import warnings
from pathlib import Path
from types import ModuleType

import pytest
import spacy
from project_checks import PROJECTS, table_rows
from spacy.tokens import Doc, DocBin
from spacy.util import load_config, registry

from spacy_hocrf.features.config import make_position
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.sequences.items import attributes_of

LOADS = ("usaddress", "anystyle", "defaults")
OWNERS = {"usaddress": "words", "anystyle": "columns"}
"""The projects, and what has their attributes."""
USADDRESS = Path(os.environ.get("HOCRF_PEERS", "")) / "usaddress"
DATA = Path(os.environ.get("HOCRF_DATA", ""))
ADDRESS = ["(12A", "N.", "Mühl-Weg", "St.,", "#", "4", "PO", "Box", "100", "IL", "-", "½"]
NEEDED = 'needs it: pip install "spacy-hocrf[benchmark]"'
LABELS = ["No", "Pre", "Name", "Type", "Sign", "Sign", "Box", "Box", "Id", "State", "O", "O"]


def need_usaddress():
    """Skip where it is not installed: the project's folder has its name, but no file to import."""
    spec = importlib.util.find_spec("usaddress")
    if spec is None or spec.origin is None:
        pytest.skip(NEEDED)


@pytest.fixture
def train_crfsuite(load):
    pytest.importorskip("pycrfsuite", reason=NEEDED)
    return load("train_crfsuite")


def templates_of(path, load):
    block = load_config(path)["components"]["hocrf"]["model"]["features"]
    return load("observations").word_templates(registry.resolve({"features": block})["features"])


@pytest.mark.parametrize("project", OWNERS)
def test_strings_for_crfsuite_are_what_the_templates_observe(project, load):
    need_usaddress()
    load(OWNERS[project])
    vocab = spacy.blank("en").vocab
    templates = templates_of(PROJECTS / project / "configs" / "owners.cfg", load)
    for words in (ADDRESS, ADDRESS[:1], ADDRESS[1:3]):
        doc = Doc(vocab, words=words)
        batch = TokenBatch([doc], learn=True)
        expected = [[] for _ in words]
        for template in templates:
            events = template.events(batch)
            for token, values in zip(events.token.tolist(), events.values.tolist()):
                said = template.describe(values, vocab.strings)
                expected[token].append(f"{template.name}={said}")
        strings = load("observations").strings_of(doc, templates)
        assert [sorted(each) for each in strings] == [sorted(each) for each in expected]
        assert min(map(len, strings)) > 4


def test_templates_without_strings_are_refused(load):
    with pytest.raises(ValueError, match="POSITION/10"):
        load("observations").word_templates(make_position())


@pytest.mark.parametrize(
    "column, kinds",
    [
        ("canonical", {"Müller-Lüdenscheidt,": "mullerludenscheidt", "(1)": "1", "–": "BLANK"}),
        ("caps", {"A.": "single", "USA,": "caps", "Paris": "initial", "de": "lower", "4": "other"}),
        ("caps", {"McX": "initial", "iPod": "other", "Dr.": "initial", "!": "other"}),
        ("number", {"61(2)": "volume", "978-3-16-148410-0": "isbn", "(2011).": "year"}),
        ("number", {"3000": "quad", "327": "triple", "12": "double", "7": "single"}),
        ("number", {"327–335": "range", "70000": "all", "TR-93": "idnum", "2nd": "ordinal"}),
        ("number", {"12,": "numeric", "IV,": "roman", "In": "none"}),
        ("keyword", {"(Eds.)": "editor", "&": "and", "And": "and", "AND": "none", "pp.": "page"}),
        ("keyword", {"Proceedings": "proceedings", "Journal": "journal", "vol.": "volume"}),
        ("keyword", {"doi:10": "locator", "MCM": "roman", "2003年": "date", "Sept": "none"}),
        ("punctuation", {"a": "none", "a:b.": "colon", "a–b.": "hyphen", "b.": "period"}),
        ("punctuation", {"&": "amp", "a,": "other"}),
        ("brackets", {"a": "none", "(1999),": "parens", "[3]": "square", "(In": "opening paren"}),
        ("brackets", {"3).": "closing paren", "a(b": "other", "<x>": "angle"}),
        (
            "terminal",
            {"b.": "strong", "a,”": "strong", "a:": "moderate", "a,": "weak", "a": "none"},
        ),
        ("locator", {"DOI": "yes", "http://a.b": "yes", "10.1000/182": "yes", "London:": "none"}),
        ("first", {"A": "Lu", "a": "Ll", "4": "N", "(": "Ps", "“": "Pi", ".": "P", "+": "S"}),
    ],
)
def test_columns_tell_words_apart_as_anystyle_does(load, column, kinds):
    read = load("columns").COLUMNS[column]
    assert {text: read(text) for text in kinds} == kinds


def test_places_in_a_reference(load):
    load("columns")
    vocab = spacy.blank("en").vocab
    docs = [Doc(vocab, words=["x"] * count) for count in (1, 2, 5)]
    places = [[token._.place for token in doc] for doc in docs]
    assert places == [["only"], ["first", "last"], ["first", "2", "4", "6", "last"]]


def usaddress():
    """The program, which may be there without what it needs to run."""
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")
        parsing = ModuleType("probableparsing")
        parsing.RepeatedLabelError = ValueError
        patch.setitem(sys.modules, "probableparsing", parsing)
        patch.syspath_prepend(str(USADDRESS))
        return importlib.import_module("usaddress")


@pytest.mark.skipif(
    not USADDRESS.exists() or not (DATA / "usaddress").exists(),
    reason="needs HOCRF_PEERS with usaddress/ and HOCRF_DATA with usaddress/",
)
def test_words_say_what_usaddress_sees_of_all_addresses(load):
    pytest.importorskip("pycrfsuite", reason=NEEDED)
    need_usaddress()
    program, read, vocab = usaddress(), load("readers").read_addresses, spacy.blank("en").vocab
    load("words")
    texts = [text.words for part in read(DATA).values() for text in part]
    assert len(texts) == 1513 + 146
    for words in texts:
        said = [token._.address.split("|") for token in Doc(vocab, words=words)]
        for i, item in enumerate(program.tokens2features(words)):
            names, values = attributes_of(item)
            seen = {name for name, value in zip(names, values or [1] * len(names)) if value}
            before = {f"previous:{each}" for each in said[i - 1]} if i else set()
            after = {f"next:{each}" for each in said[i + 1]} if i + 1 < len(words) else set()
            assert seen == {*said[i], *before, *after}


@pytest.fixture
def addresses(tmp_path):
    """A file of a few addresses."""
    vocab = spacy.blank("en").vocab
    docs = []
    for shift in range(6):
        words = [word.replace("4", str(shift)) for word in ADDRESS]
        tags = [f"{'I' if label in LABELS[:i] else 'B'}-{label}" for i, label in enumerate(LABELS)]
        tags = [tag if not tag.endswith("-O") else "O" for tag in tags]
        docs.append(Doc(vocab, words=words, ents=tags))
    DocBin(docs=docs).to_disk(tmp_path / "some.spacy")
    return tmp_path / "some.spacy"


def test_systems_are_trained_measured_and_reported(
    train_crfsuite, load, addresses, tmp_path, monkeypatch, capsys
):
    need_usaddress()
    monkeypatch.setattr(load("common.measured"), "MIN_SECONDS", 1e-3)
    monkeypatch.setattr(train_crfsuite, "STRENGTHS", (0.1, 1.0))
    config = PROJECTS / "usaddress" / "configs" / "owners.cfg"
    code = PROJECTS / "usaddress" / "scripts" / "words.py"
    known = {"config": config, "code": code}
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    train_crfsuite.main(addresses, addresses, theirs)
    train_crfsuite.main(addresses, addresses, theirs, encoding="io", c2=0.1, **known)
    load("train_ours").main(addresses, addresses, ours, orders="1,2", **known)
    load("report").main(addresses, tmp_path / "results.md", [theirs, ours])
    written = (tmp_path / "results.md").read_text(encoding="utf8")
    assert written in capsys.readouterr().out
    _, _, *rows = table_rows(written)
    assert [row[:4] for row in rows] == [
        ["CRFsuite", "generic", "1", "100.00"],
        ["CRFsuite", "owner's", "1", "100.00"],
        ["hocrf", "owner's", "1", "100.00"],
        ["hocrf", "owner's", "2", "100.00"],
    ]
    assert rows[0][4] == "" and rows[2][4] == "+0.00 (1.0000)"
    assert "c2 0.1, io" in rows[1][-1] and "sigma" in rows[2][-1]
    size = (theirs / "model.crfsuite").stat().st_size
    assert load("common.measured").read(theirs)[1].size == size


@pytest.mark.parametrize("encoding", ["io", "bio"])
def test_tags_are_those_of_spans_and_back(train_crfsuite, addresses, encoding):
    (doc, *_) = DocBin().from_disk(addresses).get_docs(spacy.blank("en").vocab)
    spans = [(ent.start, ent.end, ent.label_) for ent in doc.ents]
    tags = train_crfsuite.encode(doc, encoding)
    assert len(spans) == 8 and train_crfsuite.decode(tags, encoding) == spans


def test_references_that_were_learnt_are_not_tested(load):
    read, convert = load("readers").Text, load("convert")
    train = [read(["Ada,", "1843."], [])]
    test = [read(["(ada", "18", "43)"], []), read(["Ada,", "1844."], [])]
    assert convert.without_known({"train": train, "test": test})["test"] == test[1:]
    if (DATA / "anystyle").exists():
        parts = convert.without_known(load("readers").read_anystyle(DATA))
        assert len(parts["test"]) == 1669 - 214


def test_the_dev_part_is_a_fifth_of_the_training_texts(load, tmp_path):
    texts = [load("readers").Text([str(i), "x"], [(0, 1, "X")]) for i in range(10)]
    load("convert").write({"train": texts, "test": texts[:2]}, tmp_path)
    found = {
        path.stem: {
            doc[0].text for doc in DocBin().from_disk(path).get_docs(spacy.blank("en").vocab)
        }
        for path in tmp_path.glob("*.spacy")
    }
    assert found["settings"] | found["dev"] == found["train"] and len(found["train"]) == 10
    assert len(found["dev"]) == 2 and not found["settings"] & found["dev"]
