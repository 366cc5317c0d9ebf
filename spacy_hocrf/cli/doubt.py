"""`python -m spacy hocrf doubt`: find annotation that is probably wrong, and texts to annotate next.

A model learns the errors of its own training texts. So the texts are split into folds, and each fold is read
by a pipeline trained on the others.

The next texts to annotate are those from which a model would learn most: where it is least sure, measured by
the sum of the entropies of the tokens' labels. But similar texts teach the same. So they are chosen one after
another, and a token counts less, the more of the chosen texts have its word:

    gain(text) = Σ_t H(label of t) · REPEATED ^ (chosen texts with the word of t).

Gains only fall, so a text whose gain is still the largest when it is recomputed is the next one (lazy greedy
selection: Minoux, Optimization Techniques, 1978).
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.cli._util import import_code
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import load_model_from_config
from thinc.api import Config
from tqdm import tqdm
from typer import Argument, Context, Option
from wasabi import msg
from wasabi.tables import table

from spacy_hocrf.annotation.best_readings import ScoredSpan
from spacy_hocrf.annotation.identity import id_of
from spacy_hocrf.annotation.spans import words_of
from spacy_hocrf.annotation.weights import set_weight
from spacy_hocrf.answers.pages import make_page, text_on_page
from spacy_hocrf.answers.reading import Reading
from spacy_hocrf.cli.corpora import read_docs
from spacy_hocrf.cli.doubts import WIDTH, WORTH, ReadText, doubts_of, shortened, text_weights
from spacy_hocrf.cli.errors import CommandErrors
from spacy_hocrf.cli.files import write_docs, write_whole
from spacy_hocrf.cli.options import (
    Code,
    Component,
    ConfigPath,
    Folds,
    Seed,
    check_name,
    is_page,
    overridden,
)
from spacy_hocrf.cli.pipelines import component_of, folds_of, ready_docs, scorer_of, trained
from spacy_hocrf.cli.shown import ShownText
from spacy_hocrf.cli.tasks import DIGITS, AnnotationTask, check_format, ending_of, write_tasks
from spacy_hocrf.pipeline.component import SegmentationPipe

__all__ = ["DoubtPage", "NextText", "cross_read", "doubt_cli", "in_order", "next_texts"]

REPEATED = 0.8
"""Factor on a token's entropy for each chosen text with the same word."""


class DoubtPage:
    """An HTML page of texts with doubtful annotation, to which texts are added one by one.

    least (float): only texts with a doubt of at least this degree are shown.
    """

    def __init__(self, least: float) -> None:
        self._least = least
        self._texts = list[dict[str, Any]]()
        self._labels = list[str]()
        self._lang = ""

    def add(self, text: ReadText, reading: Reading, unknown: NDArray[np.bool_] | None) -> None:
        """Add a text if its largest doubt reaches the degree `least`.

        unknown (Optional[bool [T]]): tokens with unknown annotation.
        """
        if not text.doubts or text.worst() < self._least:
            return
        spans = (*text.annotated, *text.found)
        labels = [*reading.labels, *sorted({span.label for span in spans})]
        self._labels += [label for label in dict.fromkeys(labels) if label not in self._labels]
        self._lang = reading.doc.lang_
        entry = text_on_page(reading, text.found, self._labels, text.annotated, unknown)
        self._texts.append({**entry, "doubt": round(text.worst(), 3), **_place(text)})

    def save(self, path: Path, about: str) -> None:
        """Write the page. about (str): line below its title."""
        title = f"{len(self._texts):,} texts whose annotation may be wrong"
        page = make_page(self._texts, self._labels, title, about, lang=self._lang)
        write_whole(path, page)


class NextText(NamedTuple):
    """A text proposed for annotation."""

    number: int  # from 0
    gain: float  # in nats, when it was chosen
    words: tuple[str, ...]  # tokens, each with the white space behind it
    found: tuple[ScoredSpan, ...]  # the pipeline's predictions
    id: str | None = None  # its id in the file


