"""Draw Markov models and sequences, and train CRFs of growing order on them: Figure 2 and Table 2
of Nguyen et al. (2014).

The states, the training sequences of each size (the smaller are the first of the larger) and the
noise are drawn once for each model; σ only scales the noise, so that what differs between two σ,
sizes or orders is that alone.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from markov import (
    Generator,
    Sample,
    count_exclusive,
    draw,
    make_generator,
    most_likely_states,
    observe,
)
from numpy.typing import NDArray
from spacy.tokens import Doc
from spacy.vocab import Vocab

sys.path.append(str(Path(__file__).parents[2]))
from common.report import write_lines
from common.tagging import make_tagger, score, train

OBSERVATIONS = {
    "numbers": {"@misc": "spacy-hocrf.Real.v1", "source": "tensor", "window": [-1, 0, 1]}
}
GENERATORS = (2, 3)
TEST = 500
PATTERN = 5  # labels of the patterns of Table 2


def main(
    output: Annotated[Path, typer.Argument(help="Results, a line of JSON for each model")],
    seed: Annotated[int, typer.Option(help="Seed of everything that is drawn")] = 0,
    draws: Annotated[int, typer.Option(help="Markov models of each order")] = 3,
    sizes: Annotated[
        str, typer.Option(help="Training sequences, separated by commas")
    ] = "300,400,500",
    noises: Annotated[
        str, typer.Option(help="Standard deviations σ of the observations")
    ] = "0.05,0.2,0.5",
    orders: Annotated[str, typer.Option(help="Orders of the CRFs")] = "0,1,2,3,4,5",
    sigma: Annotated[float, typer.Option(help="Standard deviation of the prior")] = 1.0,
) -> None:
    """Print and write a line for each model and for each training set."""
    grid = whole(sizes), [float(noise) for noise in noises.split(",")], whole(orders)
    results = (
        {"draw": number, "k": k, **result}
        for number in range(draws)
        for k in GENERATORS
        for result in sweep(np.random.default_rng([seed, number, k]), k, *grid, sigma)
    )
    write_lines(output, results, line)


def sweep(
    random: np.random.Generator,
    k: int,
    sizes: Sequence[int],
    noises: Sequence[float],
    orders: Sequence[int],
    sigma: float,
) -> Iterator[dict[str, Any]]:
    """All results of one Markov model: the patterns of each training set, then a CRF for each σ,
    size and order.
    """
    generator = make_generator(random, k)
    training, test = draw(random, generator, max(sizes)), draw(random, generator, TEST)
    for size in sizes:
        states = training.first(size).states
        yield {
            "what": "patterns",
            "size": size,
            "train": count_exclusive(states, test.states, PATTERN),
            "test": count_exclusive(test.states, states, PATTERN),
        }
    vocab = Vocab()
    for noise in noises:
        test_docs = to_docs(generator, test, noise, vocab)
        best = most_likely_states(generator, observe(generator, test, noise), noise)
        yield {
            "what": "ceiling",
            "noise": noise,
            "accuracy": 100 * float((best == test.states).mean()),
        }
        for size in sizes:
            docs = to_docs(generator, training.first(size), noise, vocab)
            for order in orders:
                nlp = make_tagger(vocab, OBSERVATIONS, range(order + 1), sigma=sigma)
                figures = asdict(train(nlp, docs))
                accuracy = score(nlp, test_docs).accuracy
                yield {
                    "what": "CRF",
                    "noise": noise,
                    "size": size,
                    "order": order,
                    "accuracy": accuracy,
                    **figures,
                }


def to_docs(generator: Generator, sample: Sample, noise: float, vocab: Vocab) -> list[Doc]:
    """A Doc for each sequence: its observations as `doc.tensor`, its states as tags."""
    return [
        to_doc(states, numbers, vocab)
        for states, numbers in zip(sample.states, observe(generator, sample, noise))
    ]


def to_doc(states: NDArray[np.int64], numbers: NDArray[np.float64], vocab: Vocab) -> Doc:
    """One sequence. The text of its tokens says nothing."""
    doc = Doc(vocab, words=["x"] * len(states), tags=[f"s{state + 1}" for state in states.tolist()])
    doc.tensor = numbers.astype(np.float32)
    return doc


def whole(numbers: str) -> list[int]:
    """Whole numbers, separated by commas."""
    return [int(number) for number in numbers.split(",")]


def line(result: dict[str, Any]) -> str:
    """A result in words."""
    which = f"draw {result['draw']}, k = {result['k']}"
    if result["what"] == "patterns":
        parts = [f"{part} {result[part][0]}/{result[part][1]}" for part in ("train", "test")]
        return f"{which}, {result['size']} sequences: exclusive patterns, {', '.join(parts)}"
    if result["what"] == "ceiling":
        return (
            f"{which}, σ = {result['noise']}: {result['accuracy']:.2f} with the Markov model itself"
        )
    return (
        f"{which}, σ = {result['noise']}, {result['size']} sequences, order {result['order']}: "
        f"{result['accuracy']:.2f}; {result['patterns']} patterns, {result['iterations']} "
        f"iterations, {result['seconds']:.1f} CPU s"
    )


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf8")
    typer.run(main)
