"""The tasks of the suite: their parts, and the draws of training texts.

What chance decides is seeded by names, so it is the same everywhere and stays the same when a task
is added.
"""

import os
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import readers
from readers import Parts, Text
from wasabi import msg

HELD_OUT = 500
"""A dev or a test part has at most so many texts."""

MAX_TEXTS = 2000
"""All training texts are at most so many, but of LARGE tasks."""

ALL = "all"

TASKS: Mapping[str, Callable[[Path], Parts]] = {
    "addresses": readers.read_addresses,
    "cora": readers.read_cora,
    "anystyle": readers.read_anystyle,
    "tweets": readers.read_tweets,
    "news-tweets": readers.read_news_tweets,
    "msm2013": readers.read_msm2013,
    "wnut17": readers.read_wnut17,
    "gum": readers.read_gum,
    "conll04": readers.read_conll04,
    "chunks": readers.read_chunks,
    "transcripts": readers.read_transcripts,
    "talks": readers.read_talks,
    "all-tweets": readers.read_all_tweets,
    "all-chunks": readers.read_chunks,
    "all-talks": readers.read_talks,
}

LARGE = ("all-tweets", "all-chunks", "all-talks")
"""Tasks with all texts that there are; they have no smaller draws."""


NAMED = {
    "HOCRF_DATA": "a folder with copies of the corpora; project.yml says where they are from",
    "HOCRF_VECTORS": "a pipeline with word vectors, its package or its folder",
}
"""What environment variables name."""


def named_by(variable: str) -> str:
    """What a variable of NAMED names. Where it names nothing, the script ends with a sentence on it."""
    value = os.environ.get(variable)
    if not value:
        msg.fail(f"Set {variable} to {NAMED[variable]}.", exits=1)
    return value


def load(name: str, data: Path | None = None) -> Parts:
    """The parts "train", "dev" and "test" of a task.

    name (str): one of TASKS.
    data (Optional[Path]): a folder with the corpora; None for the one that HOCRF_DATA names.
    RETURNS (Parts): where the corpus has no test or no dev part, a random fifth of its training
        part. Of parts that are larger than MAX_TEXTS or HELD_OUT, a random sample.
    """
    data = Path(named_by("HOCRF_DATA")) if data is None else data
    parts = {
        part: [text for text in texts if text.words] for part, texts in TASKS[name](data).items()
    }
    for part in ("test", "dev"):
        if part not in parts:
            train = parts["train"]
            chosen = shuffled(len(train), f"{name} {part}")[: min(HELD_OUT, len(train) // 5)]
            held_out = set(chosen)
            parts[part] = [train[i] for i in sorted(held_out)]
            parts["train"] = [text for i, text in enumerate(train) if i not in held_out]
    return {
        part: sample(parts[part], most, f"{name} {part} sample")
        for part, most in (
            ("train", len(parts["train"]) if name in LARGE else MAX_TEXTS),
            ("dev", HELD_OUT),
            ("test", HELD_OUT),
        )
    }


def draw(name: str, train: Sequence[Text], size: str, number: int) -> list[Text]:
    """Some training texts, in the order of the corpus. A smaller draw is part of the larger ones of
    its number.

    size (str): how many, or ALL.
    """
    most = len(train) if size == ALL else int(size)
    return sample(train, most, f"{name} draw {number}")


def count_draws(name: str, train: Sequence[Text], size: str, wanted: int) -> int:
    """How many draws of a size to take: one of all texts, none of more texts than there are, or of fewer of a
    LARGE task.
    """
    if size == ALL:
        return min(wanted, 1)
    return wanted if int(size) < len(train) and name not in LARGE else 0


def sample(texts: Sequence[Text], most: int, seed: str) -> list[Text]:
    """At most so many of the texts, in their order."""
    return [texts[i] for i in sorted(shuffled(len(texts), seed)[:most])]


def shuffled(count: int, seed: str) -> list[int]:
    """The numbers below count in random order."""
    return random.Random(seed).sample(range(count), count)
