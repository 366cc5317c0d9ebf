"""`python -m spacy hocrf convert` of files in formats that it does not read: all are refused, whatever their
names, with what they are and what is expected; and small files of columns in all shapes are not.
"""

import gzip
import json
import zlib

import commands
import pytest
import spacy
from converting import read
from spacy.tokens import DocBin

from spacy_hocrf.cli.convert.formats import format_of
from spacy_hocrf.cli.convert.records import ConvertSettings

PROSE = """The harbour was quiet that morning. A few boats had come in before dawn, and the men
who had been out all night sat on the wall with their coffee, saying little.

Nobody had seen the lighthouse keeper since Sunday.
"""

TEXTS = {
    "prose.txt": PROSE,
    "one_line.txt": "Nobody came.\n",
    "two_words.txt": "Hello there\nGood morning\nFare well\nAll right\n",
    "names.txt": "Rosa Park\nJohn Hill\nMary Wood\nKarl Lake\n",
    "words_and_counts.tsv": "the\t1841\nof\t990\nand\t870\nto\t801\n",
    "readme.md": "# Harbour\n\nA tool for boats.\n\n- fast\n- small\n\n```bash\nmake all\n```\n",
    "page.html": "<!DOCTYPE html>\n"
    "<html><head><title>Hi</title></head><body><p>Ada <b>ran</b>.</p></body></html>\n",
    "page.xhtml": '<?xml version="1.0"?>\n'
    '<html xmlns="http://www.w3.org/1999/xhtml"><body><p>A <i>b</i></p></body></html>',
    "refs.bib": "@article{hill99,\n  author = {Hill, John},\n  title = {On boats},\n  year = 1999\n}\n",
    "settings.yaml": "name: harbour\nversion: two\nquiet: true\nloud: true\n",
    "settings.toml": '[project]\nname = "harbour"\nversion = "1.0"\nquiet = true\n',
    "flat.ini": "name = harbour\nquiet = yes\nloud = yes\nwide = yes\n",
    ".env": "NAME=harbour\nQUIET=yes\n",
    "boats.py": "import os\nimport sys\n\n\ndef main():\n    print(os.name)\n\n\nmain()\n",
    "boats.c": "#include <stdio.h>\n\nint main(void) {\n    return 0;\n}\n",
    "server.log": "2024-05-01 10:00:00 INFO started\n2024-05-01 10:00:05 WARN slow\n"
    "2024-05-01 10:01:00 INFO started\n",
    "access.log": '1.2.3.4 - - [01/May/2024:10:00:00 +0000] "GET / HTTP/1.1" 200 12\n' * 3,
    "boats.csv": "Anna,12,red\nBerta,9,blue\nClara,15,red\n",
    "people.csv": "name,age,city\nAda,36,London\nMax,89,Göttingen\n",
    "classes.csv": 'text,label\n"I liked it, really",positive\n"I did not",negative\n',
    "dump.sql": "-- dump\nCREATE TABLE boats (id INT, name TEXT);\nINSERT INTO boats VALUES (1, 'Anna');\n",
    "film.srt": "1\n00:00:01,000 --> 00:00:02,500\nHello there.\n\n2\n00:00:03,000 --> 00:00:04,000\nBye.\n",
    "letter.eml": "From: ada@example.org\nTo: max@example.org\nSubject: tea\n\nCome at five.\n",
    "news.sgm": "<DOC>\n<DOCID> 12 </DOCID>\n<TXT>\n<ENAMEX TYPE=\"PERSON\">Ada</ENAMEX> ran & ran.\n"
    "</TXT>\n</DOC>\n",
    "ace.apf.xml": '<?xml version="1.0"?>\n<source_file><document DOCID="1">\n'
    '<entity ID="E1" TYPE="PER">\n<entity_mention ID="M1">'
    '\n<extent>\n<charseq START="0" END="2">Ada</charseq>\n</extent>\n</entity_mention>\n</entity>\n'
    "</document></source_file>",
    "catalogue.xml": "<catalogue>\n  <boat>\n    <name>Anna</name>\n    <length>12</length>\n"
    "  </boat>\n  <boat>\n"
    "    <name>Berta</name>\n    <length>9</length>\n  </boat>\n</catalogue>\n",
    "feed.xml": '<rss version="2.0"><channel><title>Boats</title><item><title>Anna</title><link>'
    'x</link></item>'
    "</channel></rss>",
    "old.tsv": "#FORMAT=WebAnno TSV 2\n#id=1\n#text=Ada ran\n1-1\tAda\tPER\n1-2\tran\t_\n",
    "numbered.conll": "#doc 1\n1\tAda\tB-PER\t_\n2\tran\tO\t_\n\n1\tMax\tB-PER\t_\n2\tsat\tO\t_\n",
    "requirements.txt": "numpy>=1.20\nspacy\n",
    "package.json": '{\n  "name": "boats",\n  "version": "1.0.0",\n  "scripts": {"test": "jest"}\n}\n',
    "map.geojson": '{"type": "FeatureCollection", "features": [{"type": "Feature", "geometry": null, '
    '"properties": {}}]}',
    "squad.json": json.dumps(
        {"version": "1", "data": [{"title": "t", "paragraphs": [{"context": "c", "qas": []}]}]}
    ),
    "numbers.json": "[1, 2, 3]",
    "colours.txt": "apple red\ncherry red\nlemon yellow\nbanana yellow\n",
    "picture.svg": '<svg xmlns="http://www.w3.org/2000/svg"><text>Hi <tspan>you</tspan> all</text></svg>',
    "one_line.xml": "<c><b><title>A</title><price>2</price></b><b><title>B</title><price>9</price></b></c>",
    "words.csv": "text,label\ngood,positive\nbad,negative\n",
    "token.json": '{"access_token": "x", "tokens": ["a", "b"]}',
    "coco.json": json.dumps(
        {"images": [{"id": 1}], "annotations": [{"id": 1, "bbox": [0, 0, 1, 1]}], "categories": []}
    ),
    "classes.jsonl": '{"text": "I liked it", "label": "positive"}\n'
    '{"text": "I did not", "label": "negative"}\n',
    "tweets.tsv": "1\tPER/Ada;LOC/Paris;\tAda lives in Paris\n2\t\tnobody came\n",
    "letter.data": "1\to\t2\t1\t1\t0\t0\t1\t\n2\tm\t-1\t1\t2\t0\t1\t1\t\n",
    "chat.ascii.txt": "[03:18] <ann> hi\n=== bob joined\n[03:19] <bob> tea?\n[03:20]  * ann drinks\n",
}  # fmt: skip


