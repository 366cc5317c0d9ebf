"""The estimator with scikit-learn's manners."""

import ast
import inspect
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from documentation import page
from labelled_sequences import LABELS, draw, learnt
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks

from spacy_hocrf.sequences.features import FeatureSettings
from spacy_hocrf.sequences.items import read_items
from spacy_hocrf.sequences.learning import LearningSettings
from spacy_hocrf.sklearn import ELSEWHERE, HighOrderCRF

HERE = Path(__file__).parent  # not where sources stand in for the installed package

X, Y = draw(6)


@pytest.fixture(scope="module")
def crf():
    return HighOrderCRF(order=2, c2=0.3).fit(X, Y)


def test_it_learns_what_the_sequences_show(crf):
    model, _ = learnt(X, Y, FeatureSettings(order=2), LearningSettings(c2=0.3))
    assert crf.transition_features_ == model.transitions()
    assert crf.state_features_ == model.state_features()
    assert set(crf.classes_) == set(LABELS)
    assert crf.attributes_ == list(model.attributes) and crf.num_attributes_ == len(
        model.attributes
    )
    assert max(map(len, crf.transition_features_)) == 3
    assert crf.n_iter_ > 0 and np.isfinite(crf.loss_)


def test_none_is_the_default_as_in_sklearn_crfsuite():
    nothing = {name: None for name in HighOrderCRF().get_params()}
    found = HighOrderCRF(**nothing, linesearch=None, c=None).fit(X, Y)
    assert found.state_features_ == HighOrderCRF().fit(X, Y).state_features_
    assert found.get_params() == nothing


def test_sequences_may_come_one_after_the_other(crf):
    other = HighOrderCRF(order=2, c2=0.3).fit(iter(X), iter(Y))
    assert other.state_features_ == crf.state_features_
    assert other.predict(iter(X)).tolist() == crf.predict(X).tolist()


def test_labels_and_probabilities_are_those_of_the_model(crf):
    model = crf.model_
    best = [model.best(model.chain(read_items(x))) for x in X]
    assert crf.predict(X).tolist() == best and crf.predict(X).shape == (len(X),)
    assert [crf.predict_single(x) for x in X] == best
    for x, proba, marginals in zip(X, crf.predict_proba(X), crf.predict_marginals(X)):
        assert proba.shape == (len(x), 3)
        assert proba.sum(axis=1) == pytest.approx(1.0)
        assert marginals == [dict(zip(crf.classes_, row)) for row in proba.tolist()]
        # alone or among others: another width of vectors
        for one, other in zip(crf.predict_marginals_single(x), marginals):
            assert one == pytest.approx(other)


def test_predictions_are_lists_also_where_all_have_one_length(crf):
    found = crf.predict([[["see0"]], [["see1"]]])
    assert found.shape == (2,) and all(isinstance(each, list) for each in found)


def test_score_is_the_share_of_right_labels(crf):
    pairs = [(a, b) for found, y in zip(crf.predict(X), Y) for a, b in zip(found, y)]
    assert crf.score(X, Y) == pytest.approx(sum(a == b for a, b in pairs) / len(pairs))
    assert crf.score([[]], [[]]) == 0.0
    with pytest.raises(ValueError, match="H286"):
        crf.score(X, Y[1:])
    with pytest.raises(ValueError, match="H272"):
        crf.score([[["a"]]], [["sun", "sun"]])


def test_fitting_again_forgets():
    crf = HighOrderCRF().fit(X, Y)
    assert crf.fit([[["a"], ["b"]]], [["one", "other"]]).classes_ == ["one", "other"]
    assert crf.attributes_ == ["a", "b"]


@pytest.mark.parametrize("n_jobs", [1, 2, -1])
def test_threads_change_nothing(n_jobs):
    crf = HighOrderCRF(n_jobs=n_jobs).fit(X, Y)
    assert crf.transition_features_ == HighOrderCRF().fit(X, Y).transition_features_


def test_with_l1_few_weights_are_left():
    sparse, dense = (HighOrderCRF(c1=c1, c2=0.01, order=2).fit(X, Y) for c1 in (2.0, 0.0))
    assert 0 < len(sparse.state_features_) < len(dense.state_features_) / 4
    assert all(sparse.state_features_.values()) and sparse.num_attributes_ < dense.num_attributes_
    assert sparse.loss_ > dense.loss_ and sparse.score(X, Y) > 0.6


def test_attributes_are_seen_with_several_labels():
    crf = HighOrderCRF(order=2, attribute_orders={"see": [0, 2]}).fit(X, Y)
    assert {len(z) for z in crf.state_features_ if z[0].startswith("see")} == {2, 4}
    assert {len(z) for z in crf.state_features_ if z[0].startswith("word")} == {2}


