"""Score a model on works that it has not learnt, and say what the scores rest on: how many works there
are to learn a field from, what other works would change, and how often the probabilities are right.
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import spacy
import typer
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import import_file
from wasabi import MarkdownRenderer

sys.path.append(str(Path(__file__).parents[2]))
from common.report import CopyOption, show, table
from common.training import read_docs

PARTS = ("train", "dev", "test", "unseen")
SAMPLES, WITHIN = 2000, 0.9  # of works, and the share of them that is inside an interval
FEW, POOR = 4, 80.0  # a field that so few works have, and whose F1 is so low, gets a remark
BINS = (0.0, 0.5, 0.9, 0.99, 1.0)
PROBABILITIES = ("probability", "fields", "on average", "right")
HEADER = ("field", "P", "R", "F1", "90 %", "F1, new styles", "fields", "works", "works in train")
Works = Mapping[str, Counter[str]]
"""Of each work, how many fields are right, found and annotated."""


class Part(NamedTuple):
    """What a model finds in a part of the corpus.

    references (int): how many there are.
    labels (Dict[str, Works]): the counts of each field, and of all of them under "".
    probabilities (List[Tuple[float, bool]]): of the fields that are found; whether they are right.
    """

    references: int
    labels: dict[str, Works]
    probabilities: list[tuple[float, bool]]


def main(
    model: Annotated[Path, typer.Argument(help="A trained pipeline", exists=True)],
    corpus: Annotated[Path, typer.Argument(help="What render.py has made", exists=True)],
    page: Annotated[Path | None, typer.Option(help="The page of these references")] = None,
    output: CopyOption = None,
) -> None:
    """Print a table by field, and what to know about it."""
    import_file("references_tokenizer", Path(__file__).parent / "tokenizer.py")
    nlp = spacy.load(model)
    train, *others = (read_docs(corpus / f"{part}.spacy", nlp.vocab) for part in PARTS)
    dev, test, unseen = (evaluate(nlp, docs) for docs in others)
    learnt = works_having(train)
    markdown = MarkdownRenderer()
    markdown.add(markdown.title(3, f"{nlp.pipe_names[-1]} on works that are not in training"))
    markdown.add(table(rows(test, unseen, learnt), HEADER))
    if test.probabilities:
        markdown.add(table(calibration(test), PROBABILITIES))
    markdown.add(markdown.list(list(remarks(dev, test, unseen, learnt))))
    show(markdown.text, output)
    if page is not None:
        print(f"\nSee all of it: open {page.resolve().as_uri()} in a browser.")
        print("With texts of your own, as CoNLL, Prodigy, doccano or Label Studio have them:")
        print("  python -m spacy hocrf convert TEXTS texts.spacy")
        print("  python -m spacy hocrf auto texts.spacy output")


def works_having(docs: Iterable[Doc]) -> dict[str, int]:
    """How many works have a field."""
    found = defaultdict[str, set[str]](set)
    for doc in docs:
        for ent in doc.ents:
            found[ent.label_].add(doc.user_data["work"])
    return {label: len(works) for label, works in found.items()}


def evaluate(nlp: Language, docs: Sequence[Doc]) -> Part:
    """Compare what a pipeline finds with the annotation."""
    counts = defaultdict[str, dict[str, Counter[str]]](lambda: defaultdict(Counter))
    probabilities = []
    for gold, doc in zip(docs, nlp.pipe(doc.text for doc in docs), strict=True):
        annotated = {(ent.start_char, ent.end_char, ent.label_) for ent in gold.ents}
        found = {(ent.start_char, ent.end_char, ent.label_): ent for ent in doc.ents}
        right = annotated & found.keys()
        for name, spans in (("right", right), ("found", found), ("annotated", annotated)):
            for _, _, label in spans:
                for each in (label, ""):
                    counts[each][gold.user_data["work"]][name] += 1
        if nlp.has_pipe("hocrf"):
            probabilities += [(ent._.hocrf_score, span in right) for span, ent in found.items()]
    return Part(len(docs), dict(counts), probabilities)


def rows(test: Part, unseen: Part, learnt: Mapping[str, int]) -> Iterator[tuple[str, ...]]:
    """The table: fields in alphabetical order, then all together."""
    for label in (*sorted(test.labels.keys() - {""}), ""):
        works = test.labels[label]
        total = sum(works.values(), Counter())
        yield (
            label or "**all**",
            percent(total["right"], total["found"]),
            percent(total["right"], total["annotated"]),
            f"{f1(works):.1f}",
            interval(works),
            f"{f1(unseen.labels.get(label, {})):.1f}",
            str(total["annotated"]),
            str(sum(counts["annotated"] > 0 for counts in works.values())),
            str(learnt.get(label, 0)) if label else "",
        )


def percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}" if whole else "-"


def f1(works: Works) -> float:
    """F1 in per cent."""
    total = sum(works.values(), Counter())
    return 200 * total["right"] / max(total["found"] + total["annotated"], 1)


def interval(works: Works) -> str:
    """Where F1 is in 90 % of the samples of as many works, drawn with replacement."""
    counts = np.array([[c["right"], c["found"] + c["annotated"]] for c in works.values()])
    share = np.full(len(counts), 1 / len(counts))
    drawn = np.random.default_rng(0).multinomial(len(counts), share, SAMPLES)
    right, sides = (drawn @ counts).T  # int64 [SAMPLES]
    ends = (1 - WITHIN) / 2, (1 + WITHIN) / 2
    low, high = np.quantile(200 * right / np.maximum(sides, 1), ends)
    return f"{low:.0f} to {high:.0f}"


def remarks(dev: Part, test: Part, unseen: Part, learnt: Mapping[str, int]) -> Iterator[str]:
    """What to know about the table."""
    works, others = test.labels[""], dev.labels[""]
    yield (
        f"90 %: where F1 is in 90 of 100 samples of other works. The {test.references} references are only "
        f"{len(works)} works, and what is hard about a work is hard in every style."
    )
    yield f"new styles: the same works, {unseen.references} references, in styles that are not in training."
    lacking = ", ".join(sorted(annotated(test) - annotated(dev)))
    yield (
        f"While it trains, F1 is of {len(others)} other works: {f1(others):.1f}, {interval(others)} in 90 of "
        f"100 samples" + (f". None of them has {lacking}." if lacking else ".")
    )
    for label in sorted(test.labels.keys() - {""}):
        if f1(test.labels[label]) < POOR and learnt.get(label, 0) <= FEW:
            yield f"{label}: {learnt.get(label, 0)} works are too few to learn it from."


def annotated(part: Part) -> set[str]:
    """The fields that its references have."""
    return {
        label
        for label, works in part.labels.items()
        if any(counts["annotated"] for counts in works.values())
    }


def calibration(test: Part) -> Iterator[tuple[str, ...]]:
    """A table: how often fields are right, by their probability, which is given on average, too."""
    for low, high in pairwise(BINS):
        inside = [row for row in test.probabilities if low < row[0] <= high]
        if inside:
            mean, right = 100 * np.mean(inside, axis=0)
            yield f"{low:g} to {high:g}", str(len(inside)), f"{mean:.1f}", f"{right:.1f}"


if __name__ == "__main__":
    typer.run(main)