BINARY = {
    "table.parquet": (b"PAR1\x15\x04\x15\x10PAR1", "no text"),
    "docs.spacy": (DocBin(docs=[spacy.blank("xx")("Ada ran")]).to_bytes(), "needs no converting"),
    "packed.conll": (gzip.compress(b"Ada B-PER\n"), ".gz"),
    "wide.txt": (("Ada O\n" * 9).encode("utf-16-le"), "--encoding"),
    "rubbish.bin": (zlib.compress(b"abc" * 99), "no text"),
}
EXPECTED = {
    "page.html": "HTML", "page.xhtml": "HTML", "old.tsv": "WebAnno TSV", "people.csv": "name, age, city",
    "boats.csv": "anna, 12, red", "catalogue.xml": "--record", "feed.xml": "--record",
    "ace.apf.xml": "--record", "numbered.conll": "--word", "package.json": "name, version",
    "map.geojson": "type, features",
}  # fmt: skip
"""A part of what the error says."""


def refused(path, output):
    """What the command says about a file that it does not read."""
    printed = " ".join(commands.run("convert", path, output, code=1).split())
    assert not output.exists() and "[H" in printed, printed
    return printed


@pytest.mark.parametrize("name", TEXTS)
def test_text_in_another_format_is_refused(tmp_path, name):
    (tmp_path / name).write_text(TEXTS[name], encoding="utf8")
    printed = refused(tmp_path / name, tmp_path / "out.spacy")
    assert EXPECTED.get(name, "xpected") in printed, printed


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("other", ["data.txt", "data"])
def test_no_name_makes_them_columns(tmp_path, name, other):
    with pytest.raises(ValueError, match=r"^\[H(290|380)\]"):
        read(tmp_path / other, TEXTS[name])


@pytest.mark.parametrize("name", BINARY)
def test_what_is_no_text_is_refused(tmp_path, name):
    content, part = BINARY[name]
    (tmp_path / name).write_bytes(content)
    printed = refused(tmp_path / name, tmp_path / "out.spacy")
    assert part in printed, printed


def test_names_that_suit_another_content_are_refused(tmp_path):
    for suffix in "json jsonl xml csv tsv ann conllu crfsuite conll txt".split():
        (tmp_path / f"a.{suffix}").write_text(PROSE, encoding="utf8")
        refused(tmp_path / f"a.{suffix}", tmp_path / "out.spacy")


