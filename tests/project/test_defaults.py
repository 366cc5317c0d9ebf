"""The suite behind the defaults: readers on corpora of a few lines, parts and draws, systems and
peers, the results file, and the report on results that are made up.
"""

import json
from itertools import chain
from pathlib import Path

import pytest
import spacy
from project_checks import table_rows

PROJECT = Path(__file__).parents[2] / "project" / "defaults"
LOADS = ("defaults",)
README = PROJECT / "README.md"


@pytest.fixture(scope="module")
def peers(load):
    pytest.importorskip("pycrfsuite", reason='needs it: pip install "spacy-hocrf[benchmark]"')
    return load("peers")


# -------------------- readers

BIO = "Ada NNP B-PER\nB. NNP I-PER\nin IN O\nRome NNP B-LOC\n\nBonn NNP B-LOC\n"
ADA = (["Ada", "B.", "in", "Rome"], [(0, 2, "PER"), (3, 4, "LOC")])
BONN = (["Bonn"], [(0, 1, "LOC")])

CORPORA = {
    "addresses": (
        {
            "usaddress/labeled.xml": "<AddressCollection><AddressString><No>1</No> "
            "<Street>King &amp;</Street> <Street>Main</Street></AddressString></AddressCollection>",
            "usaddress/test_labeled.xml": "<AddressString><No>2</No></AddressString>",
        },
        {
            "train": [(["1", "King", "&", "Main"], [(0, 1, "No"), (1, 4, "Street")])],
            "test": [(["2"], [(0, 1, "No")])],
        },
    ),
    "cora": (
        {
            "hosemicrf/ref/ref.train": "A author\r\nB author\r\n. title\r\n\r\n\r\nC date\r\n",
            "hosemicrf/ref/ref.test": "D date\n",
        },
        {
            "train": [
                (["A", "B", "."], [(0, 2, "author"), (2, 3, "title")]),
                (["C"], [(0, 1, "date")]),
            ],
            "test": [(["D"], [(0, 1, "date")])],
        },
    ),
    "anystyle": (
        {
            "anystyle/core.xml": "<dataset><sequence>\n<author>Ada B.,</author>\n"
            "<container-title> </container-title><date>1927</date><date>1928</date>\n</sequence>"
            "</dataset>",
            "anystyle/gold.xml": "<sequence><title>Ada</title></sequence><sequence>"
            "<author>Ada</author><date>B., 1927 1928</date></sequence>",
        },
        {
            "train": [
                (["Ada", "B.,", "1927", "1928"], [(0, 2, "author"), (2, 3, "date"), (3, 4, "date")])
            ],
            # the second one has the words of one for training
            "test": [(["Ada"], [(0, 1, "title")])],
        },
    ),
    "tweets": (
        {"btc/h.conll": "@\tO\nada\tB-PER\n\tO\nsaid\tO\n"},
        {"train": [(["@", "ada", "said"], [(0, 2, "PER")])]},
    ),
    "news-tweets": ({"btc/g.conll": "Bonn\tB-LOC\n"}, {"train": [BONN]}),
    "msm2013": (
        {"msm2013/TweetsTrainingSetCH.tsv": "1\tLOC/Bonn;\tBonn\r2\t\tso what"},
        {"train": [(["so", "what"], [])], "dev": [], "test": [BONN]},
    ),
    "wnut17": (
        {"wnut17/wnut17train.conll": "Bonn\tB-LOC\n", "wnut17/emerging.dev.conll": "so\tO\n"},
        {"train": [BONN], "test": [(["so"], [])]},
    ),
    "gum": (
        {"gum_ner/by_genre/news.bio": BIO, "gum_ner/by_genre/voyage.bio": "Bonn B-LOC\n"},
        {"train": [ADA, BONN, BONN]},
    ),
    "conll04": (
        {
            f"conll04/{part}.txt": "#doc 1\n0\tBonn\tB-LOC\t['N']\t[0]\n"
            for part in ("train", "dev", "test")
        },
        {"train": [BONN], "dev": [BONN], "test": [BONN]},
    ),
    "chunks": (
        {"conll2000/train.txt": BIO, "conll2000/test.txt": "Bonn NNP B-LOC\n"},
        {"train": [ADA, BONN], "test": [BONN]},
    ),
    "transcripts": (
        {
            "hosemicrf/punc/punc.tr": "no ,\nshe O\nis .\nso O\n\nyes O\n",
            "hosemicrf/punc/punc.ts": "yes ?\n",
        },
        {
            "train": [(["no", "she", "is", "so"], [(0, 1, ","), (1, 3, ".")]), (["yes"], [])],
            "test": [(["yes"], [(0, 1, "?")])],
        },
    ),
    "talks": (
        {
            "iwslt_punct/dev2012": "one\tPERIOD\ntwo\tO\n" * 40,
            "iwslt_punct/test2011": "one\tCOMMA\n" * 39 + "two\tQUESTION\nthree\tPERIOD\n",
        },
        {
            "train": [
                (
                    ["one", *["two", "one"] * 20],
                    [(0, 1, "PERIOD")] + [(i, i + 2, "PERIOD") for i in range(1, 41, 2)],
                )
            ],
            "test": [
                (
                    ["one"] * 39 + ["two"],
                    [(i, i + 1, "COMMA") for i in range(39)] + [(39, 40, "QUESTION")],
                )
            ],
        },
    ),
    "all-tweets": (
        {"btc/a.conll": "ada\tB-PER\n", "btc/h.conll": "in\tO\nbonn\tB-LOC\n"},
        {"train": [(["ada"], [(0, 1, "PER")]), (["in", "bonn"], [(1, 2, "LOC")])]},
    ),
}
CORPORA |= {f"all-{name}": CORPORA[name] for name in ("chunks", "talks")}


