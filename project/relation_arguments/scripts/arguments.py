"""Train a tagger for each relation and kind of model, and predict the arguments in the test
sentences.

The labels are Arg1, Arg2 and Arg1Arg2; the mentions are given. C are CRFs over tokens, with the
bare labels or with B- and I- (BIO), and SC semi-CRFs over maximal stretches of one label,
unlabelled text included (Nguyen et al., JMLR 15, 2014, §3.2.1). Training takes all sentences with
the relation and, at random, as many without it. Predictions are maximal stretches, written as
`doc.ents`.
"""

import copy
import random
import sys
import time
from collections.abc import Collection, Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import spacy
import srsly
import typer
from convert_conll04 import RELATIONS
from spacy.language import Language
from spacy.tokens import Doc, Span, SpanGroup
from spacy.tokens import Token as DocToken
from spacy.training import Example
from spacy.vocab import Vocab
from tqdm import tqdm

sys.path.extend(str(Path(__file__).parents[2] / folder) for folder in (".", "references/scripts"))
import jmlr_templates  # noqa: F401 - registers jmlr.Bag.v1 and jmlr.Letters.v1
from common.training import annotated, learn, read_docs, write_docs

NAME = "arguments"

CRF = {"@architectures": "spacy-hocrf.HighOrderCRF.v1", "encoding": "io"}
BIO = {"@architectures": "spacy-hocrf.HighOrderCRF.v1", "encoding": "bio"}
SEMI = {"@architectures": "spacy-hocrf.HighOrderCRF.v1", "outside": "run", "repeats": False}


class System(NamedTuple):
    """A kind of model and its order."""

    model: dict[str, Any]
    order: int


SYSTEMS = {
    **{f"C{k}": System(CRF, k) for k in (1, 2, 3)},
    **{f"SC{k}": System(SEMI, k) for k in (1, 2, 3)},
    **{f"C{k}-BIO": System(BIO, k) for k in (1, 2, 3)},
    **{f"SC{k}": System(SEMI, k) for k in (4, 5)},
}
"""Those of Tables 3 and 5, and two more for the plot."""


def main(
    config_path: Annotated[
        Path, typer.Argument(help="Config with a component named arguments", exists=True)
    ],
    train_path: Annotated[Path, typer.Argument(help="Training sentences (.spacy)", exists=True)],
    test_path: Annotated[Path, typer.Argument(help="Test sentences (.spacy)", exists=True)],
    output_dir: Annotated[
        Path, typer.Argument(help="Where the predictions go, a file for each system")
    ],
    metrics_path: Annotated[Path, typer.Argument(help="Where sizes and times go (JSON)")],
    seed: Annotated[int, typer.Option(help="Which sentences without the relation are taken")] = 0,
    only: Annotated[str, typer.Option(help="Systems, separated by commas")] = ",".join(SYSTEMS),
    more: Annotated[
        Path | None, typer.Option(help="Config with further blocks of features", exists=True)
    ] = None,
    folds: Annotated[
        int, typer.Option(help="Test on each of so many parts of all sentences in turn instead")
    ] = 0,
    draws: Annotated[
        int, typer.Option(help="Draws of the sentences without the relation, this seed's the first")
    ] = 1,
) -> None:
    """Write the predictions of every system: the test sentences once for each relation, draw after draw."""
    config = read_config(config_path)
    if more:
        blocks = read_config(more)["model"]["features"]["*"]
        config["model"]["features"]["*"].update(blocks)
    vocab = Vocab()
    train, test = (read_docs(path, vocab) for path in (train_path, test_path))
    tasks = divide([*train, *test], folds) if folds else [(train, test)]
    gold = [
        as_ents(doc, doc.spans[relation])
        for relation in RELATIONS
        for _, held_back in tasks
        for doc in held_back
    ]
    write_docs(draws * gold, output_dir / "gold.spacy")
    rows = []
    for name in only.split(","):
        predicted = []
        for draw, relation, (docs, held_back) in tqdm(
            list(product(range(draws), RELATIONS, tasks)), desc=name, disable=None, leave=False
        ):
            chosen = balance(docs, relation, seed + draw)
            add_extensions({token.text for doc in chosen for token in doc if token.text.islower()})
            begun = time.process_time()
            nlp, row = fit(adapt(config, SYSTEMS[name], relation), chosen, relation)
            row = {
                "system": name,
                "relation": relation,
                "sentences": len(chosen),
                **row,
                "seconds": time.process_time() - begun,
            }
            rows.append(row)
            print(" | ".join(f"{key} {value}" for key, value in row.items()), flush=True)
            predicted += [
                as_ents(doc, doc.spans[relation])
                for doc in nlp.pipe([bare(nlp.vocab, doc) for doc in held_back])
            ]
        write_docs(predicted, output_dir / f"{name}.spacy")
    metrics_path.parent.mkdir(parents=True, exist_ok=True)
    srsly.write_json(metrics_path, rows)


def read_config(path: Path) -> dict[str, Any]:
    """Settings of the component."""
    return spacy.util.load_config(path)["components"][NAME]


