"""`python -m spacy hocrf convert` of phrases beside texts, of letters and of chats, and corpora that are
written again: round trips, and counts by another way.
"""

import gzip
import os
import re
import tarfile
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import spacy
import srsly
from small_corpus import fit, untrained
from spacy.tokens import DocBin
from typer.testing import CliRunner

from spacy_hocrf.cli import hocrf_cli
from spacy_hocrf.cli.convert.command import convert
from spacy_hocrf.cli.convert.records import Report, Settings
from spacy_hocrf.links.corpus import LinksCorpus
from spacy_hocrf.pipeline.handover import AttributesCorpus

DATA = Path(os.environ.get("HOCRF_DATA", "nowhere"))


@pytest.fixture
def data():
    if not DATA.is_dir():
        pytest.skip("needs the corpora in HOCRF_DATA")
    return DATA


def run(path, *options):
    return CliRunner().invoke(hocrf_cli, ["convert", str(path), *map(str, options)])


def read(path, **settings):
    """The Docs of a file, and what of it was lost."""
    report = Report()
    return list(convert(path, spacy.blank("xx"), report, **settings)), report.lost


def written(tmp_path, name, text, *options):
    """The Docs that the command writes, and what it prints."""
    (tmp_path / name).write_text(text, encoding="utf8", newline="")
    done = run(tmp_path / name, tmp_path / "out.spacy", *options)
    assert done.exit_code == 0, done.output
    docs = DocBin(store_user_data=True).from_disk(tmp_path / "out.spacy")
    return list(docs.get_docs(spacy.blank("xx").vocab)), done.output


def named(spans):
    return [(span.text, span.label_) for span in spans]


# -------------------- phrases


def test_phrases_are_found_in_their_texts(tmp_path):
    text = (
        "7\tPER/John;PER/john lennon; LOC/Ulm;ORG/AC/DC;\tJohn Lennon met  John of AC\\/DC in\xa0Ulm\r"
        "8\t\tnothing here\r"
        "9\tLOC/Ulm;LOC/Rome;\tUlm-based\r"
    )
    (first, second, third), output = written(tmp_path, "a.tsv", text, "--format", "phrases")
    assert named(first.ents) == [
        ("John Lennon", "PER"),
        ("John", "PER"),
        ("AC\\/DC", "ORG"),
        ("Ulm", "LOC"),
    ]
    assert first.text == "John Lennon met John of AC\\/DC in Ulm"
    assert [doc._.number for doc in (first, second, third)] == ["7", "8", "9"]
    assert not second.ents and not third.ents
    assert "phrases that are not in their texts" in output and "line 3" in output
    assert [token.ent_iob for token in third] == [0] and second[0].ent_iob_ == "O"
    assert "spans that fit no tokens" in output


def test_a_phrase_inside_a_token_can_have_all_of_it(tmp_path):
    text = "9\tLOC/Ulm;\tUlm-based\n"
    ((doc,), _) = written(tmp_path, "a.tsv", text, "-f", "phrases", "--align", "expand")
    assert named(doc.ents) == [("Ulm-based", "LOC")]


@pytest.fixture
def tweets(data):
    return data / "msm2013" / "TweetsTrainingSetCH.tsv"


def test_tweets_have_the_phrases_that_are_in_their_annotation(tweets):
    docs, lost = read(tweets, format_="phrases", align="expand", into="sc")
    lines = re.split("\r\n|\r|\n", tweets.read_bytes().decode("utf8").strip())
    labels = Counter(
        label for line in lines for label in re.findall(r"(?:^|;) *(\w+)/", line.split("\t")[1])
    )
    found = Counter(span.label_ for doc in docs for span in doc.spans["sc"])
    missing = lost["phrases that are not in their texts, the rest of which is unknown"]
    assert len(docs) == len(lines) and found.total() + missing == labels.total()
    assert found <= labels and missing == 8  # misspelt, or a _HASHTAG_ in the text
    for doc, line in zip(docs, lines):
        phrases = Counter(
            re.sub(r"\s|\\", "", each.partition("/")[2]).lower()
            for each in line.split("\t")[1].split(";")
        )
        whole = [re.sub(r"\s|\\", "", span.text).lower() for span in doc.spans["sc"]]
        assert all(any(phrase in each for phrase in phrases if phrase) for each in whole)


