"""`python -m spacy hocrf convert`: every format, what it reports, and what it refuses; real corpora against
other readers.
"""

import gzip
import json
import os
import re
import sys
from collections import Counter
from functools import partial
from pathlib import Path

import commands
import pytest
import spacy
from converting import lines, named, read
from small_corpus import learn_from, untrained
from spacy.tokens import Doc, DocBin, Token
from spacy.tokens.underscore import Underscore
from spacy.util import registry

from spacy_hocrf.annotation.readers import AttributesCorpus
from spacy_hocrf.cli.convert.records import ConvertSettings, named_attribute

DATA = Path(os.environ.get("HOCRF_DATA", "nowhere"))
DEFAULTS = Path(__file__).parents[2] / "project" / "defaults" / "scripts"


run = partial(commands.run, "convert")


def converted(tmp_path, name, text, *options, encoding="utf8"):
    """The Docs that the command writes, and what it prints."""
    path, output = tmp_path / name, tmp_path / "out.spacy"
    path.write_text(text, encoding=encoding, newline="")
    done = run(path, output, *options)
    assert [each.name for each in tmp_path.iterdir() if each.name.endswith(".unfinished")] == []
    docs = list(DocBin().from_disk(output).get_docs(spacy.blank("xx").vocab))
    return docs, done


BIO = """-DOCSTART- -X- O

Emmy NNP B-PER
Noether NNP I-PER
slept VBD O
. . O

In IN O
New NNP I-LOC
York NNP I-LOC
"""


def test_columns_with_attributes(tmp_path):
    (first, second), output = converted(tmp_path, "a.conll", BIO, "-a", "pos=1")
    assert named(first.ents) == [("Emmy Noether", "PER")]
    assert named(second.ents) == [("New York", "LOC")]
    assert [token._.pos for token in first] == ["NNP", "NNP", "VBD", "."]
    assert first.has_unknown_spaces
    assert "2 texts, 7 tokens, 2 spans" in output
    assert "1   labels inside a span that does not begin" in output and "line 9" in output


def test_all_further_columns_are_attributes_by_their_numbers(tmp_path):
    (first, _), _ = converted(tmp_path, "a.txt", BIO.replace(" ", "\t").replace("\n", "\r\n"))
    assert [token._.c1 for token in first] == ["NNP", "NNP", "VBD", "."]


@pytest.mark.parametrize(
    "labels, times",
    [
        (["B-date", "date", "O"], 1),
        (["B-date", "date", "B-a", "a"], 2),
        (["b-date", "i-date", "date", "date", "O"], 2),
        (["date", "B", "O"], 0),
        (["date-of-birth", "O", "in-between"], 0),
        (["B-date-of-birth", "I-date-of-birth", "O"], 0),
    ],
)
def test_labels_that_may_mean_parts_of_spans_are_told(tmp_path, labels, times):
    text = "".join(f"w{i} {label}\n" for i, label in enumerate(labels))
    _, output = converted(tmp_path, "a.conll", text)
    assert ("like parts of spans" in output) == bool(times)
    assert not times or re.search(rf"\n *{times} +labels like parts of spans", output)
    assert "like parts" not in converted(tmp_path, "a.conll", text, "--scheme", "io")[1]


@pytest.mark.parametrize(
    "text, options", [("Ada,B-P\nis,O\n", []), ("Ada\nis\n", []), ("Ada B-P\n", ["--label", "0"])]
)
def test_a_column_cannot_be_both_token_and_label(tmp_path, text, options):
    path = tmp_path / "a.txt"
    path.write_text(text)
    done = run(path, tmp_path / "out.spacy", "--format", "columns", *options, code=1)
    printed = " ".join(done.split())
    assert "H290" in printed and "at line 1: found one column" in printed
    assert not (tmp_path / "out.spacy").exists()


def test_tags_and_span_groups(tmp_path):
    text = "a\tX\nb\tY\n\nc\tO\n"
    docs, output = converted(tmp_path, "a.txt", text, "--into", "tags")
    assert [[token.tag_ for token in doc] for doc in docs] == [["X", "Y"], ["O"]]
    assert "3 tags" in output
    (doc, _), _ = converted(tmp_path, "a.txt", text, "--into", "sc")
    assert named(doc.spans["sc"]) == [("a", "X"), ("b", "Y")] and not doc.ents


