"""project/patterns: corpora of a few sentences, from the files to the table."""

import numpy as np
import pytest
import srsly
from project_checks import PROJECTS, table_rows

LOADS = ("patterns",)
pytestmark = pytest.mark.skipif(
    not PROJECTS.exists(), reason="project/ is not in this distribution"
)
CONLLU = """# text = They're here .
1-2\tThey're\t_\t_\t_\t_
1\tThey\tthey\tPRON\tPRP\t_
2\t're\tbe\tAUX\tVBP\t_
2.1\tgone\tgo\tVERB\tVBN\t_
3\there\there\tADV\tRB\t_
4\t.\t.\tPUNCT\t.\t_

1\tGo\tgo\tVERB\tVB\t_
"""


@pytest.fixture
def assets(tmp_path):
    """Tags that the three before tell: A B B B, again and again; all words are alike."""
    sentences = [["ABBB"[(i + j) % 4] for j in range(6 + i % 11)] for i in range(44)]
    rows = [[f"x NN {tag}" for tag in tags] for tags in sentences]
    (tmp_path / "conll2000").mkdir()
    for part in ("train", "test"):
        text = "\n\n".join("\n".join(lines) for lines in rows)
        (tmp_path / "conll2000" / f"{part}.txt").write_text(text + "\n")
    (tmp_path / "ewt").mkdir()
    (tmp_path / "ewt" / "en_ewt-ud-dev.conllu").write_text(CONLLU)
    return tmp_path


def test_words_of_several_tokens_and_empty_nodes_are_left_out(load, assets):
    first, second = load("tasks").read(assets, "ewt", "dev")
    assert [(token.text, token.tag_) for token in first] == [
        ("They", "PRP"),
        ("'re", "VBP"),
        ("here", "RB"),
        (".", "."),
    ]
    assert (second[0].tag_, second[0].shape_, second[0].norm_) == ("VB", "Xx", "go")


def test_every_tenth_sentence_is_held_back(load, assets):
    tasks = load("tasks")
    train, dev, test = (tasks.read(assets, "conll2000", part) for part in tasks.PARTS)
    assert (len(train), len(dev), len(test)) == (39, 5, 44)
    sentences = [[token.tag_ for token in doc] for doc in (*dev, *train)]
    every = [[token.tag_ for token in doc] for doc in test]
    assert sentences[:5] == every[::10] and sentences[5:14] == every[1:10]


def test_from_the_corpus_to_the_table(load, assets, tmp_path, capsys):
    train, folder = load("train"), tmp_path / "training" / "conll2000"
    metrics = tmp_path / "metrics"
    metrics.mkdir()
    for name in ("counts", "greedy"):
        train.main(assets, "conll2000", name, folder / name, order=3, sigma=1.0)
    every, few = (srsly.read_json(folder / f"{name}.json") for name in ("counts", "greedy"))
    assert every["lengths"] == [2, 3, 4, 4] and every["patterns"] == 13
    assert few["lengths"][0] == 2 and few["patterns"] == sum(few["lengths"]) < 13
    report, output = load("report"), tmp_path / "results.md"
    rows = [*report.rows(folder, metrics)]
    assert rows[1][6:8] == ("", "") and rows[1][10] == ""
    load("speed").main(assets, "conll2000", folder, metrics / "conll2000-speed.json", rounds=3)
    load("test").main(assets, "conll2000", folder, metrics / "conll2000-test.json")
    times = srsly.read_json(metrics / "conll2000-speed.json")
    assert {name: len(found) for name, found in times.items()} == {"counts": 3, "greedy": 3}
    tested = srsly.read_json(metrics / "conll2000-test.json")
    report.TASKS = ("conll2000",)
    report.main(tmp_path / "training", metrics, output)
    *_, first, second = table_rows(output.read_text(encoding="utf8"))
    assert first[:5] == ["conll2000", "counts", "13", "100.0 %", "2 + 3 + 4 + 4"]
    share = 100 * few["patterns"] / 13
    assert second[2:4] == [str(few["patterns"]), f"{share:.1f} %"]
    assert second[-1] == f"{tested['greedy']:.3f} ({tested['greedy'] - tested['counts']:+.3f})"
    assert float(first[7]) == 1.0 and float(second[6]) >= 0
    assert capsys.readouterr().out.endswith(output.read_text(encoding="utf8"))


