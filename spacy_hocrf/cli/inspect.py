"""`python -m spacy hocrf inspect`: show what a trained component has learnt; with --grammar, propose a
grammar of the label sequences of annotated texts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from spacy.cli._util import import_code
from spacy.language import Language
from spacy.util import load_model
from typer import Argument, Option

from spacy_hocrf.cli.errors import CommandErrors
from spacy_hocrf.cli.files import write_json
from spacy_hocrf.cli.grammar import grammar_lines, read_grammar
from spacy_hocrf.cli.options import Code, Component, Results, SpansKey, check_name
from spacy_hocrf.cli.pipelines import component_of
from spacy_hocrf.cli.tables import as_table
from spacy_hocrf.features.index import FeatureIndex
from spacy_hocrf.model.architectures import weights_of
from spacy_hocrf.pipeline.component import SegmentationPipe
from spacy_hocrf.rules.proposals import ProposedGrammar
from spacy_hocrf.types import CONST

__all__ = ["Inspection", "TemplateWeights", "Weighted", "inspect", "inspect_cli", "lines_of"]

MAX_MATRIX_LABELS = 12
"""Most labels whose bigram weights are printed as a matrix; with more, the heaviest are listed."""
MAX_TEMPLATES = 20
"""Number of templates that are printed."""
MAX_PATTERNS = 20
SHARE = 0.99
SEEN = "feature, and in brackets how often it was seen in training"


@dataclass(frozen=True)
class Weighted:
    """A feature and its weight."""

    weight: float
    feature: str  # its observation, in words
    pattern: str  # labels of consecutive segments, oldest first
    count: int  # how often it was seen in training


@dataclass(frozen=True)
class TemplateWeights:
    """The features of one template, or the weights of one dense score."""

    name: str
    features: int
    total: float  # sum of the weights' absolute values
    largest: float  # largest of these absolute values


@dataclass(frozen=True)
class Inspection:
    """A trained component's features and weights."""

    component: str
    features: int
    order: int
    labels: tuple[str, ...]  # of the model's segments
    blocks: list[TemplateWeights]  # the heaviest first
    # the heaviest features for and against each label, by weight
    by_label: dict[str, list[Weighted]]
    # weights of label patterns alone, the heaviest first
    patterns: list[Weighted]


def inspect_cli(
    model: Annotated[
        str,
        Argument(
            help="A trained pipeline: a package, or a folder; with --grammar, annotated texts (.spacy)"
        ),
    ],
    component: Component = None,
    label: Annotated[
        list[str] | None,
        Option("--label", "-l", help="Features of this label only; may be given several times"),
    ] = None,
    top: Annotated[
        int,
        Option(
            "--top",
            "-n",
            min=1,
            help="Number of features for each label, and as many against it; with --grammar, number of label "
            "sequences that break it",
        ),
    ] = 10,
    grammar: Annotated[
        bool,
        Option("--grammar", "-g", help="Propose a grammar that nearly all annotated texts follow"),
    ] = False,
    share: Annotated[
        float | None,
        Option(
            "--share",
            "-s",
            min=0.5,
            max=1.0,
            help=f"Smallest share of texts that follow it: by default {SHARE}",
        ),
    ] = None,
    spans_key: SpansKey = None,
    output: Results = None,
    code: Code = None,
) -> None:
    """Print what a trained component has learnt: its heaviest features by label, and the weights of label
    sequences. With --grammar, propose a grammar that nearly all annotated texts follow.

    DOCS: docs/features.md, "What has it learnt?"; docs/records.md, "What a record looks like"
    """
    check_name("--output", output, "data")
    result: ProposedGrammar | Inspection
    if grammar:
        result = read_grammar(model, SHARE if share is None else share, spans_key)
        name = component or ("hocrf" if spans_key is None else "hocrf_spans")
        lines = grammar_lines(result, name, top)
    else:
        import_code(code)
        result = inspect(load_model(model), component, label or (), top)
        lines = lines_of(result)
    if output is not None:
        write_json(output, asdict(result))
    for line in lines:
        print(line)


