"""`python -m spacy hocrf convert` of what tools and libraries write: tokens with tags, spaCy's own JSON,
GLiNER, LangExtract, brat, WebAnno, tables, and inline XML.
"""

import json

import commands
import converting
import pytest
import spacy
from converting import iob, lines, named
from spacy.tokens import DocBin, Span

from spacy_hocrf.cli.convert.records import ConvertSettings


def read(tmp_path, name, content, others=(), **options):
    """The Docs of a file, and what of it was lost."""
    for other, text in others:
        (tmp_path / other).write_text(text, encoding="utf8", newline="")
    docs, report = converting.read(tmp_path / name, content, **options)
    return docs, report.lost


def fails(tmp_path, name, content, *parts, **options):
    with pytest.raises(ValueError, match="H290") as caught:
        read(tmp_path, name, content, **options)
    for part in parts:
        assert part in str(caught.value), str(caught.value)


# -------------------- tokens and tags


@pytest.mark.parametrize("words", ["tokens", "words"])
@pytest.mark.parametrize("tags", ["ner_tags", "tags", "labels"])
def test_tokens_with_a_tag_each(tmp_path, words, tags):
    entries = (
        {words: ["Emmy", "Noether", "slept"], tags: ["B-PER", "I-PER", "O"]},
        {words: ["Ulm"], tags: ["B-LOC"]},
    )
    for name, content in (("a.jsonl", lines(*entries)), ("a.json", json.dumps(entries, indent=2))):
        docs, lost = read(tmp_path, name, content)
        assert [named(doc.ents) for doc in docs] == [[("Emmy Noether", "PER")], [("Ulm", "LOC")]]
        assert not lost


def test_further_lists_are_attributes_of_tokens(tmp_path):
    entry = {"id": "7", "tokens": ["Ada", "ran"], "pos_tags": ["N", "V"], "ner_tags": ["B-P", "O"]}
    (doc,), _ = read(tmp_path, "a.jsonl", lines(entry))
    assert [token._.pos_tags for token in doc] == ["N", "V"] and doc._.hocrf_id == "7"


def test_numbers_of_tags_need_names(tmp_path):
    content = lines({"tokens": ["Ada", "ran"], "ner_tags": [1, 0]})
    fails(tmp_path, "a.jsonl", content, "line 1", "number 1", "--names O,B-PER,I-PER")
    (doc,), _ = read(tmp_path, "a.jsonl", content, settings=ConvertSettings(names=["O", "B-PER"]))
    assert named(doc.ents) == [("Ada", "PER")]
    done = commands.run(
        "convert", tmp_path / "a.jsonl", tmp_path / "o.spacy", "--names", "O, B-PER"
    )
    assert "1 spans" in done


def test_a_tag_that_says_nothing_is_unknown(tmp_path):
    entries = ({"tokens": ["a", "b", "c"], "tags": ["B-X", None, "O"]}, {"tokens": ["d"]})
    (first, second), lost = read(tmp_path, "a.jsonl", lines(*entries))
    assert iob(first) == [3, 0, 2] and iob(second) == [0]
    assert lost["tokens without a label: these are unknown"] == 1
    assert lost["texts without a label for each token: these are unknown"] == 1
    docs, _ = read(tmp_path, "a.jsonl", lines(*entries), into="tags")
    assert [token.tag_ for token in docs[0]] == ["B-X", "", "O"]


def test_empty_tokens_are_left_out(tmp_path):
    entry = {"tokens": ["Ada", "", "ran"], "tags": ["B-P", "O", "O"], "pos": ["N", "?", "V"]}
    (doc,), lost = read(tmp_path, "a.jsonl", lines(entry))
    assert [token.text for token in doc] == ["Ada", "ran"]
    assert [token._.pos for token in doc] == ["N", "V"]
    assert lost == {"empty tokens: left out": 1}


@pytest.mark.parametrize(
    "entry, parts",
    [
        ({"tokens": ["a", "b"], "ner_tags": ["O"]}, ["1 ner_tags", "2 tokens"]),
        ({"tokens": ["a"], "tags": [{"x": 1}]}, ["{'x': 1}"]),
        ({"tokens": ["a"], "tags": [-1]}, ["number -1"]),
        ({"tokenized_text": ["a"], "ner": [[0, 1, "x"]]}, ["tokens 0 to 1"]),
        ({"tokenized_text": "a", "ner": []}, ["tokenized_text"]),
        ({"tokenized_text": ["a"], "ner": [[0, 0, "x", 1.5]]}, ["the score 1.5"]),
        (["a", {"entities": [[0, 2, "x"]]}], ["0 to 2"]),
        (["a", {"entities": [[0]]}], ["[0]"]),
        ({"text": "a", "extractions": [{"extraction_class": 3}]}, ["extraction_class"]),
        ({"text": "ab", "ents": [], "tokens": [{"start": 1, "end": 9}]}, ["1 to 9"]),
        ({"text": "ab", "ents": 3, "tokens": []}, ["ents that are a int"]),
        ({"text": "ab", "label": "positive"}, ["'positive'", "a list of spans"]),
    ],
)
def test_json_that_is_malformed(tmp_path, entry, parts):
    fails(tmp_path, "a.jsonl", lines(entry), *parts)


