"""Train a tagger of some order with all label patterns of its training texts, or with those that pay."""

import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import srsly
import typer
from spacy.language import Language
from tasks import read

sys.path.append(str(Path(__file__).parents[2]))
from common.tagging import NAME, make_tagger, score, train

WINDOW = {"window": {"@misc": "spacy-hocrf.Window.v1"}}
GainOption = Annotated[
    float | None, typer.Option(help="What a pattern must promise (greedy), in nats")
]
ShareOption = Annotated[
    float | None, typer.Option(help="So many of all label patterns at most (greedy)")
]


def main(
    assets: Annotated[Path, typer.Argument(help="Folder of the corpora", exists=True)],
    task: Annotated[str, typer.Argument(help="Corpus")],
    patterns: Annotated[str, typer.Argument(help="counts: all label patterns; or greedy")],
    output: Annotated[Path, typer.Argument(help="Folder to write the pipeline to")],
    order: Annotated[int, typer.Option(help="Earlier labels that a pattern has")] = 2,
    sigma: Annotated[float, typer.Option(help="Standard deviation of the prior")] = 1.0,
    tolerance: Annotated[
        float, typer.Option(help="Training ends once ten iterations gain less than this share")
    ] = 1e-4,
    gain: GainOption = None,
    share: ShareOption = None,
) -> None:
    """Write the trained pipeline, and what it took and scores on the dev part beside it (.json)."""
    docs = read(assets, task, "train")
    settings = {"sigma": sigma, "improvement_tolerance": tolerance}
    orders = range(1, order + 1)
    chosen = selection(patterns, gain, share)
    nlp = make_tagger(docs[0].vocab, WINDOW, orders, patterns=chosen, **settings)
    figures = asdict(train(nlp, docs))
    result = {
        "task": task,
        "name": patterns,
        **figures,
        "lengths": lengths(nlp),
        "dev": score(nlp, read(assets, task, "dev")).accuracy,
    }
    output.parent.mkdir(parents=True, exist_ok=True)
    nlp.to_disk(output)
    srsly.write_json(output.with_suffix(".json"), result)
    print(result)


def selection(patterns: str, gain: float | None, share: float | None) -> str | dict[str, Any]:
    """The setting `patterns` of the model.

    gain, share (Optional[float]): of the greedy selection; None for the defaults.
    """
    given = {"gain": gain, "share": share}
    settings = {name: value for name, value in given.items() if value is not None}
    if not settings:
        return patterns
    return {"@misc": "spacy-hocrf.GreedyPatterns.v1", **settings}


def lengths(nlp: Language) -> list[int]:
    """How many label patterns there are of one label, of two, and so on."""
    found = Counter(map(len, nlp.get_pipe(NAME).structure.patterns))
    return [found[n] for n in range(1, max(found) + 1)]


if __name__ == "__main__":
    typer.run(main)
