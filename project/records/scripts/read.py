"""Five folds of a task: what each system shows of every text, and how probable it says all of it is.

The default is read twice: the spans with the largest expected F-score (`fields`), and the most probable
reading (`texts`). That of a longer memory, order 3 with `unseen`, is `memory`, and `reranked` the one of
its ten most probable readings that looks best as a whole. CRFsuite has the most probable tags, with their
probability as a sequence (`crfsuite`) and with the product of the probabilities of the tags (`product`);
spaCy's `ner` has no probability. A text is a line of JSON.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from math import exp, prod
from pathlib import Path
from typing import Annotated, Any

import spacy
import typer
from spacy.language import Language
from spacy.tokens import Doc

sys.path.append(str(Path(__file__).parents[2] / "defaults" / "scripts"))
import peers
from readers import Text
from systems import example_of
from tasks import load, shuffled

sys.path.append(str(Path(__file__).parents[2]))
from common.columns import Spans, chunks_of
from common.report import read_lines
from common.training import learn

from spacy_hocrf.api import Acceptance, Reading

TASKS = "addresses,cora,anystyle,conll04,tweets,gum"
FOLDS = 5
Shown = tuple[Spans, float | None]
"""Spans of a text, and how probable it is that these are all of them."""


def main(
    tasks: Annotated[str, typer.Option(help="Those of project/defaults")] = TASKS,
    systems: Annotated[str, typer.Option(help="Those of SYSTEMS")] = "hocrf,memory,crfsuite,ner",
    results: Annotated[Path, typer.Option(help="Lines of JSON")] = Path("metrics/results.jsonl"),
) -> None:
    """Add the texts of folds that are missing."""
    results.parent.mkdir(parents=True, exist_ok=True)
    results.touch()
    there = {(row["task"], row["fold"], row["of"]) for row in read_lines(results)}
    for task in tasks.split(","):
        for fold, rest, held in folds_of(task):
            for of in systems.split(","):
                if (task, fold, of) not in there:
                    lines = list(rows(task, fold, of, rest, held))
                    with results.open("a", encoding="utf8") as file:
                        file.write("".join(f"{json.dumps(line)}\n" for line in lines))
                    print(task, fold, of, len(held), flush=True)


def folds_of(task: str) -> Iterator[tuple[int, list[Text], list[Text]]]:
    """Number of each fold, the texts of the others, and its own."""
    parts = load(task)
    texts = [*parts["train"], *parts["dev"]]
    order = shuffled(len(texts), f"{task} folds")
    for fold in range(FOLDS):
        held = [texts[i] for i in sorted(order[fold::FOLDS])]
        yield fold, [texts[i] for i in sorted({*order} - {*order[fold::FOLDS]})], held


def rows(
    task: str, fold: int, of: str, train: Sequence[Text], held: Sequence[Text]
) -> Iterator[dict[str, object]]:
    """A row for each text and each way to read it."""
    for system, answers in SYSTEMS[of](train, held).items():
        for text, (spans, probability) in zip(held, answers, strict=True):
            both = len({*spans} & {*text.spans})
            counts = both, len(spans), len(text.spans)
            row = {"task": task, "fold": fold, "of": of, "system": system, "counts": counts}
            yield {**row, "right": {*spans} == {*text.spans}, "probability": probability}


def learnt(train: Sequence[Text], **settings: Any) -> Language:
    """The default, with other settings."""
    nlp = spacy.blank("en")
    nlp.add_pipe("hocrf", config=settings)
    learn(nlp, [example_of(nlp, text) for text in train])
    return nlp


def read_hocrf(train: Sequence[Text], held: Sequence[Text]) -> dict[str, list[Shown]]:
    """`fields` and `texts` of the default."""
    nlp = learnt(train)
    pipe = nlp.get_pipe("hocrf")
    docs = [Doc(nlp.vocab, words=text.words) for text in held]
    fields, texts = list[Shown](), list[Shown]()
    for reading, doc in zip(pipe.readings([doc.copy() for doc in docs]), nlp.pipe(docs)):
        spans = [(ent.start, ent.end, ent.label_) for ent in doc.ents]
        fields.append((spans, exp(reading.log_probability(spans))))
        texts.append(best_of(reading))
    return {"fields": fields, "texts": texts}


def read_memory(train: Sequence[Text], held: Sequence[Text]) -> dict[str, list[Shown]]:
    """`memory` and `reranked`, of one model."""
    decoder = {"@misc": "spacy-hocrf.Reranked.v1"}
    nlp = learnt(train, model={"order": 3, "unseen": True}, decoder=decoder)
    pipe = nlp.get_pipe("hocrf")
    docs = [Doc(nlp.vocab, words=text.words) for text in held]
    memory = [*map(best_of, pipe.readings([doc.copy() for doc in docs]))]
    pipe.acceptance = Acceptance(0.5, 0.5, None, 0, 0)  # asks for the probability of the whole
    reranked = [
        ([(ent.start, ent.end, ent.label_) for ent in doc.ents], doc._.hocrf_probability)
        for doc in nlp.pipe(docs)
    ]
    return {"memory": memory, "reranked": reranked}


def best_of(reading: Reading) -> Shown:
    """The most probable reading of a text."""
    [best] = reading.best(1)
    return list(best.spans), best.probability


def read_crfsuite(train: Sequence[Text], held: Sequence[Text]) -> dict[str, list[Shown]]:
    """`crfsuite` and `product`."""
    tagger, _ = peers.CRFsuite().tagger(train)
    whole, product = list[Shown](), list[Shown]()
    for text in held:
        tagger.set(peers.features(text.words))
        tags = tagger.tag()
        spans = chunks_of(tags)
        whole.append((spans, tagger.probability(tags)))
        product.append((spans, prod(tagger.marginal(tag, i) for i, tag in enumerate(tags))))
    return {"crfsuite": whole, "product": product}


def read_ner(train: Sequence[Text], held: Sequence[Text]) -> dict[str, list[Shown]]:
    """`ner`."""
    predict, _ = peers.EntityRecognizer().train(train)
    return {"ner": [(spans, None) for spans in predict([text.words for text in held])]}


SYSTEMS = {
    "hocrf": read_hocrf,
    "memory": read_memory,
    "crfsuite": read_crfsuite,
    "ner": read_ner,
}


if __name__ == "__main__":
    typer.run(main)
