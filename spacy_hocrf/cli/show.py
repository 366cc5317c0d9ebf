"""`python -m spacy hocrf show`: an HTML page with a model's predictions, probabilities and reasons."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from spacy.cli._util import import_code
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import load_model
from srsly import read_json
from tqdm import tqdm
from typer import Argument, Option
from wasabi import msg

from spacy_hocrf.annotation.acceptance import Acceptance
from spacy_hocrf.annotation.annotation import NamedSpan
from spacy_hocrf.annotation.best_readings import ScoredSpan
from spacy_hocrf.annotation.identity import id_of
from spacy_hocrf.annotation.prediction import Prediction
from spacy_hocrf.answers.pages import make_page, surety, text_on_page
from spacy_hocrf.cli.calibrate import calibration_of
from spacy_hocrf.cli.corpora import read_docs
from spacy_hocrf.cli.counts import Scorer
from spacy_hocrf.cli.errors import CommandErrors
from spacy_hocrf.cli.files import write_whole
from spacy_hocrf.cli.options import Code, Component, Model, check_name
from spacy_hocrf.cli.pipelines import component_of, ready_docs, scorer_of
from spacy_hocrf.cli.shown import ShownText

__all__ = ["CURVE_FILE", "read_curve", "show", "show_cli"]

CURVE_FILE = "curve.json"
"""Name of the learning curve's file, in the folder next to the model."""
CURVE_POINT = ("texts", "f", "low", "high")


@dataclass(frozen=True)
class _Text:
    """A text with its predicted and annotated spans."""

    shown: ShownText
    predictions: list[ScoredSpan]
    gold: list[NamedSpan] | None  # None without annotation
    unknown: NDArray[np.bool_] | None  # [T] tokens with unknown annotation
    id: str | None = None  # its id in the file
    # if the model knows a threshold: is the text accepted unread, and P(the whole text is right), corrected
    accepted: bool | None = None
    probability: float = 0.0

    @property
    def scored(self) -> list[ScoredSpan] | None:
        """The annotated spans with the model's probabilities."""
        return None if self.gold is None else self.shown.scored(self.gold)

    @property
    def counted(self) -> set[NamedSpan]:
        """Predicted spans where the annotation is known."""
        spans, unknown = self.predictions, self.unknown
        return {s[:3] for s in spans if unknown is None or not unknown[s.start : s.end].any()}


def show_cli(
    model: Model,
    texts: Annotated[
        Path, Argument(help="Documents (.spacy), annotated or not", exists=True, dir_okay=False)
    ],
    output: Annotated[Path, Option("--output", "-o", help="The page (HTML)", dir_okay=False)],
    component: Component = None,
    most: Annotated[
        int, Option("--most", "-n", min=1, help="Number of texts to show, the least sure ones")
    ] = 1000,
    title: Annotated[str | None, Option("--title", help="Headline of the page")] = None,
    code: Code = None,
) -> None:
    """Write an HTML page with a pipeline's predictions: how sure it is of each span, the alternatives, and
    the reasons; next to the annotation, if there is any. The page is a single self-contained file.

    DOCS: docs/page.md, "A page to look at"
    """
    import_code(code)
    check_name("--output", output, "page")
    docs = read_docs(texts, least=1)
    about, curve = f"{model} · {texts.name}", read_curve(Path(model).parent / CURVE_FILE)
    nlp = load_model(model)
    page = show(nlp, docs, component, most=most, title=title, about=about, curve=curve)
    write_whole(output, page)
    msg.good(f"Saved the page: {output} ({len(page.encode()) / 1e6:.1f} MB)")


