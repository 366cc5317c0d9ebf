"""Train the models of Nguyen et al. (JMLR 15, 2014) to convergence, with the paper's own templates.

C1-C3 are CRFs (segments of one token), SC1-SC3 semi-CRFs, of order 1 to 3. On the way to the
optimum each model passes the point where the released code would stop; it is scored there too.
`jmlr_report.py` prints the tables, `jmlr_significance.py` the tests. With `--splits` two models are
compared on random splits of all texts instead.
"""

import random
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Annotated, NamedTuple

import jmlr_templates  # noqa: F401 - registers references.JMLR.v1 and punctuation.JMLR.v1
import numpy as np
import spacy
import srsly
import typer
from jmlr_tasks import MICRO, MODELS, TASKS, Task
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example

from spacy_hocrf.api import (
    EntsScorer,
    LBFGSRun,
    TagsScorer,
    compare_counts,
    count_items,
    set_weights,
    weights_of,
)

sys.path.append(str(Path(__file__).parents[2]))
from common.report import show, table
from common.scores import gain, ratios, spread
from common.training import iterate, read_docs, read_examples, write_docs

ARCHITECTURES = {
    False: {"@architectures": "spacy-hocrf.HighOrderCRF.v1", "encoding": "io"},
    True: {"@architectures": "spacy-hocrf.HighOrderCRF.v1", "repeats": False},
}

VITERBI = {"@misc": "spacy-hocrf.Viterbi.v1"}


class Stop(NamedTuple):
    """Where a training was, or ended."""

    objective: float  # n·f
    iterations: int
    evaluations: int
    weights: np.ndarray  # float64 [F]


class Fit(NamedTuple):
    """A training."""

    early: Stop  # where the released code's rule stops; the end if it never does
    end: Stop


def main(
    task: Annotated[str, typer.Argument(help="references or punctuation")],
    train: Annotated[Path, typer.Argument(help="Training texts (.spacy)", exists=True)],
    test: Annotated[Path, typer.Argument(help="Test texts (.spacy)", exists=True)],
    output: Annotated[
        Path | None,
        typer.Option(help="Folder for a model's measures (.json) and its predictions (.spacy)"),
    ] = None,
    sigma: Annotated[float, typer.Option(help="Standard deviation of the prior")] = 1.0,
    only: Annotated[str, typer.Option(help="Models, separated by commas")] = ",".join(MODELS),
    splits: Annotated[
        int, typer.Option(help="Compare two models on so many random splits instead (splits.md)")
    ] = 0,
) -> None:
    """Print size, objective, F1 and time of each model; write them, with precision and recall by
    label, and the predictions.
    """
    if splits:
        text = compare_on_splits(TASKS[task], only.split(","), train, test, splits, sigma)
        show(text, output / "splits.md" if output else None)
        return
    gold = read_docs(test, spacy.blank("en").vocab)
    for name in only.split(","):
        result, docs = measure(TASKS[task], name, train, gold, sigma)
        f1, early = (100 * result[point]["scores"][MICRO]["f"] for point in ("end", "early"))
        print(
            f"{name}: {result['features']} features, {result['patterns']} patterns, "
            f"n·f {result['end']['objective']:.6f}, F1 {f1:.2f} ({early:.2f} where the released "
            f"code stops), {result['cpu']:.0f} s",
            flush=True,
        )
        if output:
            output.mkdir(parents=True, exist_ok=True)
            stem = name if sigma == 1 else f"{name}-sigma{sigma:g}"
            srsly.write_json(output / f"{stem}.json", result)
            DocBin(docs=docs).to_disk(output / f"{stem}.spacy")
    if sys.platform == "linux":
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"peak memory of the whole process: {peak:.0f} MB")