def doubt_cli(
    ctx: Context,
    config_path: ConfigPath,
    texts: Annotated[
        Path, Argument(help="Annotated texts: a .spacy file, or a folder of them", exists=True)
    ],
    unlabelled: Annotated[
        Path | None,
        Option("--unlabelled", "-u", help="Texts (.spacy) to sort for annotation", exists=True),
    ] = None,
    output: Annotated[
        Path | None,
        Option(
            "--output",
            "-o",
            help="Write the texts here, in this order: .jsonl (.json for label-studio), .spacy (Docs) or "
            ".html (a page)",
            dir_okay=False,
        ),
    ] = None,
    tool: Annotated[
        str, Option("--format", help="Format of the output: prodigy, doccano or label-studio")
    ] = "prodigy",
    page: Annotated[
        Path | None,
        Option("--page", help="Write the doubtful texts as a page (HTML)", dir_okay=False),
    ] = None,
    weights: Annotated[
        Path | None,
        Option(
            "--weights",
            help="Write all texts here (.spacy), each with a training weight, doc._.hocrf_weight",
            dir_okay=False,
        ),
    ] = None,
    least: Annotated[
        float, Option("--least", min=0, max=1, help="Smallest doubt to report")
    ] = WORTH,
    most: Annotated[int, Option("--most", "-n", min=0, help="Number of doubts to print")] = 25,
    folds: Folds = 5,
    seed: Seed = 0,
    component: Component = None,
    code: Code = None,
) -> None:
    """Find annotation that is probably wrong, and show what a model would have annotated. With --unlabelled,
    sort unannotated texts by how much a model would learn from them.

    The pipeline is trained as by `spacy train`. To find errors, each fold is read by the last model trained
    on the other folds; for --unlabelled, the model is trained on all annotated texts. Settings are overridden
    as in `spacy train`.

    DOCS: docs/page.md, "Which annotation is wrong, and what to annotate next?"
    """
    import_code(code)
    check_format(tool)
    check_name("--page", page, "page")
    check_name("--weights", weights, "docs")
    if output is not None and is_page(output):
        page, output = page or output, None
    if unlabelled is not None:
        reason = f"left out with --unlabelled; draw {unlabelled.name} with hocrf show"
        for option, path in (("--page", page), ("--weights", weights)):
            if path is not None:
                text = CommandErrors.H074.format(option=option, found=path, expected=reason)
                raise ValueError(text)
            reason = "left out with --unlabelled"
    suffixes = (ending_of(tool), ".spacy", ".html")
    if output is not None and output.suffix not in suffixes:
        raise ValueError(CommandErrors.H351.format(found=output.name, known=", ".join(suffixes)))
    config = overridden(config_path, ctx)
    docs = read_docs(texts, least=1)
    if unlabelled is None:
        doubt_page = None if page is None else DoubtPage(least)
        read = cross_read(config, docs, component, folds=folds, seed=seed, page=doubt_page)
        tasks = _doubted_tasks(read, least, most)
        if weights is not None:
            _write_weights(weights, docs, read)
    else:
        docs, annotated, doubt_page = read_docs(unlabelled, least=1), docs, None
        nlp = _trained(config, annotated, component)
        tasks = _next_tasks(next_texts(nlp, docs, component), most)
    if doubt_page is not None and page is not None:
        doubt_page.save(page, f"{config_path} · {texts.name}")
        msg.good("Saved the page", page)
    if output is not None:
        if output.suffix == ".spacy":
            write_docs(output, [docs[task.meta["number"]] for task in tasks])
        else:
            write_tasks(output, tasks, tool)
        msg.good(f"Saved {len(tasks)} texts", output)


def cross_read(
    config: Config,
    docs: Sequence[Doc],
    component: str | None = None,
    *,
    folds: int = 5,
    seed: int = 0,
    page: DoubtPage | None = None,
) -> list[ReadText]:
    """Read each annotated text with a pipeline trained on other texts.

    config (Config): config of that pipeline, not interpolated; its training corpus is replaced.
    docs (Sequence[Doc]): texts; those without annotation are skipped.
    component (Optional[str]): name of the component; None for the only one of ours.
    folds, seed (int): number of parts into which the texts are split at random, equal texts and those that
        are decoded together into the same part, and the seed.
    page (Optional[DoubtPage]): page to which the texts are added.
    RAISES (ValueError): H204 for an unknown component, H237 without annotation, H077 for too few texts,
        H184 or H185 for a pipeline that cannot be trained on other texts.
    """
    name, pipe, numbers = _annotated(config, docs, component)
    attribute = pipe.group_by
    parts = folds_of([docs[i] for i in numbers], folds, seed, attribute)
    read = list[ReadText]()
    for part in tqdm(parts, desc="Cross-fitting", disable=None, leave=False):
        held_out = [numbers[i] for i in part]
        others = [docs[i] for i in sorted({*numbers} - {*held_out})]
        nlp = trained(config, others, best=False)
        read += _read_texts(nlp, name, docs, held_out, page)
    return sorted(read, key=lambda text: text.number)