def test_an_evaluation_is_the_objective_of_the_training_texts(load, assets, tmp_path):
    """The loss at the weights of a trained pipeline that is loaded is where its training ended."""
    load("train").main(assets, "conll2000", "greedy", tmp_path / "new" / "greedy", order=3)
    docs = load("tasks").read(assets, "conll2000", "train")
    evaluate = load("speed").evaluation(load("spacy").load(tmp_path / "new" / "greedy"), docs)
    loss, gradient = evaluate()
    ended = srsly.read_json(tmp_path / "new" / "greedy.json")
    assert loss == pytest.approx(ended["objective"], rel=1e-4)
    assert len(gradient) == ended["features"]


# Cross-validation


@pytest.fixture
def documents(assets):
    """EWT as 20 documents of three sentences, tagged as above: 15 in the train part, five in the dev
    part.
    """
    for part, numbers in (("train", range(15)), ("dev", range(15, 20))):
        text = "".join(
            f"# newdoc id = {n}\n" + "".join(conllu(3 * n + i) for i in range(3)) for n in numbers
        )
        (assets / "ewt" / f"en_ewt-ud-{part}.conllu").write_text(text)
    return assets


def conllu(start):
    tags = ["ABBB"[(start + i) % 4] for i in range(6 + start % 11)]
    rows = [f"{i}\tx\tx\tX\t{tag}\t_" for i, tag in enumerate(tags, 1)]
    return "\n".join([f"# sent_id = {start}", *rows, "", ""])


def test_sentences_of_a_document_are_in_one_fold(load, documents):
    read = load("tasks").read_documents(documents)
    assert [len(document) for document in read] == 20 * [3]
    assert [len(document[0]) for document in read] == [6 + 3 * n % 11 for n in range(20)]
    divided, known = load("crossvalidate").divided, [doc for one in read for doc in one]
    folds = [divided(read, fold, 4) for fold in range(4)]
    for learnt, held in folds:
        assert {*learnt} | {*held} == {*known} and not {*learnt} & {*held}
        assert all(len({doc in held for doc in document}) == 1 for document in read)
    assert sorted(len(held) for _, held in folds) == [15, 15, 15, 15]
    assert {doc for _, held in folds for doc in held} == {*known}


def test_from_the_documents_to_the_table(load, documents, tmp_path, monkeypatch):
    cross, folder, metrics = load("crossvalidate"), tmp_path / "folds", tmp_path / "metrics"
    metrics.mkdir()
    for name, settings in (("counts", {}), ("greedy", {"gain": 0.01, "share": 0.6})):
        cross.main(documents, name, folder, folds=2, order=2, **settings)
    results = {
        name: [srsly.read_json(folder / str(fold) / f"{name}.json") for fold in range(2)]
        for name in ("counts", "greedy")
    }
    assert [sum(each["tokens"]) for each in results["counts"]] == [
        sum(each["tokens"]) for each in results["greedy"]
    ]
    few = results["greedy"][0]["patterns"]
    assert 2 < few <= 0.6 * results["counts"][0]["patterns"]
    monkeypatch.setattr(cross, "train", None)
    cross.main(documents, "greedy", folder, folds=2)  # nothing is left to train
    load("speed").main(documents, "ewt", folder / "0", metrics / "folds-0.json", fold=0, folds=2)
    load("folds_report").main(folder, metrics, tmp_path / "folds.md")
    first, second = table_rows((tmp_path / "folds.md").read_text(encoding="utf8"))[-2:]
    sizes = [sum(r["patterns"] for r in found) / 2 for found in results.values()]
    assert [first[0], second[0]] == ["counts", "greedy"]
    assert second[2] == f"{100 * sizes[1] / sizes[0]:.1f} %"
    right, tokens = (sum(sum(r[key]) for r in results["greedy"]) for key in ("right", "tokens"))
    assert second[6:8] == [f"{tokens:,}", f"{100 * right / tokens:.3f}"]
    assert first[8:] == ["", ""] and 0 < float(second[9]) <= 1


def test_the_standard_error_is_that_of_resampled_sentences(load):
    rng = np.random.default_rng(0)
    tokens = rng.integers(1, 30, 400)
    first = rng.binomial(tokens, 0.9)
    second = np.clip(first + rng.integers(-1, 2, 400), 0, tokens)
    found = load("folds_report").difference(first, second, tokens)
    assert found.points == pytest.approx(100 * (second - first).sum() / tokens.sum())
    drawn = rng.integers(0, 400, (4000, 400))
    samples = 100 * (second - first)[drawn].sum(axis=1) / tokens[drawn].sum(axis=1)
    assert found.error == pytest.approx(samples.std(), rel=0.05)  # 4,000 samples: 1 % or so
