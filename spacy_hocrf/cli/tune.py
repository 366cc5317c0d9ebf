"""`python -m spacy hocrf tune`: how strong should the prior be, and of which order the model?

k-fold cross-validation inside the training corpus; the dev corpus is not read. In each fold sigma
goes from small to large, so from a strong prior to a weak one, and training for each begins at the
weights of the one before it, since their optima are near.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray
from spacy.cli._util import import_code, parse_config_overrides, show_validation_error
from spacy.language import Language
from spacy.training import Example
from spacy.util import (
    fix_random_seed,
    load_config,
    load_model_from_config,
    registry,
    resolve_dot_names,
)
from srsly import json_dumps
from thinc.api import Config
from tqdm import tqdm
from typer import Argument, Context, Option
from wasabi import msg

from spacy_hocrf.cli.messages import coded_errors
from spacy_hocrf.errors import Errors

if TYPE_CHECKING:
    from spacy_hocrf.pipeline.component import SegmentationPipe

__all__ = ["Division", "Fold", "Trial", "Tuning", "choose", "tune", "tune_cli", "with_choice"]


@dataclass(frozen=True)
class Trial:
    """One candidate in all folds."""

    order: int
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
class Tuning:
    """What came out."""

    component: str
    metric: str
    documents: int
    # by order and sigma, the simplest model first; then those with a sigma for each order
    trials: tuple[Trial, ...]
    chosen: Trial


def tune_cli(
    ctx: Context,
    config_path: Annotated[
        Path, Argument(help="Config of the pipeline", exists=True, dir_okay=False)
    ],
    output: Annotated[
        Path | None,
        Option("--output", "-o", help="Write the config with the choice here", dir_okay=False),
    ] = None,
    sigmas: Annotated[
        str, Option("--sigmas", "-s", help="What to choose from, separated by commas")
    ] = "0.1,0.3,1,3,10",
    orders: Annotated[
        str,
        Option(
            "--orders", help="Orders of the model to choose from; by default that of the config"
        ),
    ] = "",
    per_order: Annotated[
        bool, Option("--per-order", "-p", help="Then choose a sigma for the features of each order")
    ] = False,
    folds: Annotated[int, Option("--folds", "-k", min=2, help="Number of folds")] = 5,
    seed: Annotated[int, Option("--seed", min=0, help="Seed of the division into folds")] = 0,
    component: Annotated[
        str | None, Option("--component", "-n", help="Name of the component, if there are several")
    ] = None,
    metric: Annotated[
        str | None,
        Option("--metric", "-m", help="Score to choose by; by default that of what is predicted"),
    ] = None,
    one_standard_error: Annotated[
        bool,
        Option(
            "--one-standard-error",
            help="Choose the simplest model within a standard error of the best",
        ),
    ] = False,
    code: Annotated[
        Path | None, Option("--code", "-c", help="Python file with code that the pipeline needs")
    ] = None,
) -> None:
    """Choose sigma by cross-validation on the config's training corpus.

    Settings are overridden as in `spacy train`, by --paths.train for instance; overrides are not
    written to the output. The training stops where the config's would: when the trainer has
    converged, or after training.max_steps steps.
    """
    import_code(code)
    overrides = parse_config_overrides(ctx.args)
    with show_validation_error(config_path), coded_errors():
        config = load_config(config_path, overrides=overrides, interpolate=False)
        choices, among = _sigmas(sigmas), _orders(orders)
        result = tune(
            config,
            choices,
            orders=among,
            per_order=per_order,
            folds=folds,
            seed=seed,
            component=component,
            metric=metric,
            one_standard_error=one_standard_error,
        )
    _print(result, choices, bool(among))
    if output:
        changed = with_choice(
            load_config(config_path, interpolate=False), result, with_order=bool(among)
        )
        output.parent.mkdir(parents=True, exist_ok=True)
        changed.to_disk(output)
        msg.good("Saved config", output)


def tune(
    config: Config,
    sigmas: Sequence[float],
    *,
    orders: Sequence[int] = (),
    per_order: bool = False,
    folds: int = 5,
    seed: int = 0,
    component: str | None = None,
    metric: str | None = None,
    one_standard_error: bool = False,
) -> Tuning:
    """Score candidates by cross-validation, and choose one.

    config (Config): of the pipeline, not interpolated.
    sigmas (Sequence[float]): candidates.
    orders (Sequence[int]): candidates for the order of the model; by default that of the config.
    per_order (bool): when one sigma is chosen, try the others for the features of order 0 alone,
        then of order 1, and so on.
    folds, seed (int): the documents are divided at random into so many parts of nearly equal size.
    component (Optional[str]): its name; may be left out if there is one only.
    metric (Optional[str]): a score of `nlp.evaluate`.
    one_standard_error (bool): prefer simpler models, see `choose`.
    RETURNS (Tuning): all candidates, and the choice.
    RAISES (ValueError): H075 to H079 for what cannot be tuned.
    """
    nlp, name = _pipeline(config, component)
    metric = metric or _metric(_component(nlp, name))
    among = sorted(orders) or [_component(nlp, name).structure.settings.order]
    documents = len(_read(nlp))
    if documents < folds:
        raise ValueError(Errors.H077.format(found=documents, folds=folds))
    parts = np.random.default_rng(seed).permutation(documents) % folds
    division = Division(config, name, metric, parts, folds)
    with tqdm(
        total=len(among) * folds * len(sigmas), desc="Cross-validation", disable=None, leave=False
    ) as bar:
        candidates: list[tuple[float, ...]] = [(sigma,) for sigma in sorted(sigmas)]
        trials = [trial for order in among for trial in division.trials(order, candidates, bar)]
        chosen = choose(trials, one_standard_error=one_standard_error)
        n_orders = chosen.n_orders if per_order else 0
        bar.total += n_orders * folds * (len(sigmas) - 1)
        for place in range(n_orders):
            common = _for_each(chosen.sigma, n_orders)
            candidates = [
                (*common[:place], sigma, *common[place + 1 :])
                for sigma in sorted(sigmas)
                if sigma != common[place]
            ]
            found = division.trials(chosen.order, candidates, bar)
            trials += found
            least = chosen.mean + (chosen.error if one_standard_error else 0.0)
            chosen = max(
                [trial for trial in found if trial.mean > least],
                key=lambda trial: trial.mean,
                default=chosen,
            )
    return Tuning(name, metric, documents, tuple(trials), chosen)


def choose(trials: Sequence[Trial], *, one_standard_error: bool = False) -> Trial:
    """The candidate with the best mean, the simplest of several.

    trials (Sequence[Trial]): the simplest model first: lower orders first, and a strong prior
        before a weak one.
    one_standard_error (bool): take the simplest whose mean is no more than one standard error (of
        the best) below the best.
    """
    best = max(trials, key=lambda trial: trial.mean)  # the first of several
    least = best.mean - (best.error if one_standard_error else 0.0)
    return next(trial for trial in trials if trial.mean >= least)


@dataclass(frozen=True)
class Division:
    """The training corpus in parts, each of which is held back once."""

    config: Config  # of the pipeline, not interpolated
    name: str  # of the component
    metric: str  # a score of `nlp.evaluate`
    parts: NDArray[np.int64]  # [D] part of each document
    folds: int  # number of parts

    def trials(self, order: int, sigmas: Sequence[tuple[float, ...]], bar: tqdm) -> list[Trial]:
        """Every sigma in every fold; only one fold is in memory at a time."""
        scores: list[list[float]] = [[] for _ in sigmas]
        steps = [0] * len(sigmas)
        n_orders = 1
        for k in range(self.folds):
            fold = Fold(self.config, self.name, order, self.parts == k, self.metric)
            n_orders = max(n_orders, fold.n_orders)
            for i, sigma in enumerate(sigmas):
                bar.set_postfix(order=order, fold=k + 1, sigma=_spell(sigma))
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
    order (int): of its model.
    held_back (bool [D]): documents of that part.
    metric (str): a score of `nlp.evaluate`.
    """

    def __init__(
        self, config: Config, name: str, order: int, held_back: NDArray[np.bool_], metric: str
    ) -> None:
        config = config.copy()
        config["components"][name].setdefault("model", {})["order"] = order
        self.nlp, _ = _pipeline(config, name)
        self._pipe = _component(self.nlp, name)
        self._metric = metric
        examples = _read(self.nlp)
        learnt, self._held_back = (
            [eg for eg, held in zip(examples, held_back) if held == side] for side in (False, True)
        )
        fixed = [other for other in self.nlp.pipe_names if other != name]
        with self.nlp.select_pipes(disable=_sourced(config, fixed)):
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
        trainer: Any = self._pipe.trainer  # `_pipeline` takes none without a sigma
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
            raise ValueError(Errors.H079.format(metric=self._metric, known=known))
        return value, steps


