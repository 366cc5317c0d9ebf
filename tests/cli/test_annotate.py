"""`python -m spacy hocrf annotate`: what it writes, what it rejects, what is left when it is ended."""

import errno
import json
import random
import re
import subprocess
import sys
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import commands
import pytest
import spacy
from annotating import some_texts, write_deadly, write_pipeline
from spacy.tokens import DocBin

from spacy_hocrf.annotation.acceptance import Acceptance
from spacy_hocrf.cli.annotate import command
from spacy_hocrf.cli.annotate.annotator import Annotator
from spacy_hocrf.cli.annotate.command import locked
from spacy_hocrf.cli.annotate.parts import Parts
from spacy_hocrf.cli.files import write_whole

pyarrow = pytest.importorskip("pyarrow")
from pyarrow import parquet  # noqa: E402

PIPES = {"hocrf": {}, "hocrf_spans": {"spans_key": "found"}, "hocrf_tagger": {}}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for factory, settings in PIPES.items():
        write_pipeline(folder / factory, factory, **settings)
    return folder


@pytest.fixture(scope="module")
def model(models):
    return models / "hocrf"


@pytest.fixture(scope="module")
def texts():
    return some_texts()


annotated = partial(commands.run, "annotate")


def code_of(*arguments):
    """What the command prints that ends with an error, in one line."""
    return annotated(*arguments, code=1).replace("\n", " ")


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf8").split("\n") if line]


def write(path, texts):
    """Texts with a number in the format of the suffix."""
    rows = [{"id": i, "text": text} for i, text in enumerate(texts)]
    if path.suffix == ".txt":
        path.write_text("".join(f"{text}\n" for text in texts), encoding="utf8")
    elif path.suffix == ".jsonl":
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf8")
    elif path.suffix == ".parquet":
        parquet.write_table(pyarrow.Table.from_pylist(rows), path, row_group_size=3)
    else:
        nlp = spacy.blank("en")
        DocBin(docs=map(nlp.make_doc, texts)).to_disk(path)
    return path


def write_rows(path, rows):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def row_of(ent, score=lambda p: p):
    place = {"start": ent.start_char, "end": ent.end_char, "label": ent.label_}
    return {**place, "score": score(ent._.hocrf_score)}


def expected(model, texts):
    """Spans of each text, with their probabilities to six digits."""
    near = partial(pytest.approx, abs=1e-6)
    return [[row_of(ent, near) for ent in doc.ents] for doc in map(spacy.load(model), texts)]


@pytest.mark.parametrize("size", [1, 4, 100])
@pytest.mark.parametrize("suffix", [".txt", ".jsonl", ".parquet", ".spacy"])
def test_spans_are_those_of_the_pipeline_in_the_order_of_the_texts(
    model, texts, suffix, size, tmp_path
):
    path, output = write(tmp_path / f"texts{suffix}", texts), tmp_path / "out.jsonl"
    annotated(model, path, output, "--size", size)
    rows = lines(output)
    assert [row["text"] for row in rows] == texts
    assert [row["spans"] for row in rows] == expected(model, texts)
    if suffix in (".jsonl", ".parquet"):
        assert [row["id"] for row in rows] == list(range(len(texts)))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["out.jsonl", path.name]


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_a_text_keeps_its_id_on_its_way_through_docs(model, suffix, tmp_path):
    rows = [
        {"id": "a", "text": "Ada slept", "meta": {"page": 1}},
        {"text": "Ada ran"},
        {"id": 7, "text": "Ada sang", "by": ["Kim"]},
    ]
    write_rows(tmp_path / "in.jsonl", rows)
    annotated(model, tmp_path / "in.jsonl", tmp_path / "docs.spacy")
    annotated(model, tmp_path / "docs.spacy", tmp_path / f"out{suffix}")
    if suffix == ".jsonl":
        rows = lines(tmp_path / "out.jsonl")
        assert [row.get("meta") for row in rows] == [{"page": 1}, None, {"by": ["Kim"]}]
    else:
        rows = parquet.read_table(tmp_path / "out.parquet").to_pylist()
        assert [row["meta"] for row in rows] == ['{"page":1}', None, '{"by":["Kim"]}']
    assert [row.get("id") for row in rows] == ["a", None, "7"]


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet", ".spacy"])
def test_formats_have_the_same_spans(model, texts, suffix, tmp_path):
    texts = [*texts, "", " "]
    path, output = write(tmp_path / "texts.jsonl", texts), tmp_path / f"out{suffix}"
    annotated(model, path, output, "--size", 3)
    want = expected(model, texts)
    if suffix == ".spacy":
        docs = list(DocBin().from_disk(output).get_docs(spacy.load(model).vocab))
        found = [[row_of(ent) for ent in doc.ents] for doc in docs]
        assert [doc.text for doc in docs] == texts
    elif suffix == ".parquet":
        table = parquet.read_table(output)
        assert table.column_names == ["id", "text", "spans"]
        assert table["text"].to_pylist() == texts
        found = table["spans"].to_pylist()
    else:
        found = [row["spans"] for row in lines(output)]
    assert found == want


