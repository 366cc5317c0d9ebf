"""The project relation_arguments: its conversion, its models on a handful of sentences, and its
tables from predictions.
"""

import os
from pathlib import Path

import numpy as np
import pytest
import spacy
import srsly
from spacy.tokens import Doc, DocBin, Span
from spacy.vocab import Vocab

PROJECT = Path(__file__).parents[2] / "project" / "relation_arguments"
LOADS = ("relation_arguments",)
CONLL04 = Path(os.environ.get("HOCRF_DATA", "")) / "conll04"


@pytest.fixture(scope="module")
def convert(load):
    return load("convert_conll04")


@pytest.fixture(scope="module")
def arguments(load):
    module = load("arguments")
    module.add_extensions()
    yield module
    for name in ("mention_before", "mention_after", "case_pattern"):
        spacy.tokens.Token.remove_extension(name)


@pytest.fixture(scope="module")
def report(load):
    return load("report")


LINES = """#doc 1
0	In	O	['N']	[0]
1	Old	B-Loc	['N']	[1]
2	Oslo	I-Loc	['Located_In']	[4]
3	,	O	['N']	[3]
4	Norway	B-Loc	['Located_In']	[6]
5	in	O	['N']	[5]
6	Europe	B-Loc	['N']	[6]
7	Ada	B-Peop	['Live_In', 'Live_In']	[4, 2]
#doc 2
0	Nothing	O	['N']	[0]
"""


@pytest.fixture
def docs(convert, tmp_path):
    path = tmp_path / "sentences.txt"
    path.write_text(LINES, encoding="utf8")
    return [convert.make_doc(Vocab(), sentence) for sentence in convert.read_sentences(path)]


def spans(group):
    return [(span.text, span.label_) for span in group]


def test_a_mention_in_both_places_of_one_relation_is_arg1arg2(docs):
    assert [(ent.text, ent.label_) for ent in docs[0].ents] == [
        ("Old Oslo", "Loc"), ("Norway", "Loc"), ("Europe", "Loc"), ("Ada", "Peop"),
    ]  # fmt: skip
    assert spans(docs[0].spans["Located_In"]) == [
        ("Old Oslo", "Arg1"),
        ("Norway", "Arg1Arg2"),
        ("Europe", "Arg2"),
    ]
    assert spans(docs[0].spans["Live_In"]) == [
        ("Old Oslo", "Arg2"),
        ("Norway", "Arg2"),
        ("Ada", "Arg1"),
    ]
    assert spans(docs[0].spans["Kill"]) == []
    assert all(spans(docs[1].spans[relation]) == [] for relation in docs[0].spans)


@pytest.mark.skipif(
    not CONLL04.is_dir(), reason="needs CoNLL04: set HOCRF_DATA to a folder with conll04"
)
def test_every_relation_of_conll04_is_between_mentions(convert):
    sentences = list(convert.read_sentences(CONLL04 / "test.txt"))
    # a KeyError if an argument is no mention
    made = [convert.make_doc(Vocab(), sentence) for sentence in sentences]
    assert len(made) == 288 and sum(len(doc.ents) for doc in made) == 1079
    related = sum(
        name != "N" for sentence in sentences for token in sentence for name in token.relations
    )
    assert related == 422
    assert convert.count_sentences(made) == {
        "Live_In": 82,
        "Located_In": 58,
        "Work_For": 65,
        "OrgBased_In": 70,
        "Kill": 46,
    }


def test_the_nearest_mentions_do_not_overlap_the_token(arguments, docs):
    before = ["", "", "", *["Loc"] * 5]
    assert [token._.mention_before for token in docs[0]] == before
    assert [token._.mention_after for token in docs[0]] == [*["Loc"] * 6, "Peop", ""]


@pytest.mark.parametrize(
    "word, pattern",
    [
        ("", ""),
        ("IBM", "XXX"),
        ("the", "xxxk"),
        ("Oslo", "Xxxx"),
        ("1996-97", "dd-ddd"),
        ("The", "Xxxk"),
    ],
)
def test_a_case_pattern_is_both_ends_and_what_is_between(arguments, word, pattern):
    assert arguments.case_pattern(word, known=word.lower() == "the") == pattern


