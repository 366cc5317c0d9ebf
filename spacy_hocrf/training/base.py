"""The interface of trainers: `[components.*.trainer]` may name any object that has the members of `Trainer`.

A trainer is an immutable value that holds settings. It begins a `Run`, the training on one corpus, which the
component advances step by step. `BaseTrainer` has default implementations.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.errors import Errors
from spacy_hocrf.types import SIGMA_RANGE, Vector, is_sigma

if TYPE_CHECKING:
    from spacy_hocrf.engine.automaton import Automaton
    from spacy_hocrf.engine.data_set import Layout, Shard
    from spacy_hocrf.engine.tying import Tied

__all__ = [
    "DEFAULT_SIGMA",
    "BaseTrainer",
    "Loss",
    "Run",
    "Trainable",
    "Trainer",
    "check_ratio",
    "check_trainer",
    "checked_run",
    "checked_sigma",
    "checked_weights",
    "missing_members",
    "precision_of",
]


DEFAULT_SIGMA = 2.0
"""Value of `sigma = "auto"` where none was chosen because there are few texts (project/defaults)."""


class Loss(Protocol):
    """The objective that training minimises."""

    def __call__(self, weights: Vector) -> tuple[float, Vector]:
        """Return value and (sub)gradient at float64 weights [F]; the next call may overwrite the gradient."""
        ...


class Trainable(Protocol):
    """What a trainer may use: a model with F features, and its corpus."""

    @property
    def weights(self) -> Vector:
        """A copy of the model's weights, where training starts, float64 [F]."""
        ...

    @property
    def loaded_weights(self) -> Vector | None:
        """Weights of the loaded model, float64 [F], 0 for features added since; None if none was loaded."""
        ...

    @property
    def new_features(self) -> NDArray[np.bool_]:
        """Which features were added since the model was loaded, bool [F]; all, if it began untrained."""
        ...

    @property
    def orders(self) -> NDArray[np.int32]:
        """Number of earlier segments whose labels each feature sees, int32 [F]."""
        ...

    @property
    def layout(self) -> "Layout":
        """Layout in which the shards expect the weights."""
        ...

    @property
    def automaton(self) -> "Automaton":
        """States and arcs of the model."""
        ...

    @property
    def positives(self) -> Mapping[str, NDArray[np.bool_]] | None:
        """Which engine labels belong to each label, bool [Y], for a corpus with positives only; else None."""
        ...

    def shards(self) -> Sequence["Shard"]:
        """Return the corpus as shards, the form that the engine's objectives take; new ones with every call.
        Copies of a document are not repeated; `Compiled.copies` tells how many it stands for.
        """
        ...

    def tied(self, threads: int) -> "Tied":
        """Return `shards` with tied weights: features that the corpus cannot distinguish share one weight;
        all have their own if a loaded model is adapted.

        threads (int): maximum number of threads to use.
        """
        ...


class Run(Protocol):
    """The training on one corpus, which the component advances step by step."""

    @property
    def loss(self) -> float:
        """The current value of the objective, in nats, for the log."""
        ...

    @property
    def weights(self) -> Vector:
        """The current weights, float64 [F], finite as float32 (else H593); owned by the run. They are read
        after each step, and become the model's.
        """
        ...

    @property
    def running(self) -> bool:
        """Can further steps change anything?"""
        ...

    @property
    def status(self) -> str:
        """Why training ended, and after how many steps, for the log."""
        ...

    @property
    def evaluations(self) -> int:
        """Number of passes over the corpus."""
        ...

    def step(self) -> None:
        """Do the work of one step of the training loop."""
        ...


class Trainer(Protocol):
    """Settings that determine how a model is trained."""

    @property
    def batchwise(self) -> bool:
        """Does the optimizer of the training config take the steps, batch by batch? Then no run is begun, and
        the gradient is that of the batch's likelihood plus its share of `penalty`.
        """
        ...

    def begin(self, model: Trainable) -> Run:
        """Begin training on a corpus; called again whenever corpus or features have changed.

        model (Trainable): where training starts, and the corpus. `LBFGSTrainer(sigma).objective(model)` is a
            function of the weights.
        RETURNS (Run): H568 if it lacks a member.
        """
        ...

    def objective(self, model: Trainable) -> Loss:
        """Return the objective that the run minimises. RAISES (ValueError): H081 if there is none."""
        ...

    def adapts(self, model: Trainable) -> bool:
        """Does training adapt a loaded model, rather than learn from this corpus alone?"""
        ...

    def penalty(self, model: Trainable) -> tuple[float, Vector]:
        """Return what a batch-wise trainer adds to the loss of the whole corpus, at the model's weights.

        RETURNS (tuple[float, float64 [F]]): value and gradient.
        """
        ...

    @property
    def choices(self) -> Sequence[float]:
        """Candidates for sigma when a component is initialised, ascending; empty if sigma is set."""
        ...

    def with_sigma(self, sigma: float | None) -> "Trainer":
        """Return a trainer with this sigma if its own is "auto", and one was chosen."""
        ...

    @property
    def exact(self) -> bool:
        """Is the optimum exactly that of the likelihood with a Gaussian prior? Then training may start from
        models of parts of the corpus.
        """
        ...

    def quick(self) -> Any:
        """Return a trainer for models of parts of the corpus, which are compared by their likelihood on the
        other parts.

        RETURNS (Optional[LBFGSTrainer]): None for L-BFGS with the same sigma, if there is one.
        """
        ...


