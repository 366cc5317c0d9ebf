"""`python -m spacy hocrf compare`, from written files to the table and the JSON file."""

import csv
import json
import os
import re
import subprocess
import sys
from functools import partial
from importlib.metadata import entry_points

import commands
import pytest
import spacy
from pytest import approx
from small_corpus import PEOPLE, documents, examples, trained
from spacy.tokens import Doc, DocBin, Span

import spacy_hocrf.cli
from spacy_hocrf.cli.compare import predict, read_gold
from spacy_hocrf.cli.counts import EntsScorer, TagsScorer, count_items

INSTALLED = os.environ.get("HOCRF_TEST_INSTALLED") == "1"


run = partial(commands.run, "compare")


def write(path, docs):
    DocBin(docs=docs).to_disk(path)
    return path


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """gold.spacy of twenty documents, a.spacy without people and b.spacy without the places of the
    first two.
    """
    folder = tmp_path_factory.mktemp("compare")
    gold = [example.reference for example in examples(spacy.blank("en"), documents(20))]
    a, b = ([doc.copy() for doc in gold] for _ in range(2))
    for doc in a:
        doc.set_ents([ent for ent in doc.ents if ent.label_ == "PLACE"])
    for doc in b[:2]:
        doc.set_ents([ent for ent in doc.ents if ent.label_ == "PERSON"])
    for name, docs in (("gold", gold), ("a", a), ("b", b)):
        for doc in docs:
            doc.spans["sc"] = list(doc.ents)
        write(folder / f"{name}.spacy", docs)
    return folder


def test_two_files_are_compared(work, tmp_path):
    printed = run(
        work / "a.spacy",
        work / "b.spacy",
        work / "gold.spacy",
        "--trials",
        2000,
        "--output",
        tmp_path / "out.json",
    )
    result = json.loads((tmp_path / "out.json").read_text(encoding="utf8"))
    assert result["documents"] == 20 and result["trials"] == 2000 and result["place"] == "doc.ents"
    person, place = result["labels"]["PERSON"], result["labels"]["PLACE"]
    people = person["gold"]
    assert person["a"]["f"] == 0 and person["b"]["f"] == 1 and person["differ"] == people
    assert (person["p_value"], person["p_holm"]) == approx((1 / 2001, 2 / 2001)) and not person[
        "exact"
    ]
    assert (
        place["a"]["f"] == 1
        and place["b"]["r"] == approx(1 - 2 / place["gold"])
        and place["differ"] == 2
    )
    # as large with none swapped, or both
    assert place["p_value"] == 0.5 and place["exact"] and place["shuffles"] == 4
    overall = result["all"]
    assert overall["gold"] == people + place["gold"] and overall["difference"] == approx(
        overall["b"]["f"] - overall["a"]["f"]
    )
    rows = {
        line.split()[0]: line.split()
        for line in printed.split("\np  ")[0].splitlines()
        if line.split()[:1] in (["all"], ["texts"], ["PERSON"], ["PLACE"])
    }
    assert (
        rows["PERSON"]
        == "PERSON 0.00 0.00 0.00 100.00 100.00 100.00 +100.00 0.0005 0.0010 2000 19 19".split()
    )
    assert rows["PLACE"][7:] == ["-5.56", "0.5000", "0.5000", "all", "4", "2", str(place["gold"])]
    assert len(rows["all"]) == 12  # no correction for all together
    whole = result["texts"]
    right = [20 - people, 18]  # each document has one person at most
    assert [whole["a"]["f"], whole["b"]["f"]] == approx([n / 20 for n in right])
    assert whole["gold"] == 20 and whole["differ"] == people - 2
    shares = [f"{5 * n:.2f}" for n in right]
    assert rows["texts"][1:3] == shares and rows["texts"][-1] == "20" and len(rows["texts"]) == 8


def test_the_table_is_written_as_it_is_printed(work, tmp_path):
    files = [work / f"{name}.spacy" for name in ("a", "b", "gold")]
    printed = run(*files, "--output", tmp_path / "out.csv")
    run(*files, "--output", tmp_path / "out.tex")
    with (tmp_path / "out.csv").open(encoding="utf8", newline="") as file:
        header, *rows = csv.reader(file)
    assert header[1:4] == ["P (A)", "R (A)", "F (A)"] and len(rows) == 4
    shown = [line.split() for line in printed.splitlines()]
    assert all([part for cell in row for part in cell.split()] in shown for row in rows)
    tex = (tmp_path / "out.tex").read_text(encoding="utf8")
    assert "PLACE & 100.00 & 100.00 & 100.00 &" in tex and "& $-$5.56 &" in tex


def test_three_systems_and_runs_from_files(work, tmp_path):
    a, b, gold = (work / f"{name}.spacy" for name in ("a", "b", "gold"))
    printed = run(b, a, gold, gold, "--output", tmp_path / "out.json")
    result = json.loads((tmp_path / "out.json").read_text(encoding="utf8"))
    assert [system["name"] for system in result["systems"]] == [str(b), str(a), str(gold)]
    assert result["systems"][2]["all"]["f"] == 1.0 and result["documents"] == 20
    assert result["systems"][1]["all"]["difference"] < 0 < result["systems"][2]["all"]["difference"]
    [row] = [line.split() for line in printed.splitlines() if line.startswith(str(gold))]
    assert row[1:6] == ["100.00"] * 3 + ["100.00–100.00", "100.00"]
    printed = run(f"{a},{b}", gold, gold, "--output", tmp_path / "runs.csv")
    assert "±" in printed and f"{a}, 2 runs" in printed
    assert ",±," in (tmp_path / "runs.csv").read_text(encoding="utf8")