def test_other_columns_comments_delimiters_and_encodings(tmp_path):
    text = "# one\n0;été;O\n1;Köln;LOC\n# two\n0;ja;O\n"
    options = ["--comment", "#", "--delimiter", ";", "--word", 1, "--encoding", "latin-1"]
    docs, _ = converted(tmp_path, "a.txt", text, *options, encoding="latin-1")
    assert [doc.text for doc in docs] == ["été Köln ", "ja "]
    assert named(docs[0].ents) == [("Köln", "LOC")]


def test_wide_white_space_is_a_token_and_no_token_is_left_out(tmp_path):
    text = "a S O\n\N{IDEOGRAPHIC SPACE} S O\nb S O\n"
    (doc,), _ = converted(tmp_path, "a.txt", text)
    assert len(doc) == 3
    (doc,), output = converted(tmp_path, "a.txt", "a\tO\n\tO\nb\tO\n")
    assert [token.text for token in doc] == ["a", "b"]
    assert "lines with an empty token: left out" in output and "line 2" in output


@pytest.mark.parametrize("blank", [" {}", "  {}"])
@pytest.mark.parametrize("place, label", [(0, "O"), (1, "I-LOC"), (3, "O"), (4, "O")])
def test_a_blank_as_a_token_is_left_out_where_blanks_part_columns(tmp_path, place, label, blank):
    rows = ["New B-LOC", "York I-LOC", "sleeps O", "well O"]
    rows.insert(place, blank.format(label))
    docs, output = converted(tmp_path, "a.conll", "\n".join([*rows, "", "So O"]))
    assert [doc.text.rstrip() for doc in docs] == ["New York sleeps well", "So"]
    assert named(docs[0].ents) == [("New York", "LOC")]
    assert "lines with an empty token: left out" in output and f"line {place + 1}" in output


def test_crfsuite(tmp_path):
    text = "B-A\tw[0]=x\\:y\tw[-1]=q\tcap\n\nO\tw[0]=z\tp=N:0.5\n"
    (first, second), output = converted(tmp_path, "a.crfsuite", text)
    assert named(first.ents) == [("x:y", "A")]
    assert (first[0]._.w_m1, first[0]._.cap, second[0]._.p) == ("q", "1", "N")
    assert second[0]._.w_m1 == ""
    assert "values of attributes: left out" in output


PRODIGY = [
    {"text": "Emmy slept", "spans": [{"start": 0, "end": 4, "label": "PER"}], "answer": "accept"},
    {"text": "No", "spans": [], "answer": "reject"},
    {
        "text": "It's Paris",
        "tokens": [{"text": "It's", "ws": True}, {"text": "Paris", "ws": False}],
        "spans": [{"start": 5, "end": 10, "label": "LOC"}],
    },
]
STUDIO = [
    {
        "data": {"text": "Emmy slept"},
        "annotations": [
            {"was_cancelled": True, "result": []},
            {"result": [{"value": {"start": 0, "end": 4, "labels": ["PER"]}}, {"value": {}}]},
            {"result": []},
        ],
    },
    {"data": {"body": "Paris"}, "annotations": []},
]


def test_prodigy(tmp_path):
    docs, output = converted(tmp_path, "a.jsonl", lines(*PRODIGY))
    assert [named(doc.ents) for doc in docs] == [[("Emmy", "PER")], [("Paris", "LOC")]]
    assert [token.text for token in docs[1]] == ["It's", "Paris"] and docs[1].text == "It's Paris"
    assert "texts that were answered with 'reject': left out" in output


def task(note, *spans, **members):
    results = [
        {"type": "labels", "value": {"start": s, "end": e, "text": note[s:e], "labels": ["PER"]}}
        for s, e in spans
    ]
    return {"data": {"pid": "x1", "note": note, **members}, "annotations": [{"result": results}]}


def test_label_studio_says_by_its_spans_which_member_is_the_text(tmp_path):
    tasks = [task("Max"), task("Ada ran", (0, 3)), task("So Kim", (3, 6), ward="Kim")]
    docs, _ = converted(tmp_path, "a.json", json.dumps(tasks))
    assert [named(doc.ents) for doc in docs] == [[], [("Ada", "PER")], [("Kim", "PER")]]
    assert docs[2]._.hocrf_meta == {"pid": "x1", "ward": "Kim"}
    (tmp_path / "b.json").write_text(json.dumps([task("Max")]))
    printed = " ".join(run(tmp_path / "b.json", tmp_path / "b.spacy", code=1).split())
    assert "[H290]" in printed and "the texts pid, note, expected the annotated one" in printed


