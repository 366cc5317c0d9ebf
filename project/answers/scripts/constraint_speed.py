"""What constraints and other readings cost: CPU time of `nlp.pipe` with each, divided by that without.

A model with the default settings reads 1,000 texts that it has not learnt from, with their probabilities.
All settings take turns, each on Docs of its own, which are made before the clock starts; the table has the
medians of the rounds. "streamed": Docs come and go, as from a file; else all are kept.
"""

import gc
import sys
import time
from collections.abc import Mapping, Sequence
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import Annotated, Any, NamedTuple

import spacy
import typer
from spacy.language import Language
from spacy.tokens import Doc

sys.path.append(str(Path(__file__).parents[2] / "defaults" / "scripts"))
from readers import Text
from systems import example_of
from tasks import load

sys.path.append(str(Path(__file__).parents[2]))
from common.report import show, table
from common.training import learn

TEXTS = 1000
ROUNDS = 9


class Task(NamedTuple):
    """What is measured on a corpus. Labels are of moderate frequency: rules about them bind in some texts."""

    once: Sequence[str]  # labels that may come once
    least: str  # a label that comes at least once
    forbidden: Sequence[tuple[str, str]]


TASKS: Mapping[str, Task] = {
    "chunks": Task(("ADVP", "SBAR"), "NP", (("ADVP", "SBAR"), ("", "SBAR"))),
    "addresses": Task(("StreetName", "PlaceName"), "PlaceName", (("StateName", "StreetName"),)),
    "cora": Task(("title", "journal"), "title", (("pages", "author"), ("", "pages"))),
}


def main(
    output: Annotated[Path, typer.Argument(help="Markdown file")],
    assets: Annotated[Path, typer.Option(help="Folder of the corpora")] = Path("assets"),
    tasks: Annotated[str, typer.Option(help="Names, with commas")] = ",".join(TASKS),
    rounds: Annotated[int, typer.Option(help="How often all settings take turns")] = ROUNDS,
) -> None:
    """Train a model for each task, measure all settings, and print the table."""
    rows = list[tuple[str, ...]]()
    for name in tasks.split(","):
        train, texts = texts_of(name, assets)
        nlp = spacy.blank("xx")
        nlp.add_pipe("hocrf")
        learn(nlp, [example_of(nlp, text) for text in train])
        found = measured(nlp, settings_of(TASKS[name]), texts, rounds)
        rows += [(name, *row) for row in found]
    header = ("task", "settings", "CPU ms, 1,000 texts", "times", "streamed")
    show("# What constraints cost\n\n" + table(rows, header, "ll"), output)


def texts_of(name: str, assets: Path) -> tuple[list[Text], list[Text]]:
    """Half of the training part to learn from, 1,000 at most; and 1,000 texts of the other half, some of
    them several times where there are fewer.
    """
    known = load(name, assets)["train"]
    train, rest = known[::2][:TEXTS], known[1::2][:TEXTS]
    return train, list(islice(cycle(rest), TEXTS))


def settings_of(task: Task) -> dict[str, dict[str, Any]]:
    """Configs of the component, by what they are called in the table; the first is without constraints."""

    def constraints(**rules: Any) -> dict[str, Any]:
        return {"constraints": {"@misc": "spacy-hocrf.Constraints.v1", **rules}}

    one, both = task.once[0], task.once
    return {
        "none": {},
        "forbidden successions": constraints(forbidden=[list(pair) for pair in task.forbidden]),
        f"{task.least} at least once": constraints(at_least={task.least: 1}),
        **{f"{y} at most once": constraints(at_most={y: 1}) for y in both},
        f"{' and '.join(both)} at most once": constraints(at_most=dict.fromkeys(both, 1)),
        f"{one} at most twice": constraints(at_most={one: 2}),
        "n_best = 10": {"n_best": 10},
    }


def measured(
    nlp: Language, settings: Mapping[str, Mapping[str, Any]], texts: Sequence[Text], rounds: int
) -> list[tuple[str, ...]]:
    """A row for each of the settings."""
    pipelines = {name: like(nlp, config) for name, config in settings.items()}
    kept = {name: list[float]() for name in settings}
    streamed = {name: list[float]() for name in settings}
    for number in range(rounds + 1):
        for name, pipeline in pipelines.items():
            all_at_once = duration(pipeline, texts, keeps=True)
            one_by_one = duration(pipeline, texts, keeps=False)
            if number:  # the first round warms up
                kept[name].append(all_at_once)
                streamed[name].append(one_by_one)
    first = next(iter(settings))
    return [
        (
            name,
            f"{1000 * median(kept[name]):.1f}",
            f"{ratio(kept[name], kept[first]):.2f}",
            f"{ratio(streamed[name], streamed[first]):.2f}",
        )
        for name in settings
    ]


def like(nlp: Language, config: Mapping[str, Any]) -> Language:
    """The same model with other settings."""
    other = spacy.blank("xx")
    other.add_pipe("hocrf", config=dict(config))
    return other.from_bytes(nlp.to_bytes())


def duration(nlp: Language, texts: Sequence[Text], *, keeps: bool) -> float:
    """CPU seconds of `nlp.pipe`.

    keeps (bool): all Docs at the same time.
    """
    docs = [Doc(nlp.vocab, words=text.words) for text in texts]
    gc.collect()
    begin = time.process_time()
    if keeps:
        docs = list(nlp.pipe(docs))
    else:
        docs.reverse()
        for _ in nlp.pipe(docs.pop() for _ in texts):
            pass
    return time.process_time() - begin


def ratio(some: Sequence[float], others: Sequence[float]) -> float:
    """Median of the ratios of the rounds."""
    return median(one / other for one, other in zip(some, others))


if __name__ == "__main__":
    typer.run(main)
