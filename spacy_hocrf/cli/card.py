"""`python -m spacy hocrf card`: a model card for whoever gets the model.

The card is Markdown in the `notes` of the pipeline's meta.json, from where `spacy package` copies it into the
README of the package.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from spacy.cli._util import import_code
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import load_model
from srsly import read_json
from typer import Argument, Option
from wasabi import msg
from wasabi.markdown import MarkdownRenderer

from spacy_hocrf.annotation.acceptance import Acceptance
from spacy_hocrf.annotation.targets import TagsTarget
from spacy_hocrf.cli.accept import whole_texts
from spacy_hocrf.cli.auto.estimates import Score, SpanCounts, proportion, scores
from spacy_hocrf.cli.calibrate import calibrate
from spacy_hocrf.cli.compare import read_gold
from spacy_hocrf.cli.counts import count_items, is_complete
from spacy_hocrf.cli.files import write_json, write_whole
from spacy_hocrf.cli.options import Code, Component
from spacy_hocrf.cli.pipelines import component_of, predictions, scorer_of, with_other_tokens
from spacy_hocrf.cli.show import CURVE_FILE, read_curve
from spacy_hocrf.cli.tables import percent
from spacy_hocrf.model.architectures import weights_of

__all__ = ["card", "card_cli", "card_of_scores", "drop_scores"]

META = "meta.json"
TITLE = "How good it is"
HEADER = ("Label", "F1", "90 % interval", "P", "R", "Annotated")


def card_cli(
    model: Annotated[
        Path, Argument(help="Folder of a trained pipeline", exists=True, file_okay=False)
    ],
    gold: Annotated[
        Path,
        Argument(
            help="Annotated texts the model has not learnt (.spacy)", exists=True, dir_okay=False
        ),
    ],
    component: Component = None,
    output: Annotated[
        Path | None,
        Option("--output", "-o", help="Also write the card here (Markdown)", dir_okay=False),
    ] = None,
    code: Code = None,
) -> None:
    """Evaluate a model and write a model card into its meta.json, which `spacy package` puts into the README:
    scores on these texts, how far its probabilities can be trusted, which texts it accepts unread, and the
    settings that training chose.

    DOCS: docs/handing-on.md
    """
    import_code(code)
    nlp = load_model(model)
    name, pipe = component_of(nlp, component)
    docs = read_gold(gold, scorer_of(pipe.target))
    text = card(nlp, docs, name, read_curve(model.parent / CURVE_FILE))
    write_json(model / META, {**read_json(model / META), "notes": text})
    if output is not None:
        write_whole(output, text)
    print(text)
    msg.good(f"Saved in {model / META}: spacy package puts it into the README of the package")


def card(
    nlp: Language,
    docs: Sequence[Doc],
    component: str | None = None,
    curve: Mapping[str, Any] | None = None,
) -> str:
    """Evaluate a model and make its card, in Markdown.

    docs (Sequence[Doc]): annotated texts that it was not trained on; it does not see their annotation.
    component (Optional[str]): its name; None for the only one of ours.
    curve (Optional[Mapping[str, Any]]): F1 by texts, as `hocrf auto` writes it.
    RAISES (ValueError): H204 for an unknown component.
    """
    name, pipe = component_of(nlp, component)
    scorer = scorer_of(pipe.target)
    predicted = list(predictions(nlp, docs))
    counts = count_items(scorer, [predicted], docs)
    paragraphs = [f"Measured on {len(docs):,} texts that the model has not learnt from."]
    if other := with_other_tokens(nlp, docs):
        paragraphs[0] += (
            f" {other:,} of them have other tokens than nlp(text) makes, which may find more or less."
        )
    if not isinstance(pipe.target, TagsTarget):
        reliability = calibrate(nlp, docs, name).reliability()
        paragraphs.append(
            f"Probabilities of spans are off by {percent(reliability.ece)} percentage points on average "
            f"(expected calibration error, {reliability.spans:,} spans; {percent(reliability.by_chance)} by "
            "chance alone)."
        )
    paragraphs += _accepted(nlp, name, docs)
    columns = (counts.correct[0], counts.predicted[0], counts.gold)
    spans = SpanCounts(*(column.astype(np.int64) for column in columns))
    total, *by_label = scores(spans, 0.0, 0)
    rows = sorted(zip(counts.labels, by_label, strict=True), key=lambda row: -row[1].gold)
    return card_of_scores(nlp, name, [("all", total), *rows], counts.whole()[0], paragraphs, curve)


def card_of_scores(
    nlp: Language,
    name: str,
    rows: Iterable[tuple[str, Score]],
    whole: Any,
    paragraphs: Sequence[str],
    curve: Mapping[str, Any] | None,
) -> str:
    """Make a card from scores that were already computed.

    name (str): of the component. rows (Iterable[Tuple[str, Score]]): all labels together, then each.
    whole (bool [n]): for each completely annotated text, is it entirely right?
    paragraphs (Sequence[str]): further paragraphs on the scores.
    curve (Optional[Mapping[str, Any]]): F1 by number of training texts.
    """
    text = MarkdownRenderer()
    text.add(text.title(3, TITLE))
    table = [
        (
            re.sub(r"[\\`*\[<|]", r"\\\g<0>", label),
            percent(score.f),
            f"{percent(score.interval.low)} to {percent(score.interval.high)}",
            percent(score.precision),
            percent(score.recall),
            f"{score.gold:,}",
        )
        for label, score in rows
    ]
    text.add(text.table(table, HEADER))
    if len(whole):
        right = proportion(np.asarray(whole))
        paragraphs = [
            *paragraphs,
            f"Right as a whole, all spans found and no others: {percent(np.mean(whole))} % of the texts, "
            f"between {percent(right.low)} and {percent(right.high)} in 90 of 100 cases.",
        ]
    for paragraph in paragraphs:
        text.add(paragraph)
    if curve is not None:
        points = [f"{percent(point['f'])} with {point['texts']:,}" for point in curve["points"]]
        text.add(f"F1 by texts learnt from, the last one extrapolated: {', '.join(points)}.")
    text.add(text.title(3, "What it is"))
    text.add(text.list(list(_facts(nlp, name))))
    return str(text.text)


def drop_scores(nlp: Language, acceptance: Acceptance | None) -> None:
    """Remove from a pipeline's meta what was measured before its model changed: a card, and the scores of
    `spacy train`; and say what is lost.

    acceptance (Optional[Acceptance]): that of the component before.
    """
    scores, notes = nlp.meta.pop("performance", None), nlp.meta.get("notes") or ""
    if carded := notes.startswith(f"### {TITLE}"):
        del nlp.meta["notes"]
    if scores or carded:
        msg.info("Its meta.json had scores of the model before: measure again, by hocrf card")
    if acceptance is not None:
        msg.info(
            "It accepts no texts unread any more: find a threshold, by hocrf calibrate --accept"
        )


def _accepted(nlp: Language, name: str, docs: Sequence[Doc]) -> Iterator[str]:
    """Describe which texts are accepted unread, if any."""
    _, pipe = component_of(nlp, name)
    acceptance = pipe.acceptance
    if acceptance is None:
        return
    complete = [doc for doc in docs if is_complete(scorer_of(pipe.target), doc)]
    texts = whole_texts(nlp, complete, name, behind=False)
    accepted = [acceptance.accepts(doc, p) for doc, p in zip(complete, texts.probability.tolist())]
    right = texts.right[accepted]
    share = len(right) / max(1, len(accepted))
    yield (
        f"Accepted unread: {percent(share)} % of the texts. Of these {len(right):,}, {right.sum():,} are "
        f"right as a whole. Promised are {percent(acceptance.level)} %, with a confidence of "
        f"{percent(acceptance.confidence)} %, for texts like those that the threshold was found on."
    )


def _facts(nlp: Language, name: str) -> Iterator[str]:
    """Describe a component and the settings that training chose."""
    _, pipe = component_of(nlp, name)
    order, choice = pipe.structure.settings.order, pipe.choice
    before = "the label of the segment" if order == 1 else f"the labels of the {order} segments"
    yield (
        f"`{name}`, a high-order semi-Markov conditional random field (spacy-hocrf): order {order}, its "
        f"features see {before} before; {len(weights_of(pipe.model)):,} weights"
    )
    if choice is None:
        yield "All of its settings are in its config"
        return
    chosen = {"sigma": choice.sigma, "order": choice.order, "wide": choice.wide}
    settings = [f"{key} = {value:g}" for key, value in chosen.items() if value is not None]
    if settings:
        how = (
            f"by the loss of {choice.documents:,} texts held back"
            if choice.documents
            else "by default"
        )
        yield f"{', '.join(settings)}: chosen {how}"
    if choice.cost is not None:
        yield f"cost = {choice.cost:.2g}, of the decoder: learnt by cross-validation"
    if choice.temperature is not None:
        yield f"Probabilities tempered: temperature {choice.temperature:.2f}"
