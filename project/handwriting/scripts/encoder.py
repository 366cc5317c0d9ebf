"""Does a high order still help beside an encoder? Two layers over the pixels, trained together with the
label patterns, and the pixels themselves, for each order: trained on fold 0, tested on the other nine.
"""

import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import spacy
import typer
from letters import PIXELS, register
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import minibatch, registry
from thinc.api import Adam, Model, Relu, chain, fix_random_seed, with_array
from thinc.types import Floats2d

sys.path.append(str(Path(__file__).parents[2]))
from common.report import CopyOption, show, table
from common.tagging import NAME, make_tagger, score, train, untagged
from common.training import read_docs

ORDERS = range(7)
WIDTH, EPOCHS, BATCH, DROPOUT, RATE = 128, 100, 16, 0.3, 0.003
HEADER = ("order", "pixels: letters right", "words right", "encoder: letters right", "words right")


def main(
    corpus: Annotated[Path, typer.Argument(help="The words (.spacy)", exists=True)],
    epochs: Annotated[int, typer.Option(help="Passes over the training words")] = EPOCHS,
    orders: Annotated[str, typer.Option(help="Orders, separated by commas")] = ",".join(
        map(str, ORDERS)
    ),
    output: CopyOption = None,
) -> None:
    """Train, test, and print a table."""
    register()
    docs = read_docs(corpus)
    training, test = (
        [d for d in docs if (d.user_data["fold"] == 0) == is_training]
        for is_training in (True, False)
    )
    show(
        table(
            rows(training, test, [int(order) for order in orders.split(",")], epochs), HEADER, "r"
        ),
        output,
    )


def rows(
    training: Sequence[Doc], test: Sequence[Doc], orders: Sequence[int], epochs: int
) -> Iterator[tuple[str, ...]]:
    """Lines of the table."""
    for order in orders:
        plain = make_tagger(training[0].vocab, PIXELS, range(order + 1), sigma=1.0)
        train(plain, training)
        neural = with_encoder(training[0].vocab, order)
        learn(neural, training, epochs)
        scores = (score(nlp, test) for nlp in (plain, neural))
        yield (
            str(order),
            *(f"{x:.2f}" for each in scores for x in (each.accuracy, each.doc_accuracy)),
        )


def with_encoder(vocab: Any, order: int) -> Language:
    """A tagger whose label patterns stand beside an encoder of the pixels; it is not trained."""
    blocks = {
        f"labels{k}": {"@misc": "spacy-hocrf.Transition.v1", "order": k} for k in range(order + 1)
    }
    model = {
        "@architectures": "spacy-hocrf.HighOrderCRF.v1",
        "encoding": "tags",
        "order": order,
        "features": {"@misc": "spacy-hocrf.Features.v1", "basics": False, "*": blocks},
        "tok2vec": {"@architectures": "handwriting.Pixels.v1", "width": WIDTH},
    }
    nlp = spacy.blank("xx", vocab=vocab)
    nlp.add_pipe(NAME, config={"model": model, "trainer": {"@misc": "spacy-hocrf.SGD.v1"}})
    return nlp


def learn(nlp: Language, docs: Sequence[Doc], epochs: int) -> None:
    """Train on tagged Docs, in an order that is the same each time."""
    fix_random_seed(0)
    examples, numbers = [Example(untagged(doc), doc) for doc in docs], random.Random(0)
    nlp.initialize(lambda: examples)
    optimizer = Adam(RATE)
    for _ in range(epochs):
        numbers.shuffle(examples)
        for batch in minibatch(examples, BATCH):
            nlp.update(batch, sgd=optimizer, drop=DROPOUT)


@registry.architectures("handwriting.Pixels.v1")
def make_encoder(width: int) -> Model[list[Doc], list[Floats2d]]:
    """Two layers of rectified units over the pixels of each letter."""
    layers = chain(Relu(width, dropout=DROPOUT), Relu(width, dropout=DROPOUT))
    return chain(Model("pixels", images), with_array(layers))


def images(model: Model[Any, Any], docs: Sequence[Doc], is_train: bool) -> tuple[list[Any], Any]:
    """The images of each Doc, float32 [T, 128]."""
    arrays = [
        np.array([token._.pixels for token in doc], dtype=np.float32).reshape(len(doc), -1)
        for doc in docs
    ]
    return arrays, lambda _: []


if __name__ == "__main__":
    typer.run(main)
