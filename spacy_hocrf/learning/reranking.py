"""Learns to rerank readings: the weights of the features in `answers.whole_readings`, from held-out texts.

For each held-out text, the n most probable readings are found by a model trained on other texts, and their
features are computed from counts of these texts. Where one of them is right, y*, the weights minimise

    -Σ log (exp(w · ψ(y*)) / Σ_y exp(w · ψ(y))) + prior / 2 · |w' - w'_0|²,

where w' are the weights of ψ scaled to unit variance, and w_0 those that keep the model's order.
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
from spacy_hocrf.answers.whole_readings import N_FEATURES, ReadingCounts, Reranker, WholeReadings
from spacy_hocrf.arrays import offsets_of
from spacy_hocrf.engine.alternatives import best_segmentations
from spacy_hocrf.engine.forward_backward import log_partition
from spacy_hocrf.engine.lbfgs import LBFGS
from spacy_hocrf.features.saved import need
from spacy_hocrf.features.tokens import NUMBERS
from spacy_hocrf.learning.cost import held_out_models
from spacy_hocrf.learning.heldout import held_out_sides
from spacy_hocrf.learning.learning import Learner
from spacy_hocrf.model.scheme import LabelScheme
from spacy_hocrf.saving.persistence import Section
from spacy_hocrf.saving.schema import Amount
from spacy_hocrf.types import Matrix, Vector

__all__ = [
    "HeldOutReadings",
    "best_weights",
    "checked_reranker",
    "held_out_readings",
    "learn_reranker",
    "ranking_weights",
    "section_of",
]

HELD_OUT_TO_LEARN = 1_000
"""Number of held-out texts, or that many times TOKENS_AS_DOCUMENT tokens, see `heldout`."""
PRIOR = 3.0
ORDER_OF_MODEL = np.eye(1, N_FEATURES)[0]
"""Weights that keep the model's order: the most probable reading comes first."""
WORD_ATTRIBUTES = ("NORM", "LOWER", "ORTH")
"""Preferred attributes that stand for a word, if the features read one; else another that they read."""

Batch = tuple[WholeReadings, NDArray[np.uint64], NDArray[np.int64]]


class HeldOutReadings(NamedTuple):
    """The n most probable readings of D held-out documents, m in all."""

    readings: WholeReadings  # their labels are indices into that model's labels
    features: Matrix  # [m, N_FEATURES]
    right: NDArray[np.bool_]  # [m] does it equal the annotation?
    offsets: NDArray[np.int64]  # [D + 1] first reading of each document

    def best(self, weights: Vector) -> NDArray[np.int64]:
        """Return the best reading of each document, int64 [D], by weights, float64 [N_FEATURES]."""
        scores, bounds = self.features @ weights, pairwise(self.offsets.tolist())
        return np.array([a + int(scores[a:b].argmax()) for a, b in bounds], dtype=np.int64)


class _Header(Struct, forbid_unknown_fields=True):
    """The saved header, beside the arrays."""

    attribute: str
    texts: Amount  # number of texts that the weights were learnt from
    counted: Amount  # number of texts that were counted


def learn_reranker(learner: Learner, decoder: Reranked, name: str) -> Reranker | None:
    """Learn which readings look right as a whole.

    learner (Learner): has its corpus; not changed. name (str): name of the component, for the log.
    RETURNS (Optional[Reranker]): None if there are too few completely annotated documents.
    """
    attribute = _attribute(learner)
    sides = held_out_sides(learner.corpus, HELD_OUT_TO_LEARN) if attribute else []
    models = held_out_models(learner, sides)
    readings = [
        held_out_readings(model, learnt, held_out, decoder)
        for (learnt, _), (model, held_out) in zip(sides, models)
    ]
    if not any(part.right.any() for part in readings):
        why = "since too few texts are annotated completely" if not sides else "since none is right"
        logger.info("%s: readings are not reranked, %s", name, why)
        return None
    weights = ranking_weights(readings)
    before, after = (
        100 * float(np.mean(np.concatenate([part.right[part.best(by)] for part in readings])))
        for by in (ORDER_OF_MODEL, weights)
    )
    texts = sum(len(part.offsets) - 1 for part in readings)
    logger.info(
        "%s: reranker learnt from %d held-out texts; completely right there: "
        "%.1f %% (most probable readings: %.1f %%)",
        name,
        texts,
        after,
        before,
    )
    documents = [document for document in learner.corpus.documents if document.complete]
    counts = ReadingCounts.of(len(learner.scheme.labels), _annotated(learner, documents, attribute))
    return Reranker(counts, weights, attribute, texts)


def held_out_readings(
    model: Learner, learnt: Sequence[Document], held_out: Sequence[Document], decoder: Reranked
) -> HeldOutReadings:
    """Return the most probable readings of held-out documents, with their features.

    learnt (Sequence[Document]): documents that the model has seen.
    held_out (Sequence[Document]): held-out documents, completely annotated.
    """
    attribute, complete = _attribute(model), [document for document in learnt if document.complete]
    counts = ReadingCounts.of(len(model.scheme.labels), _annotated(model, complete, attribute))
    scheme = model.scheme
    parts, features, right = list[WholeReadings](), list[Matrix](), list[NDArray[np.bool_]]()
    sizes, read = list[int](), 0
    for batch, tokens in model.corpus.batches(held_out):
        potentials = model.potentials(tokens)
        with decoder.pool.lend(model.automaton) as buffers:
            total = log_partition(potentials, model.automaton, buffers=buffers)
            best = best_segmentations(potentials, model.automaton, decoder.n, buffers=buffers)
        text = np.repeat(np.arange(len(batch)), np.diff(best.offsets))
        readings = WholeReadings(scheme.spans(best.segments), text, best.scores - total[text])
        gold = [{*model.as_modelled(document.annotation).spans} for document in batch]
        features.append(
            counts.features(readings, tokens.column(attribute), _places(tokens.offsets))
        )
        right.append(_are_right(readings, gold, scheme))
        sizes += np.diff(best.offsets).tolist()
        parts.append(readings._replace(text=text + read))
        read += len(batch)
    columns = WholeReadings.joined(parts), np.concatenate(features), np.concatenate(right)
    return HeldOutReadings(*columns, offsets_of(sizes))


