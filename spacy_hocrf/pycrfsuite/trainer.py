"""Training that writes a model file, with the messages of CRFsuite."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from os import PathLike, fsdecode
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from spacy_hocrf.pycrfsuite._logparser import TrainLogParser
from spacy_hocrf.pycrfsuite.evaluation import performance
from spacy_hocrf.pycrfsuite.items import ItemSequence, attributes_in
from spacy_hocrf.pycrfsuite.parameters import (
    ALGORITHMS,
    MAX_INT,
    ONLINE,
    SGD,
    Value,
    cast,
    defaults,
    name_of,
    parameter,
)
from spacy_hocrf.sequences.crfsuite_file import write_crfsuite
from spacy_hocrf.sequences.dataset import Dataset, Labelled
from spacy_hocrf.sequences.errors import SequenceErrors
from spacy_hocrf.sequences.features import Features, FeatureSettings, features_of
from spacy_hocrf.sequences.model import SequenceModel
from spacy_hocrf.sequences.saving import model_to_bytes

if TYPE_CHECKING:
    from spacy_hocrf.sequences.learning import LearningSettings, Progress

__all__ = ["BaseTrainer", "CRFSuiteError", "Trainer"]

TYPE = "crf1d"


class CRFSuiteError(Exception):
    """Exists for programs that catch it; errors here are ValueErrors with a code."""


class BaseTrainer:
    """Collects labelled sequences, and learns a model from them.

    algorithm (Optional[str]): see `select`; lbfgs by default.
    params (Optional[Mapping]): see `set_params`.
    """

    _data: Dataset

    def __new__(cls, *args: Any, **kwargs: Any) -> "BaseTrainer":
        """Initialise here, so that a subclass need not call `__init__`."""
        self = super().__new__(cls)
        self.clear()
        self.select("lbfgs")
        return self

    def __init__(
        self, algorithm: str | None = None, params: Mapping[str, Any] | None = None
    ) -> None:
        if algorithm is not None:
            self.select(algorithm)
        self.set_params(params or {})

    def select(self, algorithm: str, type: str = TYPE) -> None:
        """Choose the training algorithm; all parameters get their defaults.

        algorithm (str): lbfgs, averaged-perceptron, passive-aggressive or arow; or l2sgd, which has the
            minimum of lbfgs and reaches it by L-BFGS here, whatever its max_iterations and calibration.
        RAISES (ValueError): H280 for one that CRFsuite does not have.
        """
        if type != TYPE:
            raise ValueError(SequenceErrors.H280.format(found=f"{algorithm}/{type}", known=TYPE))
        self._algorithm = name_of(algorithm)
        self._parameters = defaults(self._algorithm)

    def params(self) -> list[str]:
        """Return the names of the algorithm's parameters."""
        return list(ALGORITHMS[self._algorithm])

    def help(self, name: str) -> str:
        """Return the meaning of a parameter. RAISES (ValueError): H277 if the algorithm does not have it."""
        return parameter(self._algorithm, name).help

    def get(self, name: str) -> Value:
        """Return a parameter's value. RAISES (ValueError): H277 if the algorithm does not have it."""
        parameter(self._algorithm, name)
        return self._parameters[name]

    def get_params(self) -> dict[str, Value]:
        """Return all parameters and their values."""
        return dict(self._parameters)

    def set(self, name: str, value: Any) -> None:
        """Set a parameter. RAISES (ValueError): H277 for an unknown one, H278 for an invalid value."""
        self._parameters[name] = cast(self._algorithm, name, value)

    def set_params(self, params: Mapping[str, Any]) -> None:
        """Set several parameters. RAISES (ValueError): H277 for an unknown one, H278 for an invalid value."""
        for name, value in params.items():
            self.set(name, value)

    def append(
        self, xseq: ItemSequence | Iterable[Any], yseq: Iterable[str], group: int = 0
    ) -> None:
        """Add a labelled sequence.

        group (int): number by which `train` can hold it out.
        RAISES (ValueError): H270, H271, H272 or H284 for an invalid sequence or labels.
        """
        self._data.append(attributes_in(xseq), yseq, group)

    def clear(self) -> None:
        """Remove all sequences."""
        self._data = Dataset()

    def train(self, model: "str | bytes | PathLike[str]", holdout: int = -1) -> None:
        """Learn from the sequences, and write the model.

        model (Union[str, Path]): name of the file; "" writes none. The format is CRFsuite's if
            feature.order is at most 1.
        holdout (int): group that is left out, and tagged after each iteration.
        RAISES (OSError): if the file's folder does not exist.
        RAISES (ValueError): H285 for values that are not finite.
        """
        path = fsdecode(model)
        Path(path).parent.resolve(strict=True)  # an error now, instead of after training
        if holdout >= 0:
            self._say(f"Holdout group: {holdout + 1}\n", "\n")
        training = self._data.take(holdout)
        features = self._generate(training)
        learnt = self._learn(training, features, holdout)
        self._store(learnt, features, path)

    def message(self, message: str) -> None:
        """Receive a line of the log; for subclasses to override."""

    def _say(self, *lines: str) -> None:
        for line in lines:
            self.message(line)

    def _generate(self, data: Labelled) -> Features:
        """Generate the features."""
        began = perf_counter()
        names = ("minfreq", "possible_states", "possible_transitions", "order")
        minfreq, states, transitions, order = (self._parameters[f"feature.{n}"] for n in names)
        self._say(
            "Feature generation\n",
            "type: CRF1d\n",
            f"feature.minfreq: {minfreq:f}\n",
            f"feature.possible_states: {states:d}\n",
            f"feature.possible_transitions: {transitions:d}\n",
        )
        settings = FeatureSettings(int(order), float(minfreq), bool(states), bool(transitions))
        n_labels = len(self._data.labels)
        features = features_of(data, self._data.attributes, n_labels, settings)
        self._say("0", *(sign for tenth in range(1, 11) for sign in (*"....", str(tenth))))
        self._say("\n", f"Number of features: {len(features)}\n", _seconds(began), "\n")
        return features

    def _learn(self, data: Labelled, features: Features, holdout: int) -> SequenceModel:
        """Learn the model with the best weights."""
        from spacy_hocrf.sequences.learning import learn, learn_online, sequence_model

        began = perf_counter()
        held_out = self._data.take(holdout, held_out=True) if holdout >= 0 else None
        labels, attributes = self._data.labels, self._data.attributes

        def tell(at: "Progress") -> None:
            self._say(*_iteration_in_words(at))
            if held_out is not None:
                model = sequence_model(labels, attributes, features, at.weights)
                predicted, offsets = model.label_numbers(held_out.items), held_out.items.offsets
                self._say(*performance(list(labels), predicted, held_out.label, offsets))
            self._say("\n")

        if self._algorithm in ONLINE:
            self._say(f"{ONLINE[self._algorithm]}\n", *self._own_parameters(), "\n")
            weights = learn_online(data, features, tell, **self._online_settings())
        else:
            settings = self._settings()
            if self._algorithm == SGD:
                self._say("l2sgd: the minimum of lbfgs, by L-BFGS without max_iterations\n")
            self._say("L-BFGS optimization\n", *_settings_in_words(settings), "\n")
            weights, status, _ = learn(data, features, settings, tell)
            self._say(f"L-BFGS {status}\n")
        total = f"Total seconds required for training: {perf_counter() - began:.3f}\n"
        self._say(total, "\n")
        return sequence_model(labels, attributes, features, weights).without_zeros()

    def _settings(self) -> "LearningSettings":
        """Settings of L-BFGS: the default of lbfgs if the algorithm lacks the parameter."""
        from spacy_hocrf.sequences.learning import LearningSettings

        values = {**defaults("lbfgs"), **self._parameters}
        passes = int(values["max_iterations"]) if self._algorithm != SGD else 0
        return LearningSettings(
            c1=float(values["c1"]),
            c2=float(values["c2"]),
            max_iterations=passes or MAX_INT,
            num_memories=int(values["num_memories"]),
            epsilon=float(values["epsilon"]),
            period=int(values["period"]),
            delta=float(values["delta"]),
            max_linesearch=int(values["max_linesearch"]),
        )

    def _online_settings(self) -> dict[str, Any]:
        """Settings of an online algorithm."""
        from spacy_hocrf.sequences.online import Arow, AveragedPerceptron, PassiveAggressive

        values = self._parameters
        learner: Callable[..., AveragedPerceptron] = AveragedPerceptron
        if self._algorithm == "passive-aggressive":
            slack, c = int(values["type"]), float(values["c"])
            errors = bool(values["error_sensitive"])
            learner = partial(PassiveAggressive, slack=slack, c=c, errors=errors)
        elif self._algorithm == "arow":
            variance, gamma = float(values["variance"]), float(values["gamma"])
            learner = partial(Arow, variance=variance, gamma=gamma)
        averaging = bool(values.get("averaging", self._algorithm != "arow"))
        epochs, epsilon = int(values["max_iterations"]), float(values["epsilon"])
        return {
            "learner": learner,
            "epochs": epochs,
            "epsilon": epsilon,
            "averaging": averaging,
        }

    def _own_parameters(self) -> Iterator[str]:
        """The algorithm's parameters, except those of features, as lines of the log."""
        for name, value in self._parameters.items():
            if not name.startswith("feature."):
                yield f"{name}: {value}\n"

    def _store(self, model: SequenceModel, features: Features, path: str) -> None:
        """Write the model's file."""
        began = perf_counter()
        data = write_crfsuite(model) if model.order <= 1 else model_to_bytes(model)
        if path:
            Path(path).write_bytes(data)
        active, n_labels = len(model.feature_weight) + len(model.patterns), len(model.labels)
        n_attributes = len(features.offsets) - 1
        self._say(
            "Storing the model\n",
            f"Number of active features: {active} ({len(features)})\n",
            f"Number of active attributes: {len(model.attributes)} ({n_attributes})\n",
            f"Number of active labels: {n_labels} ({n_labels})\n",
            _seconds(began),
            "\n",
        )