def test_words_are_known_from_the_sentences_that_are_trained_on(arguments):
    arguments.add_extensions({"slept"})
    doc = Doc(Vocab(), words=["Slept", "slept", "shot"])
    assert [token._.case_pattern for token in doc] == ["Xxxxxk", "xxxxxk", "xxxx"]


def test_training_has_as_many_sentences_without_the_relation(arguments):
    docs = [Doc(Vocab(), words=["Ada", str(i)]) for i in range(50)]
    for i, doc in enumerate(docs):
        doc.spans["Kill"] = [Span(doc, 0, 1, "Arg1")] if i % 5 == 0 else []
        doc.spans["Live_In"] = [] if i % 5 == 0 else [Span(doc, 0, 1, "Arg1")]
    chosen = arguments.balance(docs, "Kill", 0)
    assert [len(doc.spans["Kill"]) for doc in chosen].count(1) == 10 and len(chosen) == 20
    assert [doc[1].text for doc in chosen] == sorted((doc[1].text for doc in chosen), key=int)
    assert arguments.balance(docs, "Kill", 0) == chosen != arguments.balance(docs, "Kill", 1)
    assert len(arguments.balance(docs, "Live_In", 0)) == 50  # all ten without


@pytest.fixture(scope="module")
def corpus(convert, tmp_path_factory):
    """Who kills comes first or, with "by", last; the other relations have no sentence."""
    folder, vocab = tmp_path_factory.mktemp("relation_arguments"), Vocab()
    docs = []
    for killer, victim in (("Ada", "Max"), ("Eve", "Tom"), ("Kim", "Bob"), ("Ann", "Joe")):
        for words, first, second in (
            ([killer, "in", "the", "end", "shot", victim], 0, 5),
            ([victim, "in", "the", "end", "was", "shot", "by", killer], 7, 0),
            ([killer, "slept"], None, None),
        ):
            doc = Doc(
                vocab,
                words=words,
                ents=["B-Peop" if word in (killer, victim) else "O" for word in words],
            )
            for relation in convert.RELATIONS:
                doc.spans[relation] = []
            if first is not None:
                doc.spans["Kill"] = [
                    Span(doc, first, first + 1, "Arg1"),
                    Span(doc, second, second + 1, "Arg2"),
                ]
            docs.append(doc)
    DocBin(docs=docs).to_disk(folder / "corpus.spacy")
    return folder


@pytest.fixture
def kill_only(arguments, monkeypatch):
    monkeypatch.setattr(arguments, "RELATIONS", ("Kill",))


@pytest.mark.filterwarnings("ignore:.*W013.*TAG")  # nobody has tagged these sentences
@pytest.mark.parametrize("config", ["arguments", "paper"])
@pytest.mark.parametrize("system", ["C1", "SC2", "C1-BIO"])
def test_arguments_of_its_own_sentences_are_found(arguments, corpus, kill_only, config, system):
    [row], gold, found = trained(arguments, corpus, config, system)
    assert found == gold and sum(map(len, gold)) == 16
    assert row["sentences"] == 12 and row["patterns"] == PATTERNS[system]


@pytest.mark.filterwarnings("ignore:.*W013.*TAG")
def test_what_sees_far_is_added_to_a_config(arguments, corpus, kill_only):
    far = PROJECT / "configs" / "far.cfg"
    [near], _, _ = trained(arguments, corpus, "arguments", "SC1")
    [more], _, _ = trained(arguments, corpus, "arguments", "SC1", far)
    assert more["features"] > near["features"] and more["patterns"] == near["patterns"]