def test_what_a_table_has_besides_keeps_its_type(model, texts, tmp_path):
    ids = pyarrow.array(range(len(texts)), pyarrow.uint8())
    when = pyarrow.array([None, *range(1, len(texts))], pyarrow.timestamp("ms"))
    table = pyarrow.table({"id": ids, "when": when, "line": texts})
    parquet.write_table(table, tmp_path / "texts.parquet")
    annotated(
        model, tmp_path / "texts.parquet", tmp_path / "out.parquet", "--size", 2, "--text", "line"
    )
    found = parquet.read_table(tmp_path / "out.parquet")
    assert found.drop_columns(["spans"]).equals(table)


@pytest.mark.parametrize("size", [1, 3, 5000])
def test_what_texts_have_besides_is_text_in_a_table_or_null(model, texts, size, tmp_path):
    pages = [{}, {"page": 7}, {"page": None}, {"page": "7a"}, {"page": [2**70, {"a": 0.5}]}]
    write_rows(tmp_path / "texts.jsonl", [{"text": t, **page} for t, page in zip(texts, pages)])
    annotated(model, tmp_path / "texts.jsonl", tmp_path / "out.parquet", "--size", size)
    table = parquet.read_table(tmp_path / "out.parquet")
    assert table["page"].to_pylist() == [None, "7", None, "7a", f'[{2**70},{{"a":0.5}}]']


@pytest.mark.parametrize("factory", ["hocrf_spans", "hocrf_tagger"])
def test_spans_and_tags_are_written_with_their_probabilities(models, texts, factory, tmp_path):
    path = write(tmp_path / "texts.txt", texts)
    annotated(models / factory, path, tmp_path / "out.jsonl")
    nlp = spacy.load(models / factory)
    for row, doc in zip(lines(tmp_path / "out.jsonl"), nlp.pipe(texts), strict=True):
        if factory == "hocrf_tagger":
            want = [(t.idx, t.idx + len(t), t.tag_, t._.hocrf_score) for t in doc]
        else:
            spans = doc.spans["found"]
            want = [(s.start_char, s.end_char, s.label_, s._.hocrf_score) for s in spans]
        assert [tuple(span.values())[:3] for span in row["spans"]] == [each[:3] for each in want]
        scores = [span["score"] for span in row["spans"]]
        assert scores == pytest.approx([each[3] for each in want], abs=1e-6)


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_further_readings_and_probable_spans(model, texts, suffix, tmp_path):
    path, output = write(tmp_path / "texts.txt", texts), tmp_path / f"out{suffix}"
    annotated(model, path, output, "--n-best", 3, "--at-least", 0.01)
    rows = lines(output) if suffix == ".jsonl" else parquet.read_table(output).to_pylist()
    nlp = spacy.load(model)
    for row, doc in zip(rows, map(nlp, texts), strict=True):
        reading = nlp.get_pipe("hocrf").reading(doc)
        probable = [pytest.approx(s.probability, abs=1e-6) for s in reading.spans(0.01)]
        assert [span["score"] for span in row["candidates"]] == probable
        best = reading.best(3)
        chances = [pytest.approx(each.probability, abs=1e-6) for each in best]
        assert [each["probability"] for each in row["readings"]] == chances
        for each, mine in zip(row["readings"], best, strict=True):
            spans = [doc[start:end] for start, end, _ in mine.spans]
            assert [(s["start"], s["end"]) for s in each["spans"]] == [
                (span.start_char, span.end_char) for span in spans
            ]


def test_a_folder_of_texts_becomes_a_folder_of_parts(model, texts, tmp_path):
    (tmp_path / "in").mkdir()
    write(tmp_path / "in" / "a.jsonl", texts[:5])
    write(tmp_path / "in" / "b.jsonl", texts[5:])
    output = tmp_path / "out"
    annotated(model, tmp_path / "in", output, "--size", 3)
    parts = sorted(output.glob("part-*.jsonl"))
    assert [len(lines(part)) for part in parts] == [3, 2, 3, 2]
    assert [row["text"] for part in parts for row in lines(part)] == texts
    before = {part: part.stat().st_mtime_ns for part in parts}
    annotated(model, tmp_path / "in", output, "--size", 3)  # nothing is left to do
    assert {part: part.stat().st_mtime_ns for part in parts} == before


