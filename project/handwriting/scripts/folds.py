"""Train on one fold and test on the others, for each fold and order; CRFsuite, at order 1, with the
same pixels and the same prior.

The protocol is that of Taskar et al. (2004), which Ye et al. (2009) and Nguyen et al. (2014)
follow: a fold of about 600 words trains, the other nine test. Features of order 0 are the pixels
that are on; those of order k are the patterns of k + 1 letters that are seen in training.
"""

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from letters import PIXELS, register, spelling
from spacy.language import Language
from spacy.tokens import Doc

sys.path.append(str(Path(__file__).parents[2]))
from common.report import write_lines
from common.tagging import Score, compare, gold_tags, make_tagger, score, train, untagged
from common.training import read_docs

sys.path.append(str(Path(__file__).parents[2] / "benchmark" / "scripts"))
import peers
from checks import agree_with_crfsuite
from models import component, observation_strings

UNBOUNDED = "unbounded"
PEER = "CRFsuite"
CHECKED_AFTER = 3  # iterations
PEER_ITERATIONS = 10_000  # its own criterion stops it


def main(
    corpus: Annotated[Path, typer.Argument(help="The words (.spacy)", exists=True)],
    output: Annotated[Path, typer.Argument(help="Results, a line of JSON for each model")],
    folds: Annotated[int, typer.Option(help="Train on so many folds, one after another")] = 10,
    orders: Annotated[
        str,
        typer.Option(
            help=f"Orders, separated by commas; '{UNBOUNDED}' for patterns of every length"
        ),
    ] = "1,2,3",
    sigma: Annotated[float, typer.Option(help="Standard deviation of the prior")] = 1.0,
) -> None:
    """Print and write a line for each model."""
    register()
    docs = read_docs(corpus)
    results = (
        result
        for fold in sorted({doc.user_data["fold"] for doc in docs})[:folds]
        for result in run_fold(docs, fold, orders.split(","), sigma)
    )
    write_lines(output, results, line)


def run_fold(
    docs: Sequence[Doc], fold: int, orders: Sequence[str], sigma: float
) -> Iterator[dict[str, Any]]:
    """Results of all models that are trained on one fold.

    docs (Sequence[Doc]): all words.
    orders (Sequence[str]): numbers, or UNBOUNDED; where "1" is among them, CRFsuite follows it.
    """
    training = [doc for doc in docs if doc.user_data["fold"] == fold]
    test = [doc for doc in docs if doc.user_data["fold"] != fold]
    about = {
        "fold": fold,
        "words": len(training),
        "letters": sum(map(len, training)),
        "known": share_known(training, test),
    }
    for name in orders:
        nlp = make_tagger(docs[0].vocab, PIXELS, orders_of(name), sigma=sigma)
        figures = asdict(train(nlp, training))
        order = component(nlp).structure.settings.order
        yield {"model": name, "order": order, **about, **figures, **accuracies(score(nlp, test))}
        if order == 1:
            yield {"model": PEER, "order": 1, **about, **run_crfsuite(nlp, training, test, sigma)}


def orders_of(name: str) -> range | None:
    """Orders of the label patterns of a model; name is a number or UNBOUNDED, which has no longest."""
    return None if name == UNBOUNDED else range(1, int(name) + 1)


def share_known(training: Sequence[Doc], test: Sequence[Doc]) -> float:
    """Per cent of the test words that are spelt like one in training."""
    spellings = {spelling(doc) for doc in training}
    return 100 * sum(spelling(doc) in spellings for doc in test) / len(test)


def run_crfsuite(
    nlp: Language, training: Sequence[Doc], test: Sequence[Doc], sigma: float
) -> dict[str, Any]:
    """CRFsuite with the observations of a tagger of order 1, once that is known to have the same
    objective.

    RAISES (NotTheSame): if features or objective are not the same on both sides.
    """
    pipe = component(nlp)
    observed = observation_strings(pipe, [untagged(doc) for doc in training])
    labels = [gold_tags(doc) for doc in training]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        # where the gradient is not yet so small that the rounding of CRFsuite's weights is most of
        # it
        agree_with_crfsuite(
            nlp, peers.train_crfsuite(observed, labels, CHECKED_AFTER, path, sigma=sigma)
        )
        begun = time.process_time()
        model = peers.train_crfsuite(observed, labels, PEER_ITERATIONS, path, sigma=sigma)
        seconds = time.process_time() - begun
        tagger = peers.open_tagger(path)
        strings = observation_strings(pipe, [untagged(doc) for doc in test])
        result = compare(
            (gold_tags(doc) for doc in test), (tagger.tag(sentence) for sentence in strings)
        )
    return {
        "features": model.parameters,
        "objective": model.loss,
        "seconds": seconds,
        **accuracies(result),
    }


def accuracies(result: Score) -> dict[str, float]:
    """Per cent of the letters and of the whole words."""
    return {"accuracy": result.accuracy, "word_accuracy": result.doc_accuracy}


def line(result: dict[str, Any]) -> str:
    """A result in words."""
    name = result["model"] if result["model"] in (PEER, UNBOUNDED) else f"order {result['model']}"
    return (
        f"fold {result['fold']}, {name}: {result['accuracy']:.2f} of letters, "
        f"{result['word_accuracy']:.2f} of words; {result['features']:,} features, objective "
        f"{result['objective']:.4f}, {result['seconds']:.1f} CPU s"
    )


if __name__ == "__main__":
    typer.run(main)