def measure(
    task: Task, name: str, train: Path, gold: Sequence[Doc], sigma: float = 1.0
) -> tuple[dict, list[Doc]]:
    """Train one model and score it. RETURNS (tuple[dict, list[Doc]]): its measures, and the
    predictions at the optimum.
    """
    order, semi = MODELS[name]
    nlp = make_pipeline(order, semi, sigma, task.features)
    examples = read_examples(nlp, train)
    begun = time.process_time()
    fitted = fit(nlp, examples)
    spent = time.process_time() - begun
    pipe = nlp.get_pipe("hocrf")
    result = {
        "model": name,
        "order": order,
        "semi": semi,
        "sigma": sigma,
        "features": len(pipe.structure.index),
        "patterns": len(pipe.structure.patterns),
        "states": len(pipe.automaton.states),
        "cpu": spent,
    }
    docs: list[Doc] = []
    for point, stop in fitted._asdict().items():  # the end comes last: its predictions are kept
        set_weights(pipe.model, stop.weights)
        docs = [
            task.complete(doc)
            for doc in nlp.pipe(Doc(nlp.vocab, words=[token.text for token in doc]) for doc in gold)
        ]
        found, wanted = ([task.items(doc) for doc in side] for side in (docs, gold))
        result[point] = {**stop._asdict(), "scores": score(found, wanted)}
        del result[point]["weights"]
        if not task.tags:
            lenient = [released_items(doc, predicted) for doc, predicted in zip(gold, found)]
            result[point]["released_scorer_f"] = score(lenient, wanted)[MICRO]["f"]
    return result, docs


def compare_on_splits(
    task: Task, names: Sequence[str], train: Path, test: Path, splits: int, sigma: float = 1.0
) -> str:
    """F1 of two models on random splits of the texts of both files, which keep their sizes.

    RETURNS (str): a table in Markdown.
    """
    vocab = spacy.blank("en").vocab
    training = read_docs(train, vocab)
    docs, n = [*training, *read_docs(test, vocab)], len(training)
    scorer, ignored = (TagsScorer(), ("O",)) if task.tags else (EntsScorer(), ())
    rows, points = [], []
    for seed in range(splits):
        shuffled = random.Random(seed).sample(docs, len(docs))
        with TemporaryDirectory() as folder:
            path, gold = Path(folder) / "train.spacy", shuffled[n:]
            write_docs(shuffled[:n], path)
            predicted = [measure(task, name, path, gold, sigma)[1] for name in names]
        compared = compare_counts(count_items(scorer, predicted, gold, ignore=ignored))["all"]
        points.append(100 * compared["difference"])
        scores = (f"{100 * compared[system]['f']:.2f}" for system in "ab")
        rows.append((str(seed + 1), *scores, gain(points[-1], compared["p_value"])))
        print(" | ".join(rows[-1]), flush=True)
    means = (f"{mean(float(row[i]) for row in rows):.2f}" for i in (1, 2))
    ahead = sum(point > 0 for point in points)
    rows.append((f"mean, ahead in {ahead} of {splits}", *means, spread(points, sign="+")))
    return table(rows, ("split", *names, f"{names[1]} - {names[0]} (p)"))


def make_pipeline(
    order: int, semi: bool, sigma: float = 1.0, features: str = "references.JMLR.v1"
) -> Language:
    """A pipeline with one of the paper's models; training stops only where the objective cannot be
    lowered further.
    """
    model = {**ARCHITECTURES[semi], "order": order}
    model["features"] = {"@misc": features, "order": order, "semi": semi}
    trainer = {"@misc": "spacy-hocrf.LBFGS.v1", "sigma": sigma, "threads": 1}
    trainer |= {"gradient_tolerance": 1e-7, "improvement_tolerance": 1e-12}
    nlp = spacy.blank("en")
    nlp.add_pipe(
        "hocrf", config={"model": model, "trainer": trainer, "decoder": VITERBI, "scores_key": None}
    )
    return nlp