@pytest.mark.parametrize("name", CORPORA)
def test_a_corpus_is_read(load, tmp_path, name):
    files, expected = CORPORA[name]
    for place, content in files.items():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(content, encoding="utf8", newline="")
    parts = load("tasks").TASKS[name](tmp_path)
    assert {part: [(text.words, list(text.spans)) for text in parts[part]] for part in parts} == (
        expected
    )


def test_every_task_has_a_miniature_and_is_in_the_readme(load):
    tasks = load("tasks").TASKS
    assert set(CORPORA) == set(tasks)
    rows = table_rows(README.read_text(encoding="utf8"))
    assert [
        row[0].strip("`") for row in rows if row[0].strip("`") in tasks and "`" in row[0]
    ] == list(tasks)


# -------------------- parts and draws


def texts(load, count, prefix="w"):
    return [load("readers").Text([f"{prefix}{i}"], []) for i in range(count)]


def parts_of(load, monkeypatch, task="cora", **found):
    monkeypatch.setitem(load("tasks").TASKS, task, lambda data: found)
    return load("tasks").load(task, Path("nowhere"))


@pytest.mark.parametrize("named", [None, ""])
def test_corpora_whose_folder_is_not_named_are_asked_for(load, monkeypatch, capsys, named):
    monkeypatch.delenv("HOCRF_DATA", raising=False)
    if named is not None:
        monkeypatch.setenv("HOCRF_DATA", named)
    with pytest.raises(SystemExit, match="1"):
        load("tasks").load("cora")
    assert "Set HOCRF_DATA to a folder with copies of the corpora" in capsys.readouterr().out


def words(some):
    return [text.words[0] for text in some]


def test_missing_parts_are_fifths_of_the_training_part(load, monkeypatch):
    every = texts(load, 100)
    parts = parts_of(load, monkeypatch, train=[*every, load("readers").Text([], [])])
    assert [len(parts[part]) for part in ("train", "dev", "test")] == [64, 16, 20]
    assert sorted(words(chain(*parts.values()))) == sorted(words(every))
    assert parts == parts_of(load, monkeypatch, train=every), "every time the same"
    order = words(every)
    assert all(words(part) == sorted(words(part), key=order.index) for part in parts.values())


