"""The training algorithms of CRFsuite and their parameters, and which of them have an effect here.

`lbfgs` without L1 and `l2sgd` minimise the same convex function; for `l2sgd` CRFsuite uses stochastic
gradient descent, this package L-BFGS. OWL-QN minimises the function of `lbfgs` with L1. The algorithms in
ONLINE learn from one sequence after another.
"""

from typing import NamedTuple

from spacy_hocrf.sequences.errors import SequenceErrors

__all__ = [
    "ALGORITHMS",
    "MAX_INT",
    "ONLINE",
    "SGD",
    "Parameter",
    "Value",
    "cast",
    "defaults",
    "name_of",
    "parameter",
]

Value = float | int | bool | str


class Parameter(NamedTuple):
    """A parameter of an algorithm."""

    default: Value
    help: str
    largest: float = float("inf")
    positive: bool = False  # must it be above 0?
    among: tuple[str, ...] = ()  # valid values, if it is a name


SEARCHES = ("MoreThuente", "Backtracking", "StrongBacktracking")
MAX_INT = 2**31 - 1
"""CRFsuite's value for no limit."""

PERCEPTRON = "averaged-perceptron"
SGD = "l2sgd"
FEATURES = {
    "feature.minfreq": Parameter(0.0, "Features that are seen less often are left out."),
    "feature.possible_states": Parameter(False, "Every attribute with every label is a feature."),
    "feature.possible_transitions": Parameter(False, "Every pair of labels is a feature."),
    "feature.order": Parameter(1, "Earlier labels that features of label successions see."),
}
STOPPING = {
    "period": Parameter(
        10, "Iterations between the losses that delta compares; 0 for no such test."
    ),
    "delta": Parameter(1e-5, "Training ends when the loss falls by no more than this part of it."),
}
CALIBRATION = {
    f"calibration.{name}": Parameter(default, "Of no effect: L-BFGS has no learning rate.")
    for name, default in {
        "eta": 0.1,
        "rate": 2.0,
        "samples": 1000.0,
        "candidates": 10,
        "max_trials": 20,
    }.items()
}
PASSES = {
    "max_iterations": Parameter(100, "Passes over the data."),
    "epsilon": Parameter(0.0, "Training ends when the mean loss is below."),
}
ALGORITHMS: dict[str, dict[str, Parameter]] = {
    "lbfgs": {
        **FEATURES,
        "c1": Parameter(0.0, "Coefficient of L1 regularization."),
        "c2": Parameter(1.0, "Coefficient of L2 regularization."),
        "max_iterations": Parameter(MAX_INT, "Iterations of L-BFGS; 0 for no limit."),
        "num_memories": Parameter(
            6, "Pairs of steps and gradients that L-BFGS keeps.", positive=True
        ),
        "epsilon": Parameter(1e-5, "Training ends at a gradient of this part of the weights."),
        **STOPPING,
        "linesearch": Parameter(
            "MoreThuente", "Of no effect: each leads to the same minimum.", among=SEARCHES
        ),
        "max_linesearch": Parameter(
            20, "Evaluations of one line search but the first.", positive=True
        ),
    },
    SGD: {
        **FEATURES,
        "c2": Parameter(1.0, "Coefficient of L2 regularization."),
        "max_iterations": Parameter(
            1000, "Of no effect: L-BFGS goes on to the minimum, however many passes that takes."
        ),
        **STOPPING,
        "delta": STOPPING["delta"]._replace(default=1e-6),
        **CALIBRATION,
    },
    PERCEPTRON: {
        **FEATURES,
        **PASSES,
        "epsilon": PASSES["epsilon"]._replace(
            help="Training ends when the mean share of wrong labels is below."
        ),
    },
    "passive-aggressive": {
        **FEATURES,
        "type": Parameter(
            1, "0 without slack, 1 and 2 with a linear and a quadratic one.", largest=2
        ),
        "c": Parameter(1.0, "Aggressiveness."),
        "error_sensitive": Parameter(True, "The number of wrong labels is part of the cost."),
        "averaging": Parameter(True, "The weights are averaged."),
        **PASSES,
    },
    "arow": {
        **FEATURES,
        "variance": Parameter(1.0, "Variance of the weights before training."),
        "gamma": Parameter(1.0, "How little a mistake weighs against the variance.", positive=True),
        **PASSES,
    },
}
ONLINE = {
    PERCEPTRON: "Averaged perceptron",
    "passive-aggressive": "Passive Aggressive",
    "arow": "Adaptive Regularization of Weights (AROW)",
}
"""Online algorithms, with their names in the log."""
ALIASES = {"ap": PERCEPTRON, "pa": "passive-aggressive"}


def name_of(algorithm: str) -> str:
    """Return an algorithm's long name. RAISES (ValueError): H280 for one that CRFsuite does not have."""
    name = algorithm.lower()
    name = ALIASES.get(name, name)
    if name not in ALGORITHMS:
        known = ", ".join([*ALGORITHMS, *ALIASES])
        raise ValueError(SequenceErrors.H280.format(found=algorithm, known=known))
    return name


def defaults(algorithm: str) -> dict[str, Value]:
    """Return the parameters of an algorithm with their default values."""
    return {name: parameter.default for name, parameter in ALGORITHMS[algorithm].items()}


def parameter(algorithm: str, name: str) -> Parameter:
    """Return a parameter. RAISES (ValueError): H277 if the algorithm does not have it."""
    if name not in ALGORITHMS[algorithm]:
        known = ", ".join(ALGORITHMS[algorithm])
        text = SequenceErrors.H277.format(name=name, algorithm=algorithm, known=known)
        raise ValueError(text)
    return ALGORITHMS[algorithm][name]


def cast(algorithm: str, name: str, value: object) -> Value:
    """Convert a parameter's value to the type of its default.

    RAISES (ValueError): H277 for an unknown parameter, H278 for an invalid value.
    """
    definition = parameter(algorithm, name)
    try:
        return _cast(value, definition)
    except (OverflowError, TypeError, ValueError) as error:
        expected = f"a value such as {definition.default!r}"
        expected += f", at most {definition.largest}" if definition.largest < float("inf") else ""
        expected = ", ".join(definition.among) or expected
        text = SequenceErrors.H278.format(name=name, found=value, expected=expected)
        raise ValueError(text) from error


def _cast(value: object, definition: Parameter) -> Value:
    """Convert a value. RAISES (OverflowError, TypeError, ValueError): for an invalid one."""
    default = definition.default
    if isinstance(default, str):
        if value not in definition.among:
            raise ValueError(value)
        return str(value)
    number = float(value)  # type: ignore[arg-type]
    if not 0.0 <= number < float("inf") or (not isinstance(default, float) and number % 1):
        raise ValueError(value)
    if number > definition.largest or (definition.positive and not number):
        raise ValueError(value)
    return type(default)(number)
