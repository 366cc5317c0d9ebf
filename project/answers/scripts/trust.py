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

from spacy_hocrf.cli.calibrating import Calibration, calibrate, threshold_for

TASKS = (("tweets", 400), ("tweets", None), ("cora", None))
RECALLS = (0.95, 0.99)
CONFIDENCE = 0.9
FOLDS, SPLITS = 5, 20


def main(
    output: Annotated[Path, typer.Argument(help="Markdown file")],
    assets: Annotated[Path, typer.Option(help="Folder of the corpora")] = Path("assets"),
) -> None:
    """Print how right probabilities are before and after, and how often thresholds keep their word."""
    corpora = {task: load(task, assets) for task, _ in TASKS}
    rows = [tempered(task, corpora[task], texts) for task, texts in TASKS]
    columns = ("ECE", "after", "Brier", "after", "F1", "after")
    header = ("task", "texts", "temperatures", *columns)
    thresholds = [row for task in corpora for row in kept(task, corpora[task])]
    second = ("task", "annotated spans", "recall", "reached in", "missed in", "no threshold in")
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


def kept(task: str, parts: dict[str, list[Text]]) -> Iterator[tuple[str, ...]]:
    """Rows of the second table."""
    texts = [*parts["train"], *parts["dev"]]
    found = cross_calibrated(texts)
    for recall in RECALLS:
        held = [reaches(found, len(texts), recall, split) for split in range(SPLITS)]
        counts = (str(held.count(answer)) for answer in (True, False, None))
        yield task, f"{len(found.annotated):,}", f"{recall:.0%}", *counts


def cross_calibrated(texts: Sequence[Text]) -> Calibration:
    """The annotated spans of all texts, with the probabilities by models that have not seen them."""
    annotated, numbers = list[NDArray[np.float64]](), list[NDArray[np.int64]]()
    for fold in range(FOLDS):
        nlp = trained([text for i, text in enumerate(texts) if i % FOLDS != fold])
        docs = [make_doc(nlp.vocab, text) for text in texts[fold::FOLDS]]
        found = calibrate(nlp, docs)
        annotated.append(found.annotated)
        numbers.append(found.text * FOLDS + fold)
    return replace(found, annotated=np.concatenate(annotated), text=np.concatenate(numbers))


def reaches(found: Calibration, n_texts: int, recall: float, split: int) -> bool | None:
    """Has the threshold of one random half of the texts this recall in the other half? None if there is no
    threshold, since the model cannot have too many of the annotated spans.
    """
    half = np.random.default_rng(split).permutation(n_texts)[: n_texts // 2]
    mine = np.isin(found.text, half)
    known = replace(found, annotated=found.annotated[mine], text=found.text[mine])
    try:
        threshold = threshold_for(known, recall, CONFIDENCE).threshold
    except ValueError as error:
        if "[H209]" not in str(error):
            raise
        return None
    return bool((found.annotated[~mine] >= threshold).mean() >= recall)


def trained(texts: Sequence[Text]) -> Language:
    """The default, trained."""
    nlp = spacy.blank("xx")
    nlp.add_pipe("hocrf")
    learn(nlp, [example_of(nlp, text) for text in texts])
    return nlp


def example_of(nlp: Language, text: Text) -> Example:
    """A text, and the same with its spans."""
    return Example(Doc(nlp.vocab, words=text.words), make_doc(nlp.vocab, text))


if __name__ == "__main__":
    typer.run(main)