# -------------------- JSON of libraries


def test_gliner(tmp_path):
    entries = (
        {"tokenized_text": ["Emmy", "Noether", "slept"], "ner": [[0, 1, "person"]]},
        {"tokenized_text": ["No"], "ner": []},
        {"tokenized_text": ["Who"], "source": "news"},
    )
    (first, second, third), lost = read(tmp_path, "a.json", json.dumps(entries))
    assert named(first.ents) == [("Emmy Noether", "person")] and first[1].ent_iob_ == "I"
    assert iob(second) == [2] and iob(third) == [0] and lost.total() == 1
    assert third._.hocrf_meta == {"source": "news"}


def test_scores_of_gliner(tmp_path):
    entry = {"tokenized_text": ["Ada", "ran"], "ner": [[0, 0, "PER", 0.75], [1, 1, "X"]]}
    (doc,), _ = read(tmp_path, "a.jsonl", lines(entry), into="llm")
    assert named(doc.spans["llm"]) == [("Ada", "PER"), ("ran", "X")]
    assert doc.spans["llm"].attrs == {"scores": [0.75, 1.0]}


def test_pairs_of_spacy_2(tmp_path):
    pairs = [["Ada ran", {"entities": [[0, 3, "PER"]]}], ["No", {"entities": []}], ["Hm", {}]]
    for content in (json.dumps(pairs), lines(*pairs)):
        docs, lost = read(tmp_path, "a.json", content)
        assert [named(doc.ents) for doc in docs] == [[("Ada", "PER")], [], []]
        assert [iob(doc)[0] for doc in docs] == [3, 2, 0]
        what = "texts without a list of spans (spans, label, labels, entities, ents): unknown"
        assert lost == {what: 1}
    (doc,), _ = read(tmp_path, "a.json", json.dumps(pairs[0]))
    assert named(doc.ents) == [("Ada", "PER")]


SPAN = {"start": 0.0, "end": 3.0, "label": "PER"}


@pytest.mark.parametrize(
    "name, content",
    [
        ("a.jsonl", lines({"text": "Ada x", "spans": [SPAN]})),
        ("a.jsonl", lines({"text": "Ada x", "spans": [{**SPAN, "text": "Ada"}]})),
        ("a.jsonl", lines({"text": "Ada x", "label": [[0.0, 3.0, "PER"]]})),
        ("a.json", json.dumps([["Ada x", {"entities": [[0.0, 3.0, "PER"]]}]])),
        ("a.csv", "text,start,end,label\nAda x,0.0,3.0,PER\n"),
        ("a.csv", 'text,spans\nAda x,"[{""start"": 0.0, ""end"": 3.0, ""label"": ""PER""}]"\n'),
    ],
)
def test_places_that_are_floats_as_pandas_writes_them(tmp_path, name, content):
    (doc,), lost = read(tmp_path, name, content)
    assert named(doc.ents) == [("Ada", "PER")] and not lost


@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
def test_what_displacy_draws(tmp_path, name):
    entry = {"text": "Ada x", "ents": [{"start": 0, "end": 3, "label": "PER"}], "title": None}
    bare = {"text": "Ada x", "ents": [], "title": "1", "settings": {}}
    content = lines(entry, bare) if name == "a.jsonl" else json.dumps([entry, bare])
    docs, lost = read(tmp_path, name, content)
    assert [named(doc.ents) for doc in docs] == [[("Ada", "PER")], []] and not lost
    assert [iob(doc) for doc in docs] == [[3, 2], [2, 2]]
    assert [doc._.hocrf_meta for doc in docs] == [None, {"title": "1", "settings": {}}]
    docs, _ = read(tmp_path, name, content, into="sc")
    assert [named(doc.spans["sc"]) for doc in docs] == [[("Ada", "PER")], []]
    outside = {**entry, "ents": [{"start": 0, "end": 30, "label": "PER"}]}
    fails(tmp_path, name, lines(outside), "characters 0 to 30")


