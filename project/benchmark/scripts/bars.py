"""One function for each bar: what is measured, beside what, and how good it must be.

`python scripts/bars.py 4` measures one bar in this process and writes its result as one line of
JSON; `run.py` calls this for all of them, each in a process of its own.
"""

import json
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import default_bars
import prediction_bars
import process_bars
import quality_bars
import training_bars
import typer
from compare import FULL, SMALL, Setting
from corpora import Corpora, DataOption, SmallOption
from machine import describe_machine
from results import Outcome

BARS: dict[str, Callable[[Setting], Outcome]] = {
    name.removeprefix("bar_"): bar
    for module in (
        training_bars,
        prediction_bars,
        process_bars,
        default_bars,
        quality_bars,
    )
    for name, bar in vars(module).items()
    if name.startswith("bar_")
}
"""By number, as a text."""


def main(
    bar: Annotated[str, typer.Argument(help="Number of the bar")],
    data: DataOption = Path("assets"),
    output: Annotated[
        Path | None, typer.Option(help="Write the result here rather than print it")
    ] = None,
    small: SmallOption = False,
) -> None:
    """Measure one bar."""
    setting = (SMALL if small else FULL)(Corpora(data, small))
    begun = time.perf_counter()
    outcome = BARS[bar](setting)
    result = {
        "bar": bar,
        "small": small,
        "seconds": round(time.perf_counter() - begun),
        "machine": describe_machine(),
        **asdict(outcome),
    }
    line = json.dumps(result, ensure_ascii=False)
    if output:
        output.write_text(line + "\n", encoding="utf8")
    else:
        print(line)


if __name__ == "__main__":
    typer.run(main)
