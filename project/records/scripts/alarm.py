"""Are texts noticed that are not like those that a threshold was found on, and are others left in peace?

A model of half of the texts reads the other half. Of these, one part stands for the texts of the threshold,
and samples of the rest for texts to come: as they are, with damaged letters, and of another task.
"""

import random
import string
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import spacy
import typer
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc

sys.path.append(str(Path(__file__).parents[2] / "defaults" / "scripts"))
from readers import Text
from systems import example_of
from tasks import load, shuffled

sys.path.append(str(Path(__file__).parents[2]))
from common.report import show, table
from common.training import learn

from spacy_hocrf.api import Acceptance

OTHERS = {"addresses": "anystyle", "anystyle": "cora"}
DAMAGED = 0.05
"""Of the letters."""
ALARM = 0.01
SIZES = (50, 100, 200)
DRAWS = 500

Chances = NDArray[np.float64]


def main(output: Annotated[Path, typer.Argument(help="Markdown file")] = Path("alarm.md")) -> None:
    """Write the table: of random samples, the share that is taken for other texts."""
    rows = []
    for task, other in OTHERS.items():
        rows += look(task, texts_of(task), other, texts_of(other))
    header = ("task", "texts", "like them", "damaged", "of another task", "another task")
    show("# Texts of another kind\n\n" + table(rows, header, "lrrrrl"), output)


def texts_of(task: str) -> list[Text]:
    """Training and dev part."""
    parts = load(task)
    return [*parts["train"], *parts["dev"]]


def look(
    task: str, texts: Sequence[Text], other: str, strangers: Sequence[Text]
) -> list[tuple[str, ...]]:
    """Rows of the table."""
    order = shuffled(len(texts), f"{task} alarm")
    half = len(order) // 2
    nlp = spacy.blank("en")
    nlp.add_pipe("hocrf")
    learn(nlp, [example_of(nlp, texts[i]) for i in order[:half]])
    unseen = [texts[i].words for i in order[half:]]
    like = chances(nlp, unseen)
    kinds = [
        like,
        chances(nlp, [*map(damaged, unseen)]),
        chances(nlp, [t.words for t in strangers]),
    ]
    rng = np.random.default_rng(0)
    rows = []
    for size in SIZES:
        shares = [np.mean([alarmed(rng, like, kind, size) for _ in range(DRAWS)]) for kind in kinds]
        rows.append((task, str(size), *(f"{100 * share:.1f}" for share in shares), other))
    return rows


def chances(nlp: Language, texts: Sequence[Sequence[str]]) -> Chances:
    """P(all of each text is right), as the model says."""
    nlp.get_pipe("hocrf").acceptance = Acceptance(0.5, 0.5, None, 0, 0)
    docs = nlp.pipe([Doc(nlp.vocab, words=list(words)) for words in texts])
    return np.array([doc._.hocrf_probability for doc in docs])


def damaged(words: Sequence[str]) -> list[str]:
    """Words in which some letters are others; the same for the same words."""
    rng = random.Random(" ".join(words))
    letters = string.ascii_lowercase + string.digits
    return [
        "".join(rng.choice(letters) if rng.random() < DAMAGED else letter for letter in word)
        for word in words
    ]


def alarmed(rng: np.random.Generator, like: Chances, kind: Chances, size: int) -> bool:
    """Is a random sample taken for others than a random half of those that the model has not seen?"""
    order = rng.permutation(len(like))
    sampled, rest = order[: len(like) // 2], order[len(like) // 2 :]
    sample = tuple(sorted(like[sampled].tolist()))
    acceptance = Acceptance(0.9, 0.9, None, len(sample), 0, sample=sample)
    drawn = like[rest] if kind is like else kind
    given = rng.permutation(drawn)[:size]
    return acceptance.likeness(given.tolist()) < ALARM


if __name__ == "__main__":
    typer.run(main)
