"""Each label of a task is held out in turn: a model learns the others from some texts, and that label from
a few more, in which nothing else need be annotated.

`extend` is `hocrf extend`, with the new label alone annotated; `extend all` the same, with all labels
annotated in these few texts. `alone` has learnt from these few alone, and the new label only. The others are
trained from the start on the old texts and the new ones, which are annotated completely: `again` with the
old texts as they were, without the new label, and `everything` with the new label annotated in these, too.
`ner` is spaCy's, trained on the old texts, and updated with new ones in which the new label alone is
annotated.
"""

import json
import random
import sys
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from time import process_time
from typing import Annotated, Any

import spacy
import typer
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import fix_random_seed, minibatch

sys.path.append(str(Path(__file__).parents[2] / "defaults" / "scripts"))
from readers import Text
from tasks import load, shuffled

sys.path.append(str(Path(__file__).parents[2]))
from common.report import read_lines
from common.training import learn

TASKS = "conll04,cora,tweets,gum"
OLD = 700
"""Texts that a model has learnt, at most; no more than half of the training part."""
NEW = (20, 50)
"""Texts that teach the new label, as they come, with it or without."""
MIN_ANNOTATED = 5
"""Spans of a label that these must have; it is left out else."""
EPOCHS, BATCH = 20, 16
"""Of spaCy's `ner`, on the old texts and on the new ones."""


def main(
    tasks: Annotated[str, typer.Option(help="Those of project/defaults")] = TASKS,
    seeds: Annotated[int, typer.Option(help="Draws of the texts")] = 3,
    part: Annotated[str, typer.Option(help="What is tested on, dev or test")] = "test",
    ner: Annotated[str, typer.Option(help="Tasks in whose first draw `ner` is tried")] = "conll04",
    results: Annotated[Path, typer.Option(help="Lines of JSON")] = Path("metrics/results.jsonl"),
) -> None:
    """Add the labels and draws that are missing."""
    results.parent.mkdir(parents=True, exist_ok=True)
    results.touch()
    there = {(row["part"], row["task"], row["label"], row["seed"]) for row in read_lines(results)}
    for seed in range(seeds):
        for task in tasks.split(","):
            parts = load(task)
            for label in sorted(labels_of(parts["train"])):
                if (part, task, label, seed) in there:
                    continue
                setting = {"part": part, "task": task, "label": label, "seed": seed}
                draw = HeldOut(parts["train"], parts[part], label, f"{task} {seed}")
                rows = list(draw.rows(with_ner=task in ner.split(",") and seed == 0))
                with results.open("a", encoding="utf8") as file:
                    file.write("".join(f"{json.dumps({**setting, **row})}\n" for row in rows))
                print(part, task, label, seed, len(rows), flush=True)


