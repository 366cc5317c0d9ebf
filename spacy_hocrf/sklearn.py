"""A conditional random field of any order with the interface of scikit-learn.

    from spacy_hocrf.sklearn import HighOrderCRF
    crf = HighOrderCRF(c2=0.1, order=2).fit(X, y)

X is a list of sequences of items, y a list of lists of labels; `spacy_hocrf.sequences.items` describes
items. With order 1 it learns the same model as sklearn-crfsuite with the same c2.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from inspect import signature
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.sequences.dataset import Dataset
from spacy_hocrf.sequences.errors import SequenceErrors
from spacy_hocrf.sequences.features import FeatureSettings, features_of
from spacy_hocrf.sequences.items import read_items
from spacy_hocrf.sequences.learning import LearningSettings, Progress, learn, sequence_model
from spacy_hocrf.sequences.model import SequenceModel
from spacy_hocrf.sequences.saving import model_from_bytes, model_to_bytes
from spacy_hocrf.types import is_number, is_whole

try:
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import check_is_fitted
except ImportError as error:
    raise ImportError(SequenceErrors.H282) from error

__all__ = ["HighOrderCRF"]

ALGORITHM = "lbfgs"
NO_LIMIT = 2**31 - 1
WHOLE_NUMBERS = {"order": 0, "num_memories": 1, "period": 1, "max_linesearch": 1}
NUMBERS = ("c1", "c2", "min_freq", "epsilon", "delta")

ELSEWHERE = frozenset(
    (
        *("linesearch", "pa_type", "c", "error_sensitive", "averaging", "variance", "gamma"),
        *("calibration_eta", "calibration_rate", "calibration_samples", "calibration_candidates"),
        *("calibration_max_trials", "model_filename", "keep_tempfiles", "trainer_cls"),
        *("tagger_", "modelfile", "training_log_"),
    )
)
"""Parameters and attributes of sklearn_crfsuite.CRF that this class does not have."""

Items = Iterable[Iterable[Any]]


class HighOrderCRF(BaseEstimator):
    """A conditional random field, trained to the maximum of its penalised likelihood by L-BFGS, or by
    OWL-QN.

    None stands for the default of any parameter, as in sklearn-crfsuite.

    algorithm (str): "lbfgs".
    order (int): number of earlier labels in label patterns.
    c1 (float): coefficient of L1 regularization; above 0 most weights become 0.
    c2 (float): coefficient of L2 regularization.
    min_freq (float): features that are seen less often are left out.
    all_possible_states (bool): make features of every attribute with every label, seen or not.
    all_possible_transitions (bool): make features of every pair of labels.
    attribute_orders (Optional[Mapping[str, Sequence[int]]]): numbers of earlier labels that features of
        attributes see, by prefix of the attribute's name; [0] for others. With {"word:": [0, 1]} attributes
        of words have features with single labels and with pairs.
    max_iterations (Optional[int]): most iterations of L-BFGS; None for no limit.
    num_memories, epsilon, period, delta, max_linesearch: as in
        `spacy_hocrf.sequences.learning.LearningSettings`.
    n_jobs (Optional[int]): number of training threads, -1 for one per processor; the result does
        not depend on it.
    verbose (bool): print a line for each iteration?

    model_ (SequenceModel): the learnt model.
    n_iter_ (int): number of iterations. loss_ (float): the minimised loss, in nats.
    """

    def __init__(
        self,
        algorithm: str | None = ALGORITHM,
        *,
        order: int | None = 1,
        c1: float | None = 0.0,
        c2: float | None = 1.0,
        min_freq: float | None = 0.0,
        all_possible_states: bool | None = False,
        all_possible_transitions: bool | None = False,
        attribute_orders: Mapping[str, Sequence[int]] | None = None,
        max_iterations: int | None = None,
        num_memories: int | None = 6,
        epsilon: float | None = 1e-5,
        period: int | None = 10,
        delta: float | None = 1e-5,
        max_linesearch: int | None = 20,
        n_jobs: int | None = None,
        verbose: bool | None = False,
        **others: Any,
    ) -> None:
        for name, value in others.items():
            if name not in ELSEWHERE:
                raise TypeError(f"HighOrderCRF has no parameter '{name}'")
            if value is not None:
                raise ValueError(SequenceErrors.H421.format(name=name))
        self.algorithm = algorithm
        self.order = order
        self.c1 = c1
        self.c2 = c2
        self.min_freq = min_freq
        self.all_possible_states = all_possible_states
        self.all_possible_transitions = all_possible_transitions
        self.attribute_orders = attribute_orders
        self.max_iterations = max_iterations
        self.num_memories = num_memories
        self.epsilon = epsilon
        self.period = period
        self.delta = delta
        self.max_linesearch = max_linesearch
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __getattr__(self, name: str) -> Any:
        """RAISES (AttributeError): H421 for what sklearn-crfsuite has, but not this class."""
        if name in ELSEWHERE:
            raise AttributeError(SequenceErrors.H421.format(name=name))
        return self.__getattribute__(name)  # a property's own error

    def fit(
        self,
        X: Items,
        y: Iterable[Iterable[str]],
        X_dev: Items | None = None,
        y_dev: Iterable[Iterable[str]] | None = None,
    ) -> "HighOrderCRF":
        """Learn from labelled sequences, replacing an earlier model.

        X_dev, y_dev (None): sklearn-crfsuite's held-out sequences, not supported.
        RAISES (ValueError): H278 for an invalid parameter, H421 for held-out sequences or another
            algorithm, H286 for different numbers of sequences in X and y, H287 without labels, H270 to
            H272 and H284 for invalid sequences or labels.
        """
        if X_dev is not None or y_dev is not None:
            raise ValueError(SequenceErrors.H421.format(name="fit(X, y, X_dev, y_dev)"))
        feature_settings, settings = self._settings()
        data = _dataset(X, y)
        labelled = data.take(-1)
        features = features_of(labelled, data.attributes, len(data.labels), feature_settings)
        self.n_iter_ = 0
        weights, _, self.loss_ = learn(labelled, features, settings, self._note)
        self.model_ = sequence_model(
            data.labels, data.attributes, features, weights
        ).without_zeros()
        return self

    def predict(self, X: Items) -> NDArray[np.object_]:
        """Return the most probable labels of each sequence: object [len(X)] of lists."""
        model = self._fitted()
        return _objects([model.best(chain) for chain in model.chains(map(read_items, X))])

    def predict_single(self, xseq: Iterable[Any]) -> list[str]:
        """Return the most probable labels of one sequence."""
        model = self._fitted()
        return model.best(model.chain(read_items(xseq)))

    def predict_proba(self, X: Items) -> list[NDArray[np.float64]]:
        """Return P(label | sequence) of the items of each sequence, float64 [T, len(classes_)]."""
        model = self._fitted()
        return [chain.marginals() for chain in model.chains(map(read_items, X))]

    def predict_marginals(self, X: Items) -> list[list[dict[str, float]]]:
        """Return P(label | sequence) of the items of each sequence, as a dict from label for each item."""
        names = self.classes_
        return [[dict(zip(names, row)) for row in rows.tolist()] for rows in self.predict_proba(X)]

    def predict_marginals_single(self, xseq: Iterable[Any]) -> list[dict[str, float]]:
        """Return P(label | sequence) of the items of one sequence, as a dict from label for each item."""
        return self.predict_marginals([xseq])[0]

    def score(self, X: Items, y: Sequence[Sequence[str]]) -> float:
        """Return the share of items with the right label.

        RAISES (ValueError): H272 or H286 for different numbers of labels or sequences.
        """
        predicted = self.predict(X)
        _check_sizes(len(predicted), len(y))
        for labels, gold in zip(predicted, y):
            if len(labels) != len(gold):
                raise ValueError(SequenceErrors.H272.format(items=len(labels), labels=len(gold)))
        right = [a == b for labels, gold in zip(predicted, y) for a, b in zip(labels, gold)]
        return float(np.mean(right)) if right else 0.0

    @property
    def classes_(self) -> list[str]:
        """The labels, in order of first occurrence in training; columns of `predict_proba`."""
        return list(self._fitted().labels)

    @property
    def attributes_(self) -> list[str]:
        """The attributes of the model."""
        return list(self._fitted().attributes)

    @property
    def num_attributes_(self) -> int:
        """Number of attributes of the model."""
        return len(self._fitted().attributes)

    @property
    def size_(self) -> int:
        """Size of the saved model in bytes."""
        return len(self.to_bytes())

    @property
    def transition_features_(self) -> dict[tuple[str, ...], float]:
        """Weight of each label pattern, oldest label first, of two to order + 1 labels."""
        return self._fitted().transitions()

    @property
    def state_features_(self) -> dict[tuple[str, ...], float]:
        """Weight of each attribute with a label, or with several, oldest label first."""
        return self._fitted().state_features()

    def to_bytes(self) -> bytes:
        """Return the learnt model as bytes, without pickle; parameters are not included."""
        return model_to_bytes(self._fitted())

    def from_bytes(self, data: bytes) -> "HighOrderCRF":
        """Load a model from the result of `to_bytes`.

        RAISES (ValueError): H052, H053, H134, H136 or H274 for other bytes.
        """
        self.model_ = model_from_bytes(data, "bytes")
        return self

    def to_disk(self, path: "str | PathLike[str]") -> None:
        """Write the result of `to_bytes` to a file."""
        Path(path).write_bytes(self.to_bytes())

    def from_disk(self, path: "str | PathLike[str]") -> "HighOrderCRF":
        """Load a model that `to_disk` wrote. RAISES (ValueError): as `from_bytes`."""
        return self.from_bytes(Path(path).read_bytes())

    def _fitted(self) -> SequenceModel:
        """Return the model. RAISES (NotFittedError): before `fit`."""
        check_is_fitted(self, "model_")
        return self.model_

    def _note(self, at: Progress) -> None:
        self.n_iter_ = at.iteration
        if self.verbose:
            print(f"iteration {at.iteration}: loss {at.loss:.6f}, gradient {at.gradient_norm:.6f}")

    def _settings(self) -> tuple[FeatureSettings, LearningSettings]:
        """Check the parameters. RAISES (ValueError): H278 or H421 for an invalid one."""
        chosen = {
            name: parameter.default if getattr(self, name) is None else getattr(self, name)
            for name, parameter in signature(HighOrderCRF).parameters.items()
            if name != "others"
        }
        if chosen["algorithm"] != ALGORITHM:
            raise ValueError(SequenceErrors.H421.format(name=f"algorithm={self.algorithm!r}"))
        for name, least in WHOLE_NUMBERS.items():
            _check_whole(name, chosen[name], least)
        for name in NUMBERS:
            _check_number(name, chosen[name])
        limit = NO_LIMIT if self.max_iterations is None else self.max_iterations
        _check_whole("max_iterations", limit, 1)  # 0 would learn nothing
        features = FeatureSettings(
            order=chosen["order"],
            min_freq=chosen["min_freq"],
            all_states=chosen["all_possible_states"],
            all_transitions=chosen["all_possible_transitions"],
            attribute_orders=_checked_orders(self.attribute_orders, chosen["order"]),
        )
        same = ("c1", "c2", "num_memories", "epsilon", "period", "delta", "max_linesearch")
        settings = {name: chosen[name] for name in same}
        threads = _threads(self.n_jobs)
        return features, LearningSettings(max_iterations=limit, threads=threads, **settings)


def _objects(values: list[list[str]]) -> NDArray[np.object_]:
    """Make an object array [n], even if all lists have the same length."""
    return np.fromiter(values, dtype=object, count=len(values))


def _dataset(X: Items, y: Iterable[Iterable[str]]) -> Dataset:
    sequences, gold = list(X), list(y)
    _check_sizes(len(sequences), len(gold))
    data = Dataset()
    for sequence, labels in zip(sequences, gold):
        data.append(read_items(sequence), labels)
    if not data.labels:
        raise ValueError(SequenceErrors.H287)
    return data


def _check_sizes(x: int, y: int) -> None:
    """RAISES (ValueError): H286 for different numbers of sequences in X and y."""
    if x != y:
        raise ValueError(SequenceErrors.H286.format(x=x, y=y))


def _check_whole(name: str, value: Any, least: int) -> None:
    """RAISES (ValueError): H278 for anything but a whole number of at least `least`."""
    if not is_whole(value) or value < least:
        expected = f"a whole number of at least {least}"
        raise ValueError(SequenceErrors.H278.format(name=name, found=value, expected=expected))


def _check_number(name: str, value: Any) -> None:
    """RAISES (ValueError): H278 for anything but a finite number of at least 0."""
    if not is_number(value) or not 0.0 <= float(value) < float("inf"):
        expected = "a number of at least 0"
        raise ValueError(SequenceErrors.H278.format(name=name, found=value, expected=expected))


def _checked_orders(
    orders: Mapping[str, Sequence[int]] | None, most: int
) -> Mapping[str, Sequence[int]]:
    """Return checked orders. RAISES (ValueError): H278 for an invalid one, or one above `order`."""
    named = isinstance(orders or {}, Mapping)
    if not named or any(not isinstance(each, list | tuple) for each in (orders or {}).values()):
        name, expected = "attribute_orders", "a dict of lists"
        raise ValueError(SequenceErrors.H278.format(name=name, found=orders, expected=expected))
    for prefix, listed in (orders or {}).items():
        for order in listed:
            name = f"attribute_orders[{prefix!r}]"
            _check_whole(name, order, 0)
            if order > most:
                expected = f"orders of at most {most} (see order)"
                text = SequenceErrors.H278.format(name=name, found=list(listed), expected=expected)
                raise ValueError(text)
    return orders or {}


def _threads(n_jobs: int | None) -> int:
    """Return the number of threads. RAISES (ValueError): H278 for an invalid `n_jobs`."""
    if n_jobs is None:
        return 1
    if n_jobs == -1:
        return os.cpu_count() or 1
    _check_whole("n_jobs", n_jobs, 1)
    return n_jobs
