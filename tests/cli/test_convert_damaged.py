"""`python -m spacy hocrf convert` of damaged files: coded errors that name the place, or a count."""

import json

import commands
import pytest
import spacy
from converting import iob, lines, named, read
from spacy.tokens import DocBin

HALF = "halves of characters (lone surrogates): replaced"


@pytest.mark.parametrize("half", ["\\ud83d", "\\uDE00", "\\uDE00\\ud83d"])
def test_halves_of_characters_are_replaced(tmp_path, half):
    rows = [
        r'{"text": "Ada \ud83d\ude00 ran", "label": [[0, 3, "P"]]}',
        rf'{{"text": "x{half} Ada", "label": [[3, 6, "P{half}"]], "m": {{"{half}": ["{half}"]}}}}',
        r'{"text": "C:\\ud83d", "label": []}',
    ]
    if half.count("u") > 1:
        rows[1] = rows[1].replace("[3, 6", "[4, 7", 1)
    (tmp_path / "a.jsonl").write_text("\n".join(rows))
    done = commands.run("convert", f"{tmp_path}/a.jsonl", f"{tmp_path}/o.spacy")
    assert HALF in done and "line 2" in done
    docs = list(DocBin().from_disk(tmp_path / "o.spacy").get_docs(spacy.blank("xx").vocab))
    assert docs[0].text == "Ada \N{GRINNING FACE} ran" and docs[2].text == "C:\\ud83d"
    assert named(docs[1].ents) == [("Ada", "P" + "\ufffd" * half.count("u"))]


STUDIO = {"data": {"text": "Ada ran"}, "annotations": [{"result": []}]}
SPAN = {"start": 0, "end": 3, "labels": ["P"]}
NO_SPAN = "results that are no labelled spans: left out"


def studio(*values, **other):
    """A task with a result for each value, and another one."""
    results = [*({"value": value} for value in values), *([other] if other else [])]
    return {**STUDIO, "annotations": [{"result": results}]}


@pytest.mark.parametrize(
    "entry, parts",
    [
        ({**STUDIO, "annotations": [{"result": "x"}]}, ["the result 'x'", "a list"]),
        ({**STUDIO, "annotations": [{"result": {"a": 1}}]}, ["the result {'a': 1}"]),
        ({**STUDIO, "annotations": [{"result": [None]}]}, ["the result None", "'value'"]),
        ({**STUDIO, "annotations": [{"result": [3]}]}, ["the result 3"]),
        ({**STUDIO, "annotations": [3]}, ["the annotation 3", "'result'"]),
        ({**STUDIO, "annotations": {"a": 1}}, ["annotations that are no list"]),
        (studio({**SPAN, "labels": [1]}), ["a start, an end and a label"]),
        ([], ["a list", "an object"]),
        (None, ["a NoneType"]),
        ({"data": {"a": "x", "b": "y"}}, ["the texts a, b", "'text'"]),
        ({"text": "Ada", "label": [None]}, ["the span None"]),
        ({"text": "Ada", "label": [[0, 3, ""]]}, ["the span [0, 3, '']"]),
        ({"text": "Ada", "label": [[0, 3, " "]]}, ["the span [0, 3, ' ']"]),
        ({"text": "Ada", "label": [[0, 3, []]]}, ["the span [0, 3, []]"]),
        ({"text": "Ada", "label": [[0, True, "P"]]}, ["the span [0, True, 'P']"]),
        ({"text": "Ada", "label": [[0, 2.5, "P"]]}, ["the span [0, 2.5, 'P']"]),
        ({"text": "Ada", "label": [[0, 1e400, "P"]]}, ["the span [0, inf, 'P']"]),
        ({"text": "Ada", "label": [[0, 2, 7]]}, ["the label 7", "a label that is a string"]),
        (
            {"text": "Ada", "spans": [{"start": 0, "end": 2, "label": 7.0}]},
            ["the label 7.0", "a label that is a string"],
        ),
        ({"text": "Ada", "label": [["0", "2", "P"]]}, ["the span ['0', '2', 'P']"]),
        ({"text": "Ada", "label": [[-1, 2, "P"]]}, ["characters -1 to 2"]),
        ({"text": "Ada", "label": [[2**65, 2**66, "P"]]}, ["which has 3"]),
    ],
)
def test_json_of_another_shape_is_named_with_its_place(tmp_path, entry, parts):
    content = lines({"text": "Max", "label": []}) + "\n" + lines(entry)
    with pytest.raises(ValueError, match=r"H290.*a\.jsonl at line 3") as error:
        read(tmp_path / "a.jsonl", content)
    assert all(part in str(error.value) for part in parts)


