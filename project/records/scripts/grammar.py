"""A grammar as a law, at a price, and at a learnt price: are more texts right as a whole, what is outside of
it, and what does it cost? One is proposed from the training texts, another was written by hand.

Five folds, as in `read.py`: a grammar is proposed, its price learnt and the model trained on four, which then
reads the fifth, and shows the most probable reading. The model is the same for all prices.
"""

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from time import process_time
from typing import Annotated, Any

import spacy
import typer
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import registry

sys.path.append(str(Path(__file__).parents[2] / "defaults" / "scripts"))
from read import FOLDS
from readers import Text
from systems import VITERBI, example_of
from tasks import load, shuffled

sys.path.append(str(Path(__file__).parents[2]))
from common.columns import Spans
from common.report import show, table
from common.scores import ratios
from common.training import learn

from spacy_hocrf.api import Rule, propose_grammar

BY_HAND = {
    "addresses": "AddressNumber? StreetName* PlaceName? StateName? ZipCode?",
    "cora": "author? title? (journal | booktitle | tech)? pages?",
    "anystyle": "citation-number? author? title? (journal | container-title)? pages?",
}
PRICES = {"none": None, "law": "inf", "price 2": 2.0, "learnt": "learnt"}
"""By name, none for no grammar."""
REPEATS = 5
"""The shortest time of so many counts."""
KIND = ("task", "grammar")
RIGHT = (*KIND, *(f"right, {name}" for name in PRICES), *(f"F1, {name}" for name in PRICES))
OUTSIDE = (*KIND, "learnt price", "annotated", *PRICES)
TIMED = ("law", "price 2", "learnt")
TIME = (*KIND, "states", *(f"CPU time, {name}" for name in TIMED))


def main(
    output: Annotated[Path, typer.Argument(help="Markdown file")] = Path("grammar.md"),
    tasks: Annotated[str, typer.Option(help="Those of project/defaults")] = ",".join(BY_HAND),
) -> None:
    """Write the tables, and what was proposed."""
    results = list[dict[str, Any]]()
    for task in tasks.split(","):
        texts = texts_of(task)
        results += [look(task, texts, ""), look(task, texts, BY_HAND[task])]
    parts = [
        "# A grammar",
        "\n".join(each["proposals"] for each in results if each["proposals"]),
        "## Right as a whole, and F1",
        table([each["right"] for each in results], RIGHT, "ll"),
        "## Outside of the grammar: annotated texts, and what is shown",
        table([each["outside"] for each in results], OUTSIDE, "ll"),
        "## Time of `nlp.pipe`, times that without a grammar",
        table([each["time"] for each in results], TIME, "ll"),
    ]
    show("\n\n".join(parts), output)


def texts_of(task: str) -> list[Text]:
    """Training and dev part."""
    parts = load(task)
    return [*parts["train"], *parts["dev"]]


def look(task: str, texts: Sequence[Text], by_hand: str) -> dict[str, Any]:
    """Rows of the tables, and the expressions that were proposed.

    by_hand (str): expression; "" to propose one in each fold.
    """
    order = shuffled(len(texts), f"{task} folds")
    labels = sorted({label for text in texts for label in labels_of(text.spans)})
    sums = Counter[tuple[str, str]]()
    proposals, prices, states = dict[str, None](), list[float](), list[int]()
    for fold in range(FOLDS):
        held = [texts[i] for i in sorted(order[fold::FOLDS])]
        rest = [texts[i] for i in sorted({*order} - {*order[fold::FOLDS]})]
        expression = by_hand or propose_grammar([labels_of(t.spans) for t in rest]).expression
        proposals[f"- {task}: `{expression}`"] = None
        nlp = spacy.blank("en")
        settings = {"decoder": VITERBI, "constraints": constraints(expression, "learnt")}
        pipe = nlp.add_pipe("hocrf", config=settings)
        learn(nlp, [example_of(nlp, text) for text in rest])
        prices += pipe.rule_prices.values()
        [template] = pipe.constraints.templates
        [rule] = template.rules(labels)
        states.append(len(rule))
        gold = [text.spans for text in held]
        sums["annotated", "outside"] += outside(rule, labels, gold)
        for name, price in PRICES.items():
            block = {"constraints": constraints(expression, price)} if price is not None else {}
            pipe.constraints = registry.resolve(block).get("constraints")
            shown, seconds = read(nlp, held)
            sums[name, "time"] += seconds
            sums[name, "outside"] += outside(rule, labels, shown)
            for mine, wanted in zip(shown, gold, strict=True):
                sums[name, "right"] += {*mine} == {*wanted}
                sums[name, "correct"] += len({*mine} & {*wanted})
                sums[name, "found"] += len(mine)
                sums[name, "wanted"] += len(wanted)
        print(task, fold, expression, f"{prices[-1]:.2f}", flush=True)
    kind = (task, "by hand" if by_hand else "proposed")
    share = {key: f"{100 * n / len(texts):.1f}" for key, n in sums.items()}
    f = [ratios(*(sums[name, x] for x in ("correct", "found", "wanted")))["f"] for name in PRICES]
    return {
        "proposals": "" if by_hand else "\n".join(proposals),
        "right": (*kind, *(share[n, "right"] for n in PRICES), *(f"{100 * x:.1f}" for x in f)),
        "outside": (
            *kind,
            f"{min(prices):.1f} to {max(prices):.1f}",
            *(share[name, "outside"] for name in ("annotated", *PRICES)),
        ),
        "time": (
            *kind,
            f"{min(states)} to {max(states)}",
            *(f"{sums[name, 'time'] / sums['none', 'time']:.2f}" for name in TIMED),
        ),
    }


def read(nlp: Language, texts: Sequence[Text]) -> tuple[list[Spans], float]:
    """What is shown of each text, and the seconds of CPU time that this took."""
    times, shown = list[float](), list[Spans]()
    for _ in range(REPEATS):
        docs = [Doc(nlp.vocab, words=text.words) for text in texts]
        start = process_time()
        docs = list(nlp.pipe(docs))
        times.append(process_time() - start)
        shown = [[(ent.start, ent.end, ent.label_) for ent in doc.ents] for doc in docs]
    return shown, min(times)


def outside(rule: Rule, labels: Sequence[str], texts: Sequence[Spans]) -> int:
    """How many texts break a rule that was made for these labels."""
    return sum(not rule.keeps(map(labels.index, labels_of(spans))) for spans in texts)


def constraints(expression: str, price: float | str) -> dict[str, Any]:
    """The component's block."""
    rule = {"@misc": "spacy-hocrf.Grammar.v1", "expression": expression, "price": price}
    return {"@misc": "spacy-hocrf.Constraints.v1", "rules": {"record": rule}}


def labels_of(spans: Spans) -> tuple[str, ...]:
    """The labels of spans in their order."""
    return tuple(label for _, _, label in sorted(spans))


if __name__ == "__main__":
    typer.run(main)
