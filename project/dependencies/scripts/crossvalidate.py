"""Three-fold cross-validation over logs: Table 3 of Qian and Liu (TACL 2014), and the decoders'
progress, their Figure 4.

Every system is trained with the decoder that it is tested with, but for those that only decode:
they take the weights that the hybrid decomposition has learnt. So do all decoders of the figure, so
that they have the same problems to solve.
"""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from features import Observed, observe
from logs import Window, log_names, read_windows
from models import ORDERS, Decoder, Model, one_each, train
from numpy.typing import NDArray

from spacy_hocrf.api import Decoding, DualSettings, GraphInstance, dual_decompose

sys.path.append(str(Path(__file__).parents[2]))
from common.report import write_lines

FOLDS = 3
POINTS = (1, 2, 3, 5, 10, 20, 50, 100, 200)
"""Iterations at which the figure looks."""
DECODERS = {
    "naive": DualSettings(kind="naive", local_search=False),
    "two_slave": DualSettings(kind="two_slave", step="harmonic"),
    "hybrid": DualSettings(),
    "exact": DualSettings(fallback="ilp"),
    "ilp": DualSettings(kind="ilp"),
}
"""Naive and two_slave are the paper's, which does not look near the best assignment; two_slave with
harmonic steps, since those of the paper end too early here. Exact is hybrid, and an integer linear
program for what it leaves open.
"""
ONE_EACH = "one each"
"""A decoder of independent vertices that gives a message one link at most."""
SYSTEMS = (
    ("local", "hybrid", True),
    ("local", ONE_EACH, True),
    ("2D", "naive", True),
    ("2D", "two_slave", True),
    ("2D", "hybrid", True),
    ("2D", "exact", True),
    ("2D", "ilp", False),
    ("3-wise", "naive", True),
    ("3-wise", "two_slave", True),
    ("3-wise", "hybrid", True),
    ("3-wise", "exact", True),
    ("3-wise", "ilp", False),
)
"""Model, decoder, and whether it is trained with this decoder. Independent vertices are decoded
exactly by any.
"""


@dataclass(frozen=True)
class Outcome:
    """What decoding some windows has come to."""

    # [windows, 2] links found that are annotated: all, and those to an earlier message
    correct: NDArray[np.int64]
    predicted: NDArray[np.int64]  # [windows, 2]
    gold: NDArray[np.int64]  # [windows, 2]
    seconds: float  # CPU time of decoding
    iterations: int
    certificates: int
    bounds: NDArray[np.float64]  # [windows]
    primals: NDArray[np.float64]  # [windows]

    def by_log(self, windows: Sequence[Window]) -> dict[str, Any]:
        """As a line of JSON, with the counts of each log."""
        names = sorted({window.log for window in windows})
        place = [names.index(window.log) for window in windows]
        counts = {}
        for name in ("correct", "predicted", "gold"):
            total = np.zeros((len(names), 2), dtype=np.int64)
            np.add.at(total, place, getattr(self, name))
            counts[name] = total.tolist()
        rest = {name: getattr(self, name) for name in ("seconds", "iterations", "certificates")}
        scores = {name: getattr(self, name).tolist() for name in ("bounds", "primals")}
        return {"windows": len(windows), "logs": names, **counts, **rest, **scores}


def main(
    corpus: Annotated[Path, typer.Argument(help="The training part of the corpus", exists=True)],
    output: Annotated[
        Path, typer.Argument(help="Results, a line of JSON for each system and fold")
    ],
    logs: Annotated[int, typer.Option(help="Logs, drawn at random")] = 75,
    windows: Annotated[
        int,
        typer.Option(help="Windows of each log for training and for the figure, drawn at random"),
    ] = 2,
    test_windows: Annotated[
        int, typer.Option(help="Windows of each log for testing; those for training are among them")
    ] = 6,
    size: Annotated[int, typer.Option(help="Messages of a window, at most")] = 15,
    epochs: Annotated[int, typer.Option(help="Epochs of the perceptron")] = 10,
    iterations: Annotated[
        int, typer.Option(help="Iterations of dual decomposition, at most")
    ] = 200,
    kinds: Annotated[
        str, typer.Option(help="Decoders of the grids, separated by commas; hybrid among them")
    ] = ",".join(DECODERS),
    time_limit: Annotated[float, typer.Option(help="Of an integer linear program, seconds")] = 10.0,
    seed: Annotated[
        int, typer.Option(help="Of the sample, the folds and the order of the windows in training")
    ] = 0,
) -> None:
    """Print and write the results."""
    chosen = kinds.split(",")
    if "hybrid" not in chosen or set(chosen) - set(DECODERS):
        raise typer.BadParameter(
            f"--kinds {kinds}: choose hybrid, and what you like of {', '.join(DECODERS)}."
        )
    sample = draw(corpus, logs, max(windows, test_windows), size, seed)
    limits = {"max_iterations": iterations, "time_limit": time_limit}
    results = (
        {"fold": fold, **result}
        for fold, parts in enumerate(folds(sample, windows, test_windows))
        for result in evaluate(*parts, chosen, epochs, limits, seed)
    )
    write_lines(output, results, line)