def test_docs_as_json(tmp_path):
    nlp = spacy.blank("en")
    doc = nlp("Ada  doesn't live in Ulm.")
    doc.set_ents([Span(doc, 0, 1, "PER")])
    doc.spans["sc"] = [Span(doc, 6, 7, "LOC")]
    doc[0].tag_ = "NNP"
    other = nlp("No one")
    for content in (lines(doc.to_json(), other.to_json()), json.dumps([doc.to_json()], indent=1)):
        docs, lost = read(tmp_path, "a.json", content)
        assert docs[0].text == doc.text and [t.text for t in docs[0]] == [t.text for t in doc]
        assert named(docs[0].ents) == [("Ada", "PER")]
        assert named(docs[0].spans["sc"]) == [("Ulm", "LOC")]
        assert lost["texts without entities: these are unknown"] == len(docs) - 1
    docs, _ = read(tmp_path, "a.json", lines(doc.to_json()), into="tags")
    assert [token.tag_ for token in docs[0]][:2] == ["NNP", ""]
    docs, _ = read(tmp_path, "a.json", lines(doc.to_json()), into="sc")
    assert named(docs[0].spans["sc"]) == [("Ulm", "LOC")]


def test_a_span_without_a_label_in_a_group_does_not_end_the_reading_of_a_doc(tmp_path):
    doc = spacy.blank("en")("Ada lives in Ulm")
    doc.set_ents([Span(doc, 0, 1, "PER")])
    doc.spans["sc"] = [Span(doc, 0, 2), Span(doc, 3, 4, "LOC")]
    (found,), lost = read(tmp_path, "a.json", lines(doc.to_json()))
    assert named(found.ents) == [("Ada", "PER")] and named(found.spans["sc"]) == [("Ulm", "LOC")]
    assert lost["spans without a label: left out"] == 1


def extraction(label, text, start=None, end=None, **more):
    at = None if start is None else {"start_pos": start, "end_pos": end}
    return {"extraction_class": label, "extraction_text": text, "char_interval": at, **more}


def test_langextract(tmp_path):
    content = lines(
        {
            "document_id": "d1",
            "source": "news",
            "text": "Ada met Max",
            "extractions": [
                extraction("PER", "Ada", 0, 3, alignment_status="match_exact", attributes={"x": 1})
            ],
        },
        {"document_id": "d2", "text": "Kim ran home", "extractions": [extraction("PER", "Kimmy"),
            extraction("LOC", "a home", 8, 12, alignment_status="match_fuzzy")]},
        {"document_id": "d3", "text": "Hm", "extractions": []},
        {"document_id": "d4", "text": "Hm", "extractions": None},
    )  # fmt: skip
    docs, lost = read(tmp_path, "a.jsonl", content)
    assert [named(doc.ents) for doc in docs] == [[("Ada", "PER")], [("home", "LOC")], [], []]
    assert [doc._.hocrf_id for doc in docs] == ["d1", "d2", "d3", "d4"]
    assert docs[0]._.hocrf_meta == {"source": "news"}
    assert list(map(iob, docs)) == [[3, 2, 2], [0, 0, 3], [2], [0]]
    assert lost.total() == 4


def test_scores_beside_extractions(tmp_path):
    found = [extraction("PER", "Ada", 0, 3, score=p) for p in (0.25, 0.75)]
    found.append(extraction("PER", "Max", 8, 11))
    text = lines({"text": "Ada met Max", "extractions": found})
    (doc,), lost = read(tmp_path, "a.jsonl", text, into="llm")
    assert named(doc.spans["llm"]) == [("Ada", "PER"), ("Max", "PER")] and not lost
    assert doc.spans["llm"].attrs == {"scores": [0.75, 1.0]}


# -------------------- brat


def test_brat(tmp_path):
    text = "Ada Lovelace met\nMax, and Kim."
    annotation = (
        "T1\tPER 0 12\tAda Lovelace\nT2\tPER 17 20\tMax\nT3\tPER 0 3;26 29\tAda Kim\n"
        "R1\tmet Arg1:T1 Arg2:T2\t\nA1\tOld T1\nE1\tMeet:T2\n#1\tAnnotatorNotes T1\tsure?\n"
        "N1\tReference T1 Wikidata:Q7259\tAda\n*\tEquiv T1 T2\n"
    )
    others = [("t.txt", text)]
    (doc,), lost = read(tmp_path, "t.ann", annotation, others)
    assert doc.text == text and doc._.hocrf_id == "t"
    assert named(doc.ents) == [("Ada Lovelace", "PER"), ("Max", "PER")]
    assert [doc[i].ent_iob for i, t in enumerate(doc) if t.text in ("met", "Kim")] == [2, 0]
    assert lost["spans in several pieces: left out, what they cover is unknown"] == 1
    assert lost["relations: left out"] == 1 and lost["notes: left out"] == 1 and lost.total() == 7
    done = commands.run("convert", tmp_path / "t.ann", tmp_path / "o.spacy")
    assert "2 spans" in done


