"""`python -m spacy hocrf extend`: train a pipeline further on new texts or labels, forgetting little."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from spacy.cli._util import import_code
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import load_model
from typer import Argument, Option
from wasabi import msg

from spacy_hocrf.cli.card import drop_scores
from spacy_hocrf.cli.compare import read_gold
from spacy_hocrf.cli.corpora import read_docs
from spacy_hocrf.cli.counts import Counts, count_items
from spacy_hocrf.cli.options import Code, Component, Force, Model, written
from spacy_hocrf.cli.pipelines import (
    component_of,
    predictions,
    ready_docs,
    scorer_of,
    with_other_tokens,
)
from spacy_hocrf.cli.randomization import f1
from spacy_hocrf.cli.tables import as_table
from spacy_hocrf.learning.extending import EXTEND_SIGMA

__all__ = ["extend", "extend_cli"]


def extend_cli(
    model: Model,
    texts: Annotated[
        Path,
        Argument(help="Annotated texts (.spacy)", exists=True, dir_okay=False),
    ],
    output: Annotated[Path, Argument(help="Folder for the pipeline", file_okay=False)],
    dev: Annotated[
        Path | None,
        Option(
            "--dev",
            "-d",
            help="Texts annotated with all labels (.spacy), to print F1 by label before and after",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    complete: Annotated[
        bool | None,
        Option(
            "--complete/--alone",
            help="Are all labels annotated in the texts, or those alone that occur there? By default those "
            "alone, if all of them are new",
        ),
    ] = None,
    sigma: Annotated[
        float | None,
        Option(
            min=1e-9,
            help="How far existing weights may change, as a standard deviation: by default "
            f"{EXTEND_SIGMA:g} with new labels, else the trainer's adapt_sigma",
        ),
    ] = None,
    component: Component = None,
    code: Code = None,
    force: Force = False,
) -> None:
    """Train a trained pipeline further on more texts, keeping what it knows, and save it. To teach it one
    more label, annotate only that one.

    DOCS: docs/training.md, "Resuming" and "One more label"
    """
    import_code(code)
    nlp = load_model(model)
    name, pipe = component_of(nlp, component)
    scorer = scorer_of(pipe.target)
    docs = read_docs(texts)
    gold = [] if dev is None else read_gold(dev, scorer)
    before, acceptance = [*predictions(nlp, gold)], pipe.acceptance
    alone = None if complete is None else not complete
    with written(output, force=force) as folder:
        new = extend(nlp, docs, name, alone=alone, sigma=sigma)
        drop_scores(nlp, acceptance)
        nlp.to_disk(folder)
    msg.info(f"{len(docs)} texts, new labels: {', '.join(new) or 'none'}")
    if other := with_other_tokens(nlp, docs):
        msg.warn(
            f"{other:,} of {len(docs):,} texts have other tokens than the pipeline makes of them: what was "
            "learnt from them may not be found in nlp(text)."
        )
    if not (new or pipe.gold.positives_only) and complete is None:
        annotated = {y for doc in docs for y in pipe.gold.annotation(Example(doc, doc)).labels}
        if absent := ", ".join(label for label in pipe.labels if label not in annotated):
            msg.info(f"No text has {absent}: learnt as well. If only others are annotated: --alone")
    if gold:
        print(_table(count_items(scorer, [before, [*predictions(nlp, gold)]], gold), new))
    msg.good(f"The pipeline is in {output}")


def extend(
    nlp: Language,
    docs: Sequence[Doc],
    component: str | None = None,
    *,
    alone: bool | None = None,
    sigma: float | None = None,
) -> list[str]:
    """Train a pipeline's component further on annotated documents, whose annotation earlier components do
    not see; see `SegmentationPipe.extend`.

    RETURNS (List[str]): the new labels.
    RAISES (ValueError): H204 without such a component, and the errors of `SegmentationPipe.extend`.
    """
    name, pipe = component_of(nlp, component)
    examples = map(Example, ready_docs(nlp, docs, name), docs)
    return pipe.extend(examples, alone=alone, sigma=sigma)


def _table(counts: Counts, new: Sequence[str]) -> str:
    """Table of F1 before and after: of all known labels together, and of each label."""
    known = [label not in new for label in counts.labels]
    sums = [each.sum(axis=-2) for each in (counts.correct, counts.predicted, counts.gold)]
    labels = [("all of before", known), *((label, [i]) for i, label in enumerate(counts.labels))]
    rows = []
    for name, chosen in labels:
        scores = f1(*(each[..., chosen].sum(axis=-1) for each in sums))
        rows.append((name, *(f"{100 * score:.1f}" for score in scores)))
    return as_table(("F1", "before", "after"), rows)
