"""`hocrf label` as a command: what it reads, what it writes, and what it refuses."""

import gc
import gzip
import json
import signal
import subprocess
import sys
from urllib.request import Request, urlopen

import pytest
import spacy
from small_corpus import trained
from spacy.tokens import DocBin, Span
from typer.testing import CliRunner

from spacy_hocrf.annotation.identity import id_of
from spacy_hocrf.cli import hocrf_cli

testclient = pytest.importorskip("starlette.testclient")
server = pytest.importorskip("spacy_hocrf.cli.label.server")

pytestmark = pytest.mark.slow
NAMES = ["Ada", "Max", "Kim", "Eva", "Tom", "Lea"]
PLACES = ["Paris", "Rome", "Oslo", "Bonn"]
TEXTS = [f"{name} lives in {place}." for name in NAMES for place in PLACES]


@pytest.fixture
def label(tmp_path, monkeypatch):
    """Runs the command, with somebody who annotates so many texts before it is ended."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("secrets.token_urlsafe", lambda _: "secret")
    monkeypatch.setattr(gc, "freeze", lambda: None)

    def labelling(*arguments, texts=0, act=None):
        def annotating(app, listening):
            client = testclient.TestClient(app, base_url="http://localhost")

            def ask(what, **request):
                headers = {server.TOKEN: "secret"}
                answer = client.post(f"/api/{what}", content=json.dumps(request), headers=headers)
                assert answer.status_code == 200, answer.text
                return answer.json()

            found = ask("open")
            labelling.opened, number = found, found["window"]
            for _ in range(texts):
                view, labels = found["view"], labelling.opened["labels"]
                about = {name: view[name] for name in ("text", "revision")} | {"window": number}
                spans = [(0, 1, labels.index("PER")), (3, 4, labels.index("LOC"))]
                found = ask("decide", **about, spans=spans)
            if act:
                act(ask)

        monkeypatch.setattr(server, "serve", annotating)
        done = CliRunner().invoke(hocrf_cli, ["label", *map(str, arguments), "--port", "0"])
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return " ".join(done.output.split())

    return labelling


@pytest.fixture
def lines(tmp_path):
    """A file with a text a line."""
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(["", *TEXTS, "  "]), encoding="utf8")
    return path


def docs_in(path):
    return list(DocBin().from_disk(path).get_docs(spacy.blank("en").vocab))


def ents_of(docs):
    return [(ent.text, ent.label_) for doc in docs for ent in doc.ents]


def test_texts_in_which_nothing_is_found_are_written_without_a_config(label, lines, tmp_path):
    def accept(ask):
        found = ask("open")
        about = {"window": found["window"]}
        for _ in range(4):
            about |= {name: found["view"][name] for name in ("text", "revision")}
            found = ask("decide", **about)

    said = label(lines, "--labels", "PER,LOC", "-o", "mine", "--format", "doccano", act=accept)
    assert "no config.cfg (none of the texts for training has a span), model, annotated" in said
    assert {"train.spacy", "dev.spacy", "model", "annotated.jsonl"} < {
        path.name for path in (tmp_path / "mine").iterdir()
    }


def test_from_lines_to_a_model(label, lines, tmp_path):
    said = label(lines, "--labels", "PER, LOC", "-o", "mine", texts=16)
    assert "24 texts, 2 labels" in said and "/#secret in a browser" in said
    assert "Written to mine: train.spacy" in said and "config.cfg, model." in said
    docs = [*docs_in(tmp_path / "mine/train.spacy"), *docs_in(tmp_path / "mine/dev.spacy")]
    assert len(docs) == 16 and all(doc.has_annotation("ENT_IOB") for doc in docs)
    assert {doc.text for doc in docs} < {*TEXTS}
    assert ents_of(docs) == [
        pair for doc in docs for pair in ((doc[0].text, "PER"), (doc[3].text, "LOC"))
    ]
    model = spacy.load(tmp_path / "mine" / "model")
    assert ents_of([model("Eva lives in Rome.")]) == [("Eva", "PER"), ("Rome", "LOC")]


def test_the_config_trains_the_annotation(label, lines, tmp_path):
    label(lines, "--labels", "PER,LOC", "-o", "mine", texts=12)
    from spacy.cli.train import train

    train(tmp_path / "mine" / "config.cfg", tmp_path / "trained")
    model = spacy.load(tmp_path / "trained" / "model-best")
    assert ents_of([model("Eva lives in Rome.")]) == [("Eva", "PER"), ("Rome", "LOC")]


def test_it_goes_on_where_it_was(label, lines, tmp_path):
    label(lines, "--labels", "PER,LOC", "-o", "mine", texts=3)
    label(lines, "--labels", "LOC,PER,DATE", "-o", "mine", texts=2)
    assert label.opened["progress"]["annotated"] == 3
    with (tmp_path / "mine" / "annotations.jsonl").open("a") as log:
        log.write('{"text":')
    assert "cut off" in label(lines, "--labels", "PER,LOC", "-o", "mine")
    assert label.opened["progress"]["annotated"] == 5


def test_it_goes_on_with_the_labels_that_it_was_begun_with(label, lines):
    label(lines, "--labels", "PER,LOC", "-o", "mine", texts=3)
    label(lines, "-o", "mine", texts=2)
    assert label.opened["progress"]["annotated"] == 3
    assert label.opened["labels"] == ["PER", "LOC"]


def test_it_goes_on_with_other_tokens(label, lines):
    arguments = (lines, "--labels", "PER,LOC", "-o", "mine", "--lang")
    assert "widened" not in label(*arguments, "zh", texts=3)  # letters are tokens
    assert "6 annotated spans are no whole tokens" in label(*arguments, "en")
    assert "widened" not in label(*arguments, "zh")


@pytest.mark.parametrize("tool", ["prodigy", "doccano", "label-studio"])
def test_for_other_tools(label, lines, tmp_path, tool):
    said = label(lines, "--labels", "PER,LOC", "-o", "mine", "--format", tool, texts=4)
    (name,) = {"annotated.json", "annotated.jsonl"} & {
        path.name for path in (tmp_path / "mine").iterdir()
    }
    assert f"{name} (4 texts)" in said
    CliRunner().invoke(hocrf_cli, ["convert", f"mine/{name}", "again.spacy"])
    docs = docs_in(tmp_path / "again.spacy")
    assert len(docs) == 4 and all(len(doc.ents) == 2 for doc in docs)


def test_what_a_file_says_already_is_kept(label, tmp_path):
    rows = [
        {"id": 7, "text": TEXTS[0], "spans": [{"start": 0, "end": 3, "label": "PER"}]},
        {"id": 8, "text": TEXTS[1], "spans": [{"start": 0, "end": 3, "label": "PER", "answer": "accept"},
                                              {"start": 13, "end": 17, "label": "LOC", "answer": "ignore"}]},
        *({"id": i, "text": text} for i, text in enumerate(TEXTS[2:6], start=9)),
    ]  # fmt: skip
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf8")
    said = label("rows.jsonl", "--labels", "PER,LOC", "-o", "mine", texts=2)
    assert "texts without a list of spans (spans, label, labels, entities, ents): unknown" in said
    assert label.opened["progress"]["annotated"] == 1
    docs = [*docs_in(tmp_path / "mine/train.spacy"), *docs_in(tmp_path / "mine/dev.spacy")]
    by_id = {id_of(doc): doc for doc in docs}
    assert ents_of([by_id["7"]]) == [("Ada", "PER")] and len(by_id) in (3, 4)
    label("rows.jsonl", "--labels", "PER,LOC", "-o", "mine", texts=3)  # that in part as well
    assert label.opened["progress"]["annotated"] == 3
    label("rows.jsonl", "--labels", "PER,LOC", "-o", "mine")
    assert label.opened["view"] is None and label.opened["progress"]["annotated"] == 6
    assert label("rows.jsonl", "-o", "mine", "--labels", "PER").count("[H542]") == 1


def test_a_file_that_is_annotated_can_be_annotated_anew(label, tmp_path):
    rows = [{"text": text, "spans": [{"start": 0, "end": 3, "label": "PER"}]} for text in TEXTS]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf8")
    label("rows.jsonl", "-o", "mine", "--anew")
    assert label.opened["labels"] == ["PER"] and label.opened["progress"]["annotated"] == 0
    label("rows.jsonl", "-o", "mine")
    assert label.opened["progress"]["annotated"] == len(TEXTS)
    assert label.opened["view"] is None


def test_a_label_whose_spans_all_fit_no_tokens_can_be_given(label, tmp_path):
    """As that of Hebrew names behind a prefix."""
    rows = [{"text": text, "spans": [{"start": 1, "end": 3, "label": "PER"}]} for text in TEXTS]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf8")
    label("rows.jsonl", "-o", "mine", "--anew")
    assert label.opened["labels"] == ["PER"]


def test_docs_and_a_model_to_begin_with(label, tmp_path):
    nlp = trained()
    nlp.to_disk(tmp_path / "model")
    docs = [nlp.make_doc(text) for text in TEXTS[:8]]
    docs[0].set_ents([Span(docs[0], 0, 1, "PER")])
    DocBin(docs=docs).to_disk(tmp_path / "docs.spacy")
    label("docs.spacy", "--model", "model", "-o", "mine")
    assert label.opened["labels"] == ["PER", *nlp.get_pipe("hocrf").labels]
    assert label.opened["view"]["readings"]


def test_spans_under_a_key(label, lines, tmp_path):
    label(lines, "--labels", "PER,LOC", "-o", "mine", "--spans-key", "sc", texts=8)
    docs = docs_in(tmp_path / "mine/train.spacy")
    assert all(len(doc.spans["sc"]) == 2 and not doc.ents for doc in docs)
    label("mine/train.spacy", "-o", "again", "--spans-key", "sc")
    assert label.opened["labels"] == ["LOC", "PER"]
    assert label.opened["progress"]["annotated"] == len(docs)


def test_what_nobody_could_tell_stays_unknown(label, lines, tmp_path):
    def act(ask):
        view = ask("open")["view"]
        about = {name: view[name] for name in ("text", "revision")} | {"window": 2}
        ask("decide", **about, spans=[(0, 1, 0)], unknown=[(2, 4)])

    label(lines, "--labels", "PER,LOC", "-o", "mine", act=act)
    (doc,) = docs_in(tmp_path / "mine/train.spacy")
    assert [token.ent_iob_ for token in doc] == ["B", "O", "", "", "O"]


@pytest.mark.parametrize("name", ["texts.TXT", "texts.txt.gz"])
def test_lines_in_other_files_of_text(label, lines, name):
    content = lines.read_bytes()
    lines.with_name(name).write_bytes(gzip.compress(content) if "gz" in name else content)
    label(lines.with_name(name), "--labels", "PER,LOC", "-o", "mine")
    assert label.opened["progress"]["texts"] == len(TEXTS)


@pytest.mark.parametrize("lang, told", [("en", True), ("zh", False)])
def test_a_language_without_blanks_between_words(label, tmp_path, lang, told):
    path = tmp_path / "a.txt"
    path.write_text(
        "昨天王明去了上海和北京。\nAda met 王明 in 上海.\nAda slept.\n", encoding="utf8"
    )
    output = label(path, "--labels", "PER", "--output", tmp_path / "mine", "--lang", lang)
    assert ("1 texts whose tokens are many words each" in output) == told


def test_nothing_annotated_writes_nothing(label, lines, tmp_path):
    assert "Nothing is annotated yet" in label(lines, "--labels", "PER,LOC", "-o", "mine")
    assert {path.name for path in (tmp_path / "mine").iterdir()} == {
        "annotations.jsonl",
        "label.json",
    }


def test_texts_that_nobody_annotates_as_a_whole(label, tmp_path):
    (tmp_path / "texts.txt").write_text("a" * 20_001 + "\n" + TEXTS[0] + "\n" + "Ada " * 2_500_000)
    said = label("texts.txt", "--labels", "PER,LOC", "-o", "mine")
    assert "2 texts of more than 20,000 characters: left out" in said
    assert label.opened["progress"]["texts"] == 1


@pytest.mark.parametrize(
    "options, code",
    [
        ("", "H549"),
        ("--labels PER,,LOC", "H549"),
        ("--labels PER,PER", "H549"),
        ("--labels PER --format xml", "H074"),
        ("--labels PER --lang zz", "H159"),
        ("--labels PER --address no.such.host.invalid", "H548"),
        ("--labels PER --spans-key a --model tagger", "H074"),
    ],
)
def test_what_is_refused(label, lines, tmp_path, options, code):
    if "tagger" in options:
        nlp = spacy.blank("en")
        nlp.add_pipe("hocrf_tagger")
        nlp.to_disk(tmp_path / "tagger")
    assert f"[{code}]" in label(lines, "-o", "mine", *options.split())
    assert not (tmp_path / "mine").exists()


def test_files_without_a_text(label, tmp_path):
    (tmp_path / "none.txt").write_text("\n \n")
    DocBin(docs=[]).to_disk(tmp_path / "none.spacy")
    for name in ("none.txt", "none.spacy"):
        assert "[H561]" in label(name, "--labels", "PER", "-o", "mine")
    (tmp_path / "prose.html").write_text("<html><p>Ada</p></html>")
    refused = " ".join(label("prose.html", "--labels", "PER", "-o", "mine").split())
    assert "[H380]" in refused and "name it with hocrf convert --format" in refused


def test_options_of_convert_are_named_as_such(label, tmp_path):
    spans = [[0, 2, "PER"], [4, 12, "X"], [10, 18, "X"], [4, 12, "Y"]]
    row = {"text": "Ada lives in Paris .", "label": spans}
    (tmp_path / "texts.jsonl").write_text(json.dumps(row))
    said = " ".join(label("texts.jsonl", "-o", "mine").split())
    assert "spans that fit no tokens" in said and "further labels" in said and "overlap" in said
    assert said.count("see hocrf convert --") == said.count("see ") == 3


def test_a_folder_of_something_else_and_one_that_is_at_work(label, lines, tmp_path):
    assert "[H540]" in label(lines, "--labels", "PER,LOC", "-o", tmp_path)
    again = []
    label(
        lines, "--labels", "PER,LOC", "-o", "mine",
        act=lambda _: again.append(label(lines, "--labels", "PER,LOC", "-o", "mine")),
    )  # fmt: skip
    assert "[H400] Another hocrf annotate or hocrf label" in again[0]


def test_without_the_packages_of_the_server(label, lines, monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy_hocrf.cli.label.server", None)
    done = CliRunner().invoke(hocrf_cli, ["label", str(lines), "-o", "mine"])
    assert "[H560]" in done.output and "spacy-hocrf[label]" in done.output


HEARING = """
import runpy, signal  # under nohup, the tests and their children ignore SIGHUP
signal.signal(signal.SIGHUP, signal.SIG_DFL)
runpy.run_module("spacy", run_name="__main__")
"""


def begun(folder, *arguments):
    """The command in a process of its own, and the address that it prints."""
    command = [sys.executable, "-c", HEARING, "hocrf", "label", *map(str, arguments), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder)
    said = iter(process.stdout.readline, "")
    return process, next(line.split()[1] for line in said if line.startswith("Open "))


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT and SIGKILL are things of Unix")
def test_a_process_that_is_killed_loses_nothing_and_one_that_is_ended_writes_the_model(
    lines, tmp_path
):
    def ask(what, **request):
        place, _, token = address.partition("#")
        body, headers = json.dumps(request).encode(), {server.TOKEN: token}
        with urlopen(Request(f"{place}api/{what}", body, headers)) as answer:
            return json.load(answer)

    arguments = (lines, "--labels", "PER,LOC", "-o", tmp_path / "mine")
    for kind in (signal.SIGKILL, signal.SIGINT, signal.SIGHUP):
        process, address = begun(tmp_path, *arguments)
        found = ask("open")
        view = found["view"]
        about = {"text": view["text"], "revision": view["revision"], "window": found["window"]}
        ask("decide", **about, spans=[(0, 1, 0), (3, 4, 1)])
        process.send_signal(kind)
        if kind == signal.SIGHUP:  # from the shell and from the terminal that it closes
            process.send_signal(kind)
        assert ("Written to" in process.communicate()[0]) == (kind != signal.SIGKILL)
    assert found["progress"]["annotated"] == 2
    docs = [*docs_in(tmp_path / "mine/train.spacy"), *docs_in(tmp_path / "mine/dev.spacy")]
    assert len({doc.text for doc in docs}) == 3 and (tmp_path / "mine" / "model").is_dir()