def test_iterations_are_limited_and_told(capsys):
    crf = HighOrderCRF(max_iterations=2, verbose=True).fit(X, Y)
    assert crf.n_iter_ == 2 and capsys.readouterr().out.count("\n") == 2


@pytest.mark.parametrize("settings", [{"c1": 1e3}, {"min_freq": 1e9}, {"epsilon": 1e3}])
def test_the_loss_without_an_iteration_is_that_of_equal_probabilities(settings):
    crf = HighOrderCRF(**settings).fit([[["a"]], [["b"]]], [["one"], ["other"]])
    assert crf.n_iter_ == 0 and crf.loss_ == pytest.approx(2 * np.log(2))


@pytest.mark.parametrize("value", [1e24, 3e38])
@pytest.mark.parametrize("c1", [0.0, 0.01])
def test_values_of_single_precision_are_learnt_however_large(value, c1):
    x = [[{"a": value}], [{"b": 1}]]
    crf = HighOrderCRF(c1=c1).fit(x, [["one"], ["other"]])
    assert crf.predict_marginals(x)[0][0]["one"] > 0.99 and crf.loss_ < 0.7


@pytest.mark.parametrize("name", ["num_memories", "period", "max_linesearch", "max_iterations"])
@pytest.mark.parametrize("value", [np.int8(3), 10**18, 10**400])
def test_whole_numbers_may_be_of_any_type_and_size(name, value):
    assert HighOrderCRF(**{name: value}).fit(X, Y).loss_ < HighOrderCRF(c1=1e3).fit(X, Y).loss_


@pytest.mark.parametrize(
    "name, value, code",
    [
        ("algorithm", "l2sgd", "H421.*l2sgd.*spacy_hocrf.pycrfsuite"),
        ("c1", -0.1, "H278"),
        ("order", -1, "H278"),
        ("order", 1.5, "H278"),
        ("order", True, "H278"),
        ("attribute_orders", {"a": [2]}, "H278.*at most 1"),
        ("attribute_orders", {"a": [-1]}, "H278"),
        ("attribute_orders", [1], "H278.*a dict of lists"),
        ("attribute_orders", {"a": 1}, "H278.*a dict of lists"),
        ("attribute_orders", {"a": "1"}, "H278.*a dict of lists"),
        ("c1", "1", "H278.*c1 = '1'"),
        ("c2", -1, "H278"),
        ("c2", "much", "H278"),
        ("c2", float("nan"), "H278"),
        ("c2", 10**400, "H278"),
        ("epsilon", -1, "H278"),
        ("period", 0, "H278"),
        ("max_iterations", -1, "H278"),
        ("max_iterations", 0, "H278"),
        ("n_jobs", 0, "H278"),
    ],
)
def test_parameters_are_looked_at_when_it_is_fitted(name, value, code):
    crf = HighOrderCRF(**{name: value})
    with pytest.raises(ValueError, match=code):
        crf.fit(X, Y)


@pytest.mark.parametrize(
    "x, y, code",
    [
        (X, Y[1:], "H286"),
        ([], [], "H287"),
        ([[]], [[]], "H287"),
        ([[["a"]]], [[]], "H272"),
        ([[["a"]]], [[1]], "H284"),
        ([["a"]], [["x"]], "H270"),
        ([[{"a": None}]], [["x"]], "H271"),
    ],
)
def test_what_cannot_be_learnt_from(x, y, code):
    with pytest.raises(ValueError, match=code):
        HighOrderCRF().fit(x, y)


def test_labels_of_numpy_become_strings():
    crf = HighOrderCRF().fit(np.array(X, dtype=object), [np.array(y, dtype=str) for y in Y])
    assert {type(label) for label in crf.predict_single([["see0"]])} == {str}


@pytest.mark.parametrize(
    "ask",
    [
        lambda crf: crf.predict(X),
        lambda crf: crf.score(X, Y),
        lambda crf: crf.predict_marginals(X),
        lambda crf: crf.to_bytes(),
        lambda crf: crf.classes_,
    ],
)
def test_before_it_is_fitted(ask):
    with pytest.raises(NotFittedError):
        ask(HighOrderCRF())


def test_parameters_and_clones(crf):
    assert clone(crf).get_params() == crf.get_params()
    assert crf.get_params()["order"] == 2 and not hasattr(clone(crf), "model_")
    assert clone(crf).set_params(order=3).order == 3
    with pytest.raises(ValueError, match="foo"):
        clone(crf).set_params(foo=1)