def test_a_file_whose_name_has_a_comma_is_no_runs(work, tmp_path):
    (tmp_path / "a,b.spacy").write_bytes((work / "b.spacy").read_bytes())
    printed = run(tmp_path / "a,b.spacy", work / "a.spacy", work / "gold.spacy")
    assert "F (A)" in printed


def test_documents_that_are_annotated_in_part_are_no_whole_texts(work):
    gold = read_gold(work / "gold.spacy", EntsScorer())
    found = [doc.copy() for doc in gold]
    for doc in gold[:5]:
        doc.set_ents(list(doc.ents), default="missing")
    for doc in found[5:8]:
        doc.set_ents([])
    counts = count_items(EntsScorer(), [found, gold], gold)
    assert counts.whole().sum(axis=1).tolist() == [12, 15] and counts.whole().shape == (2, 15)


def test_other_places_and_labels(work, tmp_path):
    files = [work / f"{name}.spacy" for name in ("a", "b", "gold")]
    run(*files, "--spans-key", "sc", "--output", tmp_path / "spans.json")
    run(*files, "--output", tmp_path / "ents.json")
    spans, ents = (
        json.loads((tmp_path / f"{name}.json").read_text(encoding="utf8"))
        for name in ("spans", "ents")
    )
    assert (spans["all"], spans["labels"]) == (ents["all"], ents["labels"])
    run(*files, "--label", "PLACE", "--output", tmp_path / "place.json")
    place = json.loads((tmp_path / "place.json").read_text(encoding="utf8"))
    assert place["labels"]["PLACE"]["a"] == ents["labels"]["PLACE"]["a"]
    assert (
        list(place["labels"]) == ["PLACE"]
        and place["all"]["gold"] == ents["labels"]["PLACE"]["gold"]
    )
    run(*files, "--tags", "--ignore", "WORD", "--output", tmp_path / "tags.json")
    tags = json.loads((tmp_path / "tags.json").read_text(encoding="utf8"))
    assert (
        list(tags["labels"]) == ["NAME", "PUNCT"]
        and tags["all"]["p_value"] == 1.0 == tags["all"]["a"]["f"]
    )


def test_a_pipeline_sees_the_tokens_only(work, tmp_path):
    nlp = trained("hocrf", rows=documents(10))
    nlp.to_disk(tmp_path / "model")
    result = tmp_path / "out.json"
    run(tmp_path / "model", work / "b.spacy", work / "gold.spacy", "--output", result)
    scores = json.loads(result.read_text(encoding="utf8"))["all"]
    gold = read_gold(work / "gold.spacy", TagsScorer())
    bare = [example.predicted for example in examples(spacy.blank("en"), documents(20))]
    expected = [[(ent.start, ent.end, ent.label_) for ent in doc.ents] for doc in nlp.pipe(bare)]
    found = [
        [(ent.start, ent.end, ent.label_) for ent in doc.ents]
        for doc in predict(str(tmp_path / "model"), gold)
    ]
    assert found == expected
    # entities that are there are kept: if the pipeline saw the annotation it would never be wrong
    wrong = gold[0].copy()
    wrong.set_ents([Span(wrong, 0, len(wrong), label="PLACE")])
    [doc] = predict(str(tmp_path / "model"), [wrong])
    assert (doc.ents[0].text, doc.ents[0].label_) == (PEOPLE[0], "PERSON")
    assert 0 < scores["a"]["f"] <= 1


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda docs: docs[:-1], r"H071.*19 documents for 20"),
        (
            lambda docs: [
                *docs[:3],
                Doc(docs[3].vocab, words=["Ada", "slept"], ents=["O", "O"]),
                *docs[4:],
            ],
            r"H071.*document 4 .*'Ada",
        ),
        (
            lambda docs: [Doc(doc.vocab, words=[token.text for token in doc]) for doc in docs],
            r"H073.*doc\.ents",
        ),
    ],
)
def test_predictions_of_other_documents_are_refused(work, tmp_path, change, message):
    other = write(tmp_path / "other.spacy", change(read_gold(work / "a.spacy", TagsScorer())))
    printed = " ".join(run(work / "b.spacy", other, work / "gold.spacy", code=1).split())
    assert re.search(message, printed), printed
    assert "other.spacy" in printed


@pytest.mark.skipif(
    not INSTALLED,
    reason="the entry points are those of the installed package: set HOCRF_TEST_INSTALLED=1",
)
def test_the_installed_package_adds_the_commands(work):
    [entry] = [entry for entry in entry_points(group="spacy_cli") if entry.name == "hocrf"]
    assert entry.load() is spacy_hocrf.cli.hocrf_cli
    command = [sys.executable, *"-m spacy hocrf compare a.spacy b.spacy gold.spacy".split()]
    done = subprocess.run(command, capture_output=True, encoding="utf8", cwd=work)
    assert done.returncode == 0, done.stderr
    assert "PERSON" in done.stdout


def test_no_pipeline_loads_the_commands(tmp_path):
    code = (
        "import spacy, sys; spacy.blank('en').add_pipe('hocrf'); "
        "sys.exit('spacy_hocrf.cli' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path).returncode == 0
