"""How fast `nlp.pipe` is over an encoder of one's own, with a span filter and without: one thread, tokenised
Docs of the dev part, probabilities included.
"""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import spacy
import typer
from encoders import ASSETS, BATCH, DROPOUT, SIZES, as_examples, config_of
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import minibatch
from tasks import draw, load
from thinc.api import fix_random_seed

sys.path.append(str(Path(__file__).parents[2]))
from common.report import CopyOption, show, table

RUNS = 5
HEADER = ("task", "order", "system", "tokens", "tokens a CPU second", "of those without a filter")


def main(
    tasks: Annotated[str, typer.Option(help="Those of project/defaults")] = "wnut17,tweets",
    orders: Annotated[str, typer.Option(help="Orders of the model")] = "1,2",
    output: CopyOption = None,
) -> None:
    """Show the texts to each system once, and print how fast it is then: the best of five runs."""
    rows = [
        row
        for task in tasks.split(",")
        for order in map(int, orders.split(","))
        for row in measured(task, order)
    ]
    show(table(rows, HEADER, "lrl"), output)


def measured(task: str, order: int) -> list[tuple[str, ...]]:
    """A row for each system; their runs take turns, so that what else goes on is the same for all."""
    dev = load(task, ASSETS)["dev"]
    systems = {name: trained(task, name, order) for name in ("joint", "joint+filter")}
    best = dict.fromkeys(systems, float("inf"))
    for _ in range(RUNS):
        for name, nlp in systems.items():
            docs = [Doc(nlp.vocab, words=text.words) for text in dev]
            best[name] = min(best[name], seconds(nlp, docs))
    tokens = sum(len(text.words) for text in dev)
    return [
        (
            task,
            str(order),
            name,
            f"{tokens:,}",
            f"{tokens / each:,.0f}",
            f"{best['joint'] / each:.2f}",
        )
        for name, each in best.items()
    ]


def trained(task: str, system: str, order: int) -> Language:
    """A pipeline that has been shown the texts once."""
    texts = draw(task, load(task, ASSETS)["train"], SIZES.get(task, "400"), 0)
    fix_random_seed(0)
    nlp = spacy.blank("en")
    nlp.add_pipe("hocrf", config=config_of(system, order))
    optimizer = nlp.initialize(lambda: as_examples(nlp, texts))
    for batch in minibatch(texts, BATCH):
        nlp.update(as_examples(nlp, batch), sgd=optimizer, drop=DROPOUT)
    return nlp


def seconds(nlp: Language, docs: Sequence[Doc]) -> float:
    """CPU time of reading them all."""
    begun = time.process_time()
    for _ in nlp.pipe(docs):
        pass
    return time.process_time() - begun


if __name__ == "__main__":
    typer.run(main)