def test_spans_of_json_min_may_have_the_name_of_any_control(tmp_path):
    rows = [{"text": "Max", "lead_time": 1.5}, {"text": "Ada ran", "ner": []}]
    rows[1]["ner"] = [{"start": 0, "end": 3, "text": "Ada", "labels": ["PER"]}]
    docs, output = converted(tmp_path, "a.json", json.dumps(rows))
    assert [named(doc.ents) for doc in docs] == [[], [("Ada", "PER")]]
    assert (
        not docs[1]._.hocrf_meta
        and "texts without a list of spans (spans, label, labels, entities, ents): unknown"
        in output
    )


def test_label_studio(tmp_path):
    docs, output = converted(tmp_path, "a.json", json.dumps(STUDIO))
    assert [named(doc.ents) for doc in docs] == [[("Emmy", "PER")], []]
    for what in ("further annotations of a text", "no labelled spans", "nobody has annotated"):
        assert what in output


@pytest.mark.parametrize(
    "text",
    [
        '{"text": "Ada", "label": [[0, 3, "P"]]}\r\n\r\n',
        '[{"text": "Ada", "label": [[0, 3, "P"]]}]',
    ],
)
def test_a_byte_order_mark_is_no_part_of_json(tmp_path, text):
    (doc,), _ = converted(tmp_path, "a.jsonl", text, encoding="utf-8-sig")
    assert named(doc.ents) == [("Ada", "P")]


@pytest.mark.parametrize(
    "start, end, said, told",
    [
        (15, 18, "Ulm", None),  # by characters
        (16, 19, "Ulm", "counted in UTF-16"),
        (15, 18, "Rom", "said to have another text"),
        (15, 18, None, None),
    ],
)
def test_label_studio_counts_characters_or_as_browsers_do(tmp_path, start, end, said, told):
    value = {"start": start, "end": end, "labels": ["C"], "text": said}
    text = "Ada lives \N{BIRTHDAY CAKE} in Ulm now"
    entry = {"data": {"text": text}, "annotations": [{"result": [{"value": value}]}]}
    (doc,), output = converted(tmp_path, "a.json", json.dumps([entry]))
    assert named(doc.ents) == [("Ulm", "C")]
    assert told is None or told in output
    assert ("Not as it is in the file" in output) == (told is not None)


@pytest.mark.parametrize("lang", ["xx", "en"])
def test_a_text_of_more_than_a_million_characters(tmp_path, lang):
    long = "a " * 600_000 + "Ada"
    rows = [
        {"text": "Ada ran", "label": []},
        {"text": long, "label": [[1_200_000, 1_200_003, "P"]]},
    ]
    _, printed = converted(tmp_path, "a.jsonl", lines(*rows), "--lang", lang)
    assert "2 texts, 600,003 tokens, 1 spans" in printed


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
@pytest.mark.parametrize("into", ["ents", "sc"])
def test_a_span_that_is_said_twice_is_one(tmp_path, name, into):
    spans = [[0, 4, "A"], [0, 4, " A"], [5, 10, "B "]]  # blanks are no part of a label
    text = {
        "a.csv": "text,start,end,label\n"
        + "".join(f"Emmy slept,{start},{end},{label}\n" for start, end, label in spans),
        "a.jsonl": lines({"text": "Emmy slept", "spans": spans}),
    }[name]
    (doc,), output = converted(tmp_path, name, text, "--into", into)
    found = doc.ents if into == "ents" else doc.spans[into]
    assert named(found) == [("Emmy", "A"), ("slept", "B")]
    assert "Not as it is in the file" not in output


def test_two_labels_of_one_span_are_told_as_such(tmp_path):
    spans = [[0, 4, "A"], [0, 4, "B"], [5, 9, "A"]]
    text = lines({"text": "Emmy left", "spans": spans})
    (doc,), output = converted(tmp_path, "a.jsonl", text)
    assert named(doc.ents) == [("Emmy", "A"), ("left", "A")]
    assert "further labels of the same words: left out" in output and "overlap" not in output
    (doc,), output = converted(tmp_path, "a.jsonl", text, "--into", "sc")
    assert named(doc.spans["sc"]) == [("Emmy", "A"), ("Emmy", "B"), ("left", "A")]
    assert "Not as it is in the file" not in output


