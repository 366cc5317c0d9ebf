"""The references project: its corpus, its conversion and its table. Nothing is trained here."""

import json
import random
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
import spacy
import srsly
from project_checks import table_rows
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Corpus
from spacy.vocab import Vocab

PROJECT = Path(__file__).parents[2] / "project" / "references"
LOADS = ("references",)
SEED = 0


@pytest.fixture(scope="module")
def render(load):
    return load("render")


@pytest.fixture(scope="module")
def records():
    return list(srsly.read_jsonl(PROJECT / "assets" / "records.jsonl"))


@pytest.fixture(scope="module")
def originals():
    lines = srsly.read_jsonl(PROJECT / "assets" / "paper-references.jsonl")
    return {line["id"]: (line["text"], line["spans"]) for line in lines}


@pytest.fixture(scope="module")
def more():
    return list(srsly.read_jsonl(PROJECT / "assets" / "more-records.jsonl"))


@pytest.fixture(scope="module")
def made(render, records, more, originals):
    return render.make_corpus([*records, *more], originals, SEED)


@pytest.fixture(scope="module")
def corpus(made):
    return made[0]


def test_corpus_has_500_training_references_and_no_span_is_misaligned(made):
    corpus, misaligned = made
    assert len(corpus["train"]) >= 500
    assert misaligned == []


def test_parts_share_no_record_and_no_work(render, records, more, corpus):
    records = [*records, *more]
    work = {record["id"]: render.work_of(record) for record in records}
    train, dev, test, unseen = (
        {work[doc.user_data["record"]] for doc in corpus[part]}
        for part in ("train", "dev", "test", "unseen")
    )
    assert not train & dev and not train & test and not dev & test
    assert unseen == test
    assert len(
        {doc.user_data["record"] for part in ("train", "dev", "test") for doc in corpus[part]}
    ) == len(records)
    assert all(doc.user_data["work"] == work[doc.user_data["record"]] for doc in corpus["train"])


def test_the_page_has_every_held_back_record_twice_in_many_styles(render, corpus):
    page = [*render.one_each(corpus["test"]), *render.one_each(corpus["unseen"])]
    assert Counter(doc.user_data["record"] for doc in page) == {
        doc.user_data["record"]: 2 for doc in corpus["test"]
    }
    styles = Counter(doc.user_data["style"] for doc in page)
    assert styles.keys() == {*render.styles.STYLES, render.ORIGINAL}
    assert max(styles.values()) <= len(page) / 4


@pytest.mark.parametrize("seed", range(5))
def test_every_label_that_records_have_is_in_train(render, records, originals, seed):
    annotated = {label for _, spans in originals.values() for _, _, label in spans}
    assert annotated == set(render.styles.LABELS) - {"note"}  # no record has a note
    corpus, misaligned = render.make_corpus(records, originals, seed)
    assert misaligned == []
    for part, docs in corpus.items():
        labels = {ent.label_ for doc in docs for ent in doc.ents}
        assert labels == annotated if part == "train" else labels <= annotated


def test_every_character_but_blanks_is_in_one_span(render, records, more):
    for name, style in render.styles.STYLES.items():
        for record in [*records, *more]:
            text, spans = render.styles.render(record, style, random.Random(name))
            covered = Counter(i for start, end, _ in spans for i in range(start, end))
            assert set(covered.values()) == {1}
            assert all(char == " " for i, char in enumerate(text) if not covered[i]), (name, text)
            assert all(
                text[start:end] == text[start:end].strip() != "" for start, end, _ in spans
            ), (name, text)
            assert "  " not in text and "{" not in text and "[" not in text, (name, text)
            assert all(first[2] != second[2] for first, second in pairwise(spans)), (name, text)


def test_every_style_writes_author_title_and_year(render, records, more):
    for name, style in render.styles.STYLES.items():
        for record in [*records, *more]:
            text, spans = render.styles.render(record, style, random.Random(name))
            by_label = {label: text[start:end] for start, end, label in spans}
            person = record["authors"][0]
            assert person.get("family", person.get("literal")) in by_label["author"], (name, text)
            assert record["title"] in by_label["title"], (name, text)
            assert any(
                record["year"] in text[start:end] for start, end, label in spans if label == "date"
            ), (name, text)
            assert text.count(record["year"]) <= 2, (name, text)


