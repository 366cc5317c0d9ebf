"""The module in the shape of python-crfsuite."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ClassVar

import pytest
from labelled_sequences import LABELS, draw, learnt

from spacy_hocrf.pycrfsuite import ItemSequence, Tagger, Trainer
from spacy_hocrf.sequences.features import FeatureSettings
from spacy_hocrf.sequences.learning import LearningSettings
from spacy_hocrf.sequences.saving import is_ours

HERE = Path(__file__).parent  # not where sources stand in for the installed package


@pytest.fixture(scope="module")
def data():
    return draw(2)


def train(path, data, *, groups=(), holdout=-1, trainer=None, **params):
    trainer = trainer or Trainer(verbose=False)
    trainer.set_params({name.replace("__", "."): value for name, value in params.items()})
    for i, (x, y) in enumerate(zip(*data)):
        trainer.append(x, y, int(i in groups))
    trainer.train(path, holdout)
    return trainer


@pytest.fixture(scope="module")
def path(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.crfsuite"
    train(path, data)
    return path


@pytest.fixture
def tagger(path):
    tagger = Tagger()
    tagger.open(path)
    return tagger


def test_a_trained_model_is_that_of_the_data(tagger, data):
    # as many digits as training stops at
    model, _ = learnt(*data, settings=LearningSettings())
    info = tagger.info()
    assert info.state_features == pytest.approx(model.state_features())
    assert info.transitions == pytest.approx(model.transitions())


def test_the_minimum_is_that_of_the_objective(data, tmp_path):
    path = tmp_path / "model"
    train(path, data, c2=0.3, delta=1e-13)
    with Tagger().open(str(path)) as tagger:
        model, _ = learnt(*data)
        assert tagger.info().transitions == pytest.approx(model.transitions(), abs=1e-3)


@pytest.mark.parametrize("c2", [0.0, 0.3])
def test_l2sgd_is_lbfgs_and_says_so(c2, data, tmp_path, capsys):
    of_no_effect = {"max_iterations": 1, "calibration.eta": 9, "calibration.samples": 2}
    paths = [tmp_path / name for name in ("l2sgd", "lbfgs")]
    for path, extra in zip(paths, (of_no_effect, {"max_iterations": 0})):
        params = {"c2": c2, "delta": 1e-4, "period": 4, "feature.order": 2, **extra}
        trainer = train(path, data, trainer=Trainer(path.name, params))
        printed = capsys.readouterr().out
        assert ("l2sgd: the minimum of lbfgs, by L-BFGS" in printed) is (path.name == "l2sgd")
        assert f"L-BFGS optimization\nc1: 0.000000\nc2: {c2:f}\n" in printed
        assert len(trainer.logparser.iterations) > 3
    assert paths[0].read_bytes() == paths[1].read_bytes()


@pytest.mark.parametrize("order", [2, 3])
def test_label_successions_of_any_length(order, data, tmp_path):
    path = tmp_path / "model"
    train(path, data, feature__order=order)
    assert is_ours(path.read_bytes())
    model, _ = learnt(*data, FeatureSettings(order=order), LearningSettings())
    with Tagger().open(path) as tagger:
        info = tagger.info()
        assert info.header["num_labels"] == "3"
        assert info.transitions == pytest.approx(model.transitions())
        assert max(map(len, info.transitions)) == order + 1
        for x in data[0]:
            assert tagger.tag(x) == model.best(model.chain(ItemSequence(x)._items))


def test_features_are_those_that_the_parameters_ask_for(data, tmp_path):
    path = tmp_path / "model"
    train(path, data, feature__possible_states=True, feature__possible_transitions=True)
    with Tagger().open(path) as tagger:
        info = tagger.info()
    assert len(info.transitions) == 9 and len(info.state_features) == 3 * len(info.attributes)
    train(path, data, feature__minfreq=5)
    with Tagger().open(path) as tagger:
        assert len(tagger.info().attributes) < len(info.attributes)


def test_probabilities(tagger, data):
    x = next(x for x in data[0] if len(x) > 2)
    tagger.set(x)
    best = tagger.tag()
    assert best == tagger.tag(x) == tagger.tag(ItemSequence(x))
    assert 0.0 < tagger.probability(best) <= 1.0
    assert sum(tagger.marginal(label, 1) for label in LABELS) == pytest.approx(1.0)
    tagger.set(x[:2])
    pairs = {(a, b): tagger.probability([a, b]) for a in LABELS for b in LABELS}
    assert sum(pairs.values()) == pytest.approx(1.0)
    first = sum(p for (a, _), p in pairs.items() if a == LABELS[0])
    assert tagger.marginal(LABELS[0], 0) == pytest.approx(first)


@pytest.mark.parametrize(
    "ask, code",
    [
        (lambda tagger: tagger.probability([LABELS[0]]), "H272"),
        (lambda tagger: tagger.marginal(LABELS[0], 2), "H276"),
        (lambda tagger: tagger.marginal(LABELS[0], -1), "H276"),
        (lambda tagger: tagger.tag("word"), "H270"),
        (lambda tagger: tagger.open_inmemory(b"lCRF"), "H274"),
    ],
)
def test_what_cannot_be_asked(tagger, ask, code):
    tagger.set([["see0"], ["see1"]])
    with pytest.raises(ValueError, match=code):
        ask(tagger)


@pytest.mark.parametrize(
    "ask",
    [lambda tagger: tagger.probability(["hail"] * 2), lambda tagger: tagger.marginal("hail", 0)],
)
def test_an_unknown_label_is_a_runtime_error_as_it_is_theirs(tagger, ask):
    tagger.set([["see0"], ["see1"]])
    with pytest.raises(RuntimeError, match="H273"):
        ask(tagger)


@pytest.mark.parametrize(
    "name", ["tag", "labels", "set", "probability", "marginal", "info", "dump"]
)
def test_a_closed_tagger_says_so(path, name):
    with Tagger().open(path) as tagger:
        pass
    arguments = {"set": ([],), "probability": ([],), "marginal": (LABELS[0], 0)}.get(name, ())
    with pytest.raises(RuntimeError if name in ("info", "dump") else ValueError, match="H275"):
        getattr(tagger, name)(*arguments)


def test_a_sequence_belongs_to_the_model_that_it_was_set_for(path):
    tagger = Tagger()
    tagger.open(path)
    tagger.set([["see0"]])
    tagger.open_inmemory(path.read_bytes())
    assert tagger.tag() == []


def test_sequences_of_any_lengths_may_follow_one_another(path, data):
    tagger, sequences = Tagger(), [data[0][0], [], *data[0], [["see0"]] * 40, data[0][1]]
    tagger.open(path)
    for x in sequences:
        alone = Tagger()
        alone.open(path)
        found = tagger.tag(x)
        assert found == alone.tag(x)
        assert tagger.probability(found) == alone.probability(found)
        assert len(x) == 0 or tagger.marginal("sun", len(x) - 1) == alone.marginal(
            "sun", len(x) - 1
        )


def test_threads_may_share_a_tagger_as_they_may_share_theirs(path, data):
    tagger, sequences = Tagger(), data[0] * 30
    tagger.open(path)
    alone = [tagger.tag(x) for x in sequences]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            assert list(threads.map(tagger.tag, sequences)) == alone
    finally:
        sys.setswitchinterval(before)


def test_a_sequence_that_cannot_be_scored_leaves_none(path):
    tagger = Tagger()
    tagger.open(path)
    tagger.set([["see0"]])
    with pytest.raises(ValueError, match="H420"):
        tagger.set([{"see0": 1.7e308}])
    assert tagger.tag() == []


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(OSError):
        Tagger().open(tmp_path / "none")


def test_paths_and_labels_may_be_bytes_and_models_any_bytes_as_they_may_be_theirs(tmp_path, data):
    path = bytes(tmp_path / "model.crfsuite")
    train(path, data)
    with Tagger().open(path) as tagger:
        tagger.set([["see0"]])
        label = tagger.labels()[0]
        assert tagger.marginal(label.encode(), 0) == tagger.marginal(label, 0)
        assert tagger.probability([label.encode()]) == tagger.probability([label])
        other = Tagger()
        other.open_inmemory(memoryview(Path(os.fsdecode(path)).read_bytes()))
        assert other.labels() == tagger.labels()


@pytest.mark.parametrize("path, error", [("none/model", FileNotFoundError), (None, TypeError)])
def test_a_path_that_cannot_be_written_is_an_error_before_training(path, error, data, tmp_path):
    trainer = Trainer(verbose=False)
    with pytest.raises(error):
        train(path and tmp_path / path, data, trainer=trainer)
    assert trainer.logparser is None or not trainer.logparser.iterations


def test_dump(tagger, tmp_path, capsys):
    tagger.dump(tmp_path / "dump.txt")
    text = (tmp_path / "dump.txt").read_text("utf8")
    tagger.dump()
    assert capsys.readouterr().out == text
    for line in (
        "FILEHEADER = {",
        "  magic: lCRF",
        f"      0: {tagger.labels()[0]}",
        "      0: see",
    ):
        assert f"{line}" in text
    info = tagger.info()
    (pair, weight), *_ = info.transitions.items()
    assert f"  (1) {pair[0]} --> {pair[1]}: {weight:.6f}\n" in text
    (pair, weight), *_ = info.state_features.items()
    assert f"  (0) {pair[0]} --> {pair[1]}: {weight:.6f}\n" in text


def test_items():
    items = ItemSequence([{"a": {"b": 0.5}}, ["c"]])
    assert items.items() == [{"a:b": 0.5}, {"c": 1.0}]
    assert len(items) == 2 and repr(items) == "<ItemSequence of size 2>"
    assert ItemSequence(items).items() == items.items()


@pytest.mark.parametrize(
    "name, value, found",
    [
        ("c2", "0.5", 0.5),
        ("c2", 0, 0.0),
        ("max_iterations", "7", 7),
        ("max_iterations", 7.0, 7),
        ("feature.possible_states", 1, True),
        ("feature.possible_states", "0", False),
        ("c1", 0, 0.0),
        ("linesearch", "MoreThuente", "MoreThuente"),
    ],
)
def test_parameters_have_the_types_of_their_defaults(name, value, found):
    trainer = Trainer(params={name: value}, verbose=False)
    assert trainer.get(name) == trainer.get_params()[name] == found
    assert type(trainer.get(name)) is type(found)
    assert trainer.help(name) and name in trainer.params()


@pytest.mark.parametrize(
    "name, value, code",
    [
        ("foo", 1, "H277"),
        ("c2", "much", "H278"),
        ("c2", -1, "H278"),
        ("c2", float("nan"), "H278"),
        ("c2", None, "H278"),
        ("max_iterations", 1.5, "H278"),
        ("feature.order", -1, "H278"),
        ("c1", -0.1, "H278"),
        ("num_memories", 0, "H278"),
        ("max_linesearch", 0, "H278"),
        ("linesearch", "Newton", "H278.*MoreThuente, Backtracking, StrongBacktracking"),
    ],
)
def test_parameters_that_cannot_be(name, value, code):
    with pytest.raises(ValueError, match=code):
        Trainer(params={name: value}, verbose=False)


@pytest.mark.slow
def test_the_averaged_perceptron(data, tmp_path, capsys):
    path, trainer = tmp_path / "model", Trainer("ap", {"max_iterations": 60})
    train(path, data, trainer=trainer, holdout=1, groups=[0])
    assert (
        capsys.readouterr().out.count("***** Iteration") == 60 == len(trainer.logparser.iterations)
    )
    losses = [at["loss"] for at in trainer.logparser.iterations]
    assert losses[0] > losses[-1] and trainer.logparser.training_seconds is not None
    with Tagger().open(path) as tagger:
        pairs = [(tagger.tag(x), y) for x, y in zip(*data)]
    right = [label == known for found, y in pairs for label, known in zip(found, y)]
    assert sum(right) > 0.8 * len(right)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["ap", "pa", "arow"])
def test_online_algorithms_end_when_the_mean_loss_is_small(algorithm, data, capsys):
    def losses(epsilon):
        trainer = Trainer(algorithm, {"max_iterations": 20, "epsilon": epsilon})
        train("", data, trainer=trainer)
        assert f"epsilon: {epsilon}\n" in capsys.readouterr().out
        return [at["loss"] for at in trainer.logparser.iterations]

    every = losses(0.0)
    assert len(every) == 20
    for n in (1, 3, 8):
        bound = 1.0001 * every[n]  # above the loss as it is printed
        first = next(i for i, loss in enumerate(every) if loss < bound)
        assert losses(bound / len(data[0])) == every[: first + 1]


def test_the_loss_of_the_perceptron_is_the_share_of_wrong_items():
    trainer = Trainer("ap", {"max_iterations": 1})
    trainer.append([["a"], ["b"], ["c"], ["d"], ["e"]], "XYYXY")
    trainer.train("")  # all labels are as good, and the last one goes to every item
    assert trainer.logparser.iterations[0]["loss"] in (0.4, 0.6)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["pa", "arow"])
def test_other_online_algorithms(algorithm, data, tmp_path, capsys):
    path, trainer = tmp_path / "model", Trainer(algorithm, {"max_iterations": 30})
    train(path, data, trainer=trainer, holdout=1, groups=[0])
    printed = capsys.readouterr().out
    assert printed.count("***** Iteration") == 30 and "max_iterations: 30" in printed
    losses = [at["loss"] for at in trainer.logparser.iterations]
    assert losses[0] > losses[-1] > 0
    with Tagger().open(path) as tagger:
        pairs = [(tagger.tag(x), y) for x, y in zip(*data)]
    right = [label == known for found, y in pairs for label, known in zip(found, y)]
    assert sum(right) > 0.8 * len(right)


@pytest.mark.parametrize(
    "algorithm, name, value, expected",
    [
        ("pa", "type", 3, "at most 2"),
        ("pa", "type", 0.5, "such as 1"),
        ("pa", "c", -1, "such as 1.0"),
        ("arow", "gamma", 0, "such as 1.0"),
    ],
)
def test_parameters_of_online_algorithms_that_cannot_be(algorithm, name, value, expected):
    with pytest.raises(ValueError, match=f"H278.*{expected}"):
        Trainer(algorithm, {name: value}, verbose=False)


@pytest.mark.parametrize("c1", [0, 0.3])
def test_a_period_or_a_limit_of_0_is_none(data, tmp_path, c1):
    losses = []
    for params in ({"delta": 0}, {"period": 0}, {"delta": 0, "max_iterations": 0}):
        trainer = Trainer(params={"c1": c1, **params}, verbose=False)
        train(tmp_path / "model", data, trainer=trainer)
        losses.append([at["loss"] for at in trainer.logparser.iterations])
    assert losses[0] and losses[0] == losses[1] == losses[2]


def test_any_line_search_leads_to_the_minimum(data, tmp_path):
    models = []
    for name in ("MoreThuente", "StrongBacktracking"):
        path = tmp_path / name
        train(path, data, linesearch=name)
        models.append(path.read_bytes())
    assert models[0] == models[1]


@pytest.mark.parametrize("algorithm, kind", [("foo", "crf1d"), ("lbfgs", "semim")])
def test_algorithms_that_do_not_exist(algorithm, kind):
    with pytest.raises(ValueError, match="H280"):
        Trainer(verbose=False).select(algorithm, kind)


def test_labelled_sequences_that_are_none(data):
    trainer = Trainer(verbose=False)
    with pytest.raises(ValueError, match="H272"):
        trainer.append([["a"]], [])
    with pytest.raises(ValueError, match="H270"):
        trainer.append(["a"], ["x"])


def test_sequences_can_be_forgotten(data, tmp_path):
    trainer = train("", data)
    trainer.clear()
    trainer.train(tmp_path / "model")
    with Tagger().open(tmp_path / "model") as tagger:
        assert tagger.labels() == []


def test_messages_are_read_as_they_are_written(data, tmp_path, capsys):
    trainer = train(tmp_path / "model", data, holdout=1, groups=range(0, 30, 3), trainer=Trainer())
    printed, log = capsys.readouterr().out, trainer.logparser
    assert printed.startswith("Holdout group: 2\n") and "".join(log.log) == printed
    assert log.featgen_percent == 100
    assert f"Number of features: {log.featgen_num_features}\n" in printed
    assert [at["num"] for at in log.iterations] == list(range(1, len(log.iterations) + 1))
    names = [name for name, *_ in log.events if name != "featgen_progress"]
    ends = ["optimization_end", "end"]
    assert names == [
        "start",
        "featgen_end",
        "prepared",
        *["iteration"] * len(log.iterations),
        *ends,
    ]
    last = log.last_iteration
    assert last["error_norm"] < log.iterations[0]["error_norm"]
    held_out = [pair for i in range(0, 30, 3) for pair in zip(data[0][i], data[1][i])]
    with Tagger().open(tmp_path / "model") as tagger:
        found = [label for i in range(0, 30, 3) for label in tagger.tag(data[0][i])]
    gold = [label for _, label in held_out]
    right = sum(a == b for a, b in zip(found, gold))
    assert last["item_accuracy_float"] == pytest.approx(right / len(gold))
    score = last["scores"][LABELS[0]]
    assert (score.model, score.ref) == (found.count(LABELS[0]), gold.count(LABELS[0]))
    assert score.precision == pytest.approx(score.match / score.model, abs=1e-4)


def test_events_get_their_own_lines(data):
    class Listening(Trainer):
        heard: ClassVar = {}

        def on_prepared(self, log):
            self.heard["prepared"] = log

        def on_iteration(self, log, info):
            self.heard[info["num"]] = log

    train("", data, trainer=Listening())
    assert "L-BFGS optimization\nc1: 0.000000\n" in Listening.heard["prepared"]
    assert "Iteration" not in Listening.heard["prepared"]
    assert Listening.heard[2].startswith("***** Iteration #2 *****\nLoss: ")


def test_nothing_is_printed_unless_it_is_asked_for(data, capsys):
    class Printing(Trainer):  # as sklearn-crfsuite's
        def on_iteration(self, log, info):
            print("Iter", info["num"])

    trainer = Printing(verbose=False)
    train("", data, trainer=trainer)
    assert capsys.readouterr().out == ""
    assert trainer.logparser.last_iteration["num"] == len(trainer.logparser.iterations) > 1


def test_a_label_that_is_not_held_out_has_no_scores(data):
    items, names = [["a"]], ["hail"]
    trainer = train("", ([*data[0], items], [*data[1], names]), holdout=1, groups=[0, 1, 2])
    assert trainer.logparser.last_iteration["scores"]["hail"][2:] == (0, None, None, None)


@pytest.mark.slow
def test_tagging_needs_no_spacy():
    code = "import sys, spacy_hocrf.pycrfsuite; print([m for m in sys.modules if m in ('spacy', 'thinc')])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf8", cwd=HERE
    )
    assert done.stdout.strip() == "[]", done.stderr
