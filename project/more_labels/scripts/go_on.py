"""A trained model goes on with more texts, of its own kind or of another: what its prior should be.

`old` and `new` have learnt the texts of before and the new ones alone, `all` both of them from the start; the
others go on from `old` with the new texts, with the prior at zero, or at the loaded weights with some
`adapt_sigma`. F1 on the dev part, and with texts of another kind on those of both, of the labels that are
among both old and new texts.
"""

import random
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import spacy
import typer
from learn import examples, labels_of
from spacy.language import Language

sys.path.append(str(Path(__file__).parents[2] / "defaults" / "scripts"))
from readers import Parts, Text
from tasks import load

sys.path.append(str(Path(__file__).parents[2]))
from common.report import DocumentArgument, show, table
from common.training import count_spans, learn

SIZES = ((60, 40), (100, 100), (100, 300), (300, 100), (300, 200))
PRIORS: Mapping[str, Mapping[str, Any]] = {
    "zero": {"prior": "zero"},
    **{f"loaded, {sigma}": {"prior": "loaded", "adapt_sigma": sigma} for sigma in (0.1, 0.3, 1.0)},
}


def main(
    output: DocumentArgument,
    tasks: Annotated[
        str, typer.Option(help="Those of project/defaults; TASK:TASK for old and new texts")
    ] = "conll04,tweets,gum,chunks,msm2013:news-tweets",
) -> None:
    """Write the table."""
    rows = [row for task in tasks.split(",") for row in rows_of(task)]
    header = ("task", "old texts", "new texts", "old", "new", *PRIORS, "all")
    show(f"# Going on with more texts\n\n{table(rows, header)}\n", output)


def rows_of(task: str) -> Iterable[tuple[str, ...]]:
    """F1 of each pair of sizes, in per cent."""
    names = task.split(":")
    parts = [load(name) for name in names]
    for before, more in SIZES:
        old, new = draw(parts, before, more, f"{task} {before} {more}")
        labels = labels_of(old) & labels_of(new)
        first = trained(old, labels)
        models = [first, trained(new, labels)]
        models += [gone_on(first, new, labels, settings) for settings in PRIORS.values()]
        models.append(trained([*old, *new], labels))
        cells = (" ".join(f1(nlp, part["dev"], labels) for part in parts) for nlp in models)
        yield task, str(before), str(more), *cells


def draw(parts: Sequence[Parts], before: int, more: int, seed: str) -> tuple[list[Text], ...]:
    """Texts of before and new ones, none of them both."""
    texts, chance = [part["train"] for part in parts], random.Random(seed)
    if len(texts) > 1:
        return chance.sample(texts[0], before), chance.sample(texts[1], more)
    chosen = chance.sample(texts[0], before + more)
    return chosen[:before], chosen[before:]


def trained(texts: Sequence[Text], labels: Collection[str]) -> Language:
    """A default component that has learnt them."""
    nlp = spacy.blank("en")
    nlp.add_pipe("hocrf")
    learn(nlp, examples(nlp, texts, labels))
    return nlp


def gone_on(
    first: Language, texts: Sequence[Text], labels: Collection[str], settings: Mapping[str, Any]
) -> Language:
    """A copy that has gone on with texts."""
    nlp = spacy.blank("en")
    pipe: Any = nlp.add_pipe("hocrf")
    nlp.from_bytes(first.to_bytes())
    pipe.set_trainer(replace(pipe.trainer, **settings))
    some, optimizer = examples(nlp, texts, labels), nlp.resume_training()
    nlp.update(some, sgd=optimizer)
    while pipe.run.running:
        nlp.update(some[:1], sgd=optimizer)
    return nlp


def f1(nlp: Language, texts: Sequence[Text], labels: Collection[str]) -> str:
    """Of all spans, in per cent."""
    right, found, wanted = count_spans(nlp, examples(nlp, texts, labels))
    return f"{200 * right / max(1, found + wanted):.1f}"


if __name__ == "__main__":
    typer.run(main)