def test_speed_and_time_left_are_those_of_texts_that_were_left(model, texts, tmp_path, monkeypatch):
    bars = []

    class Bar(command.tqdm):
        def close(self):
            if not self.disable:  # as it is once it is closed
                bars.append((self.n, self.initial, self.total))
            super().close()

    monkeypatch.setattr(command, "tqdm", Bar)
    path, output = write(tmp_path / "t.jsonl", texts), tmp_path / "out"
    annotated(model, path, output, "--size", 3)
    for part in sorted(output.glob("part-*"))[::2]:
        part.unlink()
    annotated(model, path, output, "--size", 3)
    assert bars == [(10, 0, 10), (10, 4, 10)]


def test_a_job_goes_on_where_progress_bars_are_off(model, texts, tmp_path, monkeypatch):
    class Bar(command.tqdm):  # what TQDM_DISABLE=1 makes of it
        def __init__(self, *args, **settings):
            super().__init__(*args, **settings, disable=True)

    monkeypatch.setattr(command, "tqdm", Bar)
    path, output = write(tmp_path / "t.jsonl", texts), tmp_path / "out"
    annotated(model, path, output, "--size", 3)
    (output / "part-000000.jsonl").unlink()
    annotated(model, path, output, "--size", 3)


BAD = [
    (b'{"text": ', "Expecting value"),
    (b"", "found an empty line"),
    (b"[1]", "found [1], expected a JSON object"),
    (b"null", "found null, expected a JSON object"),
    (b'{"line": "a"}', "found 'line', expected a text in the field 'text': see --text"),
    (b'{"text": 3}', "found 3 in the field 'text'"),
    (b'{"text": "\xff"}', "can't decode byte 0xff"),
    (b'{"text": "a", "spans": []}', "has a field 'spans', which is to be written: see --into"),
]


@pytest.mark.parametrize("suffix", [".spacy", ".txt", ".jsonl"])
@pytest.mark.parametrize(
    "options",
    [
        ("--into", "text"),
        ("--text", "spans"),
        ("--text", "readings", "--n-best", "2"),
        ("--into", "candidates", "--at-least", "0.5"),
    ],
)
def test_nothing_is_written_over_the_text_or_another_field(model, texts, tmp_path, suffix, options):
    path = write(tmp_path / f"texts{suffix}", texts)
    said = code_of(model, path, tmp_path / "out.jsonl", *options)
    assert "H247" in said and f"'{options[1]}'" in said
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("bad, reason", BAD)
def test_a_bad_text_is_rejected_and_the_others_are_annotated(model, texts, bad, reason, tmp_path):
    good = [json.dumps({"text": text}).encode() for text in texts]
    path, output = tmp_path / "texts.jsonl", tmp_path / "out.jsonl"
    path.write_bytes(b"\n".join([*good[:4], bad, *good[4:]]) + b"\n")
    printed = annotated(model, path, output, "--size", 3)
    assert [row["text"] for row in lines(output)] == texts
    [rejected] = lines(tmp_path / "out.jsonl.rejects.jsonl")
    assert rejected["number"] == 5 and reason in rejected["reason"]
    assert "1 texts could not be read" in printed


def test_a_text_of_more_than_a_million_characters_is_annotated(model, texts, tmp_path):
    long = "a " * 600_000 + texts[0]
    path = write(tmp_path / "texts.jsonl", [texts[0], long, f"{long} \n"])
    annotated(model, path, tmp_path / "out.jsonl")  # the last one as a Doc
    rows = lines(tmp_path / "out.jsonl")
    assert [row["text"] for row in rows] == [texts[0], long, f"{long} \n"]
    assert all(row["spans"][-1]["end"] > 1_200_000 for row in rows[1:])


def test_a_text_that_the_pipeline_refuses_is_rejected(model, texts, tmp_path):
    nlp = spacy.load(model)
    nlp.add_pipe("sentencizer")  # spaCy's components may need much memory for a long text
    nlp.to_disk(tmp_path / "model")
    path = write(tmp_path / "texts.jsonl", [*texts[:2], "a " * 600_000, *texts[2:]])
    annotated(tmp_path / "model", path, tmp_path / "out.jsonl")
    assert [row["text"] for row in lines(tmp_path / "out.jsonl")] == texts
    [rejected] = lines(tmp_path / "out.jsonl.rejects.jsonl")
    assert rejected["number"] == 3 and "[E088]" in rejected["reason"]
    assert len(rejected["found"]) == 200