def test_only_semi_crfs_have_two_weights_for_a_pair_of_labels(arguments):
    config = arguments.read_config(PROJECT / "configs" / "paper.cfg")
    copies = {
        name: arguments.adapt(config, system, "Kill")["model"]["features"]["*"]["pairs"].get(
            "copies"
        )
        for name, system in arguments.SYSTEMS.items()
    }
    assert copies == {name: 2 if name.startswith("SC") else None for name in arguments.SYSTEMS}


@pytest.mark.filterwarnings("ignore:.*W013.*TAG")
def test_every_sentence_is_in_one_fold_and_learnt_from_in_the_others(arguments, corpus, kill_only):
    parts = arguments.divide(list("abcde"), 2)
    assert parts == [(["b", "d"], ["a", "c", "e"]), (["a", "c", "e"], ["b", "d"])]
    rows, gold, found = trained(arguments, corpus, "paper", "SC2", folds=2)
    # the file is there twice, as training part and as test part
    assert len(rows) == 2 and len(gold) == 24 and found == gold


@pytest.mark.filterwarnings("ignore:.*W013.*TAG")
def test_a_draw_takes_other_sentences_without_the_relation(
    arguments, corpus, kill_only, monkeypatch
):
    seeds, balance = [], arguments.balance

    def noted(docs, relation, seed):
        seeds.append(seed)
        return balance(docs, relation, seed)

    monkeypatch.setattr(arguments, "balance", noted)
    rows, gold, found = trained(arguments, corpus, "paper", "SC2", draws=2)
    assert seeds == [0, 1] and len(rows) == 2
    assert len(gold) == 24 and found == gold


def trained(arguments, corpus, config, system, more=None, folds=0, draws=1):
    """Sizes; arguments of every sentence as annotated and as found."""
    path = corpus / "corpus.spacy"
    arguments.main(
        PROJECT / "configs" / f"{config}.cfg",
        path,
        path,
        corpus / "predictions",
        corpus / "models.json",
        only=system,
        more=more,
        folds=folds,
        draws=draws,
    )
    gold, found = (
        [
            [(ent.text, ent.label_) for ent in doc.ents]
            for doc in DocBin().from_disk(corpus / "predictions" / name).get_docs(Vocab())
        ]
        for name in ("gold.spacy", f"{system}.spacy")
    )
    return srsly.read_json(corpus / "models.json"), gold, found


# C1: O, Arg1, Arg2; OO, 1O, O2, 2O, O1 after them. SC2: O is one segment, so OO is not there, but
# 1O2 and 2O1 are. C1-BIO has those of C1 and the two labels I-, which do not occur: no argument has
# two words.
PATTERNS = {"C1": 8, "SC2": 9, "C1-BIO": 10}


@pytest.fixture
def sentence():
    def make(*labels):
        ents = [f"B-{label}" if label else "O" for label in labels]
        return Doc(Vocab(), words=["a", "b", "c", "d", "e"][: len(labels)], ents=ents)

    return make


@pytest.fixture
def written(report, sentence, tmp_path):
    """Predictions of five sentences, one for each relation, by the one system C1 and by a perfect SC1."""
    gold = [sentence("Arg1", "Arg2", "")] * 3 + [sentence("Arg1", "", "")] * 2
    docs = [
        sentence("Arg1", "Arg2", ""),  # 2 of 2
        sentence("Arg2", "Arg1", ""),  # 0 of 2
        sentence("Arg1", "", ""),  # 1 of 2, 1 predicted
        sentence("", "", ""),  # nothing predicted
        sentence("Arg1", "", "Arg2"),  # 1 of 1, 2 predicted
    ]
    for name, each in (("gold", gold), ("C1", docs), ("SC1", gold)):
        DocBin(docs=each).to_disk(tmp_path / f"{name}.spacy")
    return report.read(tmp_path, ("C1", "SC1"))