class BaseTrainer:
    """Base class with defaults for all members but `begin`: full-batch, no objective, no prior."""

    batchwise: bool = False
    exact: bool = False

    def begin(self, model: Trainable) -> Run:
        """Begin a run. RAISES (ValueError): H115 unless overridden; a batch-wise trainer has no runs."""
        raise ValueError(Errors.H115.format(found=type(self).__name__))

    def objective(self, model: Trainable) -> Loss:
        """Return the objective. RAISES (ValueError): H081 unless overridden."""
        raise ValueError(Errors.H081.format(found=type(self).__name__))

    def adapts(self, model: Trainable) -> bool:
        """Return False: training starts at the model's weights, whatever model was loaded."""
        return False

    def penalty(self, model: Trainable) -> tuple[float, Vector]:
        """Return no penalty: 0 and zeros, float64 [F]."""
        return 0.0, np.zeros(len(model.orders))

    @property
    def choices(self) -> Sequence[float]:
        """Candidates for sigma: none."""
        return ()

    def with_sigma(self, sigma: float | None) -> Trainer:
        """Return the trainer itself."""
        return self

    def quick(self) -> Any:
        """Return None: no special settings for parts of a corpus."""
        return None


def missing_members(trainer: object, protocol: type = Trainer) -> list[str]:
    """Return the members of a protocol that an object lacks, sorted."""
    members = {name for name in vars(protocol) if not name.startswith("_")}
    kind = type(trainer)  # asked first, since a property may take a pass over the corpus
    return sorted(name for name in members if not (hasattr(kind, name) or hasattr(trainer, name)))


def check_trainer(trainer: object, name: str) -> None:
    """RAISES (ValueError): H058 unless it has all members of `Trainer`; `name` is the component's."""
    missing = missing_members(trainer)
    if missing:
        found = type(trainer).__name__
        raise ValueError(Errors.H058.format(name=name, found=found, missing=", ".join(missing)))


def checked_run(run: Any, trainer: Trainer) -> Run:
    """Return a run that a trainer has begun. RAISES (ValueError): H568 unless it has all members of `Run`."""
    missing = missing_members(run, Run)
    if missing:
        found = {"trainer": type(trainer).__name__, "found": type(run).__name__}
        raise ValueError(Errors.H568.format(**found, missing=", ".join(missing)))
    begun: Run = run
    return begun


def checked_weights(run: Run, trainer: Trainer, size: int) -> Vector:
    """Return the weights of a run, float64 [F]. RAISES (ValueError): H593 unless there are F finite ones.

    size (int): F.
    """
    weights = np.asarray(run.weights)
    found = f"an array of {weights.dtype} with the extents {weights.shape}"
    if weights.shape == (size,) and weights.dtype.kind in "biuf":
        if np.abs(weights).max(initial=0.0) <= np.finfo(np.float32).max:
            return weights.astype(np.float64, copy=False)
        found = f"{weights[~(np.abs(weights) <= np.finfo(np.float32).max)][0]} at one place"
    text = Errors.H593.format(trainer=type(trainer).__name__, found=found, expected=size)
    raise ValueError(text)


def check_ratio(trainer: object, name: str, joint: bool = False) -> None:
    """RAISES (ValueError): H532 unless it can learn from positives only; `name` is the component's."""
    if joint or not hasattr(trainer, "ratio"):
        found = "joint features" if joint else type(trainer).__name__
        raise ValueError(Errors.H532.format(name=name, found=found))


def checked_sigma(sigma: float | Sequence[float] | str) -> tuple[float, ...]:
    """Check one sigma, or one for each order. RAISES (ValueError): H048 or H146 for invalid ones."""
    if isinstance(sigma, str):
        raise ValueError(Errors.H146.format(found=sigma))
    sigmas = np.atleast_1d(np.asarray(sigma, dtype=object)).tolist()
    if not sigmas or not all(is_sigma(value) or value == np.inf for value in sigmas):
        raise ValueError(Errors.H048.format(name="sigma", found=sigma, expected=SIGMA_RANGE))
    return tuple(map(float, sigmas))


def precision_of(sigma: float | Sequence[float], orders: NDArray[np.int32]) -> Vector:
    """Return 1/sigma² for features of these orders, float64 [F]; higher ones use the last sigma."""
    sigmas: Vector = np.atleast_1d(np.asarray(sigma, dtype=np.float64))
    return sigmas[np.minimum(orders, len(sigmas) - 1)] ** -2.0