def _annotated(
    config: Config, docs: Sequence[Doc], component: str | None
) -> tuple[str, SegmentationPipe, list[int]]:
    """Return name and component, untrained, and the numbers of the texts that are annotated for it.

    RAISES (ValueError): H204 for an unknown component, H237 without annotation.
    """
    name, pipe = component_of(load_model_from_config(config, auto_fill=True), component)
    scorer = scorer_of(pipe.target)
    numbers = [i for i, doc in enumerate(docs) if scorer.annotated(doc)]
    if not any(scorer.items(docs[i]) for i in numbers):
        raise ValueError(CommandErrors.H237.format(found=len(docs), place=scorer.place, name=name))
    return name, pipe, numbers


def _trained(config: Config, docs: Sequence[Doc], component: str | None) -> Language:
    """Train the pipeline on all annotated texts. RAISES (ValueError): H184, H185, H204 or H237."""
    _, _, numbers = _annotated(config, docs, component)
    return trained(config, [docs[i] for i in numbers], best=False)


def _read_texts(
    nlp: Language,
    name: str,
    docs: Sequence[Doc],
    held_out: Sequence[int],
    page: DoubtPage | None,
) -> list[ReadText]:
    """Read the held-out texts with a pipeline."""
    _, pipe = component_of(nlp, name)
    scorer = scorer_of(pipe.target)
    ready = ready_docs(nlp, [docs[i] for i in held_out], name)
    read = []
    readings = pipe.readings(ready, keeps_own=True)
    for number, reading, prediction in zip(held_out, readings, pipe.predict(ready)):
        items, unknown = scorer.items(docs[number]), scorer.unknown(docs[number])
        text = ShownText(reading, pipe.target)
        predicted = tuple(text.predictions(prediction))
        doubts = doubts_of(number, text, items, unknown)
        ordered = tuple(sorted(doubts, key=lambda doubt: -doubt.degree))
        annotated = tuple(doubt.annotated for doubt in doubts if doubt.annotated is not None)
        words = tuple(words_of(docs[number]))
        read.append(ReadText(number, words, annotated, predicted, ordered, id_of(docs[number])))
        if page is not None:
            page.add(read[-1], reading, unknown)
    return read


def _write_weights(path: Path, docs: Sequence[Doc], read: Sequence[ReadText]) -> None:
    """Write all texts; those that were read get a weight."""
    weights, wrong = text_weights(read)
    for text, weight in zip(read, weights, strict=True):
        set_weight(docs[text.number], weight)
    write_docs(path, docs)
    mean = float(np.mean(weights))
    msg.good(f"Saved {len(docs)} texts, worth {mean:.2f} on average, with {wrong:.1%} wrong", path)


def _doubted_tasks(read: Sequence[ReadText], least: float, most: int) -> list[AnnotationTask]:
    """Print the largest doubts. RETURNS (list[AnnotationTask]): the doubtful texts, the worst first."""
    doubted = sorted(
        (text for text in read if text.doubts and text.worst() >= least),
        key=lambda text: -text.worst(),
    )
    _print(doubted, least, most, len(read))
    return [_doubt_task(text, least) for text in doubted]


def _next_tasks(texts: Sequence[NextText], most: int) -> list[AnnotationTask]:
    """Print the first of the texts to annotate. RETURNS (list[AnnotationTask]): all of them."""
    rows = [
        (
            str(place),
            f"{text.gain:.2f}",
            str(text.number if text.id is None else text.id),
            shortened(text.words, 2 * WIDTH),
        )
        for place, text in enumerate(texts[:most], 1)
    ]
    header = ("", "gain", "text", "begins")
    print(table(rows, header=header, aligns=(*"rrrl",), divider=True, max_col=2 * WIDTH))
    print(f"{len(texts)} texts, sorted by what a model would learn from them")
    return [
        AnnotationTask(
            text.words,
            None,
            text.found,
            {**_place(text), "gain": round(text.gain, DIGITS)},
        )
        for text in texts
    ]


