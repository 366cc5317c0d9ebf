"""Choose order, sigma and templates by cross-validation inside the training part: the pipeline of a
config, with changes.

Every candidate is trained on all folds but one for as many steps as the config has, and predicts
that one; the predictions of all folds are scored together. Only the training file is read.
"""

import copy
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from spacy.language import Language
from spacy.scorer import Scorer
from spacy.training import Example
from spacy.util import import_file, load_config, load_model_from_config
from tqdm import tqdm

sys.path.append(str(Path(__file__).parents[2]))
from common.report import CopyOption, show, table
from common.training import learn, read_examples


def main(
    config_path: Annotated[
        Path, typer.Argument(help="Config; its first component is trained", exists=True)
    ],
    train: Annotated[Path, typer.Argument(help="Training texts (.spacy)", exists=True)],
    metric: Annotated[str, typer.Option(help="Score to choose by, such as ents_f")] = "ents_f",
    folds: Annotated[int, typer.Option(help="Number of folds", min=2)] = 5,
    orders: Annotated[
        str, typer.Option(help="Orders to try, separated by commas; by default that of the config")
    ] = "",
    sigmas: Annotated[
        str, typer.Option(help="Sigmas to try, separated by commas; by default that of the config")
    ] = "",
    blocks: Annotated[
        bool, typer.Option(help="Leave out each block of templates in turn, too")
    ] = False,
    code: Annotated[
        Path | None, typer.Option(help="Python file with code that the pipeline needs")
    ] = None,
    output: CopyOption = None,
) -> None:
    """Print the score of every candidate."""
    if code:
        import_file("python_code", code)
    config = load_config(config_path)
    named = [
        *candidates(config, _numbers(orders), _numbers(sigmas)),
        *(without_blocks(config) if blocks else ()),
    ]
    rows = []
    for changed, row in tqdm(named, disable=None):
        begun = time.process_time()
        scores, features = cross_validate(changed, train, folds)
        rows.append(
            (
                *row,
                str(features),
                f"{100 * scores[metric]:.2f}",
                f"{time.process_time() - begun:.0f}",
            )
        )
        tqdm.write(" | ".join(rows[-1]))
    header = ("order", "sigma", "without", "features", metric, "CPU s")
    print()
    show(table(rows, header, "rrl"), output)


def candidates(
    config: dict, orders: Sequence[float], sigmas: Sequence[float]
) -> Iterator[tuple[dict, tuple[str, str, str]]]:
    """The config with every order and sigma, and what is different."""
    component = first_component(config)
    for order in orders or [component["model"]["order"]]:
        for sigma in sigmas or [component["trainer"]["sigma"]]:
            changed = copy.deepcopy(config)
            first_component(changed)["model"]["order"] = int(order)
            first_component(changed)["trainer"]["sigma"] = sigma
            yield changed, (f"{order:g}", str(sigma), "")


def without_blocks(config: dict) -> Iterator[tuple[dict, tuple[str, str, str]]]:
    """The config without one of its blocks of templates, and which it is."""
    component = first_component(config)
    for name in component["model"]["features"]["*"]:
        changed = copy.deepcopy(config)
        del first_component(changed)["model"]["features"]["*"][name]
        yield changed, (str(component["model"]["order"]), str(component["trainer"]["sigma"]), name)


def first_component(config: dict) -> dict[str, Any]:
    """The block of the component that is trained."""
    component: dict[str, Any] = config["components"][config["nlp"]["pipeline"][0]]
    return component


def cross_validate(config: dict, train: Path, folds: int) -> tuple[dict[str, Any], int]:
    """RETURNS (tuple[dict, int]): scores from 0 to 1, as spaCy's Scorer has them, and the features
    of the last fold's model.
    """
    held_back: list[Example] = []
    for fold in range(folds):
        nlp: Language = load_model_from_config(config, auto_fill=True, validate=False)
        examples = read_examples(nlp, train)
        learn(
            nlp,
            [eg for i, eg in enumerate(examples) if i % folds != fold],
            config["training"]["max_steps"],
        )
        predicted = nlp.pipe(eg.predicted for eg in examples[fold::folds])
        held_back += [
            Example(doc, eg.reference) for doc, eg in zip(predicted, examples[fold::folds])
        ]
    return Scorer(nlp).score(held_back), len(nlp.get_pipe(nlp.pipe_names[0]).structure.index)


def _numbers(text: str) -> list[float]:
    return [float(number) for number in text.split(",") if number]


if __name__ == "__main__":
    typer.run(main)