def test_given_parts_are_kept_and_large_ones_sampled(load, monkeypatch):
    parts = parts_of(
        load,
        monkeypatch,
        train=texts(load, 3000),
        dev=texts(load, 7, "d"),
        test=texts(load, 900, "t"),
    )
    assert {part: len(some) for part, some in parts.items()} == {
        "train": 2000,
        "dev": 7,
        "test": 500,
    }
    assert len(set(words(parts["test"]))) == 500


def test_a_small_draw_is_part_of_a_larger_one(load):
    tasks, train = load("tasks"), texts(load, 50)
    draws = [[words(tasks.draw("cora", train, size, n)) for size in ("5", "20")] for n in range(3)]
    for small, large in draws:
        assert len(small) == 5 and set(small) < set(large) and len(set(large)) == 20
    assert len({tuple(small) for small, _ in draws}) == 3
    assert draws[0][0] != words(tasks.draw("gum", train, "5", 0)), "tasks have draws of their own"
    assert tasks.draw("cora", train, "all", 0) == train


@pytest.mark.parametrize(
    "name, size, count, expected",
    [
        ("cora", "5", 6, 3),
        ("cora", "5", 5, 0),
        ("cora", "all", 5, 1),
        ("all-talks", "5", 6, 0),
        ("all-talks", "all", 6, 1),
    ],
)
def test_there_is_no_draw_of_all_texts_but_all(load, name, size, count, expected):
    assert load("tasks").count_draws(name, texts(load, count), size, 3) == expected


@pytest.mark.parametrize("task, expected", [("cora", 2_000), ("all-talks", 2_500)])
def test_only_large_tasks_have_more_than_so_many_texts(load, monkeypatch, task, expected):
    many = texts(load, 3_000)  # of which the dev part has 500
    parts = parts_of(load, monkeypatch, task, train=many, test=many[:9])
    assert len(parts["train"]) == expected and len(parts["dev"]) == 500


# -------------------- systems

FLIGHTS = [
    ("from Bonn to Rome", [(1, 2, "FROM"), (3, 4, "TO")]),
    ("to Rome from Old York", [(1, 2, "TO"), (3, 5, "FROM")]),
    ("to Oslo", [(1, 2, "TO")]),
    ("no flight", []),
]


@pytest.fixture
def flights(load):
    return [load("readers").Text(text.split(), spans) for text, spans in FLIGHTS] * 3


def test_candidates_change_a_part_of_the_default_config(monkeypatch, load):
    systems = load("systems")
    default = systems.make_system("default")
    nlp = spacy.blank("en")
    nlp.add_pipe("hocrf")
    assert default.config == {} and default.settings == nlp.get_pipe_config("hocrf")
    both = systems.make_system("order-2+sigma-3").settings
    assert (both["model"]["order"], both["trainer"]["sigma"]) == (2, 3.0)
    monkeypatch.setenv("HOCRF_VECTORS", "some_md")
    vectors = systems.make_system("vectors+order-2")
    assert vectors.vectors == "some_md" and vectors.config == {"model": {"order": 2}}
    assert vectors.settings != systems.make_system("order-2").settings
    settings = [systems.make_system(name).settings for name in systems.CANDIDATES]
    assert all(one != two for i, one in enumerate(settings) for two in settings[:i])
    assert systems.CANDIDATES["order-2"] == {"model": {"order": 2}}, "nothing was merged into it"


def test_ours_learns_until_its_training_stops(load, flights):
    predict, said = load("systems").make_system("default").train(flights)
    assert predict([text.words for text in flights]) == [text.spans for text in flights]
    assert said["status"].startswith("converged")


def test_the_results_say_what_ours_has_chosen(load, flights):
    _, said = load("systems").make_system("order-2").train(flights)
    # too few to choose by
    assert said["choice"] == {
        "sigma": 2.0,
        "order": None,
        "documents": 0,
        "wide": None,
        "cost": pytest.approx(0.2, abs=0.1),
        "temperature": None,
    }
    _, said = load("systems").make_system("order-2+sigma-3").train(flights)
    assert said["choice"]["sigma"] is said["choice"]["order"] is None


def test_crfsuite_learns_and_chooses_its_prior(peers, flights):
    system = peers.CRFsuite(strengths=(100.0, 0.1))
    predict, said = system.train(flights)
    assert predict([text.words for text in flights]) == [text.spans for text in flights]
    assert said == {"c2": 0.1}