def test_tweets_in_a_round_trip(tmp_path, tweets):
    docs, lost = read(tweets, format_="phrases")
    assert set(lost) == {
        "phrases that are not in their texts, the rest of which is unknown",
        "spans that fit no tokens, whose tokens are unknown: see --align",
    }
    rows = [
        f"{doc._.number}\t{''.join(f'{e.label_}/{e.text};' for e in doc.ents)}\t{doc.text}\n"
        for doc in docs
    ]
    (tmp_path / "again.tsv").write_text("".join(rows), encoding="utf8", newline="\n")
    again, lost = read(tmp_path / "again.tsv", format_="phrases")
    assert [(d.text, named(d.ents)) for d in again] == [(d.text, named(d.ents)) for d in docs]
    assert [[(e.start, e.end) for e in d.ents] for d in again] == [
        [(e.start, e.end) for e in d.ents] for d in docs
    ]
    assert not lost


# -------------------- letters


def line_of_letter(number, letter, after, word, place, fold, pixels):
    return "\t".join(map(str, (number, letter, after, word, place, fold, *pixels))) + "\t\n"


LETTERS = [
    line_of_letter(1, "o", 2, 1, 1, 0, [0, 1, 0, 1]),
    line_of_letter(2, "m", -1, 1, 2, 0, [1, 1, 0, 0]),
    line_of_letter(3, "a", -1, 2, 1, 7, [0, 0, 0, 1]),
]


def test_letters_are_tags_of_images(tmp_path):
    docs, output = written(tmp_path, "letter.data", "".join(LETTERS), "--format", "letters")
    assert [[token.tag_ for token in doc] for doc in docs] == [["o", "m"], ["a"]]
    assert [(doc._.word, doc._.fold) for doc in docs] == [("1", "0"), ("2", "7")]
    assert docs[0][1]._.pixels.tolist() == [1, 1, 0, 0] and docs[0].text == "# # "
    assert "2 texts, 3 tokens, 3 tags" in output
    (first, _), _ = written(
        tmp_path, "letter.data", "".join(LETTERS), "-f", "letters", "-i", "ents"
    )
    assert named(first.ents) == [("#", "o"), ("#", "m")]


def test_letters_can_be_learnt(tmp_path):
    written(tmp_path, "letter.data", "".join(LETTERS) * 3, "--format", "letters")
    corpus = AttributesCorpus(tmp_path / "out.spacy", ["pixels"], gold_preproc=True)
    data = list(corpus(spacy.blank("xx")))
    real = {"@misc": "spacy-hocrf.Real.v1", "source": "_.pixels"}
    features = {"@misc": "spacy-hocrf.Features.v1", "basics": False, "*": {"pixels": real}}
    nlp = untrained("hocrf_tagger", {"features": features})
    nlp.initialize(lambda: data)
    fit(nlp, data)
    docs = [nlp(example.predicted.copy()) for example in data]
    assert [[t.tag_ for t in doc] for doc in docs] == [["o", "m"], ["a"]] * 3


def test_handwriting_to_the_byte(data):
    path = data / "ocr" / "letter.data.gz"
    docs, lost = read(path, format_="letters")
    rows, number = [], 0
    for doc in docs:
        for i, token in enumerate(doc, start=1):
            number += 1
            after = -1 if i == len(doc) else number + 1
            known = (number, token.tag_, after, doc._.word, i, doc._.fold)
            rows.append(line_of_letter(*known, token._.pixels.astype(int)))
    source = gzip.decompress(path.read_bytes()).decode("ascii")
    assert "".join(rows) == source and not lost
    table = np.array([line.split("\t")[:6] for line in source.splitlines()])
    assert len(docs) == len(set(table[:, 3])) == 6877
    assert Counter(t.tag_ for doc in docs for t in doc) == Counter(table[:, 1].tolist())
    folds = Counter(table[table[:, 4] == "1", 5].tolist())
    assert Counter(doc._.fold for doc in docs) == folds