class Trainer(BaseTrainer):
    """Prints the log while it trains, through a method for each event, which a subclass may override.

    verbose (bool): call these methods? The log is parsed in any case.
    The other arguments are those of `BaseTrainer`.

    logparser (Optional[TrainLogParser]): parsed log of the last training.
    """

    verbose: bool = True
    logparser: TrainLogParser | None = None

    def __init__(
        self,
        algorithm: str | None = None,
        params: Mapping[str, Any] | None = None,
        verbose: bool = True,
    ) -> None:
        self.verbose = verbose
        super().__init__(algorithm, params)

    def train(self, model: "str | bytes | PathLike[str]", holdout: int = -1) -> None:
        """Train a model, see `BaseTrainer.train`."""
        self.logparser = TrainLogParser()
        super().train(model, holdout)

    def message(self, message: str) -> None:
        """Parse a line of the log, and if `verbose`, call the method of the event that it ends."""
        assert self.logparser is not None
        parser = self.logparser
        event = parser.feed(message)
        if not self.verbose or event is None:
            return
        if event == "featgen_progress":
            self.on_featgen_progress(parser.last_log, parser.featgen_percent)
        elif event == "iteration":
            self.on_iteration(parser.last_log, parser.last_iteration or {})
        else:
            getattr(self, f"on_{event}")(parser.last_log)

    def on_start(self, log: str) -> None:
        """Called when training begins."""
        self._print(log)

    def on_featgen_progress(self, log: str, percent: int) -> None:
        """Called when some features have been generated."""
        self._print(log)

    def on_featgen_end(self, log: str) -> None:
        """Called when all features have been generated."""
        self._print(log)

    def on_prepared(self, log: str) -> None:
        """Called when the first iteration begins."""
        self._print(log)

    def on_prepare_error(self, log: str) -> None:
        """Called if there will be no iteration."""
        self._print(log)

    def on_iteration(self, log: str, info: dict[str, Any]) -> None:
        """Called when an iteration has ended, with its numbers."""
        self._print(log)

    def on_optimization_end(self, log: str) -> None:
        """Called when the weights have been found."""
        self._print(log)

    def on_end(self, log: str) -> None:
        """Called when the model has been written."""
        self._print(log)

    def _print(self, log: str) -> None:
        print(log, end="", flush=True)


