"""Train a component `hocrf` until its training stops, predict, and measure both."""

import sys
import time
from pathlib import Path
from typing import Annotated, Any

import spacy
import typer
from spacy.cli._util import import_code
from spacy.language import Language
from spacy.util import load_config

from spacy_hocrf.api import Choice

sys.path.append(str(Path(__file__).parents[2]))
from common.measured import Measured, bare, size_of, speed_of, write
from common.training import learn, read_docs, read_examples


def main(
    train: Annotated[Path, typer.Argument(help="Training texts (.spacy)", exists=True)],
    test: Annotated[Path, typer.Argument(help="Texts to predict (.spacy)", exists=True)],
    output: Annotated[Path, typer.Argument(help="Folder for predictions, measures and the model")],
    config: Annotated[
        Path | None, typer.Option(help="Config; without one, nlp.add_pipe('hocrf') as it is")
    ] = None,
    orders: Annotated[str, typer.Option(help="Orders, separated by commas")] = "",
    code: Annotated[Path | None, typer.Option(help="Python file that the config needs")] = None,
    name: Annotated[str, typer.Option(help="Of the observations")] = "owner's",
) -> None:
    """Write the predictions and measures of a model of each order."""
    import_code(code)
    if config is None:
        measure("default", {}, train, test, output)
        return
    component = load_config(config)["components"]["hocrf"]
    for order in map(int, orders.split(",")):
        component["model"]["order"] = order
        measure(name, component, train, test, output)


def measure(
    observations: str, component: dict[str, Any], train: Path, test: Path, output: Path
) -> None:
    """Train one model, and write what `common.measured` says of it.

    component (Dict[str, Any]): the config of the component.
    """
    nlp = spacy.blank("en")
    settings = {name: value for name, value in component.items() if name != "factory"}
    nlp.add_pipe("hocrf", config=settings)
    begun = time.process_time()
    run = learn(nlp, read_examples(nlp, train))
    seconds = time.process_time() - begun
    pipe = nlp.get_pipe("hocrf")
    docs = read_docs(test, nlp.vocab)
    predicted = list(nlp.pipe(bare(docs)))
    measured = Measured(
        system="hocrf",
        observations=observations,
        order=pipe.structure.settings.order,
        features=len(pipe.structure.index),
        size=size_on_disk(nlp, output / "model"),
        seconds=seconds,
        speed=speed_of(lambda some: list(nlp.pipe(some)), docs),
        settings=chosen(pipe.choice),
    )
    print(run.status)
    write(output, measured, predicted)


def size_on_disk(nlp: Language, folder: Path) -> int:
    """Bytes of the whole pipeline."""
    folder.mkdir(parents=True, exist_ok=True)
    nlp.to_disk(folder)
    return size_of(folder)


def chosen(choice: Choice | None) -> str:
    """What the component has chosen by itself."""
    return f"sigma {choice.sigma:.2g}" if choice and choice.sigma else ""


if __name__ == "__main__":
    typer.run(main)
