"""What training on a corpus will take: measured on some of its texts."""

import tracemalloc
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

from spacy.language import Language
from spacy.training import Example
from spacy.util import load_model_from_config
from thinc.api import Config, Optimizer

from spacy_hocrf.cli.components import component_of
from spacy_hocrf.pipeline.component import SegmentationPipe
from spacy_hocrf.training.base import AUTO

__all__ = ["Cost", "begin", "cost_of", "settled", "sourced"]

SAMPLE = 1_000
"""Texts, at most."""

HIGHEST = 2
"""Of the orders that "auto" tries."""


@dataclass(frozen=True)
class Cost:
    """Of a component that begins to learn some texts."""

    texts: int
    tokens: int
    order: int
    features: int
    patterns: int
    states: int
    seconds: float | None  # of an evaluation of the objective; None for trainers that have none
    kept: int  # bytes of the model and of what it keeps of the texts
    passing: int  # bytes besides, at most, while it was initialized and evaluated
    threads: int
    warnings: tuple[str, ...]  # messages

    def seconds_for(self, tokens: int) -> float | None:
        """Of an evaluation of a corpus of so many tokens."""
        return None if self.seconds is None else self.seconds * tokens / self.tokens

    def bytes_for(self, tokens: int) -> float:
        """Of a corpus of so many tokens: at most, since features repeat themselves."""
        return self.kept * tokens / self.tokens + self.passing


def cost_of(config: Config, name: str, examples: Sequence[Example]) -> Cost:
    """Initialize a pipeline with some texts, and evaluate its objective.

    config (Config): of the pipeline, not interpolated; what is "auto" is not chosen.
    name (str): of the component.
    """
    sample = examples[:SAMPLE]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        config = settled(config, name)
        nlp = load_model_from_config(config, auto_fill=True)
        _, pipe = component_of(nlp, name)
        tracemalloc.start()
        try:
            begin(nlp, config, sample)
            seconds = None if pipe.trainer.batchwise else _seconds(pipe, times=1)
            kept, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    return Cost(
        len(sample),
        sum(len(example.predicted) for example in sample),
        pipe.structure.settings.order,
        pipe.structure.size,
        len(pipe.structure.patterns),
        len(pipe.automaton.states),
        seconds if seconds is None else _seconds(pipe, times=3),
        kept,
        most - kept,
        getattr(pipe.trainer, "n_threads", 1),
        tuple(dict.fromkeys(str(each.message) for each in caught)),
    )


def begin(nlp: Language, config: Config, sample: Sequence[Example]) -> Optimizer:
    """Initialize a pipeline and update it as `spacy train` does, without a step."""
    fixed = sourced(config, nlp.pipe_names)
    with nlp.select_pipes(disable=fixed):
        optimizer = nlp.initialize(lambda: sample)
    annotating = nlp.config.interpolate()["training"]["annotating_components"]
    for _ in range(2):  # with what components write in updates alone the model grows in the second
        nlp.update(sample, sgd=False, exclude=fixed, annotates=annotating)  # type: ignore[arg-type]
    return optimizer


def sourced(config: Config, names: Sequence[str]) -> list[str]:
    """Those of the components that have been trained before."""
    frozen = config.interpolate().get("training", {}).get("frozen_components", [])
    return [name for name in names if name in frozen or "source" in config["components"][name]]


def settled(config: Config, name: str) -> Config:
    """The config without what is chosen by training."""
    config = config.copy()
    component = config["components"][name]
    for name_of_block, setting, value in (("model", "order", HIGHEST), ("trainer", "sigma", 1.0)):
        block = component.setdefault(name_of_block, {})
        default = not any(key.startswith("@") for key in block)  # which has "auto"
        if block.get(setting, AUTO if default else None) == AUTO:
            block[setting] = value
    return config


def _seconds(pipe: SegmentationPipe, times: int) -> float:
    """Of an evaluation of the objective, at best."""
    objective, weights = pipe.objective(), pipe.model.get_param("W").astype("float64")
    taken = []
    for _ in range(times):
        begin = perf_counter()
        objective(weights)
        taken.append(perf_counter() - begin)
    return min(taken)
