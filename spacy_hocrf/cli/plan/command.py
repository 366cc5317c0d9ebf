"""`python -m spacy hocrf plan`: what training on many more texts of the same kind would take."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from spacy.cli._util import import_code, parse_config_overrides, show_validation_error
from spacy.util import load_config, load_model_from_config
from thinc.api import Config
from typer import Argument, Context, Option
from wasabi import msg

from spacy_hocrf.cli.components import component_of
from spacy_hocrf.cli.errors import CommandErrors
from spacy_hocrf.cli.folds import read_corpus
from spacy_hocrf.cli.messages import coded_errors
from spacy_hocrf.cli.plan.advice import Row, advice_on, rows_of
from spacy_hocrf.cli.plan.costs import Scale
from spacy_hocrf.cli.plan.sampling import COUNTS, Sample, sample_of
from spacy_hocrf.cli.plan.words import gigabytes, number, seconds

__all__ = ["Plan", "plan", "plan_cli"]

SAMPLE = 4_000
BANDWIDTH = 1.25
"""GB a second: Ethernet of 10 Gbit."""
FAR = 10
"""Times the sample, from which on it is said what is only extrapolated."""


@dataclass(frozen=True)
class Plan:
    """What training would take."""

    name: str
    sample: Sample
    texts: float
    times: float  # the corpus that there is
    scale: Scale
    least: Scale  # with as few features as can be expected
    rows: tuple[Row, ...]
    advice: tuple[str, ...]


def plan_cli(
    ctx: Context,
    config_path: Annotated[
        Path, Argument(help="Config of the pipeline", exists=True, dir_okay=False)
    ],
    texts: Annotated[
        Path, Argument(help="Annotated texts (.spacy), some of those to come", exists=True)
    ],
    times: Annotated[
        float, Option("--times", "-t", min=0.001, help="So many times these texts")
    ] = 1.0,
    workers: Annotated[
        str, Option("--workers", "-w", help="How many work, several numbers with commas")
    ] = "1,2,10,100,1000",
    cores: Annotated[
        int, Option("--cores", min=0, help="Of a machine, 0 for as many as this one has")
    ] = 0,
    bandwidth: Annotated[
        float, Option("--bandwidth", "-b", min=1e-6, help="Of a machine's link, GB a second")
    ] = BANDWIDTH,
    room: Annotated[
        float, Option("--memory", "-m", min=0, help="Of a machine, GB; 0 for as much as here")
    ] = 0.0,
    iterations: Annotated[int, Option("--iterations", "-i", min=1, help="Of training")] = 100,
    most: Annotated[int, Option("--sample", min=16, help="Measure on so many texts")] = SAMPLE,
    component: Annotated[
        str | None, Option("--component", "-n", help="Name of the component, if there are several")
    ] = None,
    code: Annotated[
        Path | None, Option("--code", "-c", help="Python file with code that the pipeline needs")
    ] = None,
) -> None:
    """Say what training on many times some texts would take: memory, seconds and traffic of an
    evaluation by so many workers, and which setting to change where it does not fit.

    Some of the texts are measured. Settings are overridden as in `spacy train`. Nothing is trained.
    """
    import_code(code)
    overrides = {**parse_config_overrides(ctx.args)}
    with show_validation_error(config_path), coded_errors():
        config = load_config(config_path, overrides=overrides, interpolate=False)
        found = plan(
            config, texts, times, _numbers(workers), cores, bandwidth, room, most, component
        )
        _print(found, iterations)


def plan(
    config: Config,
    texts: Path,
    times: float,
    workers: list[int],
    cores: int = 0,
    bandwidth: float = BANDWIDTH,
    room: float = 0.0,
    most: int = SAMPLE,
    component: str | None = None,
) -> Plan:
    """Measure some of the texts, and reckon; what the options of the command are called.

    config (Config): not interpolated.
    RAISES (ValueError): H204 for a component that there is not, H337 for too few texts, H338 for a trainer
        that does not go through the whole corpus.
    """
    config = config.copy()
    config["corpora"]["train"]["path"] = str(texts)
    nlp = load_model_from_config(config, auto_fill=True)
    name, pipe = component_of(nlp, component)
    examples = read_corpus(nlp)
    tokens = times * sum(len(example.predicted) for example in examples)
    sample = sample_of(config, name, examples, most)
    scale, least = sample.scale(tokens), sample.scale(tokens, least=True)
    training = nlp.config.interpolate()["training"]
    parts = getattr(getattr(pipe.trainer, "workers", None), "parts", None)
    cores = cores or os.cpu_count() or 1
    streamed = training["max_epochs"] == -1
    rows = rows_of(sample, scale, workers, cores, parts, 1e9 * bandwidth, streamed)
    count = pipe.structure.settings.min_count
    advice = advice_on(sample, scale, rows, 1e9 * room or _memory_here(), count)
    return Plan(
        name, sample, times * len(examples), times, scale, least, tuple(rows), tuple(advice)
    )


def _numbers(workers: str) -> list[int]:
    """RAISES (ValueError): H074 for what are no numbers."""
    found = workers.split(",")
    if not all(each.strip().isdecimal() and int(each) > 0 for each in found):
        expected = "numbers of at least 1, with commas between them"
        raise ValueError(
            CommandErrors.H074.format(option="--workers", found=workers, expected=expected)
        )
    return sorted({int(each) for each in found})


def _memory_here() -> float:
    """Bytes of this machine; without end where it does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return float("inf")