@pytest.mark.parametrize("end", ["\n", "\r\n", " \n  "])
def test_a_span_that_brat_parts_at_a_line_break_is_one(tmp_path, end):
    text = f"with chest{end}pain and{end}cold feet"
    first, second = text.index("pain"), text.index("cold")
    annotation = (
        f"T1\tSIGN 5 10;{first} {first + 4}\tchest pain\n"
        f"T2\tSIGN {second} {second + 4};5 10\tcold chest\n"
    )
    (doc,), lost = read(tmp_path, "t.ann", annotation, [("t.txt", text)])
    assert named(doc.ents) == [(f"chest{end}pain", "SIGN")]
    assert lost == {"spans in several pieces: left out, what they cover is unknown": 1}


def test_a_folder_of_brat_has_as_many_texts_as_annotations(tmp_path):
    others = [("a.txt", "Ada ran"), ("b.txt", "Max"), ("b.ann", ""), ("notes.md", "# Notes\n")]
    read(tmp_path, "a.ann", "T1\tPER 0 3\tAda\n", others)
    docs, report = converting.read(tmp_path)
    assert [doc.text for doc in docs] == ["Ada ran", "Max"]
    assert [named(doc.ents) for doc in docs] == [[("Ada", "PER")], []] and iob(docs[1]) == [0]
    assert report.lost["files of annotation without a line: their texts are unknown"] == 1


@pytest.mark.parametrize(
    "line, parts",
    [
        ("T1\tPER 0 9\tAda", ["line 1", "0 to 9", "which has 7"]),
        ("T1\tPER 3 3\t", ["3 to 3"]),
        ("T1 PER 0 3 Ada", ["line 1", "T1 PER 0 3 Ada"]),
        ("Ada B-PER", ["line 1"]),
    ],
)
def test_malformed_annotation_of_brat(tmp_path, line, parts):
    fails(tmp_path, "t.ann", f"{line}\n", *parts, others=[("t.txt", "Ada ran")])


def test_annotation_without_its_text_is_refused_by_name(tmp_path):
    fails(tmp_path, "t.ann", "T1\tPER 0 3\tAda\n", "t.ann", "t.txt")


def test_annotation_of_another_text_is_told(tmp_path):
    _, lost = read(tmp_path, "t.ann", "T1\tPER 0 3\tMax\n", [("t.txt", "Ada ran")])
    assert lost["spans that are said to have another text"] == 1


# -------------------- scripts without blanks


@pytest.mark.parametrize(
    "words, text",
    [
        ([*"王明2020年在上海。"], "王明2020年在上海。"),
        (["東京", "タワー", "へ", "行く"], "東京タワーへ行く"),
        (["กรุงเทพ", "สวย"], "กรุงเทพสวย"),
        (["I", "visited", "北京", "twice"], None),
        (["김철수", "는", "갔다"], None),
        (["नमस्ते", "दुनिया"], None),
    ],
)
@pytest.mark.parametrize("name", ["a.conll", "a.json"])
def test_no_blanks_are_put_between_words_that_are_written_without(tmp_path, name, words, text):
    tags = ["B-X", *["O"] * (len(words) - 1)]
    content = json.dumps([{"tokens": words, "ner_tags": tags}])
    if name == "a.conll":
        content = "".join(f"{word} {tag}\n" for word, tag in zip(words, tags))
    ((doc,), _) = read(tmp_path, name, content)
    assert doc.text == (text or "".join(f"{word} " for word in words))
    assert doc.has_unknown_spaces == (text is None)
    assert [token.text for token in doc] == words and named(doc.ents) == [(words[0], "X")]


# -------------------- places in UTF-16 and in bytes

CAKE = "蛋糕\N{BIRTHDAY CAKE}在上海，王明在北京"
PLACED = {
    "a.jsonl": lambda spans: lines(
        {"text": CAKE, "spans": [dict(start=a, end=b, text=w, label="X") for a, b, w in spans]}
    ),
    "a.json": lambda spans: json.dumps(
        [{"text": CAKE, "entities": [dict(start=a, end=b, word=w, label="X") for a, b, w in spans]}]
    ),
    "a.csv": lambda spans: "text\tlabel\n{}\t{}\n".format(
        CAKE, json.dumps([dict(start=a, end=b, text=w, labels=["X"]) for a, b, w in spans])
    ),
    "a.ann": lambda spans: "".join(
        f"T{i}\tX {a} {b}\t{w}\n" for i, (a, b, w) in enumerate(spans, start=1)
    ),
}