def test_the_entity_recognizer_learns(peers, flights):
    system = peers.EntityRecognizer(
        training={"max_steps": 60, "eval_frequency": 20, "patience": 0, "seed": 0}
    )
    predict, _ = system.train(flights)
    assert predict([text.words for text in flights]) == [text.spans for text in flights]


def test_the_entity_recognizer_reads_the_texts_own_tokens(peers, flights, tmp_path):
    some = [text._replace(words=[*text.words, "so-so,"]) for text in flights]  # spaCy cuts it
    config = peers.EntityRecognizer().configure(some, some[:2], tmp_path)
    assert config["training"]["max_steps"] == 2000
    corpora = spacy.registry.resolve(config)["corpora"]
    for part, wanted in (("train", some), ("dev", some[:2])):
        read = [[token.text for token in eg.x] for eg in corpora[part](spacy.blank("en"))]
        assert read == [text.words for text in wanted]


def test_touching_spans_of_one_label_stay_apart_in_tags(peers, load):
    text = load("readers").Text("a b c d".split(), [(0, 2, "X"), (2, 3, "X")])
    assert peers.to_bio(text) == ["B-X", "I-X", "B-X", "O"]
    assert load("common.columns").chunks_of(peers.to_bio(text)) == text.spans


# -------------------- the results file


class Oracle:
    """Knows the label of everything, and counts how often it is trained."""

    def __init__(self, **settings):
        self.settings, self.trained = settings, []

    def train(self, some):
        self.trained.append(len(some))
        return (lambda texts: [[(0, 1, "X")] for _ in texts]), {"said": "so"}


@pytest.fixture
def corpora(load):
    text = load("readers").Text
    held_out = [text(["a"], [(0, 1, "X")]), text(["b"], [(0, 1, "Y")]), text(["c"], [])]
    return {
        name: {"train": texts(load, 9), "dev": held_out, "test": held_out[:1]}
        for name in ("cora", "gum")
    }


def test_nothing_is_computed_twice(load, corpora, tmp_path):
    run, path = load("run"), tmp_path / "metrics" / "results.jsonl"
    system = Oracle(sigma=1)

    def complete(sizes, draws, part="dev", system=system):
        wanted = run.jobs(corpora, sizes, ["oracle"], draws)
        run.complete(path, corpora, {"oracle": system}, wanted, part)
        return len(system.trained)

    assert complete(["4"], 1) == 2
    assert complete(["4"], 1) == 2
    assert complete(["4", "9", "all"], 2) == 6, "a second draw of 4, and one of all"
    assert sorted(system.trained) == [4, 4, 4, 4, 9, 9]
    assert complete(["4"], 1, "test") == 8
    assert complete(["4"], 1, system=Oracle(sigma=2)) == 2, "other settings are another system"
    lines = [json.loads(line) for line in path.read_text(encoding="utf8").splitlines()]
    assert len(lines) == 10
    first = lines[0]
    assert first["counts"] == [[1, 1, 1], [0, 1, 1], [0, 1, 0]]
    assert (first["f"], first["texts"], first["said"]) == (pytest.approx(2 / 5), 4, "so")


def test_what_was_cut_off_is_computed_again(load, corpora, tmp_path):
    run, path, system = load("run"), tmp_path / "results.jsonl", Oracle()
    wanted = [("cora", "4", 0, "oracle"), ("gum", "4", 0, "oracle")]
    run.complete(path, corpora, {"oracle": system}, wanted, "dev")
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    run.complete(path, corpora, {"oracle": system}, wanted, "dev")
    assert len(system.trained) == 3
    again = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert [line["task"] for line in again] == ["cora", "gum"]


# -------------------- the report


def result(task, size, draw, system, right, seconds=1.0, part="dev"):
    """Ten held-out texts with one span each; as many are found rightly as `right` says."""
    counts = [[int(i < right), 1, 1] for i in range(10)]
    return {
        "task": task,
        "size": size,
        "draw": draw,
        "system": system,
        "part": part,
        "settings": "0",
        "texts": 1234 if size == "all" else int(size),
        "seconds": seconds,
        "f": right / 10,
        "counts": counts,
    }


