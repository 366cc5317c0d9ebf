"""Soft rules about all fields of a reference, with learnt weights (Anzaroot et al., ICML 2014): how many
errors the model alone makes, and how many with them.

The model alone is read with its own decoder and by its best segmentation; the rules choose among whole
segmentations. Templates and their prior were chosen inside the training part. A seed decides on the
division of the training part for the joint weights; the model of single references has no chance in it. So
few folds and passes are for the sake of time.
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

RULES = {
    kind: {"@misc": f"spacy-hocrf.{kind}.v1"} for kind in ("AtMost", "AtLeast", "Precedes", "Apart")
}
VITERBI = {"@misc": "spacy-hocrf.Viterbi.v1"}


def main(
    train: Annotated[Path, typer.Argument(help="Training references (.spacy)", exists=True)],
    test: Annotated[Path, typer.Argument(help="Test references (.spacy)", exists=True)],
    config_path: Annotated[
        Path | None,
        typer.Option("--config", help="Config with a component hocrf; else the defaults"),
    ] = None,
    seeds: Annotated[int, typer.Option(help="Seeds 0, 1, …")] = 3,
    folds: Annotated[int, typer.Option(help="Parts of the training part")] = 3,
    epochs: Annotated[int, typer.Option(help="Passes that learn the rules' weights")] = 10,
    output: CopyOption = None,
) -> None:
    """Print errors by field and by token, and p against the model alone in either reading."""
    config: dict[str, Any] = {}
    if config_path is not None:
        config = dict(spacy.util.load_config(config_path)["components"]["hocrf"])
        config.pop("factory")
    systems = {"model alone, its decoder": predict(train, test, config)}
    systems["model alone, best segmentation"] = predict(train, test, {**config, "decoder": VITERBI})
    for seed in range(seeds):
        trainer = {
            "@misc": "spacy-hocrf.JointMaxMargin.v1",
            "epochs": epochs,
            "folds": folds,
            "seed": seed,
        }
        joint = {"@misc": "spacy-hocrf.Joint.v1", "features": RULES, "trainer": trainer}
        systems[f"with rules, seed {seed}"] = predict(train, test, {**config, "joint": joint})
    gold = [example.reference for example in read_examples(spacy.blank("en"), test)]
    show(make_table(systems, gold), output)


def predict(train: Path, test: Path, config: dict[str, Any]) -> list[Doc]:
    """The test references as a model with this config reads them."""
    nlp = spacy.blank("en")
    nlp.add_pipe("hocrf", config=config)
    learn(nlp, read_examples(nlp, train))
    docs = list(nlp.pipe(map(fresh, read_examples(nlp, test))))
    if config.get("joint"):
        proved = sum(bool(doc._.hocrf_certificate) for doc in docs)
        weights = nlp.get_pipe("hocrf").joint_weights
        print(
            f"{(weights > 0).sum()} of {len(weights)} rules; {proved} of {len(docs)} proved",
            flush=True,
        )
    return docs


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
