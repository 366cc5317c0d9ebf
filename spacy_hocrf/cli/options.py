"""Options that several commands have."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

__all__ = [
    "Code",
    "Component",
    "ConfigPath",
    "Folds",
    "Force",
    "Lang",
    "Model",
    "Results",
    "Seed",
    "SpansKey",
    "Vectors",
]

Code = Annotated[
    Path | None, Option("--code", "-c", help="Python file with code that the pipeline needs")
]
Component = Annotated[
    str | None, Option("--component", help="Its component, if it has several of ours")
]
ConfigPath = Annotated[Path, Argument(help="Config of the pipeline", exists=True, dir_okay=False)]
Folds = Annotated[int, Option("--folds", "-k", min=2, help="Number of folds")]
Force = Annotated[bool, Option("--force", "-F", help="Replace OUTPUT if it is there")]
Lang = Annotated[str, Option("--lang", "-l", help="Two-letter code of the language")]
Model = Annotated[str, Argument(help="A trained pipeline: a package, or a folder")]
Results = Annotated[
    Path | None, Option("--output", "-o", help="Write the results here (JSON)", dir_okay=False)
]
Seed = Annotated[int, Option("--seed", min=0, help="Seed of the division into folds")]
SpansKey = Annotated[
    str | None,
    Option("--spans-key", "-sk", help="Take doc.spans under this key instead of doc.ents"),
]
Vectors = Annotated[
    str | None,
    Option("--vectors", "-v", help="Package or folder of a pipeline that has word vectors"),
]