def test_rendering_is_decided_by_the_seed(render, records, more, originals, corpus):
    records = [*records, *more]

    def texts(docs_by_part):
        return {
            part: [(doc.text, [str(e) for e in doc.ents]) for doc in docs]
            for part, docs in docs_by_part.items()
        }

    assert texts(render.make_corpus(records, originals, SEED)[0]) == texts(corpus)
    assert texts(render.make_corpus(records, originals, SEED + 1)[0]) != texts(corpus)


@pytest.mark.parametrize(
    "order, initials, expected",
    [
        ("given", None, "Chin-Yew Lin, Mausam, and Fernando C.N. Pereira"),
        ("given", " ", "C.-Y. Lin, Mausam, and F. C. N. Pereira"),
        ("family", " ", "Lin, C.-Y., Mausam, and Pereira, F. C. N."),
        ("first", None, "Lin, Chin-Yew, Mausam, and Fernando C.N. Pereira"),
    ],
)
def test_people_are_written_in_the_order_of_the_style(render, order, initials, expected):
    people = [
        {"given": "Chin-Yew", "family": "Lin"},
        {"family": "Mausam"},
        {"given": "Fernando C.N.", "family": "Pereira"},
    ]
    names = render.styles.Names(order=order, initials=initials)
    assert render.styles.people(people, names) == expected


def test_too_many_people_are_cut_with_et_al(render):
    people = [{"given": letter, "family": f"Family{letter}"} for letter in "ABCD"]
    names = render.styles.Names(most=3, shown=2)
    assert render.styles.people(people, names) == "A FamilyA, B FamilyB et al."
    assert (
        render.styles.people([{"literal": "Linguistic Data Consortium"}], names)
        == "Linguistic Data Consortium"
    )


def test_written_corpus_keeps_every_span_through_spacys_reader(render, made, tmp_path):
    records, originals = (
        PROJECT / "assets" / "records.jsonl",
        PROJECT / "assets" / "paper-references.jsonl",
    )
    more = PROJECT / "assets" / "more-records.jsonl"
    render.main(records, originals, tmp_path, more, seed=SEED)
    nlp = spacy.blank(
        "en", config={"nlp": {"tokenizer": {"@tokenizers": "references_tokenizer.v1"}}}
    )
    for part, docs in made[0].items():
        examples = list(Corpus(tmp_path / f"{part}.spacy")(nlp))
        assert len(examples) == len(docs)
        for example, doc in zip(examples, docs, strict=True):
            ents = example.get_aligned_spans_y2x(example.reference.ents)
            assert [(e.start, e.end, e.label_) for e in ents] == [
                (e.start, e.end, e.label_) for e in doc.ents
            ]


CORA = (
    "A. author\r\nCau author\r\n. author\r\n32 volume\r\n(1) volume\r\n"
    "-LRB- date\r\n1992 date\r\n-RRB- date\r\n\r\n"
    "\r\nJ. author\r\nPearl author\r\nLogic title\r\nIn booktitle\r\nB booktitle"
)


@pytest.mark.parametrize("newline", ["\r\n", "\n"])
def test_conversion_keeps_tokens_and_makes_maximal_runs_entities(load, tmp_path, newline):
    convert = load("convert_cora")
    (tmp_path / "sample").write_bytes(CORA.replace("\r\n", newline).encode())
    first, second = convert.read_docs(tmp_path / "sample", Vocab())
    assert [token.text for token in first] == [
        "A.",
        "Cau",
        ".",
        "32",
        "(1)",
        "-LRB-",
        "1992",
        "-RRB-",
    ]
    assert [(e.start, e.end, e.label_) for e in first.ents] == [
        (0, 3, "author"),
        (3, 5, "volume"),
        (5, 8, "date"),
    ]
    assert [(e.text, e.label_) for e in second.ents] == [
        ("J. Pearl", "author"),
        ("Logic", "title"),
        ("In B", "booktitle"),
    ]
    assert second.text == "J. Pearl Logic In B "


