"""Bars 9 and 10: tokens per second, of segmentation alone and of whole pipelines."""

from collections.abc import Callable, Sequence
from functools import partial

import models
import numpy as np
import peers
import spacy
from checks import NotTheSame
from compare import CONLL, Peer, Setting, fresh_docs
from corpora import Sentence
from measure import Work, take_turns
from results import Outcome, Row, speed
from spacy.language import Language
from spacy.tokens import Doc, Span


def bar_9(setting: Setting) -> Outcome:
    """Segmentations from token attributes, CoNLL-2000's test part; when timed, longer patterns have
    small random weights.
    """
    train, test = setting.corpora.chunks(), setting.corpora.chunks("test")
    nlps = {order: models.crf(train, order) for order in (1, 3)}
    peer = Peer(train, nlps[1], setting.peer_iterations)
    pipes = {order: models.component(nlp) for order, nlp in nlps.items()}
    docs = {order: fresh_docs(nlp, test) for order, nlp in nlps.items()}
    strings = models.observation_strings(pipes[1], docs[1])
    expected = [peer.tagger.tag(sentence) for sentence in strings]
    checks = [peer.check]
    for order, pipe in pipes.items():
        weights = peer.weights(nlps[order])
        models.use_weights(pipe, weights)
        checks.append(f"order {order}: {_agreement(models.segment(pipe, docs[order]), expected)}")
        longer = pipe.structure.index.feature_order > 1
        weights[longer] = np.random.default_rng(0).normal(0.0, 0.1, longer.sum())
        models.use_weights(pipe, weights)
    tokens = sum(map(len, strings))
    sides: dict[str, Callable[[], Work]] = {
        "CRFsuite": lambda: partial(_tag_all, peer.tagger, strings)
    }
    for order, pipe in pipes.items():
        sides[f"order {order}"] = partial(_segmenting, pipe, docs[order], tokens)
    seconds = take_turns(sides, setting.rounds)
    rows = []
    for order, (must, aim) in {1: (1.0, 2.0), 3: (0.7, 1.5)}.items():
        ratio = seconds["CRFsuite"] / seconds[f"order {order}"]
        speeds = (speed(seconds[f"order {order}"]), speed(seconds["CRFsuite"]))
        rows.append(
            Row(
                f"tagging, order {order}, {CONLL}",
                *speeds,
                ratio,
                must=must,
                aim=aim,
                at_least=True,
            )
        )
    return Outcome(rows, checks=checks)


def bar_10(setting: Setting) -> Outcome:
    """`nlp.pipe` over tokenised Docs, beside spaCy's `ner`, a pipeline that only sets the same
    spans, and an empty one.
    """
    train, test = setting.corpora.chunks(), setting.corpora.chunks("test")[:1_000]
    nlp = models.chunker(train, 1)
    training = models.Training(nlp)
    training.step(setting.peer_iterations)
    models.use_weights(models.component(nlp), training.run.weights)
    ner = peers.train_ner(train, setting.ner_steps)
    spans = [
        [(ent.start, ent.end, ent.label_) for ent in doc.ents]
        for doc in nlp.pipe(fresh_docs(nlp, test))
    ]
    setter, empty = spacy.blank("en"), spacy.blank("en")
    setter.add_pipe("benchmark_set_spans")
    sides: dict[str, Callable[[], Work]] = {
        name: partial(_piping, pipeline, test, spans)
        for name, pipeline in (("ner", ner), ("ours", nlp), ("set", setter), ("empty", empty))
    }
    seconds = take_turns(sides, setting.rounds)
    speeds = (speed(seconds["ours"]), speed(seconds["ner"]))
    setting_share = seconds["set"] / seconds["ours"]
    return Outcome(
        [
            Row(
                f"nlp.pipe, order 1, {CONLL}",
                *speeds,
                seconds["ner"] / seconds["ours"],
                must=5.0,
                aim=15.0,
                at_least=True,
            ),
            Row(
                "of that, spaCy's own: nlp.pipe with a component that sets the same spans",
                speed(seconds["set"]),
                "",
                setting_share,
            ),
            Row(
                "of that, nlp.pipe without any component",
                speed(seconds["empty"]),
                "",
                seconds["empty"] / seconds["ours"],
            ),
        ],
        checks=[f"{sum(map(len, spans)):,} spans in {len(spans):,} Docs"],
    )


def _agreement(predictions: Sequence, expected: Sequence[Sequence[str]]) -> str:
    """RAISES (NotTheSame): if more than one tag in ten thousand differs; ours are weights in
    float32, so ties may.
    """
    labels = [label for prediction in predictions for _, _, label in prediction.spans]
    flat = [label for sentence in expected for label in sentence]
    same = sum(a == b for a, b in zip(labels, flat))
    if len(labels) != len(flat) or same < 0.9999 * len(flat):
        raise NotTheSame(f"{same} of {len(flat)} tags are those of CRFsuite")
    return f"{same:,} of {len(flat):,} tags are those of CRFsuite with the same weights"


def _tag_all(tagger: object, strings: Sequence[Sequence[Sequence[str]]]) -> int:
    return sum(len(tagger.tag(sentence)) for sentence in strings)


def _segmenting(pipe: object, docs: Sequence[Doc], tokens: int) -> Work:
    def work() -> int:
        models.segment(pipe, docs)
        return tokens

    return work


def _piping(
    nlp: Language, sentences: Sequence[Sentence], spans: Sequence[Sequence[tuple[int, int, str]]]
) -> Work:
    """A run of a pipeline over new Docs; `spans` are what benchmark_set_spans sets."""
    docs = fresh_docs(nlp, sentences)
    for doc, doc_spans in zip(docs, spans):
        doc.user_data["benchmark"] = doc_spans
    return lambda: sum(len(doc) for doc in nlp.pipe(docs))


@Language.component("benchmark_set_spans")
def _set_spans(doc: Doc) -> Doc:
    doc.set_ents([Span(doc, start, end, label) for start, end, label in doc.user_data["benchmark"]])
    return doc
