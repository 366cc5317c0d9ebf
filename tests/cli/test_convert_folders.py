"""`python -m spacy hocrf convert` of a folder: which files are read, and how a file's format is known."""

import gzip
import json
from functools import partial

import commands
import pytest
import spacy
from converting import read
from spacy.tokens import Doc, DocBin

from spacy_hocrf.cli.convert.formats import FORMATS, format_of
from spacy_hocrf.cli.convert.records import ConvertSettings


def files(folder, contents):
    for name, text in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf8")
    return folder


run = partial(commands.run, "convert")


def test_all_files_of_a_folder_are_read_in_order(tmp_path):
    folder = files(
        tmp_path / "in",
        {
            "b.conll": "Max B-P\n",
            "a.conll": "Ada B-P\n",
            "more/c.jsonl": '{"text": "Kim", "label": [[0, 3, "P"]]}\n',
            "more/.hidden.txt": "x",
            ".git/d.txt": "x",
            "README.md": "All about it.",
        },
    )
    done = run(folder, tmp_path / "out.spacy")
    docs = DocBin().from_disk(tmp_path / "out.spacy").get_docs(spacy.blank("xx").vocab)
    assert [doc.text.strip() for doc in docs] == ["Ada", "Max", "Kim"]
    assert "files of no known format" in done and "README.md" in done


def test_places_in_a_folder_have_the_name_of_the_file(tmp_path):
    folder = files(tmp_path / "in", {"a.txt": "a O\n", "b.txt": "a B-P\n\na I-Q\n"})
    _, report = read(folder)
    assert [loss.place for loss in report.losses] == ["b.txt, line 3"]


def test_a_format_can_be_named_for_a_folder(tmp_path):
    folder = files(tmp_path / "in", {"a.txt": "a O\n", "b.weird": "b O\n", "c.json": "[]"})
    assert [doc.text for doc in read(folder, format_="columns")[0]] == ["a ", "b "]
    weird = files(tmp_path / "weird", {"a.weird": "a O\n"})
    assert [doc.text for doc in read(weird, format_="columns")[0]] == ["a "]


def test_a_folder_without_files(tmp_path):
    done = run(tmp_path, tmp_path / "out.spacy", code=1)
    assert "H290" in done and "brat" in done
    assert "found 0 files" in " ".join(done.split())


@pytest.mark.parametrize(
    "name, text, expected",
    [
        ("a.conll", "Ada B-P\n", "columns"),
        ("a", "Ada B-P\n", "columns"),
        ("a.jsonl", '{"text": "Ada"}\n', "json"),
        ("a", '{"text": "Ada"}\n', "json"),
        ("a.txt", '[\n{"text": "Ada"}]', "json"),
        ("a.json", "{", "json"),
        ("a.xml", "<a/>", "xml"),
        ("a", "<?xml version='1.0'?>\n<a/>", "xml"),
        ("a.conll", "\t".join(["1", "Ada", *"_" * 8]), "conllu"),
        ("a", "B-P\tw[0]=Ada\tcap\n", "crfsuite"),
        ("a.txt", "token,tag\nAda,B-P\n", "table"),
        ("a.txt", "T1\tP 0 3\tAda\n", "brat"),
        ("a.conll", "#FORMAT=WebAnno TSV 3.2\n", "webanno"),
        ("a.conll", "", "columns"),
        ("a.json", " \n", "json"),
    ],
)
def test_the_format_of_a_file(tmp_path, name, text, expected):
    (tmp_path / name).write_text(text, encoding="utf8")
    assert format_of(tmp_path / name, ConvertSettings()) == expected and expected in FORMATS
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
    assert format_of(tmp_path / f"{name}.gz", ConvertSettings()) == expected


def test_a_fifth_of_the_texts_goes_to_another_file_and_equal_ones_to_the_same(tmp_path):
    rows = [{"text": f"Ada met {name}", "label": [[0, 3, "P"]]} for name in range(60)] * 2

    def parts(rows):
        path = tmp_path / "a.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf8")
        run(path, tmp_path / "train.spacy", "--dev", tmp_path / "dev.spacy")
        vocab = spacy.blank("xx").vocab
        return [
            [doc.text for doc in DocBin().from_disk(tmp_path / f"{part}.spacy").get_docs(vocab)]
            for part in ("train", "dev")
        ]

    train, dev = parts(rows)
    assert len(train) + len(dev) == 120 and 10 <= len(dev) <= 40
    assert not {*train} & {*dev}
    fewer = parts(rows[:30])
    assert {*fewer[0]} <= {*train} and {*fewer[1]} <= {*dev}
    assert parts(rows[:1]) == [["Ada met 0"]] * 2


def test_all_losses_go_to_a_file(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "Adas ran", "label": [[0, 3, "P"]]}\n' * 5)
    done = run(path, tmp_path / "out.spacy", "--losses", tmp_path / "losses.tsv")
    assert "line 1; line 2; line 3; …" in done
    rows = [line.split("\t") for line in (tmp_path / "losses.tsv").read_text().splitlines()]
    assert [(place, times) for _, place, times in rows] == [(f"line {i}", "1") for i in range(1, 6)]
    assert {what for what, _, _ in rows} == {
        "spans that fit no tokens: unknown, see hocrf convert --lang and --align"
    }


def test_extension_attributes_of_ids_are_there_once_a_component_is():
    spacy.blank("xx").add_pipe("hocrf")
    assert Doc.has_extension("hocrf_id") and Doc.has_extension("hocrf_meta")
