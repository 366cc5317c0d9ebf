"""What has to be measured in a fresh process; prints one line of JSON.

child.py idle                      peak memory with spaCy and this package imported
child.py ours CORPUS ORDER ITERATIONS DATA [--small]
                                   the same after training on the chunks of CoNLL-2000 or the tags
                                   of EWT
child.py crfsuite FILE ITERATIONS  of CRFsuite, before and after training on a file of observations
child.py train ARGUMENTS           CPU time and peak memory of `spacy train`, from its first line on
child.py user FILE MODEL           the same of a user's training of CRFsuite on words and labels
"""

import json
import runpy
import sys
import time
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from measure import peak_memory


def idle() -> dict:
    """Peak memory of a process that has imported what training needs of spaCy, and has made a
    pipeline.
    """
    import spacy

    spacy.blank("en")
    return {"peak": peak_memory()}


def ours(corpus: str, order: str, iterations: str, data: str, small: str = "") -> dict:
    """Peak memory after training; the corpus is read sentence by sentence, as CRFsuite's is."""
    import models
    from corpora import Corpora

    corpora = Corpora(Path(data), bool(small))
    sentences = {"chunks": corpora.stream_chunks, "tags": corpora.stream_tags}[corpus]
    training = models.Training(models.crf(sentences, int(order)))
    training.step(int(iterations))
    return {"peak": peak_memory()}


def crfsuite(path: str, iterations: str) -> dict:
    """Peak memory before and after training; the observations are read sentence by sentence."""
    import pycrfsuite

    before = peak_memory()
    trainer = pycrfsuite.Trainer(verbose=False)
    trainer.select("lbfgs")
    trainer.set_params({"c1": 0.0, "c2": 0.5, "max_iterations": int(iterations)})
    for tokens in read_observations(Path(path)):
        trainer.append([token[1:] for token in tokens], [token[0] for token in tokens])
    trainer.train(path + ".model")
    return {"idle": before, "peak": peak_memory()}


def read_observations(path: Path) -> Iterator[list[list[str]]]:
    """Sentences of tokens, each a label and its observations."""
    with path.open(encoding="utf8") as file:
        for filled, block in groupby(file, key=lambda line: line != "\n"):
            if filled:
                yield [line.rstrip("\n").split("\t") for line in block]


def train(*arguments: str) -> dict:
    """`python -m spacy train` with these arguments, in this process."""
    sys.argv = ["spacy", "train", *arguments]
    try:
        runpy.run_module("spacy", run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise
    return {"seconds": time.process_time(), "peak": peak_memory()}


def user(path: str, model: str) -> dict:
    """Words and labels are read, features extracted, and CRFsuite trained until it stops."""
    import pycrfsuite
    from user_features import features

    sys.path.append(str(Path(__file__).parents[2]))
    from common.columns import stream_columns

    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    trainer.set_params({"c1": 0.0, "c2": 0.5})
    for words, labels in stream_columns(Path(path)):
        trainer.append(features(words), labels)
    trainer.train(model)
    return {
        "seconds": time.process_time(),
        "peak": peak_memory(),
        "iterations": len(trainer.logparser.iterations),
    }


COMMANDS = {
    "idle": idle,
    "ours": ours,
    "crfsuite": crfsuite,
    "train": train,
    "user": user,
}

if __name__ == "__main__":
    print(json.dumps(COMMANDS[sys.argv[1]](*sys.argv[2:])))
