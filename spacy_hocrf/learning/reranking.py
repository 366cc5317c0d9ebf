"""What readings look like that are right as a whole: the weights of `answers.whole_readings`, learnt from
texts that the model has not seen.

Of each text that is held back, the n most probable readings are found by a model of the others, and looked at
by counts of the others. Where one of them is right, y*, the weights are learnt from

    -Σ log (exp(w · ψ(y*)) / Σ_y exp(w · ψ(y))) + prior / 2 · |w' - w'_0|²,

w' being the weights of ψ scaled to unit variance, and w_0 those that leave the model's order as it is.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from msgspec import Struct, to_builtins
from numpy.typing import NDArray
from spacy.util import logger

from spacy_hocrf.annotation.documents import Document
from spacy_hocrf.answers.decoders import Reranked
from spacy_hocrf.answers.whole_readings import LOOKS, ReadingCounts, Reranker, WholeReadings
from spacy_hocrf.arrays import offsets_of, stretches
from spacy_hocrf.engine.alternatives import best_segmentations
from spacy_hocrf.engine.forward_backward import log_partition
from spacy_hocrf.engine.lbfgs import LBFGS
from spacy_hocrf.errors import Errors
from spacy_hocrf.features.tokens import NUMBERS
from spacy_hocrf.learning.cost import held_out_models
from spacy_hocrf.learning.heldout import held_back
from spacy_hocrf.learning.learning import Learner
from spacy_hocrf.model.scheme import LabelScheme
from spacy_hocrf.model.structure import BATCH_TOKENS
from spacy_hocrf.saving.persistence import Section
from spacy_hocrf.saving.schema import Amount

__all__ = [
    "HeldOutReadings",
    "best_weights",
    "checked_reranker",
    "held_out_readings",
    "learn_reranker",
    "section_of",
    "weights_of",
]

ENOUGH = 1_000
"""Texts that are held back, or as many of LONG tokens as `heldout` says."""
PRIOR = 3.0
ORDER_OF_MODEL = np.eye(1, LOOKS)[0]
"""Weights by which the most probable reading looks best."""
WORDS = ("NORM", "LOWER", "ORTH")
"""What is looked at of words, if the features read it; else another attribute that they read."""

Floats = NDArray[np.float64]
Batch = tuple[WholeReadings, NDArray[np.uint64], NDArray[np.int64]]


class HeldOutReadings(NamedTuple):
    """The n most probable readings of D documents that a model has not seen, m in all."""

    readings: WholeReadings  # with places in the labels of that model
    looks: Floats  # [m, LOOKS]
    right: NDArray[np.bool_]  # [m] is it what is annotated?
    offsets: NDArray[np.int64]  # [D + 1] first reading of each document

    def best(self, weights: Floats) -> NDArray[np.int64]:
        """Which reading of each document looks best, int64 [D], by weights, float64 [LOOKS]."""
        scores, bounds = self.looks @ weights, pairwise(self.offsets.tolist())
        return np.array([a + int(scores[a:b].argmax()) for a, b in bounds], dtype=np.int64)


class _Header(Struct, forbid_unknown_fields=True):
    """What is saved beside the arrays."""

    attribute: str
    texts: Amount  # that the weights were learnt from
    counted: Amount  # texts


def learn_reranker(learner: Learner, decoder: Reranked, name: str) -> Reranker | None:
    """Learn what readings look like that are right as a whole.

    learner (Learner): knows its corpus; it is left as it is. name (str): of the component, for the log.
    RETURNS (Optional[Reranker]): None if there are too few completely annotated documents.
    """
    attribute = _attribute(learner)
    parts = held_back(learner.corpus, ENOUGH) if attribute else []
    models = held_out_models(learner, parts)
    found = [
        held_out_readings(model, learnt, held, decoder)
        for (learnt, _), (model, held) in zip(parts, models)
    ]
    if not any(part.right.any() for part in found):
        why = "since too few texts are annotated completely" if not parts else "since none is right"
        logger.info("%s: readings are not looked at as wholes, %s", name, why)
        return None
    weights = weights_of(found)
    before, after = (
        100 * float(np.mean(np.concatenate([part.right[part.best(by)] for part in found])))
        for by in (ORDER_OF_MODEL, weights)
    )
    texts = sum(len(part.offsets) - 1 for part in found)
    logger.info(
        "%s: how right readings look, learnt from %d texts that the model had not seen; right as a "
        "whole there: %.1f %% (as probable ones: %.1f %%)",
        name,
        texts,
        after,
        before,
    )
    documents = [document for document in learner.corpus.documents if document.complete]
    counts = ReadingCounts.of(len(learner.scheme.labels), _annotated(learner, documents, attribute))
    return Reranker(counts, weights, attribute, texts)


def held_out_readings(
    model: Learner, learnt: Sequence[Document], held: Sequence[Document], decoder: Reranked
) -> HeldOutReadings:
    """The most probable readings of documents that a model has not seen, and what they look like.

    learnt (Sequence[Document]): what it has seen.
    held (Sequence[Document]): completely annotated.
    """
    attribute, complete = _attribute(model), [each for each in learnt if each.complete]
    counts = ReadingCounts.of(len(model.scheme.labels), _annotated(model, complete, attribute))
    weights, scheme = model.snapshot().placed, model.scheme
    found, looks, right = list[WholeReadings](), list[Floats](), list[NDArray[np.bool_]]()
    sizes, read = list[int](), 0
    for batch in _batches(held):
        tokens = model.corpus.batch(batch)
        compiled = model.structure.compile(model.structure.observe(tokens), model.allowed(tokens))
        potentials = compiled.potentials(weights)
        with decoder.pool.lend(model.automaton) as buffers:
            total = log_partition(potentials, model.automaton, buffers=buffers)
            best = best_segmentations(potentials, model.automaton, decoder.n, buffers=buffers)
        text = np.repeat(np.arange(len(batch)), np.diff(best.offsets))
        readings = WholeReadings(scheme.spans(best.segments), text, best.scores - total[text])
        gold = [{*model.as_modelled(document.annotation).spans} for document in batch]
        looks.append(counts.looks(readings, tokens.column(attribute), _places(tokens.offsets)))
        right.append(_are_right(readings, gold, scheme))
        sizes += np.diff(best.offsets).tolist()
        found.append(readings._replace(text=text + read))
        read += len(batch)
    every = WholeReadings.joined(found), np.concatenate(looks), np.concatenate(right)
    return HeldOutReadings(*every, offsets_of(sizes))


def weights_of(parts: Sequence[HeldOutReadings]) -> Floats:
    """The weights by which right readings look best, float64 [LOOKS], learnt from at least one part."""
    looks = np.concatenate([part.looks for part in parts])
    right = np.concatenate([part.right for part in parts])
    return best_weights(
        looks, right, offsets_of(np.concatenate([np.diff(p.offsets) for p in parts]))
    )


def best_weights(
    looks: Floats, right: NDArray[np.bool_], offsets: NDArray[np.int64], prior: float = PRIOR
) -> Floats:
    """The weights of the smallest loss, float64 [K].

    looks (float64 [m, K]): ψ of all readings, the first of which is log P.
    right (bool [m]): is it the right reading of its text?
    offsets (int64 [D + 1]): first reading of each of D texts, in one of which at least one is right.
    """
    sizes = np.diff(offsets)
    taught = np.logical_or.reduceat(right, offsets[:-1]) if len(sizes) else right
    chosen = np.repeat(taught, sizes)
    sizes, right = sizes[taught], right[chosen]
    first = offsets_of(sizes)[:-1]
    apart = looks[chosen] - np.repeat(looks[chosen][first], sizes, axis=0)
    scale = apart.std(axis=0)
    scale[scale < np.finfo(np.float64).eps] = 1.0
    apart /= scale
    start = np.zeros(looks.shape[1])
    start[0] = scale[0]
    optimiser = LBFGS(start)
    while optimiser.status == "running":
        scores, away = apart @ optimiser.x, optimiser.x - start
        total = np.logaddexp.reduceat(scores, first)
        chances = np.exp(scores - np.repeat(total, sizes))
        loss = total.sum() - scores[right].sum() + prior / 2 * away @ away
        optimiser.tell(float(loss), (chances - right) @ apart + prior * away)
    return np.asarray(optimiser.best_x / scale)


def section_of(reranker: Reranker) -> Section:
    """What is saved of it."""
    counts = reranker.counts
    header = _Header(reranker.attribute, reranker.texts, counts.texts)
    arrays = {"weights": reranker.weights, "labels": counts.labels}
    return Section(to_builtins(header), {**arrays, "keys": counts.keys, "numbers": counts.numbers})


def checked_reranker(section: Section) -> Reranker:
    """What was saved. RAISES (ValueError): H039 or H134 for what is none."""
    header = section.read("reranker", _Header, ["weights", "labels", "keys", "numbers"])
    weights, labels, keys, numbers = (
        section.arrays[name] for name in ("weights", "labels", "keys", "numbers")
    )
    fits = {
        "weights": weights.dtype == np.float64 and weights.shape == (LOOKS,),
        "labels": labels.dtype == np.int64 and labels.ndim == 1 and bool((labels >= 0).all()),
        "keys": keys.dtype == np.uint64 and keys.ndim == 1 and len(keys) > 0,
        "numbers": numbers.dtype == np.int64 and numbers.shape == keys.shape,
    }
    fits["weights"] = fits["weights"] and bool(np.isfinite(weights).all())
    fits["keys"] = fits["keys"] and bool((keys[1:] > keys[:-1]).all())
    fits["numbers"] = fits["numbers"] and bool((numbers > 0).all())
    for name, fine in fits.items():
        if not fine:
            raise ValueError(Errors.H039.format(name=f"reranker.{name}"))
    counts = ReadingCounts(header.counted, labels, keys, numbers)
    return Reranker(counts, weights, header.attribute, header.texts)


def _attribute(learner: Learner) -> str:
    """What is looked at of words; "" if the features read no attribute of them."""
    reads = learner.corpus.reads or ()
    known = sorted(each for each in reads if ":" not in each and each not in NUMBERS)
    return next((name for name in (*WORDS, *known) if name in known), "")


def _annotated(model: Learner, documents: Sequence[Document], attribute: str) -> Iterator[Batch]:
    """What is annotated, as the only reading of each document, in batches."""
    for batch in _batches(documents):
        tokens = model.corpus.batch(batch)
        gold = [sorted(model.as_modelled(document.annotation).spans) for document in batch]
        spans = model.scheme.numbered(gold)
        readings = WholeReadings(spans, np.arange(len(batch)), np.zeros(len(batch)))
        yield readings, tokens.column(attribute), _places(tokens.offsets)


def _batches(documents: Sequence[Document]) -> Iterator[Sequence[Document]]:
    for first, last in stretches(map(len, documents), BATCH_TOKENS):
        yield documents[first:last]


def _places(offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.stack([offsets[:-1], offsets[1:]], axis=1)


def _are_right(
    readings: WholeReadings, gold: Sequence[set[tuple[int, int, str]]], scheme: LabelScheme
) -> NDArray[np.bool_]:
    """Is each reading what is annotated?"""
    named = scheme.named(readings.spans)
    pairs = zip(named, readings.text.tolist())
    return np.array([{*spans} == gold[text] for spans, text in pairs], dtype=bool)
