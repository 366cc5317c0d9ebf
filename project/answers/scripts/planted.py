"""Planted errors: how many of them `spacy hocrf doubt` finds.

In Cora's training part some of the annotated spans are given another label, and as many are dropped. Then the
annotation is ranked by doubt.
"""

import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import spacy
import typer
from thinc.api import Config

sys.path.append(str(Path(__file__).parents[2] / "defaults" / "scripts"))
from readers import Text, read_cora
from systems import make_doc

sys.path.append(str(Path(__file__).parents[2]))
from common.report import show, table

from spacy_hocrf.api import Doubt, cross_read

SHARE = 0.05
"""Of the annotated spans."""
FIRST = (0.05, 0.1, 0.2)
"""Of the list, which has as many entries as there are annotated spans."""
SETTINGS = {
    "model": {"order": 1},
    "trainer": {"@misc": "spacy-hocrf.LBFGS.v1", "sigma": 1.0, "threads": 1},
    "decoder": {"@misc": "spacy-hocrf.Viterbi.v1"},
}
Span = tuple[int, int, str]
Error = tuple[int, int, int]
"""Text, first token, one past the last one."""


def main(
    output: Annotated[Path, typer.Argument(help="Markdown file")],
    assets: Annotated[Path, typer.Option(help="Folder of the corpora")] = Path("assets"),
    seeds: Annotated[int, typer.Option(help="Number of seeds")] = 3,
) -> None:
    """Plant errors, look for them, and print how many are found."""
    texts = read_cora(assets)["train"]
    rows = [row for seed in range(seeds) for row in look(texts, seed)]
    columns = [f"first {share:.0%}" for share in FIRST]
    header = ("seed", "ranked by", "spans", "errors", *columns)
    show("# Planted errors\n\n" + table(rows, header, "ll"), output)


def look(texts: Sequence[Text], seed: int) -> list[tuple[str, ...]]:
    """Rows of the table."""
    spans, errors = plant([text.spans for text in texts], seed)
    vocab = spacy.blank("en").vocab
    docs = [make_doc(vocab, Text(text.words, own)) for text, own in zip(texts, spans)]
    read = cross_read(config(), docs)
    doubts = [doubt for text in read for doubt in text.doubts]
    total = sum(map(len, spans))
    rows = []
    for name, key in RANKINGS.items():
        ranked = sorted(doubts, key=key, reverse=True)
        found = [len(hit(ranked[: round(share * total)], errors)) / len(errors) for share in FIRST]
        shares = [f"{share:.1%}" for share in found]
        rows.append((str(seed), name, f"{total:,}", str(len(errors)), *shares))
    return rows


def plant(annotation: Sequence[Sequence[Span]], seed: int) -> tuple[list[list[Span]], set[Error]]:
    """The annotation with errors, and where they are: every other one is a span with another label, drawn as
    often as it occurs, the others are spans that are missing.
    """
    rng = random.Random(seed)
    places = [(i, j) for i, spans in enumerate(annotation) for j in range(len(spans))]
    labels = [label for spans in annotation for _, _, label in spans]
    changed: list[list[Span | None]] = [list(spans) for spans in annotation]
    errors = set()
    for number, (i, j) in enumerate(rng.sample(places, round(SHARE * len(places)))):
        start, end, label = annotation[i][j]
        others = [other for other in labels if other != label]
        changed[i][j] = None if number % 2 else (start, end, rng.choice(others))
        errors.add((i, start, end))
    return [[span for span in spans if span is not None] for spans in changed], errors


def config() -> Config:
    """Of a pipeline with the settings above."""
    nlp = spacy.blank("en")
    nlp.add_pipe("hocrf", config=SETTINGS)
    made = Config().from_str(nlp.config.to_str(), interpolate=False)
    made["corpora"]["train"]["gold_preproc"] = True
    made["training"].update(max_steps=200, eval_frequency=200)
    return made


def hit(doubts: Sequence[Doubt], errors: set[Error]) -> set[Error]:
    """Those of the errors that some doubts are about."""
    spans = [(doubt.text, doubt.annotated or doubt.answer) for doubt in doubts]
    return {
        (text, start, end)
        for text, start, end in errors
        for i, span in spans
        if i == text and span.start < end and start < span.end
    }


def improbable(doubt: Doubt) -> float:
    """1 - P(annotated span), or the probability of the missing one."""
    return doubt.answer_chance if doubt.annotated is None else 1 - doubt.annotated_chance


RANKINGS: dict[str, Callable[[Doubt], float]] = {
    "doubt": lambda doubt: doubt.degree,
    "1 - P(span)": improbable,
}

if __name__ == "__main__":
    typer.run(main)