def test_parserator(tmp_path):
    text = (
        "<AddressCollection><AddressString><AddressNumber>12</AddressNumber> "
        "<StreetName>Old</StreetName> <StreetName>Oak</StreetName><P>,</P> or so"
        "</AddressString></AddressCollection>"
    )
    (doc,), _ = converted(tmp_path, "a.xml", text)
    assert doc.text == "12 Old Oak, or so"
    assert named(doc.ents) == [("12", "AddressNumber"), ("Old Oak", "StreetName"), (",", "P")]


def test_anystyle(tmp_path):
    text = (
        "<dataset><sequence><author>Li,\n  A.</author><title>On &amp; on.</title></sequence>"
        "<sequence><author>Ng</author><author>Wu</author><date/></sequence></dataset>"
    )
    (first, second), _ = converted(tmp_path, "a.xml", text, "--lang", "en")
    assert first.text == "Li, A. On & on."
    assert named(first.ents) == [("Li, A.", "author"), ("On & on.", "title")]
    assert named(second.ents) == [("Ng", "author"), ("Wu", "author")]


@pytest.mark.parametrize(
    "name, text, options, parts",
    [
        ("a.txt", "a O\nb N O\n", [], ["H290", "line 2", "3 columns", "2 columns"]),
        ("a.txt", "a O\n", ["--word", "5"], ["H290", "line 1", "2 columns", "column 5 (word)"]),
        ("a.txt", "a O\n", ["-a", "pos"], ["H294", "'pos'", "NAME=COLUMN"]),
        ("a.txt", "a O\n", ["-a", "pos=2"], ["H290", "column 2 (pos)"]),
        ("a.txt", "", [], ["H293", "no text"]),
        ("a.jsonl", '{"text": "a", "answer": "no"}', [], ["H293", "answered with 'no': left out"]),
        ("a.txt", "a O\n", ["--encoding", "utf9"], ["H291", "utf9"]),
        ("a.txt", "a O\n", ["--format", "bart"], ["H292", "'bart'", "columns"]),
        ("a.txt", "a O\n", ["--scheme", "biz"], ["H292", "'biz'", "auto, bio, io"]),
        ("a.txt", "a O\n", ["--align", "x"], ["H292", "strict"]),
        ("a.crfsuite", "O\tx=1\n", [], ["H290", "line 1", "w[0]=", "--word-prefix"]),
        ("a.jsonl", '{"text": "a"}\n{', [], ["H290", "line 2"]),
        ("a.jsonl", "3\n", [], ["H290", "line 1", "a int"]),
        ("a.jsonl", '{"body": 3}\n', [], ["H290", "the keys body", "'text'"]),
        ("a.jsonl", '{"text": "a", "label": [[0, 2, "A"]]}\n', [], ["H290", "0 to 2", "has 1"]),
        ("a.jsonl", '{"text": "a", "label": [[0, 1]]}\n', [], ["H290", "[0, 1]"]),
        ("a.json", "[1,", [], ["H290", "JSON"]),
        ("a.xml", "<a><b></a>", [], ["H290", "line 1", "XML"]),
    ],
)
def test_what_is_malformed_is_named_with_its_place(tmp_path, name, text, options, parts):
    (tmp_path / name).write_text(text, encoding="utf8")
    done = run(tmp_path / name, tmp_path / "out.spacy", *options, code=1)
    printed = " ".join(done.split())
    for part in parts:
        assert part in printed, printed
    assert [each.name for each in tmp_path.iterdir()] == [name]  # nothing half-written


def test_bytes_of_another_encoding(tmp_path):
    (tmp_path / "a.txt").write_bytes("Köln O\n".encode("latin-1"))
    done = run(tmp_path / "a.txt", tmp_path / "out.spacy", code=1)
    assert "H291" in done and "--encoding" in done


@pytest.mark.parametrize(
    "name, expected",
    [
        ("w[0]", "w_0"),
        ("w[-1]", "w_m1"),
        ("pos", "pos"),
        ("0", "c0"),
        ("", "c"),
        ("a.b c", "a_b_c"),
    ],
)
def test_names_of_attributes(name, expected):
    assert named_attribute(name) == expected and expected.isidentifier()