def test_conversion_holds_out_the_end_of_the_training_file(load, tmp_path):
    convert = load("convert_cora")
    for name, count in (("train", 100), ("test", 3)):
        (tmp_path / name).write_text("\n\n".join(f"{name}{i} title" for i in range(count)) + "\n")
    convert.main(tmp_path / "train", tmp_path / "test", tmp_path / "out")
    texts = {
        part: [
            doc.text.strip()
            for doc in DocBin().from_disk(tmp_path / "out" / f"{part}.spacy").get_docs(Vocab())
        ]
        for part in ("train", "settings", "dev", "test")
    }
    assert (
        len(texts["train"]) == 100 and len(texts["test"]) == 3 and len(texts["dev"]) == convert.DEV
    )
    assert texts["settings"] + texts["dev"] == texts["train"]


METRICS = {
    "ents_p": 0.5,
    "ents_r": 2 / 3,
    "ents_f": 0.57142,
    "ents_per_type": {
        "title": {"p": 1.0, "r": 0.25, "f": 0.4},
        "author": {"p": 0.0, "r": 0.0, "f": 0.0},
    },
}


def test_report_counts_fields_and_bears_missing_scores(load, tmp_path, capsys):
    report = load("report")
    doc = Doc(Vocab(), words=["a", "b", "c"])
    doc.set_ents([Span(doc, 0, 1, "title"), Span(doc, 1, 2, "title"), Span(doc, 2, 3, "author")])
    DocBin(docs=[doc]).to_disk(tmp_path / "gold.spacy")
    metrics = {"ents_p": None, "ents_r": None, "ents_f": None, "ents_per_type": None}
    assert "**micro average** | - | - | -" in " ".join(report.make_table(metrics).split())
    (tmp_path / "metrics.json").write_text(json.dumps(METRICS))
    report.main(
        tmp_path / "metrics.json", tmp_path / "gold.spacy", "A title", tmp_path / "table.md"
    )
    printed = capsys.readouterr().out
    assert printed.strip() == (tmp_path / "table.md").read_text(encoding="utf8").strip()
    assert "A title" in printed
    last = [line.split("|")[-2].strip() for line in printed.splitlines() if "|" in line]
    assert [last[0], *last[2:]] == ["fields", "1", "2", "3"]


@pytest.mark.parametrize("name", ["hocrf", "cora", "ner"])
def test_configs_read_the_corpora_as_they_must(render, name):
    config = spacy.util.load_config(PROJECT / "configs" / f"{name}.cfg")
    preproc = [config["corpora"][part].get("gold_preproc", False) for part in ("train", "dev")]
    tokenizer = config["nlp"].get("tokenizer", {}).get("@tokenizers")
    assert preproc == [name == "cora"] * 2
    assert tokenizer == (None if name == "cora" else "references_tokenizer.v1")


def test_crfsuite_chooses_on_the_training_part(load, tmp_path, capsys):
    """What is chosen is scored on the test part, and nothing else."""
    pytest.importorskip("pycrfsuite", reason='needs it: pip install "spacy-hocrf[benchmark]"')
    vocab = Vocab()
    for part, names in (("train", "abcdef"), ("test", "gh")):
        docs = [Doc(vocab, words=["Mr", name, "left"]) for name in names]
        for doc in docs:
            doc.set_ents([Span(doc, 0, 2, "who"), Span(doc, 2, 3, "what")])
        DocBin(docs=docs).to_disk(tmp_path / f"{part}.spacy")
    script = load("crfsuite")
    script.main(*(tmp_path / f"{part}.spacy" for part in ("train", "test")))
    header, _, *rows = table_rows(capsys.readouterr().out)
    assert header[-1] == "F1 test" and [row[1] for row in rows] == ["0.1", "0.5", "1", "2"] * 2
    best = max(range(len(rows)), key=lambda i: float(rows[i][2]))
    assert [i for i, row in enumerate(rows) if row[-1]] == [best]
    assert float(rows[best][-1]) == 100.0
    items = [item for item in script.observe(["a"] * 20, True).items()]
    assert [next(k for k in item if k.startswith("tenth")) for item in items[:3]] == [
        "tenth=0",
        "tenth=0",
        "tenth=1",
    ]
