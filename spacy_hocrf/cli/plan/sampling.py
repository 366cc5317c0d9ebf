"""What a corpus and a machine need for the formulas of `costs.py`: measured on texts drawn at random."""

import math
import random
import tracemalloc
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import process_time
from types import SimpleNamespace
from typing import Any

import numpy as np
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import load_model_from_config
from thinc.api import Config

from spacy_hocrf.cli.errors import CommandErrors
from spacy_hocrf.cli.folds import component_of
from spacy_hocrf.cli.measuring import initialize, settled, update
from spacy_hocrf.cli.plan.costs import Growth, Rates, Scale
from spacy_hocrf.cli.plan.sizes import size_of
from spacy_hocrf.engine.lbfgs import LBFGS
from spacy_hocrf.engine.teams import STRANDS, ThreadWorkers
from spacy_hocrf.model.outline import Outline
from spacy_hocrf.model.scores import add_collected_into, spread_into
from spacy_hocrf.training.base import BaseTrainer, Trainable

__all__ = ["COUNTS", "LEAST", "Point", "Sample", "sample_of"]

SIZES = 4
"""Samples."""
LEAST = 16
"""Texts, for the smallest sample to have some."""
COUNTS = (1, 2, 3, 5, 10)
"""Settings of min_count to foretell."""
TIMES = 3
"""The least of so many times is taken."""
LARGE = 4_000_000
"""Numbers that no cache holds."""
LONG = 1_000_000
"""Features of the optimiser that is measured: its pairs are in no cache, either."""


@dataclass(frozen=True)
class Point:
    """A sample."""

    texts: int
    tokens: int
    features: Mapping[int, int]  # by min_count
    extent: int  # numbers that are added up for them
    initialize: float  # seconds
    token: float  # seconds of an evaluation, by one core


@dataclass(frozen=True)
class Sample:
    """All of them, and what the largest one takes."""

    points: tuple[Point, ...]
    rates: Rates
    order: int
    memory: int  # pairs of L-BFGS
    examples: float  # bytes a token
    documents: float  # bytes a token
    records: float  # of these, bytes that may be on disk
    shards: float  # bytes a token
    index: float  # bytes a feature
    passing: tuple[
        float, float
    ]  # bytes besides, while it is initialized: at any size, and a feature
    warnings: tuple[str, ...]

    @property
    def last(self) -> Point:
        """The largest sample."""
        return self.points[-1]

    @property
    def initialize(self) -> float:
        """Seconds a token."""
        return self.last.initialize / self.last.tokens

    def features(self, count: int = 1) -> Growth:
        """Features that fire so often."""
        return self._growth(lambda point: point.features[count])

    def scale(self, tokens: float, count: int = 1, least: bool = False) -> Scale:
        """A corpus of so many tokens.

        count (int): min_count. least (bool): with as few features as can be expected, rather than as many.
        """
        times, growth = tokens / self.last.tokens, self.features(count)
        features = growth.least(times) if least else growth.most(times)
        extent = features * self.last.extent / self.last.features[1]
        return Scale(tokens, features, extent)

    def _growth(self, number: Callable[[Point], float]) -> Growth:
        tokens = np.log2([point.tokens for point in self.points])
        numbers = np.log2([max(1.0, number(point)) for point in self.points])
        slopes = np.diff(numbers) / np.diff(tokens)
        falling = -float(np.polyfit(tokens[1:], slopes, 1)[0])
        return Growth(number(self.last), float(slopes[-1]), max(0.0, falling))


class _Model(BaseTrainer):
    """A trainer that only looks at what it would train."""

    def __init__(self) -> None:
        self.found: Any = None

    def objective(self, model: Trainable) -> Any:
        """Nothing."""
        self.found = model


def sample_of(
    config: Config, name: str, examples: Sequence[Example], most: int, seed: int = 0
) -> Sample:
    """Initialize pipelines with more and more of the texts, and evaluate their objectives.

    config (Config): of the pipeline, not interpolated; what is "auto" is not chosen.
    name (str): of the component. most (int): texts. seed (int): of the order that they are drawn in.
    RAISES (ValueError): H337 for too few texts, H338 for a trainer without workers.
    """
    if len(examples) < LEAST:
        raise ValueError(CommandErrors.H337.format(found=len(examples), least=LEAST))
    drawn = list(examples)
    random.Random(seed).shuffle(drawn)
    # each twice as large as the one before
    sizes = [min(len(drawn), most) >> shift for shift in reversed(range(SIZES))]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        config = settled(config, name)
        config["components"][name].get("trainer", {}).pop("workers", None)
        points = [_look(config, name, drawn[:size])[0] for size in sizes[:-1]]
        passing = [_passing(config, name, drawn[:size]) for size in sizes[:-1:2]]
        point, nlp, model = _look(config, name, drawn[: sizes[-1]])
    pipe = component_of(nlp, name)
    shards, layout, structure = model.shards(weighted=True), model.layout, pipe.structure
    documents = size_of(shards, [structure, structure.settings, pipe])
    sources = [each.source for each in model.corpus.documents]
    records = size_of([each for each in sources if not isinstance(each, Doc)], [structure, pipe])
    compiled = [shard.compiled for shard in shards]
    common = [structure, structure.trie, layout, model.automaton, *layout.shared, *shards]
    memory = getattr(pipe.trainer, "memory", 10)
    return Sample(
        (*points, point),
        _rates(layout, point.token, memory),
        structure.settings.order,
        memory,
        _bytes_of_examples(drawn[: sizes[0]]) / points[0].tokens,
        documents / point.tokens,
        records / point.tokens,
        size_of(compiled, common) / point.tokens,
        size_of(structure, [structure.settings]) / point.features[1],
        _line([each.features[1] for each in points[::2]], passing),
        tuple(dict.fromkeys(str(each.message) for each in caught)),
    )


