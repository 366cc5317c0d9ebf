"""`python -m spacy hocrf tune`: how strong should the prior be, and of which order the model?

k-fold cross-validation inside the training corpus; the dev corpus is not read. In each fold sigma goes from
small to large, so from a strong prior to a weak one, and training for each begins at the weights of the one
before it, since their optima are near.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from spacy.cli._util import import_code
from spacy.language import Language
from spacy.training import Example
from spacy.util import load_config, load_model_from_config
from srsly import json_dumps
from thinc.api import Config
from tqdm import tqdm
from typer import Context, Option
from wasabi import msg

from spacy_hocrf.cli.corpora import read_corpus
from spacy_hocrf.cli.errors import CommandErrors
from spacy_hocrf.cli.options import (
    Code,
    Component,
    ConfigPath,
    Folds,
    Seed,
    overridden,
    write_config,
)
from spacy_hocrf.cli.pipelines import (
    alone,
    begin,
    check_exact,
    component_of,
    folds_of,
    settled,
    train_on,
)
from spacy_hocrf.learning.choosing import ORDERS

__all__ = ["TunedCandidate", "Tuning", "choose", "tune", "tune_cli", "with_choice"]


@dataclass(frozen=True)
class TunedCandidate:
    """One candidate in all folds."""

    order: int | None  # None for that of the longest label pattern
    sigma: float
    scores: tuple[float, ...]  # by fold, from 0 to 1
    steps: int  # of training, in all folds

    @property
    def mean(self) -> float:
        """Mean of the scores."""
        return float(np.mean(self.scores))

    @property
    def error(self) -> float:
        """Standard error of the mean."""
        return float(np.std(self.scores, ddof=1)) / math.sqrt(len(self.scores))


@dataclass(frozen=True)
class Tuning:
    """Results of `hocrf tune`."""

    component: str
    metric: str
    documents: int
    trials: tuple[TunedCandidate, ...]  # by order and sigma, the simplest model first
    chosen: TunedCandidate
    settings: dict[str, dict[str, Any]]  # that were chosen, of the component's model and trainer


def tune_cli(
    ctx: Context,
    config_path: ConfigPath,
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
    folds: Folds = 5,
    seed: Seed = 0,
    component: Component = None,
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
    code: Code = None,
) -> None:
    """Choose sigma by cross-validation on the config's training corpus.

    Settings are overridden as in `spacy train`, by --paths.train for instance; overrides are not
    written to the output. The training stops where the config's would: when the trainer has
    converged, or after training.max_steps steps.
    """
    import_code(code)
    config = overridden(config_path, ctx)
    result = tune(
        config,
        _numbers("--sigmas", sigmas, float, lambda value: 0 < value < math.inf, "numbers above 0"),
        orders=_numbers("--orders", orders, int, lambda value: value >= 0, "integers from 0 on"),
        folds=folds,
        seed=seed,
        component=component,
        metric=metric,
        one_standard_error=one_standard_error,
    )
    _print(result)
    if output:
        changed = with_choice(load_config(config_path, interpolate=False), result)
        write_config(changed, output)
        msg.good("Saved config", output)


def tune(
    config: Config,
    sigmas: Sequence[float],
    *,
    orders: Sequence[int] = (),
    folds: int = 5,
    seed: int = 0,
    component: str | None = None,
    metric: str | None = None,
    one_standard_error: bool = False,
) -> Tuning:
    """Score candidates by cross-validation, and choose one.

    config (Config): of the pipeline, not interpolated.
    sigmas (Sequence[float]): candidates.
    orders (Sequence[int]): candidates for the order of the model; by default that of the config, or
        those of "auto".
    folds, seed (int): the documents are divided at random into so many parts of nearly equal size, equal
        ones into the same.
    component (Optional[str]): its name; may be left out if there is one only.
    metric (Optional[str]): a score of `nlp.evaluate`.
    one_standard_error (bool): prefer simpler models, see `choose`.
    RETURNS (Tuning): all candidates, and the choice.
    RAISES (ValueError): H076 to H079 or H204 for what cannot be tuned.
    """
    nlp = load_model_from_config(config, auto_fill=True)
    name, pipe = component_of(nlp, component)
    check_exact(name, pipe)
    metric, settings = metric or pipe.target.metric, pipe.structure.settings
    orders = orders or (ORDERS if settings.auto_order else ())
    own = None if settings.endless else settings.order
    docs = [example.reference for example in read_corpus(nlp)]
    parts = folds_of(docs, folds, seed, pipe.group_by)
    config, path, trials = (
        settled(alone(config, nlp, name), name),
        sorted(sigmas),
        list[TunedCandidate](),
    )
    among: list[int | None] = [*sorted(orders)] or [own]
    with tqdm(
        total=len(among) * folds * len(path), desc="Cross-validation", disable=None, leave=False
    ) as bar:
        for order in among:
            config["components"][name].setdefault("model", {})["order"] = order
            # one fold after the other is in memory
            found = [[*_path(config, name, metric, {*part}, path, bar)] for part in parts]
            for sigma, (scores, steps) in zip(path, (zip(*results) for results in zip(*found))):
                trials.append(TunedCandidate(order, sigma, scores, sum(steps)))
    chosen = choose(trials, one_standard_error=one_standard_error)
    changed: dict[str, dict[str, Any]] = {"model": {"order": chosen.order}} if orders else {}
    changed["trainer"] = {"sigma": chosen.sigma}
    return Tuning(name, metric, len(docs), tuple(trials), chosen, changed)


def _path(
    config: Config,
    name: str,
    metric: str,
    unseen: set[int],
    sigmas: Sequence[float],
    bar: tqdm,
) -> Iterator[tuple[float, int]]:
    """A pipeline that learns from the corpus without some documents, on which it is scored.

    YIELDS (tuple[float, int]): for each sigma the score, from 0 to 1, and the steps that were taken.
    RAISES (ValueError): H079 if there is no such score.
    """
    nlp = load_model_from_config(config, auto_fill=True)
    _, pipe = component_of(nlp, name)
    learnt, held = sides = list[Example](), list[Example]()
    for i, example in enumerate(read_corpus(nlp)):
        sides[i in unseen].append(example)
    optimizer = begin(nlp, config, learnt)
    trainer: Any = pipe.trainer  # which has a sigma
    for sigma in sigmas:
        bar.set_postfix(order=config["components"][name]["model"]["order"], sigma=sigma)
        pipe.set_trainer(replace(trainer, sigma=sigma))
        steps = train_on(pipe, optimizer, nlp.config["training"]["max_steps"] or math.inf)
        scores = {k: score for k, score in nlp.evaluate(held).items() if isinstance(score, float)}
        if metric not in scores:
            known = ", ".join(sorted({*scores} - {"speed"}))
            raise ValueError(CommandErrors.H079.format(metric=metric, known=known))
        yield scores[metric], steps
        bar.update()


def choose(trials: Sequence[TunedCandidate], *, one_standard_error: bool = False) -> TunedCandidate:
    """The candidate with the best mean, the simplest of several.

    trials (Sequence[TunedCandidate]): the simplest model first: lower orders first, and a strong prior
        before a weak one.
    one_standard_error (bool): take the simplest whose mean is no more than one standard error (of
        the best) below the best.
    """
    best = max(trials, key=lambda trial: trial.mean)  # the first of several
    least = best.mean - (best.error if one_standard_error else 0.0)
    return next(trial for trial in trials if trial.mean >= least)


def with_choice(config: Config, tuning: Tuning) -> Config:
    """The config with the chosen sigma and, if it was asked for, order."""
    config = config.copy()
    block = config["components"][tuning.component]
    defaults = Language.get_factory_meta(block["factory"]).default_config or {}
    for section, settings in tuning.settings.items():
        there = block.setdefault(section, {})
        # `spacy train` wants the function named beside its settings
        if not any(key.startswith("@") for key in there):
            there.update({k: v for k, v in defaults[section].items() if k.startswith("@")})
        there.update(settings)
    return config


def _numbers(
    option: str, text: str, kind: type, fits: Callable[[Any], bool], expected: str
) -> list[Any]:
    """The distinct ones, ascending. RAISES (ValueError): H074 if one of them is none that fits."""
    try:
        values = sorted({kind(part) for part in text.split(",")}) if text else []
    except ValueError:
        values = [math.nan]
    if not all(map(fits, values)):
        expected = f"{expected}, separated by commas"
        raise ValueError(CommandErrors.H074.format(option=option, found=text, expected=expected))
    return values


def _print(tuning: Tuning) -> None:
    folds = len(tuning.chosen.scores)
    names = (f"fold {k + 1}" for k in range(folds))
    header = ("order", "sigma", tuning.metric, "±", *names, "steps", "")
    msg.divider(f"{folds}-fold cross-validation")
    print(
        f"{tuning.documents} documents of the training corpus; mean and standard error of {tuning.metric}"
    )
    rows = [
        (
            "null" if trial.order is None else trial.order,
            f"{trial.sigma:g}",
            *(f"{100 * score:.2f}" for score in (trial.mean, trial.error, *trial.scores)),
            trial.steps,
            "chosen" if trial == tuning.chosen else "",
        )
        for trial in tuning.trials
    ]
    msg.table(rows, header=header, aligns=("r",) * len(header), divider=True)
    for section, settings in tuning.settings.items():
        print(f"[components.{tuning.component}.{section}]")
        for key, value in settings.items():
            print(f"{key} = {json_dumps(value)}\n")
    sigmas = {trial.sigma for trial in tuning.trials}
    for end, extreme in (("smallest", min(sigmas)), ("largest", max(sigmas))):
        if len(sigmas) > 1 and extreme == tuning.chosen.sigma:
            msg.warn(f"{extreme:g} is the {end} sigma that was tried. Try others with --sigmas.")
