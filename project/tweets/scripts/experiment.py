"""Train a local model and the weights of agreement, and decode the test parts in every way; then
again with fewer iterations.
"""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import srsly
import typer
from spacy.language import Language
from spacy.training import Example
from tweets import (
    CORPORA,
    DECODERS,
    KINDS,
    OnlyOption,
    Outcome,
    decode,
    f1,
    folder_of,
    make_pipeline,
    read,
    resolve_grouper,
    train,
    voted,
)

sys.path.append(str(Path(__file__).parents[2]))
from common.training import write_docs

ITERATIONS = (1, 2, 5, 10, 20, 50, 100, 200)
TRACED = {
    name: {**DECODERS[name], "local_search": False} for name in ("two_slave", "naive", "hybrid")
}
"""What is drawn against time; a local search comes after the last iteration and would be most of
the time of the first ones.
"""
REPETITIONS = 3
GOLD = "gold.spacy"
VOTES = {"vote": False, "vote, outside too": True}
"""Majority votes, and whether unlabelled places take part."""


def main(
    config_path: Annotated[Path, typer.Argument(help="Config with a component hocrf", exists=True)],
    corpus_dir: Annotated[Path, typer.Argument(help="What convert.py has written", exists=True)],
    predictions_dir: Annotated[Path, typer.Argument(help="Where the predictions go")],
    metrics_dir: Annotated[
        Path, typer.Argument(help="Where measures go, a file for each corpus and model (JSON)")
    ],
    only: OnlyOption = None,
) -> None:
    """Write predictions, scores, bounds and times."""
    groupers = {part: resolve_grouper(config_path, part) for part in ("train", "dev")}
    metrics_dir.mkdir(parents=True, exist_ok=True)
    for corpus in only or CORPORA:
        for kind in KINDS:
            nlp = make_pipeline(config_path, kind, corpus)
            seconds = train(nlp, read(nlp, corpus_dir / corpus / "train.spacy", groupers["train"]))
            pipe = nlp.get_pipe("hocrf")
            weights = dict(zip(pipe.joint.feature_names, pipe.joint.weights.round(3).tolist()))
            examples = read(nlp, corpus_dir / corpus / "test.spacy", groupers["dev"])
            systems = {}
            for name in DECODERS:
                systems[name] = decode(nlp, examples, DECODERS[name])
            chain, _, spent = systems["chain"]
            for name, outside in VOTES.items():
                begun = time.process_time()
                systems[name] = (
                    voted(chain, outside=outside),
                    [],
                    spent + time.process_time() - begun,
                )
            folder = predictions_dir / folder_of(corpus, kind)
            for name, (predicted, _, _) in systems.items():
                write_docs([example.predicted for example in predicted], folder / f"{name}.spacy")
            write_docs([example.reference for example in examples], folder / GOLD)
            rows = [{"system": name, **measures(*system)} for name, system in systems.items()]
            traces = [
                {
                    "system": name,
                    "max_iterations": n,
                    **quickest(nlp, examples, {**settings, "max_iterations": n}),
                }
                for name, settings in TRACED.items()
                for n in ITERATIONS
            ]
            row = {
                "corpus": corpus,
                "kind": kind,
                "tweets": len(examples),
                "training": seconds,
                "weights": weights,
            }
            srsly.write_json(
                metrics_dir / f"{folder_of(corpus, kind)}.json",
                {**row, "systems": rows, "traces": traces},
            )
            print(f"{corpus}, {kind}: {seconds:.0f} s of training, {weights}")
            for values in rows:
                cells = (
                    f"{key} {value:.3f}" if isinstance(value, float) else str(value)
                    for key, value in values.items()
                )
                print(" | ".join(cells), flush=True)


def quickest(
    nlp: Language, examples: Sequence[Example], settings: dict[str, Any]
) -> dict[str, Any]:
    """Measures of a decoder, of the quickest of some runs."""
    return min(
        (measures(*decode(nlp, examples, settings)) for _ in range(REPETITIONS)),
        key=lambda row: row["decoding"],
    )


def measures(
    predicted: Sequence[Example], outcomes: Sequence[Outcome], seconds: float
) -> dict[str, Any]:
    """F1, and of the problems, which are tweets that patterns connect, the mean bound, the share of
    certificates and the time.
    """
    micro, macro = f1(predicted)
    decoding = sum(outcome.seconds for outcome in outcomes)
    row: dict[str, Any] = {
        "micro": micro,
        "macro": macro,
        "seconds": seconds,
        "decoding": decoding,
        "problems": len(outcomes),
        "iterations": sum(outcome.iterations for outcome in outcomes),
    }
    if outcomes:
        row["bound"] = float(np.mean([outcome.bound for outcome in outcomes]))
        row["primal"] = float(np.mean([outcome.primal for outcome in outcomes]))
        row["certificates"] = float(np.mean([outcome.certificate for outcome in outcomes]))
    return row


if __name__ == "__main__":
    typer.run(main)