@pytest.mark.parametrize("name", PLACED)
@pytest.mark.parametrize(
    "unit, spans",
    [
        ("", [(4, 6, "上海"), (10, 12, "北京")]),
        ("UTF-16", [(5, 7, "上海"), (11, 13, "北京")]),
        ("bytes of UTF-8", [(13, 19, "上海"), (31, 37, "北京")]),
    ],
)
def test_words_tell_what_places_are_counted_in(tmp_path, name, unit, spans):
    others = [("a.txt", CAKE)] if name == "a.ann" else []
    (doc,), lost = read(tmp_path, name, PLACED[name](spans), others, lang="zh", align="strict")
    assert named(doc.ents) == [("上海", "X"), ("北京", "X")]
    what = f"spans that are counted in {unit}: counted in characters"
    assert lost == ({what: 2} if unit else {})


@pytest.mark.parametrize(
    "text, start, unit",
    [
        ("So\r\n\r\nAda ran\r\n", 4, r"characters with \r\n as one"),
        ("So\n\nAda ran\n", 6, "characters with line ends as two"),
    ],
)
def test_words_tell_how_line_ends_are_counted(tmp_path, text, start, unit):
    """As when a version control system has changed the line ends of a text, but not its annotation."""
    annotation = f"T1\tPER {start} {start + 3}\tAda\n"
    (doc,), lost = read(tmp_path, "a.ann", annotation, [("a.txt", text)])
    assert named(doc.ents) == [("Ada", "PER")]
    assert lost == {f"spans that are counted in {unit}: counted in characters": 1}


@pytest.mark.parametrize("encoding", ["gb18030", "utf-16"])
def test_json_in_another_encoding(tmp_path, encoding):
    text = json.dumps({"text": "北京", "label": [[0, 2, "X"]]}, ensure_ascii=False)
    settings = ConvertSettings(encoding=encoding)
    (doc,), _ = read(tmp_path, "a.jsonl", text.encode(encoding), lang="zh", settings=settings)
    assert named(doc.ents) == [("北京", "X")]


# -------------------- WebAnno

WEBANNO = """#FORMAT=WebAnno TSV 3.3
#T_SP=de.tudarmstadt.ukp.dkpro.core.api.lexmorph.type.pos.POS|PosValue
#T_SP=webanno.custom.Person|name|role
#T_SP=webanno.custom.Empty
#T_RL=webanno.custom.Knows|kind|BT_webanno.custom.Person


#Text=Ada \\\\[Lovelace \N{GRINNING FACE} met  Max
1-1\t0-3\tAda\tNNP\tpoet\\|ess[1]\twriter[1]\t_\t_\t_\t
1-2\t4-13\t[Lovelace\tNNP\tpoet\\|ess[1]|who\twriter[1]|_\t_\t_\t_\t
1-3\t14-16\t\N{GRINNING FACE}\t_\t_\t_\t*\t_\t_\t
1-4\t17-20\tmet\tVBD\t_\t_\t_\t_\t_\t
1-5\t22-25\tMax\tNNP\t*[2]\t*[2]\t_\tfriend\t1-1[1_2]\t

#Text=Who
2-1\t26-29\tWho\tWP\t*[2]\t*[2]\t_\t_\t_\t
2-1.1\t26-27\tW\t_\tletter\t_\t_\t_\t_\t
""".replace("\\\\[", "[")


def test_webanno(tmp_path):
    (first, second), lost = read(tmp_path, "a.tsv", WEBANNO, into="sc")
    assert first.text == "Ada [Lovelace \N{GRINNING FACE} met  Max" and second.text == "Who"
    assert named(first.spans["sc"]) == [
        ("[Lovelace", "who"),
        ("Ada [Lovelace", "poet|ess"),
        ("Max", "Person"),
        ("\N{GRINNING FACE}", "Empty"),
    ]
    assert named(second.spans["sc"]) == [("Who", "Person")]
    assert [token._.PosValue for token in first if token.text.strip()][:3] == ["NNP", "NNP", ""]
    assert lost["layers of relations: left out"] == 1
    assert lost["spans that go on in the next sentence: cut there"] == 1
    assert lost["further features of a span: left out"] == 2
    assert lost["spans that fit no tokens: unknown, see hocrf convert --lang and --align"] == 1


@pytest.mark.parametrize(
    "old, new, parts",
    [
        ("1-4\t17-20", "1-4\t17-90", ["line 12", "17 to 90"]),
        ("1-4\t17-20", "1-4\t7-10", ["line 12", "7 to 10"]),
        ("\tVBD\t_", "\tVBD", ["line 12", "columns"]),
        ("1-4\t17-20\tmet", "met", ["line 12"]),
        ("2-1.1\t26-27", "2-1.1\t26-99", ["line 17"]),
        ("poet\\|ess[1]|who\twriter[1]|_", "a|b|c\td|e", ["line 10", "Person"]),
    ],
)
def test_malformed_webanno(tmp_path, old, new, parts):
    assert old in WEBANNO
    fails(tmp_path, "a.tsv", WEBANNO.replace(old, new), *parts)