@pytest.mark.parametrize("suffix", [".spacy", ".parquet"])
@pytest.mark.parametrize(
    "page", ["\ud83d", ["\ud83d"], {"\ud83d": 1}, {"a": ["\ud83d"]}], ids=ascii
)
def test_a_text_with_half_a_character_elsewhere_is_rejected_where_it_cannot_be_written(
    model, texts, suffix, page, tmp_path
):
    rows = [{"text": texts[0]}, {"text": texts[1], "page": page}, {"text": texts[2]}]
    write_rows(tmp_path / "texts.jsonl", rows)
    annotated(model, tmp_path / "texts.jsonl", tmp_path / f"out{suffix}")
    annotated(model, tmp_path / f"out{suffix}", tmp_path / "again.jsonl", "--into", "spans2")
    assert [row["text"] for row in lines(tmp_path / "again.jsonl")] == [texts[0], texts[2]]
    [rejected] = lines(tmp_path / f"out{suffix}.rejects.jsonl")
    assert rejected["number"] == 2
    assert "'page'" in rejected["reason"] and "half a character" in rejected["reason"]


def test_columns_of_several_tables_have_one_type(model, texts, tmp_path):
    (tmp_path / "in").mkdir()
    for name, ids in (("a", [1, 2]), ("b", ["x", "y"])):
        table = pyarrow.table({"id": ids, "text": texts[:2]})
        parquet.write_table(table, tmp_path / "in" / f"{name}.parquet")
    said = code_of(model, tmp_path / "in", tmp_path / "out.parquet")
    assert "[H562]" in said and "Field id has incompatible types: int64 vs string" in said
    assert [each.name for each in tmp_path.iterdir()] == ["in"]
    annotated(model, tmp_path / "in", tmp_path / "out.jsonl")
    assert [row["id"] for row in lines(tmp_path / "out.jsonl")] == [1, 2, "x", "y"]


def test_what_docs_cannot_hold_is_written_to_them_as_to_lines(model, texts, tmp_path):
    table = pyarrow.table(
        {
            "id": [7, 8],
            "day": [date(1843, 9, 1), None],
            "at": [datetime(1843, 9, 1, 12, 30), datetime(1999, 1, 1)],
            "price": [Decimal("1.50"), Decimal("2.00")],
            "days": [[date(1843, 9, 1)], []],
            "took": [timedelta(seconds=5), None],
            "raw": [b"ab", None],
            "text": texts[:2],
        }
    )
    parquet.write_table(table, tmp_path / "in.parquet")
    annotated(model, tmp_path / "in.parquet", tmp_path / "out.jsonl")
    annotated(model, tmp_path / "in.parquet", tmp_path / "out.spacy")
    docs = DocBin(store_user_data=True).from_disk(tmp_path / "out.spacy")
    for doc, row in zip(docs.get_docs(spacy.blank("en").vocab), lines(tmp_path / "out.jsonl")):
        known = {name: value for name, value in row.items() if value is not None}
        assert doc._.hocrf_id == str(known.pop("id"))
        said = {**doc._.hocrf_meta, "text": doc.text, "spans": known["spans"]}
        assert json.loads(json.dumps(said)) == known  # lists of Docs are tuples
    assert lines(tmp_path / "out.jsonl")[0]["day"] == "1843-09-01"


def test_a_rejected_text_with_a_line_separator_is_told(model, texts, tmp_path):
    path = tmp_path / "texts.jsonl"
    path.write_text(f'{{"text": "{texts[0]}"}}\nno\u2028JSON\u0085\n', encoding="utf8")
    assert "1 rejected" in annotated(model, path, tmp_path / "out.jsonl")
    [rejected] = lines(tmp_path / "out.jsonl.rejects.jsonl")
    assert rejected["found"] == "no\u2028JSON\u0085\n"


@pytest.mark.parametrize("name", ["texts.txt", "texts.jsonl"])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_a_file_in_utf16_is_no_text_of_letters_and_zeros(model, texts, name, encoding, tmp_path):
    """As PowerShell writes it: what has only letters of ASCII would be UTF-8, too."""
    rows = [json.dumps({"text": each}) if name.endswith("l") else each for each in texts]
    (tmp_path / name).write_text("".join(f"{row}\n" for row in rows), encoding=encoding)
    assert "H403" in code_of(model, tmp_path / name, tmp_path / "out.jsonl")
    for rejected in lines(tmp_path / "out.jsonl.rejects.jsonl"):
        assert "UTF-16" in rejected["reason"], rejected


def test_numbers_are_handed_through_as_they_are(model, texts, tmp_path):
    rng = random.Random(0)
    numbers = [rng.random() * 10 ** rng.randint(-20, 20) for _ in range(200)] + [10**30, -(2**63)]
    rows = (json.dumps({"text": texts[0], "own": number}) for number in numbers)
    (tmp_path / "texts.jsonl").write_text("".join(f"{row}\n" for row in rows))
    annotated(model, tmp_path / "texts.jsonl", tmp_path / "out.jsonl")
    found = (tmp_path / "out.jsonl").read_bytes().splitlines()
    assert [json.loads(line)["own"] for line in found] == numbers


