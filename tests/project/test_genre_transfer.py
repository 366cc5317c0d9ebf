"""The project genre_transfer: its corpus by genre, and its tables from predictions. Two sentences a
genre are trained on.
"""

import os
import random
from pathlib import Path

import pytest
import spacy
import srsly
from project_checks import table_rows
from spacy.tokens import Doc, DocBin
from spacy.training import Example

PROJECT = Path(__file__).parents[2] / "project" / "genre_transfer"
LOADS = ("genre_transfer",)
GUM = Path(os.environ.get("HOCRF_DATA", "")) / "gum_ner" / "by_genre"


@pytest.fixture(scope="module")
def corpus(load):
    return load("corpus")


@pytest.fixture(scope="module")
def report(load):
    return load("report")


@pytest.fixture(scope="module")
def transfer(load):
    return load("transfer")


SENTENCES = [
    (("Ada", "met", "Max", "Ernst"), ("B-person", "O", "B-person", "I-person")),
    (("Paris", "fell"), ("B-place", "O")),
    (("Paris", "fell"), ("B-person", "O")),
    (("Paris", "fell"), ("B-place", "O")),
]


def test_sentences_end_at_blank_lines_and_keep_the_first_and_last_column(corpus):
    text = "\n\nAda\tx\tB-person\nmet\tx\tO\n\n\nParis\tx\tB-place\n"
    assert list(corpus.read_sentences(text)) == [
        (["Ada", "met"], ["B-person", "O"]),
        (["Paris"], ["B-place"]),
    ]


def test_sentences_are_sorted_by_genre_whatever_order_they_come_in(corpus):
    sentences = [corpus.Sentence(*sentence) for sentence in SENTENCES]
    digests = [corpus.digest(sentence) for sentence in sentences]
    assert digests[1] == digests[3] != digests[2]
    genres = {"news": [digests[3], digests[2]], "voyage": [digests[0], digests[1]]}
    for seed in range(5):
        shuffled = random.Random(seed).sample(sentences, 4)
        assert corpus.sort_by_genre(shuffled, genres) == {
            "news": [sentences[3], sentences[2]],
            "voyage": [sentences[0], sentences[1]],
        }


@pytest.mark.parametrize("change", ["missing", "twice", "another tag"])
def test_another_corpus_is_refused(corpus, change, capsys):
    sentences = [corpus.Sentence(*sentence) for sentence in SENTENCES]
    genres = {"news": [corpus.digest(sentence) for sentence in sentences]}
    if change == "missing":
        sentences.pop()
    elif change == "twice":
        sentences.append(sentences[0])
    else:
        sentences[0] = corpus.Sentence(sentences[0].words, ["O", *sentences[0].labels[1:]])
    with pytest.raises(SystemExit):
        corpus.sort_by_genre(sentences, genres)
    missing, more = {"missing": (1, 0), "twice": (0, 1), "another tag": (1, 1)}[change]
    printed = " ".join(capsys.readouterr().out.split())
    assert f"{missing} sentences are missing, {more} are not in it" in printed


def test_genres_are_the_twelve_pairs(transfer):
    assert set(srsly.read_json(PROJECT / "assets" / "genres.json")) == set(transfer.GENRES)
    assert len(transfer.PAIRS) == 12 and len(set(transfer.PAIRS)) == 12


@pytest.mark.skipif(
    not GUM.is_dir(), reason="needs GUM: set HOCRF_DATA to a folder with gum_ner/by_genre"
)
def test_every_sentence_of_the_corpus_has_its_genre(corpus, transfer):
    genres = srsly.read_json(PROJECT / "assets" / "genres.json")
    sizes = {}
    for genre in transfer.GENRES:
        sentences = list(corpus.read_sentences((GUM / f"{genre}.bio").read_text(encoding="utf8")))
        assert [corpus.digest(sentence) for sentence in sentences] == genres[genre]
        sizes[genre] = len(sentences)
    assert sizes == {"interview": 1043, "news": 621, "voyage": 755, "whow": 1076}  # data/README.md