COLUMNS = [
    "Ada B-PER\nran O\n",
    "Ada\tB-PER\nran\tO\n\nMax\tB-PER\n",
    "Ada NNP B-NP B-PER\nran VBD B-VP O\n",
    "all O\nright O\njoey ,\nbe O\nnice .\n",
    "A. author\nCau author\n, author\n1999 date\n. date\n\nB. author\n1998 date\n",
    "12 AddressNumber\nOld StreetName\nOak StreetName\n\n9 AddressNumber\nNew StreetName\nElm StreetName\n",
    "Ada U-PER\nMax U-PER\n",
    "Kim PER_B\nMin PER_I\n",
    "-DOCSTART- -X- O\n\nAda NNP B-PER\n",
    "#begin document (a); part 000\nAda author\nand O\n#end document\n",
    "# 1\nAda\tO\nran\tO\n",
    "{ O\n} O\n[ O\n< O\n<s> O\n",
    "x O\n",
    "10 O\n12 O\n",
    "Ada B-PER\nLovelace I-PER\nwon 0\n",
]  # fmt: skip


@pytest.mark.parametrize("text", COLUMNS)
@pytest.mark.parametrize("name", ["a.txt", "a", "a.iob2", "a.tsv"])
def test_columns_are_known_by_their_labels(tmp_path, text, name):
    docs, _ = read(tmp_path / name, text)
    assert docs and format_of(tmp_path / name, ConvertSettings()) == "columns"


@pytest.mark.parametrize(
    "settings",
    [{"word": 1}, {"label": 1}, {"comment": "%"}, {"scheme": "io"}, {"attributes": {"pos": 1}}],
)
def test_who_says_which_columns_there_are_gets_columns(tmp_path, settings):
    (tmp_path / "a.txt").write_text("one Ada x1\ntwo ran x2\n", encoding="utf8")
    with pytest.raises(ValueError, match=r'H380.*\{"text": "\.\.\."\}'):
        format_of(tmp_path / "a.txt", ConvertSettings())
    assert format_of(tmp_path / "a.txt", ConvertSettings(**settings)) == "columns"


def test_a_format_that_is_named_is_taken(tmp_path):
    docs, _ = read(tmp_path / "a.txt", "one Ada\ntwo ran\n", format_="columns")
    assert [[span.label_ for span in doc.ents] for doc in docs] == [["Ada", "ran"]]


JOINED = "Ada|NNP|B-PER ran|VBD|O .|.|O\nMax|NNP|B-PER slept|VBD|O\n"


@pytest.mark.parametrize("name", ["a.iob", "a.txt"])
def test_words_with_labels_in_a_line_per_text_are_spacys_to_read(tmp_path, name):
    (tmp_path / name).write_text(JOINED, encoding="utf8")
    with pytest.raises(ValueError, match=r"H380.*spacy convert --converter iob"):
        format_of(tmp_path / name, ConvertSettings())
    settings = ConvertSettings(delimiter="|")
    docs, _ = read(tmp_path / name, "Ada|NNP|B-PER\nran|VBD|O\n", settings=settings)
    assert [span.label_ for doc in docs for span in doc.ents] == ["PER"]


JSON, TOKENS = '{"text": "Ada", "label": [[0, 3, "PER"]]}\n', "token,tag,ner\nAda,NNP,B-PER\n"


@pytest.mark.parametrize(
    "text, option, format_, formats",
    [
        (JSON, {"label": 2}, "json", "columns"),
        (JSON, {"attributes": {"pos": 1}}, "json", "columns"),
        (JSON, {"word_prefix": "word="}, "json", "crfsuite"),
        (TOKENS, {"label": 2}, "table", "columns"),
        (COLUMNS[0], {"record": "p"}, "columns", "xml"),
        (COLUMNS[0], {"names": ["O", "B-PER"]}, "columns", "json, table"),
    ],
)
def test_options_of_other_formats_are_refused(tmp_path, text, option, format_, formats):
    settings = ConvertSettings(**option)
    name = "--" + next(iter(option)).replace("attributes", "attribute").replace("_", "-")
    expected = (
        rf"H581\] {name} has no effect on .*a, which is read as {format_}: it is for {formats}\."
    )
    with pytest.raises(ValueError, match=expected):
        read(tmp_path / "a", text, settings=settings)
    (tmp_path / "b.xml").write_text("<a><p>Ada <i>ran</i></p><p>Max</p></a>", encoding="utf8")
    if "record" in option:  # some file of the folder is read by it
        docs, _ = read(tmp_path, settings=settings)
        assert docs