# -------------------- tables


def test_a_row_for_each_span(tmp_path):
    content = (
        "id,text,start,end,label\n"
        '1,"Ada, or ""Lady"" L.",0,3,PER\n2,Max ran,0,3,PER\n1,"Ada, or ""Lady"" L.",9,13,TITLE\n3,Hm,,,\n'
    )
    (first, second, third), lost = read(tmp_path, "a.csv", content)
    assert first.text == 'Ada, or "Lady" L.' and first._.hocrf_id == "1"
    assert named(first.ents) == [("Ada", "PER"), ("Lady", "TITLE")]
    assert named(second.ents) == [("Max", "PER")] and iob(third) == [0]
    assert lost == {"texts without spans: these are unknown": 1}


def test_rows_without_an_id_belong_to_one_text(tmp_path):
    content = "text;start;end;label\nAda ran;0;3;PER\nAda ran;4;7;DEED\n"
    for text in (content, content.replace(";", "\t"), content.replace("text;start", "Text;START")):
        (doc,), _ = read(tmp_path, "a.csv", text)
        assert named(doc.ents) == [("Ada", "PER"), ("ran", "DEED")]


@pytest.mark.parametrize(
    "content",
    [
        "sentence_id,token,tag\n1,Ada,B-PER\n1,ran,O\n2,Max,B-PER\n",
        "Sentence #,Word,POS,Tag\nSentence: 1,Ada,N,B-PER\n,ran,V,O\nSentence: 2,Max,N,B-PER\n",
        "token\tner\nAda\tB-PER\nran\tO\n\nMax\tB-PER\n",
    ],
)
def test_a_row_for_each_token(tmp_path, content):
    docs, _ = read(tmp_path, "a.csv", content)
    assert [[token.text for token in doc] for doc in docs] == [["Ada", "ran"], ["Max"]]
    assert [named(doc.ents) for doc in docs] == [[("Ada", "PER")], [("Max", "PER")]]
    assert "POS" not in content or [token._.pos for token in docs[0]] == ["N", "V"]


@pytest.mark.parametrize(
    "cell",
    [
        [[0, 3, "PER"]],
        [{"start": 0, "end": 3, "label": "PER"}],
        [{"start": 0, "end": 3, "text": "Ada", "labels": ["PER"]}],
        {"entities": [[0, 3, "PER"]]},
    ],
)
@pytest.mark.parametrize("write", [json.dumps, repr])
def test_spans_in_a_cell(tmp_path, cell, write):
    quoted = write(cell).replace('"', '""')
    (doc, other), lost = read(tmp_path, "a.csv", f'text,label\nAda ran,"{quoted}"\nHm,\n')
    assert named(doc.ents) == [("Ada", "PER")] and iob(doc) == [3, 2] and iob(other) == [0]
    assert lost.total() == 1


def test_further_columns_of_a_text_are_its_metadata(tmp_path):
    for content in (
        ",id,text,start,end,label,source,by\n0,7,Ada ran,0,3,PER,news,\n1,7,Ada ran,4,7,V,news,me\n",
        'id,text,entities,source\n7,Ada ran,"[[0, 3, ""PER""], [4, 7, ""V""]]",news\n',
        "id,text,labels,source,page\n7,Ada ran,PER V,news,\n",
    ):
        (doc,), lost = read(tmp_path, "a.csv", content)
        assert len(doc.ents) == 2 and doc._.hocrf_id == "7"
        assert doc._.hocrf_meta == {"source": "news"}
        assert lost.total() == ("by" in content)


@pytest.mark.parametrize("delimiter", ["\t", ","])
def test_quotation_marks_among_tokens(tmp_path, delimiter):
    raw = 'token,tag\n",O\nAda,B-P\n",O\nran,O\n'
    written = 'token,tag\n"""",O\nAda,B-P\n"""",O\n"ran","O"\n'
    for content in (raw, written, raw.replace("\n", "\r\n")):
        (doc,), lost = read(tmp_path, "a.csv", content.replace(",", delimiter))
        assert [token.text for token in doc] == ['"', "Ada", '"', "ran"] and not lost
        assert named(doc.ents) == [("Ada", "P")]