def _look(config: Config, name: str, examples: Sequence[Example]) -> tuple[Point, Any, Any]:
    """A sample, its pipeline, and what a trainer is given of it."""
    nlp = load_model_from_config(config, auto_fill=True)
    pipe = component_of(nlp, name)
    trainer: Any = pipe.trainer
    if not hasattr(trainer, "workers"):
        raise ValueError(CommandErrors.H338.format(name=name, found=type(trainer).__name__))
    pipe.set_trainer(replace(trainer, threads=1, workers=ThreadWorkers(1, STRANDS)))
    started = process_time()
    initialize(nlp, config, examples)
    initialized = process_time() - started
    update(nlp, config, examples)
    objective, looking = pipe.objective(), _Model()
    trainer = pipe.trainer
    pipe.set_trainer(looking)
    pipe.objective()
    pipe.set_trainer(trainer)
    model, weights = looking.found, np.zeros(pipe.structure.size)
    tokens = sum(map(len, (example.predicted for example in examples)))
    spent = _least(lambda: objective(weights)) - _beside(model.layout, weights)
    index = pipe.structure.index
    assert index is not None
    features = {count: int((index.feature_count >= count).sum()) for count in COUNTS}
    features[1] = len(index)  # some need not fire
    extent, token = model.layout.extent, max(spent, 0.0) / tokens
    return Point(len(examples), tokens, features, extent, initialized, token), nlp, model


def _beside(layout: Any, weights: Any) -> float:
    """Seconds of what an evaluation does once and not for every token."""
    placed = layout.place_weights(weights)
    gradient = np.zeros(len(weights))
    place = _least(lambda: layout.place_weights(weights, placed))
    collect = _least(lambda: layout.add_collected_into(gradient, placed))
    return place + STRANDS * collect


def _rates(layout: Any, token: float, memory: int) -> Rates:
    """Of large vectors, by the code that training runs on them."""
    times = max(1, LARGE // max(1, layout.places))
    place = np.concatenate([layout.place + layout.places * i for i in range(times)])
    values, weights = np.zeros(times * layout.places), np.ones(len(place))
    other = SimpleNamespace(numbers=np.ones(len(values)))
    sums: Any = SimpleNamespace(numbers=values)
    n, f = max(1, len(values)), max(1, len(place))
    return Rates(
        token,
        _least(lambda: values.fill(0.0)) / n,
        _least(lambda: Outline.merge(layout, sums, other)) / n,  # type: ignore[arg-type]
        _least(lambda: spread_into(values, place, weights)) / f,
        _least(lambda: add_collected_into(weights, values, place)) / f,
        _step(memory),
    )


def _step(memory: int) -> float:
    """Seconds a feature of a step of L-BFGS that has all its pairs."""
    curvature = np.linspace(1.0, 2.0, LONG)
    optimiser = LBFGS(np.ones(LONG), memory, 0.0, -math.inf, memory + TIMES + 3)
    taken = list[float]()
    while optimiser.status == "running" and len(taken) < memory + TIMES + 1:
        g = curvature * optimiser.x
        f = 0.5 * float(g @ optimiser.x)
        started = process_time()
        optimiser.tell(f, g)
        taken.append(process_time() - started)
    return min(taken[-TIMES:]) / LONG


def _passing(config: Config, name: str, examples: Sequence[Example]) -> float:
    """Bytes that `initialize` takes at most beside what it leaves."""
    nlp = load_model_from_config(config, auto_fill=True)
    tracemalloc.start()
    try:
        initialize(nlp, config, examples)
        kept, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return most - kept


def _line(sizes: Sequence[float], values: Sequence[float]) -> tuple[float, float]:
    """What a value is at size 0, and how much more of it there is for 1."""
    slope = max(0.0, (values[-1] - values[0]) / max(1.0, sizes[-1] - sizes[0]))
    return max(0.0, values[-1] - slope * sizes[-1]), slope


def _bytes_of_examples(examples: Sequence[Example]) -> float:
    """Of Examples, as a reader makes them."""
    tracemalloc.start()
    try:
        copies = [Example(each.predicted.copy(), each.reference.copy()) for each in examples]
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    del copies
    return kept


def _least(function: Callable[[], Any]) -> float:
    """Seconds."""
    taken = []
    for _ in range(TIMES):
        started = process_time()
        function()
        taken.append(process_time() - started)
    return min(taken)
