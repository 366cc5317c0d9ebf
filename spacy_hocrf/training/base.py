"""What `[components.*.trainer]` may name: whatever has the members of `Trainer`.

A trainer is a value, its settings. It begins a `Run`, the training of one corpus, which the
component paces step by step. `BaseTrainer` has what most trainers answer alike.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.errors import Errors

if TYPE_CHECKING:
    from spacy_hocrf.engine.automaton import Automaton
    from spacy_hocrf.engine.data_set import Layout, Shard
    from spacy_hocrf.engine.tying import Tied

__all__ = [
    "AUTO",
    "DEFAULT_SIGMA",
    "BaseTrainer",
    "Loss",
    "Run",
    "Trainable",
    "Trainer",
    "check_ratio",
    "check_trainer",
    "checked_sigma",
    "missing_members",
    "precision_of",
]

Vector = NDArray[np.float64]

AUTO = "auto"
"""A setting that is chosen by what the corpus shows."""

DEFAULT_SIGMA = 2.0
"""Of `sigma = "auto"` where nothing was chosen, since texts are few (project/defaults)."""
LARGEST_SIGMA = 1e9
"""A larger one is as good as none; 1 over it as good as 0, and what is smaller leaves no finite loss."""


class Loss(Protocol):
    """What training lowers."""

    def __call__(self, weights: Vector) -> tuple[float, Vector]:
        """Value and (sub)gradient at float64 weights [F]; the next call may overwrite the latter."""
        ...


class Trainable(Protocol):
    """What a trainer may use: a model with F features, and the corpus that it learns from."""

    @property
    def weights(self) -> Vector:
        """The model's weights, where training starts, float64 [F]; a copy."""
        ...

    @property
    def loaded_weights(self) -> Vector | None:
        """Weights of the model that was loaded, float64 [F], 0 for features that are new since;
        None if the model began untrained.
        """
        ...

    @property
    def new_features(self) -> NDArray[np.bool_]:
        """Which features are new since the model was loaded, bool [F]; all, if it began untrained."""
        ...

    @property
    def orders(self) -> NDArray[np.int32]:
        """Number of earlier segments whose labels each feature sees, int32 [F]."""
        ...

    @property
    def layout(self) -> "Layout":
        """How the shards want the weights."""
        ...

    @property
    def automaton(self) -> "Automaton":
        """States and arcs of the model."""
        ...

    @property
    def positives(self) -> Mapping[str, NDArray[np.bool_]] | None:
        """Which of the engine's labels tokens of each label have, bool [Y], where the corpus says of some
        spans where they are, and no more; else None.
        """
        ...

    def shards(self) -> Sequence["Shard"]:
        """The corpus as the engine's objectives take it; made anew by every call. Copies of a document are
        not all there; `Compiled.copies` says how many it stands for.
        """
        ...

    def tied(self, threads: int) -> "Tied":
        """`shards` with one weight for features that they do not tell apart; with all weights
        where a loaded model is adapted.

        threads (int): that may look.
        """
        ...


class Run(Protocol):
    """The training of one corpus, step by step, as the component paces it."""

    @property
    def loss(self) -> float:
        """What training lowers, for the log."""
        ...

    @property
    def weights(self) -> Vector:
        """The weights so far, float64 [F]; the run's own."""
        ...

    @property
    def running(self) -> bool:
        """Can further steps change anything?"""
        ...

    @property
    def status(self) -> str:
        """Why it ended, and after how much, for the log."""
        ...

    @property
    def evaluations(self) -> int:
        """How often the corpus was gone through."""
        ...

    def step(self) -> None:
        """Do as much as belongs to one step of the training loop."""
        ...