def test_attributes_are_there_in_training_and_at_prediction(tmp_path):
    rows = ["Emmy N PER", "slept V O", "", "Rome N LOC", "burns V O", ""] * 4
    converted(tmp_path, "a.txt", "\n".join(rows), "-a", "kind=1")
    features = {
        "@misc": "spacy-hocrf.Features.v1",
        "*": {"kinds": {"@misc": "spacy-hocrf.Token.v1", "attrs": ["_.kind"]}},
    }
    reader = {
        "@readers": "spacy-hocrf.AttributesCorpus.v1",
        "path": tmp_path / "out.spacy",
        "attributes": ["kind"],
    }
    data = list(registry.resolve({"reader": reader})["reader"](spacy.blank("en")))
    nlp = untrained("hocrf", {"features": features})
    assert [token._.kind for token in data[0].predicted] == ["N", "V"]
    learn_from(nlp, data)
    doc = Doc(nlp.vocab, words=["Kant", "eats"])
    doc[0]._.kind, doc[1]._.kind = "N", "V"
    assert [(span.start, span.end) for span in nlp(doc).ents] == [(0, 1)]


def test_attributes_go_to_the_tokens_of_another_tokenizer(tmp_path):
    vocab = spacy.blank("en").vocab
    reference = Doc(vocab, words=["Don't", "go"], spaces=[True, False])
    Token.set_extension("kind", default="", force=True)
    reference[0]._.kind, reference[1]._.kind = "X", "Y"
    DocBin(docs=[reference], store_user_data=True).to_disk(tmp_path / "a.spacy")
    (example,) = AttributesCorpus(tmp_path / "a.spacy", ["kind"])(spacy.blank("en"))
    assert [(t.text, t._.kind) for t in example.predicted] == [
        ("Do", "X"),
        ("n't", "X"),
        ("go", "Y"),
    ]
    (example,) = AttributesCorpus(tmp_path / "a.spacy", ["kind"], gold_preproc=True)(
        spacy.blank("en")
    )
    assert [t._.kind for t in example.predicted] == ["X", "Y"]


def test_attributes_are_copied_and_not_asked_for_one_by_one(tmp_path, monkeypatch):
    converted(tmp_path, "a.txt", "Emmy N PER\nslept V O\n", "-a", "kind=1")
    reader = AttributesCorpus(tmp_path / "out.spacy", ["kind"])
    with monkeypatch.context() as patch:
        patch.setattr(Underscore, "__init__", None)  # what token._ calls
        (example,) = reader(spacy.blank("en"))
    assert [token._.kind for token in example.predicted] == ["N", "V"]


@pytest.mark.parametrize("settings, code", [({"path": None}, "H112"), ({"limit": -1}, "H110")])
def test_settings_of_the_reader(settings, code):
    with pytest.raises(ValueError, match=code):
        AttributesCorpus(**{"path": Path("x"), "attributes": [], **settings})


# -------------------- real corpora, counted by the readers of project/defaults


def counts(docs):
    return Counter(
        (span.label_, *(token.text for token in span)) for doc in docs for span in doc.ents
    )


def expected(texts):
    return Counter(
        (label, *words[start:end]) for words, spans in texts for start, end, label in spans
    )


@pytest.fixture
def data():
    if not DATA.is_dir():
        pytest.skip("needs the corpora in HOCRF_DATA")
    return DATA


@pytest.fixture
def readers(data, monkeypatch):
    monkeypatch.syspath_prepend(str(DEFAULTS))
    before = set(sys.modules)
    yield __import__("readers")
    for name in set(sys.modules) - before:
        del sys.modules[name]


CORPORA = {
    "wnut17/wnut17train.conll": lambda readers, path: readers.read_bio(path),
    "wnut17/emerging.dev.conll": lambda readers, path: readers.read_bio(path),
    "conll2000/train.txt": lambda readers, path: readers.read_bio(path),
    "conll2000/test.txt": lambda readers, path: readers.read_bio(path),
    "gum_ner/by_genre/news.bio": lambda readers, path: readers.read_bio(path),
    "gum_ner/by_genre/whow.bio": lambda readers, path: readers.read_bio(path),
    "hosemicrf/ref/ref.train": lambda readers, path: readers.read_cora(DATA)["train"],
    "hosemicrf/ref/ref.test": lambda readers, path: readers.read_cora(DATA)["test"],
    "usaddress/labeled.xml": lambda readers, path: readers.read_labelled_words(path),
    "usaddress/test_labeled.xml": lambda readers, path: readers.read_labelled_words(path),
}


