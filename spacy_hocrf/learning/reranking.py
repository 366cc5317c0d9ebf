"""What readings look like that are right as a whole: the weights of `answers.whole_readings`, learnt from
texts that the model has not seen.

Of each text that is held back, the n most probable readings are found by a model of the others, and looked at
by counts of the others. Where one of them is right, y*, the weights are learnt from

    -Σ log (exp(w · ψ(y*)) / Σ_y exp(w · ψ(y))) + prior / 2 · |w' - w'_0|²,

w' being the weights of ψ scaled to unit variance, and w_0 those that leave the model's order as it is.
"""

from collections.abc import Iterable, Iterator, Sequence

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
from spacy_hocrf.types import Segments

__all__ = ["best_weights", "checked_reranker", "learn_reranker", "section_of"]

ENOUGH = 1_000
"""Texts that are held back, or as many of LONG tokens as `heldout` says."""
PRIOR = 3.0
WORDS = ("NORM", "LOWER", "ORTH")
"""What is looked at of words, if the features read it; else another attribute that they read."""

Floats = NDArray[np.float64]
Batch = tuple[WholeReadings, NDArray[np.uint64], NDArray[np.int64]]


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
    attribute = _attribute(learner.corpus.reads or ())
    looks, right, sizes = [np.zeros((0, LOOKS))], [np.zeros(0, dtype=bool)], list[int]()
    parts = held_back(learner.corpus, ENOUGH) if attribute else []
    for (learnt, _), (model, held) in zip(parts, held_out_models(learner, parts)):
        counts = ReadingCounts.of(len(model.scheme.labels), _annotated(model, learnt, attribute))
        for batch, gold in _found(model, held, decoder, attribute):
            looks.append(counts.looks(*batch))
            right.append(_are_right(batch[0], gold, model.scheme))
            sizes += np.bincount(batch[0].text, minlength=len(gold)).tolist()
    numbers, known = np.concatenate(looks), np.concatenate(right)
    if not known.any():
        why = "since too few texts are annotated completely" if not parts else "since none is right"
        logger.info("%s: readings are not looked at as wholes, %s", name, why)
        return None
    weights = best_weights(numbers, known, offsets_of(sizes), PRIOR)
    before, after = (
        _share_right(each, known, sizes) for each in (numbers[:, 0], numbers @ weights)
    )
    logger.info(
        "%s: how right readings look, learnt from %d texts that the model had not seen; right as a "
        "whole there: %.1f %% (as probable ones: %.1f %%)",
        name,
        len(sizes),
        100 * after,
        100 * before,
    )
    documents = [document for document in learner.corpus.documents if document.complete]
    counts = ReadingCounts.of(len(learner.scheme.labels), _annotated(learner, documents, attribute))
    return Reranker(counts, weights, attribute, len(sizes))


def best_weights(
    looks: Floats, right: NDArray[np.bool_], offsets: NDArray[np.int64], prior: float
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


def _attribute(reads: Iterable[str]) -> str:
    """What is looked at of words; "" if the features read no attribute of them."""
    known = sorted(each for each in reads if ":" not in each and each not in NUMBERS)
    return next((name for name in (*WORDS, *known) if name in known), "")


def _annotated(model: Learner, documents: Sequence[Document], attribute: str) -> Iterator[Batch]:
    """What is annotated, as the only reading of each document, in batches."""
    number = {label: y for y, label in enumerate(model.scheme.labels)}
    for batch in _batches(documents):
        tokens = model.corpus.batch(batch)
        gold = [model.as_modelled(document.annotation).spans for document in batch]
        rows = [
            (start, end, number[label]) for spans in gold for start, end, label in sorted(spans)
        ]
        start, end, label = np.array(rows, dtype=np.int32).reshape(-1, 3).T
        spans = Segments(offsets_of([len(each) for each in gold]), start, end, label)
        readings = WholeReadings(spans, np.arange(len(batch)), np.zeros(len(batch)))
        yield readings, tokens.column(attribute), _places(tokens.offsets)


def _found(
    model: Learner, documents: Sequence[Document], decoder: Reranked, attribute: str
) -> Iterator[tuple[Batch, list[set[tuple[int, int, str]]]]]:
    """The most probable readings of documents that a model has not seen, and what is annotated."""
    weights, scheme = model.snapshot().placed, model.scheme
    for batch in _batches(documents):
        tokens = model.corpus.batch(batch)
        compiled = model.structure.compile(model.structure.observe(tokens), model.allowed(tokens))
        potentials = compiled.potentials(weights)
        with decoder.pool.lend(model.automaton) as buffers:
            total = log_partition(potentials, model.automaton, buffers=buffers)
            found = best_segmentations(potentials, model.automaton, decoder.n, buffers=buffers)
        text = np.repeat(np.arange(len(batch)), np.diff(found.offsets))
        readings = WholeReadings(scheme.spans(found.segments), text, found.scores - total[text])
        gold = [{*model.as_modelled(document.annotation).spans} for document in batch]
        yield (readings, tokens.column(attribute), _places(tokens.offsets)), gold


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


def _share_right(scores: Floats, right: NDArray[np.bool_], sizes: Sequence[int]) -> float:
    """Share of texts whose reading of the highest score is right."""
    bounds = offsets_of(sizes)[:-1]
    best = [i + int(scores[i : i + n].argmax()) for i, n in zip(bounds.tolist(), sizes)]
    return float(right[best].mean())
