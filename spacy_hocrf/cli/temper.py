"""`python -m spacy hocrf temper`: calibrate a pipeline's probabilities by temperature scaling, on annotated
texts that it has not seen.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from spacy.cli._util import import_code
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import load_model
from typer import Argument
from wasabi import msg

from spacy_hocrf.cli.calibrate import calibrate
from spacy_hocrf.cli.card import drop_scores
from spacy_hocrf.cli.compare import read_gold
from spacy_hocrf.cli.options import Code, Component, Model
from spacy_hocrf.cli.pipelines import component_of, group_numbers, ready_docs, scorer_of
from spacy_hocrf.cli.tables import as_table

__all__ = ["Tempered", "temper", "temper_cli"]


@dataclass(frozen=True)
class Tempered:
    """A temperature and its effect on calibration."""

    temperature: float
    # expected calibration error and Brier score of spans, measured on each half of the texts with the
    # temperature of the other half, on average
    ece: tuple[float, float]  # before, after
    brier: tuple[float, float]


def temper_cli(
    model: Model,
    gold: Annotated[
        Path,
        Argument(
            help="Annotated documents the model has not seen (.spacy)", exists=True, dir_okay=False
        ),
    ],
    output: Annotated[
        Path,
        Argument(
            help="Folder for the pipeline, which may be MODEL: one that is there is overwritten",
            file_okay=False,
        ),
    ],
    component: Component = None,
    code: Code = None,
) -> None:
    """Divide the weights by the temperature that makes annotated texts most probable, so that probabilities
    are right on average, and save the pipeline. `calibrate` measures how well they are calibrated.

    DOCS: docs/scores.md, "As sure as it should be"
    """
    import_code(code)
    nlp = load_model(model)
    _, pipe = component_of(nlp, component)
    docs, acceptance = read_gold(gold, scorer_of(pipe.target)), pipe.acceptance
    result = temper(nlp, docs, component)
    drop_scores(nlp, acceptance)
    output.parent.mkdir(parents=True, exist_ok=True)
    nlp.to_disk(output)
    _print(result)
    msg.good(f"The pipeline is in {output}")


def temper(nlp: Language, docs: Sequence[Doc], component: str | None = None) -> Tempered:
    """Scale the weights of a pipeline's component by a temperature fitted to annotated documents.

    RAISES (ValueError): H204 and H206 as `calibrate` does, H220 for too few documents.
    """
    name, pipe = component_of(nlp, component)
    saved = pipe.to_bytes()
    numbers = group_numbers(docs, pipe.group_by).tolist()
    halves = [[doc for doc, i in zip(docs, numbers) if i % 2 == side] for side in (0, 1)]
    reliabilities = []
    for fitted, test in (halves, halves[::-1]):
        before = calibrate(nlp, test, name).reliability()
        pipe.temper(map(Example, ready_docs(nlp, fitted, name), fitted))
        after = calibrate(nlp, test, name).reliability()
        pipe.from_bytes(saved)
        reliabilities.append((before, after))
    temperature = pipe.temper(map(Example, ready_docs(nlp, docs, name), docs))
    ece = (sum(pair[i].ece for pair in reliabilities) / 2 for i in (0, 1))
    brier = (sum(pair[i].brier for pair in reliabilities) / 2 for i in (0, 1))
    return Tempered(temperature, (next(ece), next(ece)), (next(brier), next(brier)))


def _print(result: Tempered) -> None:
    print(f"Temperature: {result.temperature:.2f}")
    rows = [
        (name, *(f"{value:.3f}" for value in pair))
        for name, pair in (("ECE", result.ece), ("Brier", result.brier))
    ]
    print(as_table(("spans", "before", "after"), rows))
    print(
        "Before and after: each half of the texts with the temperature of the other half, on average."
    )
