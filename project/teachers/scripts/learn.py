"""What a model learns from teachers: a simulated large language model, and another pipeline.

`once` takes one answer of the simulated model about each text for annotation, `majority` what more than half
of five answers have, `soft` how often each span is in the five; `doubt` is `soft` with the weights of `hocrf
doubt --weights`, which come of `majority`. `annotated` learns from the annotation itself. The other teacher
is a pipeline, whose entities are taken for annotation. A training is a line of JSON.
"""

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from time import process_time
from typing import Annotated, Any

import numpy as np
import spacy
import typer
from simulate import ask, majority, scores
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.api import Config

sys.path.append(str(Path(__file__).parents[2] / "defaults" / "scripts"))
from readers import Text
from systems import example_of, make_doc
from tasks import load, named_by

sys.path.append(str(Path(__file__).parents[2]))
from common.training import learn

from spacy_hocrf.api import calibration_errors, cross_read, text_weights

TIMES = 5
"""The simulated model is asked about each text."""
KEY = "llm"
SYSTEMS = ("annotated", "once", "majority", "soft", "doubt")
PIPELINE = {"PERSON": "Peop", "ORG": "Org", "GPE": "Loc", "LOC": "Loc"}
"""Labels of the pipeline, and what CoNLL04 calls them."""
REPEATS = 5
"""Of every measurement of speed; the fastest counts."""

Triples = Sequence[tuple[int, int, str]]


def main(
    output: Annotated[Path, typer.Argument(help="JSONL; what is there is kept")] = Path(
        "metrics/results.jsonl"
    ),
    tasks: Annotated[str, typer.Option(help="Those of project/defaults")] = "all-tweets,conll04",
    part: Annotated[str, typer.Option(help="dev or test")] = "test",
    wrong: Annotated[str, typer.Option(help="Shares of the spans")] = "0.1,0.2,0.3",
    systems: Annotated[str, typer.Option(help="Some of them")] = ",".join(SYSTEMS),
    seeds: Annotated[int, typer.Option(help="Draws of the mistakes")] = 1,
    pipeline: Annotated[
        bool, typer.Option("--pipeline", help="The other teacher alone: that of HOCRF_VECTORS")
    ] = False,
) -> None:
    """Train and score each system."""
    output.parent.mkdir(exist_ok=True)
    lines = output.read_text(encoding="utf8").splitlines() if output.exists() else []
    done = {tuple(json.loads(line)["of"]) for line in lines}

    def measure(of: tuple[Any, ...], make: Callable[[], dict[str, Any]]) -> None:
        if of not in done:
            with output.open("a", encoding="utf8") as file:
                print(json.dumps({"of": of, **make()}), file=file)
            print(*of, flush=True)

    data = Path(named_by("HOCRF_DATA"))
    if pipeline:
        measure(("pipeline", part), lambda: from_pipeline(data, part))
        return
    for task in tasks.split(","):
        parts = load(task, data)
        train, held = parts["train"], parts[part]
        for seed in range(seeds):
            for share in map(float, wrong.split(",")):
                for system in systems.split(","):
                    of = (task, part, system, share, seed)
                    if system == "annotated" and (share, seed) != (float(wrong.split(",")[0]), 0):
                        continue
                    measure(of, lambda of=of, train=train, held=held: simulated(of, train, held))


def simulated(of: tuple[Any, ...], train: Sequence[Text], held: Sequence[Text]) -> dict[str, Any]:
    """What a system learns from the simulated model, and that model's own counts on the held-out texts."""
    task, _, system, share, seed = of
    answers = ask(train, share, TIMES, f"{task} {seed}")
    nlp = spacy.blank("en")
    nlp.add_pipe("hocrf", config={"teachers": [KEY] if system in ("soft", "doubt") else []})
    if system == "annotated":
        examples = [example_of(nlp, text) for text in train]
    elif system in ("soft", "doubt"):
        rows = [scores(each) for each in answers]
        examples = [soft(nlp, text.words, row) for text, row in zip(train, rows, strict=True)]
    else:
        said = [each[0] if system == "once" else majority(each) for each in answers]
        examples = [example_of(nlp, Text(t.words, row)) for t, row in zip(train, said, strict=True)]
    if system == "doubt":
        texts = [Text(t.words, majority(row)) for t, row in zip(train, answers, strict=True)]
        for example, weight in zip(examples, doubt(texts), strict=True):
            example.reference._.hocrf_weight = weight
    start = process_time()
    learn(nlp, examples)
    seconds = process_time() - start
    asked = ask(held, share, TIMES, f"{task} {seed} held out")
    gold = [text.spans for text in held]
    return {
        "counts": matched(entities(nlp, held), gold),
        "teacher": matched([row[0] for row in asked], gold),
        "majority": matched([majority(row) for row in asked], gold),
        "ece": round(calibration_error(nlp, held), 4),
        "seconds": round(seconds, 1),
    }