MADE_UP = [
    result("gum", "100", 0, "default", 8),
    result("gum", "100", 1, "default", 10),
    result("gum", "100", 0, "crfsuite", 7),
    result("gum", "100", 1, "crfsuite", 7),
    result("gum", "all", 0, "default", 5),  # crfsuite is missing
    result("cora", "100", 0, "default", 2),  # of an earlier default
    result("cora", "100", 0, "default", 9),
    result("cora", "100", 0, "crfsuite", 9),
    result("cora", "100", 1, "crfsuite", 1),  # default is missing
    result("cora", "100", 0, "ner", 0),
    result("gum", "100", 0, "order-2", 10, seconds=3.0),
    result("cora", "100", 0, "order-2", 9, seconds=3.0),
    result("cora", "100", 0, "sigma-3", 8),
    result("gum", "100", 0, "default", 0, part="test"),
]


@pytest.fixture
def report(load, tmp_path, check_plot, has_matplotlib):
    """The tables of the report on what is made up: rows of cells, headers and rules left out."""
    lines = "".join(json.dumps(line) + "\n" for line in MADE_UP)
    (tmp_path / "results.jsonl").write_text(lines, encoding="utf8")
    load("report").main(tmp_path / "results.jsonl", tmp_path / "dev.md")
    check_plot(tmp_path / "dev.png")
    text = (tmp_path / "dev.md").read_text(encoding="utf8")
    assert ("(dev.png)" in text) == has_matplotlib
    return [row for row in table_rows(text) if not row[0].startswith("---")]


def test_rows_have_means_and_differences_on_common_draws(report):
    rows = [row for row in report if row[0] in ("cora", "gum")]
    assert rows == [
        ["cora", "100", "90.00", "50.00", "0.00", "+0.00 (1.0000)", "**+90.00 (0.0039)**"],
        # texts 8 to 10 differ, two shuffles of eight are so large
        ["gum", "100", "90.00", "70.00", "", "+20.00 (0.2500)", ""],
        ["gum", "all, 1,234", "50.00", "", "", "", ""],
    ]


def test_candidates_are_judged_by_the_rule(report):
    rows = [row for row in report if row[0] in ("order-2", "sigma-3")]
    worst, only = ("+0.00", "cora"), ("-10.00", "cora")
    assert [[*row[:3], *row[4:]] for row in rows] == [
        [
            "order-2",
            "2",
            "+10.00",
            "1 of 2",
            *worst,
            "+20.00",
            "gum",
            "3.00 ×",
            "better",
            "+10.00",
            "",
        ],
        ["sigma-3", "1", "-10.00", "0 of 1", *only, *only, "1.00 ×", "no", "-10.00", ""],
    ]


def test_rows_of_one_task_do_not_make_the_interval_narrower(load):
    jackknife = load("differences").jackknife
    single = jackknife([[1.0], [3.0], [8.0]])
    # the mean of a sample: t · s / sqrt(n), t of two degrees of freedom
    assert single == pytest.approx(4.302653 * 3.605551 / 3**0.5, rel=1e-6)
    assert jackknife([[1.0] * 5, [3.0] * 5, [8.0] * 5]) == pytest.approx(single)
    assert jackknife([[1.0]]) == float("inf")


CONLLU = """# text = They're here .
1-2\tThey're\t_\t_\t_\t_
1\tThey\tthey\tPRON\tPRP\t_
2\t're\tbe\tAUX\tVBP\t_
2.1\tgone\tgo\tVERB\tVBN\t_
3\there\there\tADV\tRB\t_
4\t.\t.\tPUNCT\t.\t_

1\tGo\tgo\tVERB\tVB\t_
"""


def test_words_of_several_tokens_and_empty_nodes_are_left_out(load):
    first, second = load("common.columns").stream_conllu(CONLLU.splitlines(keepends=True))
    assert first == (["They", "'re", "here", "."], ["PRP", "VBP", "RB", "."])
    assert second == (["Go"], ["VB"])