def test_lists_in_lists_without_end_are_rejected(model, texts, tmp_path):
    deep = "[" * 100_000
    path = tmp_path / "texts.jsonl"
    path.write_text(f'{{"text": "{texts[0]}"}}\n{{"text": "{texts[1]}", "own": {deep}\n')
    annotated(model, path, tmp_path / "out.jsonl")
    assert [row["text"] for row in lines(tmp_path / "out.jsonl")] == texts[:1]
    [rejected] = lines(tmp_path / "out.jsonl.rejects.jsonl")
    assert rejected["number"] == 2 and "too many" in rejected["reason"]


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_a_job_that_is_killed_before_any_change_of_a_file_goes_on():
    """Between its folder and its plan, between parts, while it gathers, and while it tidies up."""
    program = Path(__file__).parents[1] / "annotate_kills.py"
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for step in ("lock", "plan", "part", "rejects", "gather", "tidy"):
        assert re.search(rf"{step}: [1-9]", done.stdout), done.stdout


@pytest.mark.parametrize("options, code", [((), 0), (("--n-best", 2), 1)])
def test_a_job_that_was_ended_at_its_very_end_is_finished_by_the_same_command_alone(
    model, texts, options, code, tmp_path, monkeypatch
):
    path, output = write(tmp_path / "texts.jsonl", texts), tmp_path / "out.jsonl"
    with monkeypatch.context() as ended:
        ended.setattr(Parts, "sweep", lambda self: None)
        annotated(model, path, output)
    left = tmp_path / "out.jsonl.parts.unfinished"
    assert left.exists()
    said = annotated(model, path, output, *options, code=code)
    assert not left.exists()
    assert ("10 texts" in said) == (not code) and ("[H350]" in said) == bool(code)


def test_one_command_at_a_time_writes_to_an_output(model, texts, tmp_path):
    path, output = write(tmp_path / "texts.jsonl", texts), tmp_path / "out.jsonl"
    with locked(tmp_path / "out.jsonl.lock", output):
        assert "[H400]" in code_of(model, path, output)
        assert sorted(each.name for each in tmp_path.iterdir()) == ["out.jsonl.lock", "texts.jsonl"]
        annotated(model, path, tmp_path / "other.jsonl")
    (tmp_path / "out.jsonl.lock").touch()  # as a command leaves it that is killed
    annotated(model, path, output)
    assert not list(tmp_path.glob("*.lock"))


def test_a_place_without_locks_is_warned_of(model, texts, tmp_path, monkeypatch):
    def refusing(file):
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(command, "_lock", refusing)
    path = write(tmp_path / "texts.jsonl", texts)
    with pytest.warns(UserWarning, match=r"W048.*no locks"):
        annotated(model, path, tmp_path / "out.jsonl")


@pytest.mark.parametrize("name", ["out.jsonl", "out"])
def test_nothing_is_put_together_while_parts_are_missing(model, texts, name, tmp_path, monkeypatch):
    call = Annotator.__call__

    def losing(self, chunk):
        done = call(self, chunk)
        if chunk.number == 1:
            (self.parts.folder / "part-000001.jsonl").unlink()
        return done

    path, output = write(tmp_path / "texts.jsonl", texts), tmp_path / name
    with monkeypatch.context() as patch:
        patch.setattr(Annotator, "__call__", losing)
        said = code_of(model, path, output, "--size", 4)
    assert "[H402] 1 of 3 parts of" in said and "the first is part-000001.jsonl" in said
    assert not output.is_file()
    annotated(model, path, output, "--size", 4)
    parts = [output] if output.is_file() else sorted(output.glob("part-*"))
    assert [row["text"] for part in parts for row in lines(part)] == texts


def test_texts_that_change_meanwhile_are_noticed(model, texts, tmp_path, monkeypatch):
    path, call = write(tmp_path / "texts.jsonl", texts), Annotator.__call__

    def changing(self, chunk):
        write(path, texts[1:])
        return call(self, chunk)

    monkeypatch.setattr(Annotator, "__call__", changing)
    assert "[H347]" in code_of(model, path, tmp_path / "out.jsonl")
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.parametrize("name", ["out.jsonl", "out"])
def test_where_every_text_is_rejected_nothing_is_written(model, texts, name, tmp_path):
    path, output = write(tmp_path / "texts.jsonl", texts), tmp_path / name
    said = code_of(model, path, output, "--text", "line", "--size", 4)
    assert "[H403] None of 10 texts" in said and said.count("see --text") == 5
    assert "See --text" not in said
    rejects = tmp_path / f"{name}.rejects.jsonl"
    assert len(lines(rejects)) == 10 and not output.exists()
    annotated(model, path, output)  # with the right field at once
    assert not rejects.exists()