def _seconds(began: float) -> str:
    return f"Seconds required: {perf_counter() - began:.3f}\n"


def _settings_in_words(settings: "LearningSettings") -> Iterator[str]:
    yield f"c1: {settings.c1:f}\n"
    yield f"c2: {settings.c2:f}\n"
    yield f"num_memories: {settings.num_memories}\n"
    yield f"max_iterations: {settings.max_iterations}\n"
    yield f"epsilon: {settings.epsilon:f}\n"
    yield f"stop: {settings.period}\n"
    yield f"delta: {settings.delta:f}\n"
    yield f"linesearch.max_iterations: {settings.max_linesearch}\n"


def _iteration_in_words(at: "Progress") -> Iterator[str]:
    yield f"***** Iteration #{at.iteration} *****\n"
    yield f"Loss: {at.loss:f}\n"
    yield f"Feature norm: {np.linalg.norm(at.weights):f}\n"
    if not math.isnan(at.gradient_norm):
        yield f"Error norm: {at.gradient_norm:f}\n"
        yield f"Active features: {np.count_nonzero(at.weights)}\n"
        yield f"Line search trials: {at.trials}\n"
        yield f"Line search step: {at.step:f}\n"
    yield f"Seconds required for this iteration: {at.seconds:.3f}\n"