def _print(found: Plan, iterations: int) -> None:
    sample, scale = found.sample, found.scale
    msg.divider(f"Measured for '{found.name}', order {sample.order}")
    points = [
        (
            number(point.texts),
            number(point.tokens),
            number(point.features[1]),
            f"{1e6 * point.initialize / point.tokens:.3g} µs",
            f"{1e6 * point.token:.3g} µs",
        )
        for point in sample.points
    ]
    header = ("texts", "tokens", "features", "initialize, a token", "evaluation, a token")
    msg.table(points, header=header, aligns=5 * ("r",), divider=True)
    for warning in sample.warnings:
        msg.warn(warning)
    msg.divider(f"{number(found.texts)} texts, {number(scale.tokens)} tokens")
    _print_features(found)
    initialize = sample.initialize * scale.tokens
    msg.text(f"To initialize, on one core, without reading the texts: {seconds(initialize)}")
    works = [_row(row, initialize, iterations) for row in found.rows]
    memory, time = ("driver", "a worker", "files"), ("evaluation", "of it sums", "efficiency")
    columns = ("workers", "parts", *memory, *time, "sent", f"{iterations} iterations")
    msg.table(works, header=columns, aligns=("l", *9 * ("r",)), divider=True)
    msg.text(
        "driver: memory of the process that leads. a worker: of each other process. files: what they map, or "
        "Ray's objects. sent: in an evaluation, over links"
    )
    msg.divider("What to change")
    for line in found.advice:
        msg.warn(line)
    if not found.advice:
        msg.good("Nothing: all of it fits.")


def _print_features(found: Plan) -> None:
    sample, tokens = found.sample, found.scale.tokens
    rows = []
    for count in COUNTS:
        growth = sample.features(count)
        least, most = (sample.scale(tokens, count, each).features for each in (True, False))
        if most:
            now = number(sample.last.features[count])
            rows.append((str(count), now, f"{growth.exponent:.2f}", number(least), number(most)))
    header = ("min_count", "features now", "exponent", "then, at least", "at most")
    msg.table(rows, header=header, aligns=5 * ("r",), divider=True)
    beyond = found.scale.tokens / sample.last.tokens
    if beyond > FAR:
        msg.text(
            f"The texts are {number(beyond)} times what was measured, so this is extrapolated. At most: "
            "features go on growing as a power of the tokens, as in the last two samples. At least: "
            "the exponent goes on falling. What follows is for at most."
        )


def _row(row: Row, initialize: float, iterations: int) -> tuple[str, ...]:
    memory, takes = row.memory, row.evaluation
    return (
        row.name,
        number(row.cluster.parts),
        gigabytes(memory.driver),
        gigabytes(memory.worker) if memory.worker else "-",
        gigabytes(memory.files) if memory.files else "-",
        seconds(takes.seconds),
        f"{100 * (1 - takes.leaves / takes.seconds):.0f} %",
        f"{100 * row.efficiency:.0f} %",
        gigabytes(takes.traffic) if takes.traffic else "-",
        seconds(initialize + iterations * takes.seconds),
    )
