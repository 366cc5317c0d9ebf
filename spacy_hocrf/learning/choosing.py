"""Chooses the settings that are "auto" by the loss on held-out texts: minus their log-likelihood, which is
exact.

Sigma is tried from small to large, from a strong prior to a weak one, and training for each starts from the
weights of the previous one, whose optimum is near. A larger model, of a higher order or with more templates,
is tried with the best sigma so far, and starts from the best weights. All sums are taken in one order
whatever the number of threads, so the choice does not depend on it.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from typing import Any, NamedTuple

from spacy.util import logger
from tqdm import tqdm
from wasabi.printer import Printer

from spacy_hocrf.learning.choice import Choice
from spacy_hocrf.learning.heldout import MIN_GROUPS, Fold, Sides, comparison_trainer, held_out_sides
from spacy_hocrf.learning.learning import Learner
from spacy_hocrf.training.base import DEFAULT_SIGMA
from spacy_hocrf.types import Vector

__all__ = [
    "HELD_OUT_TO_CHOOSE",
    "ORDERS",
    "TOLERANCE",
    "Trial",
    "choose_settings",
    "watched",
]

CONSOLE_LOGGER = "spacy-hocrf.ConsoleLogger.v1"
ORDERS = (1, 2)
TOLERANCE = 0.08
"""Share of the lowest loss by which a weaker prior may be worse: the likelihood prefers a stronger prior than
F1 does, especially where texts are few and have few spans.
"""
MIN_GAINS = {"order": 0.02, "wide": 0.005}
"""Share of the loss by which a larger model, which takes longer, must be better."""
MIN_TOKENS_FOR_WIDE = 30_000
"""Minimum number of tokens in the texts by which a wide model is tried: with fewer it seldom pays."""

HELD_OUT_TO_CHOOSE = 100
"""Number of held-out documents that is enough to choose by."""


class Trial(NamedTuple):
    """A candidate: its settings where they are "auto", and its loss."""

    order: int
    wide: bool
    sigma: float | None
    loss: float  # on all held-out documents


def watched(nlp: Any) -> bool:
    """Does `ConsoleLogger.v1` show a table of the training, so that a user waits for its first row?

    nlp (Optional[Language]): the pipeline.
    """
    logger_block = {} if nlp is None else nlp.config["training"].get("logger") or {}
    return str(logger_block.get("@loggers")) == CONSOLE_LOGGER


def choose_settings(learner: Learner, name: str, *, shown: bool = False) -> Choice:
    """Choose the settings of a learner that are "auto".

    learner (Learner): has its corpus, but no features yet; it receives the folds of the best candidate.
    name (str): name of the component, for the log.
    shown (bool): show the choice and its progress on standard error, even if that is no terminal.
    """
    settings, sigmas, orders = learner.structure.settings, learner.trainer.choices, _orders(learner)
    if not orders and not sigmas:
        return Choice()
    sides = held_out_sides(learner.corpus, HELD_OUT_TO_CHOOSE)
    tokens = sum(map(len, chain(*sides[0]))) if sides else 0
    wide = bool(settings.wider) and tokens >= MIN_TOKENS_FOR_WIDE
    is_auto = {"sigma": bool(sigmas), "order": bool(orders), "wide": wide}
    names = [setting for setting, auto in is_auto.items() if auto]
    if sides:
        documents = sum(map(len, sides[0]))
        changes: list[dict[str, Any]] = [{"order": order} for order in orders or [settings.order]]
        changes[0]["wide"] = False
        changes += [{"wide": True}] * wide
        title = f"{name}: choosing {' and '.join(names)} by {documents:,} texts"
        folds = _compare(learner, sides, changes, sigmas, title, shown=shown)
        trials = list(folds)
        best = _best(trials)
        if learner.trainer.quick() is not None:
            trainer = learner.trainer.with_sigma(best.sigma)
            learner.folds = [fold.trained(trainer, weights) for fold, weights in folds[best]]
        why = f"by the loss of texts held back, of {documents}: {_losses_text(trials)}"
    else:
        documents, best = 0, Trial(ORDERS[0], False, DEFAULT_SIGMA, 0.0)
        why = (
            f"by default, since fewer than {MIN_GROUPS} texts (or groups) are annotated completely"
        )
    chosen = {setting: getattr(best, setting) for setting in names}
    summary = " and ".join(f"{setting} = {_written(value)}" for setting, value in chosen.items())
    logger.info("%s: %s, chosen %s", name, summary, why)
    if shown:
        line = f"{name}: {summary}, chosen by {documents:,} texts"
        print(Printer(no_print=True).info(line), file=sys.stderr, flush=True)
    return Choice(**chosen, documents=documents)


def _orders(learner: Learner) -> Sequence[int]:
    """Return the candidate orders that have a template of their own; none if the order is set."""
    settings = learner.structure.settings
    highest = replace(settings, order=ORDERS[-1]).used
    used = {ORDERS[0], *(template.order for template in highest)}
    return [order for order in ORDERS if order in used] if settings.auto_order else []


def _compare(
    learner: Learner,
    sides: Sequence[Sides],
    changes: Sequence[Mapping[str, Any]],
    sigmas: Sequence[float],
    title: str,
    *,
    shown: bool,
) -> dict[Trial, list[tuple[Fold, Vector]]]:
    """Compute the losses of candidates: all sigmas with the smallest model, then larger models with the best
    so far.

    sides (Sequence[Sides]): training and held-out documents of each fold.
    changes (Sequence[Mapping[str, Any]]): settings of the smallest model, then what each larger one changes.
    sigmas (Sequence[float]): candidates, ascending; empty if the config sets sigma.
    title (str): title of the progress bar. shown (bool): show it even if there is no terminal.
    RETURNS (dict[Trial, list[tuple[Fold, float64 [F]]]]): the folds of each candidate, with their weights.
    """
    trained = dict[Trial, list[tuple[Fold, Vector]]]()
    trainer = comparison_trainer(learner.trainer)
    tried: Sequence[float | None] = sigmas or [None]
    settings, smaller_folds = dict[str, Any](), list[Fold]()
    hidden = False if shown else None  # unless this is a terminal
    total = len(sides) * (len(tried) + len(changes) - 1)
    with tqdm(total=total, desc=title, disable=hidden, leave=False) as bar:
        for change in changes:
            settings |= change
            folds = list[Fold]()
            for (learnt, held_out), smaller in zip_longest(sides, smaller_folds):
                folds.append(Fold(learner, learnt, held_out, smaller, **settings))
                if smaller is not None:
                    smaller.release()
            trials = list[Trial]()
            for sigma in tried:
                bar.set_postfix(sigma=sigma, **settings)
                loss = 0.0
                for fold in folds:
                    loss += fold.loss(trainer.with_sigma(sigma))
                    bar.update()
                trials.append(Trial(settings["order"], settings["wide"], sigma, loss))
                trained[trials[-1]] = [(fold, fold.weights) for fold in folds]
                if loss > _limit(trials):
                    break
            best = _best(list(trained))
            settings, tried = {"order": best.order, "wide": best.wide}, [best.sigma]
            smaller_folds = [fold for fold, _ in trained[best]]
            for fold, weights in trained[best]:
                fold.weights = weights  # a larger model begins at these
    return trained


def _best(trials: Sequence[Trial]) -> Trial:
    """Return the chosen candidate: for the smallest model, the weakest prior within TOLERANCE of the lowest
    loss; then a larger model if it has the required gain.
    """
    smallest = [trial for trial in trials if trial[:2] == trials[0][:2]]
    limit = _limit(smallest)
    best = [trial for trial in smallest if trial.loss <= limit][-1]
    for trial in trials[len(smallest) :]:
        gain = MIN_GAINS["wide" if trial.wide else "order"]
        if trial.loss < (1 - gain) * best.loss:
            best = trial
    return best


def _limit(trials: Sequence[Trial]) -> float:
    """Return the highest acceptable loss."""
    return (1 + TOLERANCE) * min(trial.loss for trial in trials)


def _losses_text(trials: Sequence[Trial]) -> str:
    """Format the losses of all candidates."""
    rows = (
        (f"order {t.order}", "wide" * t.wide, f"sigma {t.sigma:g}" if t.sigma else "", t.loss)
        for t in trials
    )
    return ", ".join(f"{' '.join(filter(None, words))}: {loss:.6g}" for *words, loss in rows)


def _written(value: Any) -> str:
    """Format a setting as in a config."""
    return str(value).lower() if isinstance(value, bool) else f"{value:g}"