class Trainer(Protocol):
    """How a model is learnt."""

    @property
    def batchwise(self) -> bool:
        """Does the training config's optimizer take the steps, batch by batch? No run is begun
        then; the gradient is that of the batch's likelihood and of its share of `penalty`.
        """
        ...

    def begin(self, model: Trainable) -> Run:
        """Start to train on a corpus; asked again whenever corpus or features have changed."""
        ...

    def objective(self, model: Trainable) -> Loss:
        """What the run would minimise. RAISES (ValueError): H081 if it minimises nothing."""
        ...

    def adapts(self, model: Trainable) -> bool:
        """Does training change a loaded model a little, rather than learn from this corpus alone?"""
        ...

    def penalty(self, model: Trainable) -> tuple[float, Vector]:
        """What a batch-wise trainer adds to the loss of the whole corpus at the model's weights.

        RETURNS (tuple[float, float64 [F]]): value and gradient.
        """
        ...

    @property
    def choices(self) -> Sequence[float]:
        """What sigma is chosen from when a component is initialised, ascending; none if it is set."""
        ...

    def with_sigma(self, sigma: float | None) -> "Trainer":
        """Settings with the sigma that was chosen where it is "auto", if one was."""
        ...

    @property
    def exact(self) -> bool:
        """Is its optimum that of the likelihood with a Gaussian prior, and nothing else? Then training may
        begin where models of parts of the corpus have come to.
        """
        ...

    def quick(self) -> Any:
        """What trains models of parts of the corpus, which are compared by how probable the other parts are
        for them.

        RETURNS (Optional[LBFGSTrainer]): None for L-BFGS with the same sigma, if there is one.
        """
        ...


class BaseTrainer:
    """The answers of a trainer that has nothing to say about them: full-batch, no objective, no prior."""

    batchwise: bool = False
    exact: bool = False

    def begin(self, model: Trainable) -> Run:
        """RAISES (ValueError): H115 unless a subclass begins a run; a batch-wise trainer has none."""
        raise ValueError(Errors.H115.format(found=type(self).__name__))

    def objective(self, model: Trainable) -> Loss:
        """RAISES (ValueError): H081, unless a subclass has one."""
        raise ValueError(Errors.H081.format(found=type(self).__name__))

    def adapts(self, model: Trainable) -> bool:
        """Never: it starts at the model's weights and knows of no others."""
        return False

    def penalty(self, model: Trainable) -> tuple[float, Vector]:
        """None: 0 and zeros, float64 [F]."""
        return 0.0, np.zeros(len(model.orders))

    @property
    def choices(self) -> Sequence[float]:
        """No sigmas to choose from."""
        return ()

    def with_sigma(self, sigma: float | None) -> Trainer:
        """The trainer itself."""
        return self

    def quick(self) -> Any:
        """No settings for parts of a corpus: None."""
        return None


def missing_members(trainer: object, protocol: type = Trainer) -> list[str]:
    """Members of a protocol that an object lacks, sorted."""
    members = {name for name in vars(protocol) if not name.startswith("_")}
    return sorted(name for name in members if not hasattr(trainer, name))


def check_trainer(trainer: object, name: str) -> None:
    """RAISES (ValueError): H058 for what lacks a member of `Trainer`; `name` is the component's."""
    missing = missing_members(trainer)
    if missing:
        found = type(trainer).__name__
        raise ValueError(Errors.H058.format(name=name, found=found, missing=", ".join(missing)))


def check_ratio(trainer: object, name: str, joint: bool = False) -> None:
    """RAISES (ValueError): H532 for what cannot learn from positives alone; `name` is the component's."""
    if joint or not hasattr(trainer, "ratio"):
        found = "joint features" if joint else type(trainer).__name__
        raise ValueError(Errors.H532.format(name=name, found=found))


def checked_sigma(sigma: float | Sequence[float] | str, name: str = "sigma") -> tuple[float, ...]:
    """One sigma, or one for each order. RAISES (ValueError): H048 or H146 for what is none."""
    if isinstance(sigma, str):
        raise ValueError(Errors.H146.format(found=sigma))
    sigmas = np.atleast_1d(np.asarray(sigma, dtype=np.float64)).tolist()
    fits = (1 / LARGEST_SIGMA <= each <= LARGEST_SIGMA or each == np.inf for each in sigmas)
    if isinstance(sigma, bool) or not sigmas or not all(fits):
        expected = f"above 0, from {1 / LARGEST_SIGMA:g} to {LARGEST_SIGMA:g}"
        raise ValueError(Errors.H048.format(name=name, found=sigma, expected=expected))
    return tuple(sigmas)


def precision_of(sigma: float | Sequence[float], orders: NDArray[np.int32]) -> Vector:
    """1/sigma² of features of these orders, float64 [F]; the last sigma serves all higher ones."""
    sigmas: Vector = np.atleast_1d(np.asarray(sigma, dtype=np.float64))
    return sigmas[np.minimum(orders, len(sigmas) - 1)] ** -2.0
