"""Compare candidates for the default settings of `nlp.add_pipe("hocrf")` on the development parts
of several corpora.

The corpora are read from the folder that HOCRF_DATA names (see `project.yml` for where they are
from). Test parts are not touched: of each training part a fixed random fifth is held back.
"""

import html
import os
import random
import re
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import spacy
import typer
from spacy.tokens import Doc, Span
from spacy.training import Example
from wasabi import msg

sys.path.append(str(Path(__file__).parents[2]))
from common.report import CopyOption, show, table

Text = tuple[list[str], list[tuple[int, int, str]]]  # tokens; start, end and label of the spans

SEMI = {"@architectures": "spacy-hocrf.HighOrderSemiCRF.v1"}
CRF = {"@architectures": "spacy-hocrf.HighOrderCRF.v1"}
NO_BOUNDARIES = {
    "features": {"@misc": "spacy-hocrf.Window.v1", "boundaries": False, "lengths": False}
}
CANDIDATES = {
    "default": ({}, {}),
    "no boundaries": ({**SEMI, **NO_BOUNDARIES}, {}),
    "order 2": ({"order": 2}, {}),
    "sigma 0.5": ({}, {"sigma": 0.5}),
    "sigma 2": ({}, {"sigma": 2.0}),
    "unseen": ({"unseen": True}, {}),
    "CRF, bio": ({**CRF, "encoding": "bio"}, {}),
    "CRF, bieso": ({**CRF, "encoding": "bieso"}, {}),
}


def main(
    only: Annotated[
        str, typer.Option(help="Corpora, separated by commas")
    ] = "addresses,tweets,gum,cora",
    iterations: Annotated[int, typer.Option(help="L-BFGS iterations at most")] = 80,
    output: CopyOption = None,
) -> None:
    """Print span F1 on the held-back fifth, a row a corpus and a column a candidate."""
    if "HOCRF_DATA" not in os.environ:
        msg.fail(
            "Set HOCRF_DATA to a folder with copies of the corpora; project.yml says where they "
            "are from",
            exits=1,
        )
    rows = []
    for name in only.split(","):
        texts = list(CORPORA[name](Path(os.environ["HOCRF_DATA"])))
        random.Random(0).shuffle(texts)
        cut = 4 * len(texts) // 5
        cells = []
        for candidate, (model, trainer) in CANDIDATES.items():
            begun = time.process_time()
            score = evaluate(texts[:cut], texts[cut:], model, trainer, iterations)
            cells.append(f"{100 * score:.1f}")
            print(
                f"{name} | {candidate} | {cells[-1]} | {time.process_time() - begun:.0f} CPU s",
                flush=True,
            )
        rows.append((f"{name} ({cut}/{len(texts) - cut})", *cells))
    print()
    show(table(rows, ("corpus (train/held back)", *CANDIDATES)), output)


def evaluate(
    train: list[Text], held_back: list[Text], model: dict, trainer: dict, iterations: int
) -> float:
    """Span F1, from 0 to 1, after training to a relative improvement of 1e-4 in ten iterations."""
    nlp = spacy.blank("en")
    trainer = {"@misc": "spacy-hocrf.LBFGS.v1", "improvement_tolerance": 1e-4, **trainer}
    pipe = nlp.add_pipe("hocrf", config={"model": model, "trainer": trainer, "scores_key": None})
    examples = [make_example(nlp, text) for text in train]
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(iterations):
        nlp.update(examples[:1], sgd=optimizer)
        if not pipe.run.running:
            break
    return nlp.evaluate([make_example(nlp, text) for text in held_back])["ents_f"]


def make_example(nlp: spacy.Language, text: Text) -> Example:
    """The corpus's own tokens, with its spans as entities."""
    words, spans = text
    gold = Doc(nlp.vocab, words=words)
    gold.set_ents([Span(gold, start, end, label) for start, end, label in spans])
    return Example(Doc(nlp.vocab, words=words), gold)


def read_addresses(data: Path) -> Iterable[Text]:
    """US addresses: XML with an element for each part."""
    source = (data / "usaddress" / "labeled.xml").read_text(encoding="utf8")
    for address in re.findall(r"<AddressString>(.*?)</AddressString>", source, re.S):
        parts = re.findall(r"<(\w+)>(.*?)</\1>", address, re.S)
        pairs = [(word, tag) for tag, body in parts for word in html.unescape(body).split()]
        if pairs:
            words, tags = zip(*pairs)
            yield list(words), list(runs(tags))


def read_tweets(data: Path) -> Iterable[Text]:
    """Broad Twitter Corpus, section h."""
    return read_bio([data / "btc" / "h.conll"])


def read_gum(data: Path) -> Iterable[Text]:
    """GUM entities, four genres."""
    return read_bio(sorted((data / "gum_ner" / "by_genre").glob("*.bio")))


def read_cora(data: Path) -> Iterable[Text]:
    """Cora references, the 300 for training: maximal runs of one label are fields."""
    for words, tags in read_columns(data / "hosemicrf" / "ref" / "ref.train"):
        yield words, list(runs(tags))


def read_bio(paths: Iterable[Path]) -> Iterable[Text]:
    """Token and BIO tag a line."""
    for path in paths:
        for words, tags in read_columns(path):
            spans: list[tuple[int, int, str]] = []
            for i, tag in enumerate(tags):
                if tag[0] == "I" and spans and spans[-1][1] == i and spans[-1][2] == tag[2:]:
                    spans[-1] = (spans[-1][0], i + 1, tag[2:])
                elif tag[0] != "O":
                    spans.append((i, i + 1, tag[2:]))
            yield words, spans


def read_columns(path: Path) -> Iterable[tuple[list[str], list[str]]]:
    """First and last column of the lines between blank lines."""
    for block in re.split(r"\n\s*\n", path.read_text(encoding="utf8").replace("\r\n", "\n")):
        columns = [line.split() for line in block.splitlines() if len(line.split()) > 1]
        if columns:
            yield [fields[0] for fields in columns], [fields[-1] for fields in columns]


def runs(tags: Iterable[str]) -> Iterable[tuple[int, int, str]]:
    """Maximal stretches of one tag."""
    tags = list(tags)
    starts = [i for i in range(len(tags)) if i == 0 or tags[i] != tags[i - 1]]
    return zip(starts, [*starts[1:], len(tags)], [tags[i] for i in starts])


CORPORA = {"addresses": read_addresses, "tweets": read_tweets, "gum": read_gum, "cora": read_cora}

if __name__ == "__main__":
    typer.run(main)