def soft(nlp: Language, words: Sequence[str], row: dict[tuple[int, int, str], float]) -> Example:
    """A text whose spans have scores."""
    doc = Doc(nlp.vocab, words=list(words))
    doc.spans[KEY] = [Span(doc, *span) for span in row]
    doc.spans[KEY].attrs["scores"] = [*row.values()]
    return Example(Doc(nlp.vocab, words=list(words)), doc)


def doubt(texts: Sequence[Text]) -> list[float]:
    """Weights of texts by doubts of models that have not seen them."""
    nlp = spacy.blank("en")
    nlp.add_pipe("hocrf")
    config = Config().from_str(nlp.config.to_str(), interpolate=False)
    config["corpora"]["train"]["gold_preproc"] = True
    config["training"].update(max_steps=200, eval_frequency=200)
    weights, _ = text_weights(cross_read(config, [make_doc(nlp.vocab, text) for text in texts]))
    return weights


def from_pipeline(data: Path, part: str) -> dict[str, Any]:
    """What is learnt from the entities of a pipeline in news, and from its word vectors, beside what it finds
    itself in other news (CoNLL04). The annotation of CoNLL04's training texts is not looked at.
    """
    teacher = spacy.load(named_by("HOCRF_VECTORS"))
    parts, chunks = load("conll04", data), load("all-chunks", data)
    held, texts = parts[part], [*parts["train"]]
    texts += [text for each in ("train", "dev", "test") for text in chunks[each]]
    found = entities(teacher, texts)
    nlp = spacy.blank("en", vocab=teacher.vocab)
    nlp.add_pipe("hocrf")
    said = [Text(text.words, known(row)) for text, row in zip(texts, found, strict=True)]
    start = process_time()
    learn(nlp, [example_of(nlp, text) for text in said])
    seconds = process_time() - start
    teachers = [mapped(row) for row in entities(teacher, held)]
    own = [mapped(row) for row in entities(nlp, held)]
    gold = [[span for span in text.spans if span[2] in PIPELINE.values()] for text in held]
    words = sum(len(text.words) for text in held)
    return {
        "texts": len(texts),
        "counts": matched(own, gold),
        "teacher": matched(teachers, gold),
        "fidelity": matched(own, teachers),
        "seconds": round(seconds, 1),
        "speed": round(words / fastest(nlp, held)),
        "teacher_speed": round(words / fastest(teacher, held)),
    }


def known(spans: Triples) -> list[tuple[int, int, str]]:
    return [span for span in spans if span[2] in PIPELINE]


def mapped(spans: Triples) -> list[tuple[int, int, str]]:
    return [(start, end, PIPELINE[label]) for start, end, label in known(spans)]


def fastest(nlp: Language, texts: Sequence[Text]) -> float:
    """CPU seconds of finding entities: of a pipeline, with the components that this takes alone."""
    used = [name for name in nlp.pipe_names if name in ("tok2vec", "ner", "hocrf")]
    seconds = []
    with nlp.select_pipes(enable=used):
        for _ in range(REPEATS):
            docs = docs_of(nlp, texts)
            start = process_time()
            for _ in nlp.pipe(docs):
                pass
            seconds.append(process_time() - start)
    return min(seconds)


def docs_of(nlp: Language, texts: Iterable[Text]) -> list[Doc]:
    return [Doc(nlp.vocab, words=list(text.words)) for text in texts]


def entities(nlp: Language, texts: Sequence[Text]) -> list[list[tuple[int, int, str]]]:
    """Of each text."""
    return [
        [(ent.start, ent.end, ent.label_) for ent in doc.ents]
        for doc in nlp.pipe(docs_of(nlp, texts))
    ]


def matched(found: Sequence[Triples], gold: Sequence[Triples]) -> tuple[int, int, int]:
    """Spans that are in both, that were found, and that there are."""
    right = sum(len({*one} & {*other}) for one, other in zip(found, gold, strict=True))
    return right, sum(map(len, found)), sum(map(len, gold))


def calibration_error(nlp: Language, texts: Sequence[Text]) -> float:
    """Expected calibration error of the probabilities of entities."""
    scores, right = list[float](), list[bool]()
    for doc, text in zip(nlp.pipe(docs_of(nlp, texts)), texts, strict=True):
        gold = {*text.spans}
        scores += [ent._.hocrf_score for ent in doc.ents]
        right += [(ent.start, ent.end, ent.label_) in gold for ent in doc.ents]
    return calibration_errors(np.array(scores), np.array(right, dtype=bool)).ece


if __name__ == "__main__":
    typer.run(main)
