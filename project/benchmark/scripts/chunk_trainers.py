"""Compare the trainers on CoNLL-2000, as project/references does on Cora: a CRF whose labels are
B-, I- and O of the chunks.

The settings are chosen on the first sentences of the training part.
"""

import sys
from pathlib import Path
from typing import Annotated, Any

import models
import spacy
import typer
from corpora import REFERENCES, Corpora, SmallOption
from spacy.language import Language

sys.path.append(str(Path(__file__).parents[2]))
from common.columns import chunks_of
from common.report import CopyOption

sys.path.append(str(REFERENCES / "scripts"))
import trainers

VITERBI = {"@misc": "spacy-hocrf.Viterbi.v1"}


def main(
    data: Annotated[Path, typer.Argument(help="Folder with conll2000/")],
    choose_on: Annotated[
        int, typer.Option(help="Training sentences among which the settings are chosen")
    ] = 1500,
    folds: Annotated[int, typer.Option(help="Folds of the cross-validation that chooses them")] = 3,
    small: SmallOption = False,
    output: CopyOption = None,
) -> None:
    """Print the F1 of every setting in the cross-validation, and test F1, CPU time and passes of
    the chosen ones.
    """
    corpora = Corpora(data, small)
    parts = {part: corpora.chunks(part) for part in ("train", "test")}
    task = trainers.Task(
        pipeline,
        lambda nlp: models.span_examples(nlp, parts["train"], chunks_of),
        lambda nlp: models.span_examples(nlp, parts["test"], chunks_of),
        choose_on,
    )
    trainers.compare(task, folds, output)


def pipeline(order: int, trainer: dict[str, Any]) -> Language:
    """The benchmark's observations, without scores."""
    nlp = spacy.blank("en")
    model = {
        "@architectures": "spacy-hocrf.HighOrderCRF.v1",
        "order": order,
        "encoding": "bio",
        "features": models.features(order),
    }
    nlp.add_pipe(
        "hocrf", config={"model": model, "trainer": trainer, "decoder": VITERBI, "scores_key": None}
    )
    return nlp


if __name__ == "__main__":
    typer.run(main)
