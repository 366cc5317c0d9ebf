"""project/patterns: corpora of a few sentences, from the files to the table."""

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
        folder.mkdir(parents=True, exist_ok=True)
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
    load("train").main(assets, "conll2000", "greedy", tmp_path / "greedy", order=3)
    docs = load("tasks").read(assets, "conll2000", "train")
    evaluate = load("speed").evaluation(load("spacy").load(tmp_path / "greedy"), docs)
    loss, gradient = evaluate()
    ended = srsly.read_json(tmp_path / "greedy.json")
    assert loss == pytest.approx(ended["objective"], rel=1e-4)
    assert len(gradient) == ended["features"]