def with_choice(config: Config, tuning: Tuning, *, with_order: bool) -> Config:
    """The config with the chosen sigma and, if it was asked for, order."""
    config = config.copy()
    block = config["components"][tuning.component]
    defaults = Language.get_factory_meta(block["factory"]).default_config or {}
    for section, settings in _choice(tuning, with_order).items():
        there = block.setdefault(section, {})
        # `spacy train` wants the function named beside its settings
        if not any(key.startswith("@") for key in there):
            there.update(
                {key: value for key, value in defaults[section].items() if key.startswith("@")}
            )
        there.update(settings)
    return config


def _choice(tuning: Tuning, with_order: bool) -> dict[str, dict[str, Any]]:
    """Settings of the component by section."""
    sigma = tuning.chosen.sigma
    trainer = {"sigma": sigma[0] if len(set(sigma)) == 1 else list(sigma)}
    return {**({"model": {"order": tuning.chosen.order}} if with_order else {}), "trainer": trainer}


def _pipeline(config: Config, component: str | None) -> tuple[Language, str]:
    """A pipeline of which only one component is to be trained, and its name."""
    from spacy_hocrf.pipeline.component import SegmentationPipe

    interpolated = config.interpolate()
    if interpolated["training"].get("seed") is not None:
        fix_random_seed(interpolated["training"]["seed"])
    nlp = load_model_from_config(config, auto_fill=True)
    ours = [name for name, pipe in nlp.pipeline if isinstance(pipe, SegmentationPipe)]
    if component not in ours if component is not None else len(ours) != 1:
        wanted = "of its own" if component is None else f"'{component}'"
        raise ValueError(Errors.H075.format(wanted=wanted, known=", ".join(ours) or "none"))
    name = component or ours[0]
    trainer = _component(nlp, name).trainer
    for bad, reason in (
        (not hasattr(trainer, "sigma"), "has no sigma"),
        (trainer.batchwise, "never reaches an optimum"),
    ):
        if bad:
            raise ValueError(
                Errors.H076.format(name=name, found=type(trainer).__name__, reason=reason)
            )
    others = [other for other in nlp.pipe_names if other != name]
    known = _sourced(config, others)
    untrained = [
        other
        for other in others
        if other not in known and getattr(nlp.get_pipe(other), "is_trainable", False)
    ]
    for other in nlp.config["training"]["annotating_components"]:
        if other in untrained:
            raise ValueError(Errors.H078.format(other=other, name=name))
    nlp.select_pipes(disable=untrained)
    return nlp, name


