"""Models that python-crfsuite trains, and models for it to read: the same labels, the same
probabilities, the same files.
"""

import subprocess
import sys

import numpy as np
import pytest
from labelled_sequences import draw

from spacy_hocrf import pycrfsuite as ours_module
from spacy_hocrf.pycrfsuite import Tagger, Trainer
from spacy_hocrf.sequences.crfsuite_file import read_crfsuite, write_crfsuite

pycrfsuite = pytest.importorskip("pycrfsuite", reason="needs python-crfsuite (extra: benchmark)")

ALGORITHMS = {
    "lbfgs": {},
    "lbfgs sparse": {"c1": 0.5, "feature.possible_transitions": True},
    "lbfgs all": {"feature.possible_states": True, "feature.possible_transitions": True, "c2": 0.1},
    "lbfgs rare": {"feature.minfreq": 3.0},
    "l2sgd": {"max_iterations": 50},
    "ap": {"max_iterations": 20},
    "pa": {"max_iterations": 20},
    "arow": {"max_iterations": 20},
}


def trained(trainer, data, path):
    for x, y in zip(*data):
        trainer.append(x, y)
    trainer.train(str(path))
    return path


def opened(module_tagger, path):
    module_tagger.open(str(path))
    return module_tagger


@pytest.fixture(params=ALGORITHMS, scope="module")
def path(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.crfsuite"
    name, seed = request.param.split()[0], list(ALGORITHMS).index(request.param)
    trainer = pycrfsuite.Trainer(name, ALGORITHMS[request.param], verbose=False)
    return trained(trainer, draw(seed, n=60, labels=[f"L{i}" for i in range(2 + seed)]), path)


def test_files_are_written_as_they_were_read(path):
    data = path.read_bytes()
    assert write_crfsuite(read_crfsuite(data, "file")) == data


def test_labels_and_probabilities_are_the_same(path):
    theirs, ours = opened(pycrfsuite.Tagger(), path), opened(Tagger(), path)
    assert ours.labels() == theirs.labels()
    for x in filter(None, draw(77, n=100, longest=12)[0]):
        found = theirs.tag(x)
        assert ours.tag(x) == found
        assert ours.probability(found) == pytest.approx(theirs.probability(found), rel=1e-9)
        for position, label in enumerate(found):
            expected = theirs.marginal(label, position)
            assert ours.marginal(label, position) == pytest.approx(expected, rel=1e-9)


def test_info_and_dump_are_the_same(path, tmp_path):
    theirs, ours = opened(pycrfsuite.Tagger(), path), opened(Tagger(), path)
    assert ours.info().header == theirs.info().header
    assert ours.info().attributes == theirs.info().attributes
    assert ours.info().transitions == pytest.approx(theirs.info().transitions, abs=1e-6)
    theirs.dump(str(tmp_path / "theirs"))
    ours.dump(tmp_path / "ours")
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()


SETTINGS = [
    {},
    {"c2": 0.1, "feature.possible_transitions": True},
    {"feature.possible_states": True, "feature.minfreq": 0},
    {"feature.possible_states": True, "feature.possible_transitions": True, "feature.minfreq": 4},
]


@pytest.mark.parametrize("params", SETTINGS)
def test_models_that_are_trained_are_the_same(params, tmp_path):
    data = draw(9, n=60, values=False)
    params = {**params, "epsilon": 1e-9, "delta": 1e-13}
    path = trained(pycrfsuite.Trainer(params=params, verbose=False), data, tmp_path / "theirs")
    theirs = opened(pycrfsuite.Tagger(), path)
    trainer = Trainer(params=params, verbose=False)
    # both by both
    path = trained(trainer, data, tmp_path / "ours")
    ours = opened(pycrfsuite.Tagger(), path)
    assert ours.info().labels == theirs.info().labels
    assert ours.info().state_features == pytest.approx(theirs.info().state_features, abs=1e-5)
    assert ours.info().transitions == pytest.approx(theirs.info().transitions, abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("c1, c2", [(0.5, 0.0), (0.1, 0.01), (2.0, 0.3)])
def test_sparse_models_have_the_same_loss_and_nearly_the_same_features(c1, c2, tmp_path):
    data, losses, kept = draw(9, n=60, values=False), [], []
    params = {"c1": c1, "c2": c2, "epsilon": 1e-7, "delta": 1e-10, "max_linesearch": 100}
    for module in (pycrfsuite, ours_module):
        trainer = module.Trainer(params=params, verbose=False)
        path = trained(trainer, data, tmp_path / "model")
        losses.append(trainer.logparser.last_iteration["loss"])
        info = opened(pycrfsuite.Tagger(), path).info()
        kept.append({*info.state_features, *info.transitions})
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
    assert len(kept[0] ^ kept[1]) <= 0.05 * len(kept[0])


@pytest.mark.slow
def test_sklearn_crfsuite_runs_on_this_and_prints_only_what_it_prints_on_theirs(tmp_path):
    pytest.importorskip("sklearn_crfsuite", reason="needs sklearn-crfsuite (extra: benchmark)")
    code = """
import sys
if sys.argv[1] == "ours":
    import spacy_hocrf.pycrfsuite
    sys.modules["pycrfsuite"] = spacy_hocrf.pycrfsuite
import sklearn_crfsuite
X, y = [[{"word": "a"}, {"word": "b"}]] * 3, [["A", "O"]] * 3
crf = sklearn_crfsuite.CRF(max_iterations=2, verbose=sys.argv[2] == "verbose").fit(X, y, X, y)
print(crf.classes_, crf.predict(X[:1]).tolist(), len(crf.training_log_.iterations), crf.size_)
print(sorted(crf.training_log_.last_iteration))
"""
    said = {}
    for whose in ("ours", "theirs"):
        for mode in ("quiet", "verbose"):
            command = [sys.executable, "-c", code, whose, mode]
            done = subprocess.run(command, capture_output=True, encoding="utf8", cwd=tmp_path)
            assert done.returncode == 0, done.stderr
            said[whose, mode] = done.stdout
    assert said["ours", "quiet"] == said["theirs", "quiet"]
    assert said["ours", "quiet"].count("\n") == 2
    assert "Iter 1" in said["ours", "verbose"] and "Iter 1" in said["theirs", "verbose"]


def test_models_with_an_empty_label_are_the_same(tmp_path):
    data = [[["a"], ["b"]]] * 3, [["", "O"]] * 3
    for module, other in ((pycrfsuite, ours_module), (ours_module, pycrfsuite)):
        path = trained(module.Trainer(verbose=False), data, tmp_path / "model")
        tagger = opened(other.Tagger(), path)
        assert tagger.labels() == ["", "O"] and tagger.tag(data[0][0]) == ["", "O"]


def test_what_the_log_says_of_an_iteration_has_the_same_names():
    data = draw(9, n=20)
    for algorithm in ("lbfgs", "ap", "pa", "arow"):
        told = []
        for module in (pycrfsuite, ours_module):
            trainer = module.Trainer(algorithm, {"max_iterations": 2}, verbose=False)
            for x, y in zip(*data):
                trainer.append(x, y)
            trainer.train("")
            told.append(trainer.logparser.last_iteration)
        assert {*told[0]} <= {*told[1]}


def test_names_of_algorithms_may_be_capitals():
    for name in ("LBFGS", "AP", "Arow"):
        trainers = [module.Trainer(name, verbose=False) for module in (pycrfsuite, ours_module)]
        assert trainers[0].get_params().items() <= trainers[1].get_params().items()


ONLINE = [
    ("ap", {"max_iterations": 1}),
    ("pa", {"max_iterations": 1}),
    ("pa", {"max_iterations": 30}),
    ("pa", {"max_iterations": 9, "type": 0, "averaging": False}),
    ("pa", {"max_iterations": 9, "type": 2, "c": 0.2, "error_sensitive": False}),
    ("pa", {"max_iterations": 50, "epsilon": 0.5}),
    ("arow", {"max_iterations": 30}),
    ("arow", {"max_iterations": 9, "variance": 0.3, "gamma": 2.0}),
    ("arow", {"max_iterations": 50, "epsilon": 0.3, "gamma": 20.0}),
]


@pytest.mark.slow
@pytest.mark.parametrize("algorithm, params", ONLINE)
@pytest.mark.parametrize("separable", [False, True])
def test_one_sequence_makes_the_weights_of_crfsuite(algorithm, params, separable, tmp_path):
    """Three times the same one, so that its order, which is random, does not matter."""
    numbers = np.random.default_rng(5)
    x = [{str(numbers.choice(list("abcd"))): 1.0} for _ in range(9)]
    y = ["xyz"[ord(min(item)) % 3] if separable else str(numbers.choice(list("xyz"))) for item in x]
    x = [item | {str(numbers.choice(list("efg"))): float(numbers.choice([0.5, 2]))} for item in x]
    found = []
    for module in (pycrfsuite, ours_module):
        trainer = module.Trainer(algorithm, params, verbose=False)
        path = trained(trainer, ([x] * 3, [y] * 3), tmp_path / module.__name__)
        info = opened(pycrfsuite.Tagger(), path).info()
        found.append({**info.state_features, **info.transitions})
    assert len(found[0]) > 8 and found[1] == pytest.approx(found[0], abs=2e-6)  # as it prints them


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["ap", "pa", "arow"])
def test_online_algorithms_are_as_good_as_those_of_crfsuite(algorithm, tmp_path):
    """In an order of their own, which in CRFsuite is another one each time, by C's `rand`: so the means of
    several corpora are compared, of which CRFsuite learns each five times.
    """
    shares = []
    for module, times in ((pycrfsuite, 5), (ours_module, 1)):
        right = []
        for seed in [*range(4)] * times:
            X, Y = draw(seed, n=200, longest=10)
            trainer = module.Trainer(algorithm, {"max_iterations": 10}, verbose=False)
            path = trained(trainer, (X[:80], Y[:80]), tmp_path / f"{module.__name__}{seed}")
            tagger = opened(module.Tagger(), path)
            pairs = [(tagger.tag(x), y) for x, y in zip(X[80:], Y[80:]) if x]
            right += [label == known for found, y in pairs for label, known in zip(found, y)]
        shares.append(sum(right) / len(right))
    assert shares[1] > shares[0] - 0.02


def test_the_loss_is_the_same(tmp_path):
    data, losses = draw(9, n=60, values=False), []
    for module_trainer in (pycrfsuite.Trainer(verbose=False), Trainer(verbose=False)):
        trained(module_trainer, data, tmp_path / "model")
        losses.append(module_trainer.logparser.last_iteration["loss"])
    assert losses[1] == pytest.approx(losses[0], rel=1e-4) and np.isfinite(losses).all()


def test_parameters_are_the_same_but_for_the_order():
    for algorithm in ("lbfgs", "l2sgd", "ap", "pa", "arow"):
        theirs, ours = (m.Trainer(algorithm, verbose=False) for m in (pycrfsuite, ours_module))
        assert ours.get_params() == {**theirs.get_params(), "feature.order": 1}


def test_items_are_the_same():
    items = [
        {"a": 1, "b": {"c": "d", "e": ["f", "g"], "h": {"i": -0.5}}},
        ["a", "b"],
        {},
        {"x": True},
    ]
    assert ours_module.ItemSequence(items).items() == pycrfsuite.ItemSequence(items).items()