def ranking_weights(parts: Sequence[HeldOutReadings]) -> Vector:
    """Learn the weights that rank right readings first, float64 [N_FEATURES], from one or more parts."""
    features = np.concatenate([part.features for part in parts])
    right = np.concatenate([part.right for part in parts])
    return best_weights(
        features, right, offsets_of(np.concatenate([np.diff(p.offsets) for p in parts]))
    )


def best_weights(
    features: Matrix, right: NDArray[np.bool_], offsets: NDArray[np.int64], prior: float = PRIOR
) -> Vector:
    """Return the weights with the smallest loss, float64 [K].

    features (float64 [m, K]): ψ of all readings; the first column is log P.
    right (bool [m]): is it the right reading of its text?
    offsets (int64 [D + 1]): first reading of each of D texts; at least one text has a right reading.
    """
    # the readings of texts that have a right one, as differences from the first one of their text
    sizes = np.diff(offsets)
    has_right = np.logical_or.reduceat(right, offsets[:-1]) if len(sizes) else right
    chosen = np.repeat(has_right, sizes)
    sizes, right = sizes[has_right], right[chosen]
    first = offsets_of(sizes)[:-1]
    differences = features[chosen] - np.repeat(features[chosen][first], sizes, axis=0)
    scale = differences.std(axis=0)
    scale[scale < np.finfo(np.float64).eps] = 1.0
    differences /= scale
    start = np.zeros(features.shape[1])
    start[0] = scale[0]
    optimiser = LBFGS(start)
    while optimiser.status == "running":
        scores, change = differences @ optimiser.x, optimiser.x - start
        total = np.logaddexp.reduceat(scores, first)
        chances = np.exp(scores - np.repeat(total, sizes))
        loss = total.sum() - scores[right].sum() + prior / 2 * change @ change
        optimiser.tell(float(loss), (chances - right) @ differences + prior * change)
    return np.asarray(optimiser.best_x / scale)


def section_of(reranker: Reranker) -> Section:
    """Return the section that saves a reranker."""
    counts = reranker.counts
    header = _Header(reranker.attribute, reranker.texts, counts.texts)
    arrays = {"weights": reranker.weights, "labels": counts.labels}
    return Section(to_builtins(header), {**arrays, "keys": counts.keys, "numbers": counts.numbers})


def checked_reranker(section: Section) -> Reranker:
    """Return the saved reranker. RAISES (ValueError): H039 or H134 for an invalid section."""
    header = section.read("reranker", _Header, ["weights", "labels", "keys", "numbers"])
    weights, labels, keys, numbers = (
        section.arrays[name] for name in ("weights", "labels", "keys", "numbers")
    )
    need(weights.dtype == np.float64 and weights.shape == (N_FEATURES,), "reranker.weights")
    need(np.isfinite(weights).all(), "reranker.weights")
    need(labels.dtype == np.int64 and labels.ndim == 1, "reranker.labels")
    need((labels >= 0).all(), "reranker.labels")
    need(keys.dtype == np.uint64 and keys.ndim == 1 and len(keys) > 0, "reranker.keys")
    need((keys[1:] > keys[:-1]).all(), "reranker.keys")
    need(numbers.dtype == np.int64 and numbers.shape == keys.shape, "reranker.numbers")
    need((numbers > 0).all(), "reranker.numbers")
    counts = ReadingCounts(header.counted, labels, keys, numbers)
    return Reranker(counts, weights, header.attribute, header.texts)


def _attribute(learner: Learner) -> str:
    """Return the token attribute that stands for a word; "" if the features read none."""
    reads = learner.corpus.reads or ()
    attributes = sorted(name for name in reads if ":" not in name and name not in NUMBERS)
    return next((name for name in (*WORD_ATTRIBUTES, *attributes) if name in attributes), "")


def _annotated(model: Learner, documents: Sequence[Document], attribute: str) -> Iterator[Batch]:
    """Yield the annotation as the only reading of each document, in batches."""
    for batch, tokens in model.corpus.batches(documents):
        gold = [sorted(model.as_modelled(document.annotation).spans) for document in batch]
        spans = model.scheme.numbered(gold)
        readings = WholeReadings(spans, np.arange(len(batch)), np.zeros(len(batch)))
        yield readings, tokens.column(attribute), _places(tokens.offsets)


def _places(offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.stack([offsets[:-1], offsets[1:]], axis=1)


def _are_right(
    readings: WholeReadings, gold: Sequence[set[tuple[int, int, str]]], scheme: LabelScheme
) -> NDArray[np.bool_]:
    """Does each reading equal the annotation?"""
    named = scheme.named(readings.spans)
    pairs = zip(named, readings.text.tolist())
    return np.array([{*spans} == gold[text] for spans, text in pairs], dtype=bool)
