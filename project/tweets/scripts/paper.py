"""Table 2 of Qian and Liu (TACL 2014): systems that are trained with the decoder they are tested with, and
how long decoders take for ever larger groups.
"""

import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from experiment import GOLD, measures
from spacy.language import Language
from spacy.training import Example
from tweets import (
    CORPORA,
    DECODERS,
    OnlyOption,
    decode,
    make_pipeline,
    read,
    resolve_grouper,
    train,
)

from spacy_hocrf.api import SingleLinkage, group_of, set_group

sys.path.append(str(Path(__file__).parents[2]))
from common.report import Result, write_lines
from common.training import write_docs

KIND = "CRF, bieso"
SYSTEMS = ("chain", "two_slave", "naive", "hybrid", "ilp")
"""Decoders, in training as in testing."""
PARTS = {"test": ("test",), "all parts": ("test", "dev", "train")}
OVERLAPS = (5, 3, 2)
"""Shared words that make a group."""
JOINT = ("two_slave", "naive", "hybrid", "ilp", "ilp_alone")
"""The decoders whose times are compared by the size of a group."""


def main(
    config_path: Annotated[Path, typer.Argument(help="Config with a component hocrf", exists=True)],
    corpus_dir: Annotated[Path, typer.Argument(help="What convert.py has written", exists=True)],
    predictions_dir: Annotated[Path, typer.Argument(help="Where the predictions go")],
    output: Annotated[Path, typer.Argument(help="Measures, a line of JSON each")],
    only: OnlyOption = None,
    seeds: Annotated[int, typer.Option(help="Trainings of each system")] = 1,
    larger: Annotated[bool, typer.Option(help="Decode larger groups, too")] = True,
) -> None:
    """Train, predict and measure every system, then every decoder on larger groups."""
    results = (
        {"corpus": corpus, **result}
        for corpus in only or CORPORA
        for result in evaluate(
            config_path,
            corpus_dir / corpus,
            predictions_dir / f"{corpus}-paper",
            seeds=seeds,
            larger=larger,
        )
    )
    write_lines(output, results, describe)


def evaluate(
    config_path: Path, corpus_dir: Path, predictions_dir: Path, *, seeds: int, larger: bool
) -> Iterator[dict[str, Any]]:
    """All results of one corpus."""
    groupers = {part: resolve_grouper(config_path, part) for part in ("train", "dev")}
    models = {}
    for seed in range(seeds):
        for system in SYSTEMS:
            nlp = make_pipeline(config_path, KIND, decoder=system, seed=seed)
            seconds = train(nlp, read(nlp, corpus_dir / "train.spacy", groupers["train"]))
            examples = read(nlp, corpus_dir / "test.spacy", groupers["dev"])
            predicted, outcomes, spent = decode(nlp, examples, DECODERS[system])
            docs = [example.predicted for example in predicted]
            write_docs(docs, predictions_dir / f"{system}-{seed}.spacy")
            models.setdefault(system, nlp)
            yield {
                "what": "system",
                "system": system,
                "seed": seed,
                "tweets": len(examples),
                "training": seconds,
                **measures(predicted, outcomes, spent),
            }
    write_docs([example.reference for example in examples], predictions_dir / GOLD)
    if larger:
        yield from by_size(models["hybrid"], corpus_dir)


def by_size(nlp: Language, corpus_dir: Path) -> Iterator[dict[str, Any]]:
    """Measures of the decoders on groups of tweets that share fewer and fewer words, with the weights of
    one model; the largest group first.
    """
    for part, names in PARTS.items():
        for overlap in OVERLAPS:
            examples = group(nlp, [corpus_dir / f"{name}.spacy" for name in names], overlap)
            sizes = Counter(group_of(example.predicted) for example in examples)
            for decoder in JOINT:
                begun = time.process_time()
                _, outcomes, _ = decode(nlp, examples, DECODERS[decoder])
                yield {
                    "what": "groups",
                    "part": part,
                    "overlap": overlap,
                    "tweets": len(examples),
                    "largest": max(sizes.values()),
                    "decoder": decoder,
                    "problems": len(outcomes),
                    "certificates": sum(outcome.certificate for outcome in outcomes),
                    "iterations": sum(outcome.iterations for outcome in outcomes),
                    "decoding": sum(outcome.seconds for outcome in outcomes),
                    "primal": sum(outcome.primal for outcome in outcomes),
                    "bound": sum(outcome.bound for outcome in outcomes),
                    "seconds": time.process_time() - begun,
                }


def group(nlp: Language, paths: Sequence[Path], overlap: int) -> list[Example]:
    """The tweets of some files, grouped all together; those of a group follow each other."""
    examples = [example for path in paths for example in read(nlp, path, SingleLinkage())]
    numbers = SingleLinkage(overlap)([example.reference for example in examples])
    for example, number in zip(examples, numbers):
        set_group(example.predicted, number)
    return sorted(examples, key=lambda example: group_of(example.predicted))


def describe(result: Result) -> str:
    """A line for each."""
    if result["what"] == "groups":
        return (
            f"{result['corpus']}, {result['part']}, {result['overlap']} words: largest group "
            f"{result['largest']}, {result['decoder']}: {result['decoding']:.2f} s, "
            f"{result['certificates']} of {result['problems']} certificates"
        )
    return (
        f"{result['corpus']}, {result['system']}, seed {result['seed']}: "
        f"{result['micro']:.2f} / {result['macro']:.2f}, {result['training']:.1f} s of training, "
        f"{result['seconds']:.2f} s of testing, certificates {result.get('certificates', np.nan):.3f}"
    )


if __name__ == "__main__":
    typer.run(main)
