"""Probabilities with temperatures, and thresholds that miss nothing.

Temperatures are learnt from one half of the development part and tried on the other half, both ways.
Thresholds are chosen on random halves of all texts, each read by a model that has not seen it, and tried on
the other half.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import spacy
import typer
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

sys.path.append(str(Path(__file__).parents[2] / "defaults" / "scripts"))
from readers import Text
from systems import make_doc
from tasks import load

sys.path.append(str(Path(__file__).parents[2]))
from common.report import show, table
from common.scores import ratios
from common.training import count_spans, learn

from spacy_hocrf.api import Calibration, calibrate, threshold_for

TASKS = (("tweets", 400), ("tweets", None), ("cora", None))
RECALLS = (0.95, 0.99)
CONFIDENCE = 0.9
FOLDS, SPLITS = 5, 200
LONGEST = {
    "": None,
    "any length": 0,
}  # what a segment may have: as in training, or any number of tokens
ANSWERS = {"reached": "reached in", "missed": "missed in", "H208": "too few", "H209": "cannot"}


def main(
    output: Annotated[Path, typer.Argument(help="Markdown file")],
    assets: Annotated[Path, typer.Option(help="Folder of the corpora")] = Path("assets"),
) -> None:
    """Print how right probabilities are before and after, and how often thresholds keep their word."""
    corpora = {task: load(task, assets) for task, _ in TASKS}
    rows = [tempered(task, corpora[task], texts) for task, texts in TASKS]
    columns = ("ECE", "after", "Brier", "after", "F1", "after")
    header = ("task", "texts", "temperatures", *columns)
    thresholds = [
        row
        for task in corpora
        for lengths, most in LONGEST.items()
        for row in kept(f"{task} {lengths}".strip(), corpora[task], most)
    ]
    second = ("task", "annotated spans", "never found", "recall", *ANSWERS.values())
    parts = [table(rows, header, "lll"), table(thresholds, second, "l")]
    show("# Trust\n\n" + "\n\n".join(parts), output)


def tempered(task: str, parts: dict[str, list[Text]], texts: int | None) -> tuple[str, ...]:
    """A row of the first table."""
    train = parts["train"][:texts]
    nlp = trained(train)
    pipe = nlp.get_pipe("hocrf")
    weights = pipe.model.get_param("W").copy()
    gold = [example_of(nlp, text) for text in parts["dev"]]
    halves, rows, temperatures = (gold[::2], gold[1::2]), [], set[float]()
    for here, there in (halves, halves[::-1]):
        before = measured(nlp, there)
        temperatures |= set(pipe.temper(here).values())
        rows.append((before, measured(nlp, there)))
        pipe.model.set_param("W", weights.copy())
    means = np.mean(rows, axis=0).T
    cells = [f"{value:.{digits}f}" for row, digits in zip(means, (3, 3, 2)) for value in row]
    return task, str(len(train)), ", ".join(f"{t:.2f}" for t in sorted(temperatures)), *cells


def measured(nlp: Language, examples: Sequence[Example]) -> tuple[float, float, float]:
    """ECE, Brier score and F1, the last in points."""
    found = calibrate(nlp, [example.reference for example in examples]).reliability()
    return found.ece, found.brier, 100 * ratios(*count_spans(nlp, examples))["f"]


def kept(
    task: str, parts: dict[str, list[Text]], max_length: int | None
) -> Iterator[tuple[str, ...]]:
    """Rows of the second table."""
    texts = [*parts["train"], *parts["dev"]]
    found = cross_calibrated(texts, max_length)
    spans = f"{len(found.annotated):,}", str(int((found.annotated == 0).sum()))
    for recall in RECALLS:
        held = [reaches(found, len(texts), recall, split) for split in range(SPLITS)]
        yield task, *spans, f"{recall:.0%}", *(str(held.count(answer)) for answer in ANSWERS)


def cross_calibrated(texts: Sequence[Text], max_length: int | None) -> Calibration:
    """The annotated spans of all texts, with the probabilities by models that have not seen them."""
    annotated, numbers = list[NDArray[np.float64]](), list[NDArray[np.int64]]()
    for fold in range(FOLDS):
        nlp = trained([text for i, text in enumerate(texts) if i % FOLDS != fold], max_length)
        docs = [make_doc(nlp.vocab, text) for text in texts[fold::FOLDS]]
        found = calibrate(nlp, docs)
        annotated.append(found.annotated)
        numbers.append(found.text * FOLDS + fold)
    return replace(found, annotated=np.concatenate(annotated), text=np.concatenate(numbers))


def reaches(found: Calibration, n_texts: int, recall: float, split: int) -> str:
    """Has the threshold of one random half of the texts this recall in the other half? One of ANSWERS;
    the code of the error if there is no threshold, since the half has too few annotated spans, or too many
    that the model cannot have.
    """
    half = np.random.default_rng(split).permutation(n_texts)[: n_texts // 2]
    mine = np.isin(found.text, half)
    known = replace(found, annotated=found.annotated[mine], text=found.text[mine])
    try:
        threshold = threshold_for(known, recall, CONFIDENCE).threshold
    except ValueError as error:
        return str(error)[1:5]
    held = (found.annotated[~mine] >= threshold).mean() >= recall
    return "reached" if held else "missed"


def trained(texts: Sequence[Text], max_length: int | None = None) -> Language:
    """The default, trained.

    max_length (Optional[int]): longest segment; 0 for any, None for the longest in training.
    """
    nlp = spacy.blank("xx")
    nlp.add_pipe("hocrf", config={"model": {"max_length": max_length}})
    learn(nlp, [example_of(nlp, text) for text in texts])
    return nlp


def example_of(nlp: Language, text: Text) -> Example:
    """A text, and the same with its spans."""
    return Example(Doc(nlp.vocab, words=text.words), make_doc(nlp.vocab, text))


if __name__ == "__main__":
    typer.run(main)