def test_models_differ_in_kind_and_order_only(transfer):
    config = spacy.util.load_config(PROJECT / "configs" / "crf.cfg")["components"]["hocrf"]
    found = set()
    for kind in transfer.KINDS:
        for order in transfer.ORDERS:
            adapted = transfer.adapt(config, kind, order)
            assert (
                adapted["trainer"] == config["trainer"]
                and adapted["model"]["features"] == config["model"]["features"]
            )
            assert adapted["model"]["order"] == order
            found.add(adapted["model"]["encoding"])
    assert len(found) == 4 and "segments" in found


TRAINED = ("CRF, bio", "semi-CRF")
PEOPLE = {"interview": "Ada", "news": "Max", "voyage": "Ada", "whow": "Eve"}


@pytest.fixture(scope="module")
def predicted(transfer, tmp_path_factory):
    """Two sentences a genre; three genres have a person of their own."""
    folder = tmp_path_factory.mktemp("genre_transfer")
    nlp = spacy.blank("en")
    for genre, person in PEOPLE.items():
        sentences = [
            ([person, "sleeps", "here"], ["B-person", "O", "O"]),
            (["in", "old", "Rome", "."], ["O", "B-place", "I-place", "O"]),
        ]
        DocBin(docs=[Doc(nlp.vocab, words=words, ents=tags) for words, tags in sentences]).to_disk(
            folder / f"{genre}.spacy"
        )
    transfer.main(
        PROJECT / "configs" / "crf.cfg",
        folder,
        folder / "predictions",
        folder / "metrics",
        list(TRAINED),
    )
    return folder


def test_every_pair_is_predicted_by_the_model_of_its_first_genre(transfer, predicted):
    nlp = spacy.blank("en")
    folder = predicted / "predictions"
    everything = list(DocBin().from_disk(folder / transfer.GOLD).get_docs(nlp.vocab))
    assert len(everything) == 24
    for kind in (kind for kind in transfer.KINDS if kind.name in TRAINED):
        for order in transfer.ORDERS:
            joined = list(
                DocBin().from_disk(folder / kind.folder(order) / "all.spacy").get_docs(nlp.vocab)
            )
            assert [doc.text for doc in joined] == [doc.text for doc in everything]
            for number, (source, target) in enumerate(transfer.PAIRS):
                docs = list(
                    DocBin()
                    .from_disk(folder / kind.folder(order) / f"{source}-{target}.spacy")
                    .get_docs(nlp.vocab)
                )
                found = [[(ent.text, ent.label_) for ent in doc.ents] for doc in docs]
                assert found[1] == [("old Rome", "place")]
                assert [
                    [(ent.text, ent.label_) for ent in doc.ents]
                    for doc in joined[2 * number : 2 * number + 2]
                ] == found
                assert docs[0][0].text == PEOPLE[target]


def test_models_have_the_patterns_of_their_order(transfer, predicted):
    rows = {}
    for path in (predicted / "metrics").iterdir():
        rows |= {(row["kind"], row["order"], row["genre"]): row for row in srsly.read_json(path)}
    assert len(rows) == 16
    # B-person O O, O B-place I-place O: five labels with the two starts, then BO, OO, OB, BI, IO;
    # and BOO, OBI, BIO
    assert rows["CRF, bio", 1, "news"]["patterns"] + 3 == rows["CRF, bio", 2, "news"]["patterns"]


def test_f1_is_the_one_of_spacy(transfer, report, predicted, tmp_path):
    vocab, kind = spacy.blank("en").vocab, transfer.KINDS[0]
    gold = predicted / "predictions" / transfer.GOLD
    references, expected = list(DocBin().from_disk(gold).get_docs(vocab)), []
    for order in transfer.ORDERS:
        file = Path(kind.folder(order)) / "all.spacy"
        docs = list(DocBin().from_disk(predicted / "predictions" / file).get_docs(vocab))
        for doc in docs[: 5 * order]:  # or there would be no difference
            doc.set_ents([])
        transfer.write_docs(docs, tmp_path / file)
        examples = [Example(*pair) for pair in zip(docs, references)]
        expected.append(100 * spacy.scorer.Scorer.score_spans(examples, "ents")["ents_f"])
    comparison = report.compare_orders(tmp_path, kind, "all.spacy", gold, 99)
    assert expected[0] > expected[1] > 0
    assert [comparison.first, comparison.second] == pytest.approx(expected)