@pytest.mark.parametrize("value", [None, 3, "x", [], {}, {"start": None}, {"choices": ["a"]}])
def test_results_that_are_no_spans_are_counted(tmp_path, value):
    (doc,), report = read(tmp_path / "a.json", json.dumps([studio(value)]))
    assert report.losses == [(NO_SPAN, "entry 1", 1)]
    assert not doc.ents


def test_a_label_may_stand_without_its_list(tmp_path):
    (doc,), _ = read(tmp_path / "a.json", json.dumps([studio({**SPAN, "labels": "P"})]))
    assert named(doc.ents) == [("Ada", "P")]


@pytest.mark.parametrize(
    "result",
    [
        {"type": "labels", "value": {"start": 4, "end": 7, "text": "ran", "labels": []}},
        {"type": "hypertextlabels", "value": {"start": "/b[1]", "hypertextlabels": ["V"]}},
    ],
)
def test_where_a_span_cannot_be_read_all_but_the_others_is_unknown(tmp_path, result):
    (doc,), report = read(tmp_path / "a.json", json.dumps([studio(SPAN, **result)]))
    assert named(doc.ents) == [("Ada", "P")] and iob(doc) == [3, 0]
    assert [loss.times for loss in report.losses] == [1]


@pytest.mark.parametrize("kind", ["rectanglelabels", "brushlabels", "timeserieslabels"])
def test_results_about_something_else_than_the_text_leave_it_known(tmp_path, kind):
    other = {"type": kind, "value": {"x": 1, "y": 2, kind: ["STAMP"]}}
    (doc,), report = read(tmp_path / "a.json", json.dumps([studio(SPAN, **other)]))
    assert named(doc.ents) == [("Ada", "P")] and iob(doc) == [3, 2]
    assert report.losses == [(NO_SPAN, "entry 1", 1)]


@pytest.mark.parametrize("tokens", [3, [3], [{"text": 3, "ws": 1}], [{"text": ""}], [{"id": 1}]])
def test_tokens_that_are_none_are_not_read(tmp_path, tokens):
    row = {"text": "Ada ran", "spans": [[0, 3, "P"]], "tokens": tokens}
    (doc,), _ = read(tmp_path / "a.jsonl", lines(row))
    assert named(doc.ents) == [("Ada", "P")]


def test_tokens_of_another_text_are_reported(tmp_path):
    tokens = [{"text": "Adam", "ws": True}, {"text": "ran", "ws": False}]
    row = {"text": "Ada ran", "spans": [[0, 3, "P"]], "tokens": tokens}
    (doc,), report = read(tmp_path / "a.jsonl", lines(row))
    assert doc.text == "Ada ran" and named(doc.ents) == [("Ada", "P")]
    what = "tokens that do not make up their text: tokenized anew"
    assert report.losses == [(what, "line 1", 1)]


@pytest.mark.parametrize(
    "text, part",
    [
        ('[{"text": "a"}', "at line 1: found no JSON (Expecting ',' delimiter in column 15)"),
        ('[\n{"text": "a"}\n{"text": "b"}]', "at line 3: found no JSON (Expecting ','"),
        ('{"text": "a"}\n{"text"', "at line 2: found no JSON (Expecting ':' delimiter"),
        ("[" * 100_000, "at line 1: found maximum recursion depth"),
        ('{"a": ' * 5000, "at line 1"),
        ("9" * 5000, "at line 1"),
        ("", "no text with a token"),
        ("[]", "no text with a token"),
    ],
)
def test_what_is_no_json(tmp_path, text, part):
    (tmp_path / "a.json").write_text(text)
    done = commands.run("convert", tmp_path / "a.json", tmp_path / "o.spacy", code=1)
    assert part in " ".join(done.split()), done


def test_an_object_over_several_lines_is_an_entry(tmp_path):
    entry = {"text": "Ada", "label": [[0, 3, "P"]]}
    (doc,), report = read(tmp_path / "a.json", json.dumps(entry, indent=2))
    assert named(doc.ents) == [("Ada", "P")] and not report.losses


