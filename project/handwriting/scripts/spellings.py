"""Words that are spelt like none in training: orders 0 to 3 at sigma 1, and sigma and order as the
component chooses them, by words held back and by spellings held back.

The spellings are dealt into five groups. One at a time is taken out of fold 0, and the words of that group
in the other folds are the test; and once all of fold 0 is there to learn from.
"""

import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from letters import register, spelling
from spacy.language import Language
from spacy.util import load_config, load_model_from_config

sys.path.append(str(Path(__file__).parents[2]))
from common.report import CopyOption, show, table
from common.tagging import NAME, score, train
from common.training import read_docs

HEADER = (
    *("sigma and order", "sigma, order", "spelling unseen: letters right", "words right"),
    *("spelling seen: letters right", "words right"),
)
ORDERS, GROUPS = (0, 1, 2, 3), 5
CHOSEN = {"chosen by words held back": None, "chosen by spellings held back": "hocrf_group"}


def main(
    config: Annotated[Path, typer.Argument(help="The model", exists=True)],
    corpus: Annotated[Path, typer.Argument(help="The words (.spacy)", exists=True)],
    output: CopyOption = None,
) -> None:
    """Print a line for each order, and for each way to choose."""
    register()
    warnings.filterwarnings("ignore", message=r"\[W011\]")  # of templates above the order at hand
    show(table(rows(config, corpus), HEADER, "ll"), output)


def rows(config: Path, corpus: Path) -> Iterator[tuple[str, ...]]:
    """Lines of the table."""
    for order in ORDERS:
        yield line("fixed", config, corpus, order=order)
    for how, group_by in CHOSEN.items():
        yield line(how, config, corpus, order="auto", sigma="auto", group_by=group_by)


def line(how: str, config: Path, corpus: Path, **settings: object) -> tuple[str, ...]:
    """What is right with the same settings in all groups of spellings together, unseen and seen."""
    chosen, right, seen = Counter[str](), Counter[str](), Counter[str]()
    for number in range(GROUPS + 1):
        nlp = make(config, **settings)
        docs = read_docs(corpus, nlp.vocab)
        held = set(sorted({spelling(doc) for doc in docs})[number::GROUPS])
        held = held if number < GROUPS else set()
        others = [doc for doc in docs if doc.user_data["fold"] != 0]
        train(nlp, [d for d in docs if d.user_data["fold"] == 0 and spelling(d) not in held])
        if not held:
            seen.update(vars(score(nlp, others)))
            break
        right.update(vars(score(nlp, [doc for doc in others if spelling(doc) in held])))
        choice = nlp.get_pipe(NAME).choice
        sigma, order = (1.0, settings["order"]) if choice is None else (choice.sigma, choice.order)
        chosen[f"{sigma:g}, {order}"] += 1
    said = [
        pair if times == GROUPS else f"{pair} ({times} of {GROUPS})"
        for pair, times in sorted(chosen.items())
    ]
    cells = (
        f"{100 * counts[f'right_{what}'] / counts[what]:.2f}"
        for counts in (right, seen)
        for what in ("tokens", "docs")
    )
    return how, "; ".join(said), *cells


def make(
    path: Path, *, order: object, sigma: object = 1.0, group_by: str | None = None
) -> Language:
    """The pipeline of a config with other settings."""
    block = f"components.{NAME}"
    settings = {"model.order": order, "trainer.sigma": sigma, "group_by": group_by}
    overrides = {f"{block}.{name}": value for name, value in settings.items()}
    return load_model_from_config(load_config(path, overrides=overrides), auto_fill=True)


if __name__ == "__main__":
    typer.run(main)
