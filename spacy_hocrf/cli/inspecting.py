"""`python -m spacy hocrf inspect`: what a trained component has learnt, in words."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from spacy.cli._util import import_code
from spacy.language import Language
from spacy.util import load_model
from srsly import write_json
from typer import Argument, Option
from wasabi.tables import table

from spacy_hocrf.cli.components import component_of
from spacy_hocrf.cli.errors import CommandErrors
from spacy_hocrf.cli.inspecting_page import inspection_page
from spacy_hocrf.cli.inspection import Block, Inspection, Weighted
from spacy_hocrf.cli.messages import coded_errors
from spacy_hocrf.cli.writing import is_page
from spacy_hocrf.errors import Errors
from spacy_hocrf.features.index import FeatureIndex
from spacy_hocrf.model.architectures import weights_of
from spacy_hocrf.pipeline.component import SegmentationPipe
from spacy_hocrf.types import CONST

__all__ = ["inspect", "inspect_cli", "lines_of"]

WIDEST = 12
"""Labels whose successions are printed as a matrix; of more, the heaviest ones are listed."""
MOST_BLOCKS = 20
"""Templates that are printed."""
MOST_PATTERNS = 20
SEEN = "feature, and in brackets how often it was seen in training"


def inspect_cli(
    model: Annotated[str, Argument(help="A trained pipeline: a package, or a folder")],
    component: Annotated[
        str | None, Option("--component", help="Its component, if it has several of ours")
    ] = None,
    label: Annotated[
        list[str] | None,
        Option("--label", "-l", help="Features of this label only; may be given several times"),
    ] = None,
    top: Annotated[
        int, Option("--top", "-n", min=1, help="Features for a label, and as many against it")
    ] = 10,
    output: Annotated[
        Path | None,
        Option(
            "--output", "-o", help="Write all of it here: .html a page, else JSON", dir_okay=False
        ),
    ] = None,
    code: Annotated[
        Path | None, Option("--code", "-c", help="Python file with code that the pipeline needs")
    ] = None,
) -> None:
    """Print what a trained component has learnt: its heaviest features, label by label, and what it thinks
    of labels that follow one another.

    DOCS: docs/features.md, "What has it learnt?"
    """
    import_code(code)
    with coded_errors():
        found = inspect(load_model(model), component, label or (), top)
    if output is not None and is_page(output):
        output.write_text(inspection_page(found, MOST_PATTERNS), encoding="utf8")
    elif output is not None:
        write_json(output, asdict(found))
    for line in lines_of(found):
        print(line)


def inspect(
    nlp: Language, component: str | None = None, labels: Sequence[str] = (), top: int = 10
) -> Inspection:
    """What a trained component has learnt.

    component (Optional[str]): its name; None for the only one.
    labels (Sequence[str]): of segments, by default all.
    top (int): features for each label, and as many against it.
    RAISES (ValueError): H204 or H205 for a component or a label that there is not, H042 for one that is
        not trained.
    """
    name, pipe = component_of(nlp, component)
    index, scheme = pipe.structure.index, pipe.structure.scheme
    if index is None or scheme is None:
        raise ValueError(Errors.H042)
    for label in labels:
        if label not in scheme.names:
            known = ", ".join(scheme.names)
            raise ValueError(CommandErrors.H205.format(found=label, known=known))
    weights = weights_of(pipe.model)
    words = _Words(index, nlp, scheme.names, weights)
    chosen = [y for y, each in enumerate(scheme.names) if not labels or each in labels]
    return Inspection(
        component=name,
        lang=nlp.vocab.lang,
        features=len(index),
        order=pipe.structure.settings.order,
        labels=scheme.names,
        blocks=_blocks(pipe, index, weights),
        by_label={scheme.names[y]: words.heaviest(y, top) for y in chosen},
        patterns=words.patterns(),
    )


def lines_of(found: Inspection) -> Iterator[str]:
    """What is printed."""
    yield f"{found.component}: {found.features:,} features, order {found.order}"
    yield table(
        [
            (block.name, f"{block.features:,}", f"{block.total:.1f}", f"{block.largest:.2f}")
            for block in found.blocks[:MOST_BLOCKS]
        ],
        header=("what is looked at", "weights", "sum of |w|", "largest |w|"),
        aligns=("l", "r", "r", "r"),
        divider=True,
    )
    if len(found.blocks) > MOST_BLOCKS:
        yield f"and {len(found.blocks) - MOST_BLOCKS} more, all of which --output has\n"
    for label, features in found.by_label.items():
        yield f"{label}: {SEEN}"
        yield from (f"  {each.weight:+7.2f}  {each.feature} [{each.count:,}]" for each in features)
        yield ""
    pairs = {each.pattern: each.weight for each in found.patterns if each.pattern.count(" ") == 1}
    if pairs and len(found.labels) <= WIDEST:
        yield "What follows what: labels in rows before those in columns"
        yield table(
            [
                (row, *(_number(pairs.get(f"{row} {column}")) for column in found.labels))
                for row in found.labels
            ],
            header=("", *found.labels),
            aligns=("l", *"r" * len(found.labels)),
            divider=True,
        )
    longer = [
        each
        for each in found.patterns
        if each.pattern.count(" ") > 1 or (" " in each.pattern and len(found.labels) > WIDEST)
    ]
    if longer:
        yield "Label patterns by themselves, oldest label first"
        yield from (
            f"  {each.weight:+7.2f}  {each.pattern} [{each.count:,}]"
            for each in longer[:MOST_PATTERNS]
        )


def _number(weight: float | None) -> str:
    return "" if weight is None else f"{weight:+.2f}"


class _Words:
    """The features of a model in words.

    weights (float64 [≥ F]): of the features, and of what lies behind them.
    """

    def __init__(
        self, index: FeatureIndex, nlp: Language, names: Sequence[str], weights: NDArray[np.float64]
    ) -> None:
        self._index, self._strings, self._names = index, nlp.vocab.strings, names
        self._weights = weights[: len(index)]
        self._last = np.array([pattern[-1] for pattern in index.patterns])[index.feature_pattern]
        parts = np.array([template.part for template in index.templates])
        self._alone = (
            parts[index.feature_template] == CONST
            if len(index.templates)
            else np.zeros(0, dtype=bool)
        )

    def heaviest(self, label: int, top: int) -> list[Weighted]:
        """Features whose last label this is, those for it first."""
        mine = np.flatnonzero((self._last == label) & ~self._alone)
        ordered = mine[np.argsort(-self._weights[mine], kind="stable")]
        positive = ordered[self._weights[ordered] > 0][:top]
        negative = ordered[self._weights[ordered] < 0][-top:]
        return [self._weighted(feature) for feature in (*positive, *negative)]

    def patterns(self) -> list[Weighted]:
        """Label patterns that no word is looked at with."""
        alone = np.flatnonzero(self._alone)
        ordered = alone[np.argsort(-np.abs(self._weights[alone]), kind="stable")]
        return [self._weighted(feature) for feature in ordered]

    def _weighted(self, feature: Any) -> Weighted:
        words, pattern = self._index.describe(int(feature), self._strings, self._names)
        count = int(self._index.feature_count[feature])
        shown = words if " " not in pattern else f"{words} after {pattern}"
        weight = float(self._weights[feature])
        return Weighted(weight, words if self._alone[feature] else shown, pattern, count)


def _blocks(
    pipe: SegmentationPipe, index: FeatureIndex, weights: NDArray[np.float64]
) -> list[Block]:
    """Templates with features and dense scores, the heaviest first."""
    found, size = list[Block](), np.abs(weights)
    for number, template in enumerate(index.templates):
        mine = size[: len(index)][index.feature_template == number]
        if len(mine):
            found.append(Block(template.name, len(mine), float(mine.sum()), float(mine.max())))
    first = len(index)
    for name, score in pipe.structure.settings.dense:
        mine = size[first : first + score.width * index.n_labels]
        first += len(mine)
        found.append(Block(name, len(mine), float(mine.sum()), float(mine.max(initial=0.0))))
    return sorted(found, key=lambda block: -block.total)