@pytest.mark.parametrize(
    "name, content, expected",
    [
        ("a.txt", b"\xef\xbb\xbfAda slept\r\n", ["Ada slept"]),  # a mark of the byte order
        ("a.txt", b"Ada\rslept", ["Ada", "slept"]),  # as on an old Mac
        ("a.jsonl", b'{"text": "\\r"}\r{"text": "a\xe2\x80\xa8b"}\r', ["\r", "a\u2028b"]),
    ],
)
def test_lines_are_those_of_whatever_wrote_the_file(model, tmp_path, name, content, expected):
    (tmp_path / name).write_bytes(content)
    annotated(model, tmp_path / name, tmp_path / "out.jsonl", "--size", 2)
    assert [row["text"] for row in lines(tmp_path / "out.jsonl")] == expected


@pytest.mark.parametrize("suffix", [".jsonl", ".spacy"])
def test_a_text_that_is_no_unicode_is_not_sent_where_it_cannot_be_read_either(
    model, texts, suffix, tmp_path
):
    write_rows(tmp_path / "texts.jsonl", [{"text": texts[0]}, {"text": "\ud83d"}])
    annotated(model, tmp_path / "texts.jsonl", tmp_path / f"out{suffix}")
    [rejected] = lines(tmp_path / f"out{suffix}.rejects.jsonl")
    assert rejected["reason"] == "found half a character (a lone surrogate) in the field 'text'"


def test_a_job_that_fails_goes_on_where_it_was(model, texts, tmp_path, monkeypatch):
    path, output, whole = (tmp_path / f"{name}.jsonl" for name in ("t", "out", "w"))
    write(path, texts)
    annotated(model, path, whole, "--size", 2)
    seen, call = [], Annotator.__call__

    def failing(self, chunk):
        if len(seen) in (1, 3):
            seen.append(None)
            raise RuntimeError("the machine is gone")
        seen.append(chunk.number)
        return call(self, chunk)

    monkeypatch.setattr(Annotator, "__call__", failing)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="the machine is gone"):
            annotated(model, path, output, "--size", 2)
        assert not output.exists()
    annotated(model, path, output, "--size", 2)
    assert seen == [0, None, 1, None, 2, 3, 4]
    assert output.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize("name", ["out.jsonl", "out"])
def test_what_processes_leave_that_are_gone_is_not_taken_for_parts(
    model, texts, name, tmp_path, monkeypatch
):
    call = Annotator.__call__

    def leaving(self, chunk):
        write_whole(self.parts.folder / f"part-{chunk.number:06}.jsonl.1.unfinished", b"{}")
        return call(self, chunk)

    monkeypatch.setattr(Annotator, "__call__", leaving)
    path, output = write(tmp_path / "t.jsonl", texts), tmp_path / name
    annotated(model, path, output, "--size", 4)
    files = [output] if output.is_file() else sorted(output.glob("part*"))
    assert [row["text"] for file in files for row in lines(file)] == texts
    assert not list(tmp_path.rglob("*.unfinished"))


@pytest.mark.parametrize("deaths", [2, 3])
def test_a_process_that_dies_is_replaced_but_not_for_ever(model, texts, deaths, tmp_path):
    deadly, code = write_deadly(tmp_path, model, deaths)
    output, whole = tmp_path / "out.jsonl", tmp_path / "whole.jsonl"
    path = write(tmp_path / "texts.jsonl", [*texts, "DEADLY"])
    annotated(model, path, whole, "--size", 2)
    arguments = (deadly, path, output, "--size", 2, "-w", "2", "--code", code)
    if deaths < 3:
        annotated(*arguments)
        assert output.read_bytes() == whole.read_bytes()
    else:
        assert "[H349] A worker died 3 times while annotating texts" in code_of(*arguments)


@pytest.mark.parametrize("at_least", [0.3, 0.35, 0.7, 0.95, 0.1 + 0.2])
def test_a_job_goes_on_whatever_its_settings(model, texts, at_least, tmp_path):
    path, output = write(tmp_path / "texts.txt", texts[:3]), tmp_path / "out.jsonl"
    annotated(model, path, output, "--at-least", at_least)
    assert len(lines(output)) == 3


def test_hidden_files_of_a_folder_are_not_read(model, texts, tmp_path):
    (tmp_path / "in" / ".trash").mkdir(parents=True)
    for name, some in (("a.txt", texts[:2]), ("._a.txt", texts[2:]), (".trash/b.txt", texts[2:])):
        write(tmp_path / "in" / name, some)
    (tmp_path / "in" / ".DS_Store").touch()
    annotated(model, tmp_path / "in", tmp_path / "out.jsonl")
    assert [row["text"] for row in lines(tmp_path / "out.jsonl")] == texts[:2]


