"""How much of the gain is knowing the words? Test only on words that no training word is spelt
like, beside the others.

The data has few different words, each by many writers, so that in the papers' protocol nearly every
test word is spelt like one in training. Here the spellings are dealt into groups. A group at a time
is taken out of the training fold and tested, in the other folds; the same test words are then
tested once more with the whole training fold.
"""

import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from folds import PIXELS, UNBOUNDED, orders_of
from letters import register, spelling
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

sys.path.append(str(Path(__file__).parents[2]))
from common.report import show, table
from common.tagging import Score, make_tagger, score, train

HEADER = (
    "order",
    "spelling unseen: letters right",
    "words right",
    "spelling seen: letters right",
    "words right",
)


def main(
    corpus: Annotated[Path, typer.Argument(help="The words (.spacy)", exists=True)],
    output: Annotated[Path, typer.Argument(help="Write the table here too")],
    fold: Annotated[int, typer.Option(help="The fold to train on")] = 0,
    groups: Annotated[int, typer.Option(help="Groups of spellings")] = 5,
    seed: Annotated[int, typer.Option(help="Decides the groups")] = 0,
    orders: Annotated[
        str, typer.Option(help="Orders, separated by commas")
    ] = f"0,1,2,3,5,{UNBOUNDED}",
    sigma: Annotated[float, typer.Option(help="Standard deviation of the prior")] = 1.0,
) -> None:
    """Print how many letters and words are right, by order, of words with unseen and with seen
    spelling.
    """
    register()
    docs = list(DocBin().from_disk(corpus).get_docs(Vocab()))
    dealt = deal({spelling(doc) for doc in docs}, groups, seed)
    test = [doc for doc in docs if doc.user_data["fold"] != fold]
    training = [doc for doc in docs if doc.user_data["fold"] == fold]
    rows = []
    for order in orders.split(","):
        unseen = add(
            evaluate(without(training, group), within(test, group), order, sigma) for group in dealt
        )
        seen = evaluate(training, test, order, sigma)
        cells = (
            f"{value:.2f}"
            for found in (unseen, seen)
            for value in (found.accuracy, found.doc_accuracy)
        )
        rows.append((order, *cells))
        print(" | ".join(rows[-1]), flush=True)
    print()
    show(table(rows, HEADER), output)


def deal(spellings: set[str], groups: int, seed: int) -> list[set[str]]:
    """Spellings in groups whose sizes differ by one at most."""
    shuffled = sorted(spellings)
    random.Random(seed).shuffle(shuffled)
    return [set(shuffled[i::groups]) for i in range(groups)]


def within(docs: Sequence[Doc], group: set[str]) -> list[Doc]:
    """Those spelt like one of a group."""
    return [doc for doc in docs if spelling(doc) in group]


def without(docs: Sequence[Doc], group: set[str]) -> list[Doc]:
    """The others."""
    return [doc for doc in docs if spelling(doc) not in group]


def evaluate(training: Sequence[Doc], test: Sequence[Doc], name: str, sigma: float) -> Score:
    """Train and test one model; name is a number or UNBOUNDED."""
    nlp = make_tagger(training[0].vocab, PIXELS, orders_of(name), sigma=sigma)
    train(nlp, training)
    return score(nlp, test)


def add(scores: Sequence[Score]) -> Score:
    """Several scores as one."""
    return Score(
        *(
            sum(counts)
            for counts in zip(*((s.tokens, s.right_tokens, s.docs, s.right_docs) for s in scores))
        )
    )


if __name__ == "__main__":
    typer.run(main)
