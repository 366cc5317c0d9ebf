"""Does agreement add to the default, and to a default that has word vectors and another pipeline's
entities? `nlp.add_pipe("hocrf")` with joint features, decoded with them and without, on both corpora.

The weights of agreement are one for each type, or one for each type and phrase. A seed is an order of the
training tweets: the folds follow from it, in which settings, cost and weights are chosen.
"""

import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Annotated, Any

import numpy as np
import spacy
import typer
from experiment import GOLD
from numpy.typing import NDArray
from report import count
from spacy.training import Example
from spacy.util import registry
from tweets import CORPORA, DECODERS, decode, f1, read, resolve_grouper

from spacy_hocrf.api import Counts, IdenticalPhrases, PlaceSets, TokenBatch, compare_counts

sys.path.append(str(Path(__file__).parents[2]))
from common.report import CopyOption, Result, group, read_lines, show, table, write_lines
from common.scores import gain
from common.training import learn, read_docs, write_docs

sys.path.append(str(Path(__file__).parents[2] / "knowledge" / "scripts"))
from knowledge import DEFAULT, Informed, config_of, make_informed
from outside import load_outside

ASSETS = Path(__file__).parents[2] / "knowledge" / "assets"
BASES = (DEFAULT, "vectors+spans")
WEIGHTS = ("type", "phrase")
DECODED = {"alone": "chain", "together": "hybrid"}
MAX_LENGTH = 3
COUNTED = ("correct", "predicted", "gold")


@registry.misc("tweets.OnePhrase.v1")
@dataclass(frozen=True, kw_only=True)
class OnePhrase(IdenticalPhrases):
    """Agreement of one phrase, which has weights of its own.

    phrase (str): its words in lower case, with a space between them.
    """

    phrase: str

    @property
    def name(self) -> str:
        """The phrase."""
        return self.phrase

    def find(self, batch: TokenBatch, groups: NDArray[np.int64]) -> PlaceSets:
        """Pairs of places with the phrase."""
        sets = super().find(batch, groups)
        words = [token.lower_ for doc in batch.docs for token in doc]
        places = zip(sets.start.tolist(), sets.end.tolist())
        own = np.array([" ".join(words[a:b]) == self.phrase for a, b in places], dtype=bool)
        return PlaceSets(np.arange(0, own.sum() + 1, 2), sets.start[own], sets.end[own])


def main(
    config_path: Annotated[Path, typer.Argument(help="Config with groups", exists=True)],
    corpus_dir: Annotated[Path, typer.Argument(help="What convert.py has written", exists=True)],
    predictions_dir: Annotated[Path, typer.Argument(help="Where the predictions go")],
    results: Annotated[Path, typer.Argument(help="Measures, a line of JSON each")],
    part: Annotated[str, typer.Option(help="dev or test")] = "test",
    seeds: Annotated[int, typer.Option(help="Orders of the training tweets")] = 3,
    output: CopyOption = None,
) -> None:
    """Train, predict and measure, and print the table."""
    systems = make_informed(BASES, load_outside(ASSETS))
    groupers = {name: resolve_grouper(config_path, name) for name in ("train", "dev")}

    every = product(CORPORA, systems, range(seeds), WEIGHTS)
    jobs = (job for job in every if job[3] in kinds_of(*job[:2]))

    def measured() -> Iterator[Result]:
        for corpus, base, seed, weights in jobs:
            train, scored = (corpus_dir / corpus / f"{name}.spacy" for name in ("train", part))
            system, phrases = systems[base], phrases_of(train) if weights == "phrase" else []
            nlp = made(system, phrases)
            examples = told(system, read(nlp, train, groupers["train"]))
            random.Random(seed).shuffle(examples)
            learn(nlp, examples)
            examples = told(system, read(nlp, scored, groupers["dev"]))
            folder = predictions_dir / f"{corpus}-{base}-{seed}"
            write_docs([example.reference for example in examples], folder / GOLD)
            for decoded, decoder in DECODED.items():
                predicted, _, _ = decode(nlp, examples, DECODERS[decoder])
                docs = [example.predicted for example in predicted]
                write_docs(docs, folder / f"{weights}-{decoded}.spacy")
                about = {"corpus": corpus, "base": base, "seed": seed, "weights": weights}
                scores = dict(zip(("micro", "macro"), f1(predicted)))
                yield {**about, "decoded": decoded, **scores}

    write_lines(results, measured(), describe)
    show(as_table(read_lines(results), predictions_dir), output)


