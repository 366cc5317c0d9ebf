"""An encoder that begins with random numbers, beside the default features, trained jointly, and none:
what each is worth on the dev parts, and how well it knows what it does not know.

A seed chooses the texts, the order in which they are shown, and the encoder's first parameters.
"""

import random
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean
from typing import Annotated, Any

import numpy as np
import spacy
import typer
from spacy.language import Language
from spacy.training import Example
from spacy.util import minibatch
from thinc.api import fix_random_seed

sys.path.append(str(Path(__file__).parents[2] / "defaults" / "scripts"))
from readers import Text
from systems import example_of
from tasks import draw, load

sys.path.append(str(Path(__file__).parents[2]))
from common.report import CopyOption, Result, group, read_lines, show, table, write_lines
from common.scores import ratios, spread
from common.training import spans

from spacy_hocrf.api import ExpectedF, calibration_errors

ASSETS = Path("assets")
RESULTS = Path("metrics") / "encoders.jsonl"
ENCODER = {
    "@architectures": "spacy.HashEmbedCNN.v2",
    "width": 96,
    "depth": 4,
    "embed_size": 2000,
    "window_size": 1,
    "maxout_pieces": 3,
    "subword_features": True,
    "pretrained_vectors": None,
}
EPOCHS = (5, 10, 20)
"""Joint training is looked at after so many."""
MIN_PROBABILITY = 0.02
"""Spans that are at least so probable are asked how often they are right."""
BATCH, DROPOUT = 32, 0.2
SIZES = {"cora": "300"}
SYSTEMS = "none,joint"
KEYS = ("task", "texts", "order", "system")

Judge = Sequence[Example]


def main(
    tasks: Annotated[str, typer.Option(help="Those of project/defaults")] = "wnut17,tweets",
    systems: Annotated[str, typer.Option(help="none, joint")] = SYSTEMS,
    orders: Annotated[str, typer.Option(help="Orders of the model")] = "1",
    seeds: Annotated[int, typer.Option(help="How many")] = 3,
    results: Annotated[Path, typer.Option(help="Lines of JSON; they are replaced")] = RESULTS,
    output: CopyOption = None,
) -> None:
    """Train, score on the dev parts, and print a table."""
    jobs = (
        result
        for task in tasks.split(",")
        for order in map(int, orders.split(","))
        for system in systems.split(",")
        for seed in range(seeds)
        for result in measured(task, system, order, seed)
    )
    write_lines(results, jobs, describe)
    show(as_table(read_lines(results)), output)


def measured(task: str, system: str, order: int, seed: int) -> Iterator[Result]:
    """Train one system; joint training is several."""
    parts = load(task, ASSETS)
    texts = draw(task, parts["train"], SIZES.get(task, "400"), seed)
    fix_random_seed(seed)
    nlp = spacy.blank("en")
    nlp.add_pipe("hocrf", config=config_of(system, order))
    dev = as_examples(nlp, parts["dev"])
    about = {"task": task, "texts": len(texts), "order": order, "seed": seed}
    begun = time.process_time()
    for name in trained(nlp, system, texts, seed):
        spent = time.process_time() - begun
        yield {**about, "system": name, "seconds": round(spent, 1), **judged(nlp, dev)}
        begun += time.process_time() - begun - spent


def config_of(system: str, order: int) -> dict[str, Any]:
    """What differs from the default config."""
    if system == "none":
        return {"model": {"order": order}}
    neural = {
        "@architectures": "spacy-hocrf.HighOrderCRF.v1",
        "order": order,
        "features": {"@misc": "spacy-hocrf.Window.v1"},
        "tok2vec": ENCODER,
    }
    return {"model": neural, "trainer": {"@misc": "spacy-hocrf.SGD.v1"}}