def add_extensions(known: Collection[str] = ()) -> None:
    """What the configs read as `_.name`.

    known (Collection[str]): words of the training sentences that are there in lower case.
    """
    getters = {
        "mention_before": mention_before,
        "mention_after": mention_after,
        "case_pattern": lambda token: case_pattern(token.text, token.text.lower() in known),
    }
    for name, getter in getters.items():
        DocToken.set_extension(name, getter=getter, force=True)


def mention_before(token: DocToken) -> str:
    """Type of the last mention that ends before the token; empty if there is none."""
    return next((ent.label_ for ent in reversed(token.doc.ents) if ent.end <= token.i), "")


def mention_after(token: DocToken) -> str:
    """Type of the first mention that begins after the token; empty if there is none."""
    return next((ent.label_ for ent in token.doc.ents if ent.start > token.i), "")


def case_pattern(word: str, known: bool) -> str:
    """Kinds of the first two letters, of those between, each once and in order, and of the last two:
    X, x, d, or what it is; a k follows if the word is known in lower case.
    """
    kinds = [
        "x"
        if letter.islower()
        else "X"
        if letter.isupper()
        else "d"
        if letter.isdigit()
        else letter
        for letter in word
    ]
    between = sorted(set(kinds[2:-2]))
    return "".join([*kinds[:2], *between, *kinds[2:][-2:], "k" * known])


def divide(docs: Sequence[Doc], folds: int) -> list[tuple[list[Doc], list[Doc]]]:
    """For each fold, the other sentences and those of the fold: every so many-th one."""
    return [
        ([doc for i, doc in enumerate(docs) if i % folds != fold], list(docs[fold::folds]))
        for fold in range(folds)
    ]


def balance(docs: Sequence[Doc], relation: str, seed: int) -> list[Doc]:
    """All sentences with the relation and as many without it, in their order."""
    numbers = [i for i, doc in enumerate(docs) if len(doc.spans[relation])]
    others = [i for i, doc in enumerate(docs) if not len(doc.spans[relation])]
    chosen = numbers + random.Random(seed).sample(others, min(len(numbers), len(others)))
    return [docs[i] for i in sorted(chosen)]


def adapt(config: dict[str, Any], system: System, relation: str) -> dict[str, Any]:
    """The component's config for a system and a relation, without the blocks of a higher order;
    second weights of a label pattern are for semi-CRFs.
    """
    config = copy.deepcopy({key: value for key, value in config.items() if key != "factory"})
    features = config["model"]["features"]
    features["*"] = {
        name: {key: block[key] for key in block if key != "copies" or system.model is SEMI}
        for name, block in features["*"].items()
        if block.get("order", 0) <= system.order
    }
    model = {"features": features, **system.model, "order": system.order}
    return {**config, "model": model, "spans_key": relation}


def fit(
    config: dict[str, Any], docs: Iterable[Doc], relation: str
) -> tuple[Language, dict[str, Any]]:
    """A pipeline trained to the optimum, and the sizes of its model."""
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("hocrf_spans", config=config)
    bio = config["model"].get("encoding") == "bio"
    examples = [
        Example(bare(nlp.vocab, doc), reference(nlp.vocab, doc, relation, merge=not bio))
        for doc in docs
    ]
    run = learn(nlp, examples)
    structure = pipe.structure
    return nlp, {
        "features": len(structure.index),
        "patterns": len(structure.patterns),
        "objective": round(run.loss, 4),
        "evaluations": run.evaluations,
    }


def bare(vocab: Vocab, doc: Doc) -> Doc:
    """The sentence with its tags and mentions, and no arguments."""
    return Doc(
        vocab,
        words=[t.text for t in doc],
        tags=[t.tag_ for t in doc],
        ents=[f"{t.ent_iob_}-{t.ent_type_}".rstrip("-") for t in doc],
    )


def reference(vocab: Vocab, doc: Doc, relation: str, *, merge: bool) -> Doc:
    """The sentence with the arguments of a relation; `merge` joins neighbours of one label, for
    models that do.
    """
    copied = Doc(vocab, words=[t.text for t in doc])
    spans = (
        stretches(doc.spans[relation])
        if merge
        else [(span.start, span.end, span.label_) for span in doc.spans[relation]]
    )
    copied.spans[relation] = [Span(copied, *span) for span in spans]
    return copied


def as_ents(doc: Doc, group: SpanGroup) -> Doc:
    """The sentence with the maximal stretches of each label as entities."""
    return annotated(doc.vocab, [t.text for t in doc], stretches(group))


def stretches(group: SpanGroup) -> list[tuple[int, int, str]]:
    """Start, end and label, neighbours of one label made one: what B- and I- add to the labels is
    taken away.
    """
    spans: list[tuple[int, int, str]] = []
    for span in sorted(group):
        if spans and spans[-1][1:] == (span.start, span.label_):
            spans[-1] = (spans[-1][0], span.end, span.label_)
        else:
            spans.append((span.start, span.end, span.label_))
    return spans


if __name__ == "__main__":
    typer.run(main)
