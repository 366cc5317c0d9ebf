"""Estimate how good a model is during annotation, on texts that were chosen at random.

These texts are split into folds. Each fold is read by models trained on all other texts: on the first quarter
of them, the first half, and all. Only texts chosen at random are held out, and a fold is a small part of all,
so that the last of these models is about as good as one trained on all texts. F1 has the interval of
`hocrf auto`, and the three sizes give the learning curve. The probabilities of whole texts, and whether these
are right, give the threshold as in `hocrf calibrate --accept`.
"""

from collections.abc import Callable, Iterator, Sequence
from math import ceil
from typing import NamedTuple

import numpy as np
from spacy.tokens import Doc
from spacy.training import Example

from spacy_hocrf.cli.accept import ACCEPT_NONE, WholeTexts, least_texts, threshold_of
from spacy_hocrf.cli.auto.estimates import SpanCounts, learning_curve, scores
from spacy_hocrf.cli.counts import is_complete
from spacy_hocrf.cli.pipelines import scorer_of
from spacy_hocrf.cli.shown import set_before
from spacy_hocrf.learning.heldout import FOLDS, divided
from spacy_hocrf.pipeline.component import SegmentationPipe

__all__ = ["Decided", "Estimate", "estimates"]

MIN_TEXTS = 8
"""Number of texts chosen at random below which there is no estimate."""
SIZES = (0.25, 0.5, 1.0)
"""Shares of the training texts."""
MORE = 50
"""Number of further texts for which F1 is extrapolated."""
LEVEL, CONFIDENCE = 0.9, 0.8
"""At least this share of the texts accepted unread is entirely right, with this probability."""


class Decided(NamedTuple):
    """A text that a person has annotated."""

    example: Example
    random: bool  # was it chosen at random?
    words: tuple[str, ...]  # texts with the same words are held out together
    teaches: bool = True  # is any part of it annotated?


class Estimate(NamedTuple):
    """Estimates for a model; None for those that cannot be made yet.

    f, low, high: F1 on new texts, from 0 to 1, and its 90 % interval.
    tested: number of held-out texts, chosen at random, on which it was measured.
    accepted: share of the other texts that could be accepted unread, so that nine of ten are right.
    more: F1 with 50 more texts. curve: pairs of number of texts and F1.
    """

    f: float | None = None
    low: float | None = None
    high: float | None = None
    tested: int = 0
    accepted: float | None = None
    more: float | None = None
    curve: tuple[tuple[int, float], ...] = ()


def estimates(
    train: Callable[..., SegmentationPipe],
    model: SegmentationPipe,
    decided: Sequence[Decided],
    left: Sequence[Doc],
    seed: int,
) -> Iterator[Estimate | None]:
    """Estimate by cross-validation how good a model is.

    train (Callable[[Sequence[Example], near=Optional[SegmentationPipe]], SegmentationPipe]): trains another
        model of the same kind, starting from the weights of `near` (`Models.train`).
    model (SegmentationPipe): the model trained on all annotated texts.
    decided (Sequence[Decided]): annotated texts, in the order of annotation.
    left (Sequence[Doc]): texts that are not annotated, or a sample.
    seed (int): seed of the folds.
    YIELDS (Optional[Estimate]): None after each fold, the estimate at the end.
    """
    scorer = scorer_of(model.target)
    tested = [
        text for text in decided if text.random and is_complete(scorer, text.example.reference)
    ]
    if len(tested) < MIN_TEXTS:
        yield Estimate(tested=len(tested))
        return
    gold = [scorer.items(text.example.reference) for text in tested]
    sizes = [ceil(share * len(decided)) for share in SIZES]
    counts = np.zeros((len(sizes), 3, len(tested)), dtype=np.int64)  # right, predicted, gold
    chance = np.zeros(len(tested))
    for held_out in divided([text.words for text in tested], FOLDS, seed):
        unseen, pipe = {tested[i].words for i in held_out}, None
        for size, count in zip(sizes, counts):
            others = (text for text in decided[:size] if text.words not in unseen)
            examples = [text.example for text in others if text.teaches]
            if not examples:
                continue  # without training texts, nothing is predicted
            pipe = train(examples, near=pipe)
            pipe.acceptance = ACCEPT_NONE  # makes `predict` compute probabilities of texts
            docs = [tested[i].example.predicted for i in held_out]
            for i, doc, prediction in zip(held_out, docs, pipe.predict(docs)):
                shown = {*prediction.spans, *set_before(pipe.target, doc)}
                spans = {(label, start, end) for start, end, label in shown}
                count[:, i] = len(spans & gold[i]), len(spans), len(gold[i])
                chance[i] = prediction.text_probability
            yield None
    counts[:, 2] = [len(items) for items in gold]
    of_sizes = [SpanCounts(*(column[:, None] for column in count)) for count in counts]
    score = scores(of_sizes[-1], 0.0, seed)[0]
    curve = learning_curve(sizes, of_sizes, sizes[-1], seed)
    yield Estimate(
        score.f,
        score.interval.low,
        score.interval.high,
        len(tested),
        _accepted(model, WholeTexts(chance, of_sizes[-1].whole, np.full(len(tested), "")), left),
        curve.at(sizes[-1] + MORE),
        tuple(zip(sizes, curve.f)),
    )


def _accepted(model: SegmentationPipe, texts: WholeTexts, left: Sequence[Doc]) -> float | None:
    """Share of the rest that could be accepted unread; None if there are too few texts, or none is left."""
    if len(texts.right) < least_texts(LEVEL, CONFIDENCE) or not left:
        return None
    try:
        threshold = threshold_of(texts, LEVEL, CONFIDENCE)
    except ValueError:  # too many of the surest are wrong
        return 0.0
    model.acceptance = ACCEPT_NONE
    accepted = [(text.text_probability or 0.0) >= threshold for text in model.predict(left)]
    return float(np.mean(accepted))
