"""Soft rules about all fields of a reference, with learnt prices (Anzaroot et al., ICML 2014): how many
errors the model alone makes, and how many with them, read by its own decoder and by its best segmentation.

The rules are all that four kinds can say about the fields; which of them count, their prices say.
"""

import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import spacy
import typer
from spacy.tokens import Doc

sys.path.append(str(Path(__file__).parents[2]))
from common.report import CopyOption, show, table
from common.training import fresh, learn, read_examples, spans

from spacy_hocrf.api import EntsScorer, compare_counts, count_items

KINDS = ("AtMost", "AtLeast", "Precedes", "Apart")
RULES = {
    "@misc": "spacy-hocrf.Constraints.v1",
    "rules": {kind: {"@misc": f"spacy-hocrf.{kind}.v1", "price": "learnt"} for kind in KINDS},
}
VITERBI = {"@misc": "spacy-hocrf.Viterbi.v1"}


def main(
    train: Annotated[Path, typer.Argument(help="Training references (.spacy)", exists=True)],
    test: Annotated[Path, typer.Argument(help="Test references (.spacy)", exists=True)],
    config_path: Annotated[
        Path | None,
        typer.Option("--config", help="Config with a component hocrf; else the defaults"),
    ] = None,
    output: CopyOption = None,
) -> None:
    """Print errors by field and by token, and p against the model alone in either reading."""
    config: dict[str, Any] = {}
    if config_path is not None:
        config = dict(spacy.util.load_config(config_path)["components"]["hocrf"])
        config.pop("factory")
    viterbi, rules = {**config, "decoder": VITERBI}, {"constraints": RULES}
    systems = {
        "model alone, its decoder": predict(train, test, config),
        "model alone, best segmentation": predict(train, test, viterbi),
        "with rules, its decoder": predict(train, test, {**config, **rules}),
        "with rules, best segmentation": predict(train, test, {**viterbi, **rules}),
    }
    gold = [example.reference for example in read_examples(spacy.blank("en"), test)]
    show(make_table(systems, gold), output)


def predict(train: Path, test: Path, config: dict[str, Any]) -> list[Doc]:
    """The test references as a model with this config reads them."""
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("hocrf", config=config)
    learn(nlp, read_examples(nlp, train))
    prices = list(pipe.rule_prices.values())
    print(f"{sum(price > 0 for price in prices)} of {len(prices)} rules have a price", flush=True)
    return list(nlp.pipe(map(fresh, read_examples(nlp, test))))


def make_table(systems: dict[str, list[Doc]], gold: list[Doc]) -> str:
    """Errors of every system; the first two are those that others are compared with."""
    counts = count_items(EntsScorer(), list(systems.values()), gold)
    errors = [sum(map(field_errors, docs, gold)) for docs in systems.values()]
    rows = []
    for i, (name, docs) in enumerate(systems.items()):
        compared = [compare_counts(counts, base, i)["all"] for base in (0, 1)]
        against = [
            f"{errors[i] - errors[base]:+} of {errors[base]} ({pair['p_value']:.4f})"
            if i > 1
            else ""
            for base, pair in enumerate(compared)
        ]
        tokens = sum(map(token_errors, docs, gold))
        f = f"{100 * compared[0]['b']['f']:.2f}"
        rows.append((name, f, str(errors[i]), str(tokens), *against))
    header = (
        *("", "F1", "field errors", "token errors", "against its decoder (p)"),
        "against the best (p)",
    )
    return table(rows, header)


def field_errors(doc: Doc, gold: Doc) -> int:
    """Fields that are wrong, and fields that are missing."""
    return len(spans(doc) ^ spans(gold))


def token_errors(doc: Doc, gold: Doc) -> int:
    """Tokens in another field, or in none."""
    labels = [np.array([token.ent_type_ for token in each]) for each in (doc, gold)]
    return int((labels[0] != labels[1]).sum())


if __name__ == "__main__":
    typer.run(main)