def fit(nlp: Language, examples: list[Example]) -> Fit:
    """Train the first component until the optimiser stops, and note where the released code would
    have stopped.
    """
    losses: list[float] = []
    early = None
    for run in iterate(nlp, examples):
        losses.append(run.loss)
        if early is None and released_code_stops(losses):
            early = _stop(run)
    end = _stop(run)
    return Fit(early or end, end)


def released_code_stops(losses: Sequence[float]) -> bool:
    """The released code's rule: the mean improvement of the last iterations is less than 0.001 of
    the objective.

    losses (Sequence[float]): the objective at the start and after each iteration. The mean is over
        9 steps, divided by 11.
    """
    n = len(losses)
    improvement = (losses[max(0, n - 10)] - losses[-1]) / (11 if n >= 10 else n)
    return n > 5 and improvement < 0.001 * abs(losses[-1])


def score(found: Sequence[set], wanted: Sequence[set]) -> dict[str, dict[str, float]]:
    """Precision, recall and F1 by label and over all, from 0 to 1, with the numbers that they come
    from.

    found, wanted (Sequence[set[Item]]): items of each text, their last part the label.
    """
    counts = [
        Counter(item[-1] for items in sets for item in items)
        for sets in (found, wanted, map(set.__and__, found, wanted))
    ]
    return {
        label: _ratios(*(_of(count, label) for count in counts))
        for label in [*sorted(set().union(*counts)), MICRO]
    }


def released_items(gold: Doc, found: Iterable[tuple[int, int, str]]) -> set[tuple[int, int, str]]:
    """The found segments of a text as the released scorer sees them.

    It only asks whether all tokens of the last found segment have the right label: one that is too
    short counts as the gold one.
    """
    items = set(found)
    for item in [item for item in items if item[1] == len(gold)]:
        covering = [
            ent
            for ent in gold.ents
            if ent.start <= item[0] and ent.end == item[1] and ent.label_ == item[2]
        ]
        for ent in covering:
            items.remove(item)
            items.add((ent.start, ent.end, ent.label_))
    return items


def canonical_weights(pipe: object, strings: spacy.strings.StringStore) -> np.ndarray:
    """Weight 0.01·((rank mod 7) - 3) by the rank of a feature's name among the sorted names of the
    released code.
    """
    names = [feature_name(pipe, feature, strings) for feature in range(len(weights_of(pipe.model)))]
    weights = np.zeros(len(names))
    for rank, feature in enumerate(np.argsort(np.array(names, dtype=object), kind="stable")):
        weights[feature] = 0.01 * (rank % 7 - 3)
    return weights


PREFIXES = {
    "ORTH[0]": "WB",
    "ORTH[-1]": "PWB",
    "ORTH[1]": "NWB",
    "inner:ORTH[0]": "EWB",
    "inner:ORTH[-1]": "EPWB",
    "start:ORTH[0]@1": "EW",
    "start:ORTH[-1]@1": "EPW",
    "LABELS@1": "E",
    "LABELS.1@1": "1E",
    "LABELS@2": "2E",
    "LABELS@3": "3E",
}


def feature_name(pipe: object, feature: int, strings: spacy.strings.StringStore) -> str:
    """The released code's name of a feature: OBSERVATION.value, a tab, and its labels."""
    observation, labels = pipe.structure.index.describe(
        feature, strings, pipe.structure.scheme.names
    )
    template, _, value = observation.partition("=")
    value = value.replace("<edge>", "")
    if template == "LNGB":
        value += "#"
    return f"{PREFIXES.get(template, template)}.{value}\t{labels}"


def _stop(run: LBFGSRun) -> Stop:
    return Stop(run.loss, run.iterations, run.evaluations, run.weights.copy())


def _of(count: Counter, label: str) -> int:
    return count.total() if label == MICRO else count[label]


def _ratios(found: int, wanted: int, right: int) -> dict[str, float]:
    return {**ratios(right, found, wanted), "found": found, "wanted": wanted, "right": right}


if __name__ == "__main__":
    typer.run(main)