def test_a_number_for_each_row_divides_no_text(tmp_path):
    docs, _ = read(tmp_path, "a.csv", "id,token,tag\n0,Ada,B-P\n1,L.,I-P\n\n2,Max,B-P\n")
    assert [named(doc.ents) for doc in docs] == [[("Ada L.", "P")], [("Max", "P")]]
    docs, _ = read(tmp_path, "a.csv", "sentence_id,token,tag\n0,Ada,B-P\n1,Max,B-P\n")
    assert len(docs) == 2


@pytest.mark.parametrize("content", ["sentence_id,token,tag\n1,Ada,\n1,ran,\n", "Ada\t\nran\t\n"])
def test_tokens_without_any_label_are_unknown(tmp_path, content):
    format_ = "table" if "," in content else "columns"
    (doc,), lost = read(tmp_path, "a.csv", content, format_=format_)
    assert iob(doc) == [0, 0] and lost == {"tokens without a label: unknown": 2}


@pytest.mark.parametrize(
    "content, places",
    [("Ada B-P\nL. I-P\nran 0\nin O\n", ["line 3 (0)"]), ("Ada\t\nran\t\n", ["line 1", "line 2"])],
)
def test_the_place_of_a_label_has_the_label_if_there_is_one(tmp_path, content, places):
    _, report = converting.read(tmp_path / "a.conll", content, format_="columns")
    assert [loss.place for loss in report.losses] == places


def test_labels_in_a_cell(tmp_path):
    content = "text,labels\nAda met Max,B-PER O B-PER\nNo,O\n"
    (first, second), _ = read(tmp_path, "a.csv", content)
    assert named(first.ents) == [("Ada", "PER"), ("Max", "PER")] and iob(second) == [2]


@pytest.mark.parametrize(
    "content, parts",
    [
        ("name,age\nAda,36\n", ["line 1", "name, age", "text, start, end, label", "sentence_id"]),
        ("text,start,end,label\nAda,0,9,PER\n", ["line 2", "0 to 9", "which has 3"]),
        ("text,start,end,label\nAda,0,3\n", ["line 2", "3 columns", "4"]),
        ("text,start,end,label\nAda,0,3,\n", ["line 2"]),
        ("text,start,end,label\nAda,x,3,P\n", ["line 2", "['x', 3, 'P']"]),
        ("id,text,start,end,label\n1,Ada,0,3,P\n1,Max,0,3,P\n", ["line 3", "another text", "'1'"]),
        ("text,label\nI liked it a lot,good\n", ["line 2", "'good'", "5 labels"]),
        ('text,spans\nAda,"[[0, 9, ""P""]]"\n', ["line 2", "0 to 9"]),
        ('text,spans\nAda,"[[0, 3]]"\n', ["line 2", "[0, 3]"]),
        ('text,start,end,label\n"Ada,0,3,P\n', ["line 2"]),
        ("""tokens,labels\n['Ada' 'ran'],[1 0]\n""", ["line 2", "with commas"]),
    ],
)
def test_malformed_tables(tmp_path, content, parts):
    fails(tmp_path, "a.csv", content, *parts)


# -------------------- inline XML

TEI = """<TEI xmlns="http://www.tei-c.org/ns/1.0">
  <teiHeader><fileDesc><p>All <hi>about</hi> it</p></fileDesc></teiHeader>
  <text>
    <head>References</head>
    <listBibl>
      <bibl><author>A. B.</author>, <title level="a">On
        boats</title>, <date>1843</date>.</bibl>
      <bibl><author><name type="person">C. D.</name></author>: <date/>In <date>1844</date></bibl>
      <bibl>None.</bibl>
    </listBibl>
  </text>
</TEI>
"""


def test_inline_xml_is_read_where_words_stand_beside_elements(tmp_path):
    docs, lost = read(tmp_path, "a.xml", TEI, into="sc")
    assert [doc.text for doc in docs] == ["A. B., On boats, 1843.", "C. D.: In 1844", "None."]
    assert named(docs[0].spans["sc"]) == [
        ("A. B.", "author"),
        ("On boats", "title"),
        ("1843", "date"),
    ]
    assert named(docs[1].spans["sc"]) == [
        ("C. D.", "author"),
        ("C. D.", "name.person"),
        ("1844", "date"),
    ]
    assert lost["attributes of elements: left out"] == 1
    assert lost["elements without a text: left out"] == 1
    assert lost["pieces of text outside of bibl: left out"] == 4


def test_the_element_that_is_a_text_can_be_named(tmp_path):
    content = "<c>\n<boat>\n<name>Anna</name>\n<length>12</length>\n</boat>\n</c>"
    fails(tmp_path, "a.xml", content, "--record")
    (doc,), _ = read(tmp_path, "a.xml", content, settings=ConvertSettings(record="boat"))
    assert doc.text == "Anna 12" and named(doc.ents) == [("Anna", "name"), ("12", "length")]
    fails(tmp_path, "a.xml", content, "ship", settings=ConvertSettings(record="ship"))
    commands.run("convert", tmp_path / "a.xml", tmp_path / "o.spacy", "--record", "boat")
    assert len(DocBin().from_disk(tmp_path / "o.spacy")) == 1


