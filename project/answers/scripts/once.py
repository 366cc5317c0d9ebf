"""Addresses in which each label comes once: usaddress raises RepeatedLabelError for others.

Its convention: no label comes twice, but that labels of streets behind an IntersectionSeparator are those
of a second street.
"""

import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import spacy
import typer
from spacy.language import Language
from spacy.tokens import Doc

sys.path.append(str(Path(__file__).parents[2] / "defaults" / "scripts"))
from readers import Text
from systems import example_of
from tasks import load

sys.path.append(str(Path(__file__).parents[2]))
from common.report import show, table
from common.training import learn, spans

Span = tuple[int, int, str]


def main(
    output: Annotated[Path, typer.Argument(help="Markdown file")],
    assets: Annotated[Path, typer.Option(help="Folder of the corpora")] = Path("assets"),
    part: Annotated[str, typer.Option(help="dev, or test when all is chosen")] = "dev",
) -> None:
    """Train once, parse the addresses of a part with each set of rules, and print what is right."""
    parts = load("addresses", assets)
    nlp = spacy.blank("xx")
    nlp.add_pipe("hocrf")
    learn(nlp, [example_of(nlp, text) for text in parts["train"]])
    rows = [row(with_rules(nlp, rules), name, parts[part]) for name, rules in rule_sets(nlp)]
    columns = ("whole addresses right", "of those that repeat none", "ms a text")
    header = ("rules", "addresses", "refused by usaddress", "repeat a label", *columns)
    show("# Each label once\n\n" + table(rows, header, "l"), output)


def rule_sets(nlp: Language) -> list[tuple[str, Mapping[str, int] | None]]:
    """Names, and how often each label may come."""
    labels = nlp.get_pipe("hocrf").labels
    return [
        ("none", None),
        ("each label once", dict.fromkeys(labels, 1)),
        ("labels of streets twice", {y: 2 if "StreetName" in y else 1 for y in labels}),
    ]


def with_rules(nlp: Language, rules: Mapping[str, int] | None) -> Language:
    """The same model with rules."""
    constraints = None
    if rules is not None:
        constraints = {"@misc": "spacy-hocrf.Constraints.v1", "at_most": dict(rules)}
    other = spacy.blank("xx")
    other.add_pipe("hocrf", config={"constraints": constraints})
    return other.from_bytes(nlp.to_bytes())


def row(nlp: Language, name: str, texts: Sequence[Text]) -> tuple[str, ...]:
    """A row of the table."""
    docs = [Doc(nlp.vocab, words=text.words) for text in texts]
    begin = time.process_time()
    predicted = [spans(doc) for doc in nlp.pipe(docs)]
    duration = 1000 * (time.process_time() - begin) / len(texts)
    gold = [set(text.spans) for text in texts]
    right = [one == other for one, other in zip(predicted, gold)]
    single = [same for same, annotated in zip(right, gold) if not is_refused(annotated)]
    return (
        name,
        f"{len(texts):,}",
        str(sum(map(is_refused, predicted))),
        str(sum(map(repeats, predicted))),
        f"{sum(right) / len(right):.1%}",
        f"{sum(single) / len(single):.1%} of {len(single)}",
        f"{duration:.2f}",
    )


def is_refused(parsed: Iterable[Span]) -> bool:
    """Would `usaddress.tag` raise RepeatedLabelError?"""
    seen = set[str]()
    second = ""
    for _, _, label in sorted(parsed):
        if label == "IntersectionSeparator":
            second = "Second"
        name = second + label if "StreetName" in label else label
        if name in seen:
            return True
        seen.add(name)
    return False


def repeats(parsed: Iterable[Span]) -> bool:
    """Does a label come twice?"""
    return max(Counter(label for _, _, label in parsed).values(), default=0) > 1


if __name__ == "__main__":
    typer.run(main)
