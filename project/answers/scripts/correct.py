"""One correction: how many errors elsewhere does it mend?

Every text is read by a model that has not seen it. A person looks at the least certain of the predicted
spans; where it is wrong, `pipe.correct` gets what is annotated there. What is wrong elsewhere is counted
before, as if the correction were just written into the Doc, and after.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import spacy
import typer
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

sys.path.append(str(Path(__file__).parents[2] / "defaults" / "scripts"))
from readers import Text
from systems import make_doc
from tasks import load

sys.path.append(str(Path(__file__).parents[2]))
from common.report import show, table
from common.training import learn, spans

from spacy_hocrf.api import SegmentationPipe

FOLDS = 5
Span = tuple[int, int, str]


class Effect(NamedTuple):
    """Of one correction: wrong tokens and wrong or missing spans elsewhere, before and after."""

    tokens: tuple[int, int]
    spans: tuple[int, int]


def main(
    output: Annotated[Path, typer.Argument(help="Markdown file")],
    assets: Annotated[Path, typer.Option(help="Folder of the corpora")] = Path("assets"),
    tasks: Annotated[str, typer.Option(help="Those of project/defaults")] = "cora,addresses",
) -> None:
    """Correct every text once, and print what becomes of the other errors."""
    rows = [row(task, load(task, assets)) for task in tasks.split(",")]
    header = (
        *("task", "texts", "corrected"),
        *("wrong tokens elsewhere", "after", "fewer"),
        *("wrong spans elsewhere", "after", "fewer"),
    )
    show("# One correction\n\n" + table(rows, header, "l"), output)


def row(task: str, parts: dict[str, list[Text]]) -> tuple[str, ...]:
    """A row of the table: of the training and the development part."""
    texts = [*parts["train"], *parts["dev"]]
    found = [effect for fold in range(FOLDS) for effect in effects(texts, fold)]
    columns = list[str]()
    for pairs in ([one.tokens for one in found], [one.spans for one in found]):
        before, after = (sum(pair[i] for pair in pairs) for i in (0, 1))
        fewer = f"{1 - after / before:.1%}" if before else ""
        columns += [f"{before:,}", f"{after:,}", fewer]
    return task, f"{len(texts):,}", f"{len(found):,}", *columns


def effects(texts: Sequence[Text], fold: int) -> Iterator[Effect]:
    """What the corrections of one fold do, by a model of the others."""
    nlp = spacy.blank("xx")
    nlp.add_pipe("hocrf")
    rest = [text for i, text in enumerate(texts) if i % FOLDS != fold]
    learn(
        nlp, [Example(Doc(nlp.vocab, words=text.words), make_doc(nlp.vocab, text)) for text in rest]
    )
    for text in texts[fold::FOLDS]:
        found = effect_of(nlp, text)
        if found is not None:
            yield found


def effect_of(nlp: Language, text: Text) -> Effect | None:
    """None if the least certain span is right."""
    pipe, gold = nlp.get_pipe("hocrf"), set(text.spans)
    doc = pipe(Doc(nlp.vocab, words=text.words))
    if not doc.ents:
        return None
    doubted = min(doc.ents, key=lambda span: span._.hocrf_score)
    asked = doubted.start, doubted.end, doubted.label_
    if asked in gold:
        return None
    right = best_match(asked, gold)
    written = {span for span in spans(doc) if span != asked and not touches(span, right)}
    corrected = written
    if possible(pipe, right):
        corrected = spans(pipe.correct(doc, right))
    place = range(min(asked[0], right[0]), max(asked[1], right[1]))
    both = [errors(each | {right}, gold, place, len(text.words)) for each in (written, corrected)]
    return Effect(*zip(*both))


def possible(pipe: SegmentationPipe, span: Span) -> bool:
    """Can the model have it? Some are longer than all in its training texts; they mend nothing."""
    known = span[2] in ("", *pipe.labels)
    return known and (not span[2] or pipe.structure.scheme.can_have([span]))


def best_match(span: Span, gold: set[Span]) -> Span:
    """The annotated span that shares most tokens with another; without a label, the same tokens, if
    none shares any.
    """
    shared = {each: min(each[1], span[1]) - max(each[0], span[0]) for each in gold}
    best = max(sorted(shared), key=lambda each: shared[each], default=None)
    return (span[0], span[1], "") if best is None or shared[best] <= 0 else best


def touches(span: Span, other: Span) -> bool:
    """Do they share a token?"""
    return span[0] < other[1] and other[0] < span[1]


def errors(found: set[Span], gold: set[Span], place: range, length: int) -> tuple[int, int]:
    """Wrong tokens outside a place, and wrong and missing spans that have none of its tokens."""
    labels = [labels_of(spans, length) for spans in (found, gold)]
    tokens = sum(a != b for t, (a, b) in enumerate(zip(*labels)) if t not in place)
    wrong = [span for span in found ^ gold if span[2] and not set(range(*span[:2])) & set(place)]
    return tokens, len(wrong)


def labels_of(spans: set[Span], length: int) -> list[str]:
    """The label of each token, "" for none."""
    labels = [""] * length
    for start, end, label in spans:
        labels[start:end] = [label] * (end - start)
    return labels


if __name__ == "__main__":
    typer.run(main)