# -------------------- chats

LOG = (
    "[03:18] <ann> before\n=== bob joined\n[03:19] <bob> tea?\n[03:19] <cy> cake? \n\n"
    "[03:20]  * ann drinks\n[23:59] <bob> ok\nafterwards\n"
)
LINKS = "1 1 -\n2 2 - \n0 3 -\n2 5 -\n6 3 -\n5 6 -\n"


def chat(folder, log=LOG, links=LINKS, name="a"):
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.ascii.txt").write_text(log, encoding="utf8")
    if links is not None:
        (folder / f"{name}.annotation.txt").write_text(links, encoding="utf8")
    return folder / f"{name}.ascii.txt"


def test_chats_are_messages_and_links(tmp_path):
    done = run(chat(tmp_path / "chats"), tmp_path / "out.spacy")
    assert done.exit_code == 0, done.output
    docs = DocBin(store_user_data=True).from_disk(tmp_path / "out.spacy")
    (doc,) = docs.get_docs(spacy.blank("xx").vocab)
    assert doc.text == "\n".join(LOG.split("\n")[1:7])
    spans = list(doc.spans["sc"])
    assert [span.text for span in spans] == [
        line.strip() for line in LOG.split("\n")[1:7] if line.strip()
    ]
    assert [span.label_ for span in spans] == ["note", "message", "message", "action", "message"]
    assert [span.id_ for span in spans] == ["1", "2", "3", "5", "6"]
    assert [span._.author for span in spans] == [None, "bob", "cy", "ann", "bob"]
    assert [span._.minute for span in spans] == [None, 199, 199, 200, 1439]
    assert [list(pair) for pair in doc._.hocrf_links] == [[0, 0], [1, 1], [3, 1], [4, 2], [4, 3]]
    assert doc._.log == "a"
    said = " ".join(done.output.split())
    assert "1 links to lines before the annotated part" in said and "a, line 2" in said


def test_links_of_a_folder_can_be_learnt(tmp_path):
    texts = ["[01:00] <a> want tea", "[01:01] <b> want cake", "[01:02] <c> take tea"]
    for name, lines in (("a", texts), ("b", [*texts, "[01:03] <d> take cake"])):
        links = "0 0 -\n1 1 -\n0 2 -\n" + ("1 3 -\n" if name == "b" else "")
        chat(tmp_path / "chats", "\n".join(lines), links, name)
    chat(tmp_path / "chats", "[01:00] <a> hi", "", "c")  # nothing is annotated there
    done = run(tmp_path / "chats", tmp_path / "out.spacy")
    assert done.exit_code == 0 and "2 texts" in done.output
    nlp = spacy.blank("xx")
    corpus = LinksCorpus(tmp_path / "out.spacy", ["sc"], ["author", "minute"])
    data = list(corpus(nlp))
    pairs = {"@misc": "spacy-hocrf.LinkPairs.v1", "itself": True}
    says = {"@misc": "spacy-hocrf.LinkAttribute.v1", "attr": "ORTH[-1]"}
    same = {"@misc": "spacy-hocrf.LinkSame.v1", "attr": "ORTH[-1]"}
    features = {
        "@misc": "spacy-hocrf.LinkFeatures.v1",
        "values": {"says": says, "same": same, "who": {**says, "attr": "_.author"}},
        "vertices": ["same + who(source)", "same + who(target)"],
        "edges": [],
    }
    nlp.add_pipe("hocrf_links", config={"pairs": pairs, "features": features})
    nlp.initialize(lambda: data)
    for _ in range(20):
        nlp.update(data)
    assert nlp.evaluate(data)["hocrf_links_f"] == 1.0