def inspect(
    nlp: Language, component: str | None = None, labels: Sequence[str] = (), top: int = 10
) -> Inspection:
    """Collect the features and weights of a trained component.

    component (Optional[str]): its name; None for the only one.
    labels (Sequence[str]): labels of segments; by default all.
    top (int): number of features for each label, and as many against it.
    RAISES (ValueError): H204 or H205 for an unknown component or label, H042 if it is not trained.
    """
    name, pipe = component_of(nlp, component)
    index, scheme = pipe.structure.index, pipe.structure.scheme
    for label in labels:
        if label not in scheme.names:
            raise ValueError(CommandErrors.H205.format(found=label, known=", ".join(scheme.names)))
    weights = weights_of(pipe.model)
    words = _Words(index, nlp, scheme.names, weights)
    chosen = [y for y, label in enumerate(scheme.names) if not labels or label in labels]
    return Inspection(
        component=name,
        features=len(index),
        order=pipe.structure.settings.order,
        labels=scheme.names,
        blocks=_blocks(pipe, index, weights),
        by_label={scheme.names[y]: words.heaviest(y, top) for y in chosen},
        patterns=words.patterns(),
    )


def lines_of(inspection: Inspection) -> Iterator[str]:
    """Yield the lines to print for an inspection."""
    yield f"{inspection.component}: {inspection.features:,} features, order {inspection.order}"
    blocks = [
        (block.name, block.features, f"{block.total:.1f}", f"{block.largest:.2f}")
        for block in inspection.blocks[:MAX_TEMPLATES]
    ]
    yield as_table(("template", "weights", "sum of |w|", "largest |w|"), blocks)
    if len(inspection.blocks) > MAX_TEMPLATES:
        yield f"and {len(inspection.blocks) - MAX_TEMPLATES} more, which --output writes, too\n"
    for label, features in inspection.by_label.items():
        yield f"{label}: {SEEN}"
        yield from (f"  {w.weight:+7.2f}  {w.feature} [{w.count:,}]" for w in features)
        yield ""
    pairs = {w.pattern: w.weight for w in inspection.patterns if w.pattern.count(" ") == 1}
    has_matrix = len(inspection.labels) <= MAX_MATRIX_LABELS
    if pairs and has_matrix:
        yield "Label pairs: a row's label, followed by a column's"
        weights = [
            (row, *(_number(pairs.get(f"{row} {column}")) for column in inspection.labels))
            for row in inspection.labels
        ]
        yield as_table(("", *inspection.labels), weights)
    shortest = 3 if has_matrix else 2
    longer = [w for w in inspection.patterns if len(w.pattern.split(" ")) >= shortest]
    if longer:
        yield "Label patterns alone, oldest label first"
        yield from (f"  {w.weight:+7.2f}  {w.pattern} [{w.count:,}]" for w in longer[:MAX_PATTERNS])


def _number(weight: float | None) -> str:
    return "" if weight is None else f"{weight:+.2f}"


class _Words:
    """Describes the features of a model in words.

    weights (float64 [≥ F]): weights of the features, and of the dense scores after them.
    """

    def __init__(
        self, index: FeatureIndex, nlp: Language, names: Sequence[str], weights: NDArray[np.float64]
    ) -> None:
        self._index, self._strings, self._names = index, nlp.vocab.strings, names
        self._weights = weights[: len(index)]
        self._last = np.array([pattern[-1] for pattern in index.patterns])[index.feature_pattern]
        parts = np.array([template.part for template in index.templates])
        self._alone = parts[index.feature_template] == CONST

    def heaviest(self, label: int, top: int) -> list[Weighted]:
        """The heaviest features whose last label this is, those for it first."""
        features = np.flatnonzero((self._last == label) & ~self._alone)
        ordered = features[np.argsort(-self._weights[features], kind="stable")]
        positive = ordered[self._weights[ordered] > 0][:top]
        negative = ordered[self._weights[ordered] < 0][-top:]
        return [self._weighted(feature) for feature in (*positive, *negative)]

    def patterns(self) -> list[Weighted]:
        """Weights of label patterns alone, without an observation, the heaviest first."""
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
) -> list[TemplateWeights]:
    """Sum up the weights of each template and each dense score, the heaviest first."""
    sizes, first = np.abs(weights), len(index)
    blocks = [
        (template.name, sizes[:first][index.feature_template == number])
        for number, template in enumerate(index.templates)
        if (index.feature_template == number).any()
    ]
    for name, score in pipe.structure.settings.dense:
        blocks.append((name, sizes[first : first + score.width * index.n_labels]))
        first += len(blocks[-1][1])
    rows = (
        TemplateWeights(name, len(block), float(block.sum()), float(block.max(initial=0.0)))
        for name, block in blocks
    )
    return sorted(rows, key=lambda row: -row.total)
