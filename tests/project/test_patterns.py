"""project/patterns: a corpus of a few sentences, from the files to the table."""

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
def documents(tmp_path):
    """EWT as 20 documents of three sentences, 15 in the train part, five in the dev part; tags that the
    three before tell: A B B B, again and again.
    """
    (tmp_path / "ewt").mkdir()
    for part, numbers in (("train", range(15)), ("dev", range(15, 20))):
        text = "".join(
            f"# newdoc id = {n}\n" + "".join(conllu(3 * n + i) for i in range(3)) for n in numbers
        )
        (tmp_path / "ewt" / f"en_ewt-ud-{part}.conllu").write_text(text)
    return tmp_path


def conllu(start):
    tags = ["ABBB"[(start + i) % 4] for i in range(6 + start % 11)]
    rows = [f"{i}\tx\tx\tX\t{tag}\t_" for i, tag in enumerate(tags, 1)]
    return "\n".join([f"# sent_id = {start}", *rows, "", ""])


def test_words_of_several_tokens_and_empty_nodes_are_left_out(load):
    first, second = load("common.columns").stream_conllu(CONLLU.splitlines(keepends=True))
    assert first == (["They", "'re", "here", "."], ["PRP", "VBP", "RB", "."])
    assert second == (["Go"], ["VB"])


def test_an_evaluation_is_the_objective_of_the_training_texts(load, documents, tmp_path):
    """The loss at the weights of a trained pipeline that is loaded is where its training ended."""
    cross, read = load("crossvalidate"), load("documents").read_documents(documents)
    cross.main(documents, "greedy", tmp_path, folds=2, order=3)
    docs, _ = cross.divided(read, 0, 2)
    evaluate = load("speed").evaluation(load("spacy").load(tmp_path / "0" / "greedy"), docs)
    loss, gradient = evaluate()
    ended = srsly.read_json(tmp_path / "0" / "greedy.json")
    assert loss == pytest.approx(ended["objective"], rel=1e-4)
    assert len(gradient) == ended["features"]


def test_sentences_of_a_document_are_in_one_fold(load, documents):
    read = load("documents").read_documents(documents)
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
    load("speed").main(documents, folder / "0", metrics / "folds-0.json", fold=0, folds=2)
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
