"""Train every system on every draw of every task, and score it on the dev or on the test part.

A result is a line of JSON, appended as soon as it is there. What is there with the same settings is
not computed again. A change of the package that is not a setting makes no difference to that: begin
a new file then.
"""

import hashlib
import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from readers import Parts, Text
from systems import System, make_system
from tasks import ALL, TASKS, count_draws, draw, load
from wasabi import msg

sys.path.append(str(Path(__file__).parents[2]))
from common.report import Result, read_lines
from common.scores import ratios

PARTS = ("dev", "test")
RESULTS = Path("metrics/results.jsonl")

Job = tuple[str, str, int, str]
"""Task, size, number of the draw, system."""


def main(
    systems: Annotated[
        str, typer.Option(help="default, other candidates of systems.py, crfsuite, ner")
    ] = "default,crfsuite,ner",
    tasks: Annotated[str, typer.Option(help="Those of tasks.py")] = ",".join(TASKS),
    sizes: Annotated[
        str, typer.Option(help="Numbers of training texts")
    ] = f"5,10,20,50,100,400,{ALL}",
    draws: Annotated[int, typer.Option(help="Draws of each size but all")] = 3,
    part: Annotated[str, typer.Option(help="dev; test once, when all is chosen")] = "dev",
    results: Annotated[Path, typer.Option(help="Lines of JSON")] = RESULTS,
) -> None:
    """Add the results that are missing."""
    if part not in PARTS:
        msg.fail(f"--part is {part}, not one of {', '.join(PARTS)}", exits=1)
    corpora = {name: load(name) for name in tasks.split(",")}
    made = {name: make_system(name) for name in systems.split(",")}
    complete(results, corpora, made, jobs(corpora, sizes.split(","), made, draws), part)


def jobs(
    corpora: Mapping[str, Parts], sizes: Sequence[str], systems: Iterable[str], draws: int
) -> Iterator[Job]:
    """All that is wanted: the first draws of all tasks come before the second ones."""
    for number in range(draws):
        for size in sizes:
            for name, parts in corpora.items():
                if number < count_draws(name, parts["train"], size, draws):
                    for system in systems:
                        yield name, size, number, system


def complete(
    path: Path,
    corpora: Mapping[str, Parts],
    systems: Mapping[str, System],
    wanted: Iterable[Job],
    part: str,
) -> None:
    """Append a line for each job that the file does not have with these settings.

    path (Path): the results.
    corpora (Mapping[str, Parts]): by task.
    part (str): what is scored, "dev" or "test".
    """
    there = {key_of(result) for result in read_whole_lines(path)}
    settings = {name: digest(system.settings) for name, system in systems.items()}
    for task, size, number, name in wanted:
        job = {"task": task, "size": size, "draw": number, "system": name, "part": part}
        job["settings"] = settings[name]
        if key_of(job) in there:
            continue
        texts = draw(task, corpora[task]["train"], size, number)
        result = {**job, **measure(systems[name], texts, corpora[task][part])}
        with path.open("a", encoding="utf8") as file:
            file.write(json.dumps(result) + "\n")
        print(
            f"{task}, {size} texts, draw {number}: {name} {100 * result['f']:.2f}, "
            f"{result['seconds']:.1f} CPU s",
            flush=True,
        )


def read_whole_lines(path: Path) -> list[Result]:
    """The results that there are. A line that was cut off when somebody stopped the run is removed
    from the file, which is made where it is missing.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as file:
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)
    return read_lines(path)


def measure(system: System, train: Sequence[Text], held_out: Sequence[Text]) -> dict[str, Any]:
    """Train a system and score it.

    RETURNS (Dict[str, Any]): `texts`, how many it was trained on; CPU `seconds` of the training;
        `counts` of spans by held-out text: right, found and wanted ones; their `f`, from 0 to 1;
        and what the system itself says.
    """
    begun = time.process_time()
    predict, facts = system.train(train)
    seconds = time.process_time() - begun
    counts = [
        (len(set(found) & set(text.spans)), len(found), len(text.spans))
        for found, text in zip(predict([text.words for text in held_out]), held_out, strict=True)
    ]
    f = ratios(*map(sum, zip(*counts)))["f"]
    return {"texts": len(train), "seconds": round(seconds, 2), "f": f, **facts, "counts": counts}


def key_of(result: Result) -> tuple[Any, ...]:
    """What a result is of."""
    return tuple(result[name] for name in ("task", "size", "draw", "system", "part", "settings"))


def digest(settings: Mapping[str, Any]) -> str:
    """Settings as eight hexadecimal digits."""
    text = json.dumps(settings, sort_keys=True, default=str)
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:8]


if __name__ == "__main__":
    typer.run(main)