def test_what_cannot_be_done_is_said_before_anything_is_written(model, texts, tmp_path):
    path, output = write(tmp_path / "texts.jsonl", texts), tmp_path / "out.jsonl"
    (tmp_path / "mixed").mkdir()
    write(tmp_path / "mixed" / "a.txt", texts)
    write(tmp_path / "mixed" / "b.jsonl", texts)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes").touch()
    assert "[H345]" in code_of(model, tmp_path / "mixed", output)
    assert "[H345]" in code_of(model, tmp_path / "other", output)
    assert "[H348]" in code_of(model, path, tmp_path / "other")
    assert "[H351]" in code_of(model, path, tmp_path / "out.csv")
    assert "[H351]" in code_of(model, path, tmp_path / "out", "--format", "csv")
    assert "[H204]" in code_of(model, path, output, "--component", "ner")
    assert "[E050]" in code_of(tmp_path / "nowhere", path, output)
    output.touch()
    assert "[H350]" in code_of(model, path, output)
    assert output.read_bytes() == b""


@pytest.mark.parametrize("options", [("in/out.jsonl",), ("in/out",), ("out.jsonl", "in/re.jsonl")])
def test_nothing_is_written_among_the_texts_where_it_would_be_read(model, texts, options, tmp_path):
    (tmp_path / "in").mkdir()
    path = write(tmp_path / "in" / "texts.jsonl", texts)
    output, *review = (tmp_path / name for name in options)
    assert "[H585]" in code_of(model, path.parent, output, *[f"--review={each}" for each in review])
    assert [each.name for each in path.parent.iterdir()] == ["texts.jsonl"]
    if not review:
        assert "10 texts" in annotated(model, path, output)


@pytest.mark.parametrize("change", ["settings", "format", "texts", "model", "code"])
def test_parts_of_another_job_are_not_gone_on_with(model, texts, change, tmp_path):
    path, output = write(tmp_path / "texts.jsonl", texts), tmp_path / "out"
    nlp = spacy.load(model)
    nlp.to_disk(tmp_path / "model")
    code = tmp_path / "code.py"
    code.write_text("")
    annotated(tmp_path / "model", path, output, "--code", code)
    before = {each: each.read_bytes() for each in output.iterdir()}
    given = {"settings": ["--n-best", 2], "format": ["--format", "spacy"]}
    options = ["--code", code, *given.get(change, [])]
    if change == "code":
        code.write_text("changed = True")
    if change == "texts":
        write(path, texts[1:])
    if change == "model":
        nlp.meta["description"] = "another one"
        nlp.to_disk(tmp_path / "model")
    found = {"settings": "n_best", "model": "digest", "code": "digest"}.get(change, change)
    assert f"[H347] {output}" in code_of(tmp_path / "model", path, output, *options)
    assert f"another job: {found} differ" in code_of(tmp_path / "model", path, output, *options)
    assert {each: each.read_bytes() for each in output.iterdir()} == before


@pytest.mark.parametrize("source", [".txt", ".jsonl", ".parquet", ".spacy"])
@pytest.mark.parametrize("suffix", [".jsonl", ".parquet", ".spacy"])
def test_no_texts_make_an_empty_file(model, source, suffix, tmp_path):
    path, output = tmp_path / f"texts{source}", tmp_path / f"out{suffix}"
    if source == ".parquet":
        parquet.write_table(pyarrow.table({"text": pyarrow.array([], pyarrow.string())}), path)
    else:
        write(path, [])
    assert "0 texts" in annotated(model, path, output)
    if suffix == ".jsonl":
        assert not output.read_bytes()
    elif suffix == ".parquet":
        assert parquet.read_table(output).num_rows == 0
    else:
        assert len(DocBin().from_disk(output)) == 0


