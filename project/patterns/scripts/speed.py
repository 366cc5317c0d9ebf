"""Time evaluations of the objectives and gradients of a fold's pipelines, in turns."""

import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import spacy
import srsly
import typer
from crossvalidate import divided
from documents import read_documents
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

sys.path.append(str(Path(__file__).parents[2]))
from common.tagging import NAME, untagged


def main(
    assets: Annotated[Path, typer.Argument(help="Folder of the corpora", exists=True)],
    folder: Annotated[Path, typer.Argument(help="Folder with its pipelines", exists=True)],
    output: Annotated[Path, typer.Argument(help="Times in ms (.json)")],
    rounds: Annotated[
        int, typer.Option(help="Evaluations of each, after one that is not counted")
    ] = 5,
    fold: Annotated[int, typer.Option(help="What the pipelines were not trained on")] = 0,
    folds: Annotated[int, typer.Option(help="Number of folds")] = 3,
) -> None:
    """Write the CPU times of each, by name, over the texts that it was trained on."""
    docs, _ = divided(read_documents(assets), fold, folds)
    names = sorted(path.name for path in folder.iterdir() if path.is_dir())
    evaluations = {name: evaluation(spacy.load(folder / name), docs) for name in names}
    times: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(rounds + 1):
        for name, evaluate in evaluations.items():
            begun = time.process_time()
            evaluate()
            times[name].append(1000 * (time.process_time() - begun))
    kept = {name: found[1:] for name, found in times.items()}
    srsly.write_json(output, kept)
    for name, found in kept.items():
        print(f"{name}: {statistics.median(found):.1f} ms, {min(found):.1f} to {max(found):.1f}")


def evaluation(nlp: Language, docs: list[Doc]):
    """What computes the loss of some Docs and its gradient, at the weights that a pipeline has."""
    pipe = nlp.get_pipe(NAME)
    pipe.set_trainer(replace(pipe.trainer, prior="zero"))  # as in the training that it had
    nlp.update([Example(untagged(doc), doc) for doc in docs], sgd=False)
    objective, weights = pipe.objective(), pipe._learner.weights
    return lambda: objective(weights)


if __name__ == "__main__":
    typer.run(main)