def _sourced(config: Config, names: Sequence[str]) -> list[str]:
    """Those of the components that have been trained before."""
    frozen = config.interpolate()["training"].get("frozen_components", [])
    return [name for name in names if name in frozen or "source" in config["components"][name]]


def _component(nlp: Language, name: str) -> "SegmentationPipe":
    pipe: SegmentationPipe = nlp.get_pipe(name)  # type: ignore[assignment]
    return pipe


def _metric(pipe: "SegmentationPipe") -> str:
    """The score of what the component predicts."""
    from spacy_hocrf.pipeline.targets import SpansTarget, TagsTarget

    if isinstance(pipe.target, SpansTarget):
        return f"spans_{pipe.target.spans_key}_f"
    return "tag_acc" if isinstance(pipe.target, TagsTarget) else "ents_f"


def _read(nlp: Language) -> list[Example]:
    """The training corpus, the same at every call; no other corpus is touched."""
    config = nlp.config.interpolate()
    fix_random_seed(config["training"]["seed"] or 0)
    section, *rest = config["training"]["train_corpus"].split(".")
    corpora = config[section]
    if len(rest) == 1 and rest[0] in corpora:
        reader = registry.resolve({"corpus": corpora[rest[0]]})["corpus"]
    else:  # one function makes all corpora
        [reader] = resolve_dot_names(config, [config["training"]["train_corpus"]])
    return list(reader(nlp))


def _for_each(sigma: tuple[float, ...], n_orders: int) -> tuple[float, ...]:
    """A sigma for each order; the last given one serves all higher ones."""
    return tuple(sigma[min(i, len(sigma) - 1)] for i in range(n_orders))


def _sigmas(text: str) -> list[float]:
    values = _numbers(text, float)
    if not values or not all(0 < value < math.inf for value in values):
        raise ValueError(
            Errors.H074.format(
                option="--sigmas", found=text, expected="numbers above 0, separated by commas"
            )
        )
    return values


def _orders(text: str) -> list[int]:
    values = _numbers(text, int) if text else []
    if text and (not values or min(values) < 0):
        raise ValueError(
            Errors.H074.format(
                option="--orders",
                found=text,
                expected="integers of at least 0, separated by commas",
            )
        )
    return values


def _numbers(text: str, kind: type) -> list[Any]:
    """The distinct ones, ascending; none if one of them is no number."""
    try:
        return sorted({kind(part) for part in text.split(",")})
    except ValueError:
        return []


def _print(tuning: Tuning, sigmas: Sequence[float], with_order: bool) -> None:
    folds = len(tuning.chosen.scores)
    header = (
        "order",
        "sigma",
        f"{tuning.metric}",
        "±",
        *(f"fold {k + 1}" for k in range(folds)),
        "steps",
        "",
    )
    msg.divider(f"{folds}-fold cross-validation")
    print(
        f"{tuning.documents} documents of the training corpus; mean and standard error of {tuning.metric}"
    )
    rows = [_row(trial, trial == tuning.chosen) for trial in tuning.trials]
    msg.table(rows, header=header, aligns=("r",) * len(header), divider=True)
    for section, settings in _choice(tuning, with_order).items():
        print(f"[components.{tuning.component}.{section}]")
        for key, value in settings.items():
            print(f"{key} = {json_dumps(value)}\n")
    tried = len(sigmas) > 1
    for end, extreme in (("smallest", min(sigmas)), ("largest", max(sigmas))):
        if tried and extreme in tuning.chosen.sigma:
            msg.warn(f"{extreme:g} is the {end} sigma that was tried. Try others with --sigmas.")


def _row(trial: Trial, chosen: bool) -> tuple[str, ...]:
    scores = (f"{100 * score:.2f}" for score in (trial.mean, trial.error, *trial.scores))
    return (
        str(trial.order),
        _spell(trial.sigma),
        *scores,
        str(trial.steps),
        "chosen" if chosen else "",
    )


def _spell(sigma: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in sigma)
