"""The punctuation project: labels, clauses and marks of an utterance, and what its workflows
declare. Nothing is trained here.
"""

import pytest
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from spacy.vocab import Vocab

LOADS = ("punctuation", "references")


# The paper's example, a run of one label, and words without a mark at the end.
WORDS = "no she is working yes yes so".split()
MARKS = ", O O . , , O".split()


@pytest.fixture
def doc(load):
    return load("convert").make_doc(Vocab(), load("corpora").Sentence(WORDS, MARKS))


def test_labels_are_the_papers(doc):
    segments = [(ent.start, ent.end, ent.label_) for ent in doc.ents]
    assert segments == [
        (0, 1, ",-,"),
        (1, 2, "O-."),
        (2, 3, "O"),
        (3, 4, "."),
        (4, 6, ",-,"),
        (6, 7, "O"),
    ]


def test_clauses_end_with_their_mark(doc):
    clauses = [(span.text, span.label_) for span in doc.spans["clauses"]]
    assert clauses == [("no", ","), ("she is working", "."), ("yes", ","), ("yes", ",")]


def test_marks_come_back_from_labels_and_from_clauses(load, doc):
    tasks = load("jmlr_tasks")
    assert [token.tag_ for token in doc] == MARKS
    wanted = tasks.find_marks(doc)
    assert wanted == {(0, 1, ","), (3, 4, "."), (4, 5, ","), (5, 6, ",")}
    for token in doc:
        token.tag_ = "O"
    assert tasks.find_marks(tasks.set_marks(doc)) == wanted


def test_component_tags_the_end_of_each_clause_and_scores_the_marks(load, doc):
    marks = load("marks").Marks("clauses")
    predicted = Doc(doc.vocab, words=WORDS)
    predicted.spans["clauses"] = [
        Span(predicted, 0, 1, ","),
        Span(predicted, 1, 4, "?"),
        Span(predicted, 4, 5, ","),
    ]
    assert [token.tag_ for token in marks(predicted)] == ", O O ? , O O".split()
    scores = marks.score([Example(predicted, doc)])
    assert (scores["marks_p"], scores["marks_r"], scores["marks_f"]) == pytest.approx(
        (2 / 3, 2 / 4, 4 / 7)
    )
    assert {mark: scores["marks_per_type"][mark]["f"] for mark in ",.?"} == {
        ",": 0.8,
        ".": 0.0,
        "?": 0.0,
    }


@pytest.mark.parametrize(
    "label, mark",
    [
        ("O", "O"),
        (",", ","),
        (".", "."),
        ("?", "?"),
        ("O-,", "O"),
        ("O-.", "O"),
        (",-,", ","),
        (".-.", "."),
        ("?-?", "?"),
    ],
)
def test_a_label_is_cut_at_its_last_hyphen(load, label, mark):
    assert load("jmlr_tasks").mark_of(label) == mark


def test_conversion_writes_all_utterances(load, tmp_path):
    lines = [f"{word} {mark}\r\n" for word, mark in zip(WORDS, MARKS)]
    (tmp_path / "punc").write_text("".join([*lines, "\r\n", "\r\n", *lines[:4]]), newline="")
    load("convert").main(tmp_path / "punc", tmp_path / "punc", tmp_path / "corpus")
    docs = list(DocBin().from_disk(tmp_path / "corpus" / "test.spacy").get_docs(Vocab()))
    assert [[token.text for token in doc] for doc in docs] == [WORDS, WORDS[:4]]
    assert [len(doc.spans["clauses"]) for doc in docs] == [4, 2]