def _place(text: ReadText | NextText) -> dict[str, Any]:
    """Number and id of a text in its file."""
    return {"number": text.number} | ({} if text.id is None else {"id": text.id})


def _doubt_task(text: ReadText, least: float) -> AnnotationTask:
    """Make a task of a text with all its doubts of at least this degree, the largest first."""
    doubts = [doubt for doubt in text.doubts if doubt.degree >= least]
    meta = {
        **_place(text),
        "doubt": round(text.worst(), DIGITS),
        "worst": f"{text.spell(doubts[0].annotated)} → {text.spell(doubts[0].answer)}",
        "doubts": [
            {
                "doubt": round(doubt.degree, DIGITS),
                "annotated": text.spell(doubt.annotated),
                "annotated_probability": round(doubt.annotated_chance, DIGITS),
                "model": text.spell(doubt.answer),
                "model_probability": round(doubt.answer_chance, DIGITS),
            }
            for doubt in doubts
        ],
    }
    return AnnotationTask(text.words, text.annotated, text.found, meta)


def _print(doubted: Sequence[ReadText], least: float, most: int, texts: int) -> None:
    doubts = sorted(
        ((doubt, text) for text in doubted for doubt in text.doubts if doubt.degree >= least),
        key=lambda pair: -pair[0].degree,
    )
    rows = [
        (
            str(number),
            f"{doubt.degree:.3f}",
            text.name,
            text.spell(doubt.annotated),
            f"{doubt.annotated_chance:.3f}",
            text.spell(doubt.answer),
            f"{doubt.answer_chance:.3f}",
        )
        for number, (doubt, text) in enumerate(doubts[:most], 1)
    ]
    header = ("", "doubt", "text", "annotated", "P", "model", "P")
    print(table(rows, header=header, aligns=(*"rrrlrlr",), divider=True, max_col=2 * WIDTH))
    print(f"{len(doubts)} doubts of {least:g} and more, in {len(doubted)} of {texts} texts")


def next_texts(nlp: Language, docs: Sequence[Doc], component: str | None = None) -> list[NextText]:
    """Sort texts into the order in which to annotate them; the pipeline does not see their annotation.

    component (Optional[str]): name of the component; None for the only one of ours.
    RAISES (ValueError): H204 for an unknown component.
    """
    name, pipe = component_of(nlp, component)
    ready = ready_docs(nlp, docs, name)
    words = [tuple(words_of(doc)) for doc in ready]
    entropies, predicted = [], []
    readings = pipe.readings(ready, keeps_own=True)
    for reading, prediction in zip(readings, pipe.predict(ready), strict=True):
        entropies.append(reading.token_entropy())
        predicted.append(tuple(ShownText(reading, pipe.target).predictions(prediction)))
    keys = [[word.strip().lower() for word in text] for text in words]
    return [
        NextText(i, gain, words[i], predicted[i], id_of(docs[i]))
        for i, gain in in_order(entropies, keys)
    ]


def in_order(
    entropies: Sequence[NDArray[np.float64]], words: Sequence[Sequence[str]]
) -> Iterable[tuple[int, float]]:
    """Yield number and gain of each text; the next one has the largest gain given those chosen before.

    entropies (Sequence[float64 [T]]): entropies of each text's tokens. words (Sequence[Sequence[str]]): its
        words.
    """
    chosen = Counter[str]()

    def gain(text: int) -> float:
        shares = REPEATED ** np.array([chosen[word] for word in words[text]], dtype=np.float64)
        return float(entropies[text] @ shares)

    heap = [(-gain(text), text) for text in range(len(words))]
    heapq.heapify(heap)
    while heap:
        _, text = heapq.heappop(heap)
        updated = (-gain(text), text)
        if heap and heap[0] < updated:
            heapq.heappush(heap, updated)
        else:
            chosen.update({*words[text]})
            yield text, -updated[0]
