"""One checkout's side of `versus.py`: prepares a workload, then works off turns as it is told.

side.py SCRIPTS DATA     a line of JSON in, a line of JSON out:
{"prepare": NAME}        → {"units": …} once the workload is ready and warm
{"turn": N}              → {"cpu": …, "wall": …, "units": …, "answer": …} of N pieces of work
"""

import gc
import json
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, sys.argv[1])
import models
import spacy
from corpora import Corpora, concatenate
from spacy.tokens import Doc
from tag_sets import tagged

Work = Callable[[int], int]
"""Does so many pieces of work, and returns the number of units in them."""


def training(nlp: Any) -> tuple[Work, Callable[[], Any]]:
    """Iterations of L-BFGS; the answer is the loss, to the last bit."""
    run = models.Training(nlp)
    return run.step, lambda: float(run.run.loss).hex()


def predicting(nlp: Any, sentences: list, answer: Callable) -> tuple[Work, Callable[[], Any]]:
    """The whole pipeline over tokenised Docs, with weights that some training has left."""
    latest: list = []

    def work(times: int) -> int:
        for _ in range(times):
            docs = [Doc(nlp.vocab, words=words) for words, _ in sentences]
            latest[:] = nlp.pipe(docs)
        return times * sum(len(words) for words, _ in sentences)

    return work, lambda: answer(latest)


def one_by_one(nlp: Any, texts: list[str], answer: Callable) -> tuple[Work, Callable[[], Any]]:
    """`nlp(text)`, text by text."""
    latest: list = []

    def work(times: int) -> int:
        for _ in range(times):
            latest[:] = [nlp(text) for text in texts]
        return times * len(texts)

    return work, lambda: answer(latest)


def default_model(sentences: list, iterations: int) -> Any:
    """`nlp.add_pipe("hocrf")` with order and sigma of 1, trained for a few iterations on one thread."""
    nlp = spacy.blank("en")
    nlp.add_pipe("hocrf", config={"model": {"order": 1}, "trainer": models.trainer()})
    examples = models.span_examples(nlp, sentences, models.chunks_of)
    nlp.initialize(lambda: examples)
    run = models.Training(nlp)
    run.step(iterations)
    models.use_weights(models.component(nlp), run.run.weights)
    return nlp


def entities(docs: list) -> list:
    """All entities, with their scores."""
    found = [(ent.start, ent.end, ent.label_) for doc in docs for ent in doc.ents]
    scores = [float(score) for doc in docs for score in _scores(doc)]
    return [len(found), hash_of(found), float(np.sum(scores)).hex() if scores else ""]


def hash_of(rows: list) -> int:
    """The same in every process."""
    import zlib

    return zlib.crc32(repr(rows).encode())


def _scores(doc: Doc) -> Any:
    scores = (ent._.hocrf_score for ent in doc.ents)
    return [score for score in scores if score is not None]


def workload(name: str, corpora: Corpora) -> tuple[Work, Callable[[], Any]]:
    """RAISES (KeyError): for a name that `versus.py` does not know."""
    kind, _, rest = name.partition(" ")
    chunks, references = corpora.chunks, corpora.references
    if kind == "crf":
        corpus, order = rest.split()
        return training(models.crf(chunks() if corpus == "conll" else references(), int(order)))
    if kind == "semi":
        return training(models.semi_crf(references(), int(rest)))
    if kind == "long":
        limit = {"10": 10, "100": 100, "1000": 1_000, "none": 0}[rest]
        documents = concatenate(references(), 2_000)
        return training(models.semi_crf(documents, 1, max_length=limit, longest=10))
    if kind == "jmlr":
        task, order = rest.split()
        sentences = corpora.punctuation() if task == "punctuation" else references()
        return training(models.jmlr_model(task, int(order), sentences))
    if kind == "tag":
        nlp = models.crf(chunks(), int(rest))
        run = models.Training(nlp)
        run.step(10)
        models.use_weights(models.component(nlp), run.run.weights)
        return predicting(
            nlp, chunks("test"), lambda docs: hash_of([t.tag_ for d in docs for t in d])
        )
    if kind == "pipe":
        nlp = models.chunker(chunks(), 1)
        run = models.Training(nlp)
        run.step(10)
        models.use_weights(models.component(nlp), run.run.weights)
        return predicting(nlp, chunks("test"), entities)
    if kind == "default":
        nlp = default_model(chunks()[:2_000], 10)
        if rest == "training":
            return training(nlp)
        if rest == "pipe":
            return predicting(nlp, chunks("test")[:1_000], entities)
        if rest.startswith("docs"):
            return predicting(nlp, concatenate(chunks()[:4_400], int(rest.split()[1])), entities)
        texts = [" ".join(words[:20]) for words, _ in chunks("test")[:100]]
        return one_by_one(nlp, texts, entities)
    if kind == "labels":
        sentences = tagged(corpora.data / "ewt" / "en_ewt-ud-train.conllu", int(rest))
        return training(models.crf(sentences, 1))
    if kind == "load":
        nlp = models.crf(chunks()[:4_500], 1, unseen=True)
        folder = tempfile.mkdtemp()
        nlp.to_disk(folder)
        pipe, part = models.component(nlp), Path(folder) / nlp.pipe_names[0]
        return partial(_times, lambda: pipe.from_disk(part)), lambda: None
    if kind == "initialize":
        sentences = chunks()[:2_000]
        return partial(_times, lambda: default_model(sentences, 0)), lambda: None
    raise KeyError(name)


def _times(action: Callable[[], Any], times: int) -> int:
    for _ in range(times):
        action()
    return times


def main() -> None:
    """Work off the commands."""
    corpora = Corpora(Path(sys.argv[2]))
    work, answer = None, lambda: None
    for line in sys.stdin:
        command = json.loads(line)
        if "prepare" in command:
            work, answer = None, lambda: None
            gc.collect()
            work, answer = workload(command["prepare"], corpora)
            reply: dict = {"units": work(1)}
        else:
            gc.collect()
            wall, cpu = time.perf_counter(), time.process_time()
            units = work(command["turn"]) if work else 0
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            reply = {"cpu": cpu, "wall": wall, "units": units, "answer": answer()}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
