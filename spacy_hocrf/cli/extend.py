"""`python -m spacy hocrf extend`: teach a pipeline more texts, and more labels, and forget little."""

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

from spacy_hocrf.cli.compare import read_gold
from spacy_hocrf.cli.counts import Counts, count_items
from spacy_hocrf.cli.options import Code, Component, Force, Model, written
from spacy_hocrf.cli.pipelines import component_of, predictions, ready_docs, scorer_of
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
            help="Texts annotated with all labels (.spacy): prints F1 of labels before and after",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    complete: Annotated[
        bool | None,
        Option(
            "--complete/--new-alone",
            help="Are all labels annotated in the texts, or the new ones alone? By default the new ones "
            "alone where no other label occurs",
        ),
    ] = None,
    sigma: Annotated[
        float | None,
        Option(
            help="How far the weights there are may change, a standard deviation: by default "
            f"{EXTEND_SIGMA:g} with new labels, else the trainer's adapt_sigma"
        ),
    ] = None,
    component: Component = None,
    code: Code = None,
    force: Force = False,
) -> None:
    """Teach a trained pipeline more texts, and write it: what it knows it keeps. If they have labels that it
    does not have, these alone need be annotated.

    DOCS: docs/training.md, "Resuming" and "One more label"
    """
    import_code(code)
    nlp = load_model(model)
    name, pipe = component_of(nlp, component)
    scorer = scorer_of(pipe.target)
    docs = read_gold(texts, scorer)
    gold = [] if dev is None else read_gold(dev, scorer)
    before = [*predictions(nlp, gold)]
    alone = None if complete is None else not complete
    with written(output, force=force) as folder:
        new = extend(nlp, docs, name, new_alone=alone, sigma=sigma)
        nlp.to_disk(folder)
    msg.info(f"{len(docs)} texts, new labels: {', '.join(new) or 'none'}")
    if gold:
        print(_table(count_items(scorer, [before, [*predictions(nlp, gold)]], gold), new))
    msg.good(f"The pipeline is in {output}")


def extend(
    nlp: Language,
    docs: Sequence[Doc],
    component: str | None = None,
    *,
    new_alone: bool | None = None,
    sigma: float | None = None,
) -> list[str]:
    """Teach the component of a pipeline more, by annotated documents of which it gets no annotation; see
    `SegmentationPipe.extend`.

    RETURNS (List[str]): labels that it did not have.
    RAISES (ValueError): H204 without such a component, and as that.
    """
    name, pipe = component_of(nlp, component)
    examples = map(Example, ready_docs(nlp, docs, name), docs)
    return pipe.extend(examples, new_alone=new_alone, sigma=sigma)


def _table(counts: Counts, new: Sequence[str]) -> str:
    """F1 of the labels that were there, together, and of each label, before and after."""
    known = [label not in new for label in counts.labels]
    sums = [each.sum(axis=-2) for each in (counts.correct, counts.predicted, counts.gold)]
    labels = [("all of before", known), *((label, [i]) for i, label in enumerate(counts.labels))]
    rows = []
    for name, chosen in labels:
        scores = f1(*(each[..., chosen].sum(axis=-1) for each in sums))
        rows.append((name, *(f"{100 * score:.1f}" for score in scores)))
    return as_table(("F1", "before", "after"), rows)
