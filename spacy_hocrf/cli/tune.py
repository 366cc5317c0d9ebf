"""`python -m spacy hocrf tune`: how strong should the prior be, and of which order the model?

k-fold cross-validation inside the training corpus; the dev corpus is not read.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from spacy.cli._util import import_code, parse_config_overrides, show_validation_error
from spacy.language import Language
from spacy.util import load_config
from srsly import json_dumps
from thinc.api import Config
from tqdm import tqdm
from typer import Argument, Context, Option
from wasabi import msg

from spacy_hocrf.cli.errors import CommandErrors
from spacy_hocrf.cli.folds import Division, Trial, component_of, read_corpus, spell, trainable
from spacy_hocrf.cli.messages import coded_errors
from spacy_hocrf.cli.writing import write_config
from spacy_hocrf.pipeline.choosing import ORDERS

__all__ = ["Tuning", "choose", "tune", "tune_cli", "with_choice"]


@dataclass(frozen=True)
class Tuning:
    """What came out."""

    component: str
    metric: str
    documents: int
    # by order and sigma, the simplest model first; then those with a sigma for each order
    trials: tuple[Trial, ...]
    chosen: Trial
    with_order: bool  # was the order chosen, too?


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
    _print(result, choices)
    if output:
        changed = with_choice(load_config(config_path, interpolate=False), result)
        write_config(changed, output)
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
    orders (Sequence[int]): candidates for the order of the model; by default that of the config, or
        those of "auto".
    per_order (bool): when one sigma is chosen, try the others for the features of order 0 alone,
        then of order 1, and so on.
    folds, seed (int): the documents are divided at random into so many parts of nearly equal size.
    component (Optional[str]): its name; may be left out if there is one only.
    metric (Optional[str]): a score of `nlp.evaluate`.
    one_standard_error (bool): prefer simpler models, see `choose`.
    RETURNS (Tuning): all candidates, and the choice.
    RAISES (ValueError): H075 to H079 for what cannot be tuned.
    """
    nlp, name = trainable(config, component)
    metric = metric or component_of(nlp, name).target.metric
    settings = component_of(nlp, name).structure.settings
    orders = orders or (ORDERS if settings.auto_order else ())
    own = None if settings.endless else settings.order
    among: list[int | None] = [*sorted(orders)] or [own]
    documents = len(read_corpus(nlp))
    if documents < folds:
        raise ValueError(CommandErrors.H077.format(found=documents, folds=folds))
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
    return Tuning(name, metric, documents, tuple(trials), chosen, bool(orders))


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


def with_choice(config: Config, tuning: Tuning) -> Config:
    """The config with the chosen sigma and, if it was asked for, order."""
    config = config.copy()
    block = config["components"][tuning.component]
    defaults = Language.get_factory_meta(block["factory"]).default_config or {}
    for section, settings in _choice(tuning).items():
        there = block.setdefault(section, {})
        # `spacy train` wants the function named beside its settings
        if not any(key.startswith("@") for key in there):
            there.update(
                {key: value for key, value in defaults[section].items() if key.startswith("@")}
            )
        there.update(settings)
    return config


def _choice(tuning: Tuning) -> dict[str, dict[str, Any]]:
    """Settings of the component by section."""
    sigma = tuning.chosen.sigma
    trainer = {"sigma": sigma[0] if len(set(sigma)) == 1 else list(sigma)}
    return {
        **({"model": {"order": tuning.chosen.order}} if tuning.with_order else {}),
        "trainer": trainer,
    }


def _for_each(sigma: tuple[float, ...], n_orders: int) -> tuple[float, ...]:
    """A sigma for each order; the last given one serves all higher ones."""
    return tuple(sigma[min(i, len(sigma) - 1)] for i in range(n_orders))


def _sigmas(text: str) -> list[float]:
    values = _numbers(text, float)
    if not values or not all(0 < value < math.inf for value in values):
        raise ValueError(
            CommandErrors.H074.format(
                option="--sigmas", found=text, expected="numbers above 0, separated by commas"
            )
        )
    return values


def _orders(text: str) -> list[int]:
    values = _numbers(text, int) if text else []
    if text and (not values or min(values) < 0):
        raise ValueError(
            CommandErrors.H074.format(
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


def _print(tuning: Tuning, sigmas: Sequence[float]) -> None:
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
    for section, settings in _choice(tuning).items():
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
        "null" if trial.order is None else str(trial.order),
        spell(trial.sigma),
        *scores,
        str(trial.steps),
        "chosen" if chosen else "",
    )
