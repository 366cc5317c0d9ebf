"""Train every system on every draw of every task, and score it on the dev part, or on the official
one.

Tasks, draws, and the file of results, in which nothing is computed twice, are those of
project/defaults.
"""

import sys
from pathlib import Path
from typing import Annotated

import typer
from knowledge import make_informed
from outside import load_outside
from wasabi import msg

sys.path.append(str(Path(__file__).parents[2] / "defaults" / "scripts"))
from readers import Parts, Text
from run import RESULTS, complete, jobs
from tasks import ALL, TASKS, load

ASSETS = Path("assets")
OFFICIAL = "wnut17"
"""The task whose corpus has a dev file of its own; the suite tests on a part of that."""


def main(
    systems: Annotated[
        str, typer.Option(help="default, kinds of knowledge.py, or several with + between them")
    ] = "default,lists,vectors,spans,vectors+spans",
    tasks: Annotated[
        str, typer.Option(help="Those of project/defaults")
    ] = "wnut17,tweets,msm2013,gum,conll04,cora",
    sizes: Annotated[str, typer.Option(help="Numbers of training texts")] = f"100,400,{ALL}",
    draws: Annotated[int, typer.Option(help="Draws of each size but all")] = 3,
    part: Annotated[
        str,
        typer.Option(help=f"dev; once, when all is chosen, test, or official for {OFFICIAL}"),
    ] = "dev",
    results: Annotated[Path, typer.Option(help="Lines of JSON")] = RESULTS,
) -> None:
    """Add the results that are missing."""
    if part not in ("dev", "test", "official"):
        msg.fail(f"--part is {part}, not dev, test or official", exits=1)
    names = [OFFICIAL] if part == "official" else tasks.split(",")
    corpora = {name: parts_of(name, part) for name in names}
    made = make_informed(systems.split(","), load_outside(ASSETS))
    complete(results, corpora, made, jobs(corpora, sizes.split(","), made, draws), part)


def parts_of(task: str, part: str) -> Parts:
    """The training part of a task and the part that is scored."""
    parts = load(task, ASSETS)
    scored = official(task) if part == "official" else parts[part]
    return {"train": parts["train"], part: scored}


def official(task: str) -> list[Text]:
    """All texts of the corpus's own dev file, of which the suite has a sample as its test part."""
    return [text for text in TASKS[task](ASSETS)["test"] if text.words]


if __name__ == "__main__":
    typer.run(main)