def test_scores_are_by_relation_together_and_their_mean(report, convert, written):
    scores = [written.relation(number).score("C1") for number in range(len(convert.RELATIONS))]
    assert scores == pytest.approx([100, 0, 200 / 3, 0, 200 / 3])
    assert written.average("C1") == pytest.approx((100 + 400 / 3) / 5)
    assert written.score("C1") == pytest.approx(200 * 4 / (7 + 8))
    points, p = written.compare("C1", "SC1", 99)
    assert (
        points == pytest.approx(100 - written.score("C1")) and p == 2 / 2**4
    )  # 4 sentences differ
    assert written.only(np.array([0, 4])).score("C1") == pytest.approx(100 * 2 * 3 / (4 + 3))


def test_draws_of_a_sentence_are_one_item_of_a_test(report, written, tmp_path):
    """So that its p stays the same where each of two draws says the same."""
    for path in tmp_path.glob("*.spacy"):
        docs = list(DocBin().from_disk(path).get_docs(Vocab()))
        DocBin(docs=[*docs, *docs]).to_disk(path)
    twice = report.read(tmp_path, ("C1", "SC1"), draws=2)
    assert len(twice.gold) == 5 and twice.average("C1") == written.average("C1")
    assert twice.compare("C1", "SC1", 99) == written.compare("C1", "SC1", 99)
    assert twice.counts.gold.tolist() == (2 * written.counts.gold).tolist()


@pytest.mark.parametrize(
    "labels, tokens",
    [
        ([], -1),
        (["Arg1", "Arg2"], 0),
        (["Arg2", "", "", "Arg1"], 2),
        (["Arg1", "Arg1", "", "Arg2"], 2),  # the farther one of two, as its nearest other role is
        (["Arg1", "", "Arg1Arg2", "Arg2"], 1),
        (["Arg1Arg2", "", "Arg1Arg2"], 1),
    ],
)
def test_arguments_are_as_far_apart_as_the_loneliest(report, sentence, labels, tokens):
    assert report.gap(sentence(*labels).ents) == tokens


@pytest.mark.parametrize(
    "points, p, better, said",
    [
        (1.0, 0.01, True, "yes"),
        (-1.0, 0.01, True, "no"),
        (1.0, 0.5, True, "not significant"),
        (1.0, 0.5, False, "yes"),
        (1.0, 0.01, False, "no"),
        (-1.0, 0.01, False, "yes"),  # no better
    ],
)
def test_a_gain_should_be_significant_and_no_difference_should_not(report, points, p, better, said):
    assert report.verdict(points, p, better) == said


def test_report_prints_every_table_and_draws(arguments, report, corpus, tmp_path, check_plot):
    vocab = Vocab()
    docs = [
        doc
        for _ in report.RELATIONS
        for doc in DocBin().from_disk(corpus / "corpus.spacy").get_docs(vocab)
    ]
    for name in (*arguments.SYSTEMS, "gold"):
        arguments.write_docs(
            [arguments.as_ents(doc, doc.spans["Kill"]) for doc in docs], tmp_path / f"{name}.spacy"
        )
    row = {"features": 10, "patterns": 4, "evaluations": 7, "seconds": 0.5}
    srsly.write_json(
        tmp_path / "models.json", [{"system": name, **row} for name in arguments.SYSTEMS]
    )
    output = tmp_path / "paper.md"
    report.main(tmp_path, tmp_path / "models.json", output, "ours", [f"ours={tmp_path}"], trials=99)
    printed = check_plot(tmp_path / "paper.png")
    assert output.read_text(encoding="utf8") in printed
    assert all(f"| {relation} | 100.00" in printed for relation in report.RELATIONS)
    assert "| C1 | 100.00 | 1.0000 = | 1.0000 = |" in printed  # nobody is better than a copy
    assert "| 1. SC1 is no better than C1 | C1 → SC1 | +0.08 (0.226) | +0.00 |" in printed
    # in half of the sentences with arguments four words are between them, in the others six
    assert "\n| 2 to 6 | 40 | 100.00 |" in printed and "\n| 0 to 1 | 0 | 0.00 |" in printed
    assert "\n| ours | 100.00 | 100.00 | +0.00 (1.0000) | 100.00 | 100.00 |" in printed