def show(
    nlp: Language,
    docs: Sequence[Doc],
    component: str | None = None,
    *,
    most: int = 1000,
    title: str | None = None,
    about: str = "",
    curve: Mapping[str, Any] | None = None,
) -> str:
    """Make the page of some documents, hiding their annotation from the pipeline.

    component (Optional[str]): name of the component; None for the only one of ours.
    most (int): number of texts to show, those that the model is least sure of.
    title (Optional[str]), about (str): title, and a line below it.
    curve (Optional[Dict]): the learning curve, as `read_curve` returns it.
    RAISES (ValueError): H204 for an unknown component.
    """
    name, pipe = component_of(nlp, component)
    ready, scorer = ready_docs(nlp, docs, name), scorer_of(pipe.target)
    readings = list(pipe.readings(ready, keeps_own=True))
    predictions = pipe.predict(ready)
    annotated = any(scorer.annotated(doc) for doc in docs)
    gold_scorer = scorer if annotated else None
    texts = [
        _text(doc, ShownText(reading, pipe.target), prediction, gold_scorer, pipe.acceptance)
        for doc, reading, prediction in zip(docs, readings, predictions, strict=True)
    ]
    of_model = readings[0].labels
    spans = (span for text in texts for span in (*text.predictions, *(text.gold or ())))
    labels = [*of_model, *sorted({span[2] for span in spans} - {*of_model})]
    sureties = [surety(text.shown.reading, text.predictions) for text in texts]
    surest = np.argsort(sureties, kind="stable")
    chosen = sorted(surest[:most].tolist())
    shown = [
        text_on_page(text.shown.reading, text.predictions, labels, text.scored, text.unknown)
        | ({} if text.id is None else {"id": text.id})
        | ({} if text.accepted is None else {"accepted": text.accepted, "sure": text.probability})
        for text in tqdm([texts[i] for i in chosen], desc="Reasons", disable=None, leave=False)
    ]
    if len(chosen) < len(texts):
        about += f" · the {len(chosen):,} of {len(texts):,} texts that the model is least sure of"
    bins = calibration_of(docs, readings, pipe.target).bins() if annotated else []
    headline = title or f"What the model finds in {len(texts):,} texts, and how sure it is"
    scores = _scores(texts, labels)
    return make_page(
        shown, labels, headline, about, lang=nlp.vocab.lang, bins=bins, scores=scores, curve=curve
    )


def read_curve(path: Path) -> Mapping[str, Any] | None:
    """Read the learning curve of a model, if there is one. RAISES (ValueError): H234 for any other file."""
    if not path.is_file():
        return None
    try:
        curve = read_json(path)
        points = [float(point[name]) for point in curve["points"] for name in CURVE_POINT]
        line = [float(number) for pair in curve["line"] for number in pair]
        is_valid = points and all(len(pair) == 2 for pair in curve["line"]) and curve["now"] > 0
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(CommandErrors.H234.format(path=path, found=repr(error))) from error
    if not is_valid or not np.isfinite([*points, *line]).all():
        raise ValueError(CommandErrors.H234.format(path=path, found="numbers that are none"))
    return {name: curve[name] for name in ("points", "line", "now")}


def _text(
    doc: Doc,
    shown: ShownText,
    prediction: Prediction,
    scorer: Scorer | None,
    acceptance: Acceptance | None,
) -> _Text:
    predicted = shown.predictions(prediction)
    p, accepted, calibrated = prediction.text_probability, None, 0.0
    if acceptance is not None and p is not None:
        accepted, calibrated = acceptance.accepts(doc, p), float(f"{acceptance.calibrated(p):.4g}")
    if scorer is None or not scorer.annotated(doc):
        return _Text(shown, predicted, None, None, id_of(doc), accepted, calibrated)
    gold = sorted((start, end, label) for label, start, end in scorer.items(doc))
    return _Text(shown, predicted, gold, scorer.unknown(doc), id_of(doc), accepted, calibrated)


def _scores(texts: Sequence[_Text], labels: Sequence[str]) -> list[Mapping[str, Any]]:
    """Scores of all labels together, then of each label."""
    predicted, annotated, right = Counter[str](), Counter[str](), Counter[str]()
    for text in texts:
        counted = {span[:3] for span in text.predictions} if text.gold is None else text.counted
        gold = {*(text.gold or ())}
        for count, spans in ((predicted, counted), (annotated, gold), (right, gold & counted)):
            count.update(label for *_, label in spans)
    return [
        _score(*(sum(count[label] for label in part) for count in (predicted, annotated, right)))
        for part in (labels, *([label] for label in labels))
    ]


def _score(predicted: int, annotated: int, right: int) -> Mapping[str, Any]:
    return {
        "found": predicted,
        "annotated": annotated,
        "right": right,
        "precision": right / max(1, predicted),
        "recall": right / max(1, annotated),
        "f": 2 * right / max(1, predicted + annotated),
    }
