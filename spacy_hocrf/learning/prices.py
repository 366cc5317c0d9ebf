"""Learns the prices of rules: what a reading pays for each rule that it breaks.

With w the prices, b_r(y) = 1 if a reading y breaks rule r and else 0, and p the model without these rules,
the likelihood of a text is that of p(y) exp(-w · b(y)) / Σ p(y') exp(-w · b(y')). Its derivative is

    d/dw_r -log p_w(y) = b_r(y) - E_w[b_r]

so a price rises as long as the model breaks its rule more often than the annotation does. Since a model knows
its training texts nearly by heart, held-out texts are used, read by the models by which settings were chosen.
All that is needed of a text are the probabilities of the sets of rules that it may break together
(engine/ruled.py), which are computed once; so the sum over all texts, with a Gaussian prior, is cheap, and
L-BFGS minimises it over prices of at least 0.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from msgspec import Struct, to_builtins
from spacy.util import logger

from spacy_hocrf.answers.decoders import ExpectedF
from spacy_hocrf.engine.lbfgs import LBFGS
from spacy_hocrf.engine.ruled import Ruled, broken_sets
from spacy_hocrf.features.saved import need
from spacy_hocrf.learning.cost import held_out_models
from spacy_hocrf.learning.heldout import HELD_OUT_TO_LEARN, held_out_sides
from spacy_hocrf.rules.compiled import CompiledRules
from spacy_hocrf.rules.templates import DEAREST
from spacy_hocrf.rules.violations import starts_for
from spacy_hocrf.saving.persistence import Section
from spacy_hocrf.warnings import Warnings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spacy_hocrf.annotation.documents import Document
    from spacy_hocrf.learning.learning import Learner
    from spacy_hocrf.rules.constraints import Constraints

__all__ = ["TextSets", "learn_prices", "least_cost", "prices_section", "saved_prices"]

PRIOR_SIGMA = 1.0
"""Standard deviation of the prices' Gaussian prior, nats."""
TOLERANCES = (1e-3, 0.1, 0.4)
"""Maximum errors of the probabilities of sets of broken rules; the larger ones are for longer texts."""
MAX_ROUNDS = 50


class _Header(Struct, forbid_unknown_fields=True):
    """The saved header, beside the array of prices."""

    rules: list[str]  # names


class TextSets(NamedTuple):
    """Sets of rules that the readings of one text may break, and those that its annotation breaks."""

    broken: NDArray[np.bool_]  # [m, n] sets of rules
    probability: NDArray[np.float64]  # [m] of the readings that break exactly these, without prices
    annotated: NDArray[np.bool_]  # [n] does the annotation break each rule?


def learn_prices(learner: Learner, constraints: Constraints, name: str) -> dict[str, float]:
    """Learn the prices of all rules with price "learnt", by rule name.

    learner (Learner): has its corpus; not changed. name (str): name of the component, for the log.
    RETURNS (dict[str, float]): nats; {} if there are too few completely annotated documents.
    """
    texts, rules = list[TextSets](), None
    lost = 0
    sides = held_out_sides(learner.corpus, HELD_OUT_TO_LEARN)
    for model, documents in held_out_models(learner, sides):
        carried = model.structure.index.carried
        rules = CompiledRules(constraints, model.scheme, model.plain, carried)
        for sets in _sets_of(model, rules, documents):
            if sets is None:
                lost += 1
            else:
                texts.append(sets)
    if lost:
        text = Warnings.W050.format(name=name, found=lost, all=lost + len(texts))
        warnings.warn(text, stacklevel=2)
    if rules is None or not texts:
        logger.info("%s: no rule prices learnt: too few usable texts", name)
        return {}
    prices = least_cost(texts, PRIOR_SIGMA)
    names = [rule.name for rule, learns in zip(rules.rules, rules.learnable) if learns]
    summary = "; ".join(f"{rule}: {price:.2f}" for rule, price in zip(names, prices) if price)
    logger.info(
        "%s: rule prices learnt from %d held-out texts: %s",
        name,
        len(texts),
        summary or "all 0",
    )
    return dict(zip(names, prices.tolist()))


def least_cost(texts: Sequence[TextSets], sigma: float) -> NDArray[np.float64]:
    """Return the prices, all at least 0, that minimise Σ -log p_w(annotation) + w · w / (2 sigma²); float64
    [n].

    texts (Sequence[TextSets]): one or more, for the same n rules.
    """
    n = len(texts[0].annotated)
    free, prices = np.ones(n, dtype=bool), np.zeros(n)
    for _ in range(MAX_ROUNDS):
        optimiser = LBFGS(prices[free])
        while optimiser.status == "running":
            prices[free] = optimiser.x
            value, gradient = _objective(texts, prices, sigma)
            optimiser.tell(value, gradient[free])
        prices[free] = optimiser.best_x
        below = prices < 0
        if below.any():
            free &= ~below
            prices[below] = 0.0
            continue
        released = ~free & (_objective(texts, prices, sigma)[1] < -1e-6)
        if not released.any():
            break
        free |= released
    return np.maximum(prices, 0.0)


def prices_section(prices: Mapping[str, float]) -> Section:
    """Return the section that saves learnt prices."""
    values = np.array(list(prices.values()), dtype=np.float64)
    return Section(to_builtins(_Header(list(prices))), {"prices": values})


def saved_prices(section: Section) -> dict[str, float]:
    """Return the saved prices. RAISES (ValueError): H039 or H134 for an invalid section."""
    names = section.read("rules", _Header, ["prices"]).rules
    prices = section.arrays["prices"]
    need(prices.shape == (len(names),), "rules.prices")
    need(((prices >= 0) & (prices <= DEAREST)).all(), "rules.prices")
    return dict(zip(names, prices.tolist()))


def _objective(
    texts: Sequence[TextSets], prices: NDArray[np.float64], sigma: float
) -> tuple[float, NDArray[np.float64]]:
    """Return value and gradient of the loss."""
    value = float(prices @ prices) / (2 * sigma**2)
    gradient = prices / sigma**2
    for broken, probability, annotated in texts:
        paid = probability * np.exp(-(broken @ prices))
        total = paid.sum()
        value += float(np.log(total) + annotated @ prices)
        gradient += annotated - (paid / total) @ broken
    return value, gradient


def _sets_of(
    model: Learner, rules: CompiledRules, documents: Sequence[Document]
) -> Iterator[TextSets | None]:
    """Yield, for each text that a model has not seen, the sets of rules that its readings break together;
    None if its annotation breaks a hard rule, or too many readings would have to be enumerated.
    """
    exact, learnt = ExpectedF(), rules.learnable
    for batch, tokens in model.corpus.batches(documents):
        allowed = model.structure.allowed(tokens).copy()
        rules.successions.clear_edges(allowed, tokens)
        potentials = model.potentials(tokens, allowed)
        starts = starts_for(rules.rules, len(tokens))
        lattice = potentials, rules.automaton
        log_z = exact.candidates(*lattice, rules.scheme, 1.0, starts=starts).log_partition
        violations = np.ones((len(batch), len(rules.rules)))
        ruled = Ruled(*lattice, rules.tables, starts, log_z, violations, TOLERANCES)
        with exact.pool.lend(rules.automaton) as buffers:
            for i, document in enumerate(batch):
                spans = sorted(model.as_modelled(document.annotation).spans)
                broken = rules.broken_of(spans, len(document))
                sets = broken_sets(ruled, i, buffers=buffers)
                if sets is None or (broken & np.append(rules.hard, True)).any():
                    yield None
                else:
                    yield TextSets(sets.broken[:, learnt], sets.probability, broken[:-1][learnt])
