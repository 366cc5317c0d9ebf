"""Train on each genre and predict the entities of the others, at order 1 and 2.

The objective has one optimum and training goes on until it is reached, so there is nothing to stop
by: no other genre is looked at before it is tested on. Sigma is 1, as everywhere in Ye et al. (NIPS
    2009, §4.1).
"""

import copy
import sys
import time
from itertools import permutations
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import spacy
import srsly
import typer
from spacy.language import Language
from spacy.tokens import Doc
from spacy.vocab import Vocab
from tqdm import tqdm

sys.path.append(str(Path(__file__).parents[2]))
from common.training import fresh, learn, read_docs, read_examples, write_docs

GENRES = ("interview", "news", "voyage", "whow")
PAIRS = tuple(permutations(GENRES, 2))
"""Genre to train on, genre to test on."""

ORDERS = (1, 2)

GOLD = "gold.spacy"
"""The annotation of all twelve pairs, one after the other, beside the folders of predictions."""


class Kind(NamedTuple):
    """A kind of model, of any order."""

    name: str
    model: dict[str, Any]  # settings of [components.hocrf.model] other than the config's

    def folder(self, order: int) -> str:
        """Where its predictions are."""
        return f"{self.name.replace(', ', '-')}-{order}"


KINDS = (
    Kind("CRF, bio", {"encoding": "bio"}),
    Kind("CRF, io", {"encoding": "io"}),
    Kind("CRF, bieso", {"encoding": "bieso"}),
    Kind("semi-CRF", {"encoding": "segments"}),
)


def main(
    config_path: Annotated[Path, typer.Argument(help="Config with a component hocrf", exists=True)],
    corpus_dir: Annotated[
        Path, typer.Argument(help="Folder with a .spacy file for each genre", exists=True)
    ],
    output_dir: Annotated[
        Path, typer.Argument(help="Where the predictions go, a folder for each model")
    ],
    metrics_dir: Annotated[
        Path, typer.Argument(help="Where sizes and times go, a file for each model (JSON)")
    ],
    only: Annotated[
        list[str] | None,
        typer.Option(help="Kind of model; may be given several times. By default all"),
    ] = None,
) -> None:
    """Write what every model predicts for every pair of genres, and for all twelve together."""
    config = spacy.util.load_config(config_path)["components"]["hocrf"]
    metrics_dir.mkdir(parents=True, exist_ok=True)
    for kind in KINDS:
        for order in ORDERS if not only or kind.name in only else ():
            rows = []
            predicted: dict[tuple[str, str], list[Doc]] = {}
            for source in tqdm(
                GENRES, desc=f"{kind.name}, order {order}", disable=None, leave=False
            ):
                begun = time.process_time()
                nlp, row = train(adapt(config, kind, order), corpus_dir / f"{source}.spacy")
                row |= {
                    "kind": kind.name,
                    "order": order,
                    "genre": source,
                    "seconds": time.process_time() - begun,
                }
                rows.append(row)
                print(" | ".join(f"{key} {value}" for key, value in row.items()), flush=True)
                for target in GENRES:
                    if target != source:
                        docs = [
                            fresh(example)
                            for example in read_examples(nlp, corpus_dir / f"{target}.spacy")
                        ]
                        predicted[source, target] = list(nlp.pipe(docs))
            folder = output_dir / kind.folder(order)
            for (source, target), docs in predicted.items():
                write_docs(docs, folder / f"{source}-{target}.spacy")
            write_docs([doc for pair in PAIRS for doc in predicted[pair]], folder / "all.spacy")
            srsly.write_json(metrics_dir / f"{kind.folder(order)}.json", rows)
    vocab = Vocab()
    gold = {genre: read_docs(corpus_dir / f"{genre}.spacy", vocab) for genre in GENRES}
    write_docs([doc for _, target in PAIRS for doc in gold[target]], output_dir / GOLD)


def adapt(config: dict[str, Any], kind: Kind, order: int) -> dict[str, Any]:
    """The component's config with another kind of model and another order."""
    config = copy.deepcopy({key: value for key, value in config.items() if key != "factory"})
    return {**config, "model": {**config["model"], **kind.model, "order": order}}


def train(config: dict[str, Any], path: Path) -> tuple[Language, dict[str, Any]]:
    """A pipeline trained to the optimum, and the sizes of its model."""
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("hocrf", config=config)
    run = learn(nlp, read_examples(nlp, path))
    structure = pipe.structure
    return nlp, {
        "features": len(structure.index),
        "patterns": len(structure.patterns),
        "objective": round(run.loss, 4),
        "evaluations": run.evaluations,
    }


if __name__ == "__main__":
    typer.run(main)
