"""How settings that are "auto" are chosen: by the loss of texts that the model has not learnt from,
for most trainers minus their log-likelihood, which is exact.

Sigma goes from small to large, from a strong prior to a weak one, and training for each begins at
the weights of the one before it, whose optimum is near. A higher order is tried with the sigma that
the order below it has, and begins at its weights. All sums have one order whatever the number of
threads, so the choice is the same, too.
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.util import logger
from tqdm import tqdm
from wasabi.printer import Printer

from spacy_hocrf.learning.choice import Choice
from spacy_hocrf.learning.heldout import LEAST, Fold, Sides, held_back, judge
from spacy_hocrf.learning.learning import Learner
from spacy_hocrf.learning.selecting import select
from spacy_hocrf.training.base import DEFAULT_SIGMA

__all__ = [
    "HELD_BACK",
    "ORDERS",
    "TOLERANCE",
    "Trial",
    "choose",
    "watched",
]

CONSOLE = "spacy-hocrf.ConsoleLogger.v1"
ORDERS = (1, 2)
TOLERANCE = 0.08
"""Of the lowest loss: so much more may a weaker prior lose. The likelihood prefers a stronger prior
than F1 does, above all where texts are few and have few spans.
"""
GAIN = 0.02
"""Of the loss: so much less must a higher order lose, which takes longer."""

HELD_BACK = 100
"""So many documents held back are enough to choose by."""

Vector = NDArray[np.float64]  # [F]


class Trial(NamedTuple):
    """A candidate, the settings that are not "auto" left out."""

    order: int
    sigma: float | None
    loss: float  # of all documents held back


def watched(nlp: Any) -> bool:
    """Is training shown in the table of `ConsoleLogger.v1`? Then somebody waits for its first row.

    nlp (Optional[Language]): the pipeline.
    """
    logger_block = {} if nlp is None else nlp.config["training"].get("logger") or {}
    return str(logger_block.get("@loggers")) == CONSOLE


def choose(learner: Learner, name: str, *, shown: bool = False) -> Choice:
    """Choose the settings of a learner that are "auto".

    learner (Learner): knows its corpus, and has no features yet; it gets the folds of the best candidate.
    name (str): of the component, for the log.
    shown (bool): say on standard error what is chosen, and how far that is, even if it is no terminal.
    """
    orders, sigmas = _orders(learner), learner.trainer.choices
    if not orders and not sigmas:
        return _with_patterns(learner, Choice(), name)
    parts = held_back(learner.corpus, HELD_BACK)
    if parts:
        documents = sum(map(len, parts[0]))
        wanted = " and ".join(["sigma"] * bool(sigmas) + ["order"] * bool(orders))
        title = f"{name}: choosing {wanted} by {documents:,} texts"
        found = _compare(learner, parts, orders, sigmas, title, shown=shown)
        trials = list(found)
        best = _best(trials)
        if learner.structure.settings.greedy is None and learner.trainer.quick() is not None:
            trainer = learner.trainer.with_sigma(best.sigma)
            learner.folds = [fold.trained(trainer, weights) for fold, weights in found[best]]
        why = f"by the loss of texts held back, of {documents}: {_spell(trials)}"
    else:
        documents, best = 0, Trial(ORDERS[0], DEFAULT_SIGMA, 0.0)
        why = f"by default, since fewer than {LEAST} texts (or groups) are annotated completely"
    choice = Choice(best.sigma if sigmas else None, best.order if orders else None, documents)
    chosen = [f"sigma = {best.sigma:g}"] if sigmas else []
    chosen += [f"order = {best.order}"] if orders else []
    logger.info("%s: %s, chosen %s", name, " and ".join(chosen), why)
    if shown:
        line = f"{name}: {' and '.join(chosen)}, chosen by {documents:,} texts"
        print(Printer(no_print=True).info(line), file=sys.stderr, flush=True)
    return _with_patterns(learner, choice, name)


def _with_patterns(learner: Learner, choice: Choice, name: str) -> Choice:
    """The choice, with label patterns if they are to be selected."""
    settings = learner.structure.settings
    if settings.greedy is None:
        return choice
    if settings.auto_order:
        choice = replace(choice, order=ORDERS[-1])
    order = settings.highest if settings.endless else choice.order or settings.order
    trainer = learner.trainer.with_sigma(choice.sigma)
    return replace(choice, patterns=select(learner, trainer, order, name))


def _orders(learner: Learner) -> Sequence[int]:
    """Candidates; none if the order is set, or label patterns are selected. Orders without a template of
    their own are left out.
    """
    settings = learner.structure.settings
    if settings.greedy is not None:
        return []
    highest = replace(settings, order=ORDERS[-1]).used
    known = {ORDERS[0], *(template.order for template in highest)}
    return [order for order in ORDERS if order in known] if settings.auto_order else []


def _compare(
    learner: Learner,
    parts: Sequence[Sides],
    orders: Sequence[int],
    sigmas: Sequence[float],
    title: str,
    *,
    shown: bool,
) -> dict[Trial, list[tuple[Fold, Vector]]]:
    """The losses of candidates: sigmas with the lowest order, then higher orders with the best one.

    parts (Sequence[Sides]): what each fold learns from, and what it holds back.
    orders, sigmas (Sequence): candidates, ascending; none for a setting that the config has.
    title (str): of the progress bar. shown (bool): show it even where there is no terminal.
    RETURNS (dict[Trial, list[tuple[Fold, float64 [F]]]]): with the folds, and the weights that each of
        them had.
    """
    folds = list[Fold]()
    trials, trained = list[Trial](), list[list[tuple[Fold, Vector]]]()
    trainer = judge(learner.trainer)
    path: Sequence[float | None] = sigmas or [None]
    orders = orders or [learner.structure.settings.order]
    most = len(parts) * (len(path) + len(orders) - 1)
    hidden = False if shown else None  # unless this is a terminal
    with tqdm(total=most, desc=title, disable=hidden, leave=False) as bar:
        for order in orders:
            below, folds = folds, []
            for (learnt, held), model in zip_longest(parts, below):
                folds.append(Fold(learner, learnt, held, model, order=order))
                if model is not None:
                    model.rest()
            for sigma in path:
                bar.set_postfix(order=order, sigma=sigma)
                loss = 0.0
                for fold in folds:
                    loss += fold.loss(trainer.with_sigma(sigma))
                    bar.update()
                trials.append(Trial(order, sigma, loss))
                trained.append([(fold, fold.weights) for fold in folds])
                if loss > _limit(trials):
                    break
            best = _best(trials)
            path = [best.sigma]
            for fold, weights in trained[trials.index(best)]:
                fold.weights = weights  # a higher order begins at these
    return dict(zip(trials, trained))


def _best(trials: Sequence[Trial]) -> Trial:
    """The choice: the weakest prior within TOLERANCE of the lowest loss, and a higher order if it
    has GAIN.
    """
    lowest = trials[0].order
    limit = _limit([trial for trial in trials if trial.order == lowest])
    best = [trial for trial in trials if trial.order == lowest and trial.loss <= limit][-1]
    for trial in trials:
        if trial.order > best.order and trial.loss < (1 - GAIN) * best.loss:
            best = trial
    return best


def _limit(trials: Sequence[Trial]) -> float:
    """The highest loss that is low enough."""
    return (1 + TOLERANCE) * min(trial.loss for trial in trials)


def _spell(trials: Sequence[Trial]) -> str:
    """Losses of all candidates."""
    rows = ((f"order {t.order}", f"sigma {t.sigma:g}" if t.sigma else "", t.loss) for t in trials)
    return ", ".join(f"{' '.join(filter(None, words))}: {loss:.6g}" for *words, loss in rows)
