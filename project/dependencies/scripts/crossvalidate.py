"""Three-fold cross-validation over logs of the links between messages: `hocrf_links` as it is trained by
`spacy train`, and a rule that needs no training.
"""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Annotated, Any

import typer
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import load_config, load_model_from_config
from windows import ATTRIBUTES, KEY, register

from spacy_hocrf.api import LinksCorpus

sys.path.append(str(Path(__file__).parents[2]))
from common.report import write_lines

BATCH = 10
SYSTEMS = (("each pair alone", False), ("one each", True))
"""Of the component, with the setting one_each."""
NEAREST = "the message before"

Links = Sequence[tuple[int, int]]


def main(
    corpus: Annotated[Path, typer.Argument(help="Folder with a folder for each fold", exists=True)],
    config: Annotated[Path, typer.Argument(help="Config of the component", exists=True)],
    output: Annotated[Path, typer.Argument(help="A line of JSON for each system and fold")],
    steps: Annotated[int, typer.Option(help="Of training, ten windows each")] = 100,
) -> None:
    """Train and test all systems; print and write the results."""
    register()
    results = (
        {"fold": int(fold.name), **result}
        for fold in sorted(corpus.glob("[0-9]"))
        for result in evaluate(fold, config, steps)
    )
    write_lines(output, results, line)


def evaluate(fold: Path, config: Path, steps: int) -> Iterator[dict[str, Any]]:
    """The results of one fold."""
    test = read(fold / "test.spacy", load_model_from_config(load_config(config), auto_fill=True))
    before = [[(i, max(0, i - 1)) for i in range(len(e.predicted.spans[KEY]))] for e in test]
    yield {"system": NEAREST, "windows": 0, **counted(test, before)}
    for name, one_each in SYSTEMS:
        changes = {"components.hocrf_links.pairs.one_each": one_each}
        for part in ("train", "more"):
            nlp = load_model_from_config(load_config(config, overrides=changes), auto_fill=True)
            training = read(fold / f"{part}.spacy", nlp)
            begun = time.process_time()
            learn(nlp, training, steps)
            trained = time.process_time()
            docs = list(nlp.pipe(example.predicted.copy() for example in test))
            seconds = {"training": trained - begun, "decoding": time.process_time() - trained}
            scores = [doc._.hocrf_links_scores for doc in docs]
            counts = counted(test, list(map(links_of, docs)), scores)
            yield {"system": name, "windows": len(training), **counts, **seconds}


def read(path: Path, nlp: Language) -> list[Example]:
    """The windows of a file."""
    return list(LinksCorpus(path, [KEY], ATTRIBUTES, gold_preproc=True)(nlp))


def learn(nlp: Language, examples: Sequence[Example], steps: int) -> None:
    """So many steps, each on the next few examples, which is what `spacy train` does."""
    nlp.initialize(lambda: examples)
    again = cycle(examples)
    for _ in range(steps):
        nlp.update(list(islice(again, BATCH)))


def links_of(doc: Doc) -> Links:
    """The links of a Doc."""
    return [(item, target) for item, target in doc._.hocrf_links]


def counted(
    examples: Sequence[Example], predicted: Sequence[Links], scores: Sequence[Sequence[float]] = ()
) -> dict[str, Any]:
    """For each log the links that are correct, found and annotated, and how many of them are replies; of
    all links that were found their probabilities, and whether they are right.
    """
    logs = sorted({example.reference._.log for example in examples})
    rows = {log: [[0, 0] for _ in range(3)] for log in logs}
    right = []
    for example, links in zip(examples, predicted):
        gold = {*links_of(example.reference)}
        right += [link in gold for link in links]
        for row, part in zip(rows[example.reference._.log], (gold & {*links}, links, gold)):
            row[0] += len(part)
            row[1] += sum(i != j for i, j in part)
    parts = zip(("correct", "predicted", "gold"), zip(*rows.values()))
    flat = [round(score, 4) for each in scores for score in each]
    return {"logs": logs, **dict(parts), "scores": flat, "right": right if flat else []}


def line(result: Mapping[str, Any]) -> str:
    """A result to look at while others are to come."""
    correct, predicted, gold = (
        sum(count for count, _ in result[name]) for name in ("correct", "predicted", "gold")
    )
    f = 2 * correct / (predicted + gold)
    return f"fold {result['fold']}, {result['system']}, {result['windows']} windows: F {f:.4f}"


if __name__ == "__main__":
    typer.run(main)