def kinds_of(corpus: str, base: str) -> tuple[str, ...]:
    """Kinds of weights: by phrase where that takes minutes only."""
    return WEIGHTS if (corpus, base) == (CORPORA[0], DEFAULT) else WEIGHTS[:1]


def made(system: Informed, phrases: Sequence[str]) -> spacy.Language:
    """A pipeline with the default settings and joint features; it is not trained.

    phrases (Sequence[str]): those that have weights of their own; with none, types have.
    """
    nlp = spacy.blank("en")
    for kind in system.told:
        kind.equip(nlp.vocab)
    one = {"@misc": "spacy-hocrf.IdenticalPhrases.v1", "max_length": MAX_LENGTH}
    features: dict[str, Any] = {"phrases": one}
    if phrases:
        features = {
            f"p{number}": {
                "@misc": "tweets.OnePhrase.v1",
                **dict.fromkeys(("min_length", "max_length"), phrase.count(" ") + 1),
                "phrase": phrase,
            }
            for number, phrase in enumerate(phrases)
        }
    decoder = {"@misc": "spacy-hocrf.DualDecomposition.v1", "max_group_tokens": 1_000_000}
    joint = {"@misc": "spacy-hocrf.Joint.v1", "features": features}
    joint |= {"group_by": "hocrf_group", "decoder": decoder}
    nlp.add_pipe("hocrf", config={**config_of(system.told), "joint": joint})
    return nlp


def phrases_of(path: Path) -> list[str]:
    """Phrases of up to three words that are annotated at least twice, in lower case."""
    ents = [ent for doc in read_docs(path) for ent in doc.ents if len(ent) <= MAX_LENGTH]
    counts = Counter(" ".join(token.text for token in ent).lower() for ent in ents)
    return sorted(phrase for phrase, n in counts.items() if n > 1)


def told(system: Informed, examples: Sequence[Example]) -> list[Example]:
    """The examples, whose Docs have what the system is told of them."""
    for kind in system.told:
        kind.read([token.text for token in example.predicted] for example in examples)
        for example in examples:
            kind.show(example.predicted)
    return list(examples)


def describe(result: Result) -> str:
    """One line."""
    about = "{corpus}, {base}, seed {seed}, weights by {weights}, {decoded}".format(**result)
    return about + ": micro {micro:.2f}, macro {macro:.2f}".format(**result)


def as_table(results: Sequence[Result], predictions_dir: Path) -> str:
    """A row for each corpus and base: F1 alone and with either kind of weights."""
    rows = []
    for (corpus, base), some in group(results, "corpus", "base").items():
        seeds = sorted({result["seed"] for result in some})
        folders = [predictions_dir / f"{corpus}-{base}-{seed}" for seed in seeds]
        kinds = kinds_of(corpus, base)
        names = ["type-alone", *(f"{weights}-together" for weights in kinds)]
        counts = [count(folder, names) for folder in folders]
        tables = ([getattr(each, name) for each in counts] for name in COUNTED)
        pooled = Counts(counts[0].labels, *map(sum, tables))
        cells = [corpus, base, scores(some, "type", "alone")]
        for number, weights in enumerate(kinds, 1):
            test = compare_counts(pooled, 0, number)["all"]
            cells.append(scores(some, weights, "together"))
            cells.append(gain(100 * test["difference"], test["p_value"]))
        rows.append([*cells, *[""] * (2 * (len(WEIGHTS) - len(kinds)))])
    header = ("corpus", "base", "alone, micro / macro")
    for weights in WEIGHTS:
        header += (f"together, weights by {weights}", "micro, more than alone (p)")
    return table(rows, header, "ll")


def scores(results: Sequence[Result], weights: str, decoded: str) -> str:
    """Micro and macro F1, means of the seeds."""
    some = [r for r in results if (r["weights"], r["decoded"]) == (weights, decoded)]
    return " / ".join(f"{mean(r[key] for r in some):.2f}" for key in ("micro", "macro"))


if __name__ == "__main__":
    typer.run(main)
