"""Taggers that differ in their order alone: made, trained to the optimum and timed, and scored. No
Doc is changed.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab

NAME = "hocrf_tagger"


@dataclass(frozen=True)
class Training:
    """What it took to train a tagger. Times are CPU times of the process."""

    features: int
    patterns: int  # label patterns, single labels included
    states: int  # forward states
    objective: float  # at the end: negative log-likelihood and prior
    iterations: int  # of L-BFGS
    evaluations: int  # of the objective and its gradient
    seconds: float  # reading the Docs, learning the features and all iterations
    iteration_ms: float  # of one iteration, without what comes before the first


@dataclass(frozen=True)
class Score:
    """How many tags are right, and in how many Docs all of them."""

    tokens: int
    right_tokens: int
    docs: int
    right_docs: int

    @property
    def accuracy(self) -> float:
        """Per cent of the tokens."""
        return 100 * self.right_tokens / self.tokens

    @property
    def doc_accuracy(self) -> float:
        """Per cent of the Docs."""
        return 100 * self.right_docs / self.docs


def make_tagger(
    vocab: Vocab,
    observations: Mapping[str, Mapping[str, Any]],
    orders: Iterable[int] | None,
    *,
    sigma: float,
    patterns: object = "counts",
    **trainer: Any,
) -> Language:
    """A pipeline of one untrained tagger, a CRF with one thread.

    observations (Mapping[str, Mapping[str, Any]]): blocks of templates by name.
    orders (Optional[Iterable[int]]): of the label patterns that are features without observation; 0
        for the labels' bias, None for all orders from 1 on, which is no length at all.
    sigma (float): standard deviation of the prior.
    patterns (object): which label patterns there are, as the setting of the model.
    trainer (Any): more settings of the trainer.
    """
    alone = [None] if orders is None else list(orders)
    blocks = {
        **observations,
        **{f"labels{k}": {"@misc": "spacy-hocrf.Transition.v1", "order": k} for k in alone},
    }
    model = {
        "@architectures": "spacy-hocrf.HighOrderCRF.v1",
        "encoding": "tags",
        "order": None if orders is None else max(alone, default=0),
        "patterns": patterns,
        "features": {"@misc": "spacy-hocrf.Features.v1", "basics": False, "*": blocks},
    }
    nlp = spacy.blank(vocab.lang or "xx", vocab=vocab)
    settings = {"@misc": "spacy-hocrf.LBFGS.v1", "sigma": sigma, "threads": 1, **trainer}
    nlp.add_pipe(NAME, config={"model": model, "trainer": settings})
    return nlp


def train(nlp: Language, docs: Sequence[Doc]) -> Training:
    """Train on tagged Docs until the optimiser stops."""
    pipe = nlp.get_pipe(NAME)
    begun = time.process_time()
    examples = [Example(untagged(doc), doc) for doc in docs]
    optimizer = nlp.initialize(lambda: examples)
    nlp.update(examples[:1], sgd=False)  # the first evaluation, which is no iteration
    ready = time.process_time()
    while pipe.run.running:
        nlp.update(examples[:1], sgd=optimizer)
    end = time.process_time()
    return Training(
        features=len(pipe.structure.index),
        patterns=len(pipe.structure.patterns),
        states=len(pipe.automaton.states),
        objective=pipe.run.loss,
        iterations=pipe.run.iterations,
        evaluations=pipe.run.evaluations,
        seconds=end - begun,
        iteration_ms=1000 * (end - ready) / pipe.run.iterations,
    )


def score(nlp: Language, docs: Sequence[Doc]) -> Score:
    """Compare the best tags with the Docs' own."""
    return compare((gold_tags(doc) for doc in docs), tagged_by(nlp, docs))


def tagged_by(nlp: Language, docs: Sequence[Doc]) -> list[list[str]]:
    """The best tags of Docs, which stay as they are."""
    predictions = nlp.get_pipe(NAME).predict([untagged(doc) for doc in docs])
    return [[p.names[y] for y in p.label] for p in predictions]


def compare(gold: Iterable[Sequence[str]], predicted: Iterable[Sequence[str]]) -> Score:
    """Count the tags that are equal, and the Docs whose tags all are."""
    counts = np.zeros(4, dtype=int)
    for expected, found in zip(gold, predicted, strict=True):
        right = sum(a == b for a, b in zip(expected, found, strict=True))
        counts += (len(expected), right, 1, right == len(expected))
    return Score(*counts.tolist())


def gold_tags(doc: Doc) -> list[str]:
    """A Doc's tags."""
    return [token.tag_ for token in doc]


def untagged(doc: Doc) -> Doc:
    """The same tokens with the same attributes of ours and the same tensor, without tags."""
    bare = Doc(doc.vocab, words=[token.text for token in doc], user_data=doc.user_data)
    bare.tensor = doc.tensor
    return bare