def test_logs_in_a_round_trip(tmp_path, data):
    with tarfile.open(data / "irc" / "irc_train_dev.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    for part, n in (("dev", 10), ("train", 153)):
        folder = tmp_path / "data" / part
        docs, lost = read(folder)
        assert len(docs) == n == len(list(folder.glob("*.ascii.txt")))
        kept = links = 0
        for doc in docs:
            lines = (folder / f"{doc._.log}.ascii.txt").read_text(encoding="utf8").split("\n")
            spans = list(doc.spans["sc"])
            numbers = [int(span.id_) for span in spans]
            assert [lines[number].strip() for number in numbers] == [span.text for span in spans]
            assert all(later == earlier + 1 for earlier, later in pairwise(numbers))
            assert doc.text == "\n".join(lines[numbers[0] : numbers[-1] + 1])
            again = [f"{numbers[j]} {numbers[i]} -" for i, j in doc._.hocrf_links]
            path = folder / f"{doc._.log}.annotation.txt"
            source = [
                row.strip() for row in path.read_text(encoding="utf8").splitlines() if row.strip()
            ]
            first = min(int(row.split()[1]) for row in source)
            assert again == [row for row in source if int(row.split()[0]) >= first]
            authors = [re.match(r"\[..:..\] (?:<([^>]*)>| \* (\S+))", span.text) for span in spans]
            assert [span._.author for span in spans] == [a and (a[1] or a[2]) for a in authors]
            kept, links = kept + len(again), links + len(source)
        assert dict(lost) == {
            "links to lines before the annotated part, or to empty ones: left out": links - kept
        }


# -------------------- what is malformed


@pytest.mark.parametrize(
    "format_, text, parts",
    [
        ("phrases", "1\tPER/a;\ta\n2\tb\n", ["line 2", "2 columns", "TYPE/phrase"]),
        ("phrases", "1\tPER;\ta\n", ["line 1", "'PER' without a phrase"]),
        ("phrases", "1\t/a;\ta\n", ["line 1", "'a' without a type"]),
        ("letters", "1 o 2\n", ["line 1", "1 columns", "number, letter, next"]),
        ("letters", LETTERS[1] + LETTERS[2][:-3] + "\n", ["line 1", "letter 2 of word 1"]),
        ("letters", LETTERS[2] + LETTERS[2][:-4] + "\n", ["line 2", "9 columns", "10 columns"]),
        (
            "letters",
            LETTERS[0] + LETTERS[2],
            ["line 2", "letter 1 of word 2, in fold 7", "letter 2"],
        ),
        ("letters", LETTERS[0], ["line 1", "the end of the file", "-1"]),
        ("letters", LETTERS[0].replace("\t0\t1\t0", "\t0\t7\t0"), ["line 1", "pixels", "0 or 1"]),
        ("chat", "[01:00] <a> hi\n", ["without annotation", "NAME.annotation.txt"]),
    ],
)
def test_what_is_malformed_is_named_with_its_place(tmp_path, format_, text, parts):
    (tmp_path / "a.txt").write_text(text, encoding="utf8")
    done = run(tmp_path / "a.txt", tmp_path / "out.spacy", "--format", format_)
    said = " ".join(done.output.split())
    assert done.exit_code == 1
    for part in ["H290", *parts]:
        assert part in said, said
    assert [each.name for each in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize(
    "links, parts",
    [
        (None, ["H290", "without annotation"]),
        ("1 x -\n", ["H290", "a.annotation.txt", "line 1", "'1 x -'"]),
        ("1 1\n2 9 -\n", ["H290", "line 2", "line 9", "which has 9"]),
        ("", ["H293"]),
    ],
)
def test_malformed_links(tmp_path, links, parts):
    done = run(chat(tmp_path / "chats", links=links), tmp_path / "out.spacy")
    said = " ".join(done.output.split())
    assert done.exit_code == 1 and all(part in said for part in parts), said


@pytest.mark.parametrize("name", ["a.conll.gz", "a.jsonl.gz", "a.xml.gz", "a.conllu.gz"])
def test_compressed_files(tmp_path, name):
    text = {
        "a.conll.gz": "Ada\tB-P\n",
        "a.jsonl.gz": '{"text": "Ada", "label": [[0, 3, "P"]]}\r{"text": "a", "label": []}',
        "a.xml.gz": "<c><s><P>Ada</P></s></c>",
        "a.conllu.gz": "1 Ada Ada X X _ 0 root _ _\n\n".replace(" ", "\t"),
    }[name]
    (tmp_path / name).write_bytes(gzip.compress(text.encode()))
    docs, _ = read(tmp_path / name)
    assert docs[0].text.strip() == "Ada"
    assert "conllu" in name or named(docs[0].ents) == [("Ada", "P")]
    (tmp_path / name).write_bytes(gzip.compress(text.encode())[:-9])
    with pytest.raises(ValueError, match=r"H290.*gzip"):
        read(tmp_path / name)


# -------------------- further corpora


@pytest.mark.parametrize(
    "name", ["anystyle/core.xml", "references-from-papers/paper-references.jsonl"]
)
def test_a_round_trip_through_json(tmp_path, data, name):
    docs, lost = read(data / name, align="expand", into="sc")
    rows = [
        {
            "text": doc.text,
            "spans": [[s.start_char, s.end_char, s.label_] for s in doc.spans["sc"]],
        }
        for doc in docs
    ]
    srsly.write_jsonl(tmp_path / "again.jsonl", rows)
    again, nothing = read(tmp_path / "again.jsonl", into="sc")
    for doc, other in zip(docs, again, strict=True):
        assert doc.text == other.text and named(doc.spans["sc"]) == named(other.spans["sc"])
    assert not nothing and set(lost) <= {"spans that were fitted to tokens"}


def test_references_of_papers_have_as_many_fields(data):
    path = data / "references-from-papers" / "paper-references.jsonl"
    docs, lost = read(path, align="expand", into="sc")
    source = path.read_text(encoding="utf8")
    fields = re.findall(r'\[\d+, \d+, "(\w+)"\]', source)
    assert Counter(s.label_ for doc in docs for s in doc.spans["sc"]) == Counter(fields)
    assert len(docs) == source.count('"text"') == 90 and "spans that fit no tokens" not in lost


@pytest.mark.parametrize(
    "name", ["hosemicrf/punc/punc.tr", "iwslt_punct/test2011", "ewt/en_ewt-ud-dev.conllu.gz"]
)
def test_tags_in_a_round_trip_through_columns(tmp_path, data, name):
    docs, _ = read(data / name, into="tags")
    rows = ["".join(f"{token.text}\t{token.tag_}\n" for token in doc) for doc in docs]
    (tmp_path / "again.txt").write_text("\n".join(rows), encoding="utf8", newline="\n")
    again, lost = read(tmp_path / "again.txt", into="tags")
    assert [[(t.text, t.tag_) for t in doc] for doc in again] == [
        [(t.text, t.tag_) for t in doc] for doc in docs
    ]
    assert not lost


def test_annotated_tweets_of_a_tool_in_columns(data):
    path = data / "msm2013" / "msm2013.ner"
    docs, lost = read(path, settings=Settings(delimiter=" "), into="tags")
    lines = [
        line.split(" ") for line in path.read_text(encoding="utf8").split("\n") if line.strip()
    ]
    labels = Counter(label for word, label in lines if word)
    assert Counter(token.tag_ for doc in docs for token in doc) == labels
    assert dict(lost) == {"lines with an empty token: left out": len(lines) - labels.total()}