@pytest.mark.parametrize("content", [b"", b"no table", b"PAR1 cut off"])
def test_a_damaged_table_is_named(model, texts, content, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    write(folder / "a.parquet", texts)
    (folder / "b.parquet").write_bytes(content)
    for output in ("out.jsonl", "out.parquet"):
        said = code_of(model, folder, tmp_path / output)
        assert "[H583]" in said and "b.parquet" in said
    assert [each.name for each in tmp_path.iterdir()] == ["in"]


def test_tables_without_pyarrow_say_what_to_install(model, texts, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = write(tmp_path / "texts.jsonl", texts)
    assert "[H346]" in code_of(model, path, tmp_path / "out.parquet")
    assert [each.name for each in tmp_path.iterdir()] == ["texts.jsonl"]


# Texts that are accepted unread


@pytest.fixture(scope="module")
def accepting(models, tmp_path_factory, texts):
    """A model that accepts the surer half of the texts; those with another source, none."""
    nlp = spacy.load(models / "hocrf")
    pipe = nlp.get_pipe("hocrf")
    pipe.acceptance = Acceptance(0.9, 0.9, 0.0, 10, 10)
    chances = sorted(doc._.hocrf_probability for doc in nlp.pipe(texts))
    middle = chances[len(chances) // 2]
    pipe.acceptance = Acceptance(0.9, 0.9, None, 10, 5, "source", {"form": middle})
    folder = tmp_path_factory.mktemp("accepting")
    nlp.to_disk(folder / "model")
    rows = [{"text": text, "source": "form" if i % 4 else "fax"} for i, text in enumerate(texts)]
    write_rows(folder / "texts.jsonl", rows)
    return nlp, rows, folder


def test_texts_are_accepted_or_go_to_a_file_of_their_own(accepting, tmp_path):
    nlp, rows, folder = accepting
    out, review = tmp_path / "new" / "out.jsonl", tmp_path / "more" / "review.jsonl"
    said = annotated(folder / "model", folder / "texts.jsonl", out, "--review", review)
    found = lines(out)
    least = nlp.get_pipe("hocrf").acceptance.groups["form"]
    for row, given, doc in zip(found, rows, nlp.pipe([row["text"] for row in rows]), strict=True):
        p = doc._.hocrf_probability
        assert row["probability"] == pytest.approx(p, abs=1e-6)
        assert row["accepted"] is (given["source"] == "form" and p >= least)
    assert lines(review) == [row for row in found if not row["accepted"]]
    counts = [sum(row["accepted"] is each for row in found) for each in (True, False)]
    assert f"{counts[0]} texts are accepted, {counts[1]} are to be read" in " ".join(said.split())
    assert 0 < counts[0] < len(found) and sorted(tmp_path.glob("*/*")) == [review, out]


def test_texts_to_read_are_written_although_the_job_was_ended_before(
    accepting, tmp_path, monkeypatch
):
    _, _, folder = accepting
    out, review = tmp_path / "out.jsonl", tmp_path / "review.jsonl"
    arguments = folder / "model", folder / "texts.jsonl", out, "--review", review
    with monkeypatch.context() as ended:
        ended.setattr(command, "_report_accepted", Mock(side_effect=KeyboardInterrupt))
        annotated(*arguments, code=130)
    assert out.exists() and not review.exists()
    annotated(*arguments)
    assert lines(review) == [row for row in lines(out) if not row["accepted"]]
    assert sorted(tmp_path.iterdir()) == [out, review]


def test_acceptance_has_types_of_its_own_in_tables_and_docs(accepting, tmp_path):
    _, _, folder = accepting
    annotated(folder / "model", folder / "texts.jsonl", tmp_path / "out.jsonl")
    annotated(folder / "model", folder / "texts.jsonl", tmp_path / "out.parquet")
    annotated(folder / "model", folder / "texts.jsonl", tmp_path / "out.spacy")
    table = parquet.read_table(tmp_path / "out.parquet")
    assert [str(table.schema.field(name).type) for name in ("probability", "accepted")] == [
        "double",
        "bool",
    ]
    expected = [(row["probability"], row["accepted"]) for row in lines(tmp_path / "out.jsonl")]
    assert list(zip(*(table[name].to_pylist() for name in ("probability", "accepted")))) == expected
    docs = DocBin().from_disk(tmp_path / "out.spacy").get_docs(spacy.blank("en").vocab)
    assert [doc._.hocrf_accepted for doc in docs] == [accepted for _, accepted in expected]


def test_texts_that_are_unlike_those_of_the_threshold_are_said(accepting, tmp_path):
    nlp, _, folder = accepting
    pipe = nlp.get_pipe("hocrf")
    before = pipe.acceptance
    for sample, warns in ((tuple(0.001 * i for i in range(1, 200)), True), ((), False)):
        pipe.acceptance = Acceptance(0.9, 0.9, 0.5, 199, 100, sample=sample)
        nlp.to_disk(tmp_path / "model")
        out = tmp_path / f"{warns}.jsonl"
        said = annotated(tmp_path / "model", folder / "texts.jsonl", out)
        assert ("The promise may not hold" in " ".join(said.split())) is warns
        assert "texts are accepted" in said
    pipe.acceptance = before


def test_what_cannot_be_accepted_is_said_before_the_work(accepting, model, tmp_path):
    _, _, folder = accepting
    texts, out = folder / "texts.jsonl", tmp_path / "out.jsonl"
    for arguments, code in (
        ((model, texts, out, "--review", tmp_path / "x.jsonl"), "H504"),
        ((folder / "model", texts, out, "--review", tmp_path / "x.txt"), "H074"),
        ((folder / "model", texts, tmp_path / "out", "--review", tmp_path / "x.jsonl"), "H074"),
        ((folder / "model", texts, out, "--into", "accepted"), "H247"),
    ):
        assert code in code_of(*arguments)
        assert not [path for path in tmp_path.iterdir() if path.suffix != ".lock"]