@pytest.mark.parametrize("name", CORPORA)
def test_a_corpus_has_the_spans_that_another_reader_finds(readers, name):
    docs, _ = read(DATA / name)
    texts = list(CORPORA[name](readers, DATA / name))
    assert sum(map(len, docs)) == sum(len(words) for words, _ in texts)
    assert counts(docs) == expected(texts)


def test_sentences_that_comments_part(readers):
    columns = ConvertSettings(word=1, label=2, comment="#")
    docs, _ = read(DATA / "conll04" / "train.txt", settings=columns)
    texts = readers.read_conll04(DATA)["train"]
    assert len(docs) == len(texts) and counts(docs) == expected(texts)


def test_anystyle_has_as_many_fields(readers):
    path = DATA / "anystyle" / "core.xml"
    docs, report = read(path, align="expand", into="sc")
    source = path.read_text(encoding="utf8")
    fields = re.findall(r"<([a-z-]+)>[^<>]*\S[^<>]*</\1>", source)
    assert Counter(span.label_ for doc in docs for span in doc.spans["sc"]) == Counter(fields)
    assert len(docs) == source.count("<sequence>")
    assert not report.lost.keys() - {"spans that were fitted to tokens"}


def test_references_of_papers_have_as_many_fields(data):
    path = data / "references-from-papers" / "paper-references.jsonl"
    docs, report = read(path, align="expand", into="sc")
    source = path.read_text(encoding="utf8")
    fields = re.findall(r'\[\d+, \d+, "(\w+)"\]', source)
    assert Counter(s.label_ for doc in docs for s in doc.spans["sc"]) == Counter(fields)
    assert len(docs) == source.count('"text"') == 90
    assert "spans that fit no tokens" not in report.lost


@pytest.mark.parametrize(
    "name", ["hosemicrf/punc/punc.tr", "iwslt_punct/test2011", "msm2013/msm2013.ner"]
)
def test_labels_of_tokens_are_as_many(data, name):
    settings = ConvertSettings(delimiter=" " if name.endswith("ner") else None)
    docs, report = read(data / name, settings=settings, into="tags")
    found = Counter(token.tag_ for doc in docs for token in doc)
    rows = [line for line in (data / name).read_text("utf8").split("\n") if line.strip()]
    words = [line for line in rows if not line.startswith(" ")]
    assert found == Counter(line.split()[-1] for line in words)
    assert sum(report.lost.values()) == len(rows) - len(words)


def test_conllu_has_as_many_tags(data, tmp_path):
    (path,) = (data / "ewt").glob("*dev*.gz")
    text = gzip.decompress(path.read_bytes()).decode("utf8")
    docs, _ = read(tmp_path / "dev.conllu", text, into="tags")
    tags = Counter(line.split("\t")[4] for line in text.splitlines() if re.match(r"\d+\t", line))
    assert Counter(token.tag_ for doc in docs for token in doc) == tags


@pytest.mark.parametrize(
    "name, text",
    [
        ("a.conll.gz", "Ada\tB-P\n"),
        ("a.jsonl.gz", '{"text": "Ada", "label": [[0, 3, "P"]]}\r{"text": "a", "label": []}'),
        ("a.xml.gz", "<c><s><P>Ada</P></s></c>"),
        ("a.conllu.gz", "1\tAda\tAda\tX\tX\t_\t0\troot\t_\tB-P\n\n"),
    ],
)
def test_compressed_files(tmp_path, name, text):
    compressed = gzip.compress(text.encode())
    (doc, *_), _ = read(tmp_path / name, compressed)
    assert doc.text.strip() == "Ada" and named(doc.ents) == [("Ada", "P")]
    with pytest.raises(ValueError, match=r"H290.*gzip"):
        read(tmp_path / name, compressed[:-9])


def test_its_files_may_be_in_folders_that_are_not_there_yet(tmp_path):
    path = tmp_path / "a.conll"
    path.write_text(BIO, encoding="utf8")
    files = [tmp_path / "new" / name / name for name in ("a.spacy", "b.spacy", "losses")]
    run(path, files[0], "--dev", files[1], "--losses", files[2])
    assert all(each.is_file() for each in files)