def trained(nlp: Language, system: str, texts: Sequence[Text], seed: int) -> Iterator[str]:
    """Train a pipeline. YIELDS (str): the system's name, whenever it is to be judged."""
    pipe = nlp.get_pipe("hocrf")
    optimizer = nlp.initialize(lambda: as_examples(nlp, texts))
    shuffled, numbers = list(texts), random.Random(seed)
    joint = system.startswith("joint")
    for epoch in range(1, max(EPOCHS) + 1) if joint else ():
        numbers.shuffle(shuffled)
        for batch in minibatch(shuffled, BATCH):
            nlp.update(as_examples(nlp, batch), sgd=optimizer, drop=DROPOUT)
        if joint and epoch in EPOCHS:
            yield f"{system}, {epoch} epochs"
    if not joint:
        some = as_examples(nlp, texts[:1])
        nlp.update(some, sgd=optimizer)
        while pipe.run.running:
            nlp.update(some, sgd=optimizer)
        yield system


def as_examples(nlp: Language, texts: Sequence[Text]) -> list[Example]:
    """Texts with the corpus's own tokens."""
    return [example_of(nlp, text) for text in texts]


def judged(nlp: Language, dev: Judge) -> dict[str, float]:
    """F1 in per cent; the loss of a token in nats, of texts that the model can annotate; and the
    expected calibration error of the spans that are shown, `shown`, and of all that are at least
    MIN_PROBABILITY probable, `ece`.
    """
    right = found = wanted = tokens = 0
    loss = 0.0
    of_shown, of_all = [], []
    pipe = nlp.get_pipe("hocrf")
    for example in dev:
        doc, gold = nlp(example.predicted.copy()), spans(example.reference)
        scores = [ent._.hocrf_score for ent in doc.ents]
        of_shown += [(p, span in gold) for p, span in zip(scores, sorted(spans(doc)))]
        right += len(spans(doc) & gold)
        found += len(spans(doc))
        wanted += len(gold)
        potentials = pipe.model.predict([example.predicted])
        of_all += [(p, span in gold) for p, span in probable(pipe, potentials)]
        try:
            loss += pipe.get_loss([example], potentials)[0]
            tokens += len(doc)
        except ValueError:  # a span that is longer than any of its label in training
            continue
    f = round(100 * ratios(right, found, wanted)["f"], 2)
    columns = (np.array(scored).reshape(-1, 2).T for scored in (of_all, of_shown))
    ece, shown = (round(calibration_errors(p, right).ece, 4) for p, right in columns)
    return {"f": f, "loss": round(loss / tokens, 4), "ece": ece, "shown": shown}


def probable(pipe: Any, potentials: Any) -> Iterator[tuple[float, tuple[int, int, str]]]:
    """Probability of every span that is at least MIN_PROBABILITY probable, and the span."""
    scheme = pipe.structure.scheme
    found = ExpectedF().candidates(potentials, pipe.automaton, scheme, MIN_PROBABILITY)
    columns = found.spans.start.tolist(), found.spans.end.tolist(), found.spans.label.tolist()
    for p, start, end, label in zip(found.scores.tolist(), *columns):
        yield p, (start, end, scheme.labels[label])


def describe(result: Result) -> str:
    """One line."""
    head = "{task} {texts}, order {order}, seed {seed}, {system}: ".format(**result)
    return head + "F1 {f:.2f}, loss {loss:.4f}, ECE {ece:.3f}, {seconds} s".format(**result)


def as_table(results: Sequence[Result]) -> str:
    """A row for each system; seeds side by side, and the mean of F1."""
    rows = []
    for about, some in group(results, *KEYS).items():
        shown = [" ".join(f"{result[key]:.{n}f}" for result in some) for key, n in COLUMNS]
        seconds = f"{mean(result['seconds'] for result in some):.0f}"
        rows.append((*map(str, about), *shown, spread([r["f"] for r in some]), seconds))
    return table(rows, HEADER, "lrr" + "l")


COLUMNS = (("loss", 4), ("ece", 4), ("shown", 3), ("f", 2))
HEADER = (
    *KEYS,
    *("loss of a token", "ECE", "ECE of shown spans", "F1"),
    "F1, mean and standard deviation",
    "CPU s",
)

if __name__ == "__main__":
    typer.run(main)