def test_report_has_every_pair_the_averages_and_a_plot(
    transfer, report, predicted, monkeypatch, tmp_path, check_plot
):
    monkeypatch.setattr(report, "KINDS", [kind for kind in transfer.KINDS if kind.name in TRAINED])
    plot = tmp_path / "plot.png"
    report.main(predicted, predicted / "predictions", predicted / "metrics", plot, trials=99)
    printed = check_plot(plot)
    assert all(f"| {source} | {target} |" in printed for source, target in transfer.PAIRS)


def test_the_paper_is_beside_what_every_kind_of_model_has(
    load, transfer, report, predicted, monkeypatch, tmp_path, check_plot
):
    monkeypatch.setattr(report, "KINDS", [kind for kind in transfer.KINDS if kind.name in TRAINED])
    load("paper").main(
        predicted,
        predicted / "predictions",
        predicted / "metrics",
        tmp_path / "paper.md",
        trials=99,
    )
    text = (tmp_path / "paper.md").read_text(encoding="utf8")
    assert text.strip() in check_plot(tmp_path / "paper.png")
    rows = {row[0]: row[1:] for row in table_rows(text) if len(row) == 4}
    assert rows["pairs of genres in which order 2 is better"][:2] == [
        "10 of 12",
        "CRF, bio: 0 of 12; semi-CRF: 0 of 12",
    ]
    assert rows["what order 2 adds, on average"][:2] == [
        "+0.62",
        "CRF, bio: +0.00; semi-CRF: +0.00",
    ]


def test_comparison_counts_pairs_and_averages_them(load, transfer, report):
    pairs = {
        pair: report.Comparison(50.0, 50.0 + step, p)
        for pair, step, p in zip(transfer.PAIRS, STEPS, P_VALUES)
    }
    together = report.Comparison(50.0, 50.5, 0.04)
    rows = load("paper").comparison_rows({"CRF": pairs}, {"CRF": together})
    assert [row[2] for row in rows] == [
        "CRF: 6 of 12",
        "CRF: +0.50",
        "CRF: **+0.50 (0.0400)**",
        "48.00 to 52.00",
    ]


def test_averages_and_counts(transfer, report):
    comparisons = {
        pair: report.Comparison(50.0, 50.0 + step, p)
        for pair, step, p in zip(transfer.PAIRS, STEPS, P_VALUES)
    }
    assert report.averages(comparisons) == ("50.00, 50.50", "+0.50")
    assert report.summary("CRF", comparisons) == (
        "CRF: order 2 is better in 6 of 12 pairs (1 with p < 0.05), worse in 4 (2 with p < 0.05)"
    )
    assert report.cells(report.Comparison(50.0, 49.5, 0.04)) == (
        "50.00, 49.50",
        "**-0.50 (0.0400)**",
    )


STEPS = (2.0, 2.0, 2.0, 2.0, 2.0, 2.0, -1.0, -1.0, -2.0, -2.0, 0.0, 0.0)
P_VALUES = (0.01, 0.06, 0.2, 0.2, 0.2, 0.2, 0.01, 0.02, 0.5, 0.5, 1.0, 1.0)


@pytest.mark.slow
def test_how_unlike_corpora_are_is_what_debug_prints(load, tmp_path, capsys):
    vocab = spacy.blank("en").vocab
    docs = [Doc(vocab, words=words, ents=tags) for words, tags in SENTENCES[2:]]
    DocBin(docs=docs).to_disk(tmp_path / "fallen.spacy")  # a person and a place of one name
    load("unlike").main([tmp_path / "fallen.spacy"])
    (row,) = table_rows(capsys.readouterr().out)[2:]
    assert row == ["half of fallen", "the other half", "0.0", "100.0", "100.0", "100.0", ""]
