"""How well a component does on documents that it has not learnt from, for many sigmas at little
cost.

In each fold sigma goes from small to large, so from a strong prior to a weak one, and training for
each begins at the weights of the one before it, since their optima are near.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from spacy.language import Language
from spacy.training import Example
from spacy.util import load_model_from_config, registry, resolve_dot_names
from thinc.api import Config, fix_random_seed
from tqdm import tqdm

from spacy_hocrf.cli.corpora import doc_files
from spacy_hocrf.cli.errors import CommandErrors
from spacy_hocrf.training.base import AUTO, DEFAULT_SIGMA

if TYPE_CHECKING:
    from spacy_hocrf.pipeline.component import SegmentationPipe

__all__ = [
    "Division",
    "Fold",
    "Trial",
    "component_of",
    "read_corpus",
    "sourced",
    "spell",
    "trainable",
]


@dataclass(frozen=True)
class Trial:
    """One candidate in all folds."""

    order: int | None  # None for that of the longest label pattern
    sigma: tuple[float, ...]  # for all orders, or for each from 0 on
    scores: tuple[float, ...]  # by fold, from 0 to 1
    steps: int  # of training, in all folds
    n_orders: int  # number of orders that its features have

    @property
    def mean(self) -> float:
        """Mean score."""
        return float(np.mean(self.scores))

    @property
    def error(self) -> float:
        """Standard error of the mean."""
        return float(np.std(self.scores, ddof=1)) / math.sqrt(len(self.scores))


@dataclass(frozen=True)
class Division:
    """The training corpus in parts, each of which is held back once."""

    config: Config  # of the pipeline, not interpolated
    name: str  # of the component
    metric: str  # a score of `nlp.evaluate`
    parts: NDArray[np.int64]  # [D] part of each document
    folds: int  # number of parts

    def trials(
        self, order: int | None, sigmas: Sequence[tuple[float, ...]], bar: tqdm
    ) -> list[Trial]:
        """Every sigma in every fold; only one fold is in memory at a time."""
        scores: list[list[float]] = [[] for _ in sigmas]
        steps = [0] * len(sigmas)
        n_orders = 1
        for k in range(self.folds):
            fold = Fold(self.config, self.name, order, self.parts == k, self.metric)
            n_orders = max(n_orders, fold.n_orders)
            for i, sigma in enumerate(sigmas):
                bar.set_postfix(order=order, fold=k + 1, sigma=spell(sigma))
                score, taken = fold.score(sigma)
                scores[i].append(score)
                steps[i] += taken
                bar.update()
        return [
            Trial(order, *results, n_orders) for results in zip(sigmas, map(tuple, scores), steps)
        ]


class Fold:
    """A pipeline that learns from the training corpus without one part of it, and is scored on that
    part.

    config (Config): of the pipeline, not interpolated.
    name (str): of the component.
    order (Optional[int]): of its model; None for that of the longest label pattern.
    held_back (bool [D]): documents of that part.
    metric (str): a score of `nlp.evaluate`.
    """

    def __init__(
        self,
        config: Config,
        name: str,
        order: int | None,
        held_back: NDArray[np.bool_],
        metric: str,
    ) -> None:
        config = config.copy()
        component = config["components"][name]
        component.setdefault("model", {})["order"] = order
        if component.get("trainer", {}).get("sigma") == AUTO:
            component["trainer"]["sigma"] = DEFAULT_SIGMA  # `score` sets another one
        self.nlp, _ = trainable(config, name)
        self._pipe = component_of(self.nlp, name)
        self._metric = metric
        examples = read_corpus(self.nlp)
        learnt, self._held_back = (
            [eg for eg, held in zip(examples, held_back) if held == side] for side in (False, True)
        )
        fixed = [other for other in self.nlp.pipe_names if other != name]
        with self.nlp.select_pipes(disable=sourced(config, fixed)):
            self._optimizer = self.nlp.initialize(lambda: learnt)
        annotating = self.nlp.config["training"]["annotating_components"]
        # what they write is not there in `initialize`; the model grows when nothing is new
        for _ in range(2 if annotating else 0):
            self.nlp.update(learnt, sgd=False, exclude=fixed, annotates=annotating)  # type: ignore[arg-type]

    @property
    def n_orders(self) -> int:
        """Number of orders that its features have."""
        index = self._pipe.structure.index
        assert index is not None
        return int(index.feature_order.max(initial=0)) + 1

    def score(self, sigma: tuple[float, ...]) -> tuple[float, int]:
        """Train on with another sigma, from the weights there are.

        RETURNS (tuple[float, int]): the score of the part held back, from 0 to 1, and the steps
            that were taken.
        RAISES (ValueError): H079 if there is no such score.
        """
        trainer: Any = self._pipe.trainer  # `trainable` takes none without a sigma
        self._pipe.set_trainer(replace(trainer, sigma=sigma))
        most = self.nlp.config["training"]["max_steps"] or math.inf
        steps = 0
        while steps < most and self._pipe.run is not None and self._pipe.run.running:
            self._pipe.finish_update(self._optimizer)
            steps += 1
        scores = self.nlp.evaluate(self._held_back)
        value = scores.get(self._metric)
        if not isinstance(value, float):
            known = ", ".join(
                sorted(
                    key
                    for key, score in scores.items()
                    if isinstance(score, float) and key != "speed"
                )
            )
            raise ValueError(CommandErrors.H079.format(metric=self._metric, known=known))
        return value, steps


def trainable(config: Config, component: str | None) -> tuple[Language, str]:
    """A pipeline of which only one component is to be trained, and its name."""
    from spacy_hocrf.pipeline.component import SegmentationPipe

    interpolated = config.interpolate()
    if interpolated["training"].get("seed") is not None:
        fix_random_seed(interpolated["training"]["seed"])
    nlp = load_model_from_config(config, auto_fill=True)
    ours = [name for name, pipe in nlp.pipeline if isinstance(pipe, SegmentationPipe)]
    if component not in ours if component is not None else len(ours) != 1:
        wanted = "of its own" if component is None else f"'{component}'"
        raise ValueError(CommandErrors.H075.format(wanted=wanted, known=", ".join(ours) or "none"))
    name = component or ours[0]
    trainer = component_of(nlp, name).trainer
    for bad, reason in (
        (not hasattr(trainer, "sigma"), "has no sigma"),
        (trainer.batchwise, "never reaches an optimum"),
    ):
        if bad:
            raise ValueError(
                CommandErrors.H076.format(name=name, found=type(trainer).__name__, reason=reason)
            )
    others = [other for other in nlp.pipe_names if other != name]
    known = sourced(config, others)
    untrained = [
        other
        for other in others
        if other not in known and getattr(nlp.get_pipe(other), "is_trainable", False)
    ]
    for other in nlp.config["training"]["annotating_components"]:
        if other in untrained:
            raise ValueError(CommandErrors.H078.format(other=other, name=name))
    nlp.select_pipes(disable=untrained)
    return nlp, name


def sourced(config: Config, names: Sequence[str]) -> list[str]:
    """Those of the components that have been trained before."""
    frozen = config.interpolate().get("training", {}).get("frozen_components", [])
    return [name for name in names if name in frozen or "source" in config["components"][name]]


def component_of(nlp: Language, name: str) -> "SegmentationPipe":
    pipe: SegmentationPipe = nlp.get_pipe(name)  # type: ignore[assignment]
    return pipe


def read_corpus(nlp: Language, part: str = "train") -> list[Example]:
    """The training corpus, the same at every call; no other corpus is touched.

    part (str): "dev" for the development corpus.
    RAISES (ValueError): H381 if it is empty since its path has no file of spaCy's, but others.
    """
    config = nlp.config.interpolate()
    fix_random_seed(config["training"]["seed"] or 0)
    place = config["training"][f"{part}_corpus"]
    section, *rest = place.split(".")
    corpora = config[section]
    if len(rest) == 1 and rest[0] in corpora:
        reader = registry.resolve({"corpus": corpora[rest[0]]})["corpus"]
    else:  # one function makes all corpora
        [reader] = resolve_dot_names(config, [place])
    examples = list(reader(nlp))
    path = corpora[rest[0]].get("path") if len(rest) == 1 and rest[0] in corpora else None
    if not examples and isinstance(path, str):
        doc_files(path)
    return examples


def spell(sigma: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in sigma)
