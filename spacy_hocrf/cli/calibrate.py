"""`python -m spacy hocrf calibrate`: are spans of probability p right in a share p of cases, which threshold
keeps nearly all annotated spans, and which texts are entirely right?

The threshold for a recall R is an order statistic: given the probabilities of n annotated spans, at least a
share R of all such probabilities is at or above the k-th smallest, with the confidence
P(Binomial(n, 1 - R) >= k) (Wilks, Annals of Mathematical Statistics 12, 1941). Spans of one text are alike,
so n spans count as n / deff independent ones, deff being the variance of the share of missed spans from text
to text over that of independent spans (Kish, Survey Sampling, 1965, §5.4); and only half of these count,
since the recall must hold in as many new spans, where it varies as much again. New texts are assumed to be
like these.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import floor, log, log10
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec import to_builtins
from numpy.typing import NDArray
from spacy.cli._util import import_code
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import load_model
from typer import Argument, Option
from wasabi import msg

from spacy_hocrf.annotation.acceptance import Acceptance
from spacy_hocrf.annotation.targets import TagsTarget, Target
from spacy_hocrf.answers.reading import Reading
from spacy_hocrf.cli.accept import (
    WholeTexts,
    accept,
    binomial,
    calibration_errors,
    warn_unlike,
    whole_texts,
)
from spacy_hocrf.cli.auto.estimates import Interval, proportion
from spacy_hocrf.cli.compare import read_gold
from spacy_hocrf.cli.counts import Scorer
from spacy_hocrf.cli.errors import CommandErrors
from spacy_hocrf.cli.files import write_json
from spacy_hocrf.cli.options import Code, Component, Model, Results, check_name
from spacy_hocrf.cli.pipelines import (
    component_of,
    group_numbers,
    ready_docs,
    scorer_of,
    with_other_tokens,
)
from spacy_hocrf.cli.shown import ShownText
from spacy_hocrf.cli.tables import as_table, percent

__all__ = [
    "Calibration",
    "Reliability",
    "Threshold",
    "calibrate",
    "calibrate_cli",
    "calibration_of",
    "threshold_for",
]

MIN_PROBABILITY = 0.05
"""Less probable spans are ignored: there are many of them, and hardly any is right."""
CONFIDENCE = 0.9
DIGITS = 4
"""Significant digits of a threshold."""
EDGES = (MIN_PROBABILITY, *(i / 10 for i in range(1, 11)))


@dataclass(frozen=True)
class Threshold:
    """A threshold on probabilities that keeps nearly all annotated spans."""

    recall: float  # requested recall of new spans
    confidence: float
    threshold: float
    reached: float  # share of the annotated spans here


@dataclass(frozen=True)
class Reliability:
    """How well calibrated the probabilities of spans are."""

    spans: int  # with at least MIN_PROBABILITY
    ece: float  # as in `accept.CalibrationErrors`
    by_chance: float
    brier: float  # mean squared difference from 1 for right spans and 0 for others


@dataclass(frozen=True)
class Calibration:
    """Probable spans and annotated spans of texts."""

    label: NDArray[np.str_]  # [n] of spans with a probability of at least MIN_PROBABILITY
    probability: NDArray[np.float64]  # [n]
    right: NDArray[np.bool_]  # [n] annotated?
    annotated_label: NDArray[np.str_]  # [m] of the annotated spans
    annotated: NDArray[np.float64]  # [m] their probabilities
    text: NDArray[np.int64]  # [m] number of the span's text, or of its group of texts

    def bins(self) -> list[dict[str, float]]:
        """Return for each bin that is not empty its edges `from` and `to`, the number of `spans`, the share
        of `right` ones and their `mean` probability.
        """
        bin_of = np.minimum(np.searchsorted(EDGES, self.probability, side="right"), len(EDGES) - 1)
        return [
            {
                "from": EDGES[i - 1],
                "to": EDGES[i],
                "spans": int(inside.sum()),
                "right": float(self.right[inside].mean()),
                "mean": float(self.probability[inside].mean()),
            }
            for i in range(1, len(EDGES))
            for inside in [bin_of == i]
            if inside.any()
        ]

    def reliability(self) -> Reliability:
        """Reliability of all these spans; zeros for none."""
        n, squares = len(self.probability), ((self.probability - self.right) ** 2).sum()
        errors = calibration_errors(self.probability, self.right)
        return Reliability(n, *errors, float(squares) / max(1, n))

    def of(self, label: str) -> "Calibration":
        """Select the spans of one label."""
        spans, annotated = self.label == label, self.annotated_label == label
        return Calibration(
            self.label[spans],
            self.probability[spans],
            self.right[spans],
            self.annotated_label[annotated],
            self.annotated[annotated],
            self.text[annotated],
        )


def calibrate_cli(
    model: Model,
    gold: Annotated[
        Path, Argument(help="Annotated documents (.spacy)", exists=True, dir_okay=False)
    ],
    component: Component = None,
    recall: Annotated[
        float | None,
        Option("--recall", "-r", help="Find a threshold with at least this recall on new texts"),
    ] = None,
    accept_: Annotated[
        float | None,
        Option(
            "--accept",
            "-a",
            help="Find which texts to accept unread, so that at least this share of them is entirely right",
        ),
    ] = None,
    by: Annotated[
        str | None,
        Option("--by", help="Extension attribute of Docs: one threshold for each value"),
    ] = None,
    into: Annotated[
        Path | None,
        Option(
            "--into",
            help="Save the pipeline, with the threshold of --accept, to this folder instead of MODEL: one "
            "that is there is overwritten",
            file_okay=False,
        ),
    ] = None,
    confidence: Annotated[
        float | None,
        Option(
            "--confidence",
            "-p",
            help=f"How sure the recall, or the share, should be: by default {CONFIDENCE}",
        ),
    ] = None,
    output: Results = None,
    code: Code = None,
) -> None:
    """Check on texts that the model has not seen how often spans of a given probability are right. Find a
    threshold that misses hardly any annotated span, or one for accepting texts unread, which is saved in
    the model.

    DOCS: docs/scores.md, "Are they right, and which threshold misses nothing?", and docs/records.md
    """
    import_code(code)
    check_name("--output", output, "data")
    confidence = CONFIDENCE if confidence is None else confidence
    nlp = load_model(model)
    name, pipe = component_of(nlp, component)
    scorer = _scorer(pipe.target)
    docs = read_gold(gold, scorer)
    if accept_ is not None and into is None and not Path(model).is_dir():
        raise ValueError(CommandErrors.H503.format(path=model))
    whole = None
    if accept_ is not None or not pipe.target.overlapping:
        whole = whole_texts(nlp, docs, name, by, behind=accept_ is not None)
    promise = None if accept_ is None or whole is None else accept(whole, accept_, confidence, by)
    calibration = calibrate(nlp, docs, component)
    threshold = None if recall is None else threshold_for(calibration, recall, confidence)
    result = _result(calibration, threshold, whole)
    if threshold is not None:
        texts = (ShownText(reading, pipe.target) for reading in _readings(nlp, docs, component))
        result["threshold"]["spans"] = sum(len(text.spans(threshold.threshold)) for text in texts)
    if promise is None and whole is not None and (before := pipe.acceptance) is not None:
        warn_unlike(before, [before.calibrated(p) for p in whole.probability.tolist()])
    if promise is not None:
        pipe.acceptance = promise[0]
        result["accepted"] = {**to_builtins(promise[0]), "refused": promise[1]}
        if into is None:
            pipe.to_disk(Path(model) / name)
        else:
            into.parent.mkdir(parents=True, exist_ok=True)
            nlp.to_disk(into)
    if output is not None:
        write_json(output, result)
    _print(result, threshold)
    if promise is not None:
        print(_promise_text(*promise), f"The threshold is saved in {into or model}.", sep="\n")
        if other := with_other_tokens(nlp, docs):
            msg.warn(
                f"{other:,} of {len(docs):,} texts have other tokens than the pipeline makes of them. The "
                "promise holds for texts with tokens like those of the annotation."
            )


def calibrate(nlp: Language, docs: Sequence[Doc], component: str | None = None) -> Calibration:
    """Find the probable spans of annotated documents, hiding the annotation from the pipeline.

    component (Optional[str]): name of the component; None for the only one of ours.
    RAISES (ValueError): H204 for an unknown component, H206 for one that predicts tags.
    """
    pipe = component_of(nlp, component)[1]
    _scorer(pipe.target)  # refuses tags
    readings = _readings(nlp, docs, component)
    return calibration_of(docs, readings, pipe.target, pipe.group_by)


def calibration_of(
    docs: Sequence[Doc],
    readings: Iterable[Reading],
    target: Target,
    attribute: str | None = None,
) -> Calibration:
    """Collect the probable spans and the annotated spans of documents. Spans that earlier components have set
    and the component keeps have a probability of 1.

    readings (Iterable[Reading]): readings of the same tokens, made with `keeps_own`.
    target (Target): the component's target.
    attribute (Optional[str]): extension attribute; texts with the same value count as one.
    """
    rows, annotated = list[tuple[str, float, bool]](), list[tuple[str, float, int]]()
    numbers, scorer = group_numbers(docs, attribute).tolist(), scorer_of(target)
    for number, doc, reading in zip(numbers, docs, readings, strict=True):
        items, unknown = scorer.items(doc), scorer.unknown(doc)
        text = ShownText(reading, target)
        for start, end, label, p in text.spans(MIN_PROBABILITY):
            if unknown is None or not unknown[start:end].any():
                rows.append((label, p, (label, start, end) in items))
        scored = text.scored((start, end, label) for label, start, end in sorted(items))
        annotated += [(label, p, number) for _, _, label, p in scored]
    return Calibration(
        np.array([label for label, _, _ in rows], dtype=np.str_),
        np.array([p for _, p, _ in rows], dtype=np.float64),
        np.array([right for _, _, right in rows], dtype=bool),
        np.array([label for label, _, _ in annotated], dtype=np.str_),
        np.array([p for _, p, _ in annotated], dtype=np.float64),
        np.array([number for _, _, number in annotated], dtype=np.int64),
    )


def _readings(nlp: Language, docs: Sequence[Doc], component: str | None) -> Iterator[Reading]:
    """Read documents, hiding their annotation from the pipeline."""
    name, pipe = component_of(nlp, component)
    return pipe.readings(ready_docs(nlp, docs, name), keeps_own=True)


def threshold_for(calibration: Calibration, recall: float, confidence: float) -> Threshold:
    """Find the highest threshold with at least this recall on as many new annotated spans.

    confidence (float): probability that the recall is reached, over the choice of these and the new texts.
    RAISES (ValueError): H207 for settings out of range, H208 if there are too few annotated spans, H209 if
        the model gives too many of them probability zero.
    """
    if not (0 < recall < 1 and 0 < confidence < 1):
        settings = f"--recall {recall} and --confidence {confidence}"
        raise ValueError(CommandErrors.H207.format(found=settings))
    n, ordered = len(calibration.annotated), np.sort(calibration.annotated)
    likely = ordered[int((1 - recall) * n)] if n else 0.0
    independent = int(n / (2 * _design_effect(calibration, likely)))
    chances = binomial(independent, 1 - recall, independent)
    at_least = np.cumsum(chances[::-1])[::-1]  # P(Binomial >= k)
    k = int((at_least[1:] >= confidence).sum())  # it falls with k
    if k < 1:
        needed = int(np.ceil(log(1 - confidence) / log(recall) * max(1, n) / max(1, independent)))
        raise ValueError(CommandErrors.H208.format(found=n, needed=needed, recall=recall))
    threshold = _rounded_down(float(ordered[k * n // independent - 1]))
    if not threshold > 0:
        never = int((calibration.annotated <= 0).sum())
        raise ValueError(CommandErrors.H209.format(found=never, all=n, recall=recall))
    reached = float((calibration.annotated >= threshold).mean())
    return Threshold(recall, confidence, threshold, reached)


def _rounded_down(p: float) -> float:
    """Round down to DIGITS digits, so that the printed threshold is the one that was checked."""
    if p <= 0:
        return 0.0
    unit = 10.0 ** (floor(log10(p)) - DIGITS + 1)
    return float(f"{floor(p / unit) * unit:.{DIGITS}g}")


def _design_effect(calibration: Calibration, threshold: float) -> float:
    """Variance of the share of missed spans from text to text, over that of independent spans; at least 1."""
    _, text = np.unique(calibration.text, return_inverse=True)
    spans = np.bincount(text)
    missed = np.bincount(text, calibration.annotated < threshold)
    share = missed.sum() / max(1, spans.sum())
    expected = share * (1 - share) * spans.sum()
    texts = len(spans)
    if expected == 0 or texts < 2:
        return 1.0
    between = ((missed - share * spans) ** 2).sum() * texts / (texts - 1)
    return max(1.0, float(between / expected))


def _scorer(target: Target) -> Scorer:
    """Return the scorer of a target. RAISES (ValueError): H206 for tags."""
    if isinstance(target, TagsTarget):
        raise ValueError(CommandErrors.H206.format(found=target.place))
    return scorer_of(target)


def _result(
    calibration: Calibration, threshold: Threshold | None, whole: WholeTexts | None
) -> dict[str, Any]:
    """Results to print and to write as JSON."""
    labels = sorted({*calibration.label.tolist(), *calibration.annotated_label.tolist()})
    parts = {"all": calibration, **{label: calibration.of(label) for label in labels}}
    return {
        "bins": calibration.bins(),
        "labels": {
            name: {"annotated": len(part.annotated), **vars(part.reliability())}
            for name, part in parts.items()
        },
        "threshold": None if threshold is None else vars(threshold),
        "texts": None if whole is None else _text_results(whole),
    }


def _text_results(texts: WholeTexts) -> dict[str, float]:
    """Share of entirely right texts, with its 90 % interval from `low` to `high`."""
    n = len(texts.right)
    interval = proportion(texts.right) if n else Interval(0.0, 1.0)
    right = float(texts.right.mean()) if n else 0.0
    errors = texts.errors._asdict()
    return {
        "texts": n,
        "right": right,
        **vars(interval),
        **errors,
        "ece_corrected": texts.corrected().errors.ece,
    }


def _promise_text(acceptance: Acceptance, refused: Mapping[str, str]) -> str:
    """Spell out the promise for accepted texts."""
    share = acceptance.accepted / max(1, acceptance.texts)
    lines = [
        f"\nOf the accepted texts at least {percent(acceptance.level)} % are right as a whole, in texts like "
        f"these and with\na confidence of {percent(acceptance.confidence)} %. Accepted of these "
        f"{acceptance.texts:,}: {acceptance.accepted:,}, {percent(share)} %."
    ]
    if acceptance.by is None:
        assert acceptance.threshold is not None
        least = acceptance.calibrated(acceptance.threshold)
        lines.append(f"Accepted are texts with a probability of at least {least:.4f}.")
    lines += [
        f"{acceptance.by} {group}: at least {acceptance.calibrated(p):.4f}"
        for group, p in acceptance.groups.items()
    ]
    lines += [f"{acceptance.by} {group}: none. {why}" for group, why in refused.items()]
    return "\n".join(lines)


def _print(result: dict[str, Any], threshold: Threshold | None) -> None:
    bins = [
        (
            f"{row['from']:g} to {row['to']:g}",
            row["spans"],
            f"{percent(row['right'])} %",
            f"{percent(row['mean'])} %",
        )
        for row in result["bins"]
    ]
    print(as_table(("probability", "spans", "right", "mean probability"), bins))
    rows = [
        (
            name,
            row["annotated"],
            row["spans"],
            *(f"{row[error]:.3f}" for error in ("ece", "by_chance", "brier")),
        )
        for name, row in result["labels"].items()
    ]
    print(as_table(("label", "annotated", "spans", "ECE", "by chance", "Brier"), rows))
    print(f"spans: those with a probability of at least {MIN_PROBABILITY:g}")
    if (whole := result["texts"]) is not None and whole["texts"]:
        print(
            f"Texts right as a whole: {percent(whole['right'])} % of {whole['texts']:,}, between "
            f"{percent(whole['low'])} % and {percent(whole['high'])} % in 90 of 100\ncases; ECE of the "
            f"probability that all of a text is right: {whole['ece']:.3f}, corrected by the "
            f"other half {whole['ece_corrected']:.3f},\nby chance {whole['by_chance']:.3f}"
        )
    if threshold is not None:
        spans, annotated = result["threshold"]["spans"], result["labels"]["all"]["annotated"]
        shown = f"{threshold.threshold:.{DIGITS}g}"
        print(
            f"\nthreshold = {shown} finds at least {percent(threshold.recall)} % of the annotated spans in "
            f"new texts like these,\nwith a confidence of {percent(threshold.confidence)} %. Here it finds "
            f"{percent(threshold.reached)} % of them, among {spans / max(1, annotated):.2f} spans for each "
            'annotated one.\n`hocrf_spans` with select = "all" and this threshold writes these spans.'
        )
