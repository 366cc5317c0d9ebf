"""A simulated person annotates texts with the loop of `hocrf label`, and makes no mistakes.

An action is a key or a click. Three ways to come to the annotation of a text are counted for the same texts
and models:

hand      every span is selected (1) and labelled (1); Enter (1).
correct   the best reading is there. A span that is missing is selected and labelled, in the place of those
          that it overlaps; one that has another label is clicked and labelled; one that is too much is
          clicked and deleted: 2 each. Enter (1). What was corrected changes nothing else.
loop      as `hocrf label`: the leftmost error is corrected (2), and the rest is read anew, given what was
          corrected, until nothing is wrong. Before, Tab (1) shows the next best reading, where it has a
          share of at least SURE of what probability the readings shown so far have left. Enter (1).

Texts come in the order of the loop (doubt, and one of four at random), or all at random.
"""

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from time import process_time
from typing import Annotated, Any

import spacy
import typer
from spacy.tokens import Doc

sys.path.append(str(Path(__file__).parents[2] / "defaults" / "scripts"))
from readers import Text
from tasks import load, shuffled

sys.path.append(str(Path(__file__).parents[2]))
from common.report import read_lines

from spacy_hocrf.api import LabelLoop

TASKS = "cora,addresses,tweets,gum"
POOL = 400
"""Texts that may be annotated, at most; F1 of all annotation is that of all of these."""
SLOW, PART = 40, 10
"""A model is waited for after each of the first texts, later when they have grown by one in so many."""
SURE = 0.6
"""Chosen on the training parts: with 0.5 and 0.7 there are as many actions to 1 %."""
Chars = tuple[int, int, str]
Spans = tuple[Chars, ...]


class QuietLoop(LabelLoop):
    """A loop that does not find out what can be said of the model, which takes longer than to learn, and
    learns several texts at once, so that every run is the same.
    """

    def decide_all(self, spans: Mapping[int, Spans]) -> None:
        """Learn what is said about some texts, and nothing before that."""
        with self._changed:
            for text, rows in spans.items():
                self.decide(text, rows)
        self.wait(idle=True)

    def _outdated(self, texts: int) -> bool:
        return False


def main(
    tasks: Annotated[str, typer.Option(help="Those of project/defaults")] = TASKS,
    seeds: Annotated[int, typer.Option(help="Runs of each task")] = 3,
    part: Annotated[str, typer.Option(help="What F1 is measured on, dev or test")] = "test",
    pool: Annotated[int, typer.Option(help="Texts that may be annotated")] = POOL,
    results: Annotated[Path, typer.Option(help="Lines of JSON")] = Path("metrics/results.jsonl"),
) -> None:
    """Add the runs that are missing."""
    results.parent.mkdir(parents=True, exist_ok=True)
    results.touch()
    there = {(row["part"], row["task"], row["order"], row["seed"]) for row in read_lines(results)}
    for seed in range(seeds):
        for task in tasks.split(","):
            parts = load(task, Path(os.environ["HOCRF_DATA"]))
            train = parts["train"]
            texts = [train[i] for i in shuffled(len(train), f"label {task} {seed}")[:pool]]
            for order in ("loop", "random"):
                if (part, task, order, seed) in there:
                    continue
                start = process_time()
                steps = list(run(texts, parts[part], order, seed))
                known = {"part": part, "task": task, "order": order, "seed": seed}
                row = {**known, "cpu": process_time() - start, "steps": steps}
                with results.open("a", encoding="utf8") as file:
                    file.write(f"{json.dumps(row)}\n")
                print(*known.values(), f"{row['cpu']:.0f} s", steps[-1], flush=True)


def run(texts: Sequence[Text], test: Sequence[Text], order: str, seed: int) -> Iterator[Any]:
    """Annotate texts.

    YIELDS (Dict[str, Any]): whenever a model was waited for: texts, actions so far and F1, in per cent.
    """
    nlp = spacy.blank("en")
    nlp.add_pipe("hocrf")
    docs = [Doc(nlp.vocab, words=list(text.words)) for text in texts]
    gold = [characters(doc, text) for doc, text in zip(docs, texts)]
    loop = QuietLoop(nlp, docs, sorted({y for spans in gold for _, _, y in spans}), seed=seed)
    actions, waiting, done = {"hand": 0, "correct": 0, "loop": 0}, list[int](), 0
    while len(waiting) + done < len(texts):
        out = waiting if order == "loop" else []
        number = loop.next(out).text if order == "loop" else done + len(waiting)
        assert number is not None
        for way, n in counted(loop, number, gold[number]).items():
            actions[way] += n
        waiting.append(number)
        if len(waiting) >= max(1, (done - SLOW) // PART) or done + len(waiting) == len(texts):
            loop.decide_all({each: gold[each] for each in waiting})
            done, waiting = done + len(waiting), []
            yield {"texts": done, **actions, "f": f1(loop, test)}
    loop.close()


def counted(loop: LabelLoop, number: int, gold: Spans) -> dict[str, int]:
    """Actions that a text takes, each way."""
    by_hand = 2 * len(gold) + 1
    found = loop.readings(number)
    if not found.readings:
        return {"hand": by_hand, "correct": by_hand, "loop": by_hand}
    correct = 2 * len(errors(readings_of(found)[0], gold)) + 1
    return {"hand": by_hand, "correct": correct, "loop": with_loop(loop, number, gold, found)}


def with_loop(loop: LabelLoop, number: int, gold: Spans, found: Any) -> int:
    """Actions with other readings and corrections that change the rest."""
    actions, fixed, outside = 0, list[Chars](), list[tuple[int, int]]()
    while True:
        left = 1.0
        for place, reading in enumerate(readings_of(found)):
            chance = found.readings[place][1]
            if place and chance < SURE * left:
                break
            actions, left = actions + 1, left - chance  # Enter at the first, Tab at the others
            wrong = errors(reading, gold)
            if not wrong:
                return actions
        actions += 2 - 1  # not Enter
        if wrong[0] in gold:
            fixed.append(wrong[0])
        else:
            outside.append(wrong[0][:2])
        found = loop.readings(number, fixed, outside)


def errors(spans: Spans, gold: Spans) -> list[Chars]:
    """What is to be corrected, by position: missing spans, and those too many that none of these overlaps."""
    missing = [span for span in gold if span not in spans]
    over = [
        span
        for span in spans
        if span not in gold and not any(span[0] < m[1] and m[0] < span[1] for m in missing)
    ]
    return sorted([*missing, *over])


def readings_of(found: Any) -> list[Spans]:
    """The spans of each reading."""
    return [tuple(span[:3] for span in spans) for spans, _ in found.readings]


def characters(doc: Doc, text: Text) -> Spans:
    """The annotated spans of a text."""
    spans = (doc[start:end] for start, end, _ in text.spans)
    return tuple((s.start_char, s.end_char, y) for s, (_, _, y) in zip(spans, text.spans))


def f1(loop: LabelLoop, test: Sequence[Text]) -> float:
    """F1 of the newest model, in per cent."""
    nlp = loop.model
    assert nlp is not None
    right = both = 0
    for doc, text in zip(nlp.pipe(Doc(nlp.vocab, words=list(t.words)) for t in test), test):
        spans = {(e.start, e.end, e.label_) for e in doc.ents}
        right, both = right + len(spans & {*text.spans}), both + len(spans) + len(text.spans)
    return 200 * right / both if both else 0.0


if __name__ == "__main__":
    typer.run(main)