def test_the_kind_of_an_element_may_be_in_capitals(tmp_path):
    """As in the corpora of MUC and ACE."""
    content = '<doc><p><ENAMEX TYPE="PERSON">Ada</ENAMEX> ran</p></doc>'
    (doc,), lost = read(tmp_path, "a.xml", content)
    assert named(doc.ents) == [("Ada", "ENAMEX.PERSON")] and not lost


ROW = {"text": "Ada ran", "entities": [[0, 3, "PER"]]}
PYTHON = """[("Ada ran", {'entities': [(0, 3, "PER")]}), ('Max', {'entities': []})]"""


@pytest.mark.parametrize(
    "name, content",
    [
        ("a.py", f"# of 2019\n\nTRAIN_DATA = {PYTHON}\n"),
        ("a.txt", PYTHON),
        ("a.json", PYTHON.replace(", (", ",\n(")),
        ("a.py", f"X = {[ROW, {'text': 'Max', 'entities': []}]}"),
    ],
)
def test_training_data_may_be_written_in_python(tmp_path, name, content):
    docs, report = converting.read(tmp_path / name, content)
    assert [named(doc.ents) for doc in docs] == [[("Ada", "PER")], []]
    assert report.bare == 1 and not report.losses


@pytest.mark.parametrize(
    "content", ["X = [f(1)]", "X = [1, 2]", "[PER Ada ] ran", "X = [[1]", "X = {3}"]
)
def test_other_python_is_refused(tmp_path, content):
    with pytest.raises(ValueError, match="H380"):
        read(tmp_path, "a.py", content)


@pytest.mark.parametrize(
    "tokens, tags, part",
    [
        ("['Ada', ' ', 'ran']", "['B-PER', 'O', 'O']", ""),
        ('["Ada", " ", "ran"]', '["B-PER", "O", "O"]', ""),
        ("['Ada', ' ', 'ran']", "[1, 0, 0]", ""),
        ("['Ada' 'ran']", "['B-PER' 'O']", "with commas"),
        ("['Ada', 'ran']", "[1 0]", "with commas"),
        ("['Ada', 1]", "['B-PER', 'O']", "with commas"),
        ("['Ada', 'ran']", "['B-PER']", "one for each of 2 tokens"),
    ],
)
def test_a_row_may_have_lists_of_tokens_and_labels(tmp_path, tokens, tags, part):
    """As pandas writes data sets; NumPy's arrays have no commas, and Python would join their texts."""
    cells = ['"{}"'.format(cell.replace('"', '""')) for cell in ("7", tokens, tags)]
    content = f"id,tokens,ner_tags\n{','.join(cells)}\n"
    settings = ConvertSettings(names=["O", "B-PER"])
    if part:
        fails(tmp_path, "a.csv", content, "line 2", part, settings=settings)
    else:
        (doc,), _ = read(tmp_path, "a.csv", content, settings=settings)
        assert named(doc.ents) == [("Ada", "PER")] and doc._.hocrf_id == "7"


@pytest.mark.parametrize(
    "whole",
    [
        {"version": 1, "data": [ROW]},
        {"rasa": {"examples": [{**ROW, "entities": [{"start": 0, "end": 3, "entity": "PER"}]}]}},
        {"examples": [{"content": "Ada ran", "annotations": [{"start": 0, "end": 3, "tag": "PER"}]}]},
        {"classes": ["PER"], "annotations": [["Ada ran", {"entities": [[0, 3, "PER"]]}]]},
        {"train": [{"tokens": ["Ada", "ran"], "ner_tags": ["B-PER", "O"]}]},
    ],
)  # fmt: skip
def test_texts_may_be_inside_one_object(tmp_path, whole):
    (doc,), lost = read(tmp_path, "a.json", json.dumps(whole))
    assert named(doc.ents) == [("Ada", "PER")] and not lost


@pytest.mark.parametrize(
    "whole",
    [
        {"train": [ROW], "test": [ROW]},  # which?
        {"document": "Ada ran", "tokens": [{"text": "Ada", "start": 0, "end": 3}]},
        {"input": "Ada ran", "output": [{"text": "Ada", "label": "PER"}]},
    ],
)
def test_an_object_with_other_lists_is_refused(tmp_path, whole):
    fails(tmp_path, "a.json", json.dumps(whole), "the keys", *whole)