def test_deep_metadata_can_be_saved(tmp_path):
    deep = "[" * 300 + "]" * 300
    (tmp_path / "a.jsonl").write_text(f'{{"text": "Ada", "label": [], "x": {deep}, "y": NaN}}')
    commands.run("convert", f"{tmp_path}/a.jsonl", f"{tmp_path}/o.spacy")
    (doc,) = DocBin().from_disk(tmp_path / "o.spacy").get_docs(spacy.blank("xx").vocab)
    assert "…" in str(doc._.hocrf_meta["x"])


# -------------------- XML


@pytest.mark.parametrize(
    "encoding", ["shift_jis", "euc-jp", "gb2312", "big5", "latin-1", "utf-8", "utf-16"]
)
def test_xml_in_any_encoding(tmp_path, encoding):
    word = "Köln" if encoding == "latin-1" else "中"
    text = f'<?xml version="1.0" encoding="{encoding}"?>\n<c><s><P>{word}</P></s></c>'
    (doc,), _ = read(tmp_path / "a.xml", text.encode(encoding))
    assert named(doc.ents) == [(word, "P")]


@pytest.mark.parametrize(
    "content, part",
    [
        (b'<?xml version="1.0" encoding="shift_jis"?><c>\xff\xff</c>', "H291.*shift_jis"),
        (b'<?xml version="1.0" encoding="utf-8"?><c>\xff\xff</c>', "H291.*utf-8"),
        (b'<?xml version="1.0" encoding="rot13"?><c/>', "H291.*rot13"),
        (b'<?xml version="1.0" encoding="nothing"?><c/>', "H291.*nothing"),
        (b'<?xml version="1.0" encoding="unicode_escape"?><c>\\ud83d</c>', "H291"),
        (b"<c>&#xD83D;</c>", "H290.*line 1"),
        (b"<c>&nothing;</c>", "H290.*line 1"),
        (b"", "H290.*line 1"),
    ],
)
def test_xml_that_cannot_be_read(tmp_path, content, part):
    with pytest.raises(ValueError, match=part):
        read(tmp_path / "a.xml", content)


def test_what_elements_lose_is_counted(tmp_path):
    sequence = "<sequence>In: <author>A <i>B</i></author>, <date>1</date></sequence>"
    (doc,), report = read(tmp_path / "a.xml", f"<dataset>{sequence}</dataset>")
    assert doc.text == "A B 1"
    assert report.losses == [
        ("elements inside of spans: left out, but not their text", "sequence 1", 1),
        ("text outside of all fields: left out", "sequence 1", 2),
    ]


JSONL = '{"text": "Ada", "label": [[0, 3, "PER"]]}\n'
COLUMNS = "Ada B-PER\nran O\n\n"
MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"


@pytest.mark.parametrize(
    "name, content, texts",
    [
        ("a.jsonl", f"{JSONL}\x1a", 1),
        ("a.json", f"[{JSONL}]\x1a", 1),
        ("a.conll", f"{COLUMNS}\x1a\r\n", 1),
        ("a.xml", "<C><T><PER>Ada</PER> ran</T></C>\n\x1a", 1),
        ("a.ann", "T1\tPER 0 3\tAda\n\x1a", 1),
        ("a.csv", "text;start;end;label\nAda ran;0;3;PER\n\x1a", 1),
        ("a.jsonl", f"{MARK}{JSONL}{MARK}{JSONL}", 2),
        ("a.json", f"{MARK}{MARK}[{JSONL}]", 1),
        ("a.conll", f"{COLUMNS}{MARK}{COLUMNS}", 2),
        ("a.conll", f"{COLUMNS}{MARK}\n{COLUMNS}", 2),
        ("a.conll", "Ada\tB-PER \nran\tO \n", 1),
        ("a.csv", "sep=;\ntext;start;end;label\nAda ran;0;3;PER\n", 1),
        ("a.csv", "sentence_idx,word,tag\n1.0,Ada,B-PER\n1.0,ran,O\n2.0,Ada,B-PER\n", 2),
    ],
)
def test_what_tools_leave_behind_is_no_part_of_a_text(tmp_path, name, content, texts):
    """Control-Z at the end, byte order marks of joined files, blanks at line ends, Excel's delimiter."""
    if name == "a.ann":
        (tmp_path / "a.txt").write_text("Ada ran\x1a")
    docs, report = read(tmp_path / name, content)
    assert [named(doc.ents) for doc in docs] == [[("Ada", "PER")]] * texts and not report.losses