def draw(corpus: Path, logs: int, windows: int, size: int, seed: int) -> list[list[Window]]:
    """Some windows of some logs, both in random order."""
    random = np.random.default_rng(seed)
    chosen = []
    for name in random.permutation(log_names(corpus))[:logs].tolist():
        every = read_windows(corpus, name, size)
        chosen.append([every[k] for k in random.permutation(len(every))[:windows].tolist()])
    return chosen


def folds(
    sample: Sequence[Sequence[Window]], windows: int, test_windows: int
) -> Iterator[tuple[list[Window], ...]]:
    """Windows for training, and from other logs those for testing and the few for the figure."""
    for fold in range(FOLDS):
        training = [
            window for k, log in enumerate(sample) if k % FOLDS != fold for window in log[:windows]
        ]
        test = sample[fold::FOLDS]
        yield (
            training,
            [w for log in test for w in log[:test_windows]],
            [w for log in test for w in log[:windows]],
        )


def evaluate(
    training: Sequence[Window],
    test: Sequence[Window],
    few: Sequence[Window],
    kinds: Sequence[str],
    epochs: int,
    limits: Mapping[str, Any],
    seed: int,
) -> Iterator[dict[str, Any]]:
    """The results of one fold: each system, then the progress of the decoders on a few of the
    windows.
    """
    models: dict[tuple[str, str], Model] = {}
    systems = [system for system in SYSTEMS if system[0] == "local" or system[1] in kinds]
    for name, kind, trained in systems:
        decoder = one_each if kind == ONE_EACH else decoder_of(replace(DECODERS[kind], **limits))
        spent: dict[str, Any] = {}
        if trained:
            begun, history = time.process_time(), []
            model = train(
                training, ORDERS[name], decoder, epochs=epochs, seed=seed, report=history.append
            )
            models[name, kind] = model
            spent = {
                "training_seconds": time.process_time() - begun,
                "epochs": [epoch._asdict() for epoch in history],
            }
        outcome = decode_all(models[name, kind if trained else "hybrid"], test, decoder)
        yield {
            "what": "system",
            "model": name,
            "kind": kind,
            "trained": trained,
            **outcome.by_log(test),
            **spent,
        }
    for name in ("2D", "3-wise"):
        for kind in [kind for kind in kinds if kind not in ("exact", "ilp")]:
            for point in POINTS:
                decoder = decoder_of(
                    replace(DECODERS[kind], local_search=False, max_iterations=point)
                )
                outcome = decode_all(models[name, "hybrid"], few, decoder)
                yield {
                    "what": "progress",
                    "model": name,
                    "kind": kind,
                    "point": point,
                    **outcome.by_log(few),
                }


def decode_all(model: Model, windows: Sequence[Window], decoder: Decoder) -> Outcome:
    """Decode windows and compare with their annotation. The time is that of decoding alone."""
    counts, scores, seconds, iterations, certificates = [], [], 0.0, 0, 0
    for window in windows:
        observed = observe(window, model.order)
        instance = model.instance(observed)
        begun = time.process_time()
        found = decoder(instance, observed)
        seconds += time.process_time() - begun
        iterations += found.iterations
        certificates += found.certificate
        scores.append((found.bound, found.primal))
        counts.append(count(observed, found.assignment))
    correct, predicted, gold = np.array(counts).transpose(1, 0, 2)
    bounds, primals = np.array(scores).T
    return Outcome(correct, predicted, gold, seconds, iterations, certificates, bounds, primals)


def count(observed: Observed, assignment: NDArray[np.int32]) -> NDArray[np.int64]:
    """Correct, predicted and annotated links: all, and those to earlier messages; int64 [3, 2]."""
    gold, earlier = observed.gold, observed.grid.target < observed.grid.source
    return np.array(
        [[each.sum(), each[earlier].sum()] for each in (gold & assignment, assignment, gold)]
    )


def decoder_of(settings: DualSettings) -> Decoder:
    """`dual_decompose` with these settings; the spanning tree is that of the paper, the rows of the
    grid.
    """
    return partial(_decode, settings)


def _decode(settings: DualSettings, instance: GraphInstance, observed: Observed) -> Decoding:
    rows = observed.grid.row_edges if len(instance.weights) else observed.grid.row_edges[:0]
    return dual_decompose(instance, settings, edges=rows)


def line(result: Mapping[str, Any]) -> str:
    """A result to look at while others are to come."""
    correct, predicted, gold = (
        np.array(result[name]).sum(axis=0)[0] for name in ("correct", "predicted", "gold")
    )
    name = f"fold {result['fold']}, {result['model']}, {result['kind']}" + (
        f", {result['point']}" if "point" in result else ""
    )
    share = result["certificates"] / result["windows"]
    training = (
        f", trained {result['training_seconds']:.1f} s" if "training_seconds" in result else ""
    )
    return (
        f"{name}: F {2 * correct / (predicted + gold):.4f}, {result['seconds']:.2f} s, "
        f"certificates {share:.2f}{training}"
    )


if __name__ == "__main__":
    typer.run(main)
