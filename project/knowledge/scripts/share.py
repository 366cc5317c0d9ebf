"""How much of a training step is the exact layer's, over a transformer of 6 layers and width 384 with
random parameters, on one thread.

The transformer's time is that of its forward and backward pass and its optimizer; the layer's, that of
everything else that the component does: features, recurrences, gradient, decoding none. Needs
spacy-curated-transformers 0.3, with torch, and numpy below 2.4.
"""

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import spacy
import typer
from encoders import ASSETS, BATCH, DROPOUT, SIZES, as_examples
from readers import Text
from spacy.language import Language
from spacy.util import minibatch, registry
from tasks import draw, load
from thinc.api import Model, fix_random_seed

sys.path.append(str(Path(__file__).parents[2]))
from common.report import show, table

WIDTH, LAYERS = 384, 6
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
HEADER = ("task", "order", "tokens", "steps", "ms a step", "of the layer", "share")


class Clock:
    """CPU time of a part of a program.

    seconds (float): so far.
    """

    def __init__(self) -> None:
        self.seconds = 0.0

    def timed(self, function: Any) -> Any:
        """The same function, on the clock."""

        def call(*arguments: Any, **settings: Any) -> Any:
            begun = time.process_time()
            try:
                return function(*arguments, **settings)
            finally:
                self.seconds += time.process_time() - begun

        return call

    def attach(self, layer: Model[Any, Any]) -> None:
        """Put the forward and the backward pass of a layer on the clock."""
        forward = self.timed(layer._func)

        def both(model: Model[Any, Any], inputs: Any, is_train: bool) -> Any:
            outputs, backward = forward(model, inputs, is_train)
            return outputs, self.timed(backward)

        layer._func = both


def main(
    tasks: Annotated[str, typer.Option(help="Those of project/defaults")] = "wnut17,cora",
    orders: Annotated[str, typer.Option(help="Orders of the model")] = "1,2",
) -> None:
    """Train over the texts once, and print the shares."""
    import torch

    torch.set_num_threads(1)
    rows = [
        measured(task, order) for task in tasks.split(",") for order in map(int, orders.split(","))
    ]
    show(table(rows, HEADER))


def measured(task: str, order: int) -> tuple[str, ...]:
    """A row of the table; the first steps are not counted, in which memory is taken."""
    texts = draw(task, load(task, ASSETS)["train"], SIZES.get(task, "400"), 0)
    fix_random_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        nlp = pipeline(texts, order, Path(folder))
        optimizer = nlp.initialize(lambda: as_examples(nlp, texts))
    batches = [as_examples(nlp, batch) for batch in minibatch(texts, BATCH)]
    for batch in batches[:2]:
        nlp.update(batch, sgd=optimizer, drop=DROPOUT)
    pipe, everything, component, encoder = nlp.get_pipe("hocrf"), Clock(), Clock(), Clock()
    encoder.attach(pipe.model.get_ref("tok2vec"))
    pipe.update, pipe.finish_update = map(component.timed, (pipe.update, pipe.finish_update))
    step = everything.timed(nlp.update)
    for batch in batches:
        step(batch, sgd=optimizer, drop=DROPOUT)
    layer = component.seconds - encoder.seconds
    milliseconds = [1000 * seconds / len(batches) for seconds in (everything.seconds, layer)]
    return (
        task,
        str(order),
        f"{sum(len(text.words) for text in texts):,}",
        str(len(batches)),
        *(f"{each:,.0f}" for each in milliseconds),
        f"{layer / everything.seconds:.1%}",
    )


def pipeline(texts: Sequence[Text], order: int, folder: Path) -> Language:
    """A transformer, and the component that listens to it beside the default features.

    folder (Path): the transformer reads there, when it is initialized, that each word is one piece.
    """
    words = sorted({word for text in texts for word in text.words})
    pieces = [*SPECIAL, *words]
    transformer = {
        "@architectures": "spacy-curated-transformers.BertTransformer.v1",
        "vocab_size": len(pieces),
        "hidden_width": WIDTH,
        "intermediate_width": 4 * WIDTH,
        "num_attention_heads": 12,
        "num_hidden_layers": LAYERS,
        "padding_idx": 0,
        "piece_encoder": {"@architectures": "spacy-curated-transformers.WordpieceEncoder.v1"},
        "with_spans": {"@architectures": "spacy-curated-transformers.WithStridedSpans.v1"},
    }
    listener = {
        "@architectures": "spacy-curated-transformers.LastTransformerLayerListener.v1",
        "width": WIDTH,
        "upstream": "transformer",
        "pooling": {"@layers": "reduce_mean.v1"},
    }
    model = {
        "@architectures": "spacy-hocrf.NeuralSemiCRF.v1",
        "order": order,
        "features": {"@misc": "spacy-hocrf.Window.v1"},
        "tok2vec": listener,
    }
    nlp = spacy.blank("en")
    nlp.add_pipe("curated_transformer", name="transformer", config={"model": transformer})
    nlp.add_pipe("hocrf", config={"model": model, "trainer": {"@misc": "spacy-hocrf.SGD.v1"}})
    path = folder / "pieces.txt"
    path.write_text("\n".join(pieces) + "\n", encoding="utf8")
    make = registry.get("model_loaders", "spacy-curated-transformers.WordpieceLoader.v1")
    nlp.get_pipe("transformer").model.get_ref("piece_encoder").init = make(path=path)
    return nlp


if __name__ == "__main__":
    typer.run(main)