class HeldOut:
    """A label that is held out of some texts.

    texts (Sequence[Text]): of the training part. test (Sequence[Text]): what is tested on.
    draw (str): which texts are the old ones.
    """

    def __init__(self, texts: Sequence[Text], test: Sequence[Text], label: str, draw: str) -> None:
        order = shuffled(len(texts), draw)
        cut = min(OLD, len(texts) // 2)
        self.old = [texts[i] for i in order[:cut]]
        self.rest = [texts[i] for i in order[cut:]]
        self.test, self.label, self.others = test, label, labels_of(texts) - {label}

    def rows(self, with_ner: bool) -> Iterator[dict[str, Any]]:
        """Of each system, how many spans of other labels and of this one are right, found, annotated."""
        sizes = [size for size in NEW if self.annotated(self.rest[:size]) >= MIN_ANNOTATED]
        if not sizes:
            return
        before = self.trained(self.old, self.others)
        known = {"before": self.count(before, self.others)}
        recognizer = self.trained(self.old, self.others, "ner") if with_ner else None
        for size in sizes:
            new = self.rest[:size]
            row: dict[str, Any] = {"new": size, "old": len(self.old), "spans": self.annotated(new)}
            for system, chosen in (("extend", {self.label}), ("extend all", None)):
                nlp = spacy.blank("en")
                pipe: Any = nlp.add_pipe("hocrf")
                nlp.from_bytes(before.to_bytes())
                some, start = examples(nlp, new, chosen), process_time()
                pipe.extend(some)
                seconds = process_time() - start
                yield {**row, "system": system, "cpu": seconds, **known, **self.counts(nlp)}
            yield {**row, "system": "alone", **self.counts(self.trained(new, {self.label}))}
            nlp = spacy.blank("en")
            nlp.add_pipe("hocrf")
            learn(nlp, [*examples(nlp, self.old, self.others), *examples(nlp, new)])
            yield {**row, "system": "again", **known, **self.counts(nlp)}
            nlp = self.trained([*self.old, *new])
            yield {**row, "system": "everything", **known, **self.counts(nlp)}
            if recognizer is not None:
                nlp = spacy.blank("en")
                ner: Any = nlp.add_pipe("ner")
                nlp.from_bytes(recognizer.to_bytes())
                ner.add_label(self.label)
                nlp.resume_training()
                update(nlp, examples(nlp, new, {self.label}, rest="missing"))
                counts = {"before": self.count(recognizer, self.others), **self.counts(nlp)}
                yield {**row, "system": "ner", **counts}

    def trained(
        self, texts: Sequence[Text], labels: Collection[str] | None = None, factory: str = "hocrf"
    ) -> Language:
        """A default component that has learnt texts with these labels."""
        nlp = spacy.blank("en")
        nlp.add_pipe(factory)
        training = examples(nlp, texts, labels)
        if factory == "hocrf":
            learn(nlp, training)
        else:
            fix_random_seed(0)
            nlp.initialize(lambda: training)
            update(nlp, training)
        return nlp

    def annotated(self, texts: Sequence[Text]) -> int:
        """Spans of the label in some texts."""
        return sum(span[2] == self.label for text in texts for span in text.spans)

    def counts(self, nlp: Language) -> dict[str, Any]:
        """Counts of the other labels and of this one."""
        return {"others": self.count(nlp, self.others), "counts": self.count(nlp, {self.label})}

    def count(self, nlp: Language, labels: Collection[str]) -> tuple[int, int, int]:
        """Spans of some labels that are right, found and annotated."""
        right = found = annotated = 0
        docs = nlp.pipe(Doc(nlp.vocab, words=list(text.words)) for text in self.test)
        for doc, text in zip(docs, self.test):
            spans = {(e.start, e.end, e.label_) for e in doc.ents if e.label_ in labels}
            gold = {span for span in text.spans if span[2] in labels}
            right, found = right + len(spans & gold), found + len(spans)
            annotated += len(gold)
        return right, found, annotated


def labels_of(texts: Sequence[Text]) -> set[str]:
    """Labels of their spans."""
    return {label for text in texts for _, _, label in text.spans}


def examples(
    nlp: Language,
    texts: Sequence[Text],
    labels: Collection[str] | None = None,
    rest: str = "outside",
) -> list[Example]:
    """Texts with the spans of some labels, None for all.

    rest (str): what other tokens are: outside, or missing.
    """
    found = []
    for text in texts:
        doc = Doc(nlp.vocab, words=list(text.words))
        spans = [Span(doc, *span) for span in text.spans if labels is None or span[2] in labels]
        doc.set_ents(spans, default=rest)
        found.append(Example(Doc(nlp.vocab, words=list(text.words)), doc))
    return found


def update(nlp: Language, some: Sequence[Example]) -> None:
    """Train spaCy's component for EPOCHS."""
    optimizer, chance = nlp.resume_training(), random.Random(0)
    for _ in range(EPOCHS):
        for batch in minibatch(chance.sample(some, len(some)), BATCH):
            nlp.update(batch, sgd=optimizer, drop=0.1)


if __name__ == "__main__":
    typer.run(main)