@pytest.mark.parametrize(
    "check",
    [
        "check_estimator_cloneable",
        "check_estimator_repr",
        "check_estimator_tags_renamed",
        "check_get_params_invariance",
        "check_no_attributes_set_in_init",
        "check_parameters_default_constructible",
        "check_set_params",
        "check_valid_tag_types",
    ],
)
def test_checks_of_scikit_learn_that_need_no_arrays(check):
    if not hasattr(estimator_checks, check):
        pytest.skip("this version of scikit-learn has no such check")
    getattr(estimator_checks, check)("HighOrderCRF", HighOrderCRF())


@pytest.mark.slow
def test_grid_search_and_cross_validation():
    grid = {"c2": [0.1, 10.0], "order": [1, 2]}
    search = GridSearchCV(HighOrderCRF(), grid, cv=3).fit(X, Y)
    assert set(search.best_params_) == set(grid)
    assert search.best_estimator_.score(X, Y) == search.score(X, Y) > 0.6
    scores = cross_val_score(HighOrderCRF(), X, Y, cv=3)
    assert scores.shape == (3,) and (scores > 0.5).all()
    found = cross_val_predict(HighOrderCRF(), X, Y, cv=3)
    assert [len(labels) for labels in found] == [len(y) for y in Y]


def test_pipelines():
    only_seen = FunctionTransformer(lambda X: [[list(item)[:1] for item in x] for x in X])
    pipeline = make_pipeline(only_seen, HighOrderCRF()).fit(X, Y)
    assert set(pipeline[-1].attributes_) == {"see0", "see1", "see2"}
    assert pipeline.predict(X).shape == (len(X),)


def test_pickled_and_saved_models_say_the_same(crf, tmp_path):
    again = pickle.loads(pickle.dumps(crf))
    assert again.get_params() == crf.get_params()
    crf.to_disk(tmp_path / "model")
    read = HighOrderCRF().from_disk(tmp_path / "model")
    for other in (again, read, HighOrderCRF().from_bytes(crf.to_bytes())):
        assert other.predict(X).tolist() == crf.predict(X).tolist()
        assert other.state_features_ == crf.state_features_


def test_bytes_that_are_no_model():
    with pytest.raises(ValueError, match="H052"):
        HighOrderCRF().from_bytes(b"nothing")


def test_every_member_of_sklearn_crfsuite_is_here_or_named_as_elsewhere(crf):
    theirs = pytest.importorskip(
        "sklearn_crfsuite", reason="needs sklearn-crfsuite (extra: benchmark)"
    ).CRF()
    parameters = set(theirs.get_params())
    assert parameters <= {*crf.get_params(), *ELSEWHERE}
    for name in parameters - set(crf.get_params()):
        with pytest.raises(ValueError, match=f"H421.*'{name}'.*spacy_hocrf.pycrfsuite"):
            HighOrderCRF(**{name: 1})
    members = {name for name in dir(theirs) if not name.startswith("_")} - parameters
    for name in members & ELSEWHERE:
        with pytest.raises(AttributeError, match=f"H421.*'{name}'.*spacy_hocrf.pycrfsuite"):
            getattr(crf, name)
    assert all(hasattr(crf, name) for name in members - ELSEWHERE)
    assert parameters | members >= ELSEWHERE and crf.size_ == len(crf.to_bytes())
    assert ELSEWHERE <= set(re.findall(r"`(\w+)`", page("docs/coming-from.md")))


@pytest.mark.parametrize("held_out", [(X, Y), (X,), (None, Y)])
def test_held_out_sequences_are_not_left_out_in_silence(held_out):
    with pytest.raises(ValueError, match=r"H421.*X_dev.*spacy_hocrf\.pycrfsuite"):
        HighOrderCRF().fit(X, Y, *held_out)


def test_a_parameter_of_nobody():
    with pytest.raises(TypeError, match="nothing"):
        HighOrderCRF(nothing=1)
    assert not hasattr(HighOrderCRF(), "nothing")


@pytest.mark.slow
def test_without_scikit_learn_the_error_says_what_to_install():
    code = "import sys; sys.modules['sklearn'] = None; import spacy_hocrf.sklearn"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf8", cwd=HERE
    )
    assert "ImportError: [H282]" in done.stderr and "spacy-hocrf[sklearn]" in done.stderr


def test_their_page_has_all_parameters_with_their_defaults():
    text = page("docs/coming-from.md").partition("| parameter | default |")[2].partition("\n\n")[0]
    rows = [re.findall(r"`([^`]*)`", row) for row in re.findall(r"^\|( `.*)\|.*\|$", text, re.M)]
    found = {name: value for row in rows for name, value in zip(row, row[len(row) // 2 :])}
    defaults = HighOrderCRF().get_params()
    assert [*found, "others"] == list(inspect.signature(HighOrderCRF).parameters)
    assert {name: ast.literal_eval(value) for name, value in found.items()} == defaults
